"""What selectors demand of a device, and whether demands can hold together.

Only what stands between `&&` at the top of an expression is looked at: comparisons of one attribute, capacity or field
with a literal. What is not understood demands nothing, so a contradiction found is one.
"""

import operator
from collections.abc import Iterator
from typing import Any

import msgspec

from drakit.api import Quantity, QuantityError
from drakit.cel import CompileError, Environment
from drakit.cel.syntax import Call, Ident, ListNode, Literal, Node, Select

__all__ = ["Fact", "Path", "constant", "demands", "join", "subject"]

Path = tuple[str, ...]

_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


class Fact(msgspec.Struct, frozen=True):
    """One demand: `subject` `relation` `value`; relation is ==, !=, <, <=, >, >= or in (value: a tuple), or never."""

    subject: Path
    relation: str
    value: Any = None

    def __str__(self) -> str:
        if self.relation == "never":
            return "it is constantly false"
        parts = (f".{part}" if part.isidentifier() else f'["{part}"]' for part in self.subject[1:])
        values = self.value if self.relation == "in" else (self.value,)
        shown = ", ".join(map(_shown, values))
        return f"{self.subject[0]}{''.join(parts)} {self.relation} {f'[{shown}]' if self.relation == 'in' else shown}"


def demands(environment: Environment, expression: str) -> Iterator[Fact]:
    """The demands of an expression; none when it does not compile."""
    try:
        root = environment.parse(expression)
    except CompileError:
        return
    yield from _demands(root)


def join(facts: list[Fact], more: Iterator[Fact]) -> tuple[Fact, Fact | None] | None:
    """Add `more` to `facts`; the first of them that cannot hold, with the earlier fact that it contradicts."""
    for fact in more:
        if fact.relation == "never":
            return fact, None
        for earlier in facts:
            if earlier.subject == fact.subject and not _compatible(earlier, fact):
                return fact, earlier
        facts.append(fact)
    return None


def _demands(node: Node) -> Iterator[Fact]:
    if isinstance(node, Call) and node.function == "_&&_":
        for operand in node.operands:
            yield from _demands(operand)
        return
    fact = _fact(node)
    if fact is not None:
        yield fact


def _fact(node: Node) -> Fact | None:
    if isinstance(node, Literal):
        return Fact((), "never") if node.value is False else None
    found = subject(node)
    if found is not None:
        return Fact(found, "==", True)
    if not isinstance(node, Call):
        return None
    operands = node.operands
    if node.function == "!_":
        found = subject(operands[0])
        return None if found is None else Fact(found, "==", False)
    if node.function == "@in":
        return _membership(*operands)
    return _comparison(node.function.strip("_"), operands)


def _membership(element: Node, container: Node) -> Fact | None:
    found = subject(element)
    if found is None or not isinstance(container, ListNode):
        return None
    values = tuple(constant(item) for item in container.elements)
    return None if None in values else Fact(found, "in", values)


def _comparison(relation: str, operands: list[Node]) -> Fact | None:
    if relation not in _MIRRORED or len(operands) != 2:
        return None
    left, right = operands
    if isinstance(left, Call) and left.function == "compareTo" and constant(right) == 0 and len(left.operands) == 2:
        left, right = left.operands  # a.compareTo(b) >= 0 is a >= b
    if subject(left) is None:
        left, right, relation = right, left, _MIRRORED[relation]
    found, value = subject(left), constant(right)
    return None if found is None or value is None else Fact(found, relation, value)


def subject(node: Node) -> Path | None:
    """The part of the device that an expression is, e.g. (device, attributes, domain, name); None for anything else."""
    if isinstance(node, Ident):
        return (node.name,) if node.name == "device" else None
    if isinstance(node, Select) and not node.test:
        below = subject(node.operand)
        return None if below is None else (*below, node.field)
    if isinstance(node, Call) and node.function == "_[_]":
        container, key = node.operands
        below = subject(container)
        if below is not None and isinstance(key, Literal) and isinstance(key.value, str):
            return (*below, key.value)
    return None


def constant(node: Node) -> Any:
    """The value of a literal, or of quantity() of one; None for anything else."""
    if isinstance(node, Literal) and isinstance(node.value, (str, bool, int, float)):
        return node.value
    if isinstance(node, Call) and node.function == "quantity" and len(node.operands) == 1:
        text = constant(node.operands[0])
        try:
            return Quantity.parse(text) if isinstance(text, str) else None
        except QuantityError:
            return None
    return None


def _compatible(one: Fact, other: Fact) -> bool:
    for first, second in ((one, other), (other, one)):
        if first.relation == "==":
            return _holds(first.value, second)
        if first.relation == "in":
            return any(_holds(value, second) for value in first.value)
    return _ranges_meet(one, other)


def _holds(value: Any, fact: Fact) -> bool:
    """Whether a subject that equals `value` can satisfy `fact`."""
    if fact.relation == "==":
        return _equal(value, fact.value)
    if fact.relation == "!=":
        return not _equal(value, fact.value)
    if fact.relation == "in":
        return any(_equal(value, each) for each in fact.value)
    if _sort(value) != _sort(fact.value):
        return False  # such a comparison fails
    return bool(_ORDER[fact.relation](value, fact.value))


def _ranges_meet(one: Fact, other: Fact) -> bool:
    relations = one.relation[:1] + other.relation[:1]
    if relations not in {"<>", "><"} or _sort(one.value) != _sort(other.value):
        return True
    upper, lower = (one, other) if relations == "<>" else (other, one)
    both = upper.relation == "<=" and lower.relation == ">="
    return bool(lower.value < upper.value or (both and lower.value == upper.value))


def _equal(one: Any, other: Any) -> bool:
    return bool(_sort(one) == _sort(other) and one == other)


def _sort(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Quantity):
        return f'quantity("{value}")'
    return f'"{value}"' if isinstance(value, str) else str(value)
