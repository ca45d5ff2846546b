"""Macros: calls that the parser replaces by presence tests and comprehensions, as upstream expands them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from drakit.cel.syntax import Call, Comprehension, Entry, Ident, ListNode, Literal, Macro, MapNode, Node, Select
from drakit.cel.syntax import StructNode as _Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ACCUMULATOR", "BIND", "LISTS", "OPTIONALS", "STANDARD", "TWO_VARIABLES", "MacroError", "Macros"]

ACCUMULATOR: Final = "__result__"
_HIDDEN: Final = "@result"
UNUSED: Final = "#unused"
_SORT_INPUT: Final = "@__sortBy_input__"
_OVERWRITES: Final = "iteration variable overwrites accumulator variable"

Expander: TypeAlias = "Callable[[int, Node | None, list[Node]], Node | None]"
Macros: TypeAlias = "Mapping[tuple[str, int, bool], Expander]"


class MacroError(Exception):
    """The call looks like the macro, its arguments do not."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


def _has(offset: int, _: Node | None, arguments: list[Node]) -> Node:
    operand = arguments[0]
    if not isinstance(operand, Select) or operand.test:
        raise MacroError(operand.offset, "invalid argument to has() macro")
    return Select(offset, operand.operand, operand.field, test=True)


def _variable(node: Node, complaint: str = "argument must be a simple name") -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.offset, complaint)
    return node.name


def _iteration_variable(node: Node, complaint: str) -> str:
    name = _variable(node, complaint)
    if name in (ACCUMULATOR, _HIDDEN):
        raise MacroError(node.offset, _OVERWRITES)
    return name


def _pair(arguments: list[Node]) -> tuple[str, str]:
    first, second = _variable(arguments[0]), _variable(arguments[1])
    if first == second:
        raise MacroError(arguments[1].offset, f"duplicate variable name: {first}")
    for node, name in ((arguments[0], first), (arguments[1], second)):
        if name in (ACCUMULATOR, _HIDDEN):
            raise MacroError(node.offset, _OVERWRITES)
    return first, second


class _Loop(NamedTuple):
    """What the macros that loop have in common."""

    offset: int
    kind: str
    target: Node | None
    names: tuple[str, str]
    where: Node | None = None


def _quantifier(kind: str) -> Expander:
    def expand(offset: int, target: Node | None, arguments: list[Node]) -> Node:
        name = _iteration_variable(arguments[0], "argument must be a simple name")
        return _quantify(_Loop(offset, kind, target, (name, "")), arguments[1])

    return expand


def _quantifier_of_two(kind: str) -> Expander:
    def expand(offset: int, target: Node | None, arguments: list[Node]) -> Node:
        return _quantify(_Loop(offset, kind, target, _pair(arguments)), arguments[2])

    return expand


def _quantify(loop: _Loop, predicate: Node) -> Node:
    offset, kind, target, names, _ = loop

    def accumulated() -> Node:
        return Ident(offset, ACCUMULATOR)

    initial: Node
    condition: Node
    result: Node = accumulated()
    if kind == "all":
        initial = Literal(offset, True)
        condition = Call(offset, "@not_strictly_false", None, [accumulated()])
        step = Call(offset, "_&&_", None, [accumulated(), predicate])
    elif kind == "exists":
        initial = Literal(offset, False)
        condition = Call(offset, "@not_strictly_false", None, [Call(offset, "!_", None, [accumulated()])])
        step = Call(offset, "_||_", None, [accumulated(), predicate])
    else:
        initial = Literal(offset, 0)
        condition = Literal(offset, True)
        counted = Call(offset, "_+_", None, [accumulated(), Literal(offset, 1)])
        step = Call(offset, "_?_:_", None, [predicate, counted, accumulated()])
        result = Call(offset, "_==_", None, [accumulated(), Literal(offset, 1)])
    assert target is not None
    return Comprehension(
        offset,
        kind,
        target,
        variable=names[0],
        variable2=names[1],
        accumulator=ACCUMULATOR,
        initial=initial,
        condition=condition,
        step=step,
        result=result,
    )


def _collect(loop: _Loop, item: Node) -> Node:
    """`map`, `filter`, `transformList`: append items to a list."""
    step = Call(loop.offset, "_+_", None, [Ident(loop.offset, ACCUMULATOR), ListNode(loop.offset, [item])])
    return _filtered(loop, ListNode(loop.offset, []), step)


def _filtered(loop: _Loop, initial: Node, step: Node) -> Node:
    offset, kind, target, names, where = loop
    if where is not None:
        step = Call(offset, "_?_:_", None, [where, step, Ident(offset, ACCUMULATOR)])
    assert target is not None
    return Comprehension(
        offset,
        kind,
        target,
        variable=names[0],
        variable2=names[1],
        accumulator=ACCUMULATOR,
        initial=initial,
        condition=Literal(offset, True),
        step=step,
        result=Ident(offset, ACCUMULATOR),
    )


