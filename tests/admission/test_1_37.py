"""The rules and fields that came with 1.37 (spec/resourceslice.md 2.3-2.8, marks V37 and T37)."""

from __future__ import annotations

from typing import Any

import pytest

from drakit import admission

Json = dict[str, Any]

REQUIRED, INVALID, DUPLICATE = "FieldValueRequired", "FieldValueInvalid", "FieldValueDuplicate"
UNSUPPORTED, FORBIDDEN, NOT_FOUND = "FieldValueNotSupported", "FieldValueForbidden", "FieldValueNotFound"
ALL = admission.profile("1.37", all_gates=True)
ALL_36 = admission.profile("1.36", all_gates=True)
DEVICE = "spec.devices[0]"
RESOURCES = f"{DEVICE}.nodeAllocatableResources"


def found(obj: Json, version: str = "1.37", gates: frozenset[str] = ALL) -> list[tuple[str, str]]:
    return [(fault.reason, fault.path) for fault in admission.validate(obj, version, gates)]


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ({"cpu": {"mapping": {"capacityKey": "c", "capacityMultiplier": "2"}}}, []),
        ({"memory": {"mapping": {"deviceMultiplier": "1Gi"}}}, []),
        ({"hugepages-2Mi": {"overhead": {"perPod": "0", "perContainer": "1"}}}, []),
        ({"cpu": {}}, [(REQUIRED, "[cpu]")]),
        ({"cpu": {"mapping": {"capacityKey": "c"}}}, [(REQUIRED, "[cpu].mapping.capacityMultiplier")]),
        (
            {"cpu": {"mapping": {"capacityMultiplier": "1"}}},
            [(REQUIRED, "[cpu].mapping.capacityKey"), (INVALID, "[cpu].mapping")],
        ),
        ({"cpu": {"mapping": {}}}, [(INVALID, "[cpu].mapping")]),
        (
            {"cpu": {"mapping": {"capacityKey": "c", "capacityMultiplier": "1", "deviceMultiplier": "1"}}},
            [(INVALID, "[cpu].mapping")],
        ),
        (
            {"cpu": {"mapping": {"capacityKey": "d.example.com/c", "capacityMultiplier": "0"}}},
            [(NOT_FOUND, "[cpu].mapping.capacityKey"), (INVALID, "[cpu].mapping.capacityMultiplier")],
        ),
        (
            {"cpu": {"mapping": {"capacityKey": "", "capacityMultiplier": "1"}}},
            [(INVALID, "[cpu].mapping.capacityKey")],
        ),
        ({"cpu": {"mapping": {"deviceMultiplier": "-1"}}}, [(INVALID, "[cpu].mapping.deviceMultiplier")]),
        ({"cpu": {"overhead": {}}}, [(INVALID, "[cpu].overhead")]),
        ({"cpu": {"overhead": {"perPod": "-1"}}}, [(INVALID, "[cpu].overhead.perPod")]),
        ({"example.com/gpu": {"overhead": {"perPod": "1"}}}, [(INVALID, "[example.com/gpu]")]),
    ],
)
def test_node_allocatable_resources(make: Any, use: Json, expected: list[tuple[str, str]]) -> None:
    device = {"name": "a", "capacity": {"c": {"value": "8"}}, "nodeAllocatableResources": use}
    assert found(make("ResourceSlice", devices=[device])) == [(reason, RESOURCES + path) for reason, path in expected]


