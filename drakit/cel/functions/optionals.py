"""Optional values."""

from __future__ import annotations

from typing import Any, Final

from drakit.cel.errors import EvaluationError
from drakit.cel.values import NONE, Duration, Optional, Timestamp, Uint, is_list, show

__all__ = ["OVERLOADS"]


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Any) -> bool:
    if value is None:
        return True
    if value.__class__ in (bool, int, Uint, float, str, bytes) or is_list(value) or isinstance(value, dict):
        return not value
    if value.__class__ is Duration:
        return bool(value.nanos == 0)
    return value.__class__ is Timestamp and (value.seconds, value.nanos) == (-62135596800, 0)


def _value(optional: Optional) -> Any:
    if optional is NONE:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _last(values: list[Any]) -> Optional:
    return Optional(values[-1]) if values else NONE


def _first(values: list[Any]) -> Optional:
    return Optional(values[0]) if values else NONE


def _unwrap(values: list[Any]) -> list[Any]:
    for value in values:
        if value.__class__ is not Optional:
            raise EvaluationError(f"value {show(value)} is not optional")
    return [value.value for value in values if value is not NONE]


OVERLOADS: Final[dict[str, Any]] = {
    "optional_of": Optional,
    "optional_ofNonZeroValue": _of_non_zero,
    "optional_none": lambda: NONE,
    "optional_value": _value,
    "optional_hasValue": lambda optional: optional is not NONE,
    "list_last": _last,
    "list_first": _first,
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
}
