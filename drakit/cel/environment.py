"""Environments compile expressions for one Kubernetes version; programs evaluate them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from drakit.cel.checker import Declared, check
from drakit.cel.cost import MAX_COST, estimate
from drakit.cel.errors import CompileError, EvaluationError, render
from drakit.cel.exact import Builder
from drakit.cel.folding import Constants, fold
from drakit.cel.generate import generate
from drakit.cel.libraries import CONSUMABLE_CAPACITY, DEVICE, LIST_TYPE_ATTRIBUTES, dialect
from drakit.cel.metered import Metered
from drakit.cel.parser import parse
from drakit.cel.types import BOOL, DYN, Type
from drakit.cel.validators import validate
from drakit.cel.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drakit.cel.device import DeviceView
    from drakit.cel.syntax import Node

__all__ = ["DEFAULT_FEATURES", "Environment", "Program"]

DEFAULT_FEATURES: Final = frozenset({CONSUMABLE_CAPACITY, LIST_TYPE_ATTRIBUTES})
_CAPACITY: Final = 1024
_UNMETERED: Final = MAX_COST // 2


class Program:
    """A compiled expression: evaluates any number of devices, from any number of threads.

    Attributes:
        expression: The text it was compiled from.
        output_type: What the checker made of it: `bool`, `dyn`, ...
        cost: Upstream's estimate of the highest cost, which API validation limits.
    """

    def __init__(self, environment: Environment, expression: str, root: Node, constants: Constants) -> None:
        self.expression = expression
        self.output_type = str(root.type)
        self.cost = estimate(root, list_costs=environment.list_costs)[1]
        self._environment = environment
        self._root = root
        self._constants = constants
        self._metered: tuple[Callable[[list[Any]], Any], int] | None = None
        self._exact: tuple[Callable[[list[Any]], Any], int] | None = None
        self.fallbacks = 0
        self.generated = False
        self._run = self._prepare()

    def evaluate(self, view: DeviceView) -> bool:
        """Whether the device matches.

        Raises:
            EvaluationError: The expression fails on this device.
        """
        if view.failure is not None:
            raise view.failure
        try:
            value = self._run(view)
        except Exception:
            if not self.generated:
                raise
            self.fallbacks += 1  # whatever the generated code raised, the closures decide
            value = self.exact([view.as_map()])
        if value is True or value is False:
            return value  # type: ignore[no-any-return]
        raise _no_bool(value)

    def _prepare(self) -> Callable[[DeviceView], Any]:
        """Choose how to evaluate: generated code, or metered near the limit."""
        if self.cost > _UNMETERED:
            return lambda view: self.metered([view.as_map()])
        environment = self._environment
        generated = generate(
            self._root, environment.functions, self._constants, tuple(environment.variables), device=True
        )
        self.generated = generated is not None
        return generated or (lambda view: self.exact([view.as_map()]))

    def exact(self, variables: list[Any]) -> Any:
        """Evaluate by the exact evaluator."""
        if self._exact is None:
            builder = Builder(self._environment.functions, self._constants, tuple(self._environment.variables))
            closure = builder.build(self._root)
            self._exact = closure, builder.slots - len(variables)
        closure, more = self._exact
        try:
            return closure([*variables, *[MISSING] * more])
        except RecursionError:
            raise EvaluationError("expression nests too deeply to be evaluated") from None


    def metered(self, variables: list[Any], limit: int = MAX_COST) -> Any:
        """Evaluate and count; the message of exceeding the limit is upstream's."""
        return self.measure(variables, limit)[0]

    def measure(self, variables: list[Any], limit: int = MAX_COST) -> tuple[Any, int]:
        """The value and what it did cost."""
        if self._metered is None:
            environment = self._environment
            builder = Metered(
                environment.functions,
                self._constants,
                tuple(environment.variables),
                list_costs=environment.list_costs,
            )
            closure = builder.build(self._root)
            self._metered = closure, builder.slots - len(variables) - 1
        closure, more = self._metered
        balance = [limit]
        try:
            value = closure([*variables, balance, *[MISSING] * more])
        except RecursionError:
            raise EvaluationError("expression nests too deeply to be evaluated") from None
        return value, limit - balance[0]


def _no_bool(value: Any) -> EvaluationError:
    from drakit.cel.results import not_bool

    return not_bool(value)


class Environment:
    """Compiles expressions as a Kubernetes version does.

    Args:
        version: `1.31` to `1.37`.
        features: Feature gates that are on (`DRAConsumableCapacity`, `DRAListTypeAttributes`).
        stored: True for expressions that are in storage, False for those being written.
        variables: None for `device`; else the names of variables of type dyn (`object`, `oldObject`, ...).
    """

    def __init__(
        self,
        version: str = "1.37",
        features: frozenset[str] = DEFAULT_FEATURES,
        stored: bool = True,
        variables: tuple[str, ...] | None = None,
    ) -> None:
        self.version = version
        self.features = frozenset(features)
        self.stored = stored
        table = dialect(int(version.split(".")[1]), self.features, stored=stored, device=variables is None)
        self.functions = table.functions
        self.macros = table.macros
        self.attribute_type = table.attribute
        self.list_costs = table.list_costs
        types: Mapping[str, Type] = {"device": DEVICE} if variables is None else dict.fromkeys(variables, DYN)
        self.variables = types
        self._dialect = table
        fields = {DEVICE.name: table.device_fields} if variables is None else {}
        self._declared = Declared(table.functions, types, table.types, fields)
        self._programs: dict[tuple[str, str], Program] = {}
        self._lock = threading.Lock()

    def compile(self, expression: str, result: str = "bool") -> Program:
        """Compile an expression; the latest ones are kept.

        Args:
            expression: The text.
            result: `bool` for selectors, `value` for derived attributes.

        Raises:
            CompileError: It is not valid in this environment.
        """
        key = expression, result
        program = self._programs.get(key)
        if program is None:
            program = self._compile(expression, result)
            with self._lock:
                while len(self._programs) >= _CAPACITY:
                    del self._programs[next(iter(self._programs))]
                self._programs[key] = program
        return program

    def _compile(self, expression: str, result: str) -> Program:
        root = parse(expression, self.macros)
        try:
            issues = check(root, self._declared)
            issues = issues or validate(root, literals=self._dialect.validators)
            if issues:
                raise render(expression, issues)
            self._check_result(root.type, result)
            return Program(self, expression, root, fold(root, self.functions))
        except RecursionError:
            raise CompileError("compilation failed: expression nests too deeply") from None

    def _check_result(self, type: Type, result: str) -> None:
        if result == "bool" and type != BOOL and type != self.attribute_type:
            raise CompileError(f"must evaluate to {BOOL} or the unknown type, not {type}")


