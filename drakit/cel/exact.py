"""The exact evaluator: closures with upstream's error rules, for whatever the generated code cannot answer.

An expression becomes a function of `slots`: the environment's variables first, then one slot for every variable that
macros introduce. Errors are exceptions; `&&`, `||`, `all`, `exists` absorb `EvaluationError`, never `PanicError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from drakit.cel.access import present, qualify
from drakit.cel.errors import EvaluationError, PanicError
from drakit.cel.folding import membership
from drakit.cel.functions import dispatch
from drakit.cel.functions.regex import constant as constant_pattern
from drakit.cel.messages import make
from drakit.cel.runtime import not_equal
from drakit.cel.syntax import Call, Comprehension, Entry, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from drakit.cel.values import (
    MISSING,
    NONE,
    Collected,
    CollectedMap,
    Map,
    Optional,
    equal,
    iterate,
    iterate_pairs,
    no_overload,
    plain,
    show,
    tag,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drakit.cel.declarations import Function
    from drakit.cel.folding import Constants

__all__ = ["INDEXING", "Builder"]


class Builder:
    """Builds the closures of one expression; `Metered` overrides the hooks to count costs."""

    def __init__(self, functions: Mapping[str, Function], constants: Constants, variables: tuple[str, ...]) -> None:
        self.functions = functions
        self.constants = constants
        self.roots = {name: slot for slot, name in enumerate(variables)}
        self.scopes: list[dict[str, int]] = []
        self.slots = len(variables)

    def build(self, node: Node) -> Callable[[list[Any]], Any]:
        """The closure of a node."""
        if node in self.constants:
            return _constant(self.constants.get(node))
        build = getattr(self, _BUILD[node.__class__])
        return self.observed(node, build(node))

    # --- hooks for metering

    def observed(self, _: Node, closure: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        """Called with every closure that is no constant."""
        return closure

    def priced(self, _: Call, call: Callable[..., Any]) -> Callable[..., Any]:
        """Called with the implementation of every function call."""
        return call

    # --- names and selections

    def slot(self) -> int:
        """A slot of its own for one variable."""
        self.slots += 1
        return self.slots - 1

    def ident(self, node: Ident) -> Callable[[list[Any]], Any]:
        """A name that stands alone."""
        return self.root(node)

    def root(self, node: Ident) -> Callable[[list[Any]], Any]:
        """A name, without what observing it adds."""
        name = node.name
        if not name.startswith("."):
            for scope in reversed(self.scopes):
                if name in scope:
                    return _local(scope[name])
        name = name.removeprefix(".")
        return _global(self.roots[name], name)

    def chain(self, node: Node) -> Callable[[list[Any]], Any]:
        """A chain of selections and indices on one root; optional ones make the rest optional."""
        root, steps, base = self.steps(node)
        return self.reader(base, root, steps, test=isinstance(node, Select) and node.test)

    def steps(self, node: Node) -> tuple[Callable[[list[Any]], Any], list[Any], Node]:
        """Root closure, steps (key closure or None, constant key, optional) and root node of a chain."""
        steps: list[tuple[Callable[[list[Any]], Any] | None, Any, bool]] = []
        while node not in self.constants:
            if isinstance(node, Select) and node.constant is None and (not node.test or not steps):
                steps.append((None, node.field, False))
                node = node.operand
            elif isinstance(node, Call) and node.function in INDEXING:
                steps.append(self.step(node.arguments[1], optional="?" in node.function))
                node = node.arguments[0]
            else:
                break
        steps.reverse()
        root = self.root(node) if isinstance(node, Ident) and node not in self.constants else self.build(node)
        return root, steps, node

    def step(self, key: Node, *, optional: bool) -> tuple[Callable[[list[Any]], Any] | None, Any, bool]:
        """One step of a chain: key closure or None, constant key, optional."""
        if key in self.constants:
            return None, self.constants.get(key), optional
        return self.key(key), None, optional

    def key(self, node: Node) -> Callable[[list[Any]], Any]:
        """The closure of a key that is no constant."""
        return self.build(node)

    def branch(self, node: Node) -> Callable[[list[Any]], Any]:
        """The closure of a branch of `?:`."""
        return self.build(node)

    def reader(
        self, _: Node, root: Callable[[list[Any]], Any], steps: list[Any], *, test: bool
    ) -> Callable[[list[Any]], Any]:
        """The closure of a chain; the node is its root."""
        if test:
            return _tested(root, steps)
        if len(steps) == 1 and steps[0][0] is None and not steps[0][2]:
            return _selected(root, steps[0][1])
        return _chained(root, steps)

    # --- calls

    def call(self, node: Call) -> Callable[[list[Any]], Any]:
        """An operator, function or method."""
        function = node.function
        if function in INDEXING:
            return self.chain(node)
        special = _SPECIAL.get(function)
        if special is not None:
            return special(self, node)
        operands = [self.build(each) for each in node.operands]
        members = membership(node, self.constants)
        if members is not None:
            return _member(operands[0], members)
        if node in self.constants.patterns:
            matcher = constant_pattern(function, self.constants.patterns[node])
            return self.variadic(self.priced(node, matcher), operands)
        implementation = self.priced(node, dispatch(self.functions[function], node.overloads))
        if len(operands) == 1:
            return self.unary(implementation, operands[0])
        if len(operands) == 2:
            return self.binary(implementation, operands[0], operands[1])
        return self.variadic(implementation, operands)

    def unary(self, call: Callable[..., Any], operand: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        """A call with one operand."""
        return lambda slots: call(operand(slots))

    def binary(
        self, call: Callable[..., Any], left: Callable[[list[Any]], Any], right: Callable[[list[Any]], Any]
    ) -> Callable[[list[Any]], Any]:
        """A call with two operands; both are evaluated, whatever the first one does."""
        return _binary(call, left, right)

    def variadic(
        self, call: Callable[..., Any], operands: list[Callable[[list[Any]], Any]]
    ) -> Callable[[list[Any]], Any]:
        """A call that stops at the first operand that fails."""
        return lambda slots: call(*[each(slots) for each in operands])

    def not_false_of(self, operand: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        """The condition of `all` and `exists`."""
        return _not_false(operand)

    def logic(self, node: Call) -> Callable[[list[Any]], Any]:
        """`&&` and `||`, whole chains at once."""
        terms: list[Node] = []
        pending: list[Node] = [node]
        while pending:
            each = pending.pop()
            if isinstance(each, Call) and each.function == node.function and each not in self.constants:
                pending.extend(reversed(each.arguments))
            else:
                terms.append(each)
        return _logic([self.build(each) for each in terms], absorbing=node.function == "_||_")

    def conditional(self, node: Call) -> Callable[[list[Any]], Any]:
        """`condition ? first : second`."""
        condition = self.build(node.arguments[0])
        first, second = (self.branch(each) for each in node.arguments[1:])
        return _conditional(condition, first, second)

    def equality(self, node: Call) -> Callable[[list[Any]], Any]:
        """`==` and `!=`."""
        left, right = (self.build(each) for each in node.arguments)
        implementation = equal if node.function == "_==_" else not_equal
        return self.binary(self.priced(node, implementation), left, right)

    def not_false(self, node: Call) -> Callable[[list[Any]], Any]:
        """Whether a value is anything but false."""
        return self.not_false_of(self.build(node.arguments[0]))

    def or_optional(self, node: Call) -> Callable[[list[Any]], Any]:
        """`or` and `orValue`, whose argument is evaluated only if needed."""
        assert node.target is not None
        left, right = self.build(node.target), self.build(node.arguments[0])
        return _or_optional(left, right, value=node.function == "orValue")

    # --- literals

    def list_literal(self, node: ListNode) -> Callable[[list[Any]], Any]:
        """A list literal."""
        elements = [self.build(each) for each in node.elements]
        if not node.optionals:
            return lambda slots: [each(slots) for each in elements]
        return _optional_list(elements, node.optionals)

    def map_literal(self, node: MapNode) -> Callable[[list[Any]], Any]:
        """A map literal."""
        entries = [(self.build(each.key), self.build(each.value), each.optional) for each in node.entries]
        return _map(entries)

    def struct(self, node: StructNode) -> Callable[[list[Any]], Any]:
        """A message literal."""
        name = node.name.removeprefix(".")
        entries = [(_field(each), self.build(each.value), each.optional) for each in node.entries]
        return lambda slots: make(name, [(field, value(slots), optional) for field, value, optional in entries])

    # --- comprehensions

    def initial(self, node: Node) -> Callable[[list[Any]], Any]:
        """The accumulator's first value; empty lists and maps are filled in place."""
        if isinstance(node, ListNode) and not node.elements:
            return lambda _: Collected()
        if isinstance(node, MapNode) and not node.entries:
            return lambda _: CollectedMap()
        return self.build(node)

    def comprehension(self, node: Comprehension) -> Callable[[list[Any]], Any]:
        """What a macro expanded to."""
        if node.kind == "bind":
            initial = self.build(node.initial)
            slot = self.slot()
            self.scopes.append({node.accumulator: slot})
            result = self.build(node.result)
            self.scopes.pop()
            return _bind(slot, initial, result)
        initial = self.initial(node.initial)
        elements = self.build(node.range)
        accumulator, first = self.slot(), self.slot()
        second = self.slot() if node.variable2 else -1
        self.scopes.append({node.accumulator: accumulator})
        self.scopes.append({node.variable: first})
        if node.variable2:
            self.scopes[-1][node.variable2] = second
        condition, step = self.build(node.condition), self.build(node.step)
        self.scopes.pop()
        result = self.build(node.result)
        self.scopes.pop()
        return _fold(_Fold(elements, initial, condition, step, result), (accumulator, first, second))


