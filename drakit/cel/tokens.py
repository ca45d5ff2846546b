"""The lexer: longest match as the grammar defines it, errors in the words of upstream's lexer."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from drakit.cel.errors import Issue

__all__ = ["EOF", "Token", "tokenize"]

EOF: Final = "<EOF>"

# One alternative a token kind; the longest match wins because longer forms come first. Strings are scanned by hand.
_PATTERN: Final = re.compile(
    r"""(?P<space>[\t \r\n\f]+|//[^\n]*)
    |(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
    |(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<quote>(?:[bB][rR]?|[rR])?["'])
    |(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)
    |(?P<operator>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])""",
    re.VERBOSE | re.ASCII,
)
_WORDS: Final = frozenset({"in", "true", "false", "null"})
_SIMPLE_ESCAPES: Final = frozenset("abfnrtv\"'\\?`")
_HEX_ESCAPES: Final = {"x": 2, "X": 2, "u": 4, "U": 8}
_HEX: Final = frozenset("0123456789abcdefABCDEF")


class Token(NamedTuple):
    """`kind` is the grammar's name (operators and words: themselves), `text` the spelling, `offset` in code points."""

    kind: str
    text: str
    offset: int


def tokenize(text: str, issues: list[Issue]) -> list[Token]:
    """All tokens and a final `EOF`; characters that no token accepts become issues and are skipped."""
    tokens: list[Token] = []
    append = tokens.append
    position, end = 0, len(text)
    match_at = _PATTERN.match
    while position < end:
        match = match_at(text, position)
        if match is None:
            position = _skip(text, position, issues)
            continue
        kind = match.lastgroup
        if kind == "space":
            position = match.end()
            continue
        spelling = match.group()
        if kind == "quote":
            position = _string(text, position, spelling, append, issues)
            continue
        if kind == "operator" or spelling in _WORDS:
            kind = spelling
        append(Token(kind or "", spelling, position))
        position = match.end()
    append(Token(EOF, EOF, end))
    return tokens


def _skip(text: str, position: int, issues: list[Issue]) -> int:
    """Report what upstream's lexer consumes before it gives up on a token."""
    stop = position + 1
    if text[position] in "&|=":
        stop = position + 2
    elif text[position] == "`":
        while stop < len(text) and (text[stop].isascii() and (text[stop].isalnum() or text[stop] in "_.-/ ")):
            stop += 1
        stop += 1
    issues.append(Issue(position, f"Syntax error: token recognition error at: '{text[position:stop]}'"))
    return min(stop, len(text))


def _string(text: str, start: int, opening: str, append: object, issues: list[Issue]) -> int:
    prefix, quote = opening[:-1], opening[-1]
    raw = "r" in prefix.lower()
    body = start + len(opening)
    kind = "BYTES" if prefix[:1] in ("b", "B") else "STRING"
    stop = -1
    if text.startswith(quote * 2, body):
        stop, failed = _scan(text, body + 2, quote * 3, raw=raw)
        if stop < 0:
            stop = body + 1  # upstream falls back to the empty string
    else:
        stop, failed = _scan(text, body, quote, raw=raw)
    if stop >= 0:
        append(Token(kind, text[start:stop], start))  # type: ignore[operator]
        return stop
    if prefix:  # the prefix alone is an identifier, then the string fails by itself
        append(Token("IDENTIFIER", prefix, start))  # type: ignore[operator]
        return start + len(prefix)
    issues.append(Issue(start, f"Syntax error: token recognition error at: '{text[start : failed + 1]}'"))
    return min(failed + 1, len(text))


def _scan(text: str, position: int, closing: str, *, raw: bool) -> tuple[int, int]:
    """End of the string, or -1 and where scanning failed."""
    triple = len(closing) == 3
    end = len(text)
    while position < end:
        char = text[position]
        if char == closing[0] and text.startswith(closing, position):
            return position + len(closing), position
        if char == "\\" and not raw:
            length = _escape(text, position)
            if length < 0:
                return -1, position - length - 1
            position += length
            continue
        if char in "\n\r" and not triple:
            return -1, position
        position += 1
    return -1, end


def _escape(text: str, position: int) -> int:
    """Length of the escape sequence, or minus the number of characters read when it is none."""
    char = text[position + 1 : position + 2]
    if char and char in _SIMPLE_ESCAPES:
        return 2
    if char in _HEX_ESCAPES and char:
        digits = _HEX_ESCAPES[char]
        for index in range(digits):
            if text[position + 2 + index : position + 3 + index] not in _HEX or position + 2 + index >= len(text):
                return -(3 + index)
        return 2 + digits
    if char and char in "0123":
        for index in range(2):
            digit = text[position + 2 + index : position + 3 + index]
            if not digit or digit not in "01234567":
                return -(3 + index)
        return 4
    return -2
