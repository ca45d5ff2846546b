"""One device, apart from the names of its pool and node, with all that is computed once for devices like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit import cel
from drakit.allocation import capacity, taints
from drakit.api.quantity import Quantity
from drakit.api.semver import is_version

if TYPE_CHECKING:
    from drakit.allocation.features import Features
    from drakit.allocation.selectors import Outcome, Selectors
    from drakit.api import resource

__all__ = ["CapacityRequest", "DeviceContent", "is_odd", "is_odd_attribute"]

_SHORT_VERSION: Final = 18
"""Longer versions may hold numbers that are too large to be parsed."""


class DeviceContent:
    """One device of one driver.

    Attributes:
        device: The device as published, without attributes that no plan has read.
        shareable: It can be allocated several times (and the feature is on).
        blocking: Its taints that need a toleration.
        draws_counters: It has entries in consumesCounters.
        blocked: A gate that is off makes it unusable, whatever the request.
        odd: Every expression may fail on it.
        outcomes: Outcome per `Selectors`; `expressions` per single expression; `derived` values per `Selectors`.
    """

    __slots__ = (
        "_view",
        "blocked",
        "blocking",
        "consumptions",
        "derived",
        "device",
        "draws_counters",
        "driver",
        "expressions",
        "hidden",
        "odd",
        "outcomes",
        "plain",
        "shareable",
    )

    def __init__(self, driver: str, device: resource.Device, features: Features, *, skips: bool) -> None:
        self.driver = driver
        self.device = device
        self.shareable = features.consumable_capacity and bool(device.allow_multiple_allocations)
        self.blocking = taints.blocking(device.taints) if device.taints and features.device_taints else ()
        self.draws_counters = bool(device.consumes_counters)
        self.hidden = (bool(device.binding_conditions) and not features.device_binding_and_status) or (
            skips and not features.optional_node_operations
        )
        self.blocked = self.draws_counters and not features.partitionable_devices
        self.plain = not self.shareable and not (device.capacity and _has_policy(device))
        self.odd = is_odd(device)
        self.outcomes: dict[Selectors, Outcome] = {}
        self.expressions: dict[str, bool | tuple[bool, str]] = {}
        self.derived: dict[Selectors, dict[str, Any]] = {}
        self.consumptions: dict[Any, Any] = {}
        self._view: Any = None

    @property
    def view(self) -> Any:
        """What CEL sees.

        Raises:
            cel.EvaluationError: An attribute has no value or is a malformed version.
        """
        if self._view is None:
            empty = _valueless(self.device) if self.odd else None
            if empty is not None:
                raise cel.EvaluationError(f"attribute {empty}: unsupported attribute value")
            self._view = cel.device_view(self.driver, self.device)
        return self._view

    def forget_requests(self) -> None:
        """Drop what was computed for requests."""
        for several in (self.outcomes, self.expressions, self.derived, self.consumptions):
            several.clear()

    def consumption(self, requests: CapacityRequest, *, fractional: bool) -> Any:
        """What a request takes of it, or the reason why it cannot."""
        found = self.consumptions.get(requests)
        if found is None:
            wanted = {name: Quantity.parse(text) for name, text in requests} if requests is not None else None
            found = capacity.consume(self.device.capacity, wanted, fractional=fractional)
            self.consumptions[requests] = found
        return found


def _valueless(device: resource.Device) -> str | None:
    """The first attribute without a value of a known type, which no expression can be evaluated with."""
    for name, attribute in device.attributes.items():
        if attribute.string is not None or attribute.int is not None or attribute.bool is not None:
            continue
        if attribute.version is None and not (
            attribute.ints or attribute.bools or attribute.strings or attribute.versions
        ):
            return name
    return None


def is_odd(device: resource.Device) -> bool:
    """Whether every expression may fail on a device: an attribute without value, or a version that may be malformed."""
    return any(map(is_odd_attribute, device.attributes.values()))


def is_odd_attribute(attribute: resource.DeviceAttribute) -> bool:
    """Whether every expression may fail on a device with this attribute."""
    if attribute.string is not None or attribute.int is not None or attribute.bool is not None:
        return False
    version = attribute.version
    return version is None or len(version) > _SHORT_VERSION or not is_version(version)


def _has_policy(device: resource.Device) -> bool:
    return any(each.request_policy is not None for each in device.capacity.values())


CapacityRequest = tuple[tuple[str, str], ...] | None
"""Requested amounts by name, as canonical text; None when nothing is requested."""
