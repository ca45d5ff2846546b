"""resource.k8s.io/v1 of Kubernetes 1.37 as frozen values.

Pointers of the Go types are `None` when absent, plain values are their zero value, lists are tuples and maps are dicts
(read-only by convention); empty ones are left out on encoding, as `omitempty` does. Fields without a default are the
ones that the API always writes. Timestamps are RFC 3339 text. Opaque parameters and driver data are `msgspec.Raw`,
empty when absent: their exact bytes matter to the API server's immutability checks.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from drakit.api.core import NodeSelector  # noqa: TC001  msgspec reads the annotations
from drakit.api.meta import Condition, ObjectMeta
from drakit.api.quantity import Quantity  # noqa: TC001  msgspec reads the annotations

__all__ = [
    "AllocatedDeviceStatus",
    "AllocationResult",
    "CELDeviceSelector",
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "CapacityRequirements",
    "Counter",
    "CounterSet",
    "Device",
    "DeviceAllocationConfiguration",
    "DeviceAllocationResult",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceClaim",
    "DeviceClaimConfiguration",
    "DeviceClass",
    "DeviceClassConfiguration",
    "DeviceClassSpec",
    "DeviceConstraint",
    "DeviceCounterConsumption",
    "DeviceDerivedAttribute",
    "DeviceRequest",
    "DeviceRequestAllocationResult",
    "DeviceSelector",
    "DeviceSubRequest",
    "DeviceTaint",
    "DeviceTaintRule",
    "DeviceTaintRuleSpec",
    "DeviceTaintRuleStatus",
    "DeviceTaintSelector",
    "DeviceToleration",
    "ExactDeviceRequest",
    "NetworkDeviceData",
    "NodeAllocatableMapping",
    "NodeAllocatableOverhead",
    "NodeAllocatableResource",
    "NodeAllocatableResourceMapping",
    "OpaqueDeviceConfiguration",
    "PartitionTypeStatus",
    "PoolStatus",
    "ResourceClaim",
    "ResourceClaimConsumerReference",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
    "ResourcePool",
    "ResourcePoolStatusRequest",
    "ResourcePoolStatusRequestSpec",
    "ResourcePoolStatusRequestStatus",
    "ResourceSlice",
    "ResourceSliceSpec",
    "ShareableCapacityStatus",
    "ShareableSummaryStatus",
]

# DeviceAttribute's fields are called int and bool: inside the class those names no longer mean the types.
_Integer: TypeAlias = int
_Boolean: TypeAlias = bool


# ResourceSlice


class DeviceAttribute(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """One attribute: exactly one field is set (list fields need DRAListTypeAttributes)."""

    int: _Integer | None = None
    bool: _Boolean | None = None
    string: str | None = None
    version: str | None = None
    ints: tuple[_Integer, ...] = ()
    bools: tuple[_Boolean, ...] = ()
    strings: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


class CapacityRequestPolicyRange(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """Amounts from `min` to `max` in multiples of `step` above `min`."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """How requested amounts of a shared capacity are rounded or refused."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """An amount that a device has, with the policy for consuming parts of it."""

    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


class Counter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """An amount of one shared counter."""

    value: Quantity


class CounterSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Named counters that several devices of a pool consume."""

    name: str
    counters: dict[str, Counter]


