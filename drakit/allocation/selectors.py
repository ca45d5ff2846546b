"""Class selectors, request selectors and derived attributes, evaluated once per device content.

An outcome is True, False, or a `SelectorFailed`: errors are values here, because the search raises them only when it
really gets to the device (spec/allocator.md 1.7: evaluation is lazy).
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from drakit import cel
from drakit.allocation.reasons import SelectorFailed, SelectorFalse
from drakit.api import resource

if TYPE_CHECKING:
    from drakit.allocation.devices import DeviceContent

__all__ = ["CLASS", "DERIVED", "REQUEST", "Outcome", "Programs", "Selectors"]

CLASS = "class"
REQUEST = "claim"
DERIVED = "derived attribute"

Outcome: TypeAlias = "bool | SelectorFailed"


_DRIVER_IS = re.compile(r'\s*device\.driver\s*==\s*"([A-Za-z0-9.-]+)"\s*')


@functools.cache
def _environment() -> cel.Environment:
    return cel.Environment()


class Programs:
    """Compiled expressions; a failed compilation is kept as its error.

    Stored expressions are compiled in the full environment whatever the gates say (spec/allocator.md 2).
    """

    def __init__(self) -> None:
        self._environment = _environment()
        self._compiled: dict[tuple[str, str], Any] = {}

    def get(self, expression: str, result: str = "bool") -> Any:
        """The program, or the `cel.CompileError`."""
        key = (expression, result)
        found = self._compiled.get(key)
        if found is None:
            try:
                found = self._environment.compile(expression, result)
            except cel.CompileError as error:
                found = error
            self._compiled[key] = found
        return found


_Expression: TypeAlias = tuple[str, int, str]


def _split_drivers(expressions: tuple[_Expression, ...]) -> tuple[tuple[str, ...], tuple[_Expression, ...]]:
    """The drivers that the first expressions just compare with, and the other expressions.

    Nearly all classes select so; it needs neither a program nor a view of the device.
    """
    wanted = []
    for _, _, expression in expressions:
        match = _DRIVER_IS.fullmatch(expression)
        if match is None:
            break
        wanted.append(match.group(1))
    return tuple(wanted), expressions[len(wanted) :]


_DRIVER = re.compile(r"device\s*\.\s*driver\b")


def _reads_only_driver(expression: str) -> bool:
    """Whether an expression cannot depend on more than the driver: `device` occurs in `device.driver` only."""
    return "device" not in _DRIVER.sub("", expression)


class Selectors:
    """The conditions of one (class, request) pair, and the derived attributes computed after them.

    Attributes:
        expressions: `(source, index, expression)` in evaluation order: class selectors, then request selectors.
        derived: Derived attributes by name.
    """

    __slots__ = ("_drivers", "_programs", "_rest", "_wanted", "derived", "expressions")

    def __init__(
        self,
        programs: Programs,
        class_expressions: tuple[str, ...],
        request_expressions: tuple[str, ...],
        derived: tuple[tuple[str, str], ...],
    ) -> None:
        self._programs = programs
        self.expressions = tuple((CLASS, index, text) for index, text in enumerate(class_expressions)) + tuple(
            (REQUEST, index, text) for index, text in enumerate(request_expressions)
        )
        self.derived = derived
        self._drivers: dict[str, bool] = {}
        self._wanted, self._rest = _split_drivers(self.expressions)

    def outcome(self, content: DeviceContent) -> Outcome:
        """Whether the device is selected; cached with the content."""
        found = content.outcomes.get(self)
        if found is None:
            found = content.outcomes[self] = self._evaluate(content)
        return found

    def cannot_fail(self, driver: str) -> bool:
        """Whether no selector can fail on a device of this driver, because none reads more than the driver's name."""
        found = self._drivers.get(driver)
        if found is None:
            found = not self.derived and all(
                _reads_only_driver(text) and self._is_sound(text, driver) for _, _, text in self.expressions
            )
            self._drivers[driver] = found
        return found

    def _is_sound(self, expression: str, driver: str) -> bool:
        if _DRIVER_IS.fullmatch(expression):
            return True
        program = self._programs.get(expression)
        if isinstance(program, cel.CompileError):
            return False
        try:
            program.evaluate(cel.device_view(driver, resource.Device(name="")))
        except cel.EvaluationError:
            return False
        return True

    def why_not(self, content: DeviceContent) -> SelectorFalse | SelectorFailed | None:
        """The first selector that does not hold, or fails; None when the device is selected."""
        for source, index, expression in self.expressions:
            single = self._one(content, source, index, expression)
            if single is not True:
                return single or SelectorFalse(source=source, index=index, expression=expression)
        failed = self.outcome(content)
        return failed if isinstance(failed, SelectorFailed) else None

    def derived_values(self, content: DeviceContent) -> dict[str, resource.DeviceAttribute]:
        """Values of the derived attributes of a selected device."""
        if not self.derived:
            return {}
        self.outcome(content)
        return content.derived.get(self, {})

    def _evaluate(self, content: DeviceContent) -> Outcome:
        expressions = self.expressions
        if self._wanted and not content.odd:
            for driver in self._wanted:
                if driver != content.driver:
                    return False
            expressions = self._rest
        for source, index, expression in expressions:
            outcome = self._one(content, source, index, expression)
            if outcome is not True:
                return outcome
        return self._derive(content) if self.derived else True

    def _one(self, content: DeviceContent, source: str, index: int, expression: str) -> Outcome:
        key = expression
        found = content.expressions.get(key)
        if found is None:
            found = content.expressions[key] = self._run(content, expression)
        if found is True or found is False:
            return found
        compiling, message = found
        return SelectorFailed(source=source, index=index, expression=expression, compiling=compiling, message=message)

    def _run(self, content: DeviceContent, expression: str) -> bool | tuple[bool, str]:
        program = self._programs.get(expression)
        if isinstance(program, cel.CompileError):
            return True, str(program)
        try:
            return bool(program.evaluate(content.view))
        except cel.EvaluationError as error:
            return False, error.enhanced()

    def _derive(self, content: DeviceContent) -> Outcome:
        values: dict[str, resource.DeviceAttribute] = {}
        for index, (name, expression) in enumerate(self.derived):
            program = self._programs.get(expression, "value")
            compiling = isinstance(program, cel.CompileError)
            try:
                if compiling:
                    raise program
                values[name] = program.attribute(content.view)
            except (cel.CompileError, cel.EvaluationError) as error:
                return SelectorFailed(
                    source=DERIVED,
                    index=index,
                    expression=expression,
                    compiling=compiling,
                    message=error.enhanced() if isinstance(error, cel.EvaluationError) else str(error),
                    name=name,
                )
        content.derived[self] = values
        return True
