"""Create, update and status: names, generations, immutability, who owns which part."""

from __future__ import annotations

from typing import Any

import pytest

from drakit import admission

Json = dict[str, Any]

RULE = "devicetaintrules"


def create(obj: Json, resource: str, **fields: Any) -> admission.Answer:
    namespace = "ns" if resource.startswith("resourceclaim") else ""
    return admission.admit(
        admission.Request(verb="create", resource=resource, version="v1", namespace=namespace, body=obj, **fields)
    )


def update(obj: Json, stored: Json | None, resource: str, **fields: Any) -> admission.Answer:
    namespace = "ns" if resource.startswith("resourceclaim") else ""
    version = fields.pop("version", "v1")
    return admission.admit(
        admission.Request(
            verb="update",
            resource=resource,
            version=version,
            namespace=namespace,
            name="x",
            body=obj,
            stored=stored,
            **fields,
        ),
        "1.37",
        admission.profile("1.37", all_gates=True),
    )


def test_server_made_metadata_is_ignored_on_create(make: Any) -> None:
    sent = {
        "uid": "u",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "deletionTimestamp": "2026-01-02T03:04:05Z",
        "selfLink": "/x",
    }
    answer = create(make("ResourceSlice", meta=sent | {"generation": 7, "namespace": "other"}), "resourceslices")
    assert answer.stored is not None
    assert answer.stored["metadata"] == {"name": "x", "generation": 1}
    claim = create(make("ResourceClaim", meta={"generation": 7}) | {"status": {"reservedFor": []}}, "resourceclaims")
    assert claim.stored is not None
    assert claim.stored["metadata"] == {"name": "x", "namespace": "ns", "generation": 7}
    assert claim.stored["status"] == {}


def test_generated_names(make: Any) -> None:
    meta = {"name": "", "generateName": "a" * 80}
    answer = create(make("DeviceClass", meta=meta), "deviceclasses", suffix="zzzzz")
    assert answer.stored is not None
    assert answer.stored["metadata"]["name"] == "a" * 58 + "zzzzz"
    assert [cause.field for cause in create(make("DeviceClass", meta={"name": ""}), "deviceclasses").causes] == [
        "metadata.name"
    ]


def test_resource_versions(make: Any) -> None:
    obj = make("ResourceSlice", meta={"resourceVersion": "1"})
    assert create(obj, "resourceslices").status == 500
    assert create(obj, "resourceslices", dry_run=True).status == 201
    stored = make("ResourceSlice", meta={"resourceVersion": "7", "uid": "u", "generation": 3})
    for version, status in (("7", 200), ("", 200), ("0", 200), ("6", 409), ("abc", 500)):
        answer = update(make("ResourceSlice", meta={"resourceVersion": version}), stored, "resourceslices")
        assert answer.status == status, version
    assert update(make("ResourceSlice", meta={"uid": "other"}), stored, "resourceslices").reason == "Conflict"
    kept = update(make("ResourceSlice"), stored, "resourceslices").stored
    assert kept is not None
    assert kept["metadata"] == {"name": "x", "resourceVersion": "7", "uid": "u", "generation": 3}


def test_names_must_be_those_of_the_url(make: Any) -> None:
    stored = make("ResourceClaim")
    assert update(make("ResourceClaim", meta={"name": "y"}), stored, "resourceclaims").status == 400
    assert update(make("ResourceClaim", meta={"name": ""}), stored, "resourceclaims").status == 400
    assert update(make("ResourceClaim", meta={"namespace": "other"}), stored, "resourceclaims").status == 400
    assert create(make("ResourceClaim", meta={"namespace": "other"}), "resourceclaims").status == 400
    assert update(make("ResourceClaim"), None, "resourceclaims").status == 404


