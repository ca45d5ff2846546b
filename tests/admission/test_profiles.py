"""Minor versions: what they serve, which gates they have, what they drop."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from drakit import admission
from drakit.admission import profiles
from drakit.api import fields

Json = dict[str, Any]


def create(obj: Json, resource: str, version: str = "v1", **fields: Any) -> admission.Request:
    namespace = "ns" if resource.startswith("resourceclaim") else ""
    return admission.Request(verb="create", resource=resource, version=version, namespace=namespace, body=obj, **fields)


def test_default_gates() -> None:
    """spec/resourceslice.md 2.9, spec/allocator.md 0."""
    assert admission.profile("1.32") == frozenset()
    assert admission.profile("1.33") == {"DRAResourceClaimDeviceStatus"}
    assert admission.profile("1.34") - admission.profile("1.33") == {"DRAAdminAccess", "DRAPrioritizedList"}
    assert "DRADeviceTaintRules" not in admission.profile("1.36")
    assert admission.profile("1.37") - admission.profile("1.36") == {
        "DRADeviceTaintRules",
        "DRAFractionalCapacityRange",
    }
    assert "DRAListTypeAttributes" in admission.profile("1.36", all_gates=True)
    with pytest.raises(ValueError, match=r"unknown Kubernetes version '1\.31'"):
        admission.profile("1.31")
    with pytest.raises(ValueError, match=r"unknown Kubernetes version '1\.38'"):
        admission.admit(create({}, "deviceclasses"), "1.38")


def test_every_gate_of_a_field_is_known() -> None:
    gates = {field.gate for types in fields.TABLES.values() for table in types.values() for field in table} - {""}
    assert gates <= set(profiles.GATES)
    for version, types in fields.TABLES.items():
        for name, table in types.items():
            for field in table:
                assert (
                    not field.gate
                    or profiles.GATES[field.gate][0] <= field.since
                    or field.gate
                    in {
                        "DRANodeAllocatableResources",
                        "DRAResourceClaimDeviceStatus",
                        "DRAAdminAccess",
                    }
                ), (version, name, field.name)


@pytest.mark.parametrize(
    ("minor", "version", "status"),
    [
        ("1.32", "v1beta1", 201),
        ("1.32", "v1beta2", 404),
        ("1.33", "v1beta2", 201),
        ("1.33", "v1", 404),
        ("1.34", "v1", 201),
        ("1.37", "v7", 404),
    ],
)
def test_served_versions(make: Any, minor: str, version: str, status: int) -> None:
    assert (
        admission.admit(create(make("DeviceClass", version=version), "deviceclasses", version), minor).status == status
    )


@pytest.mark.parametrize(
    ("minor", "version", "gates", "status"),
    [
        ("1.36", "v1beta2", {"DRADeviceTaintRules"}, 201),
        ("1.36", "v1beta2", set(), 404),
        ("1.36", "v1", {"DRADeviceTaintRules"}, 404),
        ("1.37", "v1", {"DRADeviceTaintRules"}, 201),
        ("1.34", "v1alpha3", {"DRADeviceTaints"}, 201),
        ("1.34", "v1alpha3", set(), 404),
    ],
)
def test_taint_rules_are_served_with_their_gate(
    make: Any, minor: str, version: str, gates: set[str], status: int
) -> None:
    request = create(make("DeviceTaintRule", version=version), "devicetaintrules", version)
    assert admission.admit(request, minor, gates).status == status


@pytest.mark.parametrize("resource", ["pods", "resourceslices/x"])
def test_other_resources_are_not_found(make: Any, resource: str) -> None:
    assert admission.admit(create(make("ResourceSlice"), resource)).status == 404
    assert admission.admit(create(make("ResourceSlice"), "resourceslices", group="apps")).status == 404
    assert admission.admit(create(make("ResourceSlice"), "resourceslices", subresource="status")).status == 404


def test_deprecation_warnings(make: Any) -> None:
    def warnings(version: str, minor: str) -> tuple[str, ...]:
        return admission.admit(create(make("DeviceClass", version=version), "deviceclasses", version), minor).warnings

    assert warnings("v1beta1", "1.34") == ()
    assert warnings("v1beta1", "1.35") == (
        "resource.k8s.io/v1beta1 DeviceClass is deprecated in v1.35+, unavailable in v1.38+",
    )
    assert warnings("v1", "1.37") == ()


DEVICE = {
    "name": "a",
    "taints": [{"key": "k", "effect": "None", "timeAdded": "2026-01-02T03:04:05Z"}],
    "allowMultipleAllocations": True,
    "bindsToNode": True,
    "attributes": {"x": {"int": 1}},
    "capacity": {"c": {"value": "1", "requestPolicy": {"default": "1"}}},
}


def test_fields_of_features_that_are_off_are_dropped(make: Any) -> None:
    obj = make("ResourceSlice", devices=[DEVICE])
    before = copy.deepcopy(obj)
    stored = admission.admit(create(obj, "resourceslices"), "1.37", ()).stored
    assert stored is not None
    assert stored["spec"]["devices"] == [
        {"name": "a", "attributes": {"x": {"int": 1}}, "capacity": {"c": {"value": "1"}}}
    ]
    assert obj == before


def test_features_that_the_stored_object_uses_stay(make: Any) -> None:
    stored = make("ResourceSlice", devices=[DEVICE])
    body = copy.deepcopy(stored)
    body["spec"]["devices"].append(DEVICE | {"name": "b"})
    request = admission.Request(
        verb="update", resource="resourceslices", version="v1", name="x", body=body, stored=stored
    )
    answer = admission.admit(request, "1.37", ())
    assert answer.stored is not None
    assert [set(device) for device in answer.stored["spec"]["devices"]] == [set(DEVICE)] * 2


def test_binding_conditions_need_two_gates(make: Any) -> None:
    """spec/resourceslice.md 2.9."""
    device = {"name": "a", "bindingConditions": ["x"], "bindingFailureConditions": ["y"]}
    both = {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"}
    for gates, kept in ((both, True), ({"DRADeviceBindingConditions"}, False)):
        stored = admission.admit(
            create(make("ResourceSlice", devices=[device]), "resourceslices"), "1.37", gates
        ).stored
        assert stored is not None
        assert ("bindingConditions" in stored["spec"]["devices"][0]) == kept


def test_locked_gates_are_on(make: Any) -> None:
    obj = make("DeviceClass", extendedResourceName="example.com/gpu")
    for minor, kept in (("1.36", False), ("1.37", True)):
        stored = admission.admit(create(obj, "deviceclasses"), minor, ()).stored
        assert stored is not None
        assert ("extendedResourceName" in stored["spec"]) == kept


def test_admin_access_by_minor(make: Any) -> None:
    """The label moved in 1.34; 1.32 asks for none (spec/resourceslice.md 3)."""
    flat = {"requests": [{"name": "r", "deviceClassName": "c", "adminAccess": True}]}
    obj = make("ResourceClaim", version="v1beta1", devices=flat)
    old, new = {"resource.k8s.io/admin-access": "true"}, {"resource.kubernetes.io/admin-access": "true"}
    for minor, labels, status in (
        ("1.32", {}, 201),
        ("1.33", old, 201),
        ("1.33", new, 422),
        ("1.34", new, 201),
        ("1.34", old, 422),
        ("1.34", {"resource.kubernetes.io/admin-access": "false"}, 422),
        ("1.34", None, 422),
    ):
        request = create(obj, "resourceclaims", "v1beta1", namespace_labels=labels)
        assert admission.admit(request, minor, {"DRAAdminAccess"}).status == status, (minor, labels)


def test_taint_effect_none_came_with_1_35(make: Any) -> None:
    obj = make("ResourceSlice", devices=[{"name": "a", "taints": [{"key": "k", "effect": "None"}]}])
    assert [fault.path for fault in admission.validate(obj, "1.34", {"DRADeviceTaints"})] == [
        "spec.devices[0].taints[0].effect"
    ]
    assert admission.validate(obj, "1.35", {"DRADeviceTaints"}) == []
