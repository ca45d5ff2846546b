"""The view of a device that expressions read: built once per device content, shared by all programs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import msgspec

from drakit.api import Quantity as ExactQuantity
from drakit.api import Semver as ExactSemver
from drakit.api import SemverError
from drakit.cel.errors import EvaluationError
from drakit.cel.values import Domains, Quantity, Semver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drakit.api.resource import Device, DeviceAttribute

__all__ = ["DeviceView", "device_view", "make_view"]


class DeviceView:
    """What `device` is in an expression.

    Attributes:
        driver: The driver's name, also the domain of unqualified names.
        attributes: Values by domain and identifier.
        capacity: Quantities by domain and identifier.
        multi: `allowMultipleAllocations`, false when unset.
        failure: Why no expression can be evaluated on this device (an invalid version, quirk 10), or None.
    """

    __slots__ = ("attributes", "capacity", "driver", "failure", "multi")

    def __init__(
        self, driver: str, attributes: Domains, capacity: Domains, *, multi: bool, failure: EvaluationError | None
    ) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.multi = multi
        self.failure = failure

    def as_map(self) -> dict[str, Any]:
        """The object as the exact evaluator sees it."""
        return {
            "driver": self.driver,
            "attributes": self.attributes,
            "capacity": self.capacity,
            "allowMultipleAllocations": self.multi,
        }


@functools.lru_cache(maxsize=1 << 14)
def _version(text: str) -> Semver:
    return Semver(ExactSemver.parse(text))


@functools.lru_cache(maxsize=1 << 14)
def _quantity(exact: str) -> Quantity:
    return Quantity(ExactQuantity.parse(exact))


def _value(attribute: DeviceAttribute) -> Any:
    """The attribute's value; list forms first, as upstream looks at them."""
    value: Any = attribute.string
    if value is not None:
        return value
    value = attribute.int
    if value is not None:
        return value
    value = attribute.bool
    if value is not None:
        return value
    if attribute.version is not None:
        return _version(attribute.version)
    for values in (attribute.ints, attribute.bools, attribute.strings):
        if values:
            return list(values)
    if attribute.versions:
        return [_version(each) for each in attribute.versions]
    return _EMPTY_LIST


_EMPTY_LIST: Final[list[Any]] = []


def device_view(driver: str, device: Device) -> DeviceView:
    """The view of a device of a driver; an invalid version makes every evaluation fail, not this call."""
    attributes: Domains = Domains()
    failure: EvaluationError | None = None
    for name, attribute in device.attributes.items():
        domain, slash, identifier = name.partition("/")
        try:
            value = _value(attribute)
        except SemverError as error:
            failure = failure or EvaluationError(f"attribute {name}: parse semantic version: {error}")
            continue
        if not slash:
            domain, identifier = driver, name
        inner = attributes.get(domain)
        if inner is None:
            attributes[domain] = {identifier: value}
        elif slash or identifier not in inner:  # the qualified name wins over the unqualified one (X12)
            inner[identifier] = value
    capacity = Domains()
    for name, amount in device.capacity.items():
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        inner = capacity.get(domain)
        if inner is None:
            inner = capacity[domain] = {}
        if slash or identifier not in inner:
            inner[identifier] = Quantity(amount.value)
    return DeviceView(driver, attributes, capacity, multi=bool(device.allow_multiple_allocations), failure=failure)


def make_view(driver: str, device: Mapping[str, Any]) -> DeviceView:
    """The view of a device given as JSON (`attributes`, `capacity`, `allowMultipleAllocations`)."""
    from drakit.api import resource

    attributes = {
        name: msgspec.convert(each, resource.DeviceAttribute) for name, each in device.get("attributes", {}).items()
    }
    capacity = {
        name: resource.DeviceCapacity(value=ExactQuantity.parse(str(each["value"])))
        for name, each in device.get("capacity", {}).items()
    }
    return device_view(
        driver,
        resource.Device(
            name="device",
            attributes=attributes,
            capacity=capacity,
            allow_multiple_allocations=device.get("allowMultipleAllocations"),
        ),
    )