def test_the_mappings_of_1_36_are_gone(make: Any) -> None:
    device = {
        "name": "a",
        "capacity": {"c": {"value": "8"}},
        "nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "c"}},
    }
    obj = make("ResourceSlice", devices=[device])
    request = admission.Request(verb="create", resource="resourceslices", version="v1", body=obj)
    newer = admission.admit(request, "1.37", ALL)
    assert newer.warnings == ('unknown field "spec.devices[0].nodeAllocatableResourceMappings"',)
    older = admission.admit(request, "1.36", ALL_36)
    assert older.stored is not None
    mapping = older.stored["spec"]["devices"][0]["nodeAllocatableResourceMappings"]
    assert mapping == {"cpu": {"capacityKey": "c", "allocationMultiplier": "1"}}
    update = admission.Request(
        verb="update", resource="resourceslices", version="v1", name="x", body=obj, stored=older.stored
    )
    upgraded = admission.admit(update, "1.37", ALL)
    assert upgraded.stored is not None
    assert "nodeAllocatableResourceMappings" not in upgraded.stored["spec"]["devices"][0]


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        (["*"], []),
        (["NodePrepareResources", "NodeUnprepareResources"], []),
        (["NodeUnprepareResources"], []),
        (["NodePrepareResources", "*"], []),
        (["NodePrepareResources"], [(INVALID, "spec.skipNodeOperations")]),
        (["*", "*"], [(DUPLICATE, "spec.skipNodeOperations[1]")]),
        (["Other"], [(UNSUPPORTED, "spec.skipNodeOperations[0]")]),
    ],
)
def test_skip_node_operations(make: Any, operations: list[str], expected: list[tuple[str, str]]) -> None:
    assert found(make("ResourceSlice", skipNodeOperations=operations)) == expected


def test_unknown_operations_stay_as_they_were(make: Any) -> None:
    stored = make("ResourceSlice", skipNodeOperations=["Later"])
    request = admission.Request(
        verb="update", resource="resourceslices", version="v1", name="x", body=stored, stored=stored
    )
    assert admission.admit(request, "1.37", ALL).status == 200


CONSUMES = [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]


@pytest.mark.parametrize(
    ("attributes", "name", "expected"),
    [
        ({"type": {"string": "x"}}, "d.example.com/type", []),
        ({"d.example.com/type": {"string": "x"}}, "d.example.com/type", []),
        ({"example.org/type": {"string": "x"}}, "example.org/type", []),
        ({"type": {"string": "x"}}, "example.org/type", [(REQUIRED, f"{DEVICE}.attributes[example.org/type]")]),
        ({"type": {"int": 1}}, "d.example.com/type", [(INVALID, f"{DEVICE}.attributes[d.example.com/type]")]),
        ({"type": {"string": "x"}}, "type", [(INVALID, "spec.partitionTypeAttribute")]),
        ({"type": {"string": "x"}}, "a/b/c", [(INVALID, "spec.partitionTypeAttribute")]),
    ],
)
def test_partition_type_attribute(make: Any, attributes: Json, name: str, expected: list[tuple[str, str]]) -> None:
    devices = [{"name": "a", "attributes": attributes, "consumesCounters": CONSUMES}, {"name": "exempt"}]
    assert found(make("ResourceSlice", devices=devices, partitionTypeAttribute=name)) == expected


def test_a_partition_type_needs_partitions(make: Any) -> None:
    assert found(make("ResourceSlice", partitionTypeAttribute="e/a")) == [(INVALID, "spec.partitionTypeAttribute")]


def test_compatibility_groups(make: Any) -> None:
    def groups(*names: str) -> Json:
        entry = CONSUMES[0] | {"compatibilityGroups": list(names)}
        obj: Json = make("ResourceSlice", devices=[{"name": "a", "consumesCounters": [entry]}])
        return obj

    where = f"{DEVICE}.consumesCounters[0].compatibilityGroups"
    assert found(groups("a", "b")) == []
    assert found(groups("a", "a")) == [(DUPLICATE, f"{where}[1]")]
    assert found(groups("A")) == [(INVALID, f"{where}[0]")]


def derived(make: Any, attributes: list[Json], constraints: list[Json], **other: Any) -> Json:
    requests = [
        {"name": "r", "exactly": {"deviceClassName": "c", "derivedAttributes": attributes} | other},
        {"name": "s", "firstAvailable": [{"name": "t", "deviceClassName": "c", "derivedAttributes": attributes}]},
    ]
    obj: Json = make("ResourceClaim", devices={"requests": requests, "constraints": constraints})
    return obj


