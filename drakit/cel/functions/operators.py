"""Operators and functions that serve every type: arithmetic with overflow checks, order, membership, size, type."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from drakit.cel.errors import EvaluationError, PanicError
from drakit.cel.functions import times
from drakit.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    Collected,
    Concatenation,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    compare,
    contains,
    is_list,
    no_overload,
    size,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SINGLETONS", "add", "negate"]

_MAX_ELEMENTS: Final = 4_000_000
_INT_OVERFLOW: Final = "integer overflow"
_UINT_OVERFLOW: Final = "unsigned integer overflow"
_RECEIVERS: Final = frozenset({str, Duration, Timestamp})


def _lacking(value: Any, operator: str) -> EvaluationError:
    """The error for a left operand without the operator; strings and times answer more tersely."""
    return no_overload() if value.__class__ in _RECEIVERS else no_overload(operator)


def _int(value: int) -> int:
    if not MIN_INT <= value <= MAX_INT:
        raise EvaluationError(_INT_OVERFLOW)
    return value


def _uint(value: int) -> Uint:
    if not 0 <= value <= MAX_UINT:
        raise EvaluationError(_UINT_OVERFLOW)
    return Uint(value)


def add(left: Any, right: Any) -> Any:
    """`left + right`."""
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind is int:
            return _int(left + right)
        if kind is str or kind is float or kind is bytes:
            return left + right
        if kind is Uint:
            return _uint(int(left) + int(right))
    if is_list(left):
        return _concatenate(left, right)
    if kind is Duration or kind is Timestamp:
        return times.add(left, right)
    if kind in (int, str, float, bytes, Uint):
        raise no_overload()
    raise _lacking(left, "_+_")


def _concatenate(left: Any, right: Any) -> Any:
    if not is_list(right):
        raise no_overload()
    if left.__class__ is Collected:
        left.extend(right)
        return left
    if not left:
        return right
    if not right:
        return left
    if len(left) + len(right) > _MAX_ELEMENTS:
        raise PanicError("list is too long to be concatenated")
    return Concatenation([*left, *right])


def subtract(left: Any, right: Any) -> Any:
    """`left - right`."""
    kind = left.__class__
    if kind is Duration or kind is Timestamp:
        return times.subtract(left, right)
    if kind not in (int, Uint, float):
        raise _lacking(left, "_-_")
    if right.__class__ is not kind:
        raise no_overload()
    if kind is int:
        return _int(left - right)
    return left - right if kind is float else _uint(int(left) - int(right))


def multiply(left: Any, right: Any) -> Any:
    """`left * right`."""
    kind = left.__class__
    if kind not in (int, Uint, float):
        raise _lacking(left, "_*_")
    if right.__class__ is not kind:
        raise no_overload()
    if kind is int:
        return _int(left * right)
    return left * right if kind is float else _uint(int(left) * int(right))


def divide(left: Any, right: Any) -> Any:
    """`left / right`, truncated toward zero for whole numbers."""
    kind = left.__class__
    if kind not in (int, Uint, float):
        raise _lacking(left, "_/_")
    if right.__class__ is not kind:
        raise no_overload()
    if kind is float:
        return _divide_doubles(left, right)
    if right == 0:
        raise EvaluationError("division by zero")
    if kind is Uint:
        return Uint(left // right)
    quotient = abs(left) // abs(right)
    return _int(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Any, right: Any) -> Any:
    """`left % right` with the sign of the left operand."""
    kind = left.__class__
    if kind not in (int, Uint):
        raise _lacking(left, "_%_")
    if right.__class__ is not kind:
        raise no_overload()
    if right == 0:
        raise EvaluationError("modulus by zero")
    if kind is Uint:
        return Uint(left % right)
    if left == MIN_INT and right == -1:
        raise EvaluationError(_INT_OVERFLOW)
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def negate(value: Any) -> Any:
    """`-value`."""
    kind = value.__class__
    if kind is int:
        return _int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return Duration(_int(-value.nanos))
    if kind is bool:
        raise no_overload()
    raise _lacking(value, "-_")


def _not(value: Any) -> bool:
    if value.__class__ is not bool:
        raise no_overload()
    return not value


def _ordered(operator: str, accept: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    def call(left: Any, right: Any) -> bool:
        return accept(compare(left, right, operator))

    return call


def _in(item: Any, container: Any) -> bool:
    return contains(container, item)


def _type(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


def _dyn(value: Any) -> Any:
    return value


SINGLETONS: Final[dict[str, Any]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": _not,
    "_<_": _ordered("_<_", lambda order: order < 0),
    "_<=_": _ordered("_<=_", lambda order: order <= 0),
    "_>_": _ordered("_>_", lambda order: order > 0),
    "_>=_": _ordered("_>=_", lambda order: order >= 0),
    "@in": _in,
    "size": size,
    "type": _type,
    "dyn": _dyn,
}
