"""Values of literal tokens: numbers with their ranges, strings and bytes with their escapes."""

from __future__ import annotations

from typing import Final

from drakit.cel.values import MAX_INT, MAX_UINT, MIN_INT, Uint

__all__ = ["bytes_value", "double_value", "int_value", "string_value", "uint_value"]

_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_WIDTHS: Final = {"x": 2, "X": 2, "u": 4, "U": 8}
_LONGEST_NUMBER: Final = 64


def int_value(text: str, sign: str = "") -> int:
    """An int literal.

    Raises:
        ValueError: It does not fit into 64 bits.
    """
    value = _integer(text)
    value = -value if sign else value
    if not MIN_INT <= value <= MAX_INT:
        raise ValueError("invalid int literal")
    return value


def uint_value(text: str) -> Uint:
    """A uint literal with its `u`.

    Raises:
        ValueError: It does not fit into 64 bits.
    """
    value = _integer(text[:-1])
    if value > MAX_UINT:
        raise ValueError("invalid uint literal")
    return Uint(value)


def _integer(text: str) -> int:
    digits = text[2:].lstrip("0") if text.startswith("0x") else text.lstrip("0")
    if len(digits) > _LONGEST_NUMBER:
        return MAX_UINT + 1
    return int(digits or "0", 16 if text.startswith("0x") else 10)


def double_value(text: str) -> float:
    """A double literal.

    Raises:
        ValueError: It is too large.
    """
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("invalid double literal")
    return value


def string_value(text: str) -> str:
    """The string that a token denotes.

    Raises:
        ValueError: An escape is no code point.
    """
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body
    parts: list[str] = []
    position = 0
    while True:
        start = body.find("\\", position)
        if start < 0:
            parts.append(body[position:])
            return "".join(parts)
        parts.append(body[position:start])
        value, position = _escape(body, start)
        if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            raise ValueError("invalid unicode code point")
        parts.append(chr(value))


def bytes_value(text: str) -> bytes:
    """The bytes that a token (with its `b`) denotes: hex and octal escapes are bytes, other text is UTF-8.

    Raises:
        ValueError: It has unicode escapes.
    """
    body, raw = _body(text[1:])
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    parts: list[bytes] = []
    position = 0
    while True:
        start = body.find("\\", position)
        if start < 0:
            parts.append(body[position:].encode("utf-8", "surrogatepass"))
            return b"".join(parts)
        parts.append(body[position:start].encode("utf-8", "surrogatepass"))
        if body[start + 1] in "uU":
            raise ValueError("unable to unescape string")
        value, position = _escape(body, start)
        parts.append(bytes((value & 0xFF,)))


def _body(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[width:-width], raw


def _escape(body: str, start: int) -> tuple[int, int]:
    """The code of the escape at `start` and where it ends; the lexer has checked its form."""
    char = body[start + 1]
    if char in _SIMPLE:
        return ord(_SIMPLE[char]), start + 2
    if char in _WIDTHS:
        stop = start + 2 + _WIDTHS[char]
        return int(body[start + 2 : stop], 16), stop
    return int(body[start + 1 : start + 4], 8), start + 4
