"""Every limit at the limit (accepted) and one past it (refused), with the field and the reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from drakit import admission
from drakit.api import limits

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

MANY, LONG, INVALID = "FieldValueTooMany", "FieldValueTooLong", "FieldValueInvalid"
DEVICE = "spec.devices[0]"
EXACTLY = "spec.devices.requests[0].exactly"
ALL_GATES = admission.profile("1.37", all_gates=True)


def names(count: int, prefix: str = "n") -> list[str]:
    return [f"{prefix}{index}" for index in range(count)]


def subdomain(length: int) -> str:
    """A subdomain of that many bytes, in labels of at most 63."""
    text = ".".join(["a" * 60] * 5)[:length]
    return text[:-1] + "a"


def device(**fields: Any) -> Json:
    return {"devices": [{"name": "a"} | fields]}


def slice_with(count: int, **fields: Any) -> Json:
    return {"devices": [{"name": f"d{index}"} | (fields if index == 0 else {}) for index in range(count)]}


def counters(count: int) -> Json:
    return {f"c{index}": {"value": "1"} for index in range(count)}


def attributes(count: int) -> Json:
    return {f"a{index}": {"int": 1} for index in range(count)}


def claim(**devices: Any) -> Json:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]} | devices}


def exactly(**fields: Any) -> Json:
    return claim(requests=[{"name": "r", "exactly": {"deviceClassName": "c"} | fields}])


def alternatives(count: int) -> Json:
    return claim(
        requests=[{"name": "r", "firstAvailable": [{"name": name, "deviceClassName": "c"} for name in names(count)]}]
    )


def selectors(count: int) -> list[Json]:
    return [{"cel": {"expression": "true"}}] * count


def expression(length: int) -> list[Json]:
    return [{"cel": {"expression": "true" + " " * (length - 4)}}]


def opaque(length: int) -> Json:
    """Parameters of that many bytes."""
    return {
        "opaque": {
            "driver": "d",
            "parameters": {"a": "x" * (length - len(json.dumps({"a": ""}, separators=(",", ":"))))},
        }
    }


def configs(count: int) -> list[Json]:
    return [{"opaque": {"driver": "d", "parameters": {}}}] * count


def policy(count: int) -> Json:
    values = [str(number) for number in range(1, count + 1)]
    capacity = {"c": {"value": "99", "requestPolicy": {"default": "1", "validValues": values}}}
    return device(allowMultipleAllocations=True, capacity=capacity)


def conditions(count: int) -> Json:
    return device(bindingConditions=names(count), bindingFailureConditions=["f"])


def derived(count: int) -> Json:
    attributes = [{"name": f"e/a{index}", "expression": "1"} for index in range(count)]
    constraints = [{"matchAttribute": f"e/a{index}"} for index in range(min(count, limits.CONSTRAINTS))]
    return exactly(derivedAttributes=attributes) | claim(
        requests=[{"name": "r", "exactly": {"deviceClassName": "c", "derivedAttributes": attributes}}],
        constraints=constraints,
    )


SPEC_LIMITS: list[tuple[str, str, int, Callable[[int], Json], str, str]] = [
    ("devices", "ResourceSlice", limits.DEVICES, slice_with, "spec.devices", MANY),
    (
        "devices, one tainted",
        "ResourceSlice",
        limits.DEVICES_WITH_FEATURES,
        lambda n: slice_with(n, taints=[{"key": "k", "effect": "None"}]),
        "spec.devices",
        MANY,
    ),
    (
        "devices, one with counters",
        "ResourceSlice",
        limits.DEVICES_WITH_FEATURES,
        lambda n: slice_with(n, consumesCounters=[{"counterSet": "s", "counters": counters(1)}]),
        "spec.devices",
        MANY,
    ),
    (
        "devices, one with a list",
        "ResourceSlice",
        limits.DEVICES_WITH_FEATURES,
        lambda n: slice_with(n, attributes={"a": {"ints": [1]}}),
        "spec.devices",
        MANY,
    ),
    (
        "attributes",
        "ResourceSlice",
        limits.ATTRIBUTES_AND_CAPACITIES,
        lambda n: device(attributes=attributes(n)),
        DEVICE,
        INVALID,
    ),
    (
        "attributes and capacities",
        "ResourceSlice",
        limits.ATTRIBUTES_AND_CAPACITIES,
        lambda n: device(attributes=attributes(n - 1), capacity={"c": {"value": "1"}}),
        DEVICE,
        INVALID,
    ),
    (
        "attribute values",
        "ResourceSlice",
        limits.ATTRIBUTE_VALUES,
        lambda n: device(attributes={"a": {"ints": [1] * (n - 1)}, "b": {"int": 1}}),
        DEVICE,
        INVALID,
    ),
    (
        "taints",
        "ResourceSlice",
        limits.TAINTS,
        lambda n: device(taints=[{"key": name, "effect": "None"} for name in names(n)]),
        f"{DEVICE}.taints",
        MANY,
    ),
    (
        "counter sets",
        "ResourceSlice",
        limits.COUNTER_SETS,
        lambda n: {"devices": None, "sharedCounters": [{"name": name, "counters": counters(1)} for name in names(n)]},
        "spec.sharedCounters",
        MANY,
    ),
    (
        "counters of a set",
        "ResourceSlice",
        limits.COUNTERS_PER_SET,
        lambda n: {"devices": None, "sharedCounters": [{"name": "s", "counters": counters(n)}]},
        "spec.sharedCounters[0].counters",
        MANY,
    ),
    (
        "consumed counter sets",
        "ResourceSlice",
        limits.COUNTER_CONSUMPTIONS,
        lambda n: device(consumesCounters=[{"counterSet": name, "counters": counters(1)} for name in names(n)]),
        f"{DEVICE}.consumesCounters",
        MANY,
    ),
    (
        "consumed counters",
        "ResourceSlice",
        limits.COUNTERS_PER_CONSUMPTION,
        lambda n: device(consumesCounters=[{"counterSet": "s", "counters": counters(n)}]),
        f"{DEVICE}.consumesCounters[0].counters",
        MANY,
    ),
    (
        "compatibility groups",
        "ResourceSlice",
        limits.COMPATIBILITY_GROUPS,
        lambda n: device(
            consumesCounters=[{"counterSet": "s", "counters": counters(1), "compatibilityGroups": names(n)}]
        ),
        f"{DEVICE}.consumesCounters[0].compatibilityGroups",
        MANY,
    ),
    ("binding conditions", "ResourceSlice", limits.BINDING_CONDITIONS, conditions, f"{DEVICE}.bindingConditions", MANY),
    (
        "binding failure conditions",
        "ResourceSlice",
        limits.BINDING_FAILURE_CONDITIONS,
        lambda n: device(bindingConditions=["b"], bindingFailureConditions=names(n)),
        f"{DEVICE}.bindingFailureConditions",
        MANY,
    ),
    (
        "valid values",
        "ResourceSlice",
        limits.VALID_VALUES,
        policy,
        f"{DEVICE}.capacity[c].requestPolicy.validValues",
        MANY,
    ),
    (
        "string attribute",
        "ResourceSlice",
        limits.ATTRIBUTE_VALUE_LENGTH,
        lambda n: device(attributes={"a": {"string": "é" * (n // 2) + "x" * (n % 2)}}),
        f"{DEVICE}.attributes[a].string",
        LONG,
    ),
    (
        "version attribute",
        "ResourceSlice",
        limits.ATTRIBUTE_VALUE_LENGTH,
        lambda n: device(attributes={"a": {"version": "1.2." + "3" * (n - 4)}}),
        f"{DEVICE}.attributes[a].version",
        LONG,
    ),
    (
        "listed string",
        "ResourceSlice",
        limits.ATTRIBUTE_VALUE_LENGTH,
        lambda n: device(attributes={"a": {"strings": ["x" * n]}}),
        f"{DEVICE}.attributes[a].strings[0]",
        LONG,
    ),
    (
        "identifier",
        "ResourceSlice",
        limits.IDENTIFIER_LENGTH,
        lambda n: device(attributes={"x" * n: {"int": 1}}),
        f"{DEVICE}.attributes",
        LONG,
    ),
    (
        "domain",
        "ResourceSlice",
        limits.DOMAIN_LENGTH,
        lambda n: device(capacity={f"{'x' * n}/a": {"value": "1"}}),
        f"{DEVICE}.capacity",
        LONG,
    ),
    ("driver", "ResourceSlice", limits.DRIVER_NAME_LENGTH, lambda n: {"driver": "x" * n}, "spec.driver", LONG),
    (
        "pool",
        "ResourceSlice",
        limits.POOL_NAME_LENGTH,
        lambda n: {
            "pool": {"name": "/".join(["x" * 63] * 3 + ["x" * (n - 192)]), "generation": 0, "resourceSliceCount": 1}
        },
        "spec.pool.name",
        LONG,
    ),
    (
        "node name",
        "ResourceSlice",
        limits.SUBDOMAIN_LENGTH,
        lambda n: {"nodeName": subdomain(n)},
        "spec.nodeName",
        INVALID,
    ),
    (
        "device name",
        "ResourceSlice",
        limits.LABEL_LENGTH,
        lambda n: {"devices": [{"name": "x" * n}]},
        f"{DEVICE}.name",
        INVALID,
    ),
    (
        "class selectors",
        "DeviceClass",
        limits.CLASS_SELECTORS,
        lambda n: {"selectors": selectors(n)},
        "spec.selectors",
        MANY,
    ),
    ("class config", "DeviceClass", limits.CLASS_CONFIGS, lambda n: {"config": configs(n)}, "spec.config", MANY),
    (
        "expression",
        "DeviceClass",
        limits.CEL_EXPRESSION_LENGTH,
        lambda n: {"selectors": expression(n)},
        "spec.selectors[0].cel.expression",
        LONG,
    ),
    (
        "parameters",
        "DeviceClass",
        limits.OPAQUE_PARAMETERS_LENGTH,
        lambda n: {"config": [opaque(n)]},
        "spec.config[0].opaque.parameters",
        LONG,
    ),
    (
        "requests",
        "ResourceClaim",
        limits.REQUESTS,
        lambda n: claim(requests=[{"name": name, "exactly": {"deviceClassName": "c"}} for name in names(n)]),
        "spec.devices.requests",
        MANY,
    ),
    (
        "alternatives",
        "ResourceClaim",
        limits.SUBREQUESTS,
        alternatives,
        "spec.devices.requests[0].firstAvailable",
        MANY,
    ),
    (
        "constraints",
        "ResourceClaim",
        limits.CONSTRAINTS,
        lambda n: claim(constraints=[{"matchAttribute": "e/a"}] * n),
        "spec.devices.constraints",
        MANY,
    ),
    (
        "claim config",
        "ResourceClaim",
        limits.CLAIM_CONFIGS,
        lambda n: claim(config=configs(n)),
        "spec.devices.config",
        MANY,
    ),
    (
        "selectors",
        "ResourceClaim",
        limits.SELECTORS,
        lambda n: exactly(selectors=selectors(n)),
        f"{EXACTLY}.selectors",
        MANY,
    ),
    (
        "class name",
        "ResourceClaim",
        limits.SUBDOMAIN_LENGTH,
        lambda n: exactly(deviceClassName=subdomain(n)),
        f"{EXACTLY}.deviceClassName",
        INVALID,
    ),
    ("derived attributes", "ResourceClaim", limits.DERIVED_ATTRIBUTES, derived, f"{EXACTLY}.derivedAttributes", MANY),
    (
        "pools",
        "ResourcePoolStatusRequest",
        limits.POOL_STATUS_LIMIT,
        lambda n: {"limit": n},
        "spec.limit",
        INVALID,
    ),
]


def faults(obj: Json) -> list[tuple[str, str]]:
    return [(fault.reason, fault.path) for fault in admission.validate(obj, "1.37", ALL_GATES)]


@pytest.mark.parametrize("row", SPEC_LIMITS, ids=[row[0] for row in SPEC_LIMITS])
def test_spec_limits(make: Any, row: tuple[str, str, int, Callable[[int], Json], str, str]) -> None:
    _, kind, number, spec, field, reason = row
    version = "v1alpha3" if kind == "ResourcePoolStatusRequest" else "v1"
    assert faults(make(kind, version=version, **spec(number))) == []
    assert (reason, field) in faults(make(kind, version=version, **spec(number + 1)))


def test_request_references(make: Any) -> None:
    requests = [{"name": name, "exactly": {"deviceClassName": "c"}} for name in names(32)]
    constraint = {"requests": names(32), "matchAttribute": "e/a"}
    assert faults(make("ResourceClaim", **claim(requests=requests, constraints=[constraint]))) == []
    constraint["requests"] = names(33)
    assert (MANY, "spec.devices.constraints[0].requests") in faults(
        make("ResourceClaim", **claim(requests=requests, constraints=[constraint]))
    )


CONDITION = {"type": "T", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}
RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "a"}


def allocated(**fields: Any) -> Json:
    return {"allocation": {"devices": {"results": [RESULT]}}} | fields


def device_status(**fields: Any) -> Json:
    return allocated(devices=[{"driver": "d", "pool": "p", "device": "a"} | fields])


STATUS_LIMITS: list[tuple[str, int, Callable[[int], Json], str, str]] = [
    (
        "consumers",
        limits.RESERVED_FOR,
        lambda n: allocated(reservedFor=[{"resource": "pods", "name": name, "uid": name} for name in names(n)]),
        "status.reservedFor",
        MANY,
    ),
    (
        "results",
        limits.ALLOCATION_RESULTS,
        lambda n: {"allocation": {"devices": {"results": [RESULT] * n}}},
        "status.allocation.devices.results",
        MANY,
    ),
    (
        "allocation config",
        limits.ALLOCATION_CONFIGS,
        lambda n: {"allocation": {"devices": {"config": [{"source": "FromClass"} | configs(1)[0]] * n}}},
        "status.allocation.devices.config",
        MANY,
    ),
    (
        "conditions",
        limits.DEVICE_CONDITIONS,
        lambda n: device_status(conditions=[CONDITION | {"type": name} for name in names(n)]),
        "status.devices[0].conditions",
        MANY,
    ),
    (
        "reason",
        limits.CONDITION_REASON_LENGTH,
        lambda n: device_status(conditions=[CONDITION | {"reason": "R" * n}]),
        "status.devices[0].conditions[0].reason",
        LONG,
    ),
    (
        "message",
        limits.CONDITION_MESSAGE_LENGTH,
        lambda n: device_status(conditions=[CONDITION | {"message": "m" * n}]),
        "status.devices[0].conditions[0].message",
        LONG,
    ),
    (
        "data",
        limits.DEVICE_DATA_LENGTH,
        lambda n: device_status(data=opaque(n)["opaque"]["parameters"]),
        "status.devices[0].data",
        LONG,
    ),
    (
        "ips",
        limits.NETWORK_IPS,
        lambda n: device_status(networkData={"ips": [f"10.0.0.{index}/24" for index in range(n)]}),
        "status.devices[0].networkData.ips",
        MANY,
    ),
    (
        "interface name",
        limits.INTERFACE_NAME_LENGTH,
        lambda n: device_status(networkData={"interfaceName": "x" * n}),
        "status.devices[0].networkData.interfaceName",
        LONG,
    ),
    (
        "hardware address",
        limits.HARDWARE_ADDRESS_LENGTH,
        lambda n: device_status(networkData={"hardwareAddress": "x" * n}),
        "status.devices[0].networkData.hardwareAddress",
        LONG,
    ),
]


@pytest.mark.parametrize("row", STATUS_LIMITS, ids=[row[0] for row in STATUS_LIMITS])
def test_claim_status_limits(make: Any, row: tuple[str, int, Callable[[int], Json], str, str]) -> None:
    _, number, status, field, reason = row
    stored = make("ResourceClaim")

    def answer(count: int) -> admission.Answer:
        request = admission.Request(
            verb="update",
            resource="resourceclaims",
            version="v1",
            subresource="status",
            namespace="ns",
            name="x",
            body=stored | {"status": status(count)},
            stored=stored,
        )
        return admission.admit(request, "1.37", ALL_GATES)

    assert answer(number).causes == ()
    assert answer(number).status == 200
    assert (reason, field) in {(cause.reason, cause.field) for cause in answer(number + 1).causes}


def test_taint_rule_conditions(make: Any) -> None:
    stored = make("DeviceTaintRule")
    for count, status in ((limits.TAINT_RULE_CONDITIONS, 200), (limits.TAINT_RULE_CONDITIONS + 1, 422)):
        body = stored | {"status": {"conditions": [CONDITION | {"type": name} for name in names(count)]}}
        request = admission.Request(
            verb="update",
            resource="devicetaintrules",
            version="v1",
            subresource="status",
            name="x",
            body=body,
            stored=stored,
        )
        assert admission.admit(request).status == status


def test_documented_but_not_enforced_limits(make: Any) -> None:
    """spec/resourceslice.md 2.1: 16 tolerations, one term in a device's node selector."""
    tolerations = [{"operator": "Exists", "key": name} for name in names(limits.TOLERATIONS + 1)]
    assert faults(make("ResourceClaim", **exactly(tolerations=tolerations))) == []
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}] * 2
    spec = device(nodeSelector={"nodeSelectorTerms": terms}) | {"nodeName": None, "perDeviceNodeSelection": True}
    assert faults(make("ResourceSlice", **spec)) == []


