"""Simulated pools, one for every field of a ResourceSlice up to Kubernetes 1.37: publication without hardware.

Each profile says which feature gates the API server needs for it and whether it is a node's or cluster-wide.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from drakit.api import Quantity, core, resource
from drakit.driver.publication import DriverResources, Pool

__all__ = ["POOL_PROFILES", "PoolProfile"]

_attribute = resource.DeviceAttribute
_GATES_BINDING = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")


@dataclass(frozen=True, slots=True)
class PoolProfile:
    """Pools as data.

    Attributes:
        name: of the profile.
        shows: which fields it is for.
        build: from a node's name (or any name, for cluster-wide pools) to the pools.
        local: the pools are a node's.
        gates: feature gates beside what is on by default in 1.37.
    """

    name: str
    shows: str
    build: Callable[[str], DriverResources]
    local: bool = True
    gates: tuple[str, ...] = ()


def _one(name: str, pool: Pool) -> DriverResources:
    return DriverResources(pools={name: pool})


def _amount(text: str) -> resource.DeviceCapacity:
    return resource.DeviceCapacity(value=Quantity.parse(text))


def _counters(**amounts: str) -> dict[str, resource.Counter]:
    return {name: resource.Counter(value=Quantity.parse(text)) for name, text in amounts.items()}


def _consume(counter_set: str, *groups: str, **amounts: str) -> resource.DeviceCounterConsumption:
    return resource.DeviceCounterConsumption(
        counter_set=counter_set, counters=_counters(**amounts), compatibility_groups=groups
    )


def _selector(key: str, value: str) -> core.NodeSelector:
    requirement = core.NodeSelectorRequirement(key=key, operator="In", values=(value,))
    return core.NodeSelector(node_selector_terms=(core.NodeSelectorTerm(match_expressions=(requirement,)),))


def _attributes(node: str) -> DriverResources:
    """All scalar kinds, qualified names, capacities."""
    device = resource.Device(
        name="all-kinds",
        attributes={
            "count": _attribute(int=4),
            "ready": _attribute(bool=True),
            "model": _attribute(string="SIM-1"),
            "firmware": _attribute(version="1.2.3-rc.1+build"),
            "resource.kubernetes.io/pcieRoot": _attribute(string="pci0000:00"),
            "vendor.example.com/serial": _attribute(string="0001"),
        },
        capacity={"memory": _amount("16Gi"), "vendor.example.com/lanes": _amount("16")},
    )
    return _one(node, Pool(devices=(device,)))


def _lists(node: str) -> DriverResources:
    """List attributes; they halve the devices of a slice."""
    device = resource.Device(
        name="lists",
        attributes={
            "ports": _attribute(ints=(1, 2)),
            "links": _attribute(bools=(True, False)),
            "modes": _attribute(strings=("a", "b")),
            "firmwares": _attribute(versions=("1.0.0", "1.1.0")),
        },
    )
    return _one(node, Pool(devices=(device,)))


def _many(node: str) -> DriverResources:
    """300 devices: three slices of 128, 128 and 44."""
    return _one(node, Pool(devices=tuple(resource.Device(name=f"port-{number}") for number in range(300))))


def _taints(node: str) -> DriverResources:
    taints = (
        resource.DeviceTaint(key="example.com/unhealthy", value="xid", effect="NoExecute"),
        resource.DeviceTaint(key="example.com/unmonitored", effect="None"),
        resource.DeviceTaint(key="example.com/drain", effect="NoSchedule", time_added="2026-01-01T00:00:00Z"),
    )
    return _one(node, Pool(devices=(resource.Device(name="tainted", taints=taints), resource.Device(name="fine"))))


def _partitions(node: str) -> DriverResources:
    """One card that can be used whole or in two halves."""
    cards = resource.CounterSet(name="card-0", counters=_counters(memory="40Gi", slices="2"))
    whole = resource.Device(name="card-0", consumes_counters=(_consume("card-0", memory="40Gi", slices="2"),))
    halves = tuple(
        resource.Device(
            name=f"card-0-half-{number}", consumes_counters=(_consume("card-0", memory="20Gi", slices="1"),)
        )
        for number in range(2)
    )
    return _one(node, Pool(devices=(whole, *halves), shared_counters=(cards,)))


def _partition_types(node: str) -> DriverResources:
    """Partitions whose kind is told by an attribute."""
    base = _partitions(node).pools[node]
    devices = tuple(
        resource.Device(
            name=device.name,
            consumes_counters=device.consumes_counters,
            attributes={"sim.example.com/profile": _attribute(string="half" if "half" in device.name else "whole")},
        )
        for device in base.devices
    )
    pool = Pool(
        devices=devices, shared_counters=base.shared_counters, partition_type_attribute="sim.example.com/profile"
    )
    return _one(node, pool)


def _compatibility(node: str) -> DriverResources:
    """Two ways of cutting a card that exclude each other."""
    cards = resource.CounterSet(name="card-0", counters=_counters(memory="40Gi"))
    devices = tuple(
        resource.Device(name=f"{mode}-{number}", consumes_counters=(_consume("card-0", mode, memory="10Gi"),))
        for mode in ("mig", "mps")
        for number in range(2)
    )
    return _one(node, Pool(devices=devices, shared_counters=(cards,)))


def _sharing(node: str) -> DriverResources:
    """Devices for several claims at once, with policies for how much each may take."""
    ranged = resource.CapacityRequestPolicy(
        default=Quantity.parse("1Gi"),
        valid_range=resource.CapacityRequestPolicyRange(
            min=Quantity.parse("1Gi"), max=Quantity.parse("8Gi"), step=Quantity.parse("1Gi")
        ),
    )
    listed = resource.CapacityRequestPolicy(
        default=Quantity.parse("1"), valid_values=(Quantity.parse("1"), Quantity.parse("2"), Quantity.parse("4"))
    )
    device = resource.Device(
        name="shared",
        allow_multiple_allocations=True,
        capacity={
            "memory": resource.DeviceCapacity(value=Quantity.parse("16Gi"), request_policy=ranged),
            "lanes": resource.DeviceCapacity(value=Quantity.parse("8"), request_policy=listed),
        },
    )
    return _one(node, Pool(devices=(device,)))


def _binding(pool: str) -> DriverResources:
    """Network-attached devices that must be connected to the node before the pod is bound."""
    device = resource.Device(
        name="fabric-0",
        binds_to_node=True,
        binding_conditions=("sim.example.com/attached",),
        binding_failure_conditions=("sim.example.com/attach-failed",),
    )
    return _one(pool, Pool(devices=(device,), all_nodes=True))


def _allocatable(node: str) -> DriverResources:
    """Devices that stand for node resources, with overhead."""
    mapping = resource.NodeAllocatableResource(
        mapping=resource.NodeAllocatableMapping(capacity_key="memory", capacity_multiplier=Quantity.parse("1"))
    )
    overhead = resource.NodeAllocatableResource(
        mapping=resource.NodeAllocatableMapping(device_multiplier=Quantity.parse("2")),
        overhead=resource.NodeAllocatableOverhead(per_pod=Quantity.parse("100m"), per_container=Quantity.parse("10m")),
    )
    device = resource.Device(
        name="cpu-set-0",
        capacity={"memory": _amount("4Gi")},
        node_allocatable_resources={"memory": mapping, "cpu": overhead},
    )
    return _one(node, Pool(devices=(device,)))


def _licences(pool: str) -> DriverResources:
    """Every node can use them, and no node has to do anything for them."""
    devices = tuple(resource.Device(name=f"licence-{number}") for number in range(3))
    skipped = ("NodePrepareResources", "NodeUnprepareResources")
    return _one(pool, Pool(devices=devices, all_nodes=True, skip_node_operations=skipped))


def _everywhere(pool: str) -> DriverResources:
    return _one(pool, Pool(devices=(resource.Device(name="shared-0"),), all_nodes=True))


def _zone(pool: str) -> DriverResources:
    selector = _selector("topology.kubernetes.io/zone", "zone-1")
    return _one(pool, Pool(devices=(resource.Device(name="switch-0"),), node_selector=selector))


def _per_device(pool: str) -> DriverResources:
    devices = (
        resource.Device(name="on-one", node_name="node-1"),
        resource.Device(name="in-zone", node_selector=_selector("topology.kubernetes.io/zone", "zone-1")),
        resource.Device(name="anywhere", all_nodes=True),
    )
    return _one(pool, Pool(devices=devices, per_device_node_selection=True))


_ALL = (
    PoolProfile("attributes", "attributes of all scalar kinds, capacity", _attributes),
    PoolProfile("lists", "list attributes", _lists, gates=("DRAListTypeAttributes",)),
    PoolProfile("many", "several slices", _many),
    PoolProfile("taints", "taints, timeAdded", _taints),
    PoolProfile("partitions", "sharedCounters, consumesCounters", _partitions),
    PoolProfile(
        "partition-types",
        "partitionTypeAttribute",
        _partition_types,
        gates=("DRAPartitionableDevicesType",),
    ),
    PoolProfile("compatibility", "compatibilityGroups", _compatibility, gates=("DRADeviceCompatibilityGroups",)),
    PoolProfile("sharing", "allowMultipleAllocations, requestPolicy", _sharing),
    PoolProfile("allocatable", "nodeAllocatableResources", _allocatable, gates=("DRANodeAllocatableResources",)),
    PoolProfile(
        "binding",
        "bindsToNode, bindingConditions, bindingFailureConditions",
        _binding,
        local=False,
        gates=_GATES_BINDING,
    ),
    PoolProfile("licences", "skipNodeOperations", _licences, local=False, gates=("DRAOptionalNodeOperations",)),
    PoolProfile("everywhere", "allNodes", _everywhere, local=False),
    PoolProfile("zone", "nodeSelector", _zone, local=False),
    PoolProfile(
        "per-device", "perDeviceNodeSelection; nodeName, nodeSelector, allNodes of devices", _per_device, local=False
    ),
)

POOL_PROFILES: Mapping[str, PoolProfile] = MappingProxyType({profile.name: profile for profile in _ALL})
