"""What an expression may result in: booleans for selectors, attribute values for derived attributes."""

from __future__ import annotations

from typing import Any, Final

from drakit.api.resource import DeviceAttribute
from drakit.cel.errors import CompileError, EvaluationError
from drakit.cel.types import BOOL, DYN, INT, SEMVER, STRING, Type, is_dyn
from drakit.cel.values import MAX_INT, MIN_INT, NONE, Optional, Quantity, Semver, is_list, type_name, untag

__all__ = ["RESULTS", "attribute", "check_type", "convert", "not_bool"]

RESULTS: Final = ("bool", "value", "string", "any")
_SCALARS: Final = (BOOL, STRING, INT, SEMVER)
_SOURCES: Final = {
    "double": "Double",
    "bytes": "Bytes",
    "null_type": "'null_type'",
    "kubernetes.Semver": "'Semver'",
    "kubernetes.Quantity": "'Quantity'",
    "kubernetes.URL": "'URL'",
    "kubernetes.NamedFormat": "'Format'",
    "net.IP": "'IP'",
    "net.CIDR": "'CIDR'",
    "google.protobuf.Duration": "'Duration'",
    "google.protobuf.Timestamp": "'Timestamp'",
}


def check_type(type: Type, result: str, attribute_type: Type | None, *, lists: bool) -> None:
    """Hold the static type against what is asked for.

    Args:
        type: What the checker found.
        result: One of `RESULTS`.
        attribute_type: The type of attributes when the expression is about a device.
        lists: Whether attributes may be lists.

    Raises:
        CompileError: It is of another type.
    """
    if result == "any":
        return
    if attribute_type is None:
        wanted = {"bool": BOOL, "string": STRING}.get(result)
        if wanted is not None and type != wanted:
            raise CompileError(f"must evaluate to {wanted}")
    elif result == "bool":
        if type not in (BOOL, attribute_type):
            raise CompileError(f"must evaluate to {BOOL} or the unknown type, not {type}")
    elif result == "value" and not _is_value(type, attribute_type, lists=lists):
        kinds = "a string, int, bool or semver" + (", or a list of them" if lists else "")
        raise CompileError(f"must evaluate to {kinds}, not {type}")


def _is_value(type: Type, attribute_type: Type, *, lists: bool) -> bool:
    if type in _SCALARS or type == attribute_type or is_dyn(type):
        return True
    return lists and type.kind == "list" and (type.parameters[0] in _SCALARS or type.parameters[0] == DYN)


def convert(value: Any, result: str, *, lists: bool) -> Any:
    """A CEL value as a plain Python value; `lists` is whether attributes may be lists.

    Raises:
        EvaluationError: The value is not of the kind that is asked for.
    """
    if result == "bool":
        if value is True or value is False:
            return value
        raise not_bool(value)
    if result == "string" and value.__class__ is not str:
        raise EvaluationError(f"expression must result in a string, not {type_name(value)}")
    plain = _plain(value)
    if result == "value":
        _check_value(value, lists=lists)
    return plain


def _plain(value: Any) -> Any:
    if is_list(value):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(untag(key)): _plain(each) for key, each in value.items()}
    if value.__class__ in (Semver, Quantity):
        return value.exact
    if value.__class__ is Optional:
        return None if value is NONE else _plain(value.value)
    return value


def _check_value(value: Any, *, lists: bool) -> None:
    kinds = {type_name(each) for each in value} if lists and is_list(value) else {type_name(value)}
    if len(kinds) > 1 or not kinds <= {"string", "int", "bool", "kubernetes.Semver"}:
        raise EvaluationError(f"an attribute cannot have a value of type {type_name(value)}")


def attribute(value: Any) -> DeviceAttribute:
    """The attribute for the result of a derived attribute's expression."""
    values = value if isinstance(value, tuple) else (value,)
    first = values[0] if values else ""
    if isinstance(first, bool):
        return DeviceAttribute(bools=values) if value is values else DeviceAttribute(bool=first)
    if isinstance(first, int):
        if not all(MIN_INT <= each <= MAX_INT for each in values):
            raise EvaluationError("integer overflow")
        return DeviceAttribute(ints=values) if value is values else DeviceAttribute(int=first)
    if isinstance(first, str):
        return DeviceAttribute(strings=values) if value is values else DeviceAttribute(string=first)
    texts = tuple(map(str, values))
    return DeviceAttribute(versions=texts) if value is values else DeviceAttribute(version=texts[0])


def not_bool(value: Any) -> EvaluationError:
    """The error of a selector whose result is no bool at run time."""
    return EvaluationError(f"CEL result of type {type_name(value)} could not be converted to bool: {_reason(value)}")


def _reason(value: Any) -> str:
    kind = type_name(value)
    if value.__class__ is Optional:
        return "optional.none() dereference" if value is NONE else _reason(value.value)
    if kind == "string":
        return "unsupported native conversion from string to 'bool'"
    if kind in ("int", "uint"):
        return f"unsupported type conversion from '{kind}' to bool"
    if kind == "type":
        return "type conversion not supported for 'type'"
    return f"type conversion error from {_SOURCES.get(kind, kind)} to 'bool'"
