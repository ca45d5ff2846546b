"""Why a selector is false on a device: its failing comparisons, with the values that were compared.

The logic of an expression (`&&`, `||`, `!`, `?:`) is taken apart, and every part that decided the answer is evaluated
by itself on the device; what is left are comparisons such as `memory 40Gi < 80Gi`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import msgspec

from drakit.cel.errors import CompileError, EvaluationError
from drakit.cel.paths import MIRRORED, comparison
from drakit.cel.syntax import Call, Comprehension, Ident, Literal, Node, Select, walk
from drakit.cel.unparse import unparse

if TYPE_CHECKING:
    from drakit.cel.device import DeviceView
    from drakit.cel.environment import Environment

__all__ = ["Fact", "why_false"]

_NEGATED: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in"}
_INDEXING: Final = frozenset({"_[_]", "_?._", "_[?_]"})
_TRANSPARENT: Final = frozenset({"orValue", "value", "asInteger", "asApproximateFloat"})
_MAX_FACTS: Final = 8
_MAX_TEXT: Final = 160


class _Unknown:
    """Stands for the value of a part that fails by itself."""


_UNKNOWN: Final = _Unknown()


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a device that makes an expression false.

    Attributes:
        expression: The part of the expression that decided, as CEL.
        name: What was looked at: the identifier of an attribute or capacity, else CEL.
        actual: Its value on the device, as text; empty when the fact is about its presence.
        relation: How `actual` stands to `wanted` (`<`, `!=`, `not in`, ...), or `is missing`, `is present`, `is false`.
        wanted: What the expression compares with, as text.
    """

    expression: str
    name: str
    actual: str = ""
    relation: str
    wanted: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.name, self.actual, self.relation, self.wanted) if part)


def why_false(environment: Environment, expression: str, view: DeviceView) -> tuple[Fact, ...]:
    """The facts that make a selector false on a device, in the order of the text; at most 8.

    Args:
        environment: Where the selector was compiled.
        expression: A selector that is false on the device.
        view: The device.

    Returns:
        The facts; empty when the expression does not compile or is not false.
    """
    try:
        root = _tree(environment, expression)
    except CompileError:
        return ()
    return tuple(_Reader(environment, view).facts(root, truth=False)[:_MAX_FACTS])


@functools.lru_cache(maxsize=256)
def _tree(environment: Environment, expression: str) -> Node:
    return environment.checked(expression)


class _Reader:
    """Reads one device."""

    def __init__(self, environment: Environment, view: DeviceView) -> None:
        self._environment = environment
        self._view = view

    def value(self, node: Node) -> Any:
        """What a part of an expression is on the device, or `_UNKNOWN`."""
        try:
            return self._environment.compile(unparse(node), "any").evaluate(self._view)
        except (CompileError, EvaluationError):
            return _UNKNOWN

    def facts(self, node: Node, *, truth: bool) -> list[Fact]:
        """Why a part is what it is; nothing when it has another value or fails."""
        if self.value(node) is not truth:
            return []
        if isinstance(node, Call):
            if node.function in {"_&&_", "_||_"}:
                return [fact for each in node.arguments for fact in self.facts(each, truth=truth)]
            if node.function == "!_":
                return self.facts(node.arguments[0], truth=not truth)
            if node.function == "_?_:_":
                condition, first, second = node.arguments
                return self.facts(first if self.value(condition) is True else second, truth=truth)
        return [self.fact(node, truth=truth)]

    def fact(self, node: Node, *, truth: bool) -> Fact:
        """One comparison, test or flag."""
        tested = _tested(node)
        if tested is not None:
            return Fact(expression=unparse(node), name=tested, relation="is present" if truth else "is missing")
        compared = comparison(node)
        if compared is not None:
            return self.comparison(node, *compared, truth=truth)
        name = _name(node)
        answer = "is true" if truth else "is false"
        return self.other(node, answer) if name is None else Fact(expression=unparse(node), name=name, relation=answer)

    def other(self, node: Node, answer: str) -> Fact:
        """Anything else: the part itself, names cut short, and the values that it reads."""
        text = unparse(node)
        short = text
        read: dict[str, str] = {}
        for each in walk(node):
            name = _name(each)
            value = self.value(each) if name is not None else _UNKNOWN
            if name is not None and value is not _UNKNOWN and not isinstance(value, dict):
                short = short.replace(unparse(each), name)
                read.setdefault(name, _shown(value))
        values = _short(", ".join(f"{name} {value}" for name, value in read.items()))
        return Fact(expression=text, name=_short(short), relation=answer, wanted=f"({values})" if values else "")

    def comparison(self, node: Node, left: Node, operator: str, right: Node, *, truth: bool) -> Fact:
        """Two sides, the one that reads the device first."""
        if operator in MIRRORED and _is_constant(left) and not _is_constant(right):
            left, operator, right = right, MIRRORED[operator], left
        wanted, other, name = _shown(self.value(right)), _name(right), _name(left)
        if name is None and not isinstance(left, Literal):
            return self.other(node, "is true" if truth else "is false")
        return Fact(
            expression=unparse(node),
            name=name or "",
            actual=_shown(self.value(left)),
            relation=operator if truth else _NEGATED[operator],
            wanted=f"{other} {wanted}" if other is not None else wanted,
        )


def _tested(node: Node) -> str | None:
    """The name whose presence a part tests: `has(...)` or `"x" in device.attributes[...]`."""
    if isinstance(node, Select) and node.test:
        return node.field if _is_of_device(node.operand) else None
    if isinstance(node, Call) and node.function == "@in":
        item, container = node.arguments
        if isinstance(item, Literal) and _is_of_device(container):
            of_device = _name(container) in {"attributes", "capacity", None} or _is_domain(container)
            return str(item.value) if of_device else None
    return None


def _is_domain(node: Node) -> bool:
    """Whether a part is `device.attributes[domain]` or `device.capacity[domain]`."""
    if isinstance(node, Call) and node.function in _INDEXING:
        node = node.arguments[0]
    elif isinstance(node, Select):
        node = node.operand
    return (
        isinstance(node, Select)
        and node.field in {"attributes", "capacity"}
        and isinstance(node.operand, Ident)
        and node.operand.name == "device"
    )


def _name(node: Node) -> str | None:
    """The identifier that a part reads from the device, None when it does anything else."""
    if isinstance(node, Call) and node.function in _TRANSPARENT and node.target is not None:
        return _name(node.target)
    if isinstance(node, Call) and node.function in _INDEXING:
        key = node.arguments[1]
        return str(key.value) if isinstance(key, Literal) and _is_of_device(node.arguments[0]) else None
    if isinstance(node, Select) and not node.test and node.constant is None and _is_of_device(node.operand):
        return node.field
    return None


def _is_of_device(node: Node) -> bool:
    while True:
        if isinstance(node, Select) and not node.test:
            node = node.operand
        elif isinstance(node, Call) and node.function in _INDEXING:
            node = node.arguments[0]
        else:
            return isinstance(node, Ident) and node.name == "device"


def _is_constant(node: Node) -> bool:
    return not any(isinstance(each, Comprehension | Ident) for each in walk(node))


def _shown(value: Any) -> str:
    """A value for people: text bare unless that would be unclear."""
    if value is _UNKNOWN:
        return "?"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _short(value) if value and value.isprintable() and " " not in value else f'"{_short(value)}"'
    if isinstance(value, list | tuple):
        return _short("[" + ", ".join(map(_shown, value)) + "]")
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."
