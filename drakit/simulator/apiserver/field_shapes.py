"""Shapes of resource.k8s.io and of metadata, read from the field tables of drakit.api."""

import functools
from typing import Final

from drakit.api import fields
from drakit.simulator.apiserver.shapes import ANY, BOOLEAN, INTEGER, QUANTITY, STRING, Shape

__all__ = ["OBJECT_META", "kind_fields", "object_shape"]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_SCALARS: dict[str, Shape] = {
    "string": STRING,
    "integer": INTEGER,
    "boolean": BOOLEAN,
    "quantity": QUANTITY,
    "time": Shape("string", format="date-time", reference=_META + "Time"),
    "raw": Shape("any", atomic=True, reference="io.k8s.apimachinery.pkg.runtime.RawExtension"),
    "any": ANY,
}


_OPTIONAL = frozenset(
    {
        ("AllocatedDeviceStatus", "conditions"),
        ("AllocationResult", "devices"),
        ("CapacityRequestPolicy", "default"),
        ("DeviceClaim", "requests"),
        ("DeviceRequest", "deviceClassName"),
        ("ResourceClaim", "status"),
        ("ResourceClaimSpec", "devices"),
        ("ResourceClaimTemplateSpec", "metadata"),
        *((kind, "metadata") for kind in fields.KINDS),
        *((kind, "status") for kind in fields.KINDS),
    }
)
"""Fields that are always written but need not be sent."""


def _package(name: str, version: str) -> str:
    if name in {"NodeSelector", "NodeSelectorTerm", "NodeSelectorRequirement"}:
        return "io.k8s.api.core.v1."
    if name in {"Condition", "ObjectMeta", "OwnerReference", "ManagedFieldsEntry"}:
        return _META
    return f"io.k8s.api.resource.{version}."


@functools.cache
def object_shape(name: str, version: str, minor: str) -> Shape:
    """The shape of a type of the tables, with the fields that Kubernetes `minor` has."""
    table = [field for field in fields.table(name, version) if fields.carried(field, minor)]
    return Shape(
        "object",
        fields={field.name: _field(field, version, minor) for field in table},
        atomic=name in {"NodeSelector", "NodeSelectorTerm"},
        required=tuple(field.name for field in table if field.required and (name, field.name) not in _OPTIONAL),
        reference=_package(name, version) + name,
    )


def _value(shape: str, name: str, version: str, minor: str) -> Shape:
    return object_shape(name, version, minor) if shape == "object" else _SCALARS[name]


def _field(field: fields.Field, version: str, minor: str) -> Shape:
    if field.type.shape in {"scalar", "object"}:
        return _value(field.type.shape, field.type.name, version, minor)
    item = _value(field.type.item, field.type.name, version, minor)
    if field.type.shape == "map":
        return Shape("map", item=item)
    return Shape(
        "array",
        item=item,
        keys=field.keys,
        is_set=field.list_type == "set",
        atomic=field.list_type in {"", "atomic"},
        patch_merge=field.patch_strategy == "merge",
        patch_key=field.patch_key or None,
    )


OBJECT_META: Final = object_shape("ObjectMeta", "v1", "1.37")


def kind_fields() -> dict[str, Shape]:
    """The fields that every kind has."""
    return {"apiVersion": STRING, "kind": STRING, "metadata": OBJECT_META}