def test_generations_count_changes_of_the_spec(make: Any) -> None:
    stored = make("ResourceSlice", meta={"generation": 1})
    labelled = update(
        make("ResourceSlice", meta={"labels": {"a": "b"}, "generation": 99}), stored, "resourceslices"
    ).stored
    changed = update(make("ResourceSlice", devices=[]), stored, "resourceslices").stored
    assert labelled is not None
    assert changed is not None
    assert (labelled["metadata"]["generation"], changed["metadata"]["generation"]) == (1, 2)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"driver": "other"}, "spec.driver"),
        ({"pool": {"name": "other", "generation": 1, "resourceSliceCount": 1}}, "spec.pool.name"),
        ({"nodeName": "other"}, "spec.nodeName"),
        ({"nodeName": None, "allNodes": True}, "spec.nodeName"),
    ],
)
def test_what_cannot_change_in_slices(make: Any, change: Json, field: str) -> None:
    answer = update(make("ResourceSlice", **change), make("ResourceSlice"), "resourceslices")
    assert [cause.field for cause in answer.causes] == [field]


def test_claims_and_templates_cannot_change(make: Any) -> None:
    other = [{"name": "other", "exactly": {"deviceClassName": "c"}}]
    claim = update(make("ResourceClaim", devices={"requests": other}), make("ResourceClaim"), "resourceclaims")
    assert [cause.field for cause in claim.causes] == ["spec"]
    spec = {"devices": {"requests": other}}
    stored = make("ResourceClaimTemplate")
    template = update(make("ResourceClaimTemplate", spec=spec), stored, "resourceclaimtemplates")
    assert [cause.field for cause in template.causes] == ["spec"]


def test_taint_times(make: Any) -> None:
    """spec/apiserver.md 24."""
    now, old, sent = "2026-05-06T07:08:09Z", "2026-01-02T03:04:05Z", "2026-02-02T02:02:02Z"
    stored = make("DeviceTaintRule", taint={"key": "k", "effect": "NoSchedule", "timeAdded": old})

    def time(**taint: Any) -> Any:
        body = make("DeviceTaintRule", taint={"key": "k", "effect": "NoSchedule", "timeAdded": old} | taint)
        answer = update(body, stored, RULE, now=now)
        assert answer.stored is not None
        return answer.stored["spec"]["taint"]["timeAdded"]

    assert time() == old
    assert time(value="v") == old
    assert time(effect="NoExecute") == now
    assert time(effect="NoExecute", timeAdded=sent) == sent
    assert time(timeAdded=None) == now


def test_effects_that_did_not_change_are_not_checked_again(make: Any) -> None:
    odd = {"key": "k", "effect": "Odd", "timeAdded": "2026-01-02T03:04:05Z"}
    stored = make("DeviceTaintRule", taint=odd)
    assert update(make("DeviceTaintRule", taint=odd | {"value": "v"}), stored, RULE).status == 200
    slices = make("ResourceSlice", devices=[{"name": "a", "taints": [odd]}])
    assert update(slices, slices, "resourceslices").status == 200
    assert update(slices, make("ResourceSlice"), "resourceslices").status == 422


def test_classes_keep_what_they_have(make: Any) -> None:
    """Selectors and config that are exactly as before count as stored (spec/resourceslice.md 4.2)."""
    bad, fine = {"cel": {"expression": "nonsense("}}, {"cel": {"expression": "true"}}
    large = {"opaque": {"driver": "d", "parameters": {"a": "x" * 20_000}}}
    stored = make("DeviceClass", selectors=[bad, fine], config=[large])
    assert update(make("DeviceClass", selectors=[bad, fine], config=[large]), stored, "deviceclasses").status == 200
    answer = update(make("DeviceClass", selectors=[fine, bad], config=[large, large]), stored, "deviceclasses")
    assert [cause.field for cause in answer.causes] == [
        "spec.selectors[1].cel.expression",
        "spec.config[0].opaque.parameters",
        "spec.config[1].opaque.parameters",
    ]


