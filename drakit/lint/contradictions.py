"""What selectors demand of a device, and whether demands can hold together.

Only what stands between `&&` at the top of an expression is looked at: comparisons of one attribute, capacity or field
with a literal. What is not understood demands nothing, so a contradiction found is one.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import msgspec

from drakit.api import Quantity, Semver
from drakit.cel.paths import MIRRORED, Path, comparison, constant, is_computed, path_of
from drakit.cel.syntax import Call, ListNode, Literal, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Fact", "demands", "join"]

_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


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


def demands(root: Node | None) -> Iterator[Fact]:
    """The demands of an expression; none of one that does not parse."""
    if root is not None:
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
    found = _subject(node)
    if found is not None:
        return Fact(found, "==", True)
    if not isinstance(node, Call):
        return None
    if node.function == "!_":
        found = _subject(node.operands[0])
        return None if found is None else Fact(found, "==", False)
    compared = comparison(node)
    if compared is None:
        return None
    left, relation, right = compared
    return _membership(left, right) if relation == "in" else _comparison(left, relation, right)


def _membership(element: Node, container: Node) -> Fact | None:
    found = _subject(element)
    if found is None or not isinstance(container, ListNode):
        return None
    values = tuple(constant(item) for item in container.elements)
    return None if None in values else Fact(found, "in", values)


def _comparison(left: Node, relation: str, right: Node) -> Fact | None:
    if _subject(left) is None:
        left, right, relation = right, left, MIRRORED[relation]
    found, value = _subject(left), constant(right)
    return None if found is None or value is None else Fact(found, relation, value)


def _subject(node: Node) -> Path | None:
    """The part of the device that an expression is, if its keys are no computed ones."""
    path = path_of(node)
    return None if path is None or any(map(is_computed, path)) else path


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
    if isinstance(value, Quantity | Semver):
        return f'{type(value).__name__.lower()}("{value}")'
    return f'"{value}"' if isinstance(value, str) else str(value)
