"""What the search has chosen so far, and the checks that depend on it; every change can be undone exactly.

Upstream forgets to undo counters and narrowed constraint sets in places (spec/allocator.md 1.18 A, B, C, F); here
undoing restores the values from before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit.allocation import compatibility
from drakit.allocation.search.problem import FIRST_ONLY, UNSET, Choice

if TYPE_CHECKING:
    from drakit.allocation.capacity import Consumption
    from drakit.allocation.compatibility import Groups
    from drakit.allocation.devices import DeviceContent
    from drakit.allocation.requests import Variant
    from drakit.allocation.search.problem import Problem

__all__ = ["CONSTRAINT", "REFUSED", "State"]

RECORDED: Final = 1
"""Lowest bit of a distinct constraint's mask: it has a device."""

REFUSED: Final = "refused"
CONSTRAINT: Final = "constraint"
"""Refused, and a constraint is why: fatal for All requests."""

_Undo = tuple[Any, ...]


class State:
    """The partial allocation.

    Attributes:
        used: Mask of devices taken in this call (shareable ones are not marked).
        used_by: The same per claim.
        values: Mask per constraint: what a match constraint still allows, or what a distinct one has seen.
        supply: Counters left, per pool that was touched.
        taken: Amounts taken in this call, per shareable device that was.
        chosen: The choices, in order; `results` counts them per claim.
    """

    __slots__ = ("_groups_on", "chosen", "groups", "problem", "results", "supply", "taken", "used", "used_by", "values")

    def __init__(self, problem: Problem) -> None:
        plan = problem.plan
        self.problem = problem
        self.used = 0
        self.used_by = [0] * len(plan.claims)
        self.values = [0 if constraint.distinct else UNSET for constraint in plan.constraints]
        self.supply: dict[int, list[int]] = {}
        self.groups: dict[tuple[int, str], Groups | None] = {}
        self.taken: dict[int, list[tuple[int, ...]]] = {}
        self.chosen: list[Choice] = []
        self.results = [0] * len(plan.claims)
        self._groups_on = problem.features.device_compatibility_groups

    def take(self, variant: Variant, device: int) -> str | _Undo:
        """Choose a ready device for a variant.

        Returns:
            What `undo` needs, or `REFUSED` or `CONSTRAINT` with nothing changed.
        """
        problem = self.problem
        pool, index = problem.place(device)
        condition = problem.condition(pool)
        content = condition.content.devices[index]
        bit = 1 << device
        if not content.shareable and bit & (self.used_by[variant.claim] if variant.admin else self.used):
            return REFUSED
        drawn: Any = None
        if content.draws_counters and not (content.shareable and (device in self.taken or index in condition.consumed)):
            drawn = self._draw(pool, index)
            if drawn is None:
                return REFUSED
        narrowed: list[tuple[int, int]] | None = None
        if variant.constraints:
            narrowed = self._constrain(variant, content)
            if narrowed is None:
                self._give_back(pool, index, drawn)
                return CONSTRAINT
        consumption = None
        if content.shareable:
            consumption = self._consume(variant, device, content, condition.consumed.get(index))
            if consumption is None:
                self._restore(narrowed)
                self._give_back(pool, index, drawn)
                return REFUSED
            self.taken.setdefault(device, []).append(consumption.amounts)
            bit = 0
        before = self.used, self.used_by[variant.claim]
        self.used |= bit
        self.used_by[variant.claim] |= bit
        self.results[variant.claim] += 1
        self.chosen.append(Choice(variant, device, consumption))
        return variant, device, pool, index, drawn, narrowed, before

    def undo(self, undo: _Undo) -> None:
        """Take back the last choice."""
        variant, device, pool, index, drawn, narrowed, before = undo
        choice = self.chosen.pop()
        self.results[variant.claim] -= 1
        self.used, self.used_by[variant.claim] = before
        if choice.consumption is not None:
            shares = self.taken[device]
            shares.pop()
            if not shares:
                del self.taken[device]
        self._restore(narrowed)
        self._give_back(pool, index, drawn)

    def _consume(
        self, variant: Variant, device: int, content: DeviceContent, consumed: dict[str, int] | None
    ) -> Consumption | None:
        """What the variant takes of a shareable device, None when too little is left."""
        needed = self.problem.consumption(variant, content)
        shares = self.taken.get(device)
        if shares or consumed:
            for position, name in enumerate(needed.names):
                total = needed.amounts[position] + (consumed or {}).get(name, 0)
                for share in shares or ():
                    total += share[position]
                if total > needed.values[position]:
                    return None
        return needed

    def _draw(self, pool: int, index: int) -> list[tuple[str, Groups | None]] | None:
        """Draw a device's counters; None when too little is left or groups do not go together."""
        condition = self.problem.condition(pool)
        content = condition.content
        supply = self.supply.get(pool)
        if supply is None:
            supply = self.supply[pool] = list(condition.supply)
        if condition.overdrawn:
            return None
        draws = content.draws[index]
        for counter, amount in draws:
            if supply[counter] < amount:
                return None
        joined: list[tuple[str, Groups | None]] = []
        if self._groups_on:
            for counter_set, groups in content.groups[index]:
                before = self.groups.get((pool, counter_set), condition.groups.get(counter_set))
                fits, possible = compatibility.join(before, groups)
                if not fits:
                    self._leave(pool, joined)
                    return None
                joined.append((counter_set, before))
                self.groups[pool, counter_set] = possible
        for counter, amount in draws:
            supply[counter] -= amount
        return joined

    def _give_back(self, pool: int, index: int, drawn: list[tuple[str, Groups | None]] | None) -> None:
        if drawn is None:
            return
        supply = self.supply[pool]
        for counter, amount in self.problem.condition(pool).content.draws[index]:
            supply[counter] += amount
        self._leave(pool, drawn)

    def _leave(self, pool: int, joined: list[tuple[str, Groups | None]]) -> None:
        for counter_set, before in reversed(joined):
            self.groups[pool, counter_set] = before

    def _constrain(self, variant: Variant, content: DeviceContent) -> list[tuple[int, int]] | None:
        """Add a device to all constraints of the variant; None, and nothing changed, when one is violated."""
        narrowed: list[tuple[int, int]] = []
        values = self.values
        for constraint in variant.constraints:
            number = constraint.number
            before = values[number]
            mask = self.problem.value(constraint, variant, content)
            after = _distinguish(before, mask) if constraint.distinct else _match(before, mask)
            if after is None:
                self._restore(narrowed)
                return None
            narrowed.append((number, before))
            values[number] = after
        return narrowed

    def _restore(self, narrowed: list[tuple[int, int]] | None) -> None:
        for number, before in reversed(narrowed or ()):
            self.values[number] = before


def _match(before: int, mask: int) -> int | None:
    """Intersect; an incomparable value may only be the first, and then nothing else goes with it."""
    if mask == FIRST_ONLY:
        return 0 if before == UNSET else None
    after = mask if before == UNSET else before & mask
    return after or None


def _distinguish(before: int, mask: int) -> int | None:
    """Unite what must stay disjoint; an incomparable value must be the first, and clashes with nothing."""
    if mask == FIRST_ONLY:
        return None if before else RECORDED
    mask <<= 1
    return None if not mask or before & mask else before | mask | RECORDED
