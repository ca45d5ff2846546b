"""Programs: compiled expressions that evaluate any number of devices or objects, from any number of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit.cel import results
from drakit.cel.cost import MAX_COST, estimate
from drakit.cel.depth import deeply
from drakit.cel.device import DeviceView
from drakit.cel.errors import EvaluationError
from drakit.cel.exact import Builder
from drakit.cel.generate import generate
from drakit.cel.metered import Metered
from drakit.cel.values import MISSING, adapt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drakit.api.resource import DeviceAttribute
    from drakit.cel.declarations import Function
    from drakit.cel.folding import Constants
    from drakit.cel.syntax import Node

__all__ = ["Program"]

_UNMETERED: Final = MAX_COST // 2
_TOO_DEEP: Final = "expression nests too deeply to be evaluated"
_TOO_LARGE: Final = "expression needs too much memory to be evaluated"


class Program:
    """A compiled expression.

    Attributes:
        expression: The text it was compiled from.
        result: What it has to result in: `bool`, `value`, `string` or `any`.
        output_type: What the checker made of it: `bool`, `dyn`, ...
        cost: Upstream's estimate of the highest cost, which API validation limits to 1,000,000.
        generated: Whether evaluation runs generated code; else the closures, metered near the limit.
        fallbacks: How often generated code gave up and the closures decided. Not exact under threads.
    """

    __slots__ = (
        "_constants", "_device", "_exact", "_functions", "_list_costs", "_lists", "_metered", "_root", "_run",
        "_variables", "cost", "expression", "fallbacks", "generated", "output_type", "result",
    )  # fmt: skip

    def __init__(
        self,
        expression: str,
        root: Node,
        constants: Constants,
        *,
        functions: Mapping[str, Function],
        variables: tuple[str, ...],
        device: bool,
        list_costs: bool,
        lists: bool,
        result: str,
    ) -> None:
        self.expression = expression
        self.result = result
        self.output_type = str(root.type)
        self.cost = estimate(root, list_costs=list_costs)[1]
        self.fallbacks = 0
        self._root = root
        self._constants = constants
        self._functions = functions
        self._variables = variables
        self._device = device
        self._list_costs = list_costs
        self._lists = lists
        self._exact: tuple[Callable[[list[Any]], Any], int] | None = None
        self._metered: tuple[Callable[[list[Any]], Any], int] | None = None
        run = None
        if self.cost <= _UNMETERED:
            run = generate(root, functions, constants, variables, device=device)
        self.generated = run is not None
        self._run = run

    def evaluate(self, target: DeviceView | Mapping[str, Any]) -> Any:
        """Evaluate a device's view, or the variables by name.

        Returns:
            A bool for selectors; for other results a str, int, bool, float, None, `api.Semver`, `api.Quantity`, or a
            tuple or dict of them.

        Raises:
            EvaluationError: The expression fails on this device.
        """
        if not self._device or target.__class__ is not DeviceView:
            return self._evaluate_variables(target)
        if target.failure is not None:
            raise target.failure
        run = self._run
        if run is None:
            value = self._slow([target.as_map()])
        else:
            try:
                value = run(target)
            except Exception:  # noqa: BLE001 - whatever the generated code raised, the closures decide
                self.fallbacks += 1
                value = self.exact([target.as_map()])
        if value is True or value is False:
            return value
        return results.convert(value, self.result, lists=self._lists)

    def attribute(self, view: DeviceView) -> DeviceAttribute:
        """The value of a derived attribute on a device.

        Raises:
            EvaluationError: The expression fails, or its value can be no attribute.
        """
        return results.attribute(self.evaluate(view))

    def _evaluate_variables(self, target: Any) -> Any:
        if self._device:
            raise TypeError("a selector evaluates the view of a device")
        try:
            variables = [adapt(target[name]) if name in target else MISSING for name in self._variables]
        except RecursionError:
            raise EvaluationError(_TOO_DEEP) from None
        if self._run is None:
            return results.convert(self._slow(variables), self.result, lists=self._lists)
        try:
            value = self._run(*variables)
        except Exception:  # noqa: BLE001 - whatever the generated code raised, the closures decide
            self.fallbacks += 1
            value = self.exact(variables)
        return results.convert(value, self.result, lists=self._lists)

    def _slow(self, variables: list[Any]) -> Any:
        return self.exact(variables) if self.cost <= _UNMETERED else self.measure(variables)[0]

    def exact(self, variables: list[Any]) -> Any:
        """Evaluate by the closures; `variables` are CEL values in the environment's order.

        Raises:
            EvaluationError: The expression fails.
        """
        if self._exact is None:
            builder = Builder(self._functions, self._constants, self._variables)
            closure = _closure(builder, self._root)
            self._exact = closure, builder.slots - len(self._variables)
        closure, more = self._exact
        return _run(closure, [*variables, *[MISSING] * more])

    def measure(self, variables: list[Any], limit: int = MAX_COST) -> tuple[Any, int]:
        """Evaluate by the closures and count: the value and what it did cost.

        Raises:
            EvaluationError: The expression fails, or exceeds the limit (`actual cost limit exceeded`).
        """
        if self._metered is None:
            builder = Metered(self._functions, self._constants, self._variables, list_costs=self._list_costs)
            closure = _closure(builder, self._root)
            self._metered = closure, builder.slots - len(self._variables) - 1
        closure, more = self._metered
        balance = [limit]
        value = _run(closure, [*variables, balance, *[MISSING] * more])
        return value, limit - balance[0]


def _closure(builder: Builder, root: Node) -> Callable[[list[Any]], Any]:
    try:
        return deeply(lambda: builder.build(root))
    except RecursionError:
        raise EvaluationError(_TOO_DEEP) from None


def _run(closure: Callable[[list[Any]], Any], slots: list[Any]) -> Any:
    try:
        return deeply(lambda: closure([*slots]))
    except RecursionError:
        raise EvaluationError(_TOO_DEEP) from None
    except MemoryError:
        raise EvaluationError(_TOO_LARGE) from None
