"""The static estimate: an upper bound of the cost of an expression, which API validation holds against the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from drakit.cel.cost import ranges, rules
from drakit.cel.cost.ranges import FREE, LIST_COST, MAP_COST, ONE, STRING_FACTOR, STRUCT_COST, TOP, UNKNOWN, Range
from drakit.cel.cost.rules import Estimate
from drakit.cel.cost.sizes import EMPTY, Path, device_size
from drakit.cel.macros import ACCUMULATOR
from drakit.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from drakit.cel.types import Type

__all__ = ["estimate"]

_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_LOGIC: Final = frozenset({"logical_and", "logical_or"})
_ORDERED: Final = frozenset(
    [f"{name}_{kind}" for name in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")]
    + ["equals", "not_equals"]
)


class _Entries(NamedTuple):
    """The sizes inside a list or map."""

    kind: str
    key: Range
    value: Range


class _Local(NamedTuple):
    path: Path
    size: Range | None
    entries: _Entries | None


class _Operand:
    """An operand of a call, as the rules want it."""

    __slots__ = ("_estimator", "computed", "node", "path", "type")

    def __init__(
        self, estimator: _Estimator, node: Node | None, type: Type, path: Path, computed: Range | None
    ) -> None:
        self._estimator = estimator
        self.node = node
        self.type = type
        self.path = path
        self.computed = computed

    def size(self) -> Range:
        if self.computed is not None:
            return self.computed
        return device_size(self.path.parts()) or UNKNOWN

    def known(self) -> Range:
        """The size without asking for the path, as CEL's own rules do."""
        return UNKNOWN if self.computed is None else self.computed

    def element(self) -> _Operand | None:
        if not self.type.parameters:
            return None
        parts = self.path.parts()
        path = Path([*parts, "@items"], len(parts) + 1, len(parts) + 1) if parts else EMPTY
        return _Operand(self._estimator, None, self.type.parameters[0], path, None)


def estimate(root: Node, *, list_costs: bool = True) -> Range:
    """The least and most that a checked tree can cost.

    Args:
        root: The tree.
        list_costs: Whether the lists library (version 3) and its costs are in the environment.
    """
    return _Estimator(rules.EXTENSIONS | rules.LISTS if list_costs else rules.EXTENSIONS).cost(root)


