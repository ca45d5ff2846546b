"""What functions do: one module a library, looked up by function name or overload id, with upstream's run-time guards.

A `SINGLETON` serves all overloads of a function and checks its operands itself; the others are guarded by the types
that their overload declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from drakit.cel.errors import EvaluationError
from drakit.cel.functions import formats as formats_library
from drakit.cel.functions import (
    formatting,
    lists,
    network,
    numbers,
    operators,
    optionals,
    quantities,
    regex,
    semvers,
    strings,
    times,
    urls,
)
from drakit.cel.values import TYPE_NAMES, is_list, type_name, untag

if TYPE_CHECKING:
    from collections.abc import Callable

    from drakit.cel.declarations import Function, Overload
    from drakit.cel.types import Type

__all__ = ["OVERLOADS", "SINGLETONS", "dispatch", "fits"]

Implementation: TypeAlias = "Callable[..., Any]"

SINGLETONS: Final[dict[str, Implementation]] = {
    **operators.SINGLETONS,
    **strings.SINGLETONS,
    **lists.SINGLETONS,
    **regex.SINGLETONS,
}
OVERLOADS: Final[dict[str, Implementation]] = {
    **numbers.OVERLOADS,
    **times.OVERLOADS,
    **strings.OVERLOADS,
    **formatting.OVERLOADS,
    **lists.OVERLOADS,
    **optionals.OVERLOADS,
    **regex.OVERLOADS,
    **quantities.OVERLOADS,
    **semvers.OVERLOADS,
    **urls.OVERLOADS,
    **network.OVERLOADS,
    **formats_library.OVERLOADS,
}


def dispatch(function: Function, candidates: tuple[str, ...]) -> Implementation:
    """What evaluates a call with these candidate overloads."""
    single = SINGLETONS.get(function.name)
    if single is not None:
        return single
    known = [each for each in function.overloads if each.id in OVERLOADS]
    if len(candidates) == 1:
        known = [each for each in known if each.id == candidates[0]]
    if not known:
        return _unavailable(function.name)
    if len(known) == 1:
        return _guarded(known[0])
    return _dynamic(function.name, known)


def _unavailable(name: str) -> Implementation:
    def call(*_: Any) -> Any:
        raise EvaluationError(f"no such overload: {name}")

    return call


def _refuse(name: str, values: tuple[Any, ...]) -> EvaluationError:
    return EvaluationError(f"no such overload: {name}({', '.join(map(type_name, values))})")


def _guarded(overload: Overload) -> Implementation:
    implementation, types, name = OVERLOADS[overload.id], overload.arguments, overload.function
    if not types:
        return implementation
    if all(each.kind in ("parameter", "dyn", "any") for each in types):
        return implementation
    if len(types) == 1:
        only = types[0]

        def call_one(value: Any) -> Any:
            if not fits(only, value):
                raise _refuse(name, (value,))
            return implementation(value)

        return call_one

    def call(*values: Any) -> Any:
        for expected, value in zip(types, values, strict=True):
            if not fits(expected, value):
                raise _refuse(name, values)
        return implementation(*values)

    return call


def _dynamic(name: str, overloads: list[Overload]) -> Implementation:
    table = [(each.arguments, OVERLOADS[each.id]) for each in overloads]

    def call(*values: Any) -> Any:
        for types, implementation in table:
            if len(types) == len(values) and all(map(fits, types, values)):
                return implementation(*values)
        raise _refuse(name, values)

    return call


def fits(type: Type, value: Any) -> bool:
    """Whether a value may be an argument of a type; of lists and maps only the first element is looked at."""
    kind = type.kind
    if kind in ("dyn", "any", "parameter"):
        return True
    if TYPE_NAMES[value.__class__] != type.name:
        return False
    if kind == "list":
        return not value or not is_list(value) or fits(type.parameters[0], value[0])
    if kind == "map" and value:
        key, first = next(iter(value.items()))
        return fits(type.parameters[0], untag(key)) and fits(type.parameters[1], first)
    return True