# --- closures


def _field(entry: Entry) -> str:
    assert isinstance(entry.key, Literal)
    return str(entry.key.value)


def _constant(value: Any) -> Callable[[list[Any]], Any]:
    return lambda _: value


class _Lazy:
    """A bound variable that nothing has read yet."""

    __slots__ = ("closure",)

    def __init__(self, closure: Callable[[list[Any]], Any]) -> None:
        self.closure = closure


class _Failed:
    """A variable whose value is an error."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


def _local(slot: int) -> Callable[[list[Any]], Any]:
    def read(slots: list[Any]) -> Any:
        value = slots[slot]
        if value.__class__ is _Lazy:
            try:
                value = value.closure(slots)
            except PanicError:
                raise
            except EvaluationError as error:
                slots[slot] = _Failed(error)
                raise
            slots[slot] = value
        elif value.__class__ is _Failed:
            raise value.error
        return value

    return read


def _global(slot: int, name: str) -> Callable[[list[Any]], Any]:
    def read(slots: list[Any]) -> Any:
        value = slots[slot]
        if value is MISSING:
            raise EvaluationError(f"no such attribute(s): {name}")
        return value

    return read


def _selected(root: Callable[[list[Any]], Any], field: Any) -> Callable[[list[Any]], Any]:
    def read(slots: list[Any]) -> Any:
        value = root(slots)
        if value.__class__ is Optional:
            if value is NONE:
                return NONE
            found = present(value.value, field)
            return NONE if found is MISSING else Optional(found)
        return qualify(value, field)

    return read


def _chained(root: Callable[[list[Any]], Any], steps: list[Any]) -> Callable[[list[Any]], Any]:
    def read(slots: list[Any]) -> Any:
        value = root(slots)
        optional = value.__class__ is Optional
        if optional:
            if value is NONE:
                return NONE
            value = value.value
        for closure, constant, softly in steps:
            key = constant if closure is None else closure(slots)
            optional = optional or softly
            if not optional:
                value = qualify(value, key)
                continue
            value = present(value, key)
            if value is MISSING:
                return NONE
        return Optional(value) if optional else value

    return read


def _tested(root: Callable[[list[Any]], Any], steps: list[Any]) -> Callable[[list[Any]], Any]:
    before = _chained(root, steps[:-1])
    field = steps[-1][1]

    def test(slots: list[Any]) -> bool:
        value = before(slots)
        if value.__class__ is Optional:
            return value is not NONE and present(value.value, field) is not MISSING
        return present(value, field) is not MISSING

    return test


def _binary(
    call: Callable[..., Any], left: Callable[[list[Any]], Any], right: Callable[[list[Any]], Any]
) -> Callable[[list[Any]], Any]:
    def run(slots: list[Any]) -> Any:
        try:
            first = left(slots)
        except PanicError:
            raise
        except EvaluationError:
            right_or_nothing(right, slots)
            raise
        return call(first, right(slots))

    return run


def right_or_nothing(closure: Callable[[list[Any]], Any], slots: list[Any]) -> None:
    """Evaluate the other operand as upstream does although the first one failed: only a panic matters."""
    try:
        closure(slots)
    except PanicError:
        raise
    except EvaluationError:
        return


def _member(operand: Callable[[list[Any]], Any], members: frozenset[Any]) -> Callable[[list[Any]], Any]:
    return lambda slots: tag(operand(slots)) in members


def _logic(terms: list[Callable[[list[Any]], Any]], *, absorbing: bool) -> Callable[[list[Any]], Any]:
    def run(slots: list[Any]) -> bool:
        failure: EvaluationError | None = None
        for term in terms:
            try:
                value = term(slots)
            except PanicError:
                raise
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is absorbing:
                return bool(absorbing)
            if value.__class__ is not bool:
                failure = failure or no_overload()
        if failure is not None:
            raise failure
        return not absorbing

    return run


def _conditional(
    condition: Callable[[list[Any]], Any], first: Callable[[list[Any]], Any], second: Callable[[list[Any]], Any]
) -> Callable[[list[Any]], Any]:
    def run(slots: list[Any]) -> Any:
        value = condition(slots)
        if value is True:
            return first(slots)
        if value is False:
            return second(slots)
        raise no_overload()

    return run


def _not_false(operand: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def run(slots: list[Any]) -> bool:
        try:
            value = operand(slots)
        except PanicError:
            raise
        except EvaluationError:
            value = True
        return value is not False

    return run


def _or_optional(
    left: Callable[[list[Any]], Any], right: Callable[[list[Any]], Any], *, value: bool
) -> Callable[[list[Any]], Any]:
    def run(slots: list[Any]) -> Any:
        optional = left(slots)
        if optional.__class__ is not Optional:
            raise no_overload()
        if optional is NONE:
            return right(slots)
        return optional.value if value else optional

    return run


def _optional_list(elements: list[Callable[[list[Any]], Any]], optionals: frozenset[int]) -> Callable[[list[Any]], Any]:
    def run(slots: list[Any]) -> list[Any]:
        found: list[Any] = []
        for position, element in enumerate(elements):
            value = element(slots)
            if position in optionals:
                if value.__class__ is not Optional:
                    raise EvaluationError(
                        f"cannot initialize optional list element from non-optional value {show(value)}"
                    )
                if value is NONE:
                    continue
                value = value.value
            found.append(value)
        return found

    return run


def _map(entries: list[Any]) -> Callable[[list[Any]], Any]:
    def run(slots: list[Any]) -> Map:
        found = Map()
        for key_of, value_of, optional in entries:
            key, value = key_of(slots), value_of(slots)
            if optional:
                if value.__class__ is not Optional:
                    raise EvaluationError(
                        f"cannot initialize optional entry '{show(key)}' from non-optional value {show(value)}"
                    )
                if value is NONE:
                    found.pop(tag(key), None)
                    continue
                value = value.value
            found[tag(key)] = value
        return found

    return run


def _bind(
    slot: int, initial: Callable[[list[Any]], Any], result: Callable[[list[Any]], Any]
) -> Callable[[list[Any]], Any]:
    def run(slots: list[Any]) -> Any:
        slots[slot] = _Lazy(initial)
        return result(slots)

    return run


class _Fold(NamedTuple):
    """The closures of a comprehension."""

    elements: Callable[[list[Any]], Any]
    initial: Callable[[list[Any]], Any]
    condition: Callable[[list[Any]], Any]
    step: Callable[[list[Any]], Any]
    result: Callable[[list[Any]], Any]


def _fold(fold: _Fold, places: tuple[int, int, int]) -> Callable[[list[Any]], Any]:
    elements, initial, condition, step, result = fold
    accumulator, first, second = places

    def run(slots: list[Any]) -> Any:
        values = elements(slots)
        slots[accumulator] = _Lazy(initial)
        for value in iterate(values) if second < 0 else iterate_pairs(values):
            if second < 0:
                slots[first] = value
            else:
                slots[first], slots[second] = value
            if condition(slots) is not True:
                break
            try:
                slots[accumulator] = step(slots)
            except PanicError:
                raise
            except EvaluationError as error:
                slots[accumulator] = _Failed(error)
        found = result(slots)
        return plain(found)

    return run


INDEXING: Final = frozenset({"_[_]", "_[?_]", "_?._"})
_SPECIAL: Final[dict[str, Callable[[Builder, Call], Callable[[list[Any]], Any]]]] = {
    "_&&_": Builder.logic,
    "_||_": Builder.logic,
    "_?_:_": Builder.conditional,
    "_==_": Builder.equality,
    "_!=_": Builder.equality,
    "@not_strictly_false": Builder.not_false,
    "or": Builder.or_optional,
    "orValue": Builder.or_optional,
}
_BUILD: Final[dict[type, str]] = {
    Ident: "ident",
    Select: "chain",
    Call: "call",
    ListNode: "list_literal",
    MapNode: "map_literal",
    StructNode: "struct",
    Comprehension: "comprehension",
}
