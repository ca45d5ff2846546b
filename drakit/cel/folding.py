"""Constants: what upstream computes when it plans a program, with the compile errors that come of it (quirk 6)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from drakit.cel.errors import CompileError, EvaluationError
from drakit.cel.functions import dispatch
from drakit.cel.functions.regex import CONSTANT, PatternError, compile_pattern
from drakit.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from drakit.cel.values import Map, TypeValue, Uint, tag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drakit.cel.declarations import Function

__all__ = ["Constants", "fold", "membership"]

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_UNDEFINED: Final = frozenset({"kubernetes.DRADevice"})
_ABSENT: Final = object()


class Constants:
    """The nodes whose value is known before any evaluation, and compiled patterns by call."""

    __slots__ = ("functions", "patterns", "values")

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.functions = functions
        self.values: dict[Node, Any] = {}
        self.patterns: dict[Node, Any] = {}

    def get(self, node: Node, default: Any = None) -> Any:
        """The constant value of a node."""
        return self.values.get(node, default)

    def __contains__(self, node: Node) -> bool:
        return node in self.values


def fold(root: Node, functions: Mapping[str, Function]) -> Constants:
    """All constants of a checked tree.

    Raises:
        CompileError: A constant conversion fails or a constant pattern is no regular expression.
    """
    constants = Constants(functions)
    try:
        _FOLD[root.__class__](root, constants)
    except (EvaluationError, PatternError) as error:
        raise CompileError(f"program instantiation failed: {error}") from None
    return constants


def _literal(node: Literal, constants: Constants) -> None:
    constants.values[node] = node.value


def _ident(node: Ident | Select, constants: Constants) -> None:
    if node.constant is None:
        return
    name = node.constant.name
    if name in _UNDEFINED:
        raise EvaluationError(f"reference to undefined type: {name}")
    constants.values[node] = TypeValue(name)


def _select(node: Select, constants: Constants) -> None:
    if node.constant is not None:
        _ident(node, constants)
    else:
        _FOLD[node.operand.__class__](node.operand, constants)


def _call(node: Call, constants: Constants) -> None:
    operands = node.operands
    for operand in operands:
        _FOLD[operand.__class__](operand, constants)
    function = node.function
    if function in CONSTANT and len(operands) >= 2:
        pattern = constants.get(operands[1])
        if pattern.__class__ is str:
            constants.patterns[node] = compile_pattern(pattern)
    elif function in _CONVERSIONS and len(operands) == 1 and operands[0] in constants:
        convert = dispatch(constants.functions[function], node.overloads)
        constants.values[node] = convert(constants.get(operands[0]))
    elif function == "@in" and node.overloads == ("in_list",) and constants.get(operands[1], _ABSENT) == []:
        constants.values[node] = False


def _list(node: ListNode, constants: Constants) -> None:
    for element in node.elements:
        _FOLD[element.__class__](element, constants)
    if not node.optionals and all(element in constants for element in node.elements):
        constants.values[node] = [constants.get(element) for element in node.elements]


def _map(node: MapNode, constants: Constants) -> None:
    constant = True
    for entry in node.entries:
        for part in (entry.key, entry.value):
            _FOLD[part.__class__](part, constants)
            constant = constant and part in constants
        constant = constant and not entry.optional
    if constant:
        constants.values[node] = Map(
            (tag(constants.get(entry.key)), constants.get(entry.value)) for entry in node.entries
        )


def _struct(node: StructNode, constants: Constants) -> None:
    for entry in node.entries:
        _FOLD[entry.value.__class__](entry.value, constants)


def _comprehension(node: Comprehension, constants: Constants) -> None:
    for part in (node.initial, node.range, node.condition, node.step, node.result):
        _FOLD[part.__class__](part, constants)


_FOLD: Final[dict[type, Callable[[Any, Constants], None]]] = {
    Literal: _literal,
    Ident: _ident,
    Select: _select,
    Call: _call,
    ListNode: _list,
    MapNode: _map,
    StructNode: _struct,
    Comprehension: _comprehension,
}
_PRIMITIVE: Final = frozenset({bool, int, Uint, float, str})


def membership(node: Call, constants: Constants) -> frozenset[Any] | None:
    """For `x in [constants]`: the tagged values that are members, as upstream precomputes them (quirk 4)."""
    if node.function != "@in" or node.overloads != ("in_list",):
        return None
    values = constants.get(node.arguments[1], _ABSENT)
    if values is _ABSENT or any(value.__class__ not in _PRIMITIVE for value in values):
        return None
    members: set[Any] = set()
    for value in values:
        members.add(tag(value))
        kind = value.__class__
        if kind is float:
            if not math.isnan(value) and abs(value) < 2.0**64 and value == int(value):
                members.update({(int, int(value)), (Uint, int(value))})
        elif kind is int or kind is Uint:
            members.update({(float, float(value)), (int, int(value)), (Uint, int(value))})
    return frozenset(members)
