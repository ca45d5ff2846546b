"""Code generation: an expression as one Python lambda, built of `ast` nodes from a fixed white-list.

The generated code is right whenever it returns; whatever raises is evaluated again by the exact evaluator. User text
occurs only as indexed constants (`K3`), locals are named by counter, built-ins are empty. Trees that nest too deeply
are left to the closures.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from drakit.cel import runtime
from drakit.cel.errors import EvaluationError
from drakit.cel.folding import membership
from drakit.cel.functions import dispatch
from drakit.cel.functions.regex import constant as constant_pattern
from drakit.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode, walk
from drakit.cel.types import BOOL, QUANTITY
from drakit.cel.values import MISSING, NONE, Quantity, Uint
from drakit.cel.whitelist import assert_allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drakit.cel.declarations import Function
    from drakit.cel.folding import Constants

__all__ = ["generate"]

_MAX_DEPTH: Final = 60
_MAX_NODES: Final = 4000
_INDEXING: Final = frozenset({"_[_]", "_[?_]", "_?._"})
_FIELDS: Final = {
    "driver": "driver",
    "attributes": "attributes",
    "capacity": "capacity",
    "allowMultipleAllocations": "multi",
}
_ORDER: Final = {"_<_": ast.Lt, "_<=_": ast.LtE, "_>_": ast.Gt, "_>=_": ast.GtE}
_PURE: Final = frozenset(
    {"quantity", "semver", "ip", "cidr", "url", "isQuantity", "isSemver", "isIP", "isCIDR", "isURL", "ip.isCanonical"}
)
_CLASSES: Final = {"string": str, "bool": bool, "int": int, "uint": Uint, "double": float, "bytes": bytes}
_LOAD: Final = ast.Load()
_PLACE: Final[dict[str, Any]] = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
_QUANTITY_ORDER: Final = {"isGreaterThan": ast.Gt, "isLessThan": ast.Lt}


class _UnsupportedError(Exception):
    """The closures evaluate this expression."""


def generate(
    root: Node, functions: Mapping[str, Function], constants: Constants, variables: tuple[str, ...], *, device: bool
) -> Callable[..., Any] | None:
    """A function of the view (or of the variables, in order), or None when the closures are to be used."""
    generator = _Generator(functions, constants, variables, device=device)
    try:
        tree = generator.program(root)
        assert_allowed(tree)
        code = compile(tree, "<cel>", "eval")
    except (_UnsupportedError, RecursionError, MemoryError, SyntaxError, ValueError):
        return None
    return eval(code, generator.names)  # type: ignore[no-any-return]  # noqa: S307 - of white-listed nodes only


class _Generator:
    def __init__(
        self, functions: Mapping[str, Function], constants: Constants, variables: tuple[str, ...], *, device: bool
    ) -> None:
        self.functions = functions
        self.constants = constants
        self.variables = {name: f"A{index}" for index, name in enumerate(variables)}
        self.device = device
        self.names: dict[str, Any] = {"__builtins__": {}}
        self.known: dict[int, str] = {}
        self.scopes: list[dict[str, str | Node]] = []
        self.counter = 0
        self.depth = 0
        self.nodes = 0
        self.walrus = True

    def program(self, root: Node) -> ast.Expression:
        body = self.expression(root)
        names = ["d"] if self.device else list(self.variables.values())
        return ast.Expression(body=self.function(names, body))

    # --- building blocks

    def constant(self, value: Any) -> ast.expr:
        """A literal for booleans, None and small numbers, else a name of a global."""
        kind = value.__class__
        if value is None or kind is bool or (kind is int and abs(value) < 2**62):
            return ast.Constant(value, **_PLACE)
        return self.name_of(value)

    def name_of(self, value: Any) -> ast.Name:
        name = self.known.get(id(value))
        if name is None:
            name = f"K{len(self.names)}"
            self.names[name] = value
            self.known[id(value)] = name
        return ast.Name(name, _LOAD, **_PLACE)

    def apply(self, function: Any, *arguments: ast.expr) -> ast.expr:
        return ast.Call(self.name_of(function), list(arguments), [], **_PLACE)

    def fresh(self, letter: str) -> str:
        self.counter += 1
        return f"{letter}{self.counter}"

    def load(self, name: str) -> ast.Name:
        return ast.Name(name, _LOAD, **_PLACE)

    def keep(self, value: ast.expr) -> tuple[ast.expr, ast.Name]:
        """An assignment expression and the name that reads it; the value itself when it is a name already."""
        if isinstance(value, ast.Name):
            return value, value
        if not self.walrus:
            raise _NoWalrusError
        name = self.fresh("T")
        return ast.NamedExpr(ast.Name(name, ast.Store(), **_PLACE), value, **_PLACE), self.load(name)

    def function(self, names: list[str], body: ast.expr) -> ast.Lambda:
        parameters = ast.arguments([], [ast.arg(name, None, **_PLACE) for name in names], None, [], [], None, [])
        return ast.Lambda(parameters, body, **_PLACE)

    def thunk(self, node: Node) -> ast.expr:
        """The node as a function without parameters, for what may not be evaluated."""
        before, self.walrus = self.walrus, True
        body = self.expression(node)
        self.walrus = before
        return self.function([], body)

    def attribute(self, value: ast.expr, name: str) -> ast.expr:
        return ast.Attribute(value, name, _LOAD, **_PLACE)

    def compare(self, left: ast.expr, operator: type[ast.cmpop], right: ast.expr) -> ast.expr:
        return ast.Compare(left, [operator()], [right], **_PLACE)

    def is_a(self, value: ast.expr, kind: type) -> ast.expr:
        return self.compare(self.attribute(value, "__class__"), ast.Is, self.name_of(kind))

    def choose(self, condition: ast.expr, first: ast.expr, second: ast.expr) -> ast.expr:
        return ast.IfExp(condition, first, second, **_PLACE)

    # --- expressions

    def expression(self, node: Node) -> ast.expr:
        self.depth += 1
        self.nodes += 1
        if self.depth > _MAX_DEPTH or self.nodes > _MAX_NODES:
            raise _UnsupportedError
        if node in self.constants:
            result = self.constant(self.constants.get(node))
        else:
            result = getattr(self, _METHODS[node.__class__])(node)
        self.depth -= 1
        return result

    def boolean(self, node: Node) -> ast.expr:
        """The node as a genuine boolean: anything else raises."""
        value = self.expression(node)
        if self.certain(node) is bool:
            return value
        return self.apply(runtime.boolean, value)

    def certain(self, node: Node) -> type | None:
        """The class that the value has for sure, if it is one that Python compares as CEL does."""
        node = self.alias(node)
        if node in self.constants:
            kind = self.constants.get(node).__class__
            return kind if kind in _CLASSES.values() or kind is Quantity else None
        if isinstance(node, Select):
            if node.test:
                return bool
            if self.is_device(node.operand):
                return {"driver": str, "allowMultipleAllocations": bool}.get(node.field)
        if isinstance(node, Comprehension):
            return bool if node.kind in ("all", "exists", "exists_one") else None
        if self.capacity(node) is not None:
            return Quantity
        if not isinstance(node, Call) or node.function in _INDEXING or node.function in ("_?_:_", "orValue", "value"):
            return None
        kinds = {
            each.result
            for each in self.functions[node.function].overloads
            if each.id in node.overloads and not each.parameters
        }
        if len(kinds) != 1 or len(node.overloads) != len(
            [each for each in self.functions[node.function].overloads if each.id in node.overloads]
        ):
            return bool if node.type == BOOL and node.function in ("_==_", "_!=_", "@in") else None
        result = kinds.pop()
        return Quantity if result == QUANTITY else _CLASSES.get(result.kind)

    def is_device(self, node: Node) -> bool:
        node = self.alias(node)
        return self.device and isinstance(node, Ident) and node.name == "device" and self.local("device") is None

    def local(self, name: str) -> str | Node | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def alias(self, node: Node) -> Node:
        """What a bound variable stands for when it is replaced by its value."""
        while isinstance(node, Ident):
            value = self.local(node.name)
            if value is None or isinstance(value, str):
                break
            node = value
        return node

    def ident(self, node: Ident) -> ast.expr:
        if not node.name.startswith("."):
            local = self.local(node.name)
            if isinstance(local, str):
                return self.load(local)
            if local is not None:
                return self.expression(local)
        name = node.name.removeprefix(".")
        if self.device:
            return ast.Call(self.attribute(self.load("d"), "as_map"), [], [], **_PLACE)
        return self.apply(runtime.defined, self.load(self.variables[name]))

    # --- selections

    def part(self, node: Node) -> str | None:
        """`attributes` or `capacity` when the node is that field of the device."""
        node = self.alias(node)
        if isinstance(node, Select) and not node.test and self.is_device(node.operand):
            return node.field if node.field in ("attributes", "capacity") else None
        return None

    def domain(self, node: Node) -> tuple[str, ast.expr] | None:
        """`device.attributes["x"]`: the part, and the map of the domain."""
        node = self.alias(node)
        if isinstance(node, Select) and not node.test:
            part, key = self.part(node.operand), self.constant(node.field)
            operand = node.operand
        elif isinstance(node, Call) and node.function == "_[_]":
            operand = node.arguments[0]
            part = self.part(operand)
            if part is None or self.certain(node.arguments[1]) is not str:
                return None
            key = self.expression(node.arguments[1])
        else:
            return None
        if part is None:
            return None
        return part, ast.Subscript(self.expression(operand), key, _LOAD, **_PLACE)

    def capacity(self, node: Node) -> Node | None:
        """The operand when the node is `device.capacity[d][id]`."""
        operand = None
        node = self.alias(node)
        if isinstance(node, Select) and not node.test:
            operand = node.operand
        elif isinstance(node, Call) and node.function == "_[_]":
            operand = node.arguments[0]
        if operand is None:
            return None
        operand = self.alias(operand)
        below: Node | None = None
        if isinstance(operand, Select) and not operand.test:
            below = operand.operand
        elif isinstance(operand, Call) and operand.function == "_[_]":
            below = operand.arguments[0]
        return operand if below is not None and self.part(below) == "capacity" else None

    def select(self, node: Select) -> ast.expr:
        operand = node.operand
        if node.test:
            return self.presence(operand, node.field)
        if self.is_device(operand):
            return self.attribute(self.load("d"), _FIELDS[node.field])
        found = self.domain(node)
        if found is not None:
            return found[1]
        return self.item(operand, self.constant(node.field), literal=True)

    def presence(self, operand: Node, field: str) -> ast.expr:
        if self.is_device(operand) or self.part(operand) is not None:
            return ast.Constant(True, **_PLACE)
        found = self.domain(operand)
        if found is not None:
            return self.compare(self.constant(field), ast.In, found[1])
        self.no_nested_optional(operand)
        return self.apply(runtime.has, self.expression(operand), self.constant(field))

    def item(self, operand: Node, key: ast.expr, *, literal: bool) -> ast.expr:
        found = self.domain(operand)
        if found is not None and literal:
            return ast.Subscript(found[1], key, _LOAD, **_PLACE)
        self.no_nested_optional(operand)
        return self.apply(runtime.item, self.expression(operand), key)

    def no_nested_optional(self, operand: Node) -> None:
        """Optionals that a chain meets on its way are not unwrapped upstream: leave those to the closures."""
        plain = isinstance(operand, Select) or (isinstance(operand, Call) and operand.function == "_[_]")
        if plain and operand.type.kind == "opaque" and not self.soft(operand):
            raise _UnsupportedError

    def soft(self, node: Node) -> bool:
        """Whether an optional selection is further down the chain."""
        while True:
            if isinstance(node, Select):
                node = node.operand
            elif isinstance(node, Call) and node.function in _INDEXING:
                if "?" in node.function:
                    return True
                node = node.arguments[0]
            else:
                return node.type.kind == "opaque"

    def index(self, node: Call) -> ast.expr:
        operand, key = node.arguments
        found = self.domain(node)
        if found is not None:
            return found[1]
        return self.item(operand, self.expression(key), literal=self.certain(key) is str)

    def soft_index(self, node: Call) -> ast.expr:
        operand, key = node.arguments
        self.no_nested_optional(operand)
        return self.apply(runtime.soft_item, self.expression(operand), self.expression(key))

    def soft_attribute(self, node: Node) -> tuple[ast.expr, ast.expr] | None:
        """Domain map and key of `device.attributes[d].?id` and `[?id]`."""
        if not isinstance(node, Call) or node.function not in ("_?._", "_[?_]"):
            return None
        found = self.domain(node.arguments[0])
        if found is None or self.certain(node.arguments[1]) is not str:
            return None
        return found[1], self.expression(node.arguments[1])

    # --- calls

    def call(self, node: Call) -> ast.expr:
        special = _SPECIAL.get(node.function)
        if special is not None:
            return getattr(self, special)(node)  # type: ignore[no-any-return]
        members = membership(node, self.constants)
        if members is not None:
            return self.member(node, members)
        operands = node.operands
        if node.function in _PURE and all(each in self.constants for each in operands):
            try:
                implementation = dispatch(self.functions[node.function], node.overloads)
                return self.constant(implementation(*[self.constants.get(each) for each in operands]))
            except EvaluationError:
                pass
        order = _QUANTITY_ORDER.get(node.function)
        if order is not None and all(self.certain(each) is Quantity for each in operands):
            left, right = (self.attribute(self.expression(each), "nano") for each in operands)
            return self.compare(left, order, right)
        arguments = [self.expression(each) for each in operands]
        if node in self.constants.patterns:
            return self.apply(constant_pattern(node.function, self.constants.patterns[node]), *arguments)
        return self.apply(self.implementation(node), *arguments)

    def implementation(self, node: Call) -> Any:
        return dispatch(self.functions[node.function], node.overloads)

    def member(self, node: Call, members: frozenset[Any]) -> ast.expr:
        item = node.arguments[0]
        value = self.expression(item)
        if self.certain(item) is not str:
            value = self.apply(runtime.tag, value)
        return self.compare(value, ast.In, self.name_of(members))

    def contained(self, node: Call) -> ast.expr:
        item, container = node.arguments
        if membership(node, self.constants) is not None:
            members = membership(node, self.constants)
            assert members is not None
            return self.member(node, members)
        if self.certain(item) is str:
            found = self.domain(container)
            if found is not None:
                return self.compare(self.expression(item), ast.In, found[1])
            if self.part(container) is not None:
                return self.compare(self.expression(item), ast.In, self.expression(container))
        return self.apply(self.implementation(node), self.expression(item), self.expression(container))

    def logic(self, node: Call) -> ast.expr:
        terms: list[Node] = []
        pending: list[Node] = [node]
        while pending:
            each = pending.pop()
            if isinstance(each, Call) and each.function == node.function and each not in self.constants:
                pending.extend(reversed(each.arguments))
            else:
                terms.append(each)
        operator = ast.And() if node.function == "_&&_" else ast.Or()
        return ast.BoolOp(operator, [self.boolean(each) for each in terms], **_PLACE)

    def negation(self, node: Call) -> ast.expr:
        return ast.UnaryOp(ast.Not(), self.boolean(node.arguments[0]), **_PLACE)

    def conditional(self, node: Call) -> ast.expr:
        condition, first, second = node.arguments
        return self.choose(self.boolean(condition), self.expression(first), self.expression(second))

    def equality(self, node: Call) -> ast.expr:
        left, right = node.arguments
        negated = node.function == "_!=_"
        operator = ast.NotEq if negated else ast.Eq
        kinds = self.certain(left), self.certain(right)
        if kinds[0] is not None and kinds[0] is kinds[1]:
            if kinds[0] is Quantity and not self.computed(right):
                one, other = (self.attribute(self.expression(each), "nano") for each in (left, right))
                return self.compare(one, operator, other)
            if kinds[0] is not Quantity:
                return self.compare(self.expression(left), operator, self.expression(right))
        general = runtime.not_equal if negated else runtime.equal
        value = self.constants.get(right)
        if value.__class__ is str and not negated:
            # Values that refuse strings raise in their own __eq__.
            return self.compare(self.expression(left), operator, self.constant(value))
        if value.__class__ in (str, bool, int) and self.walrus:
            kept, name = self.keep(self.expression(left))
            constant = self.constant(value)
            return self.choose(
                self.is_a(kept, value.__class__),
                self.compare(name, operator, constant),
                self.apply(general, name, constant),
            )
        return self.apply(general, self.expression(left), self.expression(right))

    def computed(self, node: Node) -> bool:
        """Whether a quantity is a result of `add` or `sub`."""
        return not (node in self.constants or self.capacity(node) is not None) and not (
            isinstance(node, Call) and node.function == "quantity"
        )

    def ordering(self, node: Call) -> ast.expr:
        left, right = node.arguments
        operator = _ORDER[node.function]
        compared = self.compared(left, right, operator)
        if compared is not None:
            return compared
        kinds = self.certain(left), self.certain(right)
        if kinds[0] is kinds[1] and kinds[0] in (int, str):
            return self.compare(self.expression(left), operator, self.expression(right))
        value = self.constants.get(right)
        implementation = self.implementation(node)
        if value.__class__ is int and self.walrus:
            kept, name = self.keep(self.expression(left))
            return self.choose(
                self.is_a(kept, int),
                self.compare(name, operator, self.constant(value)),
                self.apply(implementation, name, self.constant(value)),
            )
        return self.apply(implementation, self.expression(left), self.expression(right))

    def compared(self, left: Node, right: Node, operator: type[ast.cmpop]) -> ast.expr | None:
        """`a.compareTo(b) >= 0` on quantities."""
        if not isinstance(left, Call) or left.function != "compareTo" or self.constants.get(right, 1) != 0:
            return None
        if right not in self.constants or not all(self.certain(each) is Quantity for each in left.operands):
            return None
        one, other = (self.attribute(self.expression(each), "nano") for each in left.operands)
        return self.compare(one, operator, other)

    def or_value(self, node: Call) -> ast.expr:
        assert node.target is not None
        soft = self.soft_attribute(node.target) if node.function == "orValue" else None
        if soft is not None and self.walrus:
            mapping, key = soft
            found = ast.Call(self.attribute(mapping, "get"), [key, self.name_of(MISSING)], [], **_PLACE)
            kept, name = self.keep(found)
            present = self.compare(kept, ast.IsNot, self.name_of(MISSING))
            return self.choose(present, name, self.expression(node.arguments[0]))
        function = runtime.or_value if node.function == "orValue" else runtime.or_optional
        if node.arguments[0] in self.constants:
            return self.apply(function, self.expression(node.target), self.thunk(node.arguments[0]))
        return self.apply(function, self.expression(node.target), self.thunk(node.arguments[0]))

    def has_value(self, node: Call) -> ast.expr:
        assert node.target is not None
        soft = self.soft_attribute(node.target)
        if soft is not None:
            return self.compare(soft[1], ast.In, soft[0])
        if node.target.type.kind == "opaque":
            return self.compare(self.expression(node.target), ast.IsNot, self.name_of(NONE))
        return self.apply(self.implementation(node), self.expression(node.target))

    def not_false(self, _: Call) -> ast.expr:
        raise _UnsupportedError

    # --- literals

    def list_literal(self, node: ListNode) -> ast.expr:
        elements = [self.expression(each) for each in node.elements]
        value = ast.List(elements, _LOAD, **_PLACE)
        return self.apply(runtime.optional_list, value, self.name_of(node.optionals)) if node.optionals else value

    def map_literal(self, node: MapNode) -> ast.expr:
        entries: list[ast.expr] = [
            ast.Tuple(
                [self.expression(each.key), self.expression(each.value), ast.Constant(each.optional, **_PLACE)],
                _LOAD,
                **_PLACE,
            )
            for each in node.entries
        ]
        return self.apply(runtime.make_map, ast.List(entries, _LOAD, **_PLACE))

    def struct(self, node: StructNode) -> ast.expr:
        entries: list[ast.expr] = [
            ast.Tuple(
                [
                    self.name_of(each.key.value if isinstance(each.key, Literal) else ""),
                    self.expression(each.value),
                    ast.Constant(each.optional, **_PLACE),
                ],
                _LOAD,
                **_PLACE,
            )
            for each in node.entries
        ]
        name = self.name_of(node.name.removeprefix("."))
        return self.apply(runtime.message, name, ast.List(entries, _LOAD, **_PLACE))

    # --- comprehensions

    def comprehension(self, node: Comprehension) -> ast.expr:
        if node.kind == "bind":
            return self.bind(node)
        before, self.walrus = self.walrus, False
        elements = self.expression(node.range)
        self.walrus = before
        names = [node.variable, node.variable2] if node.variable2 else [node.variable]
        scope: dict[str, str | Node] = {name: self.fresh("V") for name in names}
        if node.accumulator in scope:
            raise _UnsupportedError
        targets: list[ast.expr] = [ast.Name(str(scope[name]), ast.Store(), **_PLACE) for name in names]
        target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store(), **_PLACE)
        walk = runtime.iterate_pairs if node.variable2 else runtime.iterate
        source = self.apply(walk, elements)
        self.scopes.append(scope)
        self.walrus = False
        result = self.loop(node, target, source)
        self.walrus = before
        self.scopes.pop()
        return result

    def loop(self, node: Comprehension, target: ast.expr, source: ast.expr) -> ast.expr:
        def each(item: ast.expr, where: list[ast.expr] | None = None, kind: Any = ast.GeneratorExp) -> ast.expr:
            return kind(item, [ast.comprehension(target, source, where or [], 0)], **_PLACE)  # type: ignore[no-any-return]

        if node.kind in ("all", "exists"):
            step = node.step
            assert isinstance(step, Call)
            function = runtime.every if node.kind == "all" else runtime.some
            return self.apply(function, each(self.boolean(step.arguments[1])))
        step, where = node.step, None
        if isinstance(step, Call) and step.function == "_?_:_":
            where, step = step.arguments[0], step.arguments[1]
        conditions = None if where is None else [self.boolean(where)]
        if node.kind == "exists_one":
            return self.apply(runtime.exactly_one, each(ast.Constant(True, **_PLACE), conditions))
        assert isinstance(step, Call)
        if node.kind in ("map", "filter"):
            items = step.arguments[1]
            assert isinstance(items, ListNode)
            return each(self.expression(items.elements[0]), conditions, ast.ListComp)
        if node.kind == "transformMap":
            pair = ast.Tuple([self.expression(item) for item in step.arguments[1:]], _LOAD, **_PLACE)
            return self.apply(runtime.collect_map, each(pair, conditions))
        return self.apply(runtime.merge_maps, each(self.expression(step.arguments[1]), conditions))

    def bind(self, node: Comprehension) -> ast.expr:
        if self.replaceable(node):
            self.scopes.append({node.accumulator: node.initial})
            body = self.expression(node.result)
            self.scopes.pop()
            return body
        value = self.expression(node.initial)
        name = self.fresh("V")
        self.scopes.append({node.accumulator: name})
        before, self.walrus = self.walrus, True
        body = self.expression(node.result)
        self.walrus = before
        self.scopes.pop()
        return ast.Call(self.function([name], body), [value], [], **_PLACE)

    def replaceable(self, node: Comprehension) -> bool:
        """Whether a bound variable can be written as its value: read at most once, or a domain's map.

        Values are bound lazily upstream: one that is never read must not fail.
        """
        for inner in walk(node.initial):
            if isinstance(inner, Comprehension) or (isinstance(inner, Ident) and self.local(inner.name) is not None):
                return False
        reads, inside = 0, False
        for inner in walk(node.result):
            if isinstance(inner, Comprehension):
                inside = True
                if node.accumulator in (inner.variable, inner.variable2, inner.accumulator):
                    return False
            reads += isinstance(inner, Ident) and inner.name == node.accumulator
        return reads == 0 or (reads == 1 and not inside) or self.domain(node.initial) is not None


class _NoWalrusError(_UnsupportedError):
    """An assignment expression may not stand here."""


_METHODS: Final[dict[type, str]] = {
    Ident: "ident",
    Select: "select",
    Call: "call",
    ListNode: "list_literal",
    MapNode: "map_literal",
    StructNode: "struct",
    Comprehension: "comprehension",
}
_SPECIAL: Final = {
    "_[_]": "index",
    "_[?_]": "soft_index",
    "_?._": "soft_index",
    "_&&_": "logic",
    "_||_": "logic",
    "!_": "negation",
    "_?_:_": "conditional",
    "_==_": "equality",
    "_!=_": "equality",
    "_<_": "ordering",
    "_<=_": "ordering",
    "_>_": "ordering",
    "_>=_": "ordering",
    "@in": "contained",
    "or": "or_value",
    "orValue": "or_value",
    "hasValue": "has_value",
    "@not_strictly_false": "not_false",
}
