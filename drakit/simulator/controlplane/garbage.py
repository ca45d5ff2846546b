"""What the garbage collector does: objects whose owners are all gone are deleted."""

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["is_garbage"]


def is_garbage(obj: Mapping[str, Any], living: Mapping[str, Collection[str]]) -> bool:
    """Whether all owners of `obj` are gone.

    Args:
        obj: any object.
        living: UIDs of living objects by kind. Owners of other kinds count as living.
    """
    owners = obj["metadata"].get("ownerReferences") or ()
    if not owners or obj["metadata"].get("deletionTimestamp"):
        return False
    return all(owner["kind"] in living and owner["uid"] not in living[owner["kind"]] for owner in owners)
