"""Conversions between numbers, strings, bytes and booleans, and numbers as Go prints them."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from drakit.cel.errors import EvaluationError
from drakit.cel.values import MAX_INT, MAX_UINT, MIN_INT, Uint

__all__ = ["OVERLOADS", "conversion_error", "fixed", "general"]

_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+", re.ASCII)
_SPECIAL: Final = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE | re.ASCII)
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_LONGEST: Final = 4000
_EXPONENT_FROM: Final = 6


def conversion_error(source: str, target: str) -> EvaluationError:
    """The error of a conversion that a value does not have."""
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


def _identity(value: Any) -> Any:
    return value


def _double_to_int(value: float) -> int:
    if not float(MIN_INT) < value < float(MAX_INT):
        raise EvaluationError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> Uint:
    if not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _uint_to_int(value: Uint) -> int:
    if value > MAX_INT:
        raise EvaluationError("integer overflow")
    return int(value)


def _int_to_uint(value: int) -> Uint:
    if value < 0:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _string_to_int(text: str) -> int:
    if _INT.fullmatch(text) and len(text) < _LONGEST and MIN_INT <= int(text) <= MAX_INT:
        return int(text)
    raise conversion_error("string", "int")


def _string_to_uint(text: str) -> Uint:
    if text.isascii() and text.isdigit() and len(text) < _LONGEST and int(text) <= MAX_UINT:
        return Uint(text)
    raise conversion_error("string", "uint")


def _string_to_double(text: str) -> float:
    try:
        if _DECIMAL.fullmatch(text):
            value = float(text)
            if abs(value) != float("inf"):
                return value
        elif _SPECIAL.fullmatch(text):
            return float(text)
        elif _HEXADECIMAL.fullmatch(text):
            return float.fromhex(text)
    except (ValueError, OverflowError):
        pass
    raise conversion_error("string", "double")


def _string_to_bool(text: str) -> bool:
    value = _BOOLEANS.get(text)
    if value is None:
        raise conversion_error("string", "bool")
    return value


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _string_to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _bool_to_string(value: bool) -> str:
    return "true" if value else "false"


def _whole_to_string(value: int) -> str:
    return str(int(value))


def general(value: float) -> str:
    """A double as Go's `%g` prints it: shortest digits, an exponent from 10**6 on and below 10**-4."""
    if math.isnan(value):
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    sign, digits, exponent = _shortest(value)
    if exponent < -4 or exponent >= _EXPONENT_FROM:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + _plain(digits, exponent)


def fixed(value: float) -> str:
    """A double as Go's `FormatFloat(value, 'f', -1, 64)` prints it: shortest digits, never an exponent."""
    if math.isnan(value):
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    sign, digits, exponent = _shortest(value)
    return sign + _plain(digits, exponent)


def _shortest(value: float) -> tuple[str, str, int]:
    """Sign, digits without trailing zeros, and the power of ten of the first digit."""
    text = repr(abs(value))
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + (fraction if fraction != "0" else "")
    stripped = digits.lstrip("0")
    exponent = len(whole) - 1 - (len(digits) - len(stripped)) + (int(power) if power else 0)
    return "-" if value < 0 else "", stripped.rstrip("0") or "0", exponent


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return digits[: exponent + 1] + "." + digits[exponent + 1 :]


OVERLOADS: Final[dict[str, Any]] = {
    "bool_to_bool": _identity,
    "string_to_bool": _string_to_bool,
    "bytes_to_bytes": _identity,
    "string_to_bytes": _string_to_bytes,
    "double_to_double": _identity,
    "int64_to_double": float,
    "uint64_to_double": float,
    "string_to_double": _string_to_double,
    "int64_to_int64": _identity,
    "double_to_int64": _double_to_int,
    "string_to_int64": _string_to_int,
    "uint64_to_int64": _uint_to_int,
    "uint64_to_uint64": _identity,
    "double_to_uint64": _double_to_uint,
    "int64_to_uint64": _int_to_uint,
    "string_to_uint64": _string_to_uint,
    "string_to_string": _identity,
    "bool_to_string": _bool_to_string,
    "bytes_to_string": _bytes_to_string,
    "double_to_string": general,
    "int64_to_string": _whole_to_string,
    "uint64_to_string": _whole_to_string,
}
