"""Selecting fields, keys and indices: what upstream's qualifiers do to a value."""

from __future__ import annotations

from typing import Any, Final

from drakit.cel.errors import EvaluationError
from drakit.cel.values import MAX_INT, MISSING, Uint, find, go_name, is_list, show, type_name

__all__ = ["index", "present", "qualify"]

_KEYS: Final = frozenset({str, int, Uint, bool, float})


def qualify(value: Any, key: Any) -> Any:
    """`value[key]` or `value.key`.

    Raises:
        EvaluationError: There is no such key or index.
    """
    found = present(value, key)
    if found is MISSING:
        raise EvaluationError(f"{'index out of bounds' if is_list(value) else 'no such key'}: {show(key)}")
    return found


def present(value: Any, key: Any) -> Any:
    """`value[key]`, or MISSING when it is absent or the value has no keys.

    Raises:
        EvaluationError: The key can be no key of anything, or no index of the list.
    """
    if key.__class__ not in _KEYS:
        raise EvaluationError(f"invalid qualifier type: {go_name(key)}")
    if isinstance(value, dict):
        return find(value, key)
    if is_list(value):
        position = index(key)
        return value[position] if 0 <= position < len(value) else MISSING
    return MISSING


def index(key: Any) -> int:
    """A list index from a number of any kind."""
    kind = key.__class__
    if kind is int:
        return int(key)
    if kind is Uint and key <= MAX_INT:
        return int(key)
    if kind is float and abs(key) < 2.0**63 and key == int(key):
        return int(key)
    if kind is Uint or kind is float:
        raise EvaluationError(f"unsupported index value {show(key)} in list")
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
