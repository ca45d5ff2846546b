"""Rules that no recorded case probes, and formats with many forms (spec/resourceslice.md 2.2, 4)."""

from __future__ import annotations

from typing import Any

import pytest

from drakit import admission
from drakit.admission.faults import Faults
from drakit.admission.validation import formats, metadata

Json = dict[str, Any]

ALL = admission.profile("1.37", all_gates=True)
UUID = "11111111-2222-4333-8444-555555555555"
REQUIRED, INVALID, FORBIDDEN = "FieldValueRequired", "FieldValueInvalid", "FieldValueForbidden"


def found(obj: Json) -> list[tuple[str, str]]:
    return [(fault.reason, fault.path) for fault in admission.validate(obj, "1.37", ALL)]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (UUID, ""),
        (UUID.replace("1", "A"), "RFC 4122"),
        ("{" + UUID + "}", "RFC 4122"),
        ("urn:uuid:" + UUID, "RFC 4122"),
        (UUID.replace("-", ""), "RFC 4122"),
        ("xrn:uuid:" + UUID, "invalid UUID format"),
        ("g" + UUID[1:], "invalid UUID format"),
        ("g" * 32, "invalid UUID format"),
        ("", "invalid UUID length: 0"),
        (UUID[:-1], "invalid UUID length: 35"),
    ],
)
def test_uuids(value: str, complaint: str) -> None:
    faults = Faults()
    formats.uuid(faults, "f", value)
    assert [fault.message for fault in faults.found if complaint and complaint in fault.message] == [
        fault.message for fault in faults.found
    ]
    assert bool(faults.found) == bool(complaint)


@pytest.mark.parametrize("value", ["10.9.8.7/24", "10.9.8.7/32", "2001:db8::1/64", "::1/128"])
def test_interface_addresses(value: str) -> None:
    faults = Faults()
    formats.interface_address(faults, "f", value)
    assert faults.found == []


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "10.9.8.7",
        "10.9.8.7/33",
        "10.9.8.7/024",
        "10.9.8.07/24",
        "10.9.8.7/255.255.255.0",
        "2001:DB8::1/64",
        "2001:db8:0:0::1/64",
        "fe80::1%eth0/64",
        "::ffff:10.0.0.1/120",
    ],
)
def test_bad_interface_addresses(value: str) -> None:
    faults = Faults()
    formats.interface_address(faults, "f", value)
    assert [fault.reason for fault in faults.found] == [INVALID]


def test_long_keys_lose_their_middle_in_paths(make: Any) -> None:
    """spec/apiserver.md Decoding: up to 96 bytes whole, longer ones 47 + "..." + 46."""
    fits = f"{'d' * 63}/{'i' * 32}"
    long = "a" * 50 + "b" * 50
    assert formats.shortened(fits) == fits
    assert formats.shortened(long) == "a" * 47 + "..." + "b" * 46
    paths = [path for _, path in found(make("ResourceSlice", devices=[{"name": "a", "attributes": {long: {}}}]))]
    assert f"spec.devices[0].attributes[{formats.shortened(long)}]" in paths


def test_owners_and_labels() -> None:
    faults = Faults()
    owner = {"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u", "controller": True}
    other = {"apiVersion": "", "kind": "", "name": "", "uid": "", "controller": True}
    meta = {"name": "x", "generation": -1, "ownerReferences": [owner, other], "labels": {"a/b/c": "x y"}}
    metadata.created(faults, meta, namespaced=True)
    assert [fault.path for fault in faults.found] == [
        "metadata.namespace",
        "metadata.generation",
        "metadata.labels",
        "metadata.labels",
        "metadata.ownerReferences",
        "metadata.ownerReferences.apiVersion",
        "metadata.ownerReferences.kind",
        "metadata.ownerReferences.name",
        "metadata.ownerReferences.uid",
        "metadata.ownerReferences",
    ]


def test_policies_are_of_one_kind(make: Any) -> None:
    policy = {"default": "1", "validValues": ["1"], "validRange": {"min": "1"}}
    device = {"name": "a", "allowMultipleAllocations": True, "capacity": {"c": {"value": "8", "requestPolicy": policy}}}
    path = "spec.devices[0].capacity[c].requestPolicy"
    assert found(make("ResourceSlice", devices=[device])) == [(FORBIDDEN, path)]
    del policy["validRange"], policy["default"]
    assert found(make("ResourceSlice", devices=[device])) == [(REQUIRED, f"{path}.default")]
    device["allowMultipleAllocations"] = False
    assert found(make("ResourceSlice", devices=[device])) == [(FORBIDDEN, path)]