def test_finalizers_and_deletion(make: Any) -> None:
    deleted = {"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["e/a"]}
    stored = make("ResourceSlice", meta=deleted)
    assert update(make("ResourceSlice", meta={"finalizers": []}), stored, "resourceslices").status == 200
    added = update(make("ResourceSlice", meta={"finalizers": ["e/a", "e/b"]}), stored, "resourceslices")
    assert {(cause.reason, cause.field) for cause in added.causes} == {("FieldValueForbidden", "metadata.finalizers")}
    revived = update(make("ResourceSlice", meta=deleted), make("ResourceSlice"), "resourceslices")
    assert {cause.field for cause in revived.causes} == {"metadata.deletionTimestamp"}


RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "a"}
ALLOCATION = {"devices": {"results": [RESULT]}}


def status(make: Any, new: Json, old: Json | None = None, meta: Json | None = None) -> admission.Answer:
    stored = make("ResourceClaim", meta=meta) | ({"status": old} if old is not None else {})
    return update(make("ResourceClaim", meta=meta) | {"status": new}, stored, "resourceclaims", subresource="status")


def test_status_updates_change_only_the_status(make: Any) -> None:
    stored = make("ResourceClaim", meta={"labels": {"a": "b"}})
    body = make("ResourceClaim", devices={"requests": []}, meta={"labels": {"c": "d"}}) | {
        "status": {"allocation": ALLOCATION}
    }
    answer = update(body, stored, "resourceclaims", subresource="status")
    assert answer.stored is not None
    assert answer.stored["metadata"]["labels"] == {"a": "b"}
    assert answer.stored["spec"]["devices"]["requests"] == stored["spec"]["devices"]["requests"]
    assert answer.stored["status"] == {"allocation": ALLOCATION}
    spec_only = update(body, stored | {"status": {"allocation": ALLOCATION}}, "resourceclaims")
    assert [cause.field for cause in spec_only.causes] == ["spec"]


def test_allocations_are_set_or_cleared_never_changed(make: Any) -> None:
    assert status(make, {}, {"allocation": ALLOCATION}).status == 200
    changed = {"devices": {"results": [RESULT | {"device": "b"}]}}
    answer = status(make, {"allocation": changed}, {"allocation": ALLOCATION})
    assert [cause.field for cause in answer.causes] == ["status.allocation"]


def test_devices_leave_with_their_allocation(make: Any) -> None:
    """spec/apiserver.md 18."""
    entry = {"driver": "d", "pool": "p", "device": "a"}
    answer = status(make, {"devices": [entry]}, {"allocation": ALLOCATION, "devices": [entry]})
    assert answer.stored is not None
    assert answer.stored["status"] == {}
    never = status(make, {"devices": [entry]}, {})
    assert [cause.field for cause in never.causes] == ["status.devices[0]"]
    consumers = [{"resource": "pods", "name": "p", "uid": "u"}]
    left = status(make, {"reservedFor": consumers}, {"allocation": ALLOCATION, "reservedFor": consumers})
    assert [(cause.reason, cause.field) for cause in left.causes] == [("FieldValueForbidden", "status.reservedFor")]


