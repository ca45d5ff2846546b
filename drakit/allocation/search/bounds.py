"""Give up when the devices that are left cannot suffice.

Proof. Let a place in the search need `n` more devices for its variant, with later slots behind it. Choices only ever
add to `used`, narrow the values of match constraints, and extend those of distinct ones. So in every completion:

1. The rest of the variant comes from devices that are possible for it, free now, behind `start`, and whose values go
   with the constraints as they are now. Fewer than `n` of them: no completion.
2. The same holds for each later slot with at least one of its variants, without the start. No variant with enough:
   none.
3. Devices that are not shareable serve one slot only. Let `M` be a set of devices without shareable ones. The slots all
   of whose devices lie in `M` need distinct devices of it; more needed than free in `M`: no completion (Hall's
   condition).
4. A value of a match constraint is dead when some slot that is bound to the constraint, whichever variant it takes, has
   fewer devices with this value than it needs, even with nothing used. A device that has only dead values is in no
   complete allocation, so it is not possible for the bound variants.

Nothing is given up before `safe_from`: a subtree that could meet a fatal error must be searched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drakit.allocation.counters import bits
from drakit.allocation.search.problem import FIRST_ONLY, UNSET

if TYPE_CHECKING:
    from drakit.allocation.contents import Needs
    from drakit.allocation.requests import Constraint, Slot, Variant
    from drakit.allocation.search.overview import Overview
    from drakit.allocation.search.state import State

__all__ = ["Bounds"]


class Bounds:
    """Counting bounds over the possible devices of an overview."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._plan = overview.problem.plan
        self._possible = list(overview.possible)
        self._with_values: dict[tuple[int, int, int], int] = {}
        self._values_of: dict[tuple[str, bool, Needs | None, int], dict[int, int]] = {}
        for constraint in self._plan.constraints:
            if not constraint.distinct:
                self._drop_dead_values(constraint)
        self._crowds: dict[int, list[tuple[int, int]]] = {}

    def hopeless(self, state: State, variant: Variant, picked: int, start: int) -> bool:
        """Whether no completion can exist from here."""
        if variant.slot < self._overview.safe_from:
            return False
        used = state.used
        missing = self._overview.count(variant) - picked
        if variant.every:
            own = 0
            rest = self._overview.problem.members[variant.number][picked:]
            taken = state.used_by[variant.claim] if variant.admin else used
            if any(taken >> member & 1 for member in rest):
                return True
        else:
            own = self._free(state, variant, variant.claim) & -1 << start
            if own.bit_count() < missing:
                return True
        for slot in self._plan.slots[variant.slot + 1 :]:
            if not any(self._sufficient(state, each, variant.claim) for each in slot.variants):
                return True
        outside = variant.every or variant.admin
        crowds = self._crowds.get(variant.slot)
        if crowds is None:
            crowds = self._crowds[variant.slot] = self._crowd(self._plan.slots[variant.slot])
        for crowd, needed in crowds:
            demand = needed if outside or own & ~crowd else needed + missing
            if demand > (crowd & ~used).bit_count():
                return True
        return False

    def _sufficient(self, state: State, variant: Variant, claim: int) -> bool:
        overview = self._overview
        count = overview.count(variant)
        if variant.every:
            members = overview.members[variant.number]
            taken = (state.used_by[variant.claim] if variant.claim == claim else 0) if variant.admin else state.used
            return count > 0 and not members & taken and not members & ~self._possible[variant.number]
        return count <= 0 or self._free(state, variant, claim).bit_count() >= count

    def _free(self, state: State, variant: Variant, claim: int) -> int:
        """Devices that could be added for a variant now, as far as use and constraints go."""
        if variant.admin:
            free = self._possible[variant.number] & ~(state.used_by[variant.claim] if variant.claim == claim else 0)
        else:
            free = self._possible[variant.number] & ~state.used
        for constraint in variant.constraints:
            values = state.values[constraint.number]
            if constraint.distinct:
                if values > 1:
                    free &= ~self._having(constraint, variant, values >> 1)
            elif values != UNSET:
                free &= self._having(constraint, variant, values)
        return free

    def _having(self, constraint: Constraint, variant: Variant, values: int) -> int:
        """Possible devices with any of the values."""
        key = (constraint.number, variant.number, values)
        found = self._with_values.get(key)
        if found is None:
            found = 0
            for value, mask in self._by_value(constraint, variant).items():
                if value != FIRST_ONLY and value & values:
                    found |= mask
            self._with_values[key] = found
        return found

    def _by_value(self, constraint: Constraint, variant: Variant) -> dict[int, int]:
        """Possible devices by value: one bit each, or `FIRST_ONLY`."""
        possible = self._possible[variant.number]
        needs = variant.needs if variant.needs.selectors.derived else None
        key = (constraint.attribute, constraint.distinct, needs, possible)
        found = self._values_of.get(key)
        if found is None:
            found = self._values_of[key] = {}
            problem = self._overview.problem
            for device in bits(possible):
                values = problem.value(constraint, variant, problem.device(device))
                for value in (values,) if values == FIRST_ONLY or not values & (values - 1) else _split(values):
                    found[value] = found.get(value, 0) | 1 << device
        return found

    def _drop_dead_values(self, constraint: Constraint) -> None:
        """Point 4 of the proof, for one constraint."""
        bound = [slot for slot in self._plan.slots if any(constraint in each.constraints for each in slot.variants)]
        if not bound or any(variant.every for slot in bound for variant in slot.variants):
            return
        alive: set[int] | None = None
        for slot in bound:
            served = self._served(slot, constraint)
            if served is not None:
                alive = served if alive is None else alive & served
        if alive is None:
            return
        for slot in bound:
            for variant in slot.variants:
                if constraint in variant.constraints:
                    mask = 0
                    for value, having in self._by_value(constraint, variant).items():
                        if value == FIRST_ONLY or value in alive:
                            mask |= having
                    self._possible[variant.number] &= mask

    def _served(self, slot: Slot, constraint: Constraint) -> set[int] | None:
        """Values of which the slot has enough devices; None when it can do without the constraint."""
        served: set[int] = set()
        for variant in slot.variants:
            count = self._overview.count(variant)
            if count <= 0 or constraint not in variant.constraints:
                return None
            for value, mask in self._by_value(constraint, variant).items():
                if value and mask.bit_count() >= count:
                    served.add(value)
        return served

    def _crowd(self, slot: Slot) -> list[tuple[int, int]]:
        """Sets of devices that several slots from this one on compete for, with what the later ones need of them."""
        behind: list[tuple[int, int]] = []
        own = [self._territory(slot)]
        for later in self._plan.slots[slot.number + 1 :]:
            territory = self._territory(later)
            needed = min((max(0, self._overview.count(each)) for each in later.variants), default=0)
            if territory is not None and needed:
                behind.append((territory, needed))
        crowds = {territory for territory, _ in behind} | {territory for territory in own if territory is not None}
        everything = 0
        for territory, _ in behind:
            everything |= territory
        crowds.add(everything)
        if len(crowds) > 1 or behind:
            return [
                (crowd, sum(needed for territory, needed in behind if not territory & ~crowd))
                for crowd in crowds
                if crowd
            ]
        return []

    def _territory(self, slot: Slot) -> int | None:
        """All devices that the slot may take, None when some can be shared or taken by others as well."""
        territory = 0
        for variant in slot.variants:
            if variant.admin:
                return None
            territory |= self._possible[variant.number]
        return None if territory & self._overview.shareable else territory


def _split(values: int) -> list[int]:
    return [1 << position for position in bits(values)]
