"""Compatibility groups (KEP-5963): devices in use on one counter set must have a group in common.

A device without groups only goes with devices without groups. The groups of one set that are still possible are a
frozenset; `None` stands for a set that nobody draws from yet, the empty frozenset for devices without groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from drakit.api import resource

__all__ = ["Groups", "declares_groups", "join"]

Groups: TypeAlias = frozenset[str]


def declares_groups(device: resource.Device) -> bool:
    """Whether any entry has a non-empty list; null and empty lists do not count."""
    return any(entry.compatibility_groups for entry in device.consumes_counters)


def join(possible: Groups | None, groups: Groups) -> tuple[bool, Groups]:
    """Let one more device draw from the set.

    Returns:
        Whether it goes with the devices so far, and the groups that are possible from then on.
    """
    if possible is None:
        return True, groups
    if not possible or not groups:
        return not possible and not groups, possible
    common = possible & groups
    return bool(common), common
