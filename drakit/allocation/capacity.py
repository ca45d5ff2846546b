"""Consumable capacity: how much of a device a request takes, and whether the policy allows it (spec/allocator.md 1.9).

Amounts are exact integers in units of 10**-9; `Quantity` is kept only for what ends in results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from drakit.allocation.reasons import CapacityPolicyViolated, CapacityUnknown
from drakit.api.quantity import BINARY_SI, DECIMAL_SI, Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drakit.api import resource

__all__ = ["Consumption", "consume"]

_UNIT: Final = 10**9


class Consumption(NamedTuple):
    """What one allocation takes of a device: per capacity the amount, and what the device has of it."""

    names: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    amounts: tuple[int, ...]
    values: tuple[int, ...]


def consume(
    capacity: Mapping[str, resource.DeviceCapacity], requests: Mapping[str, Quantity] | None, *, fractional: bool
) -> Consumption | CapacityUnknown | CapacityPolicyViolated:
    """What a request takes of a device with this capacity, before looking at what is left.

    Args:
        capacity: All capacities of the device; each of them is consumed.
        requests: The amounts asked for; names match literally.
        fractional: DRAFractionalCapacityRange: ranges with fractions are exact instead of rounded up to integers.
    """
    for name in requests or ():
        if name not in capacity:
            return CapacityUnknown(name=name)
    quantities = []
    for name, declared in capacity.items():
        amount = _consumed_amount(declared, (requests or {}).get(name), fractional=fractional)
        if _violates_policy(amount, declared.request_policy, fractional=fractional):
            return CapacityPolicyViolated(name=name, amount=str(amount))
        quantities.append(amount)
    return Consumption(
        tuple(capacity),
        tuple(quantities),
        tuple(quantity.nano for quantity in quantities),
        tuple(declared.value.nano for declared in capacity.values()),
    )


def _consumed_amount(declared: resource.DeviceCapacity, requested: Quantity | None, *, fractional: bool) -> Quantity:
    """The amount taken for one capacity: the default or everything without a request, else the request rounded up."""
    policy = declared.request_policy
    if requested is None:
        return declared.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _round_into_range(requested, policy.valid_range, fractional=fractional)
    return next((value for value in policy.valid_values if requested <= value), requested)


def _violates_policy(amount: Quantity, policy: resource.CapacityRequestPolicy | None, *, fractional: bool) -> bool:
    """Whether an amount is not allowed; the default always is. Minima are kept by rounding, not checked here."""
    if policy is None or amount == policy.default:
        return False
    if policy.valid_range is not None:
        return _outside(amount, policy.valid_range, fractional=fractional)
    return bool(policy.valid_values) and amount not in policy.valid_values


def _round_into_range(
    requested: Quantity, range_: resource.CapacityRequestPolicyRange, *, fractional: bool
) -> Quantity:
    minimum, step = range_.min, range_.step
    assert minimum is not None
    if requested < minimum:
        return minimum
    if step is None:
        return requested
    scale = _scale(range_, fractional=fractional)
    low, width = minimum.scaled_value(scale), step.scaled_value(scale)
    if not width:
        return requested
    rounded = low + -(-(requested.scaled_value(scale) - low) // width) * width
    return Quantity(rounded, scale, BINARY_SI if scale == 0 else DECIMAL_SI)


def _outside(amount: Quantity, range_: resource.CapacityRequestPolicyRange, *, fractional: bool) -> bool:
    if range_.max is not None and amount > range_.max:
        return True
    if range_.step is None:
        return False
    scale = _scale(range_, fractional=fractional)
    low = range_.min.scaled_value(scale) if range_.min is not None else 0
    width = range_.step.scaled_value(scale)
    return bool(width) and (amount.scaled_value(scale) - low) % width != 0


def _scale(range_: resource.CapacityRequestPolicyRange, *, fractional: bool) -> int:
    """Integers, or thousandths as soon as a bound or the step has a fraction (and the feature is on)."""
    bounds = (range_.min, range_.max, range_.step)
    return -3 if fractional and any(bound is not None and bound.nano % _UNIT for bound in bounds) else 0
