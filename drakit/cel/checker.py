"""The type checker: writes a type onto every node and the candidate overloads onto every call.

Upstream's rules: overloads in order of declaration, all that fit are candidates; the first fixes the result unless
another one differs (then it is dyn). One Python frame a level of nesting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit.cel.errors import Issue
from drakit.cel.syntax import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
    walk,
)
from drakit.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Substitution,
    Type,
    is_dyn,
    list_of,
    map_of,
    most_general,
    nullable,
    optional_of,
    rename,
    type_of,
)
from drakit.cel.values import Uint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drakit.cel.declarations import Function, Overload

__all__ = ["MESSAGES", "Declared", "check", "function_signature"]

MESSAGES: Final[Mapping[str, tuple[Type, Type]]] = {
    f"google.protobuf.{name}Value": (nullable(wrapped), wrapped)
    for name, wrapped in (
        ("Bool", BOOL),
        ("Bytes", BYTES),
        ("Double", DOUBLE),
        ("Float", DOUBLE),
        ("Int32", INT),
        ("Int64", INT),
        ("String", STRING),
        ("UInt32", UINT),
        ("UInt64", UINT),
    )
}
_LITERALS: Final[Mapping[type, Type]] = {
    bool: BOOL,
    bytes: BYTES,
    float: DOUBLE,
    int: INT,
    type(None): NULL,
    str: STRING,
    Uint: UINT,
}
_LOGIC: Final = frozenset({"_&&_", "_||_"})


class Declared:
    """What an expression may name: functions, variables, types, and the fields of structs."""

    __slots__ = ("fields", "functions", "resolved", "types", "variables")

    def __init__(
        self,
        functions: Mapping[str, Function],
        variables: Mapping[str, Type],
        types: Mapping[str, Type],
        fields: Mapping[str, Mapping[str, Type]],
    ) -> None:
        self.functions = functions
        self.variables = variables
        self.types = types
        self.fields = fields
        self.resolved: dict[tuple[Any, ...], tuple[tuple[str, ...], Type, int]] = {}


def check(root: Node, declared: Declared) -> list[Issue]:
    """Check a tree in place; the complaints, if any."""
    checker = _Checker(declared)
    checker.visit(root)
    if not checker.issues:
        apply = checker.substitution.apply
        for node in walk(root):
            if node.type.free:
                node.type = apply(node.type, close=True)
    return checker.issues


def function_signature(arguments: list[Type], *, member: bool) -> str:
    """Argument types as `no matching overload` prints them."""
    if member:
        return f"{arguments[0].text}.({', '.join(each.text for each in arguments[1:])})"
    return f"({', '.join(each.text for each in arguments)})"


class _Checker:
    def __init__(self, declared: Declared) -> None:
        self.declared = declared
        self.substitution = Substitution()
        self.issues: list[Issue] = []
        self.scopes: list[dict[str, Type]] = []

    def visit(self, node: Node) -> None:
        _VISIT[node.__class__](self, node)

    def complain(self, node: Node | int, message: str) -> None:
        self.issues.append(Issue(node if isinstance(node, int) else node.offset, message))

    def undeclared(self, node: Node, name: str) -> None:
        node.type = ERROR
        self.complain(node, f"undeclared reference to '{name}' (in container '')")

    def mismatch(self, node: Node, expected: Type, actual: Type) -> None:
        self.complain(node, f"expected type '{expected.text}' but found '{actual.text}'")

    # --- names

    def local(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        return None

    def name(self, node: Ident) -> bool:
        """Resolve a global name; False when nothing has it. Shadowed ones keep their leading dot."""
        plain = node.name.removeprefix(".")
        found = self.declared.variables.get(plain)
        if found is None:
            node.constant = self.declared.types.get(plain)
            if node.constant is None:
                return False
            found = type_of(node.constant)
        node.name = plain if self.local(plain) is None else f".{plain}"
        node.type = found
        return True

    def literal(self, node: Literal) -> None:
        node.type = _LITERALS[node.value.__class__]

    def ident(self, node: Ident) -> None:
        local = self.local(node.name) if self.scopes else None
        if local is not None:
            node.type = local
        elif not self.name(node):
            self.undeclared(node, node.name)

    def select(self, node: Select) -> None:
        if not node.test:
            qualified = _qualified(node)
            constant = self.declared.types.get(qualified) if qualified is not None else None
            if constant is not None and (not self.scopes or self.local(str(qualified).partition(".")[0]) is None):
                node.constant = constant
                node.type = type_of(constant)
                return
        operand = node.operand
        _VISIT[operand.__class__](self, operand)
        result = self.field_type(node, operand, node.field, optional=False)
        node.type = BOOL if node.test else self.substitution.apply(result)

    def field_type(self, node: Node, operand: Node, field: str, *, optional: bool) -> Type:
        target = self.substitution.apply(operand.type)
        wrapped = target.kind == "opaque" and target.name == "optional_type"
        if wrapped:
            target = target.parameters[0]
        result = ERROR
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "struct":
            found = self.declared.fields.get(target.name, {}).get(field)
            if target.name not in self.declared.fields:
                self.complain(node, f"unexpected failed resolution of '{target.name}'")
            elif found is None:
                self.complain(node, f"undefined field '{field}'")
            else:
                result = found
        else:
            if target.kind == "parameter":
                self.substitution.assignable(DYN, target)
            elif not is_dyn(target) and target.kind != "error":
                self.complain(node, f"type '{target.text}' does not support field selection")
            result = DYN
        return optional_of(result) if wrapped or optional else result

    def optional_select(self, node: Call) -> None:
        operand, field = node.arguments
        _VISIT[operand.__class__](self, operand)
        assert isinstance(field, Literal)
        field.type = STRING
        result = self.field_type(node, operand, field.value, optional=True)
        node.type = self.substitution.apply(result)
        node.overloads = ("select_optional_field",)

    # --- calls

    def call(self, node: Call) -> None:
        if node.function == "_?._":
            self.optional_select(node)
            return
        for argument in node.arguments:
            _VISIT[argument.__class__](self, argument)
        target = node.target
        if target is not None:
            qualified = _qualified(target)
            function = (
                self.declared.functions.get(f"{qualified}.{node.function}".removeprefix(".")) if qualified else None
            )
            if function is not None:
                node.function = function.name
                node.target = None
                self.resolve(node, function, [each.type for each in node.arguments], member=False)
                return
            _VISIT[target.__class__](self, target)
        name = node.function
        function = self.declared.functions.get(name.removeprefix(".") if target is None else name)
        if function is None:
            self.undeclared(node, name)
            return
        node.function = function.name
        types = [each.type for each in node.arguments]
        if target is not None:
            types.insert(0, target.type)
        self.resolve(node, function, types, member=target is not None)

    def resolve(self, node: Call, function: Function, types: list[Type], *, member: bool) -> None:
        if function.name in _LOGIC:
            self.logic(node, types)
            return
        concrete = not any(each.free for each in types)
        key = (function.name, member, *types)
        if concrete:
            known = self.declared.resolved.get(key)
            if known is not None:
                node.overloads, node.type, used = known
                self.substitution.count += used
                return
        before = self.substitution.count
        found: list[str] = []
        result: Type | None = None
        for overload in function.members if member else function.globals:
            fitting = self.fits(overload, types)
            if fitting is None:
                continue
            found.append(overload.id)
            if result is None:
                result = fitting
            elif not is_dyn(result) and fitting != result:
                result = DYN
        if result is None:
            closed = [self.substitution.apply(each, close=True) for each in types]
            signature = function_signature(closed, member=member)
            node.type = ERROR
            self.complain(node, f"found no matching overload for '{function.name}' applied to '{signature}'")
            return
        node.overloads, node.type = tuple(found), result
        if concrete and not result.free:
            if len(self.declared.resolved) > _MEMORY:
                self.declared.resolved.clear()
            self.declared.resolved[key] = node.overloads, result, self.substitution.count - before

    def fits(self, overload: Overload, types: list[Type]) -> Type | None:
        """The result type when the arguments fit the overload."""
        if len(overload.arguments) != len(types):
            self.substitution.count += len(overload.parameters)
            return None
        if not overload.parameters:
            return overload.result if self.substitution.all_assignable(types, overload.arguments) else None
        names = {name: self.substitution.fresh() for name in overload.parameters}
        expected = [rename(each, names) for each in overload.arguments]
        if not self.substitution.all_assignable(types, expected):
            return None
        return self.substitution.apply(rename(overload.result, names))

    def logic(self, node: Call, types: list[Type]) -> None:
        node.overloads = ("logical_and" if node.function == "_&&_" else "logical_or",)
        node.type = BOOL
        for argument, actual in zip(node.arguments, types, strict=True):
            if actual is not BOOL and not self.substitution.assignable(actual, BOOL):
                self.mismatch(argument, BOOL, actual)
                node.type = ERROR

    # --- literals of lists, maps, messages

    def join(self, previous: Type | None, current: Type) -> Type:
        """The type of mixed elements is dyn here; the validators refuse them."""
        if previous is None:
            return current
        if self.substitution.assignable(previous, current):
            return most_general(previous, current)
        return DYN

    def unwrapped(self, node: Node) -> Type:
        """The type inside an optional element or entry."""
        actual = node.type
        if actual.kind == "opaque" and actual.name == "optional_type":
            return actual.parameters[0]
        if not is_dyn(actual):
            self.mismatch(node, optional_of(actual), actual)
        return actual

    def list_literal(self, node: ListNode) -> None:
        element: Type | None = None
        for index, each in enumerate(node.elements):
            _VISIT[each.__class__](self, each)
            element = self.join(element, self.unwrapped(each) if index in node.optionals else each.type)
        node.type = list_of(self.substitution.fresh() if element is None else element)

    def map_literal(self, node: MapNode) -> None:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            _VISIT[entry.key.__class__](self, entry.key)
            key = self.join(key, entry.key.type)
            _VISIT[entry.value.__class__](self, entry.value)
            value = self.join(value, self.unwrapped(entry.value) if entry.optional else entry.value.type)
        if key is None or value is None:
            key, value = self.substitution.fresh(), self.substitution.fresh()
        node.type = map_of(key, value)

    def struct(self, node: StructNode) -> None:
        name = node.name.removeprefix(".")
        wrapped = MESSAGES.get(name)
        known = self.declared.types.get(name) if wrapped is None else wrapped[0]
        if known is None:
            self.undeclared(node, node.name)
            return
        if known.kind != "struct" and wrapped is None:
            node.type = ERROR
            self.complain(node, f"'{name}' is not a message type")
            return
        fields = {"value": wrapped[1]} if wrapped is not None else self.declared.fields.get(name, {})
        node.type = known
        for entry in node.entries:
            value = entry.value
            _VISIT[value.__class__](self, value)
            entry.key.type = STRING
            assert isinstance(entry.key, Literal)
            field = entry.key.value
            expected = fields.get(field)
            if expected is None:
                self.complain(entry.offset, f"undefined field '{field}'")
                continue
            actual = self.unwrapped(value) if entry.optional else value.type
            if not self.substitution.assignable(expected, actual):
                self.complain(
                    entry.offset,
                    f"expected type of field '{field}' is '{expected.text}' but provided type is '{actual.text}'",
                )

    # --- comprehensions

    def comprehension(self, node: Comprehension) -> None:
        _VISIT[node.range.__class__](self, node.range)
        _VISIT[node.initial.__class__](self, node.initial)
        accumulated = node.initial.type
        first, second = self.iteration_types(node)
        self.scopes.append({node.accumulator: accumulated})
        self.scopes.append({node.variable: first})
        if node.variable2:
            self.scopes[-1][node.variable2] = second
        _VISIT[node.condition.__class__](self, node.condition)
        self.assert_type(node.condition, BOOL)
        _VISIT[node.step.__class__](self, node.step)
        self.assert_type(node.step, accumulated)
        self.scopes.pop()
        _VISIT[node.result.__class__](self, node.result)
        self.scopes.pop()
        node.type = self.substitution.apply(node.result.type)

    def iteration_types(self, node: Comprehension) -> tuple[Type, Type]:
        found = self.substitution.apply(node.range.type)
        two = bool(node.variable2)
        if found.kind == "list":
            return (INT, found.parameters[0]) if two else (found.parameters[0], DYN)
        if found.kind == "map":
            return found.parameters[0], found.parameters[1]
        if found.kind in ("dyn", "error", "parameter"):
            self.substitution.assignable(DYN, found)
            return DYN, DYN
        self.complain(
            node.range,
            f"expression of type '{found.text}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def assert_type(self, node: Node, expected: Type) -> None:
        if not self.substitution.assignable(expected, node.type):
            self.mismatch(node, expected, node.type)


_MEMORY: Final = 4096
_VISIT: Final[dict[type, Callable[[Any, Any], None]]] = {
    Literal: _Checker.literal,
    Ident: _Checker.ident,
    Select: _Checker.select,
    Call: _Checker.call,
    ListNode: _Checker.list_literal,
    MapNode: _Checker.map_literal,
    StructNode: _Checker.struct,
    Comprehension: _Checker.comprehension,
}


def _qualified(node: Node) -> str | None:
    """`a.b.c` when the node spells a qualified name."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))
