"""What an expression may result in: booleans for selectors, attribute values for derived attributes."""

from __future__ import annotations

from typing import Any

from drakit.cel.errors import EvaluationError
from drakit.cel.values import NONE, Optional, type_name

__all__ = ["not_bool"]


def not_bool(value: Any) -> EvaluationError:
    """The error of a selector whose result is no bool at run time."""
    return EvaluationError(f"CEL result of type {type_name(value)} could not be converted to bool: {_reason(value)}")


def _reason(value: Any) -> str:
    kind = type_name(value)
    if kind == "optional_type":
        assert isinstance(value, Optional)
        return "optional.none() dereference" if value is NONE else _reason(value.value)
    if kind == "string":
        return "unsupported native conversion from string to 'bool'"
    if kind in ("int", "uint"):
        return f"unsupported type conversion from '{kind}' to bool"
    if kind == "type":
        return "type conversion not supported for 'type'"
    source = _SOURCES.get(kind, kind)
    return f"type conversion error from {source} to 'bool'"


_SOURCES = {
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
