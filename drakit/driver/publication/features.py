"""Feature gates behind the fields of a slice: which were dropped by the server, and what to do without them.

A server whose gate is off (or that is too old to know a field) drops the field silently, or refuses what is left
(spec/resourceslice.md 1.7, 2.9). The publisher compares what it sent with what was stored and names the gate.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType

import msgspec

from drakit.api.resource import Device, DeviceAttribute
from drakit.driver.publication.layout import SliceContent
from drakit.driver.publication.resources import Pool, PoolSlice

__all__ = ["DEFAULT_FALLBACKS", "GATES", "UNKNOWN", "Fallback", "Gate", "dropped", "hinted", "uses", "without"]

UNKNOWN = "unknown"


class Fallback(Enum):
    """What to publish on a server that does not keep a feature's fields."""

    KEEP = "keep"
    """The device as the server keeps it, without the fields."""
    WITHHOLD = "withhold"
    """Not the devices that use them: without the fields they would promise something wrong."""


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """One feature: which part of a device belongs to it, and a device without that part."""

    name: str
    part: Callable[[Device], object]
    strip: Callable[[Device], Device]
    slice_part: Callable[[SliceContent], object] = lambda _content: None


def _replace(**fields: object) -> Callable[[Device], Device]:
    return lambda device: msgspec.structs.replace(device, **fields)


def _lists(device: Device) -> dict[str, DeviceAttribute]:
    return {key: a for key, a in device.attributes.items() if a.ints or a.bools or a.strings or a.versions}


def _without_lists(device: Device) -> Device:
    lists = _lists(device)
    kept = {key: value for key, value in device.attributes.items() if key not in lists}
    return msgspec.structs.replace(device, attributes=kept)


def _groups(device: Device) -> list[tuple[str, ...]]:
    return [consumed.compatibility_groups for consumed in device.consumes_counters if consumed.compatibility_groups]


def _without_groups(device: Device) -> Device:
    consumed = tuple(msgspec.structs.replace(c, compatibility_groups=()) for c in device.consumes_counters)
    return msgspec.structs.replace(device, consumes_counters=consumed)


def _sharing(device: Device) -> tuple[object, ...]:
    policies = {key: c.request_policy for key, c in device.capacity.items() if c.request_policy}
    return (device.allow_multiple_allocations, policies) if device.allow_multiple_allocations or policies else ()


def _without_sharing(device: Device) -> Device:
    capacity = {key: msgspec.structs.replace(c, request_policy=None) for key, c in device.capacity.items()}
    return msgspec.structs.replace(device, capacity=capacity, allow_multiple_allocations=None)


def _partitioned(device: Device) -> tuple[object, ...]:
    if not device.consumes_counters and not (device.node_name or device.node_selector or device.all_nodes):
        return ()
    # Groups have a gate of their own: what is compared here is the consumption without them.
    consumed = _without_groups(device).consumes_counters
    values = (consumed, device.node_name, device.node_selector, device.all_nodes)
    return values if any(values) else ()


GATES: tuple[Gate, ...] = (
    Gate(
        name="DRADeviceTaints", part=lambda d: [(t.key, t.value, t.effect) for t in d.taints], strip=_replace(taints=())
    ),
    Gate(
        name="DRAPartitionableDevices",
        part=_partitioned,
        strip=_replace(consumes_counters=(), node_name=None, node_selector=None, all_nodes=None),
        slice_part=lambda content: (content.shared_counters, content.per_device_node_selection),
    ),
    Gate(
        name="DRADeviceBindingConditions",
        part=lambda d: (d.binding_conditions, d.binding_failure_conditions, bool(d.binds_to_node)),
        strip=_replace(binding_conditions=(), binding_failure_conditions=(), binds_to_node=None),
    ),
    Gate(name="DRAConsumableCapacity", part=_sharing, strip=_without_sharing),
    Gate(
        name="DRAPartitionableDevicesType",
        part=lambda _device: None,
        strip=lambda device: device,
        slice_part=lambda content: content.partition_type_attribute,
    ),
    Gate(name="DRADeviceCompatibilityGroups", part=_groups, strip=_without_groups),
    Gate(name="DRAListTypeAttributes", part=_lists, strip=_without_lists),
    Gate(
        name="DRANodeAllocatableResources",
        part=lambda d: (d.node_allocatable_resources, d.node_allocatable_resource_mappings),
        strip=_replace(node_allocatable_resources={}, node_allocatable_resource_mappings={}),
    ),
    Gate(
        name="DRAOptionalNodeOperations",
        part=lambda _device: None,
        strip=lambda device: device,
        slice_part=lambda content: content.skip_node_operations,
    ),
)
"""In the order in which upstream guesses, then what it does not guess."""