class _Estimator:
    def __init__(self, extensions: dict[str, Any]) -> None:
        self.extensions = extensions
        self.paths: dict[Node, Path] = {}
        self.sizes: dict[Node, Range] = {}
        self.entries: dict[Node, _Entries] = {}
        self.locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        return _COST[node.__class__](self, node)

    # --- paths and sizes

    def path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            found = self.locals.get(node.name)
            if found:
                return found[-1].path
        return self.paths.get(node, EMPTY)

    def operand(self, node: Node) -> _Operand:
        path = self.path(node)
        if path.length and path.parts()[0] == ACCUMULATOR:
            path = EMPTY
        return _Operand(self, node, node.type, path, self.size(node))

    def size(self, node: Node) -> Range | None:
        known = self.sizes.get(node)
        if known is not None:
            return known
        kind = node.__class__
        if isinstance(node, Literal):
            value = node.value
            return ranges.fixed(len(value)) if value.__class__ is str or value.__class__ is bytes else ONE
        if isinstance(node, ListNode):
            return ranges.fixed(len(node.elements))
        if isinstance(node, MapNode):
            return ranges.fixed(len(node.entries))
        path = self.path(node)
        if path.length:
            found = device_size(path.parts())
            if found is not None:
                self.sizes[node] = found
                return found
        if _is_scalar(node.type):
            return ONE
        if kind is Ident:
            local = self.locals.get(node.name)  # type: ignore[union-attr]
            if local:
                return local[-1].size
        return None

    def size_or_unknown(self, node: Node) -> Range:
        return self.size(node) or UNKNOWN

    def inside(self, node: Node) -> _Entries | None:
        found = self.entries.get(node)
        if found is None and isinstance(node, Ident):
            local = self.locals.get(node.name)
            if local:
                return local[-1].entries
        return found

    # --- nodes

    def literal(self, _: Literal) -> Range:
        return FREE

    def ident(self, node: Ident) -> Range:
        local = self.locals.get(node.name)
        self.paths[node] = local[-1].path if local else Path.of(node.name)
        return ONE

    def select(self, node: Select) -> Range:
        if node.constant is not None:
            self.paths[node] = Path.of(node.constant.name)
            return ONE
        operand = node.operand
        total = _COST[operand.__class__](self, operand)
        if node.test:
            return total
        if operand.type.kind in ("map", "struct", "parameter"):
            total = ranges.add(total, ONE)
        self.paths[node] = self.path(operand).append(node.field)
        return total

    def list_literal(self, node: ListNode) -> Range:
        total, item = FREE, (TOP if node.elements else 0, 0)
        for element in node.elements:
            total = ranges.add(total, _COST[element.__class__](self, element))
            item = ranges.union(item, self.size_or_unknown(element))
        self.entries[node] = _Entries("list", ONE, item)
        return ranges.add(total, LIST_COST)

    def map_literal(self, node: MapNode) -> Range:
        least = TOP if node.entries else 0
        total, key, value = FREE, (least, 0), (least, 0)
        for entry in node.entries:
            total = ranges.add(ranges.add(total, self.cost(entry.key)), self.cost(entry.value))
            key = ranges.union(key, self.size_or_unknown(entry.key))
            value = ranges.union(value, self.size_or_unknown(entry.value))
        self.entries[node] = _Entries("map", key, value)
        return ranges.add(total, MAP_COST)

    def struct(self, node: StructNode) -> Range:
        total = FREE
        for entry in node.entries:
            total = ranges.add(total, self.cost(entry.value))
        return ranges.add(total, STRUCT_COST)

    # --- comprehensions

    def comprehension(self, node: Comprehension) -> Range:
        if node.kind == "bind":
            return self.bind(node)
        total = ranges.add(self.cost(node.range), self.cost(node.initial))
        self.push(node.accumulator, node.initial)
        if node.variable2:
            self.push_iteration(node.variable, node.range, "key")
            self.push_iteration(node.variable2, node.range, "value")
        else:
            self.push_iteration(node.variable, node.range, "single")
        condition, step = self.cost(node.condition), self.cost(node.step)
        self.locals[node.variable].pop()
        if node.variable2:
            self.locals[node.variable2].pop()
        total = ranges.add(total, self.cost(node.result))
        self.locals[node.accumulator].pop()
        count = self.size_or_unknown(node.range)
        total = ranges.add(total, ranges.multiply(count, ranges.add(step, condition)))
        if isinstance(node.initial, Literal):
            self.keep_size(node, self.size(node.initial))
        elif isinstance(node.initial, (ListNode, MapNode)):
            self.sizes[node] = count
            self.keep_entries(node, self.inside(node.step))
        return total

    def bind(self, node: Comprehension) -> Range:
        total = ranges.add(self.cost(node.range), self.cost(node.initial))
        self.push(node.accumulator, node.initial)
        total = ranges.add(total, self.cost(node.result))
        self.locals[node.accumulator].pop()
        self.keep_size(node, self.size(node.result))
        self.keep_entries(node, self.inside(node.result))
        return total

    def keep_size(self, node: Node, size: Range | None) -> None:
        if size is not None:
            self.sizes[node] = size

    def keep_entries(self, node: Node, entries: _Entries | None) -> None:
        if entries is not None:
            self.entries[node] = entries

    def push(self, name: str, node: Node) -> None:
        local = _Local(self.path(node), self.size(node), self.inside(node))
        self.locals.setdefault(name, []).append(local)

    def push_iteration(self, name: str, node: Node, role: str) -> None:
        entries = self.inside(node)
        kind = entries.kind if entries is not None else node.type.kind
        size: Range | None
        if role == "key":
            part, size = ("@indices" if kind == "list" else "@keys"), entries and entries.key
        elif role == "value" or kind == "list":
            part, size = ("@items" if kind == "list" else "@values"), entries and entries.value
        else:
            part, size = "@keys", entries and entries.key
        self.locals.setdefault(name, []).append(_Local(self.path(node).append(part), size, None))

    # --- calls

    def call(self, node: Call) -> Range:
        if node.function == "dyn":
            argument = node.arguments[0]
            cost = ranges.add(ONE, self.cost(argument))
            self.keep_size(node, self.size(argument))
            self.keep_entries(node, self.inside(argument))
            return cost
        arguments: list[_Operand] = []
        costs: list[Range] = []
        for argument in node.arguments:
            costs.append(_COST[argument.__class__](self, argument))
            arguments.append(self.operand(argument))
        total, target = FREE, None
        if node.target is not None:
            total = self.cost(node.target)
            target = self.operand(node.target)
        highest: Range = (TOP, 0)
        size: Range | None = None
        for overload in node.overloads:
            estimated = self.overload(node, overload, target, arguments, costs)
            highest = ranges.union(highest, estimated.cost)
            if estimated.size is not None:
                size = estimated.size if size is None else ranges.union(size, estimated.size)
            if overload in ("index_list", "index_map"):
                inside = self.inside(arguments[0].node)  # type: ignore[arg-type]
                size = None if inside is None else inside.value
                part = "@items" if overload == "index_list" else "@values"
                self.paths[node] = self.path(node.arguments[0]).append(part)
            if size is None:
                size = self.size(node)
        self.keep_size(node, size)
        return ranges.add(total, highest)

    def overload(
        self, node: Call, overload: str, target: _Operand | None, arguments: list[_Operand], costs: list[Range]
    ) -> Estimate:
        extension = self.extensions.get(overload)
        if extension is not None:
            found = extension(target, arguments)
            if found is not None:
                return Estimate(_with(found.cost, costs), found.size)
        known = rules.kubernetes(node.function, overload, target, arguments)  # type: ignore[arg-type]
        if known is not None:
            return Estimate(_with(known.cost, costs), known.size)
        if overload in _LOGIC:
            return Estimate((costs[0][0], min(costs[0][1] + costs[1][1], TOP)))
        if overload in _ORDERED:
            smaller = min(arguments[0].known()[1], arguments[1].known()[1])
            return Estimate(_with(ranges.scale((int(smaller > 0), smaller), STRING_FACTOR), costs))
        special = _STANDARD.get(overload)
        if special is not None:
            return special(self, node, target, arguments, costs)
        return Estimate(_with(ONE, costs))

    def conditional(self, node: Call, _: _Operand | None, arguments: list[_Operand], costs: list[Range]) -> Estimate:
        size = ranges.union(arguments[1].known(), arguments[2].known())
        one, other = self.inside(node.arguments[1]), self.inside(node.arguments[2])
        self.keep_entries(node, _union(one, other))
        return Estimate(ranges.add(costs[0], ranges.union(costs[1], costs[2])), size)

    def concatenation(self, node: Call, _: _Operand | None, arguments: list[_Operand], costs: list[Range]) -> Estimate:
        size = ranges.add(arguments[0].known(), arguments[1].known())
        self.keep_entries(node, _union(self.inside(node.arguments[0]), self.inside(node.arguments[1])))
        return Estimate(_with(ranges.scale(size, STRING_FACTOR), costs), size)

    def list_concatenation(
        self, node: Call, target: _Operand | None, arguments: list[_Operand], costs: list[Range]
    ) -> Estimate:
        size = self.concatenation(node, target, arguments, costs).size
        return Estimate(_with(ONE, costs), size)


