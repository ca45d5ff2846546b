"""What parts of an expression are, without evaluating it: paths into the device, constants, comparisons.

All that reasons about selectors rests on this: warnings, lint, reasons why a selector is false.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias, TypeGuard

from drakit.api import Quantity, QuantityError, Semver, SemverError
from drakit.cel.syntax import Call, Ident, Literal, Node, Select
from drakit.cel.unparse import unparse

__all__ = ["MIRRORED", "Comparison", "Path", "comparison", "constant", "is_computed", "key_of", "path_of"]

Path: TypeAlias = tuple[str, ...]
"""A part of the device, such as (device, attributes, domain, name). A computed key is its text in parentheses."""

MIRRORED: Final = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_RELATIONS: Final = {
    "_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">=", "@in": "in",
    "isGreaterThan": ">", "isLessThan": "<",
}  # fmt: skip


class Comparison(NamedTuple):
    """`left` `relation` `right`; relation is ==, !=, <, <=, >, >= or in."""

    left: Node
    relation: str
    right: Node


def path_of(node: Node) -> Path | None:
    """The part of the device that an expression is; None for anything else, and for optional access."""
    if isinstance(node, Ident):
        return (node.name,) if node.name == "device" else None
    if isinstance(node, Select) and not node.test:
        below = path_of(node.operand)
        return None if below is None else (*below, node.field)
    if isinstance(node, Call) and node.function == "_[_]":
        container, key = node.operands
        below = path_of(container)
        return None if below is None else (*below, key_of(key))
    return None


def key_of(node: Node) -> str:
    """How a key stands in a path: a literal as it is, anything else as its text in parentheses."""
    if isinstance(node, Literal) and isinstance(node.value, str):
        return node.value
    return f"({unparse(node)})"


def is_computed(key: str) -> bool:
    """Whether a part of a path is a computed key and not a name."""
    return key.startswith("(")


def constant(node: Node) -> Any:
    """The value of a literal, or of `quantity()` or `semver()` of one; None for anything else."""
    if isinstance(node, Literal) and isinstance(node.value, (str, bool, int, float)):
        return node.value
    if isinstance(node, Call) and node.function in ("quantity", "semver") and len(node.operands) == 1:
        text = constant(node.operands[0])
        try:
            return _PARSERS[node.function](text) if isinstance(text, str) else None
        except (QuantityError, SemverError):
            return None
    return None


_PARSERS: Final = {"quantity": Quantity.parse, "semver": Semver.parse}


def comparison(node: Node) -> Comparison | None:
    """What a node compares, None when it compares nothing; `a.compareTo(b) < 0` compares a with b."""
    relation = _RELATIONS.get(node.function) if isinstance(node, Call) else None
    if relation is None or not isinstance(node, Call) or len(node.operands) != 2:
        return None
    left, right = node.operands
    if relation in MIRRORED:
        for one, zero, shown in ((left, right, relation), (right, left, MIRRORED[relation])):
            if _is_compare_to(one) and isinstance(zero, Literal) and zero.value == 0:
                return Comparison(one.operands[0], shown, one.operands[1])
    return Comparison(left, relation, right)


def _is_compare_to(node: Node) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.function == "compareTo" and len(node.operands) == 2