_BY_NAME = {gate.name: gate for gate in GATES}

DEFAULT_FALLBACKS: Mapping[str, Fallback] = MappingProxyType(
    {
        # Without counters, overlapping partitions of one device would be given away together; without groups,
        # partitions that exclude each other.
        "DRAPartitionableDevices": Fallback.WITHHOLD,
        "DRADeviceCompatibilityGroups": Fallback.WITHHOLD,
        # Unbound devices would start pods before they are attached.
        "DRADeviceBindingConditions": Fallback.WITHHOLD,
        # Without these a device is less convenient, but what it promises is true.
        "DRADeviceTaints": Fallback.KEEP,
        "DRAConsumableCapacity": Fallback.KEEP,
        "DRAPartitionableDevicesType": Fallback.KEEP,
        "DRAListTypeAttributes": Fallback.KEEP,
        "DRANodeAllocatableResources": Fallback.KEEP,
        "DRAOptionalNodeOperations": Fallback.KEEP,
    }
)


def dropped(sent: SliceContent, stored: SliceContent) -> tuple[str, ...]:
    """Names of the gates whose fields are in `sent` and not, or not all, in `stored`; UNKNOWN if none explains it."""
    found = [gate.name for gate in GATES if _lost(gate, sent, stored)]
    return tuple(found) or (UNKNOWN,)


def _lost(gate: Gate, sent: SliceContent, stored: SliceContent) -> bool:
    if gate.slice_part(sent) != gate.slice_part(stored):
        return True
    kept = {device.name: device for device in stored.devices}
    return any(gate.part(device) != gate.part(kept[device.name]) for device in sent.devices if device.name in kept)


def uses(gate: Gate, content: SliceContent) -> bool:
    """Whether anything in the slice belongs to the gate."""
    part = gate.slice_part(content)
    if any(part) if isinstance(part, tuple | list) else part:
        return True
    return any(_uses(gate, device) for device in content.devices)


def hinted(content: SliceContent, fields: tuple[str, ...]) -> tuple[str, ...]:
    """Gates that, being off, explain why a server refuses `content` at these fields of the slice (2.9)."""
    gates = []
    if content.per_device_node_selection and "spec" in fields:
        gates.append("DRAPartitionableDevices")
    if any(".attributes" in field for field in fields) and any(map(_lists, content.devices)):
        gates.append("DRAListTypeAttributes")
    return tuple(gates)


def without(pool: Pool, gates: Mapping[str, Fallback]) -> Pool | None:
    """`pool` for a server on which `gates` are off; None when nothing of it can be published."""
    for name, fallback in gates.items():
        gate = _BY_NAME.get(name)
        if gate is None:
            continue
        stripped = _without(pool, gate, fallback)
        if stripped is None:
            return None
        pool = stripped
    return pool


def _without(pool: Pool, gate: Gate, fallback: Fallback) -> Pool | None:
    def devices(listed: tuple[Device, ...]) -> tuple[Device, ...]:
        if fallback is Fallback.WITHHOLD:
            return tuple(device for device in listed if not _uses(gate, device))
        return tuple(gate.strip(device) if _uses(gate, device) else device for device in listed)

    changes: dict[str, object] = {"devices": devices(pool.devices)}
    if pool.slices is not None:
        changes["slices"] = tuple(_part_without(part, gate, devices) for part in pool.slices)
    if gate.name == "DRAPartitionableDevices":
        if pool.per_device_node_selection:
            return None  # who can use the devices is not known without it
        changes["shared_counters"] = ()
    if gate.name == "DRAPartitionableDevicesType":
        changes["partition_type_attribute"] = None
    if gate.name == "DRAOptionalNodeOperations":
        changes["skip_node_operations"] = ()
    return msgspec.structs.replace(pool, **changes)


def _part_without(
    part: PoolSlice, gate: Gate, devices: Callable[[tuple[Device, ...]], tuple[Device, ...]]
) -> PoolSlice:
    changes: dict[str, object] = {"devices": devices(part.devices)}
    if gate.name == "DRAPartitionableDevices":
        changes["shared_counters"] = ()
    if gate.name == "DRAPartitionableDevicesType":
        changes["partition_type_attribute"] = None
    return msgspec.structs.replace(part, **changes)


def _uses(gate: Gate, device: Device) -> bool:
    part = gate.part(device)
    return any(part) if isinstance(part, tuple | list) else bool(part)
