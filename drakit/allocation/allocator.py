"""The allocator: what Kubernetes would allocate on a node, or that nothing fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from drakit.allocation import requests
from drakit.allocation.contents import Contents
from drakit.allocation.errors import AllocationError, NodeError
from drakit.allocation.features import Features
from drakit.allocation.pools import Gatherer
from drakit.allocation.reasons import PoolInvalid
from drakit.allocation.results import Template, new_share_id
from drakit.allocation.search import Budget, Failure, Problem, Prunings, solve
from drakit.allocation.selectors import CLASS, DERIVED
from drakit.allocation.spaces import Spaces
from drakit.allocation.state import AllocatedState
from drakit.allocation.taints import apply_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from drakit.allocation.explain.report import Report
    from drakit.allocation.pools import Pool
    from drakit.allocation.requests import Plan, Variant
    from drakit.allocation.spaces import Space
    from drakit.api import core, resource

__all__ = ["Allocator", "ValidationFailed"]

_MAX_PLANS: Final = 256
_FEATURES: Final = Features()
_PRUNINGS: Final = Prunings()
_BUDGET: Final = Budget()


class Allocator:
    """Allocates claims on nodes, as upstream's search order defines it.

    One allocator serves any number of nodes and claims; it follows changes of slices, classes, rules and allocated
    claims through the `update_` and `remove_` methods. It never changes its inputs and allocates nothing by itself:
    what `allocate` returns counts as allocated only after `update_claim`.

    Args:
        slices: All ResourceSlices.
        classes: All DeviceClasses.
        allocated: What is in use; the allocator keeps and updates this very object.
        features: Gates.
        rules: DeviceTaintRules, whose taints are added to the devices.
        contents: Interned contents to share with other allocators of the same features.
        prunings: Switches of the search.
        budget: When a search gives up.
        share_id: Makes the IDs of shares.
    """

    def __init__(
        self,
        slices: Iterable[resource.ResourceSlice],
        classes: Iterable[resource.DeviceClass],
        allocated: AllocatedState | None = None,
        features: Features = _FEATURES,
        *,
        rules: Iterable[resource.DeviceTaintRule] = (),
        contents: Contents | None = None,
        prunings: Prunings = _PRUNINGS,
        budget: Budget = _BUDGET,
        share_id: Callable[[], str] = new_share_id,
    ) -> None:
        if contents is not None and contents.features != features:
            raise ValueError("the contents belong to other features")
        self.features = features
        self.allocated = allocated if allocated is not None else AllocatedState()
        self.contents = contents if contents is not None else Contents(features)
        self.prunings = prunings
        self.budget = budget
        self._share_id = share_id
        self._classes = {each.metadata.name: each for each in classes}
        self._rules = {each.metadata.name: each for each in rules}
        self._published = {each.metadata.name: each for each in slices} if self._rules else {}
        self._slices: dict[str, resource.ResourceSlice] = {}
        if self._rules:
            known = list(self._rules.values())
            slices = [apply_rules(each, known) for each in self._published.values()]
        self._gatherer = Gatherer(self.contents, self.allocated)
        self._spaces = Spaces(self._gatherer, slices)
        self._plans: dict[tuple[int, ...], tuple[Sequence[resource.ResourceClaim], Plan | AllocationError]] = {}

    def allocate(
        self, node: core.Node, claims: Sequence[resource.ResourceClaim]
    ) -> list[resource.AllocationResult] | None:
        """Allocate all claims, in order, on one node.

        Returns:
            One result per claim, or None when nothing fits here.

        Raises:
            NodeError: Nothing fits and pools of this node are invalid.
            AllocationError: Fatal, whatever the node.
            AllocationTooDeep: The search used up its budget.
        """
        name = node.metadata.name
        space = self._spaces.of(node)
        plan = self.plan(claims)
        space.refresh(self.allocated.generation, self.contents.edition)
        outcomes = self.contents.outcomes
        key = (plan.token, space.key)
        found = outcomes.get(key, outcomes)
        if found is outcomes:
            found = self._search(plan, space)
            self.contents.remember(key, found)
        if found is None:
            return None
        if isinstance(found, Template):
            return found.render(plan, space.pools, name, self._share_id)
        raise found(plan, space.pools)

    def explain(self, node: core.Node, claims: Sequence[resource.ResourceClaim]) -> Report:
        """Say per claim, request and device why the claims do not fit on a node, and what would help.

        Never raises what `allocate` raises: errors are part of the report.
        """
        from drakit.allocation.explain.explanation import explain

        return explain(self, node, claims)

    @property
    def classes(self) -> Mapping[str, resource.DeviceClass]:
        """The classes by name."""
        return self._classes

    @property
    def spaces(self) -> Spaces:
        """The slices, with the taints of rules, and which nodes see them."""
        return self._spaces

    def plan(self, claims: Sequence[resource.ResourceClaim]) -> Plan:
        """The claims compiled for the search.

        Raises:
            AllocationError: They can never be allocated.
        """
        key = tuple(map(id, claims))
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) > _MAX_PLANS:
                self._plans.clear()
            kept = tuple(claims)
            try:
                found = kept, requests.compile_claims(kept, self._classes, self.contents)
            except AllocationError as error:
                found = kept, error
            self._plans[key] = found
        if isinstance(found[1], AllocationError):
            raise found[1].with_traceback(None)
        return found[1]

    def pools(self, node: core.Node) -> Sequence[Pool]:
        """The pools that a node sees, in search order.

        Raises:
            AllocationError: The node selector of a slice cannot be parsed.
        """
        return self._spaces.of(node).pools

    def problem(self, plan: Plan, pools: Sequence[Pool]) -> Problem:
        """The plan on these pools, after the validation pass.

        Raises:
            ValidationFailed: The validation pass fails.
        """
        members: dict[int, tuple[int, ...]] = {}
        problem = Problem(plan, pools, members, self.features)
        if not plan.straightforward:
            _validate(plan, problem)
        return problem

    def _search(self, plan: Plan, space: Space) -> Any:
        """A template, None, or a function that makes the error for a like plan and like pools."""
        pools = space.pools
        try:
            problem = self.problem(plan, pools)
        except ValidationFailed as raised:
            return raised.make
        found = solve(problem, self.prunings, self.budget)
        if isinstance(found, Failure):
            return _failing(found, problem.place(found.device))
        if found is None:
            broken = [position for position, pool in enumerate(pools) if _invalid(pool)]
            return _invalid_pools(broken) if broken else None
        return Template(plan, problem, found, self.features)

    def update_slice(self, slice_: resource.ResourceSlice) -> None:
        """Add a slice, or replace the one of the same name."""
        self.remove_slice(slice_.metadata.name)
        self._publish(slice_)

    def remove_slice(self, name: str) -> None:
        """Forget a slice."""
        self._index_slices()
        self._published.pop(name, None)
        known = self._slices.pop(name, None)
        if known is not None:
            self._spaces.remove(known)

    def update_class(self, class_: resource.DeviceClass) -> None:
        """Add or replace a class."""
        self._classes[class_.metadata.name] = class_
        self._forget_plans()

    def remove_class(self, name: str) -> None:
        """Forget a class."""
        self._classes.pop(name, None)
        self._forget_plans()

    def update_rule(self, rule: resource.DeviceTaintRule) -> None:
        """Add or replace a DeviceTaintRule."""
        self._index_slices()
        self._rules[rule.metadata.name] = rule
        self._republish()

    def remove_rule(self, name: str) -> None:
        """Forget a DeviceTaintRule."""
        self._index_slices()
        if self._rules.pop(name, None) is not None:
            self._republish()

    def update_claim(self, claim: resource.ResourceClaim, previous: resource.ResourceClaim | None = None) -> None:
        """Count the allocation of a claim, instead of what `previous` had."""
        if previous is not None:
            self.allocated.remove(previous)
        self.allocated.add(claim)

    def remove_claim(self, claim: resource.ResourceClaim) -> None:
        """Take back what a claim had allocated."""
        self.allocated.remove(claim)

    def _forget_plans(self) -> None:
        self._plans.clear()

    def _index_slices(self) -> None:
        """Remember slices by name; done on the first update only."""
        if not self._slices:
            self._slices = {each.metadata.name: each for each in self._spaces.slices()}
        if not self._published:
            self._published = dict(self._slices)

    def _publish(self, slice_: resource.ResourceSlice) -> None:
        patched = apply_rules(slice_, list(self._rules.values()))
        self._published[slice_.metadata.name] = slice_
        self._slices[slice_.metadata.name] = patched
        self._spaces.add(patched)

    def _republish(self) -> None:
        for slice_ in list(self._published.values()):
            patched = apply_rules(slice_, list(self._rules.values()))
            known = self._slices[slice_.metadata.name]
            if patched != known:
                self._spaces.remove(known)
                self._slices[slice_.metadata.name] = patched
                self._spaces.add(patched)


_Make: TypeAlias = "Callable[[Plan, Sequence[Pool]], Exception]"
"""Makes an error with the names of a plan's claims and of pools."""


