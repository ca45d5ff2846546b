"""Complaints about a tree whose types are fine: literals that can never work, lists of mixed types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit.cel.errors import EvaluationError, Issue
from drakit.cel.functions import OVERLOADS
from drakit.cel.functions.formatting import FORMATS, ClauseError, clauses
from drakit.cel.functions.regex import PatternError, compile_pattern
from drakit.cel.syntax import Call, ListNode, Literal, MapNode, Node, walk
from drakit.cel.types import DYN, Type, equivalent

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["validate"]

_INT_KINDS: Final = frozenset({"int", "uint"})
_CLAUSE_KINDS: Final = {
    "d": _INT_KINDS,
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "o": _INT_KINDS,
    "s": frozenset(
        {"list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"}
    ),
}


def validate(root: Node, *, literals: bool = True) -> list[Issue]:
    """The complaints of upstream's validators, in their order; `literals` switches those that came with 1.29."""
    nodes = walk(root)
    issues: list[Issue] = []
    calls = [node for node in nodes if isinstance(node, Call)]
    formats = [node for node in calls if node.function == "format"]
    _homogeneous(nodes, {inner for node in formats for inner in walk(node)}, issues)
    if literals:
        for function in ("duration", "timestamp", "matches"):
            for node in calls:
                if node.function == function:
                    _literal(node, issues)
        for node in formats:
            _format(node, issues)
    return issues


# --- mixed literals


def _homogeneous(nodes: Sequence[Node], exempt: set[Node], issues: list[Issue]) -> None:
    """Lists first, then maps; what stands inside a call of `format` is exempt."""
    for node in nodes:
        if isinstance(node, ListNode) and node not in exempt:
            _list(node, issues)
    for node in nodes:
        if isinstance(node, MapNode) and node not in exempt:
            _map(node, issues)


def _mismatch(node: Node, expected: Type, actual: Type) -> Issue:
    return Issue(node.offset, f"expected type '{expected.text}' but found '{actual.text}'")


def _unwrapped(type: Type) -> Type:
    return type.parameters[0] if type.parameters else DYN


def _list(node: ListNode, issues: list[Issue]) -> None:
    expected: Type | None = None
    for index, element in enumerate(node.elements):
        actual = _unwrapped(element.type) if index in node.optionals else element.type
        if expected is None:
            expected = actual
        elif not equivalent(expected, actual):
            issues.append(_mismatch(element, expected, actual))
            return


def _map(node: MapNode, issues: list[Issue]) -> None:
    expected: tuple[Type, Type] | None = None
    for entry in node.entries:
        value = _unwrapped(entry.value.type) if entry.optional else entry.value.type
        if expected is None:
            expected = entry.key.type, value
            continue
        if not equivalent(expected[0], entry.key.type):
            issues.append(_mismatch(entry.key, expected[0], entry.key.type))
        if not equivalent(expected[1], value):
            issues.append(_mismatch(entry.value, expected[1], value))


# --- literal arguments


def _literal(node: Call, issues: list[Issue]) -> None:
    if not node.arguments or not isinstance(node.arguments[0], Literal):
        return
    argument = node.arguments[0]
    try:
        if node.function == "matches":
            if argument.value.__class__ is str:
                compile_pattern(argument.value)
        else:
            for overload in node.overloads:
                OVERLOADS[overload](argument.value)
    except (EvaluationError, PatternError):
        issues.append(Issue(argument.offset, f"invalid {node.function} argument"))


# --- format strings


class _TypedClauseError(ClauseError):
    """The clause does not take this argument."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def _format(node: Call, issues: list[Issue]) -> None:
    text, arguments = node.target, node.arguments[0] if node.arguments else None
    if not isinstance(text, Literal) or text.value.__class__ is not str or not isinstance(arguments, ListNode):
        return
    elements = arguments.elements
    used = 0

    def emit(kind: str, _letter: str, _precision: int | None, index: int) -> str:
        nonlocal used
        used += 1
        _check(kind, elements[index])
        return ""

    try:
        clauses(text.value, len(elements), emit)
    except ClauseError as error:
        issues.append(Issue(error.offset if isinstance(error, _TypedClauseError) else node.offset, str(error)))
        return
    if len(elements) > used:
        message = f"too many arguments supplied to string.format (expected {used}, got {len(elements)})"
        issues.append(Issue(node.offset, message))


def _check(kind: str, node: Node) -> None:
    if node.type.kind != "dyn" and node.type.kind not in _CLAUSE_KINDS[kind]:
        raise _TypedClauseError(f"{FORMATS[kind]}, was given {node.type.name}", node.offset)
    if kind != "s":
        return
    parts: list[Any] = []
    if isinstance(node, ListNode):
        parts = node.elements
    elif isinstance(node, MapNode):
        parts = [part for entry in node.entries for part in (entry.key, entry.value)]
    for part in parts:
        _check(kind, part)
