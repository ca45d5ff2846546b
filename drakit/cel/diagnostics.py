"""What can be said about an expression before it meets a device: its type, its cost, and likely mistakes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from drakit.cel.cost import MAX_COST
from drakit.cel.errors import CompileError, Position, locate
from drakit.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, Node, Select, children, walk
from drakit.cel.types import QUANTITY, SEMVER, is_dyn
from drakit.cel.unparse import unparse

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Diagnostics", "Remark", "warnings"]

MAX_LENGTH: Final = 10_240
_VERSION: Final = re.compile(r"v?[0-9]+\.[0-9]+(\.[0-9]+)?([-+][0-9A-Za-z.+-]*)?", re.ASCII)
_NO_GUARDS: Final[frozenset[str]] = frozenset()


class Remark(msgspec.Struct, frozen=True):
    """A likely mistake in a valid expression.

    Attributes:
        code: What kind: `unguarded-attribute`, `always-present`, `version-as-text`, `asymmetric-equality`,
            `version-in-list`, `qualified-identifier`, `cost`, `length`.
        position: Where.
        message: What will happen, and the way out.
    """

    code: str
    position: Position
    message: str


class Diagnostics(msgspec.Struct, frozen=True):
    """The answer of `Environment.check`: either an error, or type, cost and warnings."""

    expression: str
    type: str | None
    cost: int | None
    error: CompileError | None
    warnings: tuple[Remark, ...]


def warnings(root: Node, expression: str, cost: int) -> tuple[Remark, ...]:
    """All warnings about a typed tree, in order of their place."""
    found: list[tuple[int, str, str]] = []
    if len(expression.encode("utf-8", "surrogatepass")) > MAX_LENGTH:
        found.append((0, "length", f"API validation refuses expressions longer than {MAX_LENGTH} bytes"))
    if cost > MAX_COST:
        found.append((0, "cost", f"API validation refuses it: estimated cost {cost} exceeds the limit of {MAX_COST}"))
    report: Callable[[Node, str, str], None] = lambda node, code, text: found.append((node.offset, code, text))  # noqa: E731
    _unguarded(root, _NO_GUARDS, report)
    for node in walk(root):
        for rule in (_always_present, _equality, _membership, _qualified):
            rule(node, report)
    unique = dict.fromkeys(sorted(found))
    return tuple(Remark(code, locate(expression, offset), text) for offset, code, text in unique)


# --- selections of the device


def _is_device_field(node: Node, *fields: str) -> bool:
    return (
        isinstance(node, Select)
        and not node.test
        and node.field in fields
        and isinstance(node.operand, Ident)
        and node.operand.name == "device"
    )


def _selection(node: Node) -> tuple[Node, Node | str] | None:
    """Operand and key of a plain selection or index."""
    if isinstance(node, Select) and node.constant is None:
        return node.operand, node.field
    if isinstance(node, Call) and node.function == "_[_]":
        return node.arguments[0], node.arguments[1]
    return None


def _attribute(node: Node) -> str | None:
    """The text of `device.attributes[d].id` or of a capacity, or None when the node is no such thing."""
    if isinstance(node, Select) and node.test:
        return None
    outer = _selection(node)
    inner = _selection(outer[0]) if outer is not None else None
    if outer is None or inner is None or not _is_device_field(inner[0], "attributes", "capacity"):
        return None
    return f"{_key(inner[0])}[{_key(inner[1])}][{_key(outer[1])}]"


def _key(part: Node | str) -> str:
    if isinstance(part, str):
        return part
    return str(part.value) if isinstance(part, Literal) else unparse(part)


def _guard(node: Node) -> str | None:
    """The attribute whose presence the node tests."""
    if isinstance(node, Select) and node.test:
        inner = _selection(node.operand)
        if inner is not None and _is_device_field(inner[0], "attributes", "capacity"):
            return f"{_key(inner[0])}[{_key(inner[1])}][{node.field}]"
    if isinstance(node, Call) and node.function == "@in":
        inner = _selection(node.arguments[1])
        if inner is not None and _is_device_field(inner[0], "attributes", "capacity"):
            return f"{_key(inner[0])}[{_key(inner[1])}][{_key(node.arguments[0])}]"
    return None


def _terms(node: Node, function: str) -> list[Node]:
    if isinstance(node, Call) and node.function == function:
        return [term for argument in node.arguments for term in _terms(argument, function)]
    return [node]


def _holds(node: Node) -> frozenset[str]:
    """What is present when the node is true."""
    return frozenset(guard for term in _terms(node, "_&&_") if (guard := _guard(term)) is not None)


def _fails(node: Node) -> frozenset[str]:
    """What is present when the node is false."""
    found = set()
    for term in _terms(node, "_||_"):
        if isinstance(term, Call) and term.function == "!_" and (guard := _guard(term.arguments[0])) is not None:
            found.add(guard)
    return frozenset(found)


def _unguarded(node: Node, guards: frozenset[str], report: Callable[[Node, str, str], None]) -> None:
    name = _attribute(node)
    if name is not None and name not in guards:
        report(
            node,
            "unguarded-attribute",
            f"fails on devices without {name}, which stops scheduling of the pod: guard it with has() or use .? and "
            "orValue()",
        )
    if isinstance(node, Call) and node.function in ("_&&_", "_||_"):
        more = guards | (_holds(node) if node.function == "_&&_" else _fails(node))
        for argument in node.arguments:
            _unguarded(argument, more, report)
    elif isinstance(node, Call) and node.function == "_?_:_":
        condition, first, second = node.arguments
        _unguarded(condition, guards, report)
        _unguarded(first, guards | _holds(condition), report)
        _unguarded(second, guards | _fails(condition), report)
    elif isinstance(node, Comprehension):
        for part in (node.range, node.initial, node.step, node.result):
            _unguarded(part, guards, report)
    elif not (isinstance(node, Call) and node.function in ("_?._", "_[?_]")):
        for child in children(node):
            if not (isinstance(node, Select) and node.test and child is node.operand):
                _unguarded(child, guards, report)


# --- single nodes


def _always_present(node: Node, report: Callable[[Node, str, str], None]) -> None:
    tested = isinstance(node, Select) and node.test and _is_device_field(node.operand, "attributes", "capacity")
    optional = (
        isinstance(node, Call)
        and node.function in ("_?._", "_[?_]")
        and _is_device_field(node.arguments[0], "attributes", "capacity")
    )
    if tested or optional:
        report(
            node,
            "always-present",
            'an unknown domain is an empty map, so this is always present: use "domain" in device.attributes',
        )


def _is_version(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str) and _VERSION.fullmatch(node.value) is not None


def _is_computed(node: Node) -> bool:
    return isinstance(node, Call) and node.function in ("add", "sub") and node.type == QUANTITY


def _equality(node: Node, report: Callable[[Node, str, str], None]) -> None:
    if not isinstance(node, Call) or node.function not in ("_==_", "_!=_"):
        return
    left, right = node.arguments
    if is_dyn(left.type) and _is_version(right):
        report(
            node,
            "version-as-text",
            "a version attribute cannot be compared with a string (no such overload): compare with semver(...)",
        )
    elif is_dyn(right.type) and _is_version(left):
        report(
            node,
            "version-as-text",
            "a string never equals a version attribute: put the attribute on the left and compare with semver(...)",
        )
    elif _is_computed(right):
        report(
            node,
            "asymmetric-equality",
            "a result of add() or sub() on the right of == is an error: put it on the left, or use compareTo()",
        )
    elif left.type in (SEMVER, QUANTITY) and is_dyn(right.type):
        report(
            node,
            "asymmetric-equality",
            f"{left.type} on the left of == fails for values of other types: put the attribute on the left",
        )


def _membership(node: Node, report: Callable[[Node, str, str], None]) -> None:
    if not isinstance(node, Call) or node.function != "@in":
        return
    item, container = node.arguments
    if is_dyn(item.type) and isinstance(container, ListNode) and any(map(_is_version, container.elements)):
        report(
            node,
            "version-in-list",
            "looking for a version attribute in a list of constants fails as a whole: compare with semver(...)",
        )


def _qualified(node: Node, report: Callable[[Node, str, str], None]) -> None:
    if not isinstance(node, Call) or node.function not in ("_[_]", "_[?_]"):
        return
    operand, key = node.arguments
    if _is_device_field(operand, "attributes", "capacity") and isinstance(key, Literal) and "/" in str(key.value):
        domain, _, identifier = str(key.value).partition("/")
        report(
            node,
            "qualified-identifier",
            f'domain and identifier are looked up one after the other: ["{domain}"].{identifier}',
        )