class ValidationFailed(Exception):  # noqa: N818 - carries the error that is raised in the end
    """The validation pass failed; `make` builds the error with the names of a plan's claims and of pools."""

    def __init__(self, make: _Make) -> None:
        super().__init__()
        self.make = make


def _validate(plan: Plan, problem: Problem) -> None:
    """Upstream's checks before the search, in its order; finds the members of All requests on the way."""
    for claim in plan.claims:
        counts = []
        for slot in claim.slots:
            _raise(slot.fault)
            for variant in slot.variants:
                _raise(variant.fault)
                if variant.every:
                    problem.members[variant.number] = _members(variant, problem)
            counts.append([problem.count(variant) for variant in slot.variants])
        try:
            requests.check_count(claim, counts)
        except AllocationError as error:
            _raise(error)
        _raise(claim.fault)


def _raise(error: AllocationError | None) -> None:
    if error is not None:
        raise ValidationFailed(lambda _plan, _pools: error.with_traceback(None))


def _members(variant: Variant, problem: Problem) -> tuple[int, ...]:
    """All devices of an All request: selected and with enough capacity, whether in use or not (spec 1.6)."""
    members: list[int] = []
    features = problem.features
    for position, (pool, offset) in enumerate(zip(problem.pools, problem.offsets, strict=True)):
        content = pool.content if not pool.is_incomplete else None
        if content is None or content.invalid:
            raise ValidationFailed(_broken_pool(variant.number, position))
        selected, failures = content.selected(variant.needs.selectors)
        condition = problem.condition(position)
        for index in range(content.local):
            if index in failures:
                failure = Failure(variant, offset + index, selector=failures[index])
                raise ValidationFailed(_failing(failure, (position, index)))
            if not selected >> index & 1:
                continue
            if index in condition.failing:
                failure = Failure(variant, offset + index, node_selector=condition.failing[index])
                raise ValidationFailed(_failing(failure, (position, index)))
            if not condition.usable >> index & 1:
                continue
            if features.consumable_capacity and not problem.has_room(variant, position, index):
                continue
            members.append(offset + index)
    return tuple(members)