def _map(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    name = _iteration_variable(arguments[0], "argument is not an identifier")
    where = arguments[1] if len(arguments) == 3 else None
    return _collect(_Loop(offset, "map", target, (name, ""), where), arguments[-1])


def _filter(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    name = _iteration_variable(arguments[0], "argument is not an identifier")
    return _collect(_Loop(offset, "filter", target, (name, ""), arguments[1]), arguments[0])


def _transform_list(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    where = arguments[2] if len(arguments) == 4 else None
    return _collect(_Loop(offset, "map", target, _pair(arguments), where), arguments[-1])


def _transform_map(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    names = _pair(arguments)
    where = arguments[2] if len(arguments) == 4 else None
    step = Call(offset, "cel.@mapInsert", None, [Ident(offset, ACCUMULATOR), Ident(offset, names[0]), arguments[-1]])
    return _filtered(_Loop(offset, "transformMap", target, names, where), MapNode(offset, []), step)


def _transform_map_entry(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    names = _pair(arguments)
    where = arguments[2] if len(arguments) == 4 else None
    step = Call(offset, "cel.@mapInsert", None, [Ident(offset, ACCUMULATOR), arguments[-1]])
    return _filtered(_Loop(offset, "transformMapEntry", target, names, where), MapNode(offset, []), step)


def _binding(offset: int, name: str, initial: Node, result: Node) -> Comprehension:
    return Comprehension(
        offset,
        "bind",
        ListNode(offset, []),
        variable=UNUSED,
        variable2="",
        accumulator=name,
        initial=initial,
        condition=Literal(offset, False),
        step=Ident(offset, name),
        result=result,
    )


def _bind(offset: int, target: Node | None, arguments: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    name = _variable(arguments[0], "cel.bind() variable names must be simple identifiers")
    return _binding(offset, name, arguments[1], arguments[2])


def _optional_map(function: str) -> Expander:
    def expand(offset: int, target: Node | None, arguments: list[Node]) -> Node:
        name = _variable(arguments[0], f"{function}() variable name must be a simple identifier")
        assert target is not None
        value = Call(offset, "value", copy(target, offset), [])
        body: Node = _binding(offset, name, value, arguments[1])
        if function == "optMap":
            body = Call(offset, "optional.of", None, [body])
        present = Call(offset, "hasValue", target, [])
        return Call(offset, "_?_:_", None, [present, body, Call(offset, "optional.none", None, [])])

    return expand


def _sort_by(offset: int, target: Node | None, arguments: list[Node]) -> Node:
    if not isinstance(target, (ListNode, Select, Ident, Comprehension, Call)):
        raise MacroError(
            target.offset if target is not None else offset,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    keys = _map(offset, Ident(offset, _SORT_INPUT), arguments)
    sort = Call(offset, "@sortByAssociatedKeys", Ident(offset, _SORT_INPUT), [keys])
    return _binding(offset, _SORT_INPUT, target, sort)


STANDARD: Final[Macros] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all"),
    ("exists", 2, True): _quantifier("exists"),
    ("exists_one", 2, True): _quantifier("exists_one"),
    ("existsOne", 2, True): _quantifier("exists_one"),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
}
BIND: Final[Macros] = {("bind", 3, True): _bind}
OPTIONALS: Final[Macros] = {
    ("optMap", 2, True): _optional_map("optMap"),
    ("optFlatMap", 2, True): _optional_map("optFlatMap"),
}
LISTS: Final[Macros] = {("sortBy", 2, True): _sort_by}
TWO_VARIABLES: Final[Macros] = {
    ("all", 3, True): _quantifier_of_two("all"),
    ("exists", 3, True): _quantifier_of_two("exists"),
    ("existsOne", 3, True): _quantifier_of_two("exists_one"),
    ("exists_one", 3, True): _quantifier_of_two("exists_one"),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
}


def expand(macros: Macros, offset: int, function: str, target: Node | None, arguments: list[Node]) -> Node | None:
    """The expansion of a call, tagged with the call it came from; None when no macro matches."""
    expander = macros.get((function, len(arguments), target is not None))
    if expander is None:
        return None
    node = expander(offset, target, arguments)
    if node is not None:
        node.macro = Macro(function, target, arguments)
    return node


def copy(node: Node, offset: int) -> Node:
    """A copy with nodes of its own, at the same places; entries get the macro's place, as upstream's do."""
    result = _copy(node, offset)
    result.macro = node.macro
    return result


def _copy(node: Node, offset: int) -> Node:
    match node:
        case Literal():
            return Literal(node.offset, node.value)
        case Ident():
            return Ident(node.offset, node.name)
        case Select():
            return Select(node.offset, copy(node.operand, offset), node.field, test=node.test)
        case Call():
            target = None if node.target is None else copy(node.target, offset)
            return Call(node.offset, node.function, target, [copy(each, offset) for each in node.arguments])
        case ListNode():
            return ListNode(node.offset, [copy(each, offset) for each in node.elements], node.optionals)
        case MapNode():
            return MapNode(node.offset, _copy_entries(node.entries, offset))
        case _Struct():
            return _Struct(node.offset, node.name, _copy_entries(node.entries, offset))
        case Comprehension():
            return Comprehension(
                node.offset,
                node.kind,
                copy(node.range, offset),
                variable=node.variable,
                variable2=node.variable2,
                accumulator=node.accumulator,
                initial=copy(node.initial, offset),
                condition=copy(node.condition, offset),
                step=copy(node.step, offset),
                result=copy(node.result, offset),
            )


def _copy_entries(entries: list[Entry], offset: int) -> list[Entry]:
    return [Entry(offset, copy(each.key, offset), copy(each.value, offset), optional=each.optional) for each in entries]
