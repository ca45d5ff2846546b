"""Reports as JSON values: camelCase names, reasons and edits with the name of their type."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from drakit.allocation.explain.report import (
    DropConstraint,
    DropSelector,
    FreeDevice,
    LowerCapacity,
    LowerCount,
    Tolerate,
)
from drakit.allocation.reasons import FeatureOff, Reason, SelectorFalse
from drakit.allocation.selectors import CLASS

__all__ = ["plain"]

_NAMED = (Reason, FreeDevice, Tolerate, LowerCount, LowerCapacity, DropConstraint, DropSelector)


def plain(value: Any) -> Any:
    """A report, or any part of one, as dicts, lists and scalars."""
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if not isinstance(value, msgspec.Struct):
        return value
    found: dict[str, Any] = {"type": type(value).__name__} if isinstance(value, _NAMED) else {}
    if isinstance(value, Reason):
        found["rule"] = _rule(value)
    for name, camel in _fields(type(value)):
        found[camel] = plain(getattr(value, name))
    return found


def _rule(reason: Reason) -> int:
    """Its number in spec/allocator.md 1.17; 0 for what only combinations know."""
    if isinstance(reason, FeatureOff):
        return reason.number
    if isinstance(reason, SelectorFalse):
        return 7 if reason.source == CLASS else 8
    return reason.rule


@functools.cache
def _fields(type_: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    skipped = {"number"} if type_ is FeatureOff else set()
    return tuple((name, _camel(name)) for name in type_.__struct_fields__ if name not in skipped)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
