"""Skip a device that is equivalent to one that failed in the same place of the search.

Proof. Call two devices equivalent when every variant accepts both, refuses both, or fails on both; when they have the
same values for every constraint; belong to the same All requests; draw the same amounts of the same binding counters
with the same compatibility groups (counters that cannot run out do not matter, see `Overview`); and when both are
dedicated, or both shareable with the same capacities, the same consumption and untouched in this call. Exchanging them
everywhere is then a symmetry of the problem at a state in which both are free.

Let `d` have failed in a place and `e`, behind it, be equivalent and free. Suppose `e` led to an allocation. In it the
rest of the request uses devices behind `e`, hence behind `d`, and `d` only serves later slots, if any. Exchange `d` and
`e`: the request now uses `d` and the same others, in ascending order; later slots use `e` where they used `d`. That is
an allocation below `d`, which the search would have found. The same exchange maps a fatal error below `e` to one below
`d`. So `e` fails too.

One exception: an All request takes its members in order, and whether it fails quietly (a member is in use) or fatally
(a member violates a constraint) depends on which comes first. Members of All requests with constraints are equivalent
to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drakit.allocation.capacity import Consumption

if TYPE_CHECKING:
    from collections.abc import Hashable

    from drakit.allocation.devices import DeviceContent
    from drakit.allocation.search.overview import Overview
    from drakit.allocation.search.state import State

__all__ = ["Interchange", "signature"]


class Interchange:
    """Kinds of devices: equal kinds are equivalent."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._kinds: dict[int, Hashable] = {}
        self._shareable = overview.shareable

    def kind(self, state: State, device: int) -> Hashable:
        """The kind of a device at this state; a shareable device that is in use is of its own kind."""
        if self._shareable >> device & 1 and device in state.taken:
            return device
        found = self._kinds.get(device)
        if found is None:
            found = self._kinds[device] = signature(self._overview, device)
        return found


def signature(overview: Overview, device: int) -> Hashable:
    """All that distinguishes a device from others in this problem."""
    problem = overview.problem
    content = problem.device(device)
    roles = 0
    values: list[int] = []
    for variant in problem.plan.variants:
        number = variant.number
        if variant.constraints and overview.members[number] >> device & 1:
            return device
        role = (
            (overview.possible[number] >> device & 1)
            | (overview.failing[number] >> device & 1) << 1
            | (overview.members[number] >> device & 1) << 2
        )
        roles = roles << 3 | role
        if role:
            values += [problem.value(constraint, variant, content) for constraint in variant.constraints if role & 5]
    return roles, tuple(values), _draws(overview, device), _sharing(overview, device, content)


def _draws(overview: Overview, device: int) -> Hashable:
    problem = overview.problem
    pool, index = problem.place(device)
    content = problem.condition(pool).content
    if not content.drawing >> index & 1 or not content.draws:
        return None
    binding = overview.binding.get(pool, ())
    drawn = tuple(sorted((counter, amount) for counter, amount in content.draws[index] if counter in binding))
    groups = frozenset(content.groups[index]) if problem.features.device_compatibility_groups else None
    return (pool, drawn, groups) if drawn or groups else None


def _sharing(overview: Overview, device: int, content: DeviceContent) -> Hashable:
    if not content.shareable:
        return None
    problem = overview.problem
    pool, index = problem.place(device)
    consumed = problem.condition(pool).consumed.get(index)
    needs: list[Hashable] = []
    for variant in problem.plan.variants:
        found = content.consumption(variant.needs.capacity, fractional=problem.features.fractional_capacity_range)
        if isinstance(found, Consumption):
            needs.append(tuple(sorted(zip(found.names, found.amounts, found.values, strict=True))))
        else:
            needs.append(None)
    return tuple(needs), tuple(sorted(consumed.items())) if consumed is not None else None
