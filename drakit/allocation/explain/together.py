"""Why devices that would do alone do not do together with what the rest of a conflict needs.

A conflict is minimal, so the rest of it can be allocated when one request is left out. Against such an allocation every
device of that request is tried, and the rule that refuses it is the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from drakit.allocation import compatibility, constraints
from drakit.allocation.errors import AllocationError
from drakit.allocation.explain.reasons import AllOrNothing, LimitReached, NotTogether, SearchEnded, TooFew
from drakit.allocation.reasons import (
    AdminTwice,
    AttributeConflict,
    AttributeTypeUnknown,
    CapacityShort,
    CountersShort,
    GroupsIncompatible,
    Reason,
    TakenInThisCall,
)
from drakit.allocation.search import Problem
from drakit.allocation.search.problem import FIRST_ONLY, UNSET
from drakit.allocation.search.state import State
from drakit.api import limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from drakit.allocation.explain.conflicts import Core
    from drakit.allocation.explain.parts import Part, Parts, Subset
    from drakit.allocation.explain.world import Answer, World
    from drakit.allocation.requests import Constraint, Variant
    from drakit.api import resource

__all__ = ["Device", "reasons_together"]

Device: TypeAlias = tuple[str, str, str]
"""Driver, pool, device name."""

_Found: TypeAlias = "dict[Part, dict[str, dict[Device, Reason]]]"
_MAX_OTHERS = 3


def reasons_together(world: World, parts: Parts, core: Core, usable: dict[Part, dict[str, list[Device]]]) -> _Found:
    """For each request of a conflict, by the name of its variant: a reason for every device that would do alone.

    Args:
        world: The node.
        parts: The claims.
        core: The conflict.
        usable: The devices that would do alone, in search order, by request and variant.
    """
    subset = parts.subset(core.requests, core.rules)
    try:
        plan = world.allocator.plan(subset.claims)
    except AllocationError:
        limit = LimitReached(limit=limits.ALLOCATION_RESULTS)
        return {
            part: {name: dict.fromkeys(devices, limit) for name, devices in usable[part].items()}
            for part in core.requests
        }
    problem = Problem(plan, world.pools, {}, world.allocator.features)
    return {part: _Against(world, parts, core, problem, part).run(usable[part]) for part in core.requests}


class _Against:
    """One request of a conflict against an allocation of the others."""

    def __init__(self, world: World, parts: Parts, core: Core, problem: Problem, part: Part) -> None:
        self._world = world
        self._parts = parts
        self._core = core
        self._problem = problem
        self._part = part
        self._subset = subset = parts.subset(core.requests, core.rules)
        plan = problem.plan
        self._variants = {(subset.places[each.claim], each.name): each for each in plan.variants}
        self._numbers = _numbers(problem)
        self._state = State(problem)
        self._apart = _apart(world.attempt(subset.claims), tuple(str(parts.reference(each)) for each in core.requests))

    def run(self, usable: dict[str, list[Device]]) -> dict[str, dict[Device, Reason]]:
        """Reasons by variant and device."""
        rest = [each for each in self._core.requests if each != self._part]
        placed = True
        if rest:
            subset = self._parts.subset(rest, self._core.rules)
            placed = self._place(self._world.attempt(subset.claims), subset)
        found = {}
        for name, devices in usable.items():
            variant = self._variants[self._part[0], name]
            reasons = self._refusals(variant, devices) if placed and variant.fault is None else {}
            found[name] = {device: reasons.get(device, self._apart) for device in devices}
        return found

    def _place(self, answer: Answer, subset: Subset) -> bool:
        """Take the devices of an allocation; False when that is not possible in this order."""
        for place, allocation in zip(subset.places, answer.results or (), strict=False):
            for result in allocation.devices.results:
                variant = self._variants[place, result.request]
                number = self._numbers[result.driver, result.pool, result.device]
                if isinstance(self._state.take(variant, number), str):
                    return False
        return answer.fits

    def _refusals(self, variant: Variant, devices: list[Device]) -> dict[Device, Reason]:
        """Take as many devices as go together, starting with the best known set; reasons for all of them."""
        state = self._state
        wanted = len(devices) if variant.every else variant.count
        if state.results[variant.claim] + wanted > limits.ALLOCATION_RESULTS:
            return dict.fromkeys(devices, LimitReached(limit=limits.ALLOCATION_RESULTS))
        reasons: dict[Device, Reason] = {}
        undos = []
        taken: list[Device] = []
        for device in self._best_first(variant, devices):
            if len(taken) == wanted:
                break
            undo = state.take(variant, self._numbers[device])
            if isinstance(undo, str):
                refused = self._refusal(variant, self._numbers[device])
                if refused is not None:
                    reasons[device] = refused
            else:
                undos.append(undo)
                taken.append(device)
        for undo in reversed(undos):
            state.undo(undo)
        if len(taken) < wanted and not variant.every:
            reasons.update(dict.fromkeys(taken, TooFew(need=wanted, have=len(taken))))
        elif variant.every and not isinstance(self._apart, SearchEnded):
            reasons.update(dict.fromkeys(taken, AllOrNothing()))
        return reasons

    def _best_first(self, variant: Variant, devices: list[Device]) -> Iterator[Device]:
        """The devices, but those of the largest set that the request could have first, when it is alone."""
        best: list[Device] = []
        if len(self._core.requests) == 1 and not variant.every and variant.count > 1:
            best = self._largest(variant, len(devices))
        yield from best
        yield from (device for device in devices if device not in best)

    def _largest(self, variant: Variant, most: int) -> list[Device]:
        best: list[Device] = []
        low, high = 1, min(variant.count - 1, most)
        while low <= high:
            middle = (low + high + 1) // 2
            answer = self._world.attempt(_lowered(self._subset, variant, middle))
            if answer.results:
                best = [(each.driver, each.pool, each.device) for each in answer.results[0].devices.results]
                low = middle + 1
            else:
                high = middle - 1
        return best

    # --- the rule that refuses a device, as `State.take` applies it

    def _refusal(self, variant: Variant, device: int) -> Reason | None:
        for check in (self._taken, self._counters, self._groups, self._constraints, self._capacity):
            reason = check(variant, device)
            if reason is not None:
                return reason
        return None

    def _taken(self, variant: Variant, device: int) -> Reason | None:
        state = self._state
        if self._problem.device(device).shareable:
            return None
        if not (state.used_by[variant.claim] if variant.admin else state.used) >> device & 1:
            return None
        taker = next(each.variant for each in state.chosen if each.device == device)
        if variant.admin:
            return AdminTwice(request=taker.name)
        return TakenInThisCall(claim=taker.claim_name, request=taker.name)

    def _counters(self, _variant: Variant, device: int) -> Reason | None:
        pool, index = self._problem.place(device)
        condition = self._problem.condition(pool)
        content = condition.content
        shared = content.devices[index]
        if not shared.draws_counters:
            return None
        if shared.shareable and (device in self._state.taken or index in condition.consumed):
            return None
        supply = self._state.supply.get(pool, condition.supply)
        for counter, amount in content.draws[index]:
            if supply[counter] < amount:
                counter_set, name = content.counters[counter]
                takers = tuple(self._takers(pool, counter))
                return CountersShort(
                    counter_set=counter_set, counter=name, need=amount, have=supply[counter], holders=takers
                )
        return None

    def _takers(self, pool: int, counter: int) -> Iterator[str]:
        """Requests that draw from a counter in this call."""
        names: dict[str, None] = {}
        for choice in self._state.chosen:
            where, index = self._problem.place(choice.device)
            draws = self._problem.condition(where).content.draws
            if where == pool and draws and any(drawn == counter for drawn, _ in draws[index]):
                names[f"{choice.variant.claim_name} {choice.variant.name}"] = None
        yield from names

    def _groups(self, _variant: Variant, device: int) -> Reason | None:
        if not self._problem.features.device_compatibility_groups:
            return None
        pool, index = self._problem.place(device)
        condition = self._problem.condition(pool)
        for counter_set, groups in condition.content.groups[index] if condition.content.groups else ():
            before = self._state.groups.get((pool, counter_set), condition.groups.get(counter_set))
            if not compatibility.join(before, groups)[0]:
                return GroupsIncompatible(
                    counter_set=counter_set, groups=tuple(sorted(groups)), others=tuple(sorted(before or ()))
                )
        return None

    def _constraints(self, variant: Variant, device: int) -> Reason | None:
        content = self._problem.device(device)
        for constraint in variant.constraints:
            mask = self._problem.value(constraint, variant, content)
            if not self._clashes(constraint, mask, self._state.values[constraint.number]):
                continue
            number = self._subset.rules[variant.claim][constraint.index]
            if mask == FIRST_ONLY:
                return AttributeTypeUnknown(constraint=number, attribute=constraint.attribute)
            return AttributeConflict(
                constraint=number,
                attribute=constraint.attribute,
                distinct=constraint.distinct,
                values=self._values(constraint, variant, device),
                others=tuple(self._others(constraint, mask))[:_MAX_OTHERS],
            )
        return None

    def _clashes(self, constraint: Constraint, mask: int, before: int) -> bool:
        if constraint.distinct:
            return bool(before) if mask == FIRST_ONLY else bool(before & mask << 1)
        return before != UNSET and (mask == FIRST_ONLY or not before & mask)

    def _others(self, constraint: Constraint, mask: int) -> Iterator[str]:
        """Chosen devices that the values do not go with, as `device (values)`."""
        found = []
        for choice in self._state.chosen:
            if constraint not in choice.variant.constraints:
                continue
            pool, index = self._problem.place(choice.device)
            other = self._problem.condition(pool).content.devices[index]
            value = self._problem.value(constraint, choice.variant, other)
            shown = ", ".join(self._values(constraint, choice.variant, choice.device))
            common = FIRST_ONLY in {value, mask} or bool(value & mask)
            found.append((common is constraint.distinct, f"{other.device.name} ({shown})"))
        clashing = [text for clashes, text in found if clashes]
        yield from clashing or (text for _, text in found)

    def _values(self, constraint: Constraint, variant: Variant, device: int) -> tuple[str, ...]:
        content = self._problem.device(device)
        attribute = variant.needs.selectors.derived_values(content).get(constraint.attribute)
        if attribute is None:
            attribute = constraints.lookup(content.device, content.driver, constraint)
        values = frozenset() if attribute is None else constraints.attribute_values(attribute, lists=True)
        return tuple(sorted(_shown(value) for _, value in values))

    def _capacity(self, variant: Variant, device: int) -> Reason | None:
        content = self._problem.device(device)
        if not content.shareable:
            return None
        pool, index = self._problem.place(device)
        consumed = self._problem.condition(pool).consumed.get(index, {})
        needed = self._problem.consumption(variant, content)
        shares = self._state.taken.get(device, ())
        for position, name in enumerate(needed.names):
            taken = sum(share[position] for share in shares)
            left = needed.values[position] - consumed.get(name, 0) - taken
            if needed.amounts[position] > left:
                takers = dict.fromkeys(
                    f"{each.variant.claim_name} {each.variant.name}"
                    for each in self._state.chosen
                    if each.device == device
                )
                return CapacityShort(name=name, need=needed.amounts[position], have=left, holders=tuple(takers))
        return None


def _apart(answer: Answer, names: tuple[str, ...]) -> Reason:
    """What can be said of devices that no rule refuses."""
    if isinstance(answer.error, AllocationError) and answer.known:
        return SearchEnded(error=str(answer.error))
    return NotTogether(requests=names)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lowered(subset: Subset, variant: Variant, count: int) -> Sequence[resource.ResourceClaim]:
    """The only request of a subset with a lower count, and without its other alternatives."""
    (claim,) = subset.claims
    (request,) = claim.spec.devices.requests
    lowered = msgspec.structs.replace(variant.request, count=count)
    if request.exactly is not None:
        changed = msgspec.structs.replace(request, exactly=lowered)
    else:
        changed = msgspec.structs.replace(request, first_available=(lowered,))
    devices = msgspec.structs.replace(claim.spec.devices, requests=(changed,))
    return (msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices)),)


def _numbers(problem: Problem) -> dict[Device, int]:
    """Numbers of all devices that can be chosen."""
    found: dict[Device, int] = {}
    for position, pool in enumerate(problem.pools):
        if pool.is_incomplete or pool.content.invalid:
            continue
        content = problem.condition(position).content
        for index in range(content.local):
            key = (pool.driver, pool.name, content.devices[index].device.name)
            found.setdefault(key, problem.offsets[position] + index)
    return found
