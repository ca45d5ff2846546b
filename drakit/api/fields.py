"""What every kind looks like on the wire, once: names, types, pointers, list types, since when, behind which gate.

`TABLES[version][type]` lists the fields of a type; v1 and v1beta2 are the same, v1beta1 nests devices in `basic` and
has flat requests, v1alpha3 has DeviceTaintRule and ResourcePoolStatusRequest only. A test compares the tables with
the structs and with a recorded OpenAPI document. Sources: spec/resourceslice.md 3, the OpenAPI documents of 1.36 and
1.37.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["KINDS", "TABLES", "VERSIONS", "Field", "Kind", "Table", "Type", "carried", "kind_of", "table"]

VERSIONS: Final = ("v1", "v1beta2", "v1beta1", "v1alpha3")
"""Newest first."""


class Type(NamedTuple):
    """The type of a field.

    Attributes:
        shape: `scalar`, `object`, `list` or `map` (from strings).
        name: string, integer, boolean, quantity, time, raw, any; or the table of an object. For lists and maps, that
            of the items.
        item: Shape of the items of lists and maps: `scalar` or `object`.
    """

    shape: str
    name: str
    item: str = ""


class Field(NamedTuple):
    """One field.

    Attributes:
        name: The JSON name.
        type: The type.
        pointer: Absent differs from the zero value.
        required: Written even when it has the zero value.
        since: Minor version of Kubernetes that has it first.
        until: Last minor version that has it, empty when it is current.
        gate: Feature gate without which the server drops it.
        list_type: `atomic`, `set` or `map`, for lists.
        keys: The keys of a list of type `map`.
        patch_key: The key by which strategic merge patches merge the list; empty when they replace it.
        patch_strategy: `merge` or empty.
    """

    name: str
    type: Type
    pointer: bool = False
    required: bool = False
    since: str = "1.32"
    until: str = ""
    gate: str = ""
    list_type: str = ""
    keys: tuple[str, ...] = ()
    patch_key: str = ""
    patch_strategy: str = ""

    @property
    def raw(self) -> bool:
        """Whether its exact JSON bytes count."""
        return self.type.name == "raw"


Table = tuple[Field, ...]


class Kind(NamedTuple):
    """One kind of resource.k8s.io.

    Attributes:
        plural: The resource in URLs.
        namespaced: Whether objects live in namespaces.
        status: Whether there is a /status subresource.
        versions: Which versions serve it, with the minor of Kubernetes that did so first.
    """

    name: str
    plural: str
    namespaced: bool
    status: bool
    versions: dict[str, str]


_STRING: Final = Type("scalar", "string")
_INTEGER: Final = Type("scalar", "integer")
_BOOLEAN: Final = Type("scalar", "boolean")
_QUANTITY: Final = Type("scalar", "quantity")
_TIME: Final = Type("scalar", "time")
_RAW: Final = Type("scalar", "raw")
_ANY: Final = Type("scalar", "any")


def _object(name: str) -> Type:
    return Type("object", name)


def _list(name: str) -> Type:
    return Type("list", name, _item(name))


def _map(name: str) -> Type:
    return Type("map", name, _item(name))


def _item(name: str) -> str:
    return "object" if name[0].isupper() else "scalar"


def _value(name: str, type: Type, *, since: str = "1.32", gate: str = "") -> Field:
    """A plain value, left out when it is zero."""
    return Field(name, type, since=since, gate=gate)


def _always(name: str, type: Type) -> Field:
    """A plain value that is always written."""
    return Field(name, type, required=True)


def _pointer(name: str, type: Type, *, since: str = "1.32", until: str = "", gate: str = "") -> Field:
    """A value whose absence has a meaning."""
    return Field(name, type, pointer=True, since=since, until=until, gate=gate)


def _atomic(name: str, item: str, *, since: str = "1.32", gate: str = "", required: bool = False) -> Field:
    """A list that is replaced as a whole."""
    return Field(name, _list(item), since=since, gate=gate, list_type="atomic", required=required)


def _keyed(
    name: str, item: str, *keys: str, patch: bool = False, gate: str = "", since: str = "1.32", required: bool = False
) -> Field:
    """A list that behaves as a map; `patch` when strategic merge patches know it too."""
    return Field(
        name,
        _list(item),
        since=since,
        gate=gate,
        required=required,
        list_type="map",
        keys=keys,
        patch_key=keys[0] if patch else "",
        patch_strategy="merge" if patch else "",
    )


_TAINTS: Final = "DRADeviceTaints"
_PARTITIONS: Final = "DRAPartitionableDevices"
_BINDING: Final = "DRADeviceBindingConditions"
_CAPACITY: Final = "DRAConsumableCapacity"
_LISTS: Final = "DRAListTypeAttributes"
_ALLOCATABLE: Final = "DRANodeAllocatableResources"
_DERIVED: Final = "DRADerivedAttributes"
_SKIP: Final = "DRAOptionalNodeOperations"

_META: Final[dict[str, Table]] = {
    "ObjectMeta": (
        _value("name", _STRING),
        _value("generateName", _STRING),
        _value("namespace", _STRING),
        _value("selfLink", _STRING),
        _value("uid", _STRING),
        _value("resourceVersion", _STRING),
        _value("generation", _INTEGER),
        _pointer("creationTimestamp", _TIME),
        _pointer("deletionTimestamp", _TIME),
        _pointer("deletionGracePeriodSeconds", _INTEGER),
        _value("labels", _map("string")),
        _value("annotations", _map("string")),
        _keyed("ownerReferences", "OwnerReference", "uid", patch=True),
        Field("finalizers", _list("string"), list_type="set", patch_strategy="merge"),
        _atomic("managedFields", "ManagedFieldsEntry"),
    ),
    "ManagedFieldsEntry": (
        _value("manager", _STRING),
        _value("operation", _STRING),
        _value("apiVersion", _STRING),
        _pointer("time", _TIME),
        _value("fieldsType", _STRING),
        _pointer("fieldsV1", _ANY),
        _value("subresource", _STRING),
    ),
    "OwnerReference": (
        _always("apiVersion", _STRING),
        _always("kind", _STRING),
        _always("name", _STRING),
        _always("uid", _STRING),
        _pointer("controller", _BOOLEAN),
        _pointer("blockOwnerDeletion", _BOOLEAN),
    ),
    "Condition": (
        _always("type", _STRING),
        _always("status", _STRING),
        _value("observedGeneration", _INTEGER),
        Field("lastTransitionTime", _TIME, pointer=True, required=True),
        _always("reason", _STRING),
        _always("message", _STRING),
    ),
    "NodeSelector": (_atomic("nodeSelectorTerms", "NodeSelectorTerm", required=True),),
    "NodeSelectorTerm": (
        _atomic("matchExpressions", "NodeSelectorRequirement"),
        _atomic("matchFields", "NodeSelectorRequirement"),
    ),
    "NodeSelectorRequirement": (
        _always("key", _STRING),
        _always("operator", _STRING),
        _atomic("values", "string"),
    ),
}

_ROOT: Final = (_value("kind", _STRING), _value("apiVersion", _STRING), _always("metadata", _object("ObjectMeta")))

_SLICES: Final[dict[str, Table]] = {
    "ResourceSlice": (*_ROOT, _always("spec", _object("ResourceSliceSpec"))),
    "ResourceSliceSpec": (
        _always("driver", _STRING),
        _always("pool", _object("ResourcePool")),
        _pointer("nodeName", _STRING),
        _pointer("nodeSelector", _object("NodeSelector")),
        _pointer("allNodes", _BOOLEAN),
        _atomic("devices", "Device"),
        _pointer("perDeviceNodeSelection", _BOOLEAN, since="1.33", gate=_PARTITIONS),
        _atomic("sharedCounters", "CounterSet", since="1.33", gate=_PARTITIONS),
        _pointer("partitionTypeAttribute", _STRING, since="1.37", gate="DRAPartitionableDevicesType"),
        _atomic("skipNodeOperations", "string", since="1.37", gate=_SKIP),
    ),
    "ResourcePool": (
        _always("name", _STRING),
        _always("generation", _INTEGER),
        _always("resourceSliceCount", _INTEGER),
    ),
    "CounterSet": (_always("name", _STRING), Field("counters", _map("Counter"), required=True)),
    "Counter": (_always("value", _QUANTITY),),
    "Device": (
        _always("name", _STRING),
        _value("attributes", _map("DeviceAttribute")),
        _value("capacity", _map("DeviceCapacity")),
        _atomic("consumesCounters", "DeviceCounterConsumption", since="1.33", gate=_PARTITIONS),
        _pointer("nodeName", _STRING, since="1.33", gate=_PARTITIONS),
        _pointer("nodeSelector", _object("NodeSelector"), since="1.33", gate=_PARTITIONS),
        _pointer("allNodes", _BOOLEAN, since="1.33", gate=_PARTITIONS),
        _atomic("taints", "DeviceTaint", since="1.33", gate=_TAINTS),
        _pointer("bindsToNode", _BOOLEAN, since="1.34", gate=_BINDING),
        _atomic("bindingConditions", "string", since="1.34", gate=_BINDING),
        _atomic("bindingFailureConditions", "string", since="1.34", gate=_BINDING),
        _pointer("allowMultipleAllocations", _BOOLEAN, since="1.34", gate=_CAPACITY),
        Field(
            "nodeAllocatableResourceMappings",
            _map("NodeAllocatableResourceMapping"),
            since="1.36",
            until="1.36",
            gate=_ALLOCATABLE,
        ),
        _value("nodeAllocatableResources", _map("NodeAllocatableResource"), since="1.37", gate=_ALLOCATABLE),
    ),
    "DeviceAttribute": (
        _pointer("int", _INTEGER),
        _pointer("bool", _BOOLEAN),
        _pointer("string", _STRING),
        _pointer("version", _STRING),
        _atomic("ints", "integer", since="1.36", gate=_LISTS),
        _atomic("bools", "boolean", since="1.36", gate=_LISTS),
        _atomic("strings", "string", since="1.36", gate=_LISTS),
        _atomic("versions", "string", since="1.36", gate=_LISTS),
    ),
    "DeviceCapacity": (
        _always("value", _QUANTITY),
        _pointer("requestPolicy", _object("CapacityRequestPolicy"), since="1.34", gate=_CAPACITY),
    ),
    "CapacityRequestPolicy": (
        Field("default", _QUANTITY, pointer=True, required=True),
        _atomic("validValues", "quantity"),
        _pointer("validRange", _object("CapacityRequestPolicyRange")),
    ),
    "CapacityRequestPolicyRange": (
        Field("min", _QUANTITY, pointer=True, required=True),
        _pointer("max", _QUANTITY),
        _pointer("step", _QUANTITY),
    ),
    "DeviceCounterConsumption": (
        _always("counterSet", _STRING),
        Field("counters", _map("Counter"), required=True),
        _atomic("compatibilityGroups", "string", since="1.37", gate="DRADeviceCompatibilityGroups"),
    ),
    "DeviceTaint": (
        _always("key", _STRING),
        _value("value", _STRING),
        _always("effect", _STRING),
        _pointer("timeAdded", _TIME),
    ),
    "NodeAllocatableResourceMapping": (
        _pointer("capacityKey", _STRING),
        _pointer("allocationMultiplier", _QUANTITY),
    ),
    "NodeAllocatableResource": (
        _pointer("mapping", _object("NodeAllocatableMapping")),
        _pointer("overhead", _object("NodeAllocatableOverhead")),
    ),
    "NodeAllocatableMapping": (
        _pointer("capacityKey", _STRING),
        _pointer("capacityMultiplier", _QUANTITY),
        _pointer("deviceMultiplier", _QUANTITY),
    ),
    "NodeAllocatableOverhead": (_pointer("perPod", _QUANTITY), _pointer("perContainer", _QUANTITY)),
}

_CLASSES: Final[dict[str, Table]] = {
    "DeviceClass": (*_ROOT, _always("spec", _object("DeviceClassSpec"))),
    "DeviceClassSpec": (
        _atomic("selectors", "DeviceSelector"),
        _atomic("config", "DeviceClassConfiguration"),
        _pointer("extendedResourceName", _STRING, since="1.34", gate="DRAExtendedResource"),
    ),
    "DeviceSelector": (_pointer("cel", _object("CELDeviceSelector")),),
    "CELDeviceSelector": (_always("expression", _STRING),),
    "DeviceClassConfiguration": (_pointer("opaque", _object("OpaqueDeviceConfiguration")),),
    "OpaqueDeviceConfiguration": (_always("driver", _STRING), Field("parameters", _RAW, pointer=True, required=True)),
}

_REQUEST_BODY: Final = (
    _value("deviceClassName", _STRING),
    _atomic("selectors", "DeviceSelector"),
    _value("allocationMode", _STRING),
    _value("count", _INTEGER),
    _pointer("adminAccess", _BOOLEAN, gate="DRAAdminAccess"),
    _atomic("tolerations", "DeviceToleration", since="1.33", gate=_TAINTS),
    _pointer("capacity", _object("CapacityRequirements"), since="1.34", gate=_CAPACITY),
    _atomic("derivedAttributes", "DeviceDerivedAttribute", since="1.37", gate=_DERIVED),
)
_NAMED_CLASS: Final = (_always("deviceClassName", _STRING), *_REQUEST_BODY[1:])
_FIRST_AVAILABLE: Final = _atomic("firstAvailable", "DeviceSubRequest", since="1.33", gate="DRAPrioritizedList")

_CLAIMS: Final[dict[str, Table]] = {
    "ResourceClaim": (
        *_ROOT,
        _always("spec", _object("ResourceClaimSpec")),
        _always("status", _object("ResourceClaimStatus")),
    ),
    "ResourceClaimTemplate": (*_ROOT, _always("spec", _object("ResourceClaimTemplateSpec"))),
    "ResourceClaimTemplateSpec": (
        _always("metadata", _object("ObjectMeta")),
        _always("spec", _object("ResourceClaimSpec")),
    ),
    "ResourceClaimSpec": (_always("devices", _object("DeviceClaim")),),
    "DeviceClaim": (
        _atomic("requests", "DeviceRequest", required=True),
        _atomic("constraints", "DeviceConstraint"),
        _atomic("config", "DeviceClaimConfiguration"),
    ),
    "DeviceRequest": (_always("name", _STRING), _pointer("exactly", _object("ExactDeviceRequest")), _FIRST_AVAILABLE),
    "ExactDeviceRequest": _NAMED_CLASS,
    "DeviceSubRequest": (
        _always("name", _STRING),
        *(field for field in _NAMED_CLASS if field.name != "adminAccess"),
    ),
    "CapacityRequirements": (_value("requests", _map("quantity")),),
    "DeviceToleration": (
        _value("key", _STRING),
        _value("operator", _STRING),
        _value("value", _STRING),
        _value("effect", _STRING),
        _pointer("tolerationSeconds", _INTEGER),
    ),
    "DeviceDerivedAttribute": (_always("name", _STRING), _always("expression", _STRING)),
    "DeviceConstraint": (
        _atomic("requests", "string"),
        _pointer("matchAttribute", _STRING),
        _pointer("distinctAttribute", _STRING, since="1.34", gate=_CAPACITY),
    ),
    "DeviceClaimConfiguration": (_atomic("requests", "string"), *_CLASSES["DeviceClassConfiguration"]),
    "ResourceClaimStatus": (
        _pointer("allocation", _object("AllocationResult")),
        _keyed("reservedFor", "ResourceClaimConsumerReference", "uid", patch=True),
        _keyed(
            "devices",
            "AllocatedDeviceStatus",
            "driver",
            "device",
            "pool",
            "shareID",
            gate="DRAResourceClaimDeviceStatus",
        ),
    ),
    "AllocationResult": (
        _always("devices", _object("DeviceAllocationResult")),
        _pointer("nodeSelector", _object("NodeSelector")),
        _pointer("allocationTimestamp", _TIME, since="1.34"),
    ),
    "DeviceAllocationResult": (
        _atomic("results", "DeviceRequestAllocationResult"),
        _atomic("config", "DeviceAllocationConfiguration"),
    ),
    "DeviceRequestAllocationResult": (
        _always("request", _STRING),
        _always("driver", _STRING),
        _always("pool", _STRING),
        _always("device", _STRING),
        _pointer("adminAccess", _BOOLEAN, gate="DRAAdminAccess"),
        _atomic("tolerations", "DeviceToleration", since="1.33", gate=_TAINTS),
        _atomic("bindingConditions", "string", since="1.34", gate=_BINDING),
        _atomic("bindingFailureConditions", "string", since="1.34", gate=_BINDING),
        _pointer("shareID", _STRING, since="1.34", gate=_CAPACITY),
        _value("consumedCapacity", _map("quantity"), since="1.34", gate=_CAPACITY),
        _atomic("skipNodeOperations", "string", since="1.37", gate=_SKIP),
    ),
    "DeviceAllocationConfiguration": (
        _always("source", _STRING),
        _atomic("requests", "string"),
        *_CLASSES["DeviceClassConfiguration"],
    ),
    "ResourceClaimConsumerReference": (
        _value("apiGroup", _STRING),
        _always("resource", _STRING),
        _always("name", _STRING),
        _always("uid", _STRING),
    ),
    "AllocatedDeviceStatus": (
        _always("driver", _STRING),
        _always("pool", _STRING),
        _always("device", _STRING),
        _pointer("shareID", _STRING, since="1.34", gate=_CAPACITY),
        _keyed("conditions", "Condition", "type", required=True),
        _pointer("data", _RAW),
        _pointer("networkData", _object("NetworkDeviceData")),
    ),
    "NetworkDeviceData": (
        _value("interfaceName", _STRING),
        _atomic("ips", "string"),
        _value("hardwareAddress", _STRING),
    ),
}

_TAINT_RULES: Final[dict[str, Table]] = {
    "DeviceTaintRule": (
        *_ROOT,
        _always("spec", _object("DeviceTaintRuleSpec")),
        _always("status", _object("DeviceTaintRuleStatus")),
    ),
    "DeviceTaintRuleSpec": (
        _pointer("deviceSelector", _object("DeviceTaintSelector")),
        _always("taint", _object("DeviceTaint")),
    ),
    "DeviceTaintSelector": (_pointer("driver", _STRING), _pointer("pool", _STRING), _pointer("device", _STRING)),
    "DeviceTaintRuleStatus": (_keyed("conditions", "Condition", "type", patch=True, since="1.35"),),
    "DeviceTaint": _SLICES["DeviceTaint"],
}

_POOL_STATUS: Final[dict[str, Table]] = {
    "ResourcePoolStatusRequest": (
        *_ROOT,
        _always("spec", _object("ResourcePoolStatusRequestSpec")),
        _pointer("status", _object("ResourcePoolStatusRequestStatus")),
    ),
    "ResourcePoolStatusRequestSpec": (
        _always("driver", _STRING),
        _pointer("poolName", _STRING),
        _pointer("limit", _INTEGER),
        _pointer("defaultPartitionTypeAttribute", _STRING, since="1.37"),
    ),
    "ResourcePoolStatusRequestStatus": (
        Field("poolCount", _INTEGER, pointer=True, required=True),
        _atomic("pools", "PoolStatus"),
        _keyed("conditions", "Condition", "type", patch=True),
    ),
    "PoolStatus": (
        _always("driver", _STRING),
        _always("poolName", _STRING),
        _pointer("nodeName", _STRING),
        _always("generation", _INTEGER),
        _pointer("resourceSliceCount", _INTEGER),
        _pointer("totalDevices", _INTEGER),
        _pointer("allocatedDevices", _INTEGER),
        _pointer("availableDevices", _INTEGER),
        _pointer("unavailableDevices", _INTEGER),
        _pointer("validationError", _STRING),
        _atomic("partitionSummary", "PartitionTypeStatus", since="1.37"),
        _pointer("shareableSummary", _object("ShareableSummaryStatus"), since="1.37"),
    ),
    "PartitionTypeStatus": (
        _always("attribute", _STRING),
        _always("type", _STRING),
        _always("total", _INTEGER),
        _always("allocatable", _INTEGER),
    ),
    "ShareableSummaryStatus": (
        _always("fullyAvailableDevices", _INTEGER),
        _always("partiallyAvailableDevices", _INTEGER),
        _atomic("capacity", "ShareableCapacityStatus"),
    ),
    "ShareableCapacityStatus": (
        _always("name", _STRING),
        _always("total", _QUANTITY),
        _always("consumed", _QUANTITY),
        _always("available", _QUANTITY),
    ),
}

_V1: Final[dict[str, Table]] = {**_META, **_SLICES, **_CLASSES, **_CLAIMS, **_TAINT_RULES}

_V1BETA1: Final[dict[str, Table]] = {
    **{name: fields for name, fields in _V1.items() if name not in _TAINT_RULES or name == "DeviceTaint"},
    "Device": (_always("name", _STRING), _pointer("basic", _object("BasicDevice"))),
    "BasicDevice": _SLICES["Device"][1:],
    "ResourceSliceSpec": tuple(
        _value(field.name, field.type) if field.name in {"nodeName", "allNodes"} else field
        for field in _SLICES["ResourceSliceSpec"]
    ),
    # deviceClassName has no omitempty here: requests with firstAvailable show it empty.
    "DeviceRequest": (_always("name", _STRING), *_NAMED_CLASS, _FIRST_AVAILABLE),
}
del _V1BETA1["ExactDeviceRequest"]

TABLES: Final[dict[str, dict[str, Table]]] = {
    "v1": _V1,
    "v1beta2": _V1,
    "v1beta1": _V1BETA1,
    "v1alpha3": {**_META, **_TAINT_RULES, **_POOL_STATUS},
}

KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            "ResourceSlice",
            "resourceslices",
            namespaced=False,
            status=False,
            versions={"v1": "1.34", "v1beta2": "1.33", "v1beta1": "1.32"},
        ),
        Kind(
            "DeviceClass",
            "deviceclasses",
            namespaced=False,
            status=False,
            versions={"v1": "1.34", "v1beta2": "1.33", "v1beta1": "1.32"},
        ),
        Kind(
            "ResourceClaim",
            "resourceclaims",
            namespaced=True,
            status=True,
            versions={"v1": "1.34", "v1beta2": "1.33", "v1beta1": "1.32"},
        ),
        Kind(
            "ResourceClaimTemplate",
            "resourceclaimtemplates",
            namespaced=True,
            status=False,
            versions={"v1": "1.34", "v1beta2": "1.33", "v1beta1": "1.32"},
        ),
        Kind(
            "DeviceTaintRule",
            "devicetaintrules",
            namespaced=False,
            status=True,
            versions={"v1": "1.37", "v1beta2": "1.36", "v1alpha3": "1.33"},
        ),
        Kind(
            "ResourcePoolStatusRequest",
            "resourcepoolstatusrequests",
            namespaced=False,
            status=True,
            versions={"v1alpha3": "1.36"},
        ),
    )
}

_KINDS_BY_PLURAL: Final = {kind.plural: kind for kind in KINDS.values()}


def kind_of(plural: str) -> Kind:
    """The kind behind a resource in a URL.

    Raises:
        KeyError: No such resource in resource.k8s.io.
    """
    return _KINDS_BY_PLURAL[plural]


def table(name: str, version: str = "v1") -> Table:
    """The fields of a type in a version.

    Raises:
        KeyError: The version has no such type.
    """
    return TABLES[version][name]


def carried(field: Field, minor: str) -> bool:
    """Whether servers of a minor version know the field."""
    return field.since <= minor and (not field.until or minor <= field.until)
