"""The field tables are the single source: structs, the recorded OpenAPI of 1.36 and the client of 1.37 agree with them."""

from __future__ import annotations

import importlib.metadata
import typing
from typing import Any

import msgspec
import pytest
from kubernetes import client

from drakit.api import core, fields, meta, resource, struct_for
from drakit.api.fields import KINDS, TABLES, Field, carried, kind_of, table
from drakit.api.quantity import Quantity

SCALARS = {"string": str, "integer": int, "boolean": bool, "quantity": Quantity, "time": str, "raw": msgspec.Raw}
NOT_IN_STRUCTS = {("ObjectMeta", "selfLink"), ("ObjectMeta", "managedFields")}
STRUCTS: dict[str, Any] = {
    name: getattr(module, name)
    for module in (resource, meta, core)
    for name in module.__all__
    if name in TABLES["v1"] or name in TABLES["v1alpha3"]
}
CLIENT_NAMES = {"ResourceClaim": "ResourceV1ResourceClaim", "NodeAllocatableResourceMapping": ""}


def types() -> list[tuple[str, str]]:
    return [(version, name) for version in ("v1", "v1beta2", "v1beta1") for name in TABLES[version]]


@pytest.mark.parametrize("name", sorted(STRUCTS))
def test_structs_equal_the_tables(name: str) -> None:
    described = table(name) if name in TABLES["v1"] else table(name, "v1alpha3")
    wire = {field.encode_name: field for field in msgspec.structs.fields(STRUCTS[name])}
    expected = [field for field in described if (name, field.name) not in NOT_IN_STRUCTS]
    if name in KINDS:
        expected = [field for field in expected if field.name not in {"kind", "apiVersion"}]
    assert set(wire) == {field.name for field in expected}
    for field in expected:
        assert matches(wire[field.name].type, field), field.name


def matches(annotation: Any, field: Field) -> bool:
    """Whether an annotation is the type of a field: pointers may be None, lists are tuples, maps are dicts."""
    options = [each for each in typing.get_args(annotation) if each is not type(None)]
    optional = type(None) in typing.get_args(annotation)
    inner = options[0] if optional and len(options) == 1 else annotation
    if not field.required and not field.raw and optional != field.pointer:
        return False
    item = SCALARS.get(field.type.name) or STRUCTS[field.type.name]
    if field.type.shape == "list":
        return bool(inner == tuple[item, ...])  # type: ignore[valid-type]
    if field.type.shape == "map":
        return bool(inner == dict[str, item])  # type: ignore[valid-type]
    return bool(inner == item)


def test_every_type_of_v1_has_a_struct() -> None:
    without = set(TABLES["v1"]) - set(STRUCTS) - {"ManagedFieldsEntry"}
    assert without == set()
    assert all(struct_for(kind) for kind in KINDS)


@pytest.mark.parametrize(("version", "name"), types())
def test_tables_equal_the_recorded_openapi(version: str, name: str, openapi: dict[str, dict[str, Any]]) -> None:
    schema = find_schema(openapi[version], version, name)
    if schema is None:
        assert (
            name
            in {
                "NodeAllocatableResource",
                "NodeAllocatableMapping",
                "NodeAllocatableOverhead",
                "DeviceDerivedAttribute",
            }
            or (version == "v1" and name.startswith("DeviceTaintRule"))
            or name == "DeviceTaintSelector"
        )
        return
    known = {field.name: field for field in table(name, version) if carried(field, "1.36")}
    assert set(known) == set(schema["properties"])
    for field_name, described in schema["properties"].items():
        field = known[field_name]
        assert field.list_type == described.get("x-kubernetes-list-type", "")
        assert list(field.keys) == described.get("x-kubernetes-list-map-keys", [])
        assert field.patch_key == described.get("x-kubernetes-patch-merge-key", "")
        assert field.patch_strategy == described.get("x-kubernetes-patch-strategy", "")
        assert type_of(described) == (field.type.shape, field.type.name), field_name


def find_schema(schemas: dict[str, Any], version: str, name: str) -> Any:
    for prefix in (f"io.k8s.api.resource.{version}", "io.k8s.apimachinery.pkg.apis.meta.v1", "io.k8s.api.core.v1"):
        if f"{prefix}.{name}" in schemas:
            return schemas[f"{prefix}.{name}"]
    return None


REFERENCES = {"Quantity": "quantity", "Time": "time", "RawExtension": "raw", "FieldsV1": "any"}


def type_of(described: dict[str, Any]) -> tuple[str, str]:
    if described.get("type") == "array":
        return "list", type_of(described["items"])[1]
    if "additionalProperties" in described:
        return "map", type_of(described["additionalProperties"])[1]
    reference = described.get("$ref") or (described.get("allOf") or [{}])[0].get("$ref")
    if reference:
        name = reference.rpartition(".")[2]
        return ("scalar", REFERENCES[name]) if name in REFERENCES else ("object", name)
    return "scalar", described["type"]


@pytest.mark.skipif(
    int(importlib.metadata.version("kubernetes").split(".")[0]) < 37, reason="this client does not know Kubernetes 1.37"
)
@pytest.mark.parametrize(("version", "name"), [*types(), *(("v1alpha3", name) for name in TABLES["v1alpha3"])])
def test_tables_equal_the_client_of_1_37(version: str, name: str) -> None:
    prefix = (
        "V1"
        if name in {"ObjectMeta", "OwnerReference", "Condition", "ManagedFieldsEntry"}
        or name.startswith("NodeSelector")
        else version.capitalize()
    )
    model = getattr(client, CLIENT_NAMES.get(name, f"{prefix}{name}") or "missing", None)
    if model is None:
        assert name == "NodeAllocatableResourceMapping"
        return
    known = {field.name for field in table(name, version) if carried(field, "1.37")}
    assert set(model.attribute_map.values()) == known


def test_kinds() -> None:
    assert kind_of("resourceslices").name == "ResourceSlice"
    with pytest.raises(KeyError):
        kind_of("pods")
    for kind in KINDS.values():
        assert all(kind.name in TABLES[version] for version in kind.versions)
    assert set(fields.VERSIONS) == set(TABLES)
