"""Request policies of shared capacities. Source: spec/resourceslice.md 2.3, spec/apiserver.md 3, 15, 16."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit.admission.validation import formats
from drakit.api import Quantity, limits

if TYPE_CHECKING:
    from drakit.admission.faults import Faults
    from drakit.admission.policy import Policy

__all__ = ["request_policy"]

Json = dict[str, Any]

_LARGEST: Final = Quantity.parse("9223372036854775807")


def request_policy(faults: Faults, path: str, policy: Json, capacity: str, server: Policy) -> None:
    """A policy of a capacity of that value, on a device that may be allocated several times."""
    values, bounds = policy.get("validValues"), policy.get("validRange")
    default = policy.get("default")
    if values and bounds is not None:
        faults.forbidden(
            path, 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        )
    elif values or bounds is not None:
        name = "validValues" if values else "validRange"
        if default is None:
            faults.required(f"{path}.default", f"required when {name} is defined")
        elif values:
            _values(faults, f"{path}.validValues", values, Quantity.parse(default), Quantity.parse(capacity), server)
        else:
            _range(
                faults, f"{path}.validRange", bounds or {}, Quantity.parse(default), Quantity.parse(capacity), server
            )


def _values(faults: Faults, path: str, texts: list[str], default: Quantity, capacity: Quantity, server: Policy) -> None:
    values = [Quantity.parse(text) for text in texts]
    for index in range(1, len(values)):
        if values[index - 1] > values[index]:
            faults.invalid(f"{path}[{index}]", texts[index], "values must be sorted in ascending order")

    def check(where: str, value: Quantity) -> None:
        if value > capacity:
            faults.invalid(where, str(value), f"option is larger than capacity value: {capacity}")

    complete = formats.items(faults, path, values, limits.VALID_VALUES, check)
    if complete:
        exact = server.on("DRAFractionalCapacityRange")
        formats.unique(faults, path, [value.nano if exact else value.value() for value in values])
    if not complete or default not in values:
        faults.invalid(path, str(default), "default value is not valid according to the requestPolicy")


def _range(faults: Faults, path: str, bounds: Json, default: Quantity, capacity: Quantity, server: Policy) -> None:
    lowest, highest, step = (_bound(bounds, name) for name in ("min", "max", "step"))
    # 1.36 and older report the default at the bound that it violates.
    own_path = server.since("1.37")
    if lowest is None:
        faults.required(f"{path}.min", "required when validRange is defined")
        return
    if lowest > capacity:
        faults.invalid(f"{path}.min", str(lowest), f"min is larger than capacity value: {capacity}")
    if default < lowest:
        where = f"{path}.default" if own_path else f"{path}.min"
        faults.invalid(where, str(default), f"default is less than min: {lowest}")
    if highest is not None:
        if lowest > highest:
            faults.invalid(f"{path}.max", str(lowest), f"min is larger than max: {highest}")
        if highest > capacity:
            faults.invalid(f"{path}.max", str(highest), f"max is larger than capacity value: {capacity}")
        if default > highest:
            where = f"{path}.default" if own_path else f"{path}.max"
            faults.invalid(where, str(default), f"default is more than max: {highest}")
    named = {"default": default, "min": lowest, "max": highest, "step": step}
    milli = server.on("DRAFractionalCapacityRange") and any(map(_fractional, named.values()))
    if milli and _beyond_milli(faults, path, named):
        return
    if step is not None:
        _step(faults, path, named, lowest, step, capacity, milli=milli, server=server)


def _bound(bounds: Json, name: str) -> Quantity | None:
    text = bounds.get(name)
    return None if text is None else Quantity.parse(text)


def _fractional(value: Quantity | None) -> bool:
    return value is not None and value.scale < 0 and value.nano % 10**9 != 0


def _beyond_milli(faults: Faults, path: str, named: dict[str, Quantity | None]) -> bool:
    before = len(faults)
    for name, value in named.items():
        if value is not None and Quantity(value.milli_value(), -3) != value:
            faults.invalid(f"{path}.{name}", str(value), "value cannot be represented as a milli value")
    return len(faults) > before


def _step(
    faults: Faults,
    path: str,
    named: dict[str, Quantity | None],
    lowest: Quantity,
    step: Quantity,
    capacity: Quantity,
    *,
    milli: bool,
    server: Policy,
) -> None:
    where = f"{path}.step"
    if server.since("1.37") and step.sign() <= 0:
        faults.invalid(where, str(step), "must be greater than zero")
        return
    first = lowest + step
    if first > capacity:
        faults.invalid(where, str(step), f"one step {first} is larger than capacity value: {capacity}")
    if server.since("1.37") and not milli and _beyond_int64(faults, path, named):
        return
    read = Quantity.milli_value if milli else Quantity.value
    if read(step) == 0:
        # Servers up to 1.36 divide by zero here and drop the connection; this is our own answer instead.
        faults.invalid(where, str(step), "must be greater than zero (this server would fail to answer)")
        return
    for value in (named["default"], named["max"]):
        if value is not None and (read(value) - read(lowest)) % read(step) != 0:
            faults.invalid(where, str(value), f"value is not a multiple of a given step ({step}) from ({lowest})")


def _beyond_int64(faults: Faults, path: str, named: dict[str, Quantity | None]) -> bool:
    before = len(faults)
    for name, value in named.items():
        if value is None:
            continue
        if value.sign() < 0:
            faults.invalid(f"{path}.{name}", str(value), "must be greater than or equal to 0")
        elif value > _LARGEST:
            faults.invalid(f"{path}.{name}", str(value), "must not be larger than 9223372036854775807")
    return len(faults) > before