EXACTLY = "spec.devices.requests[0].exactly.derivedAttributes"
ALTERNATIVE = "spec.devices.requests[1].firstAvailable[0].derivedAttributes"
NUMA = {"name": "derived/numa", "expression": 'device.attributes["d.example.com"].numa'}


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([], []),
        (["r", "s"], []),
        (["r", "s/t"], []),
        (["r"], [(INVALID, f"{ALTERNATIVE}[0].name")]),
        (["s/t"], [(INVALID, f"{EXACTLY}[0].name")]),
    ],
)
def test_derived_attributes_must_be_used(make: Any, requests: list[str], expected: list[tuple[str, str]]) -> None:
    constraint = {"requests": requests, "matchAttribute": "derived/numa"}
    assert found(derived(make, [NUMA], [constraint])) == expected
    constraint = {"requests": requests, "distinctAttribute": "derived/numa"}
    assert found(derived(make, [NUMA], [constraint])) == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ([NUMA, NUMA], [(DUPLICATE, "[1]")]),
        ([{"name": "", "expression": "1"}], [(REQUIRED, "[0].name")]),
        ([{"name": "derived/numa", "expression": ""}], [(REQUIRED, "[0].expression")]),
        ([{"name": "derived/numa", "expression": "1 +"}], [(INVALID, "[0].expression")]),
        ([{"name": "derived/numa", "expression": "'a'"}], []),
    ],
)
def test_derived_attributes(make: Any, attributes: list[Json], expected: list[tuple[str, str]]) -> None:
    faults = found(derived(make, attributes, [{"matchAttribute": "derived/numa"}]))
    assert faults == [(reason, where + path) for where in (EXACTLY, ALTERNATIVE) for reason, path in expected]


TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
COSTLY = f"{TEN}.exists(x, {TEN}.exists(y, {TEN}.exists(z, {TEN}.exists(w, x + y + z + w == 7))))"


def test_derived_attributes_share_a_budget(make: Any) -> None:
    texts = [f"{COSTLY} && {index} == {index}" for index in range(12)]
    attributes = [{"name": f"e/a{index}", "expression": text} for index, text in enumerate(texts)]
    constraints = [{"matchAttribute": f"e/a{index}"} for index in range(12)]
    from drakit import cel

    cost = cel.Environment(version="1.37", features=ALL, stored=False).compile(texts[0], result="value").cost
    assert 1_000_000 / 24 < cost <= 1_000_000
    assert found(derived(make, attributes, constraints)) == [(FORBIDDEN, "spec.devices")]


def policy(make: Any, bounds: Json, *, default: str = "1", value: str = "8") -> Json:
    request_policy = {"default": default, "validRange": bounds}
    device = {
        "name": "a",
        "allowMultipleAllocations": True,
        "capacity": {"c": {"value": value, "requestPolicy": request_policy}},
    }
    obj: Json = make("ResourceSlice", devices=[device])
    return obj


RANGE = f"{DEVICE}.capacity[c].requestPolicy.validRange"


