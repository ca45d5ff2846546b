"""Every reason why single devices cannot serve a request, as if nothing else were asked for.

The rules are those of the search (spec/allocator.md 1.4 to 1.11), but none hides another: a device that is in use and
tainted has both reasons. Errors of one device or one pool never hide others.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from drakit import cel
from drakit.allocation import capacity, compatibility, constraints, counters, selectors, taints
from drakit.allocation.explain.reasons import NodeSelectorBroken, SelectorUnmet
from drakit.allocation.explain.report import DeviceReport
from drakit.allocation.features import OPTIONAL_NODE_OPERATIONS
from drakit.allocation.reasons import (
    AttributeMissing,
    AttributeTypeUnknown,
    CapacityShort,
    CountersShort,
    FeatureOff,
    GroupsIncompatible,
    HeldExclusively,
    NotForNode,
    Reason,
    SelectorFalse,
    TaintNotTolerated,
)
from drakit.cel.why import why_false

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from drakit.allocation.devices import DeviceContent
    from drakit.allocation.pools import Condition, Pool
    from drakit.allocation.requests import Variant
    from drakit.allocation.search import Problem
    from drakit.allocation.state import AllocatedState
    from drakit.cel.why import Fact

__all__ = ["Examiner", "Known"]

_NONE: tuple[str, ...] = ()
_MAX_KNOWN: Final = 20_000


@functools.cache
def _environment() -> cel.Environment:
    return cel.Environment()


class Known:
    """What explanations of one allocator have found out: pools that many nodes see are looked at once.

    Attributes:
        facts: What made an expression false, by device content and expression.
        reports: The device reports of a pool, by all that they depend on.
    """

    __slots__ = ("facts", "reports")

    def __init__(self) -> None:
        self.facts: dict[tuple[DeviceContent, str], tuple[Fact, ...]] = {}
        self.reports: dict[Hashable, tuple[DeviceReport, ...]] = {}

    def trim(self) -> None:
        """Start anew when there is too much."""
        if len(self.facts) > _MAX_KNOWN:
            self.facts.clear()
        if len(self.reports) > _MAX_KNOWN:
            self.reports.clear()


class Examiner:
    """Looks at the devices of one node for one variant of a request.

    Args:
        problem: A plan on the pools of the node.
        variant: One of the plan's variants, without fault.
        state: Who holds what.
        known: What was found out before.
        rules: The positions that the plan's constraints have in the claim.
        skips: The node's kubelet can skip operations.
    """

    def __init__(
        self,
        problem: Problem,
        variant: Variant,
        state: AllocatedState,
        known: Known,
        rules: tuple[int, ...],
        *,
        skips: bool,
    ) -> None:
        self._problem = problem
        self._variant = variant
        self._state = state
        self._known = known
        self._rules = rules
        self._skips = skips
        constraints_ = tuple((each.attribute, rules[each.index]) for each in variant.constraints)
        owner = variant.class_.metadata.name if variant.class_ is not None else ""
        self._key = (variant.needs, owner, constraints_, skips)

    def reports(self) -> Iterator[DeviceReport]:
        """All devices that the node sees, in search order."""
        known = self._known.reports
        for position, pool in enumerate(self._problem.pools):
            if pool.is_incomplete or pool.content.invalid:
                yield from _of_broken(pool)
                continue
            condition = self._problem.condition(position)
            key = (pool.driver, pool.name, condition, pool.use_version, self._key)
            found = known.get(key)
            if found is None:
                found = known[key] = tuple(self._pool(pool, condition))
            yield from found

    def _pool(self, pool: Pool, condition: Condition) -> Iterator[DeviceReport]:
        for index in range(condition.content.local):
            reasons = tuple(self._reasons(pool, condition, index))
            name = condition.content.devices[index].device.name
            yield DeviceReport(pool.driver, pool.name, name, not reasons, reasons)

    def _reasons(self, pool: Pool, condition: Condition, index: int) -> Iterator[Reason]:
        device = condition.content.devices[index]
        yield from self._out_of_reach(pool, condition, index)
        yield from self._unselected(device)
        if condition.exclusive >> index & 1 and not self._variant.admin:
            yield HeldExclusively(holders=self._holders(pool, device))
        for taint in device.blocking:
            if taints.untolerated((taint,), self._variant.needs.tolerations) is not None:
                yield TaintNotTolerated(key=taint.key, value=taint.value or "", effect=taint.effect)
        if self._problem.features.consumable_capacity:
            yield from self._too_small(pool, condition, index)
        if device.draws_counters and not device.blocked and not (device.shareable and index in condition.consumed):
            yield from _short_of_counters(pool, condition, index, self._state)
            if self._problem.features.device_compatibility_groups:
                yield from _incompatible(condition, index)
        yield from self._incomparable(device)

    def _out_of_reach(self, pool: Pool, condition: Condition, index: int) -> Iterator[Reason]:
        """The node, and the gates (rules 4, 6, 13, 21)."""
        device = condition.content.devices[index]
        features = self._problem.features
        skipping = bool(pool.slice_of(index).spec.skip_node_operations)
        if skipping and not (features.optional_node_operations and self._skips):
            needed = "skipNodeOperations" if not features.optional_node_operations else "the node declares"
            yield FeatureOff(number=21, gate=OPTIONAL_NODE_OPERATIONS, needed_for=needed)
        elif index in condition.failing:
            yield NodeSelectorBroken(message=condition.failing[index])
        elif not condition.usable >> index & 1:
            yield NotForNode()
        if device.device.binding_conditions and not features.device_binding_and_status:
            yield FeatureOff(number=6, gate="DRADeviceBindingConditions", needed_for="bindingConditions")
        if device.blocked:
            yield FeatureOff(number=13, gate="DRAPartitionableDevices", needed_for="consumesCounters")

    def _unselected(self, device: DeviceContent) -> Iterator[Reason]:
        found = self._variant.needs.selectors.why_not(device)
        if found is None:
            return
        if not isinstance(found, SelectorFalse):
            yield found
            return
        class_ = self._variant.class_
        yield SelectorUnmet(
            source=found.source,
            index=found.index,
            expression=found.expression,
            owner=class_.metadata.name if class_ is not None and found.source == selectors.CLASS else "",
            facts=self._why(device, found.expression),
        )

    def _why(self, device: DeviceContent, expression: str) -> tuple[Fact, ...]:
        key = (device, expression)
        facts = self._known.facts.get(key)
        if facts is None:
            facts = self._known.facts[key] = why_false(_environment(), expression, device.view)
        return facts

    def _too_small(self, pool: Pool, condition: Condition, index: int) -> Iterator[Reason]:
        device = condition.content.devices[index]
        requests = self._variant.needs.capacity
        if device.plain and requests is None:
            return
        found = device.consumption(requests, fractional=self._problem.features.fractional_capacity_range)
        if not isinstance(found, capacity.Consumption):
            yield found
            return
        consumed = condition.consumed.get(index, {})
        for name, amount, value in zip(found.names, found.amounts, found.values, strict=True):
            left = value - consumed.get(name, 0)
            if amount > left:
                holders = self._holders(pool, device) if amount <= value else _NONE
                yield CapacityShort(name=name, need=amount, have=left if amount <= value else value, holders=holders)

    def _incomparable(self, device: DeviceContent) -> Iterator[Reason]:
        """Attributes that the request's constraints need (rule 16)."""
        if self._variant.needs.selectors.derived and self._variant.needs.selectors.outcome(device) is not True:
            return
        for constraint in self._variant.constraints:
            if self._problem.value(constraint, self._variant, device):
                continue
            missing = constraints.lookup(device.device, device.driver, constraint) is None
            kind = AttributeMissing if missing else AttributeTypeUnknown
            yield kind(constraint=self._rules[constraint.index], attribute=constraint.attribute)

    def _holders(self, pool: Pool, device: DeviceContent) -> tuple[str, ...]:
        use = self._state.pools.get((pool.driver, pool.name))
        return use.holders(device.device.name) if use is not None else _NONE


