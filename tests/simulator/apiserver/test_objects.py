"""Create, read, update, delete: names, namespaces, finalizers, grace, preconditions, subresources."""

import asyncio
import io
from typing import Any

import pytest

from drakit.simulator.apiserver import FakeAPIServer, Refused

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_created_object_gets_identity_and_revision(http: Any, server: FakeAPIServer, make_slice: Any) -> None:
    answer = await http("POST", SLICES, make_slice("a"))
    metadata = answer.body["metadata"]
    assert answer.status == 201
    assert metadata["generation"] == 1
    assert metadata["resourceVersion"] == str(server.storage.revision)
    assert len(metadata["uid"]) == 36
    assert await http.get(f"{SLICES}/a") == answer.body


async def test_generate_name_appends_five_letters(http: Any, make_slice: Any) -> None:
    obj = make_slice()
    obj["metadata"] = {"generateName": "node-a-"}
    names = {(await http("POST", SLICES, obj)).body["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("node-a-") and len(name) == 12 for name in names)


async def test_generation_counts_changes_of_spec_only(http: Any, make_slice: Any) -> None:
    await http("POST", SLICES, make_slice("a"))
    labelled = await http.patch(f"{SLICES}/a", {"metadata": {"labels": {"a": "b"}}})
    changed = await http.patch(f"{SLICES}/a", {"spec": {"pool": {"generation": 2}}})
    assert (labelled.body["metadata"]["generation"], changed.body["metadata"]["generation"]) == (1, 2)


async def test_an_update_without_change_keeps_the_revision(http: Any, make_slice: Any) -> None:
    created = (await http("POST", SLICES, make_slice("a"))).body
    again = await http("PUT", f"{SLICES}/a", created)
    assert again.body == created


async def test_a_stale_update_conflicts(http: Any, make_slice: Any) -> None:
    created = (await http("POST", SLICES, make_slice("a"))).body
    await http.patch(f"{SLICES}/a", {"metadata": {"labels": {"a": "b"}}})
    answer = await http("PUT", f"{SLICES}/a", created)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")


async def test_a_resource_version_on_create_is_an_error(http: Any, make_slice: Any) -> None:
    obj = make_slice("a")
    obj["metadata"]["resourceVersion"] = "5"
    answer = await http("POST", SLICES, obj)
    assert (answer.status, answer.message) == (
        500,
        "resourceVersion should not be set on objects to be created",
    )
    assert (await http("POST", f"{SLICES}?dryRun=All", obj)).status == 201


async def test_dry_run_changes_nothing(http: Any, server: FakeAPIServer, make_slice: Any) -> None:
    await http("POST", SLICES, make_slice("a"))
    before = server.storage.revision
    assert (await http("POST", f"{SLICES}?dryRun=All", make_slice("b"))).status == 201
    patched = await http.patch(f"{SLICES}/a?dryRun=All", {"metadata": {"labels": {"a": "b"}}})
    assert patched.body["metadata"]["labels"] == {"a": "b"}
    assert (await http("DELETE", f"{SLICES}/a?dryRun=All")).status == 200
    assert server.storage.revision == before
    assert [obj["metadata"]["name"] for obj in server.list("resourceslices")] == ["a"]


async def test_a_finalizer_holds_a_deleted_object(http: Any, make_claim: Any) -> None:
    claim = make_claim("c")
    claim["metadata"]["finalizers"] = ["example.com/hold"]
    await http("POST", CLAIMS, claim)
    deleted = await http("DELETE", f"{CLAIMS}/c")
    assert deleted.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await http.get(f"{CLAIMS}/c"))["metadata"]["deletionTimestamp"]
    added = await http.patch(f"{CLAIMS}/c", {"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}})
    assert (added.status, added.body["details"]["causes"][0]["field"]) == (422, "metadata.finalizers")
    assert (await http.patch(f"{CLAIMS}/c", {"metadata": {"finalizers": None}})).status == 200
    assert (await http("GET", f"{CLAIMS}/c")).status == 404


async def test_status_and_spec_are_written_apart(http: Any, make_pod: Any) -> None:
    pod = make_pod("p")
    pod["status"] = {"phase": "Running"}
    created = (await http("POST", PODS, pod)).body
    assert created["status"]["phase"] == "Pending"
    changed = {**created, "spec": {**created["spec"], "nodeName": "n"}, "status": {"phase": "Running"}}
    after_status = (await http("PUT", f"{PODS}/p/status", changed)).body
    assert (after_status["status"], "nodeName" in after_status["spec"]) == ({"phase": "Running"}, False)
    changed["metadata"] = after_status["metadata"]
    changed["status"] = {"phase": "Failed"}
    after_spec = (await http("PUT", f"{PODS}/p", changed)).body
    assert (after_spec["status"], after_spec["spec"]["nodeName"]) == ({"phase": "Running"}, "n")


@pytest.mark.parametrize(
    ("spec", "phase", "options", "expected"),
    [
        ({}, "Pending", {}, None),
        ({"nodeName": "n"}, "Running", {}, 30),
        ({"nodeName": "n"}, "Running", {"gracePeriodSeconds": 7}, 7),
        ({"nodeName": "n"}, "Running", {"gracePeriodSeconds": 0}, None),
        ({"nodeName": "n"}, "Succeeded", {}, None),
    ],
)
async def test_pods_are_deleted_gracefully(  # noqa: PLR0917
    http: Any, make_pod: Any, spec: dict[str, Any], phase: str, options: dict[str, Any], expected: int | None
) -> None:
    await http("POST", PODS, make_pod("p", **spec))
    await http("PATCH", f"{PODS}/p/status", {"status": {"phase": phase}}, Content_Type="application/merge-patch+json")
    answer = await http("DELETE", f"{PODS}/p", options)
    if expected is None:
        assert (await http("GET", f"{PODS}/p")).status == 404
    else:
        assert answer.body["metadata"]["deletionGracePeriodSeconds"] == expected
        assert (await http("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})).status == 200
        assert (await http("GET", f"{PODS}/p")).status == 404


async def test_a_second_delete_only_shortens_the_grace(http: Any, make_pod: Any) -> None:
    await http("POST", PODS, make_pod("p", nodeName="n"))
    first = (await http("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 20})).body["metadata"]
    longer = (await http("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 30})).body["metadata"]
    shorter = (await http("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5})).body["metadata"]
    assert longer == first
    assert (shorter["deletionGracePeriodSeconds"], shorter["deletionTimestamp"] < first["deletionTimestamp"]) == (
        5,
        True,
    )


async def test_a_pod_is_bound_once(http: Any, make_pod: Any) -> None:
    await http("POST", PODS, make_pod("p"))
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n1"}}
    assert (await http("POST", f"{PODS}/p/binding", binding)).status == 201
    pod = await http.get(f"{PODS}/p")
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["status"]["conditions"][0]["type"] == "PodScheduled"
    again = await http("POST", f"{PODS}/p/binding", {**binding, "target": {"name": "n2"}})
    assert (again.status, again.body["reason"]) == (409, "Conflict")


async def test_eviction_deletes_gracefully(http: Any, make_pod: Any) -> None:
    await http("POST", PODS, make_pod("p", nodeName="n"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    answer = await http("POST", f"{PODS}/p/eviction", eviction)
    assert (answer.status, answer.body["status"]) == (201, "Success")
    assert (await http.get(f"{PODS}/p"))["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_deletion_of_plain_kinds_answers_a_status(http: Any) -> None:
    await http("POST", CONFIG_MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}})
    answer = await http("DELETE", f"{CONFIG_MAPS}/m")
    assert (answer.body["kind"], answer.body["status"], answer.body["details"]["name"]) == ("Status", "Success", "m")


async def test_a_namespace_goes_with_its_content(http: Any, server: FakeAPIServer, make_pod: Any) -> None:
    server.add_namespace("team")
    pods = "/api/v1/namespaces/team/pods"
    await http("POST", pods, make_pod("idle", "team"))
    await http("POST", pods, make_pod("running", "team", nodeName="n"))
    answer = await http("DELETE", "/api/v1/namespaces/team")
    assert answer.body["status"]["phase"] == "Terminating"
    assert [pod["metadata"]["name"] for pod in server.list("pods", "team")] == ["running"]
    refused = await http("POST", pods, make_pod("late", "team"))
    assert (refused.status, refused.body["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    await http("DELETE", f"{pods}/running", {"gracePeriodSeconds": 0})
    assert (await http("GET", "/api/v1/namespaces/team")).status == 404


async def test_delete_collection_obeys_selectors(http: Any, server: FakeAPIServer, make_slice: Any) -> None:
    for name, driver in (("a", "x.example.com"), ("b", "y.example.com"), ("c", "x.example.com")):
        await http("POST", SLICES, make_slice(name, driver))
    answer = await http("DELETE", f"{SLICES}?fieldSelector=spec.driver%3Dx.example.com")
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    assert [obj["metadata"]["name"] for obj in server.list("resourceslices")] == ["b"]
    assert (await http("DELETE", "/api/v1/namespaces")).status == 405


async def test_leases_and_events_are_created_by_put(http: Any) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/holder"
    lease = {"metadata": {"name": "holder"}, "spec": {"holderIdentity": "me"}}
    assert (await http("PUT", path, lease)).status == 201
    assert (await http("PUT", path, lease)).status == 200


async def test_secret_texts_are_encoded(http: Any) -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"a": "b"}}
    created = (await http("POST", "/api/v1/namespaces/default/secrets", secret)).body
    assert (created["data"], created["type"], "stringData" in created) == ({"a": "Yg=="}, "Opaque", False)


@pytest.mark.parametrize(
    ("claims", "container", "field"),
    [
        ([{"name": "c"}], [], "spec.resourceClaims[0]"),
        ([{"name": "c", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}], [], "spec.resourceClaims[0]"),
        ([], [{"name": "c"}], "spec.containers[0].resources.claims[0].name"),
    ],
)
async def test_claims_of_pods_are_checked(
    http: Any, make_pod: Any, claims: list[Any], container: list[Any], field: str
) -> None:
    containers = [{"name": "c", "image": "i", "resources": {"claims": container}}]
    answer = await http("POST", PODS, make_pod("p", resourceClaims=claims, containers=containers))
    assert (answer.status, answer.body["details"]["causes"][0]["field"]) == (422, field)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"apiVersion": "v1", "kind": "Secret"}, "cannot be handled as a ConfigMap"),
        ({"apiVersion": "v2", "kind": "ConfigMap"}, "does not match the expected API version"),
        (b"{", "unexpected end of JSON input"),
        (b"[]", "couldn't get version/kind"),
    ],
)
async def test_bodies_of_another_kind_are_refused(http: Any, body: Any, message: str) -> None:
    answer = await http("POST", CONFIG_MAPS, body)
    assert answer.status == 400
    assert message in answer.message


async def test_names_are_checked(http: Any) -> None:
    for name in ("Upper", "", "a_b", "x" * 254):
        assert (await http("POST", CONFIG_MAPS, {"metadata": {"name": name}})).status == 422


async def test_yaml_bodies_and_answers(http: Any) -> None:
    body = b"metadata: {name: m}\ndata: {date: '2026-01-01', list: a}\n"
    created = await http("POST", CONFIG_MAPS, body, Content_Type="application/yaml", Accept="application/yaml")
    assert created.headers["Content-Type"] == "application/yaml"
    assert b"kind: ConfigMap" in created.content


async def test_large_bodies_are_refused(http: Any) -> None:
    body = io.BytesIO(b'{"metadata":{"name":"m"},"data":{"a":"' + b"x" * (3 * 2**20) + b'"}}')
    answer = await http("POST", CONFIG_MAPS, body)
    assert (answer.status, answer.body["reason"]) == (413, "RequestEntityTooLarge")


def test_objects_without_http_obey_the_same_rules(make_claim: Any) -> None:
    server = FakeAPIServer(tls=False)
    created = server.create(make_claim("c"))
    assert server.get("resourceclaims", "c", "default") == created
    with pytest.raises(Refused) as refused:
        server.create(make_claim("c"))
    assert refused.value.status == 409
    server.delete("resourceclaims", "c", "default")
    assert server.list("resourceclaims") == []
    server.close()


async def test_every_version_reads_and_writes_the_same_object(http: Any, make_claim: Any) -> None:
    old = "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims"
    await http("POST", CLAIMS, make_claim("c"))
    shown = await http.get(f"{old}/c")
    assert shown["spec"]["devices"]["requests"][0]["deviceClassName"] == "cls"
    again = await http("PUT", f"{old}/c", shown)
    assert (again.status, again.body["metadata"]["resourceVersion"]) == (200, shown["metadata"]["resourceVersion"])
    labelled = await http.patch(f"{old}/c", {"metadata": {"labels": {"a": "b"}}}, "strategic-merge-patch+json")
    assert labelled.status == 200
    applied = {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim", "metadata": {"labels": {"c": "d"}}}
    kind = {"Content_Type": "application/apply-patch+yaml"}
    assert (await http("PATCH", f"{old}/c?fieldManager=m", applied, **kind)).status == 200
    current = await http.get(f"{CLAIMS}/c")
    assert current["metadata"]["labels"] == {"a": "b", "c": "d"}
    assert current["spec"]["devices"]["requests"] == [
        {"name": "r1", "exactly": {"deviceClassName": "cls", "allocationMode": "ExactCount", "count": 1}}
    ]


async def test_writes_to_one_object_are_serialized(http: Any, make_slice: Any) -> None:
    await http("POST", SLICES, make_slice("a"))
    patches = [{"metadata": {"labels": {f"l{number}": "x"}}} for number in range(20)]
    answers = await asyncio.gather(*(http.patch(f"{SLICES}/a", patch) for patch in patches))
    assert {answer.status for answer in answers} == {200}
    assert len((await http.get(f"{SLICES}/a"))["metadata"]["labels"]) == 20