@pytest.mark.parametrize(
    ("bounds", "default", "expected"),
    [
        ({"min": "1", "step": "1"}, "1", []),
        ({"min": "0.5", "max": "2", "step": "0.5"}, "1.5", []),
        ({"min": "1", "step": "0"}, "1", [(INVALID, "step")]),
        ({"min": "1", "step": "-1"}, "1", [(INVALID, "step")]),
        ({"min": "2"}, "1", [(INVALID, "default")]),
        ({"min": "0", "max": "1"}, "2", [(INVALID, "default")]),
        ({"min": "3", "max": "2"}, "3", [(INVALID, "max"), (INVALID, "default")]),
        ({"min": "0.0001", "step": "1"}, "1", [(INVALID, "min")]),
        ({"min": "0", "step": "0.4"}, "1", [(INVALID, "step")]),
        ({"min": "-1", "step": "1"}, "1", [(INVALID, "min")]),
        ({"min": "0", "step": "18446744073709551616"}, "0", [(INVALID, "step"), (INVALID, "step")]),
        ({"min": "9", "max": "10"}, "9", [(INVALID, "min"), (INVALID, "max")]),
        ({"min": None}, "1", [(REQUIRED, "min")]),
        ({"min": "1", "step": "1e2000000000"}, "1", [(INVALID, "step"), (INVALID, "step")]),
    ],
)
def test_ranges(make: Any, bounds: Json, default: str, expected: list[tuple[str, str]]) -> None:
    assert found(policy(make, bounds, default=default)) == [(reason, f"{RANGE}.{name}") for reason, name in expected]


def test_fractions_need_their_gate(make: Any) -> None:
    """Without it amounts are rounded up to integers (spec/resourceslice.md 2.3)."""
    values = {"default": "0.5", "validValues": ["0.5", "0.7"]}
    device = {"name": "a", "allowMultipleAllocations": True, "capacity": {"c": {"value": "8", "requestPolicy": values}}}
    obj = make("ResourceSlice", devices=[device])
    assert found(obj) == []
    where = f"{DEVICE}.capacity[c].requestPolicy.validValues[1]"
    assert found(obj, gates=ALL - {"DRAFractionalCapacityRange"}) == [(DUPLICATE, where)]
    assert found(obj, "1.36", ALL_36) == [(DUPLICATE, where)]


def test_the_recorded_server_drops_the_connection_where_this_one_answers(make: Any) -> None:
    """spec/apiserver.md 3: step 0 panics the handler up to 1.36."""
    for step in ("0", "0Gi", "18446744073709551616", "1e30"):
        obj = policy(make, {"min": "0", "step": step}, default="0", value="1e31")
        assert (INVALID, f"{RANGE}.step") in found(obj, "1.36", ALL_36)


def test_names_have_one_slash_since_1_37(make: Any) -> None:
    obj = make(
        "ResourceSlice",
        devices=[{"name": "a", "attributes": {"a/b/c": {"int": 1}}, "capacity": {"a/b/c": {"value": "1"}}}],
    )
    assert found(obj, "1.36", ALL_36) == []
    assert found(obj) == [(INVALID, f"{DEVICE}.attributes"), (INVALID, f"{DEVICE}.capacity")]


def test_unchanged_capacities_are_not_checked_again_since_1_37(make: Any) -> None:
    stored = policy(make, {"min": "1", "step": "0"})
    body = stored | {"metadata": {"name": "x", "labels": {"a": "b"}}}
    request = admission.Request(
        verb="update", resource="resourceslices", version="v1", name="x", body=body, stored=stored
    )
    assert admission.admit(request, "1.37", ALL).status == 200
    assert admission.admit(request, "1.36", ALL_36).status == 422


def test_tolerations_of_results_are_checked_since_1_37(make: Any) -> None:
    stored = make("ResourceClaim")
    result = {"request": "r", "driver": "d", "pool": "p", "device": "a", "tolerations": [{"operator": "Bad"}]}
    result |= {"skipNodeOperations": ["NodePrepareResources"]}
    body = stored | {"status": {"allocation": {"devices": {"results": [result]}}}}
    request = admission.Request(
        verb="update",
        resource="resourceclaims",
        version="v1",
        subresource="status",
        namespace="ns",
        name="x",
        body=body,
        stored=stored,
    )
    path = "status.allocation.devices.results[0]"
    assert [cause.field for cause in admission.admit(request, "1.37", ALL).causes] == [
        f"{path}.tolerations[0].operator",
        f"{path}.skipNodeOperations",
    ]
    assert admission.admit(request, "1.36", ALL_36).status == 200