def test_claims_that_are_being_deleted_take_no_new_consumers(make: Any) -> None:
    meta = {"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["e/a"]}
    consumers = [{"resource": "pods", "name": name, "uid": name} for name in ("a", "b")]
    old = {"allocation": ALLOCATION, "reservedFor": consumers}
    assert status(make, {"allocation": ALLOCATION, "reservedFor": consumers[::-1]}, old, meta).status == 200
    more = [*consumers, {"resource": "pods", "name": "c", "uid": "c"}]
    answer = status(make, {"allocation": ALLOCATION, "reservedFor": more}, old, meta)
    assert [(cause.reason, cause.field) for cause in answer.causes] == [("FieldValueForbidden", "status.reservedFor")]


def test_pool_status_requests(make: Any) -> None:
    """spec/apiserver.md 21: the one kind that wants a resourceVersion."""
    resource = "resourcepoolstatusrequests"
    made = make("ResourcePoolStatusRequest", version="v1alpha3")
    stored = admission.admit(
        admission.Request(verb="create", resource=resource, version="v1alpha3", body=made),
        "1.37",
        {"DRAResourcePoolStatus"},
    ).stored
    assert stored is not None
    assert stored["apiVersion"] == "resource.k8s.io/v1alpha3"
    assert stored["spec"] == {"driver": "d.example.com", "limit": 100}
    stored["metadata"]["resourceVersion"] = "5"
    versioned = made | {"metadata": {"name": "x", "resourceVersion": "5"}}
    assert update(versioned, stored, resource, version="v1alpha3").status == 200
    unversioned = update(made, stored, resource, version="v1alpha3")
    assert [cause.field for cause in unversioned.causes] == ["metadata.resourceVersion"]
    other = versioned | {"spec": {"driver": "other"}}
    assert [cause.field for cause in update(other, stored, resource, version="v1alpha3").causes] == ["spec"]

    def write_status(value: Json, before: Json | None = None) -> admission.Answer:
        kept = stored | ({"status": before} if before else {})
        return update(versioned | {"status": value}, kept, resource, version="v1alpha3", subresource="status")

    assert write_status({"poolCount": 0}).status == 200
    assert [cause.field for cause in write_status({"pools": []}).causes] == ["status.poolCount"]
    assert [cause.field for cause in write_status({"poolCount": 1}, {"poolCount": 0}).causes] == ["status"]
    bad = {"driver": "", "poolName": "A", "limit": 0, "defaultPartitionTypeAttribute": "a"}
    faults = admission.validate(
        make("ResourcePoolStatusRequest", version="v1alpha3", **bad), "1.37", {"DRAResourcePoolStatus"}
    )
    assert [fault.path for fault in faults] == [
        "spec.driver",
        "spec.poolName",
        "spec.limit",
        "spec.defaultPartitionTypeAttribute",
    ]


def test_validate_tells_what_no_server_would_decode(make: Any) -> None:
    for body in (
        b"{",
        b"[]",
        b"{}",
        b'{"kind":"Pod","apiVersion":"v1"}',
        b'{"kind":"DeviceClass","apiVersion":"apps/v1"}',
    ):
        assert [(fault.path, fault.reason) for fault in admission.validate(body)] == [("", "BadRequest")]
    assert [fault.reason for fault in admission.validate(make("ResourceSlice", driver=5))] == ["BadRequest"]
    assert [fault.reason for fault in admission.validate(make("DeviceClass", version="v1alpha3"))] == ["NotFound"]
    assert admission.validate(make("ResourceClaim")) == []


def test_owners_count_once(make: Any) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    answer = create(make("ResourceSlice", meta={"ownerReferences": [owner, owner]}), "resourceslices")
    assert answer.stored is not None
    assert answer.stored["metadata"]["ownerReferences"] == [owner]
    assert "duplicate UID(s) observed: u" in answer.warnings[0]


def test_users_need_no_permission_for_what_they_do_not_change(make: Any) -> None:
    nobody = admission.User(name="nobody", allows=lambda *_: False)
    stored = make("ResourceClaim") | {"status": {"allocation": ALLOCATION}}
    entry = {"driver": "d", "pool": "p", "device": "a"}
    for new, fields in (
        ({"allocation": ALLOCATION}, []),
        ({}, ["status.allocation"]),
        ({"allocation": ALLOCATION, "devices": [entry]}, ["status.devices"]),
    ):
        answer = update(stored | {"status": new}, stored, "resourceclaims", subresource="status", user=nobody)
        assert [cause.field for cause in answer.causes] == fields


@pytest.mark.parametrize(
    ("selector", "associated"),
    [
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]}, False),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}, False),
        ({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]}, False),
    ],
)
def test_nodes_write_about_their_own_devices(make: Any, selector: Json, associated: bool) -> None:
    driver = admission.User(name="driver", node="n", allows=lambda verb, *_: verb == "associated-node:update")
    allocation = ALLOCATION | {"nodeSelector": {"nodeSelectorTerms": [selector]}}
    stored = make("ResourceClaim") | {"status": {"allocation": allocation}}
    body = stored | {"status": {"allocation": allocation, "devices": [{"driver": "d", "pool": "p", "device": "a"}]}}
    answer = update(body, stored, "resourceclaims", subresource="status", user=driver)
    assert answer.status == (200 if associated else 422)