def _broken_pool(number: int, position: int) -> _Make:
    def make(plan: Plan, pools: Sequence[Pool]) -> Exception:
        variant, pool = plan.variants[number], pools[position]
        state = "currently being updated" if pool.is_incomplete else "currently invalid"
        return AllocationError(
            f"claim {variant.claim_name}, request {variant.label}: asks for all devices, "
            f"but resource pool {pool} is {state}",
            claim=variant.claim_name,
            request=variant.name,
            path=variant.path,
        )

    return make


def _failing(failure: Failure, place: tuple[int, int]) -> _Make:
    number = failure.variant.number
    return lambda plan, pools: _failure(failure, plan.variants[number], place, pools)


def _failure(failure: Failure, variant: Variant, place: tuple[int, int], pools: Sequence[Pool]) -> AllocationError:
    """The error of a failure, with the names of this variant's claim and of these pools."""
    pool = pools[place[0]]
    device = f"{pool}/{pool.content.devices[place[1]].device.name}"
    claim = variant.claim_name
    selector = failure.selector
    path = variant.path
    if selector is not None:
        assert variant.class_ is not None
        owner = f"class {variant.class_.metadata.name}" if selector.source == CLASS else f"claim {claim}"
        where = f"{owner}: selector #{selector.index}"
        if selector.source == DERIVED:
            where = f"{owner}: derived attribute {selector.name}"
            path = f"{path}.derivedAttributes[{selector.index}]"
        elif selector.source == CLASS:
            path = f"spec.selectors[{selector.index}].cel.expression"
        else:
            path = f"{path}.selectors[{selector.index}].cel.expression"
        text = (
            f"{where}: CEL compile error: {selector.message}"
            if selector.compiling
            else f"{where} on device {device}: CEL runtime error: {selector.message}"
        )
    elif failure.node_selector:
        text = failure.node_selector
    else:
        text = (
            f"claim {claim}, request {variant.label}: cannot add device {device} "
            "because a claim constraint would not be satisfied"
        )
    return AllocationError(text, claim=claim, request=variant.name, path=path)


def _invalid(pool: Pool) -> bool:
    return not pool.is_incomplete and bool(pool.content.invalid)


def _invalid_pools(positions: Sequence[int]) -> _Make:
    def make(_plan: Plan, pools: Sequence[Pool]) -> Exception:
        broken = []
        for position in positions:
            fault = pools[position].fault
            reason = fault.reason if isinstance(fault, PoolInvalid) else ""
            broken.append((pools[position].driver, pools[position].name, reason))
        return NodeError(tuple(broken))

    return make
