"""Everything about a problem that the prunings need, with all selectors evaluated.

An error on a device is not raised here. Prunings that look ahead could hide an error that the plain search would have
met; so each part of the search tells from which slot on it cannot meet any (`safe_from`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drakit.allocation.counters import bits

if TYPE_CHECKING:
    from drakit.allocation.pools import Condition
    from drakit.allocation.requests import Variant
    from drakit.allocation.search.problem import Problem

__all__ = ["Overview"]


class Overview:
    """Masks over all devices.

    Attributes:
        possible: Per variant, the devices that could serve it in some allocation.
        failing: Per variant, the devices on which it would fail fatally.
        members: Per variant, the devices of an All request, 0 for others.
        shareable: Devices that can be chosen several times.
        safe_from: First slot from which on no fatal error can be met.
        binding: Per pool, the counters that can run out at all.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        plan = problem.plan
        self.shareable = 0
        drawable = 0
        self._usable = [(pool, offset) for pool, offset in enumerate(problem.offsets) if _usable(problem, pool)]
        for pool, offset in self._usable:
            condition = problem.condition(pool)
            self.shareable |= condition.content.shareable << offset
            drawable |= _drawable(condition) << offset
        self.possible: list[int] = []
        self.failing: list[int] = []
        self.members: list[int] = []
        for variant in plan.variants:
            possible, failing = self._masks(variant)
            members = 0
            for member in problem.members.get(variant.number, ()):
                members |= 1 << member
            possible &= drawable
            self.possible.append(possible & members if variant.every else possible)
            self.failing.append(0 if variant.every else failing)
            self.members.append(members)
        self.safe_from = 0
        for slot in plan.slots:
            if any(self._may_raise(variant) for variant in slot.variants):
                self.safe_from = slot.number + 1
        self.binding = self._binding_counters()

    def count(self, variant: Variant) -> int:
        """How many devices a variant needs."""
        return self.problem.count(variant)

    def touched(self, variant: Variant) -> int:
        """All devices that the variant could look at with consequences."""
        number = variant.number
        return self.possible[number] | self.failing[number] | self.members[number]

    def _masks(self, variant: Variant) -> tuple[int, int]:
        possible = failing = 0
        for pool, offset in self._usable:
            ready, faulty = self.problem.ready(variant, pool)
            possible |= ready << offset
            failing |= faulty << offset
        return possible, failing

    def _may_raise(self, variant: Variant) -> bool:
        return bool(self.failing[variant.number]) or (variant.every and bool(variant.constraints))

    def _binding_counters(self) -> dict[int, tuple[int, ...]]:
        """Counters that would run out if every device that may be chosen were chosen.

        The others never refuse a device: each device draws at most once per call (several times with admin access, once
        per claim, which is counted), so they are left out of states and signatures.
        """
        problem = self.problem
        times = len(problem.plan.claims) + 1 if problem.plan.has_admin else 1
        anywhere = 0
        for number in range(len(self.possible)):
            anywhere |= self.possible[number]
        binding: dict[int, tuple[int, ...]] = {}
        for pool, offset in self._usable:
            condition = problem.condition(pool)
            content = condition.content
            drawing = content.drawing & anywhere >> offset
            if not drawing or not content.supply:
                continue
            demand = [0] * len(content.supply)
            for index in bits(drawing):
                for counter, amount in content.draws[index]:
                    demand[counter] += amount * times
            scarce = tuple(counter for counter, left in enumerate(condition.supply) if demand[counter] > left)
            if scarce:
                binding[pool] = scarce
        return binding


def _usable(problem: Problem, pool: int) -> bool:
    return bool(problem.pools[pool].size) and not problem.condition(pool).content.invalid


def _drawable(condition: Condition) -> int:
    """Devices of a pool whose counters are not short from the start."""
    content = condition.content
    mask = content.everything
    for index in bits(content.drawing) if content.supply else ():
        if content.devices[index].shareable and index in condition.consumed:
            continue
        supply = condition.supply
        if condition.overdrawn or any(supply[counter] < amount for counter, amount in content.draws[index]):
            mask &= ~(1 << index)
    return mask
