"""Discovery and OpenAPI against the recorded documents."""

import gzip
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from drakit import admission
from drakit.api import fields
from drakit.simulator.apiserver import FakeAPIServer, descriptions
from drakit.simulator.apiserver.resources import Registry

VECTORS = Path(__file__).parents[2] / "vectors"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture
async def old(session: aiohttp.ClientSession, bare: Any) -> Any:
    """A client of a server of the recorded version."""
    async with FakeAPIServer("1.36", gates=admission.profile("1.36", all_gates=True)) as server:
        yield bare(server, session)


async def test_the_groups_and_resources_are_the_recorded_ones(old: Any, recorded: Any) -> None:
    assert (await old.get("/apis/resource.k8s.io"))["versions"] == recorded["apis-resource"]["versions"]
    for version in ("v1", "v1beta2", "v1beta1"):
        served = await old.get(f"/apis/resource.k8s.io/{version}")
        assert served == recorded[f"apis-resource-{version}"]
    assert await old.get("/version") == recorded["version"]


async def test_core_resources_are_a_part_of_the_recorded_ones(old: Any, recorded: Any) -> None:
    known = {entry["name"]: entry for entry in recorded["api-v1"]["resources"]}
    for entry in (await old.get("/api/v1"))["resources"]:
        assert entry == known[entry["name"]]


@pytest.mark.parametrize(("path", "document"), [("/api", "api-aggregated-v2"), ("/apis", "apis-aggregated-v2")])
async def test_aggregated_discovery_is_a_part_of_the_recorded(
    old: Any, recorded: Any, path: str, document: str
) -> None:
    answer = await old("GET", path, Accept=AGGREGATED)
    assert answer.headers["Content-Type"] == AGGREGATED
    known = {
        (group["metadata"].get("name"), version["version"], entry["resource"]): entry
        for group in recorded[document]["items"]
        for version in group["versions"]
        for entry in version["resources"]
    }
    for group in answer.body["items"]:
        for version in group["versions"]:
            for entry in version["resources"]:
                expected = known[group["metadata"].get("name"), version["version"], entry["resource"]]
                served = {sub["subresource"] for sub in entry.get("subresources", [])}
                subresources = [sub for sub in expected.get("subresources", []) if sub["subresource"] in served]
                assert entry == expected | ({"subresources": subresources} if served else {})
    unchanged = await old("GET", path, Accept=AGGREGATED, If_None_Match=answer.headers["Etag"])
    assert (unchanged.status, unchanged.headers["Content-Type"]) == (304, AGGREGATED)


async def test_the_old_aggregated_form_is_gone(old: Any) -> None:
    answer = await old("GET", "/apis", Accept=AGGREGATED.replace("v=v2", "v=v2beta1"))
    assert answer.status == 406
    fallback = await old("GET", "/apis", Accept=AGGREGATED.replace("v=v2", "v=v2beta1") + ",application/json")
    assert fallback.body["kind"] == "APIGroupList"


@pytest.mark.parametrize(
    "path", ["/", "/api/v2", "/apis/bogus", "/apis/resource.k8s.io/v9", "/openapi/v2", "/openapi/v3/x"]
)
async def test_paths_that_lead_nowhere(http: Any, path: str) -> None:
    assert (await http("GET", path)).status == 404


@pytest.mark.parametrize(
    ("version", "versions"),
    [
        ("1.32", ["v1beta1"]),
        ("1.33", ["v1beta2", "v1beta1"]),
        ("1.36", ["v1", "v1beta2", "v1beta1"]),
        ("1.37", ["v1", "v1beta2", "v1beta1", "v1alpha3"]),
    ],
)
def test_versions_served_by_release(version: str, versions: list[str]) -> None:
    assert Registry(version).groups["resource.k8s.io"] == versions


def test_taint_rules_become_stable_in_1_37() -> None:
    rules = ("resource.k8s.io", "v1", "devicetaintrules")
    assert Registry("1.37").find(*rules) is not None
    assert Registry("1.36", admission.profile("1.36", all_gates=True)).find(*rules) is None


_COMPARED = (
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-group-version-kind",
)


def _structure(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without descriptions, defaults and the two ways to write a reference."""
    if "allOf" in schema:
        return dict(schema["allOf"][0])
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    kept = {name: schema[name] for name in _COMPARED if name in schema}
    if "required" in kept:
        kept["required"] = sorted(kept["required"])
    kept["x-kubernetes-list-map-keys"] = sorted(kept.get("x-kubernetes-list-map-keys", []))
    if "properties" in schema:
        kept["properties"] = {name: _structure(value) for name, value in schema["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            kept[inner] = _structure(schema[inner])
    return kept


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
async def test_openapi_has_the_recorded_structure(old: Any, version: str) -> None:
    path = VECTORS / f"openapi-v3-resource-{version}.json.gz"
    recorded = json.loads(gzip.decompress(path.read_bytes()))["components"]["schemas"]
    index = (await old("GET", "/openapi/v3")).body["paths"]
    url = index[f"apis/resource.k8s.io/{version}"]["serverRelativeURL"]
    served = (await old.get(url))["components"]["schemas"]
    prefix = f"io.k8s.api.resource.{version}."
    assert {name for name in served if name.startswith(prefix)} == {n for n in recorded if n.startswith(prefix)}
    different = {
        name: (_structure(served[name]), _structure(recorded[name]))
        for name in served
        if name.startswith(prefix) and _structure(served[name]) != _structure(recorded[name])
    }
    assert different == {}


async def test_deprecated_versions_warn(old: Any) -> None:
    answer = await old("GET", "/apis/resource.k8s.io/v1beta1/deviceclasses")
    warning = '299 - "resource.k8s.io/v1beta1 DeviceClass is deprecated in v1.35+, unavailable in v1.38+"'
    assert answer.headers["Warning"] == warning
    assert "Warning" not in (await old("GET", "/apis/resource.k8s.io/v1beta2/devicetaintrules")).headers


def test_descriptions_belong_to_fields_that_exist() -> None:
    known = {
        (name, field.name) for tables in fields.TABLES.values() for name, table in tables.items() for field in table
    }
    names = {field for _, field in known} | {"items"}
    for entry in descriptions._FIELDS:
        type_name, _, field = entry.rpartition(".")
        assert (type_name, field) in known or (not type_name and field in names), entry
    for type_name in descriptions._TYPES:
        assert any(type_name in tables for tables in fields.TABLES.values()), type_name


def test_every_field_of_slices_classes_claims_and_rules_is_described() -> None:
    missing = [
        f"{name}.{field.name}"
        for name, table in fields.TABLES["v1"].items()
        for field in table
        if name.startswith(("Device", "Resource", "Capacity", "Counter", "Allocat"))
        and not descriptions.describe(name, field.name)
    ]
    assert missing == []
