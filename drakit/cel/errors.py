"""What can go wrong with an expression: at compile time with a position, at run time with a message."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CompileError", "EvaluationError", "Issue", "PanicError", "Position", "render"]

_MAX_SNIPPET = 16384
_MAX_ISSUES = 100
_WIDE_DOT = "\uff0e"
_WIDE_CARET = "\uff3e"


class Position(NamedTuple):
    """A place in the expression: line from 1, column from 1 in code points; (-1, 0) when there is none."""

    line: int
    column: int


class Issue(NamedTuple):
    """One complaint about an expression, at a code point offset (-1: about the whole)."""

    offset: int
    message: str


class CompileError(ValueError):
    """The expression is no valid selector; the message is upstream's.

    Attributes:
        message: The whole text, several lines with a caret.
        position: Where the first complaint is, or None when it is about the whole expression.
        issues: All complaints in order of their place.
    """

    def __init__(self, message: str, position: Position | None = None, issues: tuple[Issue, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.issues = issues


class EvaluationError(Exception):
    """Evaluation failed: `message` is upstream's, `device` is filled in by callers that know it."""

    def __init__(self, message: str, device: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.device = device

    def enhanced(self) -> str:
        """The message with the hint that 1.37 appends for missing keys (spec/cel.md 3)."""
        if "no such key:" not in self.message:
            return self.message
        return (
            f"{self.message}. consider using CEL optional chaining (.? followed by orValue()) "
            "or guarding the check with has() for optional fields"
        )


class PanicError(EvaluationError):
    """Upstream panics or gives up here: no `||`, `&&` or macro absorbs it."""


def locate(text: str, offset: int) -> Position:
    """Line and column of a code point offset."""
    if offset < 0:
        return Position(-1, 0)
    start = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, offset) + 1, offset - start + 1)


def render(text: str, issues: list[Issue]) -> CompileError:
    """All issues as upstream prints them, sorted by place, each with its line and a caret."""
    placed = sorted(((locate(text, issue.offset), issue) for issue in issues), key=lambda pair: pair[0])
    lines = text.split("\n")
    shown = [_display(lines, position, issue.message) for position, issue in placed[:_MAX_ISSUES]]
    if len(placed) > _MAX_ISSUES:
        shown.append(f"{len(placed) - _MAX_ISSUES} more errors were truncated")
    first = placed[0][0]
    return CompileError(
        "compilation failed: " + "\n".join(shown),
        first if first.line > 0 else None,
        tuple(issue for _, issue in placed),
    )


def _display(lines: list[str], position: Position, message: str) -> str:
    result = f"ERROR: <input>:{position.line}:{position.column}: {message}"
    if not 0 < position.line <= len(lines) or len(lines[position.line - 1]) > _MAX_SNIPPET:
        return result
    snippet = lines[position.line - 1].replace("\t", " ")
    before, at = snippet[: position.column - 1], snippet[position.column - 1 : position.column]
    dots = "".join(_WIDE_DOT if ord(each) > 127 else "." for each in before)
    return f"{result}\n | {snippet}\n | {dots}{_WIDE_CARET if at and ord(at) > 127 else '^'}"
