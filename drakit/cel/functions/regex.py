"""Regular expressions with RE2's syntax and linear time; RE2 is imported when the first one is used."""

from __future__ import annotations

import functools
from typing import Any, Final

from drakit.cel.errors import EvaluationError
from drakit.cel.values import no_overload

__all__ = ["CONSTANT", "OVERLOADS", "SINGLETONS", "PatternError", "compile_pattern", "constant"]

_CAPACITY: Final = 1024
_MEMORY: Final = 8 << 20
_MESSAGES: Final = {
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class range": "invalid character class range",
    "invalid character class": "invalid character class",
    "invalid UTF-8": "invalid UTF-8",
}


class PatternError(ValueError):
    """RE2 does not accept the pattern; the message is upstream's."""


class Pattern:
    """A compiled pattern."""

    __slots__ = ("_compiled", "_set")

    def __init__(self, text: str) -> None:
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            raise PatternError(_message(error, text)) from None
        if "\\C" in text and _any_byte(text):
            raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
        chosen = re2.Set.SearchSet(options)
        chosen.Add(text)
        chosen.Compile()
        self._set = chosen

    def matches(self, text: str) -> bool:
        """Whether the pattern matches anywhere."""
        return bool(self._set.Match(text))

    def find(self, text: str) -> str:
        """The leftmost match, or nothing."""
        match = self._compiled.search(text)
        return "" if match is None else str(match.group(0))

    def find_all(self, text: str, limit: int) -> list[str]:
        """Successive matches, at most `limit` when it is not negative; as Go counts empty ones."""
        found: list[str] = []
        previous = -1
        for match in self._compiled.finditer(text):
            if limit >= 0 and len(found) >= limit:
                break
            if match.start() == match.end() == previous:
                continue
            previous = match.end()
            found.append(match.group(0))
        return found


def _any_byte(text: str) -> bool:
    position = text.find("\\")
    while position >= 0:
        if text[position + 1 : position + 2] == "C":
            return True
        position = text.find("\\", position + 2)
    return False


def _message(error: Exception, text: str) -> str:
    raw = error.args[0] if error.args else b""
    words = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    if words.startswith("trailing \\"):
        return "error parsing regexp: trailing backslash at end of expression: ``"
    code, _, part = words.partition(": ")
    if code not in _MESSAGES:
        return f"error parsing regexp: expression too large: `{text}`"
    return f"error parsing regexp: {_MESSAGES[code]}: `{part}`"


@functools.lru_cache(maxsize=_CAPACITY)
def compile_pattern(text: str) -> Pattern:
    """A pattern, cached by its text.

    Raises:
        PatternError: RE2 does not accept it.
    """
    return Pattern(text)


def _matches(text: Any, pattern: Any) -> bool:
    if text.__class__ is not str:
        from drakit.cel.values import Duration, Timestamp

        raise no_overload() if text.__class__ in (Duration, Timestamp) else no_overload("matches")
    if pattern.__class__ is not str:
        raise no_overload()
    try:
        return compile_pattern(pattern).matches(text)
    except PatternError as error:
        raise EvaluationError(str(error)) from None


def _illegal(pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    return _illegal(pattern).find(text)


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _illegal(pattern).find_all(text, limit)


CONSTANT: Final = frozenset({"matches", "find", "findAll"})


def constant(function: str, pattern: Pattern) -> Any:
    """The function with its pattern compiled beforehand; the pattern's argument is still passed and ignored."""

    def call(text: Any, _: Any, limit: Any = -1) -> Any:
        if text.__class__ is not str or limit.__class__ is not int:
            raise no_overload()
        if function == "matches":
            return pattern.matches(text)
        return pattern.find(text) if function == "find" else pattern.find_all(text, limit)

    return call


SINGLETONS: Final[dict[str, Any]] = {"matches": _matches}
OVERLOADS: Final[dict[str, Any]] = {
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}
