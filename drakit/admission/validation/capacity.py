"""Request policies of shared capacities. Source: spec/resourceslice.md 2.3, spec/apiserver.md 3, 15, 16."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from drakit.admission.validation import formats
from drakit.api import Quantity, limits

if TYPE_CHECKING:
    from drakit.admission.faults import Faults
    from drakit.admission.policy import Policy

__all__ = ["request_policy"]

Json = dict[str, Any]

_LARGEST: Final = Quantity.parse("9223372036854775807")
_ZERO: Final = Quantity()


class _Owner(NamedTuple):
    """What a policy is held against: its default, the capacity that it is for, the server."""

    default: Quantity
    capacity: Quantity
    server: Policy


class _Bounds(NamedTuple):
    """A valid range, parsed; `min` is there."""

    default: Quantity
    min: Quantity
    max: Quantity | None
    step: Quantity | None

    def named(self) -> dict[str, Quantity]:
        """What is set, by the name of its field."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def request_policy(faults: Faults, path: str, policy: Json, capacity: str, *, server: Policy) -> None:
    """A policy of a capacity of that value, on a device that may be allocated several times."""
    values, bounds = policy.get("validValues"), policy.get("validRange")
    if values and bounds is not None:
        faults.forbidden(
            path, 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        )
        return
    name = "validValues" if values else "validRange"
    if not values and bounds is None:
        return
    if policy.get("default") is None:
        faults.required(f"{path}.default", f"required when {name} is defined")
        return
    owner = _Owner(Quantity.parse(policy["default"]), Quantity.parse(capacity), server)
    if values:
        _values(faults, f"{path}.{name}", [Quantity.parse(text) for text in values], owner)
    elif bounds is not None:
        _range(faults, f"{path}.{name}", bounds, owner)


def _values(faults: Faults, path: str, values: list[Quantity], owner: _Owner) -> None:
    for index in range(1, len(values)):
        if values[index - 1] > values[index]:
            faults.invalid(f"{path}[{index}]", str(values[index]), "values must be sorted in ascending order")

    def check(where: str, value: Quantity) -> None:
        if value > owner.capacity:
            faults.invalid(where, str(value), f"option is larger than capacity value: {owner.capacity}")

    complete = formats.items(faults, path, values, limits.VALID_VALUES, check)
    if complete:
        exact = owner.server.on("DRAFractionalCapacityRange")
        formats.unique(faults, path, [value if exact else str(value.value()) for value in values])
    if not complete or owner.default not in values:
        faults.invalid(path, str(owner.default), "default value is not valid according to the requestPolicy")


def _range(faults: Faults, path: str, fields: Json, owner: _Owner) -> None:
    lowest, highest, step = (_bound(fields, name) for name in ("min", "max", "step"))
    if lowest is None:
        faults.required(f"{path}.min", "required when validRange is defined")
        return
    bounds = _Bounds(owner.default, lowest, highest, step)
    _order(faults, path, bounds, owner)
    milli = owner.server.on("DRAFractionalCapacityRange") and any(map(_fractional, bounds.named().values()))
    if milli and _beyond_milli(faults, path, bounds):
        return
    if step is not None:
        _step(faults, path, bounds, owner, milli=milli)


def _bound(fields: Json, name: str) -> Quantity | None:
    text = fields.get(name)
    return None if text is None else Quantity.parse(text)


def _order(faults: Faults, path: str, bounds: _Bounds, owner: _Owner) -> None:
    default, lowest, highest, _ = bounds
    # 1.36 and older report the default at the bound that it violates.
    own_path = f"{path}.default" if owner.server.since("1.37") else ""
    if lowest > owner.capacity:
        faults.invalid(f"{path}.min", str(lowest), f"min is larger than capacity value: {owner.capacity}")
    if default < lowest:
        faults.invalid(own_path or f"{path}.min", str(default), f"default is less than min: {lowest}")
    if highest is None:
        return
    if lowest > highest:
        faults.invalid(f"{path}.max", str(lowest), f"min is larger than max: {highest}")
    if highest > owner.capacity:
        faults.invalid(f"{path}.max", str(highest), f"max is larger than capacity value: {owner.capacity}")
    if default > highest:
        faults.invalid(own_path or f"{path}.max", str(default), f"default is more than max: {highest}")


def _fractional(value: Quantity) -> bool:
    return value.scale < 0 and value.amount % 10**-value.scale != 0


def _beyond_milli(faults: Faults, path: str, bounds: _Bounds) -> bool:
    before = len(faults)
    for name, value in bounds.named().items():
        if Quantity(value.milli_value(), -3) != value:
            faults.invalid(f"{path}.{name}", str(value), "value cannot be represented as a milli value")
    return len(faults) > before


def _step(faults: Faults, path: str, bounds: _Bounds, owner: _Owner, *, milli: bool) -> None:
    where, step = f"{path}.step", bounds.step or _ZERO
    strict = owner.server.since("1.37")
    if strict and step.sign() <= 0:
        faults.invalid(where, str(step), "must be greater than zero")
        return
    first = _first_step(bounds.min, step)
    if first > owner.capacity:
        faults.invalid(where, str(step), f"one step {first} is larger than capacity value: {owner.capacity}")
    if strict and not milli and _beyond_int64(faults, path, bounds):
        return
    read = Quantity.milli_value if milli else Quantity.value
    if read(step) == 0:
        # Servers up to 1.36 divide by zero here and drop the connection; this is our own answer instead.
        faults.invalid(where, str(step), "must be greater than zero (this server would fail to answer)")
        return
    for value in (bounds.default, bounds.max):
        if value is not None and (read(value) - read(bounds.min)) % read(step) != 0:
            faults.invalid(where, str(value), f"value is not a multiple of a given step ({step}) from ({bounds.min})")


def _first_step(lowest: Quantity, step: Quantity) -> Quantity:
    """`lowest + step`; for absurd exponents just the larger one."""
    try:
        return lowest + step
    except OverflowError:
        return max(lowest, step)


def _beyond_int64(faults: Faults, path: str, bounds: _Bounds) -> bool:
    before = len(faults)
    for name, value in bounds.named().items():
        if value.sign() < 0:
            faults.invalid(f"{path}.{name}", str(value), "must be greater than or equal to 0")
        elif value > _LARGEST:
            faults.invalid(f"{path}.{name}", str(value), "must not be larger than 9223372036854775807")
    return len(faults) > before
