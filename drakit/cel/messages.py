"""Messages: the wrappers of protobuf's well-known types, which are their value at run time."""

from __future__ import annotations

from typing import Any, Final

from drakit.cel.errors import EvaluationError
from drakit.cel.values import NONE, Optional, Uint, show, type_name

__all__ = ["make"]

_ZEROS: Final[dict[str, Any]] = {
    "Bool": False,
    "Bytes": b"",
    "Double": 0.0,
    "Float": 0.0,
    "Int32": 0,
    "Int64": 0,
    "String": "",
    "UInt32": Uint(0),
    "UInt64": Uint(0),
}
_RANGES: Final = {
    "Int32": (-(2**31), 2**31 - 1, "integer overflow"),
    "UInt32": (0, 2**32 - 1, "unsigned integer overflow"),
}


def make(name: str, fields: list[tuple[str, Any, bool]]) -> Any:
    """The value of `name{field: value}`; optional fields that are none stay unset.

    Raises:
        EvaluationError: There is no such message at run time, or the value does not fit.
    """
    kind = name.removeprefix("google.protobuf.").removesuffix("Value")
    if kind not in _ZEROS:
        raise EvaluationError(f"unknown type '{name}'")
    value = _ZEROS[kind]
    for field, given, optional in fields:
        if optional:
            if given.__class__ is not Optional:
                raise EvaluationError(
                    f"cannot initialize optional entry '{field}' from non-optional value {show(given)}"
                )
            if given is NONE:
                continue
            given = given.value
        if given.__class__ is not value.__class__ and given is not None:
            raise EvaluationError(f"type conversion error from '{type_name(given)}' to '{type_name(value)}'")
        value = _ZEROS[kind] if given is None else given
    low, high, message = _RANGES.get(kind, (0, 0, ""))
    if message and not low <= value <= high:
        raise EvaluationError(message)
    return value
