"""The exact evaluator with a meter: counts upstream's cost units and stops at the limit.

Only expressions whose estimate is near the limit run here; everything else is bounded by its estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit.cel.access import present, qualify
from drakit.cel.cost.actual import pricing
from drakit.cel.errors import EvaluationError, PanicError
from drakit.cel.exact import INDEXING, Builder
from drakit.cel.syntax import Call, Ident, ListNode, MapNode, Node, Select, StructNode
from drakit.cel.values import MISSING, NONE, Optional

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drakit.cel.declarations import Function
    from drakit.cel.folding import Constants

__all__ = ["LIMIT_MESSAGE", "Metered"]

LIMIT_MESSAGE: Final = "operation cancelled: actual cost limit exceeded"


class Metered(Builder):
    """Builds closures that charge slot `meter`, a one-element list with what is left of the limit."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        constants: Constants,
        variables: tuple[str, ...],
        *,
        list_costs: bool,
    ) -> None:
        super().__init__(functions, constants, variables)
        self.list_costs = list_costs
        self.meter = self.slot()

    def observed(self, node: Node, closure: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        """Charge for making lists, maps and messages."""
        if isinstance(node, ListNode):
            return self.charging(closure, 10)
        if isinstance(node, MapNode):
            return self.charging(closure, 30)
        return self.charging(closure, 40) if isinstance(node, StructNode) else closure

    def charging(self, closure: Callable[[list[Any]], Any], amount: int) -> Callable[[list[Any]], Any]:
        """Charge after evaluation."""
        meter = self.meter

        def run(slots: list[Any]) -> Any:
            try:
                return closure(slots)
            finally:
                charge(slots[meter], amount)

        return run

    def priced(self, node: Call, call: Callable[..., Any]) -> Callable[..., Any]:
        """Keep the price with the implementation."""
        return _Priced(call, pricing(node.function, node.overloads, list_costs=self.list_costs))  # type: ignore[return-value]

    def applied(self, call: Callable[..., Any]) -> Callable[[list[Any], list[Any]], Any]:
        """A function of slots and arguments that charges what the call did cost, failed or not."""
        assert isinstance(call, _Priced)
        implementation, price, meter = call.call, call.price, self.meter

        def run(slots: list[Any], arguments: list[Any]) -> Any:
            failure = next((each for each in arguments if each.__class__ in _ERRORS), None)
            try:
                if failure is not None:
                    raise failure
                value = implementation(*arguments)
            except PanicError:
                raise
            except EvaluationError as error:
                charge(slots[meter], _failed_price(price, arguments, error))
                raise
            charge(slots[meter], price(arguments, value))
            return value

        return run

    def unary(self, call: Any, operand: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        """A call with one operand, priced also when it fails."""
        run = self.applied(call)
        return lambda slots: run(slots, [_attempt(operand, slots)])

    def binary(
        self, call: Any, left: Callable[[list[Any]], Any], right: Callable[[list[Any]], Any]
    ) -> Callable[[list[Any]], Any]:
        """A call with two operands, priced also when they fail."""
        run = self.applied(call)
        return lambda slots: run(slots, [_attempt(left, slots), _attempt(right, slots)])

    def variadic(self, call: Any, operands: list[Callable[[list[Any]], Any]]) -> Callable[[list[Any]], Any]:
        """A call that stops at the first operand that fails."""
        run = self.applied(call)
        return lambda slots: run(slots, [each(slots) for each in operands])

    def not_false_of(self, operand: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        """The condition of `all` and `exists`: one unit."""
        return self.charging(super().not_false_of(operand), 1)

    def ident(self, node: Ident) -> Callable[[list[Any]], Any]:
        """A name that stands alone: one unit."""
        return self.charging(self.root(node), 1)

    def key(self, node: Node) -> Callable[[list[Any]], Any]:
        """A key that is itself a name or selection costs only its own qualifiers."""
        return self.bare(node)

    def branch(self, node: Node) -> Callable[[list[Any]], Any]:
        """A branch that is a name or selection costs only its own qualifiers."""
        return self.bare(node)

    def bare(self, node: Node) -> Callable[[list[Any]], Any]:
        """A name or selection without the unit for itself."""
        if node in self.constants:
            return self.build(node)
        if isinstance(node, Ident):
            return self.root(node)
        if (isinstance(node, Select) and not node.test) or (isinstance(node, Call) and node.function in INDEXING):
            root, steps, _ = self.steps(node)
            return self.walker(root, steps, test=False, base=0)
        return self.build(node)

    def reader(
        self, node: Node, root: Callable[[list[Any]], Any], steps: list[Any], *, test: bool
    ) -> Callable[[list[Any]], Any]:
        """A chain: one unit for itself unless it is a test, one for every step."""
        conditional = isinstance(node, Call) and node.function == "_?_:_"
        return self.walker(root, steps, test=test, base=0 if test or conditional else 1)

    def walker(
        self, root: Callable[[list[Any]], Any], steps: list[Any], *, test: bool, base: int
    ) -> Callable[[list[Any]], Any]:
        """The closure of a chain; `base` is what it costs by itself."""
        meter, last = self.meter, len(steps) - 1

        def run(slots: list[Any]) -> Any:
            value = root(slots)
            balance = slots[meter]
            charge(balance, base)
            optional = value.__class__ is Optional
            if optional:
                if value is NONE:
                    return False if test else NONE
                value = value.value
            for position, (closure, constant, softly) in enumerate(steps):
                key = constant if closure is None else closure(slots)
                optional = optional or softly
                tested = test and position == last
                if not optional and not tested:
                    charge(balance, 1)
                    value = qualify(value, key)
                    continue
                value = present(value, key)
                if value is not MISSING or tested:
                    charge(balance, 1)
                if tested:
                    return value is not MISSING
                if value is MISSING:
                    return False if test else NONE
            return Optional(value) if optional else value

        return run


class _Priced:
    """An implementation with its price."""

    __slots__ = ("call", "price")

    def __init__(self, call: Callable[..., Any], price: Callable[[Any, Any], int]) -> None:
        self.call = call
        self.price = price


_ERRORS: Final = frozenset({EvaluationError})


def _attempt(closure: Callable[[list[Any]], Any], slots: list[Any]) -> Any:
    """The value, or the error as a value: upstream prices calls with errors, too."""
    try:
        return closure(slots)
    except PanicError:
        raise
    except EvaluationError as error:
        return error


def _failed_price(price: Callable[[Any, Any], int], arguments: list[Any], error: EvaluationError) -> int:
    try:
        return price(arguments, error)
    except (TypeError, LookupError, AttributeError):
        return 1


def charge(balance: list[int], amount: int) -> None:
    """Take from the balance.

    Raises:
        PanicError: Nothing is left; nothing absorbs it.
    """
    balance[0] -= amount
    if balance[0] < 0:
        raise PanicError(LIMIT_MESSAGE)
