"""`format`: clauses of the strings library, version 2; numbers print in upstream's default locale, en_US."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from drakit.cel.errors import EvaluationError
from drakit.cel.functions.numbers import general
from drakit.cel.functions.times import duration_text, timestamp_text
from drakit.cel.values import Uint, find, is_list, show, type_name, untag

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FORMATS", "OVERLOADS", "ClauseError", "clauses"]

DEFAULT_PRECISION: Final = 6
_SUPERSCRIPT: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TIMES: Final = "\u00d7"
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_MAX_PRECISION: Final = 5000
_KINDS: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
FORMATS: Final = _KINDS


class ClauseError(ValueError):
    """The format string, or a clause for this argument, is wrong."""


def refuse(clause: str, kind: str) -> ClauseError:
    """The clause does not take arguments of this type."""
    return ClauseError(f"{_KINDS[clause.lower()]}, was given {kind}")


def clauses(text: str, count: int, emit: Callable[[str, str, int | None, int], str]) -> str:
    """Walk a format string: plain text stays, each clause asks `emit(letter, case, precision, index)`.

    Raises:
        ClauseError: The format string is wrong, in upstream's words.
    """
    parts: list[str] = []
    position = index = 0
    while True:
        start = text.find("%", position)
        if start < 0:
            parts.append(text[position:])
            return "".join(parts)
        parts.append(text[position:start])
        position = start + 1
        if text[position : position + 1] == "%":
            parts.append("%")
            position += 1
            continue
        if index >= count:
            raise ClauseError(f"index {index} out of range")
        if position >= len(text):
            raise ClauseError("unexpected end of string")
        letter, precision, position = _clause(text, position)
        try:
            parts.append(emit(letter.lower() if letter == "X" else letter, letter, precision, index))
        except ClauseError as error:
            error.args = (f"error during formatting: {error}",)
            raise
        index += 1


def _clause(text: str, position: int) -> tuple[str, int | None, int]:
    precision = None
    if text[position] == ".":
        end = position + 1
        while end < len(text) and text[end].isascii() and text[end].isdigit():
            end += 1
        if end >= len(text):
            raise ClauseError(
                "could not parse formatting clause: error while parsing precision: could not find end of precision "
                "specifier"
            )
        digits = text[position + 1 : end]
        if not digits:
            raise ClauseError(
                "could not parse formatting clause: error while parsing precision: error while converting precision "
                'to integer: strconv.Atoi: parsing "": invalid syntax'
            )
        precision = min(int(digits[:9]), _MAX_PRECISION)
        position = end
    letter = text[position]
    if letter not in "sdfebxXo":
        shown = text[position : position + 1] if ord(letter) < 128 else chr(letter.encode()[0])
        raise ClauseError(f'could not parse formatting clause: unrecognized formatting clause "{shown}"')
    return letter, precision, position + 1


def _format(text: str, arguments: list[Any]) -> str:
    def emit(kind: str, letter: str, precision: int | None, index: int) -> str:
        return _EMIT[kind](arguments[index], letter, DEFAULT_PRECISION if precision is None else precision)

    try:
        return clauses(text, len(arguments), emit)
    except ClauseError as error:
        raise EvaluationError(str(error)) from None


def _string(value: Any, letter: str = "s", _: int = 0) -> str:
    kind = type_name(value)
    if is_list(value):
        return _list(value)
    if isinstance(value, dict):
        return _map(value)
    if kind == "bytes":
        try:
            return str(value.decode())
        except UnicodeDecodeError:
            raise ClauseError(
                'could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string'
            ) from None
    if kind in _TEXTS:
        return _TEXTS[kind](value)
    raise refuse(letter, kind)


_TEXTS: Final[dict[str, Callable[[Any], str]]] = {
    "bool": show,
    "int": str,
    "uint": lambda value: str(int(value)),
    "double": general,
    "string": str,
    "null_type": lambda _: "null",
    "type": lambda value: str(value.name),
    "google.protobuf.Timestamp": timestamp_text,
    "google.protobuf.Duration": duration_text,
}


def _nested(value: Any) -> str:
    """An element of a list or map: strings quoted, times spelled as their constructors."""
    kind = type_name(value)
    if kind == "string":
        return quoted(value)
    if kind == "bytes":
        return "b" + quoted(_string(value))
    if kind == "double":
        text = _plain(value, DEFAULT_PRECISION)
        return text if math.isfinite(value) else quoted(text)
    if kind == "google.protobuf.Timestamp":
        return f"timestamp({quoted(timestamp_text(value))})"
    if kind == "google.protobuf.Duration":
        return f"duration({quoted(duration_text(value))})"
    if kind in _TEXTS or kind in ("list", "map"):
        return _string(value)
    raise ClauseError(f"no formatting function for {kind}")


def _list(values: list[Any]) -> str:
    return "[" + ", ".join(map(_nested, values)) + "]"


def _map(values: dict[Any, Any]) -> str:
    pairs = []
    for key in map(untag, values):
        kind = type_name(key)
        if kind not in ("string", "bool", "int", "uint"):
            raise ClauseError(f"no formatting function for map key of type {kind}")
        pairs.append((_nested(key), _nested(find(values, key))))
    return "{" + ", ".join(f"{key}:{value}" for key, value in sorted(pairs, key=lambda pair: pair[0])) + "}"


def quoted(text: str) -> str:
    """A string as Go's `%q` prints it."""
    parts = ['"']
    for char in text:
        code = ord(char)
        if char in '"\\':
            parts.append("\\" + char)
        elif char in _GO_ESCAPES:
            parts.append(_GO_ESCAPES[char])
        elif char.isprintable() or (char == " "):
            parts.append(char)
        else:
            parts.append(f"\\x{code:02x}" if code < 128 else (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"))
    return "".join([*parts, '"'])


_GO_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def _decimal(value: Any, letter: str, _: int) -> str:
    if value.__class__ is int or value.__class__ is Uint:
        return str(int(value))
    raise refuse(letter, type_name(value))


def _double(value: Any, letter: str) -> float:
    if value.__class__ is float:
        return value
    if value.__class__ is str and value in _SPECIAL:
        return _SPECIAL[value]
    raise refuse(letter, type_name(value))


def _plain(value: float, precision: int) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.{precision}f}"


def _localized(value: float) -> str | None:
    """Values without digits, as the locale prints them."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return None


def _fixed(value: Any, letter: str, precision: int) -> str:
    number = _double(value, letter)
    return _localized(number) or f"{number:,.{precision}f}"


def _scientific(value: Any, letter: str, precision: int) -> str:
    number = _double(value, letter)
    special = _localized(number)
    if special is not None:
        return special
    mantissa, _, power = f"{number:.{precision}e}".partition("e")
    exponent = f"{'-' if power[0] == '-' else ''}{abs(int(power)):02d}".translate(_SUPERSCRIPT)
    return f"{mantissa}{_TIMES}10{exponent}"


def _based(letters: str) -> Callable[[Any, str, int], str]:
    def call(value: Any, letter: str, _: int) -> str:
        kind = value.__class__
        if kind is int or kind is Uint:
            return format(int(value), letter)
        if letters == "b" and kind is bool:
            return "1" if value else "0"
        if letters == "x" and kind in (str, bytes):
            digits = (value.encode("utf-8", "surrogatepass") if kind is str else value).hex()
            return str(digits.upper() if letter == "X" else digits)
        raise refuse(letter, type_name(value))

    return call


_EMIT: Final[dict[str, Callable[[Any, str, int], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _based("b"),
    "x": _based("x"),
    "o": _based("o"),
}
OVERLOADS: Final[dict[str, Any]] = {"string_format": _format}
