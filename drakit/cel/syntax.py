"""The nodes of a parsed expression; the checker writes types and overloads onto them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drakit.cel.types import Type

__all__ = [
    "Call",
    "Comprehension",
    "Entry",
    "Ident",
    "ListNode",
    "Literal",
    "Macro",
    "MapNode",
    "Node",
    "Select",
    "StructNode",
    "walk",
]

Node: TypeAlias = "Literal | Ident | Select | Call | ListNode | MapNode | StructNode | Comprehension"


class Macro:
    """The call that a node was expanded from: for printing, diagnostics, code generation."""

    __slots__ = ("arguments", "name", "target")

    def __init__(self, name: str, target: Node | None, arguments: Sequence[Node]) -> None:
        self.name = name
        self.target = target
        self.arguments = arguments


class _Base:
    __slots__ = ("macro", "offset", "type")

    offset: int
    type: Type
    macro: Macro | None

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.macro = None


class Literal(_Base):
    """A constant: None, bool, int, Uint, float, str or bytes."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: Any) -> None:
        self.offset = offset
        self.macro = None
        self.value = value


class Ident(_Base):
    """A name; `constant` is the type it denotes when it names a type."""

    __slots__ = ("constant", "name")

    def __init__(self, offset: int, name: str) -> None:
        self.offset = offset
        self.macro = None
        self.name = name
        self.constant: Type | None = None


class Select(_Base):
    """`operand.field`; as a presence test it is what `has()` leaves; `constant` as in `Ident`."""

    __slots__ = ("constant", "field", "operand", "test")

    def __init__(self, offset: int, operand: Node, field: str, *, test: bool = False) -> None:
        self.offset = offset
        self.macro = None
        self.operand = operand
        self.field = field
        self.test = test
        self.constant: Type | None = None


class Call(_Base):
    """A function, method or operator; `overloads` are the candidates that the checker left."""

    __slots__ = ("arguments", "function", "overloads", "target")

    def __init__(self, offset: int, function: str, target: Node | None, arguments: list[Node]) -> None:
        self.offset = offset
        self.macro = None
        self.function = function
        self.target = target
        self.arguments = arguments
        self.overloads: tuple[str, ...] = ()

    @property
    def operands(self) -> list[Node]:
        """The target, if any, and the arguments."""
        return self.arguments if self.target is None else [self.target, *self.arguments]


class ListNode(_Base):
    """`[a, ?b]`; `optionals` are the indices of optional elements."""

    __slots__ = ("elements", "optionals")

    def __init__(self, offset: int, elements: list[Node], optionals: frozenset[int] = frozenset()) -> None:
        self.offset = offset
        self.macro = None
        self.elements = elements
        self.optionals = optionals


class Entry:
    """One entry of a map or message literal."""

    __slots__ = ("key", "offset", "optional", "value")

    def __init__(self, offset: int, key: Node, value: Node, *, optional: bool) -> None:
        self.offset = offset
        self.key = key
        self.value = value
        self.optional = optional


class MapNode(_Base):
    """`{k: v, ?k: v}`."""

    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[Entry]) -> None:
        self.offset = offset
        self.macro = None
        self.entries = entries


class StructNode(_Base):
    """`Name{field: value}`; keys are literals."""

    __slots__ = ("entries", "name")

    def __init__(self, offset: int, name: str, entries: list[Entry]) -> None:
        self.offset = offset
        self.macro = None
        self.name = name
        self.entries = entries


class Comprehension(_Base):
    """The fold that macros expand to; `kind` names the macro's shape for code generation."""

    __slots__ = ("accumulator", "condition", "initial", "kind", "range", "result", "step", "variable", "variable2")

    def __init__(
        self,
        offset: int,
        kind: str,
        range: Node,
        *,
        variable: str,
        variable2: str,
        accumulator: str,
        initial: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        self.offset = offset
        self.macro = None
        self.kind = kind
        self.range = range
        self.variable = variable
        self.variable2 = variable2
        self.accumulator = accumulator
        self.initial = initial
        self.condition = condition
        self.step = step
        self.result = result


def children(node: Node) -> Sequence[Node]:
    """The direct sub-expressions, in evaluation order."""
    kind = node.__class__
    if kind is Call:
        return node.operands  # type: ignore[union-attr]
    if isinstance(node, Select):
        return () if node.constant is not None else (node.operand,)
    if kind is ListNode:
        return node.elements  # type: ignore[union-attr]
    if kind is StructNode:
        return [entry.value for entry in node.entries]  # type: ignore[union-attr]
    if kind is MapNode:
        return [part for entry in node.entries for part in (entry.key, entry.value)]  # type: ignore[union-attr]
    if isinstance(node, Comprehension):
        return node.range, node.initial, node.condition, node.step, node.result
    return ()


def walk(root: Node) -> list[Node]:
    """Every node, without recursion, parents before children, in the order of the text."""
    found: list[Node] = []
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        found.append(node)
        below = children(node)
        if below:
            stack.extend(reversed(below))
    return found
