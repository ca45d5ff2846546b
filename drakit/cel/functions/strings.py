"""Strings, version 2 of the extension library, and the string functions of the standard library."""

from __future__ import annotations

from typing import Any, Final

from drakit.cel.errors import EvaluationError, PanicError
from drakit.cel.values import no_overload, show

__all__ = ["OVERLOADS", "SINGLETONS"]

_MAX_LENGTH: Final = 50_000_000
_UPPER: Final = {ord(char): char.upper() for char in "abcdefghijklmnopqrstuvwxyz"}
_LOWER: Final = {ord(char): char.lower() for char in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_ESCAPES: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)


def _require(*values: Any) -> None:
    for value in values:
        if value.__class__ is not str:
            raise no_overload()


def _contains(text: Any, part: Any) -> bool:
    _require(text, part)
    return part in text


def _ends_with(text: Any, suffix: Any) -> bool:
    _require(text, suffix)
    return bool(text.endswith(suffix))


def _starts_with(text: Any, prefix: Any) -> bool:
    _require(text, prefix)
    return bool(text.startswith(prefix))


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start)


def _last_index_of(text: str, part: str) -> int:
    return len(text) if not part else text.rfind(part)


def _last_index_of_from(text: str, part: str, start: int) -> int:
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    if start >= len(text):
        return -1
    return text.rfind(part, 0, min(start, len(text) - len(part)) + len(part)) if len(part) <= len(text) else -1


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    if len(text) * len(new) > _MAX_LENGTH:
        times = text.count(old) if count < 0 else min(count, text.count(old))
        if times * len(new) > _MAX_LENGTH:
            raise PanicError("string is too long to be replaced in")
    return text.replace(old, new, count)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if 0 < count < len(text):
        return [*text[: count - 1], text[count - 1 :]]
    return list(text)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start,) if end is None else (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _join(values: list[Any], separator: str = "") -> str:
    for value in values:
        if value.__class__ is not str:
            raise EvaluationError(f"join: invalid input: {show(value)}")
    if len(values) * len(separator) + sum(map(len, values)) > _MAX_LENGTH:
        raise PanicError("strings are too long to be joined")
    return separator.join(values)


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


SINGLETONS: Final[dict[str, Any]] = {"contains": _contains, "endsWith": _ends_with, "startsWith": _starts_with}
OVERLOADS: Final[dict[str, Any]] = {
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_of_from,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring,
    "string_trim": lambda text: text.strip(_SPACE),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "list_join": _join,
    "list_join_string": _join,
    "strings_quote": _quote,
}