def _is_scalar(type: Type) -> bool:
    if type.kind == "opaque" and type.name == "optional_type":
        return _is_scalar(type.parameters[0])
    return type.kind in _SCALARS


def _union(one: _Entries | None, other: _Entries | None) -> _Entries | None:
    if one is None or other is None:
        return None
    return _Entries(one.kind, ranges.union(one.key, other.key), ranges.union(one.value, other.value))


def _with(cost: Range, costs: list[Range]) -> Range:
    for each in costs:
        cost = ranges.add(cost, each)
    return cost


def _scan_target(_: _Estimator, __: Call, target: _Operand | None, ___: list[_Operand], costs: list[Range]) -> Estimate:
    cost = ONE if target is None else ranges.scale(target.known(), STRING_FACTOR)
    return Estimate(_with(cost, costs))


def _scan(_: _Estimator, __: Call, ___: _Operand | None, arguments: list[_Operand], costs: list[Range]) -> Estimate:
    return Estimate(_with(ranges.scale(arguments[0].known(), STRING_FACTOR), costs))


def _scan_sized(resize: Callable[[Range], Range]) -> Callable[..., Estimate]:
    def rule(_: _Estimator, __: Call, ___: _Operand | None, arguments: list[_Operand], costs: list[Range]) -> Estimate:
        size = arguments[0].known()
        return Estimate(_with(ranges.scale(size, STRING_FACTOR), costs), resize(size))

    return rule


def _in_list(_: _Estimator, __: Call, ___: _Operand | None, arguments: list[_Operand], costs: list[Range]) -> Estimate:
    return Estimate(_with(ranges.scale(arguments[1].known(), 1.0), costs))


def _matches(
    _: _Estimator, __: Call, target: _Operand | None, arguments: list[_Operand], costs: list[Range]
) -> Estimate:
    if target is None:
        return Estimate(_with(ONE, costs))
    return Estimate(_with(rules.regex_cost(target.known(), arguments[0].known()), costs))


def _contains(
    _: _Estimator, __: Call, target: _Operand | None, arguments: list[_Operand], costs: list[Range]
) -> Estimate:
    if target is None:
        return Estimate(_with(ONE, costs))
    text, part = (ranges.scale(each.known(), STRING_FACTOR) for each in (target, arguments[0]))
    return Estimate(_with(ranges.multiply(text, part), costs))


_STANDARD: Final[dict[str, Callable[..., Estimate]]] = {
    "string_format": _scan_target,
    "string_to_bytes": _scan_sized(lambda size: (size[0], size[1] * 4 & TOP)),
    "bytes_to_string": _scan_sized(lambda size: (size[0] // 4, size[1])),
    "strings_quote": _scan_sized(lambda size: (size[0] + 2 & TOP, size[1] * 2 + 2 & TOP)),
    "starts_with_string": _scan,
    "ends_with_string": _scan,
    "in_list": _in_list,
    "matches_string": _matches,
    "contains_string": _contains,
    "conditional": _Estimator.conditional,
    "add_string": _Estimator.concatenation,
    "add_bytes": _Estimator.concatenation,
    "add_list": _Estimator.list_concatenation,
}
_COST: Final[dict[type, Callable[[Any, Any], Range]]] = {
    Literal: _Estimator.literal,
    Ident: _Estimator.ident,
    Select: _Estimator.select,
    Call: _Estimator.call,
    ListNode: _Estimator.list_literal,
    MapNode: _Estimator.map_literal,
    StructNode: _Estimator.struct,
    Comprehension: _Estimator.comprehension,
}
