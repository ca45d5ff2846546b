"""Shared counters of partitionable devices: what the allocated devices leave (spec/allocator.md 1.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drakit.allocation import compatibility

if TYPE_CHECKING:
    from drakit.allocation.compatibility import Groups
    from drakit.allocation.contents import PoolContent

__all__ = ["CONFLICT", "bits", "remaining_groups", "remaining_supply"]

CONFLICT: Final[Groups] = frozenset({"\0"})
"""Groups of a counter set whose allocated devices do not go together: nothing goes with them either."""


def bits(mask: int) -> list[int]:
    """The indices of the bits that are set, in ascending order."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def remaining_supply(content: PoolContent, allocated: int) -> list[int]:
    """What is left of each counter; negative when allocated devices draw more than there is.

    Args:
        content: The pool.
        allocated: Mask of all its devices (remote ones too) that are allocated, wholly or in part.
    """
    left = list(content.supply)
    if not left:
        return left
    for index in bits(allocated):
        for counter, amount in content.draws[index]:
            left[counter] -= amount
    return left


def remaining_groups(content: PoolContent, allocated: int) -> dict[str, Groups]:
    """Groups that are still possible per counter set that an allocated device draws from."""
    possible: dict[str, Groups] = {}
    for index in bits(allocated) if content.groups else ():
        for counter_set, groups in content.groups[index]:
            fits, joined = compatibility.join(possible.get(counter_set), groups)
            possible[counter_set] = joined if fits else CONFLICT
    return possible
