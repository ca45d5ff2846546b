"""One ResourceSlice between the API server's JSON and what the publisher compares and writes."""

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit import api
from drakit.api.core import NodeSelector
from drakit.api.resource import CounterSet, Device
from drakit.driver.publication import taints
from drakit.driver.publication.layout import SliceContent
from drakit.driver.publication.resources import Owner

__all__ = ["ObservedSlice", "Stamp", "body", "observe", "same"]

Object = dict[str, Any]


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """What all slices of one publisher have in common.

    Attributes:
        driver: spec.driver.
        node_name: spec.nodeName; "" for cluster-wide slices.
        owner: with its uid known; None = no owner.
        labels: all labels of the slices.
    """

    driver: str
    node_name: str = ""
    owner: Owner | None = None
    labels: dict[str, str] = {}

    def owner_references(self) -> list[Object]:
        """metadata.ownerReferences."""
        if self.owner is None:
            return []
        owner = self.owner
        reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
        return [{**reference, "controller": True}]


class ObservedSlice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A slice as the API server has it; `content` None when it cannot be read (then it differs from everything)."""

    name: str
    uid: str
    resource_version: str
    pool: str
    generation: int
    count: int
    content: SliceContent | None
    terminating: bool = False
    labels: dict[str, str] = {}
    owner_references: tuple[Any, ...] = ()

    def metadata_is(self, stamp: Stamp) -> bool:
        """Whether labels and owner are ours."""
        return self.labels == stamp.labels and list(self.owner_references) == stamp.owner_references()


class _Spec(msgspec.Struct, rename="camel"):
    devices: tuple[Device, ...] | None = None
    shared_counters: tuple[CounterSet, ...] | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] | None = None


def observe(obj: Object) -> ObservedSlice:
    """Read a slice (v1 form)."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    pool = spec.get("pool") or {}
    return ObservedSlice(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        resource_version=metadata.get("resourceVersion", ""),
        pool=pool.get("name", ""),
        generation=pool.get("generation", 0),
        count=pool.get("resourceSliceCount", 0),
        content=_content(spec),
        terminating="deletionTimestamp" in metadata,
        labels=metadata.get("labels") or {},
        owner_references=tuple(metadata.get("ownerReferences") or ()),
    )


def _content(spec: Object) -> SliceContent | None:
    try:
        read = msgspec.convert(spec, _Spec, dec_hook=_decoded)
    except (msgspec.ValidationError, ValueError):
        # Nulls mean absent; no server writes them, so the price of removing them is paid only here.
        try:
            read = msgspec.convert(_without_nulls(spec), _Spec, dec_hook=_decoded)
        except (msgspec.ValidationError, ValueError):
            return None
    return SliceContent(
        devices=read.devices or (),
        shared_counters=read.shared_counters or (),
        node_selector=read.node_selector,
        all_nodes=bool(read.all_nodes),
        per_device_node_selection=bool(read.per_device_node_selection),
        partition_type_attribute=read.partition_type_attribute,
        skip_node_operations=read.skip_node_operations or (),
    )


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _decoded(wanted: type, value: Any) -> Any:
    if wanted is not api.Quantity:
        raise TypeError(f"cannot decode {wanted.__name__}")
    return api.Quantity.parse(str(value))


def same(wanted: SliceContent, found: SliceContent | None) -> bool:
    """Equal in meaning: quantities by amount, absent as empty, times of taints within a second; order matters."""
    if wanted is found or wanted == found:
        return True
    if found is None or len(wanted.devices) != len(found.devices):
        return False
    if msgspec.structs.replace(wanted, devices=()) != msgspec.structs.replace(found, devices=()):
        return False
    return all(a is b or a == b or _same_but_times(a, b) for a, b in zip(wanted.devices, found.devices, strict=True))


def _same_but_times(wanted: Device, found: Device) -> bool:
    return taints.same_taints(wanted.taints, found.taints) and (
        msgspec.structs.replace(wanted, taints=()) == msgspec.structs.replace(found, taints=())
    )


_CONTENT_FIELDS = (
    "devices",
    "sharedCounters",
    "nodeSelector",
    "allNodes",
    "perDeviceNodeSelection",
    "partitionTypeAttribute",
    "skipNodeOperations",
)


def body(
    content: SliceContent,
    stamp: Stamp,
    *,
    pool: str,
    generation: int,
    count: int,
    metadata: Mapping[str, Any],
    stored: Object | None = None,
) -> Object:
    """What to send: a new slice, or `stored` with everything of ours replaced and everything unknown kept.

    Args:
        content: what the slice says.
        stamp: what it shares with the publisher's other slices.
        pool: its pool's name.
        generation: the pool generation.
        count: the pool's number of slices.
        metadata: name or generateName of a new slice; ignored for a stored one.
        stored: the object as the API server has it.
    """
    old = stored or {"metadata": dict(metadata), "spec": {}}
    spec = {key: value for key, value in old["spec"].items() if key not in _CONTENT_FIELDS}
    spec |= {
        "driver": stamp.driver,
        "pool": {**spec.get("pool", {}), "name": pool, "generation": generation, "resourceSliceCount": count},
        **({"nodeName": stamp.node_name} if stamp.node_name and not _elsewhere(content) else {}),
        **_fields(content),
    }
    return {**old, "metadata": _metadata(old["metadata"], stamp), "spec": spec}


def _elsewhere(content: SliceContent) -> bool:
    return bool(content.node_selector or content.all_nodes or content.per_device_node_selection)


def _fields(content: SliceContent) -> Object:
    values = {
        "devices": content.devices,
        "sharedCounters": content.shared_counters,
        "nodeSelector": content.node_selector,
        "allNodes": content.all_nodes,
        "perDeviceNodeSelection": content.per_device_node_selection,
        "partitionTypeAttribute": content.partition_type_attribute,
        "skipNodeOperations": content.skip_node_operations,
    }
    set_values = {key: value for key, value in values.items() if value}
    fields: Object = msgspec.json.decode(_ENCODER.encode(set_values))
    return fields


def _encoded(value: Any) -> Any:
    if isinstance(value, api.Quantity):
        return str(value)
    raise TypeError(f"cannot encode {type(value).__name__}")


_ENCODER = msgspec.json.Encoder(enc_hook=_encoded)


def _metadata(metadata: Mapping[str, Any], stamp: Stamp) -> Object:
    own = {"labels": dict(stamp.labels), "ownerReferences": stamp.owner_references()}
    kept = {key: value for key, value in metadata.items() if key not in own and key != "managedFields"}
    return {**kept, **{key: value for key, value in own.items() if value}}
