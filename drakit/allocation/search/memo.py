"""Give up in a state that is equivalent to one that failed before.

Proof. What lies below a place in the search is a function of: the variant, how many devices it has and where it goes
on; of the used devices, those that the rest of the search can look at; the values of the constraints that the rest is
bound to; what is left of the binding counters, the possible groups, and what was taken of shareable devices; and how
many results the claim has (for the limit). The key holds exactly these. Two refinements make more states equal:

- Equivalent devices (see `interchange`) may be exchanged, so only their number counts. While a request is under way,
  position matters too: devices from `start` on are kept one by one, those before it are counted.
- Devices that no variant of this or a later slot can look at are left out.

So a place with the key of a failed one fails as well, and would have met the same errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drakit.allocation.counters import bits
from drakit.allocation.search.interchange import signature

if TYPE_CHECKING:
    from collections.abc import Hashable

    from drakit.allocation.requests import Variant
    from drakit.allocation.search.overview import Overview
    from drakit.allocation.search.state import State

__all__ = ["Memo"]

_MAX_KEYS = 500_000
_MAX_COUNTED = 2048


class Memo:
    """Keys of failed places."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._failed: set[Hashable] = set()
        plan = overview.problem.plan
        self._later = [0] * (len(plan.slots) + 1)
        self._bound: list[tuple[int, ...]] = []
        self._limited = any(slot.prioritized for slot in plan.slots)
        for slot in reversed(plan.slots):
            mask = 0
            for variant in slot.variants:
                mask |= overview.touched(variant)
            self._later[slot.number] = self._later[slot.number + 1] | mask
        for slot in plan.slots:
            rest = plan.slots[slot.number :]
            numbers = {each.number for later in rest for variant in later.variants for each in variant.constraints}
            self._bound.append(tuple(sorted(numbers)))
        self._families: list[int] | None = None
        self._counted = 0

    def has_failed(self, key: Hashable) -> bool:
        """Whether a place with this key failed."""
        return key in self._failed

    def fail(self, key: Hashable) -> None:
        """Remember a failed place."""
        if len(self._failed) < _MAX_KEYS:
            self._failed.add(key)

    def key(self, state: State, variant: Variant, picked: int, start: int) -> Hashable:
        """What the subtree below this place depends on."""
        families = self._families
        if families is None:
            families = self._families = self._find_families()
            for family in families:
                self._counted |= family
        overview = self._overview
        ahead = -1 << start
        later = self._later[variant.slot + 1]
        relevant = later | (overview.touched(variant) & ahead)
        used = state.used & relevant
        behind = ~ahead if picked else -1
        counted = used & self._counted & behind
        counts = tuple([(counted & family).bit_count() for family in families]) if counted else None
        key: tuple[Hashable, ...] = (
            variant.number,
            picked,
            start,
            used & ~counted,
            counts,
            tuple([state.values[number] for number in self._bound[variant.slot]]),
        )
        if state.supply and overview.binding:
            key = (*key, self._supply(state))
        if state.groups:
            key = (*key, frozenset(state.groups.items()))
        if state.taken:
            key = (*key, frozenset([(device, tuple(sorted(shares))) for device, shares in state.taken.items()]))
        if overview.problem.plan.has_admin:
            key = (*key, state.used_by[variant.claim] & relevant)
        if self._limited:
            key = (*key, state.results[variant.claim])
        return key

    def _supply(self, state: State) -> Hashable:
        condition = self._overview.problem.condition
        changed = []
        for pool, left in state.supply.items():
            binding = self._overview.binding.get(pool)
            if binding is not None:
                part = tuple([left[counter] for counter in binding])
                if part != tuple([condition(pool).supply[counter] for counter in binding]):
                    changed.append((pool, part))
        return frozenset(changed)

    def _find_families(self) -> list[int]:
        """Masks of equivalent devices, where there are at least two; shareable ones are never used up."""
        everything = self._later[0] & ~self._overview.shareable
        if everything.bit_count() > _MAX_COUNTED:
            return []
        families: dict[Hashable, int] = {}
        for device in bits(everything):
            kind = signature(self._overview, device)
            families[kind] = families.get(kind, 0) | 1 << device
        return [family for family in families.values() if family & (family - 1)]