def test_devices_are_somewhere_once(make: Any) -> None:
    device = {"name": "a", "nodeName": "n", "allNodes": True}
    obj = make("ResourceSlice", nodeName=None, perDeviceNodeSelection=True, devices=[device])
    assert found(obj) == [(INVALID, "spec.devices[0]")]


def test_consumed_counters_of_a_slice_before_1_35(make: Any) -> None:
    counters = {f"c{index}": {"value": "1"} for index in range(32)}
    devices = [
        {"name": f"d{index}", "consumesCounters": [{"counterSet": "s", "counters": counters}]} for index in range(33)
    ]
    obj = make("ResourceSlice", devices=devices)
    faults = admission.validate(obj, "1.34", {"DRAPartitionableDevices"})
    assert [(fault.reason, fault.path) for fault in faults] == [(INVALID, "spec.devices")]
    obj["spec"]["devices"].pop()
    assert admission.validate(obj, "1.34", {"DRAPartitionableDevices"}) == []


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ({"key": "k", "operator": "Gt", "values": ["1"]}, []),
        ({"key": "k", "operator": "Gt", "values": ["1", "2"]}, [(REQUIRED, "values")]),
        ({"key": "k", "operator": "In", "values": []}, [(REQUIRED, "values")]),
        ({"key": "k", "operator": "Exists", "values": ["x"]}, [(FORBIDDEN, "values")]),
        ({"key": "k", "operator": "is", "values": ["x y"]}, [(INVALID, "operator"), (INVALID, "values[0]")]),
    ],
)
def test_node_selectors(make: Any, requirement: Json, expected: list[tuple[str, str]]) -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    where = "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0]"
    obj = make("ResourceSlice", nodeName=None, nodeSelector=selector)
    assert found(obj) == [(reason, f"{where}.{name}") for reason, name in expected]


@pytest.mark.parametrize(
    ("name", "fine"),
    [
        ("example.com/gpu", True),
        ("gpu", False),
        ("x.kubernetes.io/gpu", False),
        ("requests.example.com/gpu", False),
        ("example.com/" + "x" * 63, True),
        ("example.com/" + "x" * 64, False),
        ("", False),
    ],
)
def test_extended_resource_names(make: Any, name: str, fine: bool) -> None:
    expected = [] if fine else [(INVALID, "spec.extendedResourceName")]
    assert found(make("DeviceClass", extendedResourceName=name)) == expected


def test_the_namespace_decides_on_admin_access(make: Any) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": True}}
    claims = {"requests": [request, request | {"name": "s"}]}
    for kind, spec in (
        ("ResourceClaim", {"devices": claims}),
        ("ResourceClaimTemplate", {"spec": {"devices": claims}}),
    ):
        for labels, reasons in ((None, ["InternalError"]), ({}, [FORBIDDEN])):
            write = admission.Request(
                verb="create",
                resource=f"{kind.lower()}s",
                version="v1",
                namespace="ns",
                body=make(kind, **spec),
                namespace_labels=labels,
            )
            causes = admission.admit(write).causes
            assert [cause.reason for cause in causes if cause.reason in {FORBIDDEN, "InternalError"}][:1] == reasons
            assert causes[0].field == "spec.devices.requests[0].adminAccess"


def test_admin_access_in_status(make: Any) -> None:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "a", "adminAccess": True}
    stored = make("ResourceClaim")
    body = stored | {"status": {"allocation": {"devices": {"results": [result]}}}}
    for labels, status in ((None, 422), ({}, 422), ({"resource.kubernetes.io/admin-access": "true"}, 200)):
        write = admission.Request(
            verb="update",
            resource="resourceclaims",
            subresource="status",
            version="v1",
            namespace="ns",
            name="x",
            body=body,
            stored=stored,
            namespace_labels=labels,
        )
        answer = admission.admit(write)
        assert answer.status == status
        if status == 422:
            assert answer.causes[0].field == "status.allocation.devices.results[0].adminAccess"
