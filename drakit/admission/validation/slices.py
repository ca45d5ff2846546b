"""ResourceSlices. Source: spec/resourceslice.md 2 and 4.1, spec/apiserver.md 3, 7-9, 13-16, 23."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from drakit.admission import semantics
from drakit.admission.validation import capacity, conditions, formats, nodeselectors, taints
from drakit.api import Quantity, limits
from drakit.api.semver import is_version

if TYPE_CHECKING:
    from drakit.admission.faults import Faults
    from drakit.admission.policy import Policy

__all__ = ["resource_slice", "skip_node_operations"]

Json = dict[str, Any]

_NODE_FIELDS: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_DEVICE_NODE_FIELDS: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_LISTS: Final = ("bools", "ints", "strings", "versions")
_SIMPLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}", re.ASCII)
_SKIPPABLE: Final = ("*", "NodePrepareResources", "NodeUnprepareResources")
_NODE_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_OLD_COUNTERS: Final = 32
_OLD_CONSUMED: Final = 1024


def resource_slice(faults: Faults, spec: Json, old: Json | None, server: Policy) -> None:
    """The spec of a slice; `old` is the stored spec on an update."""
    formats.driver_name(faults, "spec.driver", spec["driver"])
    pool = spec["pool"]
    formats.pool_name(faults, "spec.pool.name", pool["name"])
    if pool["resourceSliceCount"] <= 0:
        faults.invalid("spec.pool.resourceSliceCount", pool["resourceSliceCount"], "must be greater than zero")
    if pool["generation"] < 0:
        faults.invalid("spec.pool.generation", pool["generation"], "must be greater than or equal to zero")
    if old is not None:
        _immutable(faults, spec, old)
    _node_selection(faults, spec)
    if server.since("1.35") and spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        faults.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    _devices(faults, spec, old, server)
    _counter_sets(faults, spec, server)
    _partition_type(faults, spec)
    skip_node_operations(faults, "spec.skipNodeOperations", spec, old)


def _immutable(faults: Faults, spec: Json, old: Json) -> None:
    if spec["pool"]["name"] != old["pool"]["name"]:
        faults.invalid("spec.pool.name", spec["pool"]["name"], "field is immutable")
    if spec["driver"] != old["driver"]:
        faults.invalid("spec.driver", spec["driver"], "field is immutable")
    if spec.get("nodeName") != old.get("nodeName"):
        faults.invalid("spec.nodeName", spec.get("nodeName"), "field is immutable")


def _node_selection(faults: Faults, spec: Json) -> None:
    chosen = []
    node_name = spec.get("nodeName")
    if node_name:
        chosen.append("`nodeName`")
        formats.subdomain(faults, "spec.nodeName", node_name)
    elif node_name is not None:
        faults.invalid("spec.nodeName", "", "must be either unset or set to a non-empty string")
    if spec.get("nodeSelector") is not None:
        chosen.append("`nodeSelector`")
        nodeselectors.selector(faults, "spec.nodeSelector", spec["nodeSelector"])
        terms = spec["nodeSelector"].get("nodeSelectorTerms") or ()
        if len(terms) != 1:
            faults.invalid("spec.nodeSelector.nodeSelectorTerms", terms, "must have exactly one node selector term")
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name):
            chosen.append(f"`{name}`")
        elif spec.get(name) is not None:
            faults.invalid(f"spec.{name}", False, "must be either unset or set to true")
    if not chosen:
        faults.required("spec", _NODE_FIELDS)
    elif len(chosen) > 1:
        faults.invalid("spec", f"{{{', '.join(chosen)}}}", f"{_NODE_FIELDS}, but multiple fields are set")


def _devices(faults: Faults, spec: Json, old: Json | None, server: Policy) -> None:
    devices = spec.get("devices") or []
    limit = server.devices_with_features if _has_features(devices) else limits.DEVICES
    stored = {device["name"]: device for device in reversed((old or {}).get("devices") or ())}
    per_device = bool(spec.get("perDeviceNodeSelection"))

    def check(path: str, device: Json) -> None:
        _device(faults, path, device, stored.get(device["name"]), server, per_device=per_device)

    if formats.items(faults, "spec.devices", devices, limit, check):
        formats.unique(faults, "spec.devices", (device["name"] for device in devices))
        _old_consumption(faults, devices, server)


def _has_features(devices: list[Json]) -> bool:
    """Taints, counters or list attributes: they make slices heavier, so fewer devices fit."""
    return any(
        device.get("taints")
        or device.get("consumesCounters")
        or any(name in attribute for attribute in device.get("attributes", {}).values() for name in _LISTS)
        for device in devices
    )


def _old_consumption(faults: Faults, devices: list[Json], server: Policy) -> None:
    if server.since("1.35"):
        return
    consumed = sum(
        len(entry.get("counters") or ()) for device in devices for entry in device.get("consumesCounters") or ()
    )
    if consumed > _OLD_CONSUMED:
        faults.invalid(
            "spec.devices", consumed, f"the total number of counters in devices must not exceed {_OLD_CONSUMED}"
        )


def _device(faults: Faults, path: str, device: Json, old: Json | None, server: Policy, *, per_device: bool) -> None:
    formats.label(faults, f"{path}.name", device["name"])
    attributes, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    count = len(attributes) + len(capacities)
    if count > limits.ATTRIBUTES_AND_CAPACITIES:
        faults.invalid(
            path,
            count,
            f"the total number of attributes and capacities must not exceed {limits.ATTRIBUTES_AND_CAPACITIES}",
        )
    values = sum(map(_count_values, attributes.values()))
    if values > server.attribute_values:
        faults.invalid(path, values, f"the total number of attribute values must not exceed {server.attribute_values}")
    _attributes(faults, f"{path}.attributes", attributes, server)
    if old is None or not server.since("1.37") or not _same(device, old, "capacity"):
        _capacities(faults, f"{path}.capacity", device, server)
    if old is None or not _same(device, old, "taints"):
        formats.items(
            faults,
            f"{path}.taints",
            device.get("taints"),
            server.taints,
            lambda where, taint: taints.taint(faults, where, taint, None, server),
        )
    _consumption(faults, path, device, server)
    _device_node_selection(faults, path, device, per_device=per_device)
    conditions.binding(faults, path, device)
    _mappings(faults, f"{path}.nodeAllocatableResourceMappings", device)
    _node_resources(faults, f"{path}.nodeAllocatableResources", device)


def _same(device: Json, old: Json, name: str) -> bool:
    return semantics.equal({name: device.get(name)}, {name: old.get(name)}, "Device")


def _count_values(attribute: Json) -> int:
    if len(attribute) == 1 and next(iter(attribute)) not in _LISTS:
        return 1
    return sum(len(attribute.get(name) or ()) for name in _LISTS) or 1


def _attributes(faults: Faults, path: str, attributes: Json, server: Policy) -> None:
    for key, attribute in attributes.items():
        if not _SIMPLE_NAME.fullmatch(key):
            formats.qualified_name(faults, path, key, one_slash=server.since("1.37"))
        if len(attribute) == 1:
            ((name, value),) = attribute.items()
            if name in {"int", "bool"} or (name == "string" and len(value) <= limits.ATTRIBUTE_VALUE_LENGTH // 4):
                continue
        _attribute(faults, f"{path}[{formats.shortened(key)}]", attribute)


def _attribute(faults: Faults, path: str, attribute: Json) -> None:
    if attribute.get("string") is not None:
        _text(faults, f"{path}.string", attribute["string"])
    if attribute.get("version") is not None:
        _version(faults, f"{path}.version", attribute["version"])
    for name in _LISTS:
        values = attribute.get(name)
        if values is None:
            continue
        if not values:
            faults.invalid(f"{path}.{name}", [], "must not be empty if specified")
        check = {"strings": _text, "versions": _version}.get(name)
        for index, value in enumerate(values) if check else ():
            check(faults, f"{path}.{name}[{index}]", value)  # type: ignore[misc]
    if len(attribute) != 1:
        faults.invalid(path, attribute or "", "exactly one value must be specified")


def _text(faults: Faults, path: str, value: str) -> None:
    if formats.byte_length(value) > limits.ATTRIBUTE_VALUE_LENGTH:
        faults.too_long(path, limits.ATTRIBUTE_VALUE_LENGTH)


def _version(faults: Faults, path: str, value: str) -> None:
    if not is_version(value):
        faults.invalid(path, value, "must be a string compatible with semver.org spec 2.0.0")
    _text(faults, path, value)


def _capacities(faults: Faults, path: str, device: Json, server: Policy) -> None:
    shared = device.get("allowMultipleAllocations")
    for key, amount in (device.get("capacity") or {}).items():
        if not _SIMPLE_NAME.fullmatch(key):
            formats.qualified_name(faults, path, key, one_slash=server.since("1.37"))
        policy = amount.get("requestPolicy")
        if policy is None:
            continue
        where = f"{path}[{formats.shortened(key)}].requestPolicy"
        if shared:
            capacity.request_policy(faults, where, policy, amount["value"], server=server)
        else:
            faults.forbidden(where, "allowMultipleAllocations must be true")


def _counters(faults: Faults, path: str, counters: Json | None, limit: int) -> None:
    if not counters:
        faults.required(path)
    elif len(counters) > limit:
        faults.too_many(path, len(counters), limit)
    else:
        for name in counters:
            formats.label(faults, path, name)


def _consumption(faults: Faults, path: str, device: Json, server: Policy) -> None:
    entries = device.get("consumesCounters")
    if not entries:
        return

    def check(where: str, entry: Json) -> None:
        formats.required_label(faults, f"{where}.counterSet", entry["counterSet"])
        _counters(faults, f"{where}.counters", entry.get("counters"), limits.COUNTERS_PER_CONSUMPTION)
        groups = entry.get("compatibilityGroups")
        if formats.items(
            faults,
            f"{where}.compatibilityGroups",
            groups,
            limits.COMPATIBILITY_GROUPS,
            lambda spot, group: formats.label(faults, spot, group),
        ):
            formats.unique(faults, f"{where}.compatibilityGroups", groups or ())

    limit = limits.COUNTER_CONSUMPTIONS if server.since("1.35") else _OLD_COUNTERS
    if formats.items(faults, f"{path}.consumesCounters", entries, limit, check):
        formats.unique(faults, f"{path}.consumesCounters", (entry["counterSet"] for entry in entries))


def _counter_sets(faults: Faults, spec: Json, server: Policy) -> None:
    sets = spec.get("sharedCounters")
    if not sets:
        return

    def check(path: str, counter_set: Json) -> None:
        formats.required_label(faults, f"{path}.name", counter_set["name"])
        _counters(faults, f"{path}.counters", counter_set.get("counters"), limits.COUNTERS_PER_SET)

    limit = limits.COUNTER_SETS if server.since("1.35") else _OLD_COUNTERS
    if formats.items(faults, "spec.sharedCounters", sets, limit, check):
        formats.unique(faults, "spec.sharedCounters", (each["name"] for each in sets))
    if not server.since("1.35"):
        total = sum(len(each.get("counters") or ()) for each in sets)
        if total > _OLD_COUNTERS:
            faults.invalid(
                "spec.sharedCounters", total, f"the total number of shared counters must not exceed {_OLD_COUNTERS}"
            )


def _device_node_selection(faults: Faults, path: str, device: Json, *, per_device: bool) -> None:
    node_name, node_selector, all_nodes = (device.get(name) for name in ("nodeName", "nodeSelector", "allNodes"))
    if not per_device:
        if node_name is not None or node_selector is not None or all_nodes is not None:
            faults.invalid(
                path,
                None,
                "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true "
                "in the ResourceSlice spec",
            )
        return
    chosen = []
    if node_name:
        chosen.append("`nodeName`")
        formats.subdomain(faults, f"{path}.nodeName", node_name)
    elif node_name is not None:
        faults.invalid(f"{path}.nodeName", "", "must not be empty")
    if node_selector is not None:
        chosen.append("`nodeSelector`")
        nodeselectors.selector(faults, f"{path}.nodeSelector", node_selector)
    if all_nodes:
        chosen.append("`allNodes`")
    elif all_nodes is not None:
        faults.invalid(f"{path}.allNodes", False, "must be either unset or set to true")
    if not chosen:
        faults.required(path, _DEVICE_NODE_FIELDS)
    elif len(chosen) > 1:
        faults.invalid(path, f"{{{', '.join(chosen)}}}", _DEVICE_NODE_FIELDS)


def _capacity_key(faults: Faults, path: str, key: str, device: Json) -> None:
    if not key:
        faults.invalid(path, "", "capacityKey must not be an empty string")
    elif key not in (device.get("capacity") or {}):
        faults.not_found(path, key)


def _mappings(faults: Faults, path: str, device: Json) -> None:
    """The form of 1.36."""
    for name, mapping in (device.get("nodeAllocatableResourceMappings") or {}).items():
        where = f"{path}[{name}]"
        if "/" in name and "kubernetes.io/" not in name:
            faults.invalid(where, name, "must be a node allocatable resource name")
        multiplier = mapping.get("allocationMultiplier")
        if multiplier is not None and Quantity.parse(multiplier).sign() <= 0:
            faults.invalid(f"{where}.allocationMultiplier", multiplier, "must be positive")
        if mapping.get("capacityKey") is not None:
            _capacity_key(faults, f"{where}.capacityKey", mapping["capacityKey"], device)


def _node_resources(faults: Faults, path: str, device: Json) -> None:
    """The form of 1.37."""
    for name, use in (device.get("nodeAllocatableResources") or {}).items():
        where = f"{path}[{name}]"
        if name not in _NODE_RESOURCES and not name.startswith("hugepages-"):
            faults.invalid(where, name, "must be a node allocatable resource name")
        mapping, overhead = use.get("mapping"), use.get("overhead")
        if mapping is None and overhead is None:
            faults.required(where, "at least one of mapping or overhead must be set")
        if mapping is not None:
            _mapping(faults, f"{where}.mapping", mapping, device)
        if overhead is not None:
            _overhead(faults, f"{where}.overhead", overhead)


def _mapping(faults: Faults, path: str, mapping: Json, device: Json) -> None:
    key, multiplier = mapping.get("capacityKey"), mapping.get("capacityMultiplier")
    if key is not None:
        _capacity_key(faults, f"{path}.capacityKey", key, device)
        if multiplier is None:
            faults.required(f"{path}.capacityMultiplier", "capacityMultiplier is required when capacityKey is set")
        elif Quantity.parse(multiplier).sign() <= 0:
            faults.invalid(f"{path}.capacityMultiplier", multiplier, "must be positive")
    per_device = mapping.get("deviceMultiplier")
    if per_device is not None and Quantity.parse(per_device).sign() <= 0:
        faults.invalid(f"{path}.deviceMultiplier", per_device, "must be positive")
    if multiplier is not None and key is None:
        faults.required(f"{path}.capacityKey", "capacityKey is required when capacityMultiplier is set")
    if (key is None) == (per_device is None):
        detail = "must specify one of: `capacityKey`, `deviceMultiplier`"
        if key is not None:
            detail = "must specify exactly one of: `capacityKey`, `deviceMultiplier`"
        faults.invalid(path, mapping, detail)


def _overhead(faults: Faults, path: str, overhead: Json) -> None:
    amounts = {name: overhead[name] for name in ("perPod", "perContainer") if overhead.get(name) is not None}
    if not amounts:
        faults.invalid(path, "", "at least one of perPod or perContainer must be set")
    for name, amount in amounts.items():
        if Quantity.parse(amount).sign() < 0:
            faults.invalid(f"{path}.{name}", amount, "must be non-negative")


def _partition_type(faults: Faults, spec: Json) -> None:
    name = spec.get("partitionTypeAttribute")
    if name is None:
        return
    path, before = "spec.partitionTypeAttribute", len(faults)
    devices = [(index, each) for index, each in enumerate(spec.get("devices") or ()) if each.get("consumesCounters")]
    if not devices:
        faults.invalid(path, name, "may only be set on a slice which declares devices that consume counters")
    formats.fully_qualified_name(faults, path, name, one_slash=True)
    if len(faults) > before:
        return
    bare = name.removeprefix(f"{spec['driver']}/")
    for index, device in devices:
        where = f"spec.devices[{index}].attributes[{name}]"
        attributes = device.get("attributes") or {}
        attribute = attributes.get(name, attributes.get(bare))
        if attribute is None:
            faults.required(
                where, "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set"
            )
        elif attribute.get("string") is None:
            faults.invalid(
                where, attribute, "must be a string value because `partitionTypeAttribute` names this attribute"
            )


def skip_node_operations(faults: Faults, path: str, owner: Json, old: Json | None) -> None:
    """Operations that kubelet may skip (1.37); unchanged ones are not checked for unknown values again."""
    operations = owner.get("skipNodeOperations")
    if not operations:
        return
    if not (old and old.get("skipNodeOperations") == operations):
        for index, operation in enumerate(operations):
            if operation not in _SKIPPABLE:
                faults.unsupported(f"{path}[{index}]", operation, _SKIPPABLE)
        formats.unique(faults, path, operations)
    skipped = set(operations)
    if "NodePrepareResources" in skipped and not skipped & {"NodeUnprepareResources", "*"}:
        faults.invalid(
            path,
            operations,
            "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped",
        )
