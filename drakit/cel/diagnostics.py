"""What can be said about an expression before it meets a device: its type, its cost, and likely mistakes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from drakit.cel.cost import MAX_COST
from drakit.cel.errors import CompileError, Position, locate
from drakit.cel.guards import reads
from drakit.cel.paths import Path, path_of
from drakit.cel.syntax import Call, ListNode, Literal, Node, Select, walk
from drakit.cel.types import QUANTITY, SEMVER, is_dyn

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Diagnostics", "Remark", "warnings"]

MAX_LENGTH: Final = 10_240
_VERSION: Final = re.compile(r"v?[0-9]+\.[0-9]+(\.[0-9]+)?([-+][0-9A-Za-z.+-]*)?", re.ASCII)
_MAPS: Final = frozenset({("device", "attributes"), ("device", "capacity")})


class Remark(msgspec.Struct, frozen=True):
    """A likely mistake in a valid expression.

    Attributes:
        code: What kind: `unguarded-attribute`, `always-present`, `version-as-text`, `asymmetric-equality`,
            `version-in-list`, `qualified-identifier`, `cost`, `length`.
        position: Where.
        message: What will happen, and the way out.
        attribute: The attribute that it is about, (device, attributes, domain, name), if it is about one.
    """

    code: str
    position: Position
    message: str
    attribute: Path = ()


class Diagnostics(msgspec.Struct, frozen=True):
    """The answer of `Environment.check`: either an error, or type, cost and warnings."""

    expression: str
    type: str | None
    cost: int | None
    error: CompileError | None
    warnings: tuple[Remark, ...]


def warnings(root: Node, expression: str, cost: int) -> tuple[Remark, ...]:
    """All warnings about a typed tree, in order of their place."""
    found: list[_Found] = []
    if len(expression.encode("utf-8", "surrogatepass")) > MAX_LENGTH:
        found.append(_Found(0, "length", f"API validation refuses expressions longer than {MAX_LENGTH} bytes"))
    if cost > MAX_COST:
        text = f"API validation refuses it: estimated cost {cost} exceeds the limit of {MAX_COST}"
        found.append(_Found(0, "cost", text))
    found += _unguarded(root)
    for node in walk(root):
        for rule in (_always_present, _equality, _membership, _qualified):
            found += rule(node)
    return tuple(
        Remark(code, locate(expression, offset), text, attribute)
        for offset, code, text, attribute in dict.fromkeys(sorted(found))
    )


class _Found(NamedTuple):
    offset: int
    code: str
    message: str
    attribute: Path = ()


def _unguarded(root: Node) -> Iterator[_Found]:
    for read in reads(root, trust_drivers=False):
        yield _Found(
            read.offset,
            "unguarded-attribute",
            f"fails on devices without {read.map}[{read.domain}][{read.name}], which stops scheduling of the pod: "
            "guard it with has() or use .? and orValue()",
            ("device", read.map, read.domain, read.name),
        )


# --- single nodes


def _always_present(node: Node) -> Iterator[_Found]:
    tested = isinstance(node, Select) and node.test and path_of(node.operand) in _MAPS
    optional = isinstance(node, Call) and node.function in ("_?._", "_[?_]") and path_of(node.arguments[0]) in _MAPS
    if tested or optional:
        yield _Found(
            node.offset,
            "always-present",
            'an unknown domain is an empty map, so this is always present: use "domain" in device.attributes',
        )


def _is_version(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str) and _VERSION.fullmatch(node.value) is not None


def _is_computed(node: Node) -> bool:
    return isinstance(node, Call) and node.function in ("add", "sub") and node.type == QUANTITY


def _equality(node: Node) -> Iterator[_Found]:
    if not isinstance(node, Call) or node.function not in ("_==_", "_!=_"):
        return
    left, right = node.arguments
    if is_dyn(left.type) and _is_version(right):
        yield _Found(
            node.offset,
            "version-as-text",
            "a version attribute cannot be compared with a string (no such overload): compare with semver(...)",
            path_of(left) or (),
        )
    elif is_dyn(right.type) and _is_version(left):
        yield _Found(
            node.offset,
            "version-as-text",
            "a string never equals a version attribute: put the attribute on the left and compare with semver(...)",
            path_of(right) or (),
        )
    elif _is_computed(right):
        yield _Found(
            node.offset,
            "asymmetric-equality",
            "a result of add() or sub() on the right of == is an error: put it on the left, or use compareTo()",
            path_of(left) or (),
        )
    elif left.type in (SEMVER, QUANTITY) and is_dyn(right.type):
        yield _Found(
            node.offset,
            "asymmetric-equality",
            f"{left.type} on the left of == fails for values of other types: put the attribute on the left",
            path_of(right) or (),
        )


def _membership(node: Node) -> Iterator[_Found]:
    if not isinstance(node, Call) or node.function != "@in":
        return
    item, container = node.arguments
    if is_dyn(item.type) and isinstance(container, ListNode) and any(map(_is_version, container.elements)):
        yield _Found(
            node.offset,
            "version-in-list",
            "looking for a version attribute in a list of constants fails as a whole: compare with semver(...)",
            path_of(item) or (),
        )


def _qualified(node: Node) -> Iterator[_Found]:
    if not isinstance(node, Call) or node.function not in ("_[_]", "_[?_]"):
        return
    operand, key = node.arguments
    if path_of(operand) in _MAPS and isinstance(key, Literal) and "/" in str(key.value):
        domain, _, identifier = str(key.value).partition("/")
        yield _Found(
            node.offset,
            "qualified-identifier",
            f'domain and identifier are looked up one after the other: ["{domain}"].{identifier}',
        )
