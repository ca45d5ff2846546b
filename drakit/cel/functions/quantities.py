"""Quantities."""

from __future__ import annotations

from typing import Any, Final

from drakit.api import Quantity as ExactQuantity
from drakit.api import QuantityError
from drakit.cel.errors import EvaluationError
from drakit.cel.values import Quantity

__all__ = ["OVERLOADS", "approximate", "parse"]

_MAX_SHIFT: Final = 10_000


def parse(text: str) -> Quantity:
    """A quantity from its text."""
    try:
        return Quantity(ExactQuantity.parse(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        ExactQuantity.parse(text)
    except QuantityError:
        return False
    return True


def approximate(value: Quantity) -> float:
    """The nearest double, computed as upstream does: digits times a power of ten."""
    amount, scale = value.exact.amount, value.exact.scale
    try:
        base = float(amount)
    except OverflowError:
        base = float("inf") if amount > 0 else float("-inf")
    if scale == 0:
        return base
    power = 0.0 if scale < -323 else float("inf") if scale > 308 else float(f"1e{scale}")
    return base * power


def _as_integer(value: Quantity) -> int:
    whole = value.exact.as_int64()
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _aligned(value: Quantity, other: ExactQuantity) -> None:
    if abs(value.exact.scale - other.scale) > _MAX_SHIFT:
        raise EvaluationError("quantities are too far apart to be added")


def _add(value: Quantity, other: Quantity | int) -> Quantity:
    amount = ExactQuantity.of(other) if isinstance(other, int) else other.exact
    _aligned(value, amount)
    return Quantity(value.exact + amount, computed=True)


def _subtract(value: Quantity, other: Quantity | int) -> Quantity:
    amount = ExactQuantity.of(other) if isinstance(other, int) else other.exact
    _aligned(value, amount)
    return Quantity(value.exact - amount, computed=True)


OVERLOADS: Final[dict[str, Any]] = {
    "string_to_quantity": parse,
    "is_quantity_string": _is_quantity,
    "quantity_sign": lambda value: value.exact.sign(),
    "quantity_is_greater_than": lambda value, other: value.exact.compare(other.exact) > 0,
    "quantity_is_less_than": lambda value, other: value.exact.compare(other.exact) < 0,
    "quantity_compare_to": lambda value, other: value.exact.compare(other.exact),
    "quantity_get_float": approximate,
    "quantity_get_int": _as_integer,
    "quantity_is_integer": lambda value: value.exact.as_int64() is not None,
    "quantity_add": _add,
    "quantity_add_int": _add,
    "quantity_sub": _subtract,
    "quantity_sub_int": _subtract,
}
