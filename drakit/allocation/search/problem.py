"""One plan on the pools of one node: which devices can serve what, computed when the search asks.

Devices of all pools are numbered in search order; `1 << number` is a device's bit. Errors that the search would meet on
a device are values until it gets there.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any, NamedTuple

from drakit.allocation import constraints
from drakit.allocation.capacity import Consumption

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from drakit.allocation.contents import Needs
    from drakit.allocation.devices import DeviceContent
    from drakit.allocation.features import Features
    from drakit.allocation.pools import Condition, Pool
    from drakit.allocation.reasons import SelectorFailed
    from drakit.allocation.requests import Constraint, Plan, Variant

__all__ = ["FIRST_ONLY", "UNSET", "Choice", "Failure", "Problem"]

UNSET = -1
"""Value mask of a match constraint without devices: everything is still possible."""

FIRST_ONLY = -1
"""Stands for `constraints.FIRST_ONLY` among value masks."""


class Choice(NamedTuple):
    """One device chosen for one variant; `consumption` only for shareable devices."""

    variant: Variant
    device: int
    consumption: Consumption | None


class Failure(NamedTuple):
    """A fatal error that the search met, with numbers in place of names, so that nodes can share it.

    `selector` is set for selector errors, `node_selector` is the message of a broken node selector; with neither, a
    device of an All request violates a constraint.
    """

    variant: Variant
    device: int
    selector: SelectorFailed | None = None
    node_selector: str = ""


class Problem:
    """A plan on the pools of a node.

    Attributes:
        plan: What to allocate.
        pools: The pools, in search order; those with a fault hold no candidates.
        offsets: Number of the first device of each pool.
        members: Devices of each All variant, by variant number.
    """

    def __init__(
        self,
        plan: Plan,
        pools: Sequence[Pool],
        members: dict[int, tuple[int, ...]],
        features: Features,
    ) -> None:
        self.plan = plan
        self.pools = pools
        self.members = members
        self.features = features
        self.offsets: list[int] = []
        offset = 0
        for pool in pools:
            self.offsets.append(offset)
            offset += pool.size
        self._conditions: list[Condition | None] = [None] * len(pools)
        self._lists = features.list_type_attributes
        self._fractional = features.fractional_capacity_range
        self._values: dict[tuple[str, bool, Needs | None, DeviceContent], int] = {}
        self._bits: dict[tuple[str, bool], dict[tuple[str, Any], int]] = {
            (constraint.attribute, constraint.distinct): {} for constraint in plan.constraints
        }
        self._masks: dict[tuple[int, int, int], list[tuple[int, int]]] = {}

    def condition(self, pool: int) -> Condition:
        """The condition of a pool; looked at late, since searches seldom reach all pools."""
        found = self._conditions[pool]
        if found is None:
            found = self._conditions[pool] = self.pools[pool].condition
        return found

    def count(self, variant: Variant) -> int:
        """How many devices the variant needs."""
        return len(self.members[variant.number]) if variant.every else variant.count

    def place(self, device: int) -> tuple[int, int]:
        """Pool position and index in the pool of a device."""
        offsets = self.offsets
        if len(offsets) == 1:
            return 0, device
        pool = bisect.bisect_right(offsets, device) - 1
        return pool, device - offsets[pool]

    def device(self, device: int) -> DeviceContent:
        """The content of a device."""
        pool, index = self.place(device)
        return self.condition(pool).content.devices[index]

    def ready(self, variant: Variant, pool: int) -> tuple[int, int]:
        """Devices of one pool (by index in it) that could serve a variant, and those on which it would fail fatally.

        Left out are devices that are held, not selected, not reached, tainted, blocked by a gate, or too small. Which
        devices an error hides from is upstream's: held devices are never evaluated.
        """
        condition = self._conditions[pool]
        if condition is None:
            if not self.pools[pool].size:
                return 0, 0
            condition = self.condition(pool)
        if condition.content.invalid:
            return 0, 0
        found = condition.ready.get(variant.needs)
        if found is None:
            found = condition.ready[variant.needs] = self._ready(variant.needs, condition)
        return found

    def is_ready(self, variant: Variant, device: int) -> bool:
        """Whether one device could serve a variant."""
        pool, index = self.place(device)
        return bool(self.ready(variant, pool)[0] >> index & 1)

    def _ready(self, needs: Needs, condition: Condition) -> tuple[int, int]:
        content = condition.content
        mask, failures = content.selected(needs.selectors)
        failing = 0
        for index in failures:
            failing |= 1 << index
        for index in condition.failing:
            failing |= mask & 1 << index
        if not needs.admin:
            free = ~condition.exclusive
            mask &= free
            failing &= free
        if not mask:
            return 0, failing
        mask &= condition.usable & content.unblocked & ~failing
        if needs.tolerations or content.tainted:
            mask &= content.tolerated(needs.tolerations)
        if self.features.consumable_capacity:
            mask &= content.capable(needs.capacity, fractional=self._fractional)
            for index, consumed in condition.consumed.items():
                if mask >> index & 1 and not self._room(content.devices[index], needs, consumed):
                    mask &= ~(1 << index)
        return mask, failing

    def has_room(self, variant: Variant, pool: int, index: int) -> bool:
        """Whether a device has the capacity that a variant asks for, before anything is taken in this call."""
        condition = self.condition(pool)
        if not condition.content.capable(variant.needs.capacity, fractional=self._fractional) >> index & 1:
            return False
        consumed = condition.consumed.get(index)
        return not consumed or self._room(condition.content.devices[index], variant.needs, consumed)

    def _room(self, device: DeviceContent, needs: Needs, consumed: dict[str, int]) -> bool:
        needed = device.consumption(needs.capacity, fractional=self._fractional)
        return isinstance(needed, Consumption) and all(
            consumed.get(name, 0) + amount <= value
            for name, amount, value in zip(needed.names, needed.amounts, needed.values, strict=True)
        )

    def candidates(
        self, variant: Variant, start: int, values: Sequence[int] | None = None
    ) -> Iterator[tuple[int, bool]]:
        """Devices from `start` on that could serve the variant, in order; True for one on which it fails.

        With the values of the constraints at this place, devices that a match constraint would refuse anyway are left
        out.
        """
        narrowed = [
            (constraint, values[constraint.number])
            for constraint in (variant.constraints if values is not None else ())
            if values is not None and not constraint.distinct and values[constraint.number] != UNSET
        ]
        offsets = self.offsets
        first = bisect.bisect_right(offsets, start) - 1 if start else 0
        for pool in range(first, len(offsets)):
            if narrowed and self._conditions[pool] is None and self._is_irrelevant(pool, variant, narrowed):
                continue
            offset = offsets[pool]
            mask, failing = self.ready(variant, pool)
            for constraint, value in narrowed:
                if mask:
                    mask &= self._having(pool, constraint, variant, value)
            rest = mask | failing
            if start > offset:
                rest &= -1 << (start - offset)
            while rest:
                low = rest & -rest
                rest ^= low
                yield offset + low.bit_length() - 1, bool(failing & low)

    def _having(self, pool: int, constraint: Constraint, variant: Variant, values: int) -> int:
        """Ready devices of a pool with any of the values."""
        key = (pool, constraint.number, variant.number)
        masks = self._masks.get(key)
        if masks is None:
            masks = self._masks[key] = []
            devices = self.condition(pool).content.devices
            rest = self.ready(variant, pool)[0]
            while rest:
                low = rest & -rest
                rest ^= low
                masks.append((low, self.value(constraint, variant, devices[low.bit_length() - 1])))
        mask = 0
        for bit, value in masks:
            if value > 0 and value & values:
                mask |= bit
        return mask

    def _is_irrelevant(self, pool: int, variant: Variant, narrowed: Sequence[tuple[Constraint, int]]) -> bool:
        """Whether a pool that nobody has looked at can be passed by.

        So it is when no device could fail on the selectors, because they read nothing but the driver, and every device
        has other values than a match constraint wants.
        """
        skipped = self.pools[pool]
        if not variant.needs.selectors.cannot_fail(skipped.driver) or skipped.has_odd_attributes:
            return False
        for constraint, values in narrowed:
            bits = self._bits[constraint.attribute, False]
            if not any(
                constraints.lookup_values(device, each.spec.driver, constraint, bits, lists=self._lists) & values
                for each in skipped.slices
                for device in each.spec.devices
            ):
                return True
        return False

    def failure(self, variant: Variant, device: int) -> Failure:
        """The error of a failing device."""
        pool, index = self.place(device)
        condition = self.condition(pool)
        _, failures = condition.content.selected(variant.needs.selectors)
        if index in failures:
            return Failure(variant, device, selector=failures[index])
        return Failure(variant, device, node_selector=condition.failing[index])

    def consumption(self, variant: Variant, device: DeviceContent) -> Consumption:
        """What the variant takes of a ready device."""
        found = device.consumption(variant.needs.capacity, fractional=self._fractional)
        assert isinstance(found, Consumption)
        return found

    def value(self, constraint: Constraint, variant: Variant, device: DeviceContent) -> int:
        """The device's values for a constraint as a mask over this problem's values.

        0 when it has none, `FIRST_ONLY` when they cannot be compared.
        """
        needs = variant.needs if variant.needs.selectors.derived else None
        key = (constraint.attribute, constraint.distinct, needs, device)
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = self._value(constraint, variant, device)
        return found

    def _value(self, constraint: Constraint, variant: Variant, device: DeviceContent) -> int:
        attribute = None
        if variant.needs.selectors.derived:
            attribute = variant.needs.selectors.derived_values(device).get(constraint.attribute)
        if attribute is None:
            attribute = constraints.lookup(device.device, device.driver, constraint)
        if attribute is None:
            return 0
        values = constraints.attribute_values(attribute, lists=self._lists)
        if values is constraints.FIRST_ONLY or (constraint.distinct and not values):
            return FIRST_ONLY
        bits = self._bits[constraint.attribute, constraint.distinct]
        mask = 0
        for value in values:
            bit = bits.get(value)
            if bit is None:
                bit = bits[value] = 1 << len(bits)
            mask |= bit
        return mask