def _of_broken(pool: Pool) -> Iterator[DeviceReport]:
    """Devices of a pool with a fault: nothing else is known about them."""
    assert pool.fault is not None
    for each in pool.slices:
        for device in each.spec.devices:
            yield DeviceReport(pool.driver, pool.name, device.name, False, (pool.fault,))


def _short_of_counters(pool: Pool, condition: Condition, index: int, state: AllocatedState) -> Iterator[Reason]:
    """Counters that do not suffice; one that is overdrawn blocks all devices that draw any (spec 1.18 X2)."""
    content, supply = condition.content, condition.supply
    draws = dict(content.draws[index])
    for counter, left in enumerate(supply):
        need = draws.get(counter, 0)
        if left < need or left < 0:
            counter_set, name = content.counters[counter]
            holders = _drawing_holders(pool, condition, counter, state)
            yield CountersShort(
                counter_set=counter_set,
                counter=name,
                need=need,
                have=left,
                holders=tuple(dict.fromkeys(holders.values())),
            )


def _drawing_holders(pool: Pool, condition: Condition, counter: int, state: AllocatedState) -> dict[str, str]:
    """The allocated devices of a pool that draw from a counter, with a claim that holds each."""
    use = state.pools.get((pool.driver, pool.name))
    found: dict[str, str] = {}
    for index in counters.bits(condition.allocated):
        if any(drawn == counter and amount for drawn, amount in condition.content.draws[index]):
            name = condition.content.devices[index].device.name
            holders = use.holders(name) if use is not None else _NONE
            found[name] = holders[0] if holders else ""
    return found


def _incompatible(condition: Condition, index: int) -> Iterator[Reason]:
    for counter_set, groups in condition.content.groups[index]:
        before = condition.groups.get(counter_set)
        fits, _ = compatibility.join(before, groups)
        if not fits:
            others = () if before is None or before is counters.CONFLICT else tuple(sorted(before))
            yield GroupsIncompatible(counter_set=counter_set, groups=tuple(sorted(groups)), others=others)
