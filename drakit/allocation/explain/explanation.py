"""How a report is made: look around, ask, judge every device alone, find conflicts, find changes."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import msgspec

from drakit.allocation.errors import AllocationError
from drakit.allocation.explain.changes import Blocked, find_changes
from drakit.allocation.explain.conflicts import Core, minimal_core
from drakit.allocation.explain.devices import Examiner, Known
from drakit.allocation.explain.parts import Parts, single
from drakit.allocation.explain.report import (
    Change,
    Chosen,
    ClaimReport,
    Conflict,
    DeviceReport,
    Outcome,
    Report,
    RequestRef,
    RequestReport,
)
from drakit.allocation.explain.scene import broken_pools, look
from drakit.allocation.explain.together import reasons_together
from drakit.allocation.explain.world import Effort, World
from drakit.allocation.features import OPTIONAL_NODE_OPERATIONS
from drakit.allocation.requests import claim_name
from drakit.allocation.search import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from drakit.allocation.allocator import Allocator
    from drakit.allocation.explain.parts import Part
    from drakit.allocation.explain.scene import Scene
    from drakit.allocation.explain.world import Answer
    from drakit.allocation.reasons import Reason
    from drakit.allocation.requests import Variant
    from drakit.api import core, resource

__all__ = ["explain"]

_KNOWN: weakref.WeakKeyDictionary[Allocator, Known] = weakref.WeakKeyDictionary()


def explain(allocator: Allocator, node: core.Node, claims: Sequence[resource.ResourceClaim]) -> Report:
    """Why the claims do not fit on the node, and what would help; says so when they do fit."""
    scene = look(allocator, node)
    world = World(allocator, node, scene.slices, Effort())
    answer = world.ask(claims)
    name = node.metadata.name
    if answer.fits and not scene.error:
        return Report(node=name, outcome="fits", chosen=tuple(_chosen(claims, answer)), elsewhere=scene.elsewhere)
    known = _KNOWN.setdefault(allocator, Known())
    known.trim()
    return _Explanation(world, node, claims, scene, answer, known=known).report()


def _chosen(claims: Sequence[resource.ResourceClaim], answer: Answer) -> Iterator[Chosen]:
    for claim, result in zip(claims, answer.results or (), strict=True):
        for each in result.devices.results:
            yield Chosen(claim_name(claim), each.request, each.driver, each.pool, each.device)


class _Explanation:
    def __init__(
        self,
        world: World,
        node: core.Node,
        claims: Sequence[resource.ResourceClaim],
        scene: Scene,
        answer: Answer,
        *,
        known: Known,
    ) -> None:
        self._world = world
        self._node = node
        self._claims = claims
        self._scene = scene
        self._answer = answer
        self._parts = Parts(claims)
        self._known = known

    def report(self) -> Report:
        """All of it."""
        alone = {part: self._alone(part) for part in self._parts.requests}
        reports = {part: list(self._examine(part, alone[part])) for part in self._parts.requests}
        cores = [] if self._answer.fits else self._cores(alone)
        for each in cores:
            self._add_combinations(each, reports)
        return Report(
            node=self._node.metadata.name,
            outcome=self._outcome(),
            error=self._scene.error or (str(self._answer.error) if self._answer.error is not None else ""),
            claims=tuple(self._claim(place, reports) for place in range(len(self._claims))),
            pools=tuple(broken_pools(self._scene, self._world.pools)),
            slices=self._scene.unreadable,
            elsewhere=self._scene.elsewhere,
            conflicts=tuple(self._conflict(each) for each in cores),
            changes=self._changes(cores, reports),
        )

    def _outcome(self) -> Outcome:
        if not self._scene.error and not self._answer.known:
            return "unknown"
        fatal = self._scene.error or isinstance(self._answer.error, AllocationError)
        return "error" if fatal else "does not fit"

    def _claim(self, place: int, reports: dict[Part, list[RequestReport]]) -> ClaimReport:
        name = claim_name(self._claims[place])
        requests = tuple(each for part, several in reports.items() if part[0] == place for each in several)
        empty = [rule for rule in self._parts.rules if rule[0] == place and self._parts.is_empty(rule)]
        error = f"constraint {empty[0][1]} names no attribute" if empty else ""
        return ClaimReport(claim=name, requests=requests, error=error)

    # --- each request by itself

    def _alone(self, part: Part) -> bool | None:
        subset = self._parts.subset([part], self._parts.sound_rules(part[0]))
        answer = self._world.attempt(subset.claims)
        return answer.fits if answer.known else None

    def _examine(self, part: Part, alone: bool | None) -> Iterator[RequestReport]:
        """Reports of a request's variants."""
        subset = single(self._parts.subset([part], self._parts.sound_rules(part[0])))
        plan = self._world.allocator.plan(subset.claims)
        problem = Problem(plan, self._world.pools, {}, self._world.allocator.features)
        (slot,) = plan.slots
        counts = self._counts(part)
        for variant, count in zip(slot.variants, counts, strict=True):
            fault = slot.fault or variant.fault
            yield RequestReport(
                request=variant.name,
                class_name=variant.request.device_class_name,
                count=None if variant.every else count,
                fits_alone=alone,
                error="" if fault is None else str(fault),
                devices=tuple(self._devices(problem, variant, subset.rules[0])) if fault is None else (),
            )
        if not slot.variants:
            name = slot.request.name
            yield RequestReport(request=name, class_name="", count=0, fits_alone=alone, error=str(slot.fault or ""))

    def _counts(self, part: Part) -> list[int]:
        request = self._parts.request(part)
        if request.first_available:
            return [each.count for each in request.first_available]
        return [request.exactly.count] if request.exactly is not None else []

    def _devices(self, problem: Problem, variant: Variant, rules: tuple[int, ...]) -> Iterator[DeviceReport]:
        skips = OPTIONAL_NODE_OPERATIONS in self._node.status.declared_features
        examiner = Examiner(problem, variant, self._world.state, self._known, rules, skips=skips)
        return examiner.reports()

    # --- all together

    def _cores(self, alone: dict[Part, bool | None]) -> list[Core]:
        """One conflict per request that fails alone; else one of what fails together."""
        failing = [part for part, fits in alone.items() if fits is False]
        cores = [minimal_core(self._world, self._parts, [part], self._parts.sound_rules(part[0])) for part in failing]
        if not cores and self._answer.known and self._parts.requests:
            cores = [minimal_core(self._world, self._parts, self._parts.requests, self._parts.rules)]
        return cores

    def _conflict(self, core: Core) -> Conflict:
        return Conflict(
            requests=tuple(map(self._parts.reference, core.requests)),
            constraints=tuple(map(self._parts.constraint, core.rules)),
            minimal=core.minimal,
        )

    def _add_combinations(self, core: Core, reports: dict[Part, list[RequestReport]]) -> None:
        """Give the usable devices of a conflict's requests their reasons."""
        usable = {
            part: {
                each.request: [(one.driver, one.pool, one.device) for one in each.devices if one.usable]
                for each in reports[part]
                if not each.error
            }
            for part in core.requests
        }
        found = reasons_together(self._world, self._parts, core, usable)
        for part, by_variant in found.items():
            reports[part] = [
                _with_reasons(each, by_variant[each.request]) if each.request in by_variant else each
                for each in reports[part]
            ]

    def _changes(self, cores: Sequence[Core], reports: dict[Part, list[RequestReport]]) -> tuple[Change, ...]:
        if self._scene.error or not cores:
            return ()
        blocked = [self._blocked(part, each) for core in cores for part in core.requests for each in reports[part]]
        rules = [self._parts.constraint(rule) for core in cores for rule in core.rules]
        return find_changes(self._world, self._claims, blocked, rules)

    def _blocked(self, part: Part, report: RequestReport) -> Blocked:
        request = self._parts.request(part)
        variants = request.first_available or (request.exactly,)
        label = report.request.partition("/")[2]
        asked: frozenset[str] = frozenset()
        for each in variants:
            if each is not None and each.capacity is not None and getattr(each, "name", "") in {label, ""}:
                asked = frozenset(each.capacity.requests)
        constraints = tuple(self._parts.constraint(rule) for rule in self._parts.rules if rule[0] == part[0])
        reference = RequestRef(self._parts.reference(part).claim, report.request)
        return Blocked(reference, report, constraints, asked)


def _with_reasons(report: RequestReport, reasons: dict[tuple[str, str, str], Reason]) -> RequestReport:
    devices = []
    for each in report.devices:
        reason = reasons.get((each.driver, each.pool, each.device)) if each.usable else None
        devices.append(each if reason is None else msgspec.structs.replace(each, reasons=(reason,)))
    return msgspec.structs.replace(report, devices=tuple(devices))
