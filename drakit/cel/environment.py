"""Environments: they compile expressions as one Kubernetes version does, and remember the latest programs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from drakit.cel.checker import Declared, check
from drakit.cel.declarations.kubernetes import AUTHORIZER
from drakit.cel.depth import deeply
from drakit.cel.errors import CompileError, Issue, render
from drakit.cel.folding import fold
from drakit.cel.libraries import CONSUMABLE_CAPACITY, DEVICE, LIST_TYPE_ATTRIBUTES, dialect
from drakit.cel.parser import parse
from drakit.cel.program import Program
from drakit.cel.results import RESULTS, check_type
from drakit.cel.types import DYN, Type
from drakit.cel.validators import validate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from drakit.cel.diagnostics import Diagnostics
    from drakit.cel.syntax import Node

__all__ = ["ADMISSION_VARIABLES", "DEFAULT_FEATURES", "Environment"]

DEFAULT_FEATURES: Final = frozenset({CONSUMABLE_CAPACITY, LIST_TYPE_ATTRIBUTES})
ADMISSION_VARIABLES: Final = (
    "object",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    "variables",
    "authorizer",
)
_CAPACITY: Final = 1024
_OLDEST, _NEWEST = 31, 37
_TOO_DEEP: Final = "expression recursion limit exceeded: 250"


class Environment:
    """Compiles expressions; safe to share between threads.

    Args:
        version: The Kubernetes version, `1.31` to `1.37`.
        features: Feature gates that are on (`DRAConsumableCapacity`, `DRAListTypeAttributes`).
        stored: True for expressions that are in storage, which see everything their version has; False for those
            being written, which see what the version before had and what gates turn on.
        variables: None for selectors, which see `device`; else the names of variables of any type, such as
            `ADMISSION_VARIABLES`.

    Raises:
        ValueError: The version is not one of those.
    """

    def __init__(
        self,
        version: str = "1.37",
        features: Iterable[str] = DEFAULT_FEATURES,
        stored: bool = True,
        variables: Iterable[str] | None = None,
    ) -> None:
        self.version = version
        self.features = frozenset(features)
        self.stored = stored
        self.device = variables is None
        self._dialect = dialect(_minor(version), self.features, stored=stored, device=self.device)
        types: dict[str, Type] = {"device": DEVICE} if variables is None else dict.fromkeys(variables, DYN)
        if "authorizer" in types:
            types["authorizer"] = AUTHORIZER
        self._variables = tuple(types)
        fields: Mapping[str, Mapping[str, Type]] = (
            {DEVICE.name: self._dialect.device_fields} if self.device else {AUTHORIZER.name: {}}
        )
        self._declared = Declared(self._dialect.functions, types, self._dialect.types, fields)
        self._programs: dict[tuple[str, str], Program] = {}
        self._lock = threading.Lock()

    def compile(self, expression: str, result: str = "bool") -> Program:
        """Compile an expression, or find it among the latest ones.

        Args:
            expression: The text.
            result: `bool` for selectors and policies, `value` for derived attributes, `string` for messages, `any`.

        Raises:
            CompileError: It is not valid in this environment.
        """
        if result not in RESULTS:
            raise ValueError(f"result must be one of {', '.join(RESULTS)}, not {result!r}")
        key = expression, result
        with self._lock:
            program = self._programs.pop(key, None)
            if program is not None:
                self._programs[key] = program
                return program
        try:
            program = deeply(lambda: self._compile(expression, result))
        except RecursionError:
            raise render(expression, [Issue(-1, _TOO_DEEP)]) from None
        with self._lock:
            self._programs[key] = program
            while len(self._programs) > _CAPACITY:
                del self._programs[next(iter(self._programs))]
        return program

    def _compile(self, expression: str, result: str) -> Program:
        root = self.checked(expression)
        attribute = self._dialect.attribute if self.device else None
        lists = LIST_TYPE_ATTRIBUTES in self.features
        check_type(root.type, result, attribute, lists=lists)
        return Program(
            expression,
            root,
            fold(root, self._dialect.functions),
            functions=self._dialect.functions,
            variables=self._variables,
            device=self.device,
            list_costs=self._dialect.list_costs,
            lists=lists,
            result=result,
        )

    def parse(self, expression: str) -> Node:
        """The tree of an expression, macros expanded, not checked.

        Raises:
            CompileError: It does not parse.
        """
        return parse(expression, self._dialect.macros)

    def checked(self, expression: str) -> Node:
        """The typed tree of an expression.

        Raises:
            CompileError: It does not parse or has type errors.
        """
        root = self.parse(expression)
        issues = check(root, self._declared) or validate(root, literals=self._dialect.validators)
        if issues:
            raise render(expression, issues)
        return root

    def check(self, expression: str, result: str = "bool") -> Diagnostics:
        """Everything that can be said about an expression without a device: type, cost, errors, warnings."""
        from drakit.cel.diagnostics import Diagnostics, warnings

        try:
            program = self.compile(expression, result)
        except CompileError as error:
            return Diagnostics(expression=expression, type=None, cost=None, error=error, warnings=())
        found = warnings(self.checked(expression), expression, program.cost)
        return Diagnostics(
            expression=expression, type=program.output_type, cost=program.cost, error=None, warnings=found
        )


def _minor(version: str) -> int:
    major, _, minor = version.removeprefix("v").partition(".")
    number = minor.split(".")[0]
    if major != "1" or not number.isdecimal() or not _OLDEST <= int(number) <= _NEWEST:
        raise ValueError(f"no dialect for Kubernetes {version}: 1.{_OLDEST} to 1.{_NEWEST} are known")
    return int(number)