@pytest.mark.parametrize(
    ("minor", "count", "status"),
    [("1.33", 4, 201), ("1.33", 5, 422), ("1.34", 5, 422), ("1.35", 16, 201), ("1.35", 17, 422)],
)
def test_taints_by_minor(make: Any, minor: str, count: int, status: int) -> None:
    taints = [{"key": name, "effect": "NoSchedule"} for name in names(count)]
    obj = make("ResourceSlice", version="v1beta1", devices=[{"name": "a", "basic": {"taints": taints}}])
    request = admission.Request(verb="create", resource="resourceslices", version="v1beta1", body=obj)
    assert admission.admit(request, minor, admission.profile(minor, all_gates=True)).status == status


def test_counters_by_minor(make: Any) -> None:
    """1.33 and 1.34 count all counters of a slice, and allow them next to devices (spec/resourceslice.md 2.1)."""
    gates = admission.profile("1.34", all_gates=True)
    sets = [{"name": name, "counters": counters(16)} for name in names(2)]
    obj = make("ResourceSlice", sharedCounters=sets)
    assert admission.validate(obj, "1.34", gates) == []
    assert [fault.path for fault in admission.validate(obj, "1.35", admission.profile("1.35", all_gates=True))] == [
        "spec"
    ]
    sets[1]["counters"] = counters(17)
    found = admission.validate(make("ResourceSlice", devices=None, sharedCounters=sets), "1.34", gates)
    assert [fault.path for fault in found] == ["spec.sharedCounters"]


def test_reserved_for_by_minor(make: Any) -> None:
    stored = make("ResourceClaim", version="v1beta1", devices={"requests": [{"name": "r", "deviceClassName": "c"}]})
    consumers = [{"resource": "pods", "name": name, "uid": name} for name in names(33)]
    body = stored | {"status": allocated(reservedFor=consumers)}
    request = admission.Request(
        verb="update",
        resource="resourceclaims",
        version="v1beta1",
        subresource="status",
        namespace="ns",
        name="x",
        body=body,
        stored=make("ResourceClaim"),
    )
    assert admission.admit(request, "1.32").status == 422
    assert admission.admit(request, "1.33").status == 200