class DeviceCounterConsumption(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """What a device takes from one counter set; co-allocated devices need a common compatibility group (1.37 alpha)."""

    counter_set: str
    counters: dict[str, Counter]
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Effect is None, NoSchedule or NoExecute."""

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class NodeAllocatableMapping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """How a device's capacity (or each device) stands for a node resource (1.37 alpha)."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """What using the device costs on top, per pod and per container (1.37 alpha)."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Use of one node resource by a device: mapping, overhead or both (1.37 alpha)."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class NodeAllocatableResourceMapping(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """The 1.36 form of `NodeAllocatableResource`; gone in 1.37."""

    capacity_key: str | None = None
    allocation_multiplier: Quantity | None = None


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """One device of a pool."""

    name: str
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = {}
    node_allocatable_resources: dict[str, NodeAllocatableResource] = {}


class ResourcePool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """The pool that a slice belongs to; only slices of the highest generation count."""

    name: str
    generation: int
    resource_slice_count: int


class ResourceSliceSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Devices or counters of a pool, with where they can be used (exactly one of the four node fields)."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """What a driver publishes about one pool, or a part of it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec


# Selectors and configuration


class CELDeviceSelector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A CEL expression over `device`."""

    expression: str


class DeviceSelector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """One condition that a device must meet."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """Driver-specific parameters: a JSON object, kept as sent."""

    driver: str
    parameters: msgspec.Raw = msgspec.Raw()


class DeviceClassConfiguration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Configuration from a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Selectors, configuration and the extended resource that a class stands for."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A named preset of selectors and configuration."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


# ResourceClaim


class CapacityRequirements(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Amounts of a shareable device's capacities that a request needs."""

    requests: dict[str, Quantity] = {}


class DeviceToleration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Tolerated device taints; operator Equal or Exists, empty key with Exists means every key."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class DeviceDerivedAttribute(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A named CEL value per candidate device, usable in constraints (1.37 alpha)."""

    name: str
    expression: str


class ExactDeviceRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Devices of one class: `count` of them (ExactCount) or All."""

    device_class_name: str
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """One alternative of `firstAvailable`."""

    name: str
    device_class_name: str
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A named request: exactly one of `exactly` and `first_available`."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Devices of the named requests (all when empty) must share, or differ in, one attribute."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Configuration for the named requests (all when empty)."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Requests, constraints and configuration of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """What a claim asks for; immutable."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """One allocated device. `request` is `name` or `name/subrequest`."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = {}
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """Configuration that applies to the allocation; source is FromClass or FromClaim."""

    source: str
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """The allocated devices, in order, with their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """What was allocated and on which nodes it can be used (any node when there is no selector)."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """Who may use a claim, usually a pod (`resource` is the plural)."""

    resource: str
    name: str
    uid: str
    api_group: str = msgspec.field(default="", name="apiGroup")


class NetworkDeviceData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Network facts about an allocated device; `ips` are in CIDR form."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """What the driver reports about one allocated device."""

    driver: str
    pool: str
    device: str
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: msgspec.Raw = msgspec.Raw()
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Allocation, consumers, and the drivers' reports."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A request for devices and, once allocated, the answer."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """Labels, annotations and spec of the claims made from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A pattern for claims that are made per pod; immutable."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


# DeviceTaintRule


class DeviceTaintSelector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Devices of a driver, pool or name; what is set must match, nothing set selects every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A taint for all selected devices; no selector selects none."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class DeviceTaintRuleStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Progress of eviction."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A taint that an administrator puts on devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


# ResourcePoolStatusRequest (v1alpha3)


class PartitionTypeStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """How many devices of one partition type exist and could still be allocated."""

    attribute: str
    type: str
    total: int
    allocatable: int


class ShareableCapacityStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Sums of one capacity over the shareable devices of a pool."""

    name: str
    total: Quantity
    consumed: Quantity
    available: Quantity


class ShareableSummaryStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """How much of a pool's shareable devices is in use."""

    fully_available_devices: int
    partially_available_devices: int
    capacity: tuple[ShareableCapacityStatus, ...] = ()


class PoolStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Counts of one pool, or why it is invalid."""

    driver: str
    pool_name: str
    generation: int
    node_name: str | None = None
    resource_slice_count: int | None = None
    total_devices: int | None = None
    allocated_devices: int | None = None
    available_devices: int | None = None
    unavailable_devices: int | None = None
    validation_error: str | None = None
    partition_summary: tuple[PartitionTypeStatus, ...] = ()
    shareable_summary: ShareableSummaryStatus | None = None


class ResourcePoolStatusRequestSpec(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """Which pools to count."""

    driver: str
    pool_name: str | None = None
    limit: int | None = None
    default_partition_type_attribute: str | None = None


class ResourcePoolStatusRequestStatus(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """The counts; written once."""

    pool_count: int | None = None
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ResourcePoolStatusRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False
):
    """A one-shot question about pools, answered in its status."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourcePoolStatusRequestSpec
    status: ResourcePoolStatusRequestStatus | None = None
