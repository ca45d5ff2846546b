"""Values to JSON and back, in every version."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit import api
from drakit.api import Quantity, resource


def body(obj: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in {"kind", "apiVersion"}}


def test_recorded_objects_survive_the_trip(recorded: list[dict[str, Any]]) -> None:
    for obj in recorded:
        version = obj["apiVersion"].rpartition("/")[2]
        value = api.decode(obj)
        assert api.decode(msgspec.json.encode(obj)) == value
        again = api.encode(value, version)
        assert again["apiVersion"] == obj["apiVersion"]
        assert api.decode(again) == value
        assert tidy(again) == tidy(obj)


def tidy(obj: Any) -> Any:
    """Without what structs leave out on purpose: empty members and null times."""
    if isinstance(obj, dict):
        cleaned = {key: tidy(value) for key, value in obj.items()}
        return {key: value for key, value in cleaned.items() if value not in ({}, [], None, "", 0) or value is False}
    if isinstance(obj, list):
        return [tidy(item) for item in obj]
    return obj


def slice_of(device: resource.Device, **fields: Any) -> resource.ResourceSlice:
    pool = resource.ResourcePool(name="p", generation=1, resource_slice_count=1)
    return resource.ResourceSlice(
        spec=resource.ResourceSliceSpec(driver="d.example.com", pool=pool, devices=(device,), **fields)
    )


def test_v1beta1_nests_devices_and_flattens_requests() -> None:
    value = slice_of(resource.Device(name="a", attributes={"x": resource.DeviceAttribute(int=1)}))
    encoded = api.encode(value, "v1beta1")
    assert encoded["spec"]["devices"] == [{"name": "a", "basic": {"attributes": {"x": {"int": 1}}}}]
    request = resource.DeviceRequest(name="r", exactly=resource.ExactDeviceRequest(device_class_name="c", count=2))
    claim = resource.ResourceClaim(spec=resource.ResourceClaimSpec(devices=resource.DeviceClaim(requests=(request,))))
    flat = api.encode(claim, "v1beta1")["spec"]["devices"]["requests"]
    assert flat == [{"name": "r", "deviceClassName": "c", "count": 2}]
    assert api.decode(api.encode(claim, "v1beta1")) == claim
    template = resource.ResourceClaimTemplate(spec=resource.ResourceClaimTemplateSpec(spec=claim.spec))
    assert api.encode(template, "v1beta1")["spec"]["spec"]["devices"]["requests"] == flat
    assert api.decode(api.encode(template, "v1beta1")) == template


def test_zero_values_of_v1beta1_mean_absent() -> None:
    obj = api.encode(slice_of(resource.Device(name="a")), "v1beta1")
    obj["spec"] |= {"nodeName": "", "allNodes": False}
    assert api.decode(obj).spec.node_name is None
    assert api.decode(obj).spec.all_nodes is None


def test_nulls_are_absent() -> None:
    obj = api.encode(slice_of(resource.Device(name="a")))
    obj["metadata"] = {"name": "s", "creationTimestamp": None}
    obj["spec"] |= {"sharedCounters": None, "nodeSelector": None}
    obj["spec"]["devices"][0] |= {
        "attributes": None,
        "taints": None,
        "capacity": {"c": {"value": "1", "requestPolicy": None}},
    }
    value = api.decode(obj)
    assert value.spec.devices[0].taints == ()
    assert value.spec.devices[0].capacity["c"].value == Quantity.parse("1")


def test_parameters_keep_their_bytes() -> None:
    parameters = b'{"b" :1,  "a":[1.50,null]}'
    for version, request in (("v1", b""), ("v1beta1", b"")):
        data = (
            b'{"apiVersion":"resource.k8s.io/%s","kind":"ResourceClaim","metadata":{"name":"c"},"spec":{"devices":'
            b'{"config":[{"opaque":{"driver":"d","parameters":%s}}]%s}}}' % (version.encode(), parameters, request)
        )
        config = api.decode(data).spec.devices.config[0]
        assert config.opaque is not None
        assert bytes(config.opaque.parameters) == parameters


def test_lists(recorded: list[dict[str, Any]]) -> None:
    slices = [obj for obj in recorded if obj["kind"] == "ResourceSlice" and obj["apiVersion"].endswith("/v1beta1")][:5]
    answer = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "metadata": {"resourceVersion": "7", "continue": "x"},
        "items": [body(obj) for obj in slices],
    }
    metadata, items = api.decode_list(json.dumps(answer).encode(), "ResourceSlice")
    assert (metadata.resource_version, metadata.continue_) == ("7", "x")
    assert items == tuple(api.decode(obj) for obj in slices)
    assert api.decode_list(b'{"items":null}', "ResourceSlice")[1] == ()


def test_shape_is_content_only() -> None:
    first = resource.Device(
        name="a", attributes={"x": resource.DeviceAttribute(int=1), "y": resource.DeviceAttribute(bool=False)}
    )
    second = resource.Device(
        name="a", attributes={"y": resource.DeviceAttribute(bool=False), "x": resource.DeviceAttribute(int=1)}
    )
    assert api.shape(first) == api.shape(second)
    assert api.shape(first) != api.shape(resource.Device(name="b"))


def test_losses_name_what_a_version_cannot_carry() -> None:
    device = resource.Device(
        name="a",
        attributes={"x": resource.DeviceAttribute(ints=(1,))},
        taints=(resource.DeviceTaint(key="k", effect="NoSchedule"),),
    )
    value = slice_of(device, node_name="", skip_node_operations=("*",))
    assert api.losses(value, "v1", "1.37") == ()
    assert api.losses(value, "v1", "1.36") == ("spec.skipNodeOperations",)
    assert api.losses(value, "v1", "1.33") == ("",)
    assert set(api.losses(value, "v1beta1", "1.32")) == {
        "spec.skipNodeOperations",
        "spec.devices[0].taints",
        "spec.devices[0].attributes[x].ints",
        "spec.nodeName",
    }
    taint = resource.DeviceTaint(key="k", effect="NoSchedule")
    rule = resource.DeviceTaintRule(spec=resource.DeviceTaintRuleSpec(taint=taint))
    assert api.losses(rule, "v1beta1") == ("",)
    assert api.encode(rule, "v1alpha3")["apiVersion"] == "resource.k8s.io/v1alpha3"
    with pytest.raises(ValueError, match="v1beta1 has no DeviceTaintRule"):
        api.encode(rule, "v1beta1")


def test_an_empty_request_is_lost_in_v1beta1() -> None:
    request = resource.DeviceRequest(name="r", exactly=resource.ExactDeviceRequest(device_class_name=""))
    spec = resource.ResourceClaimSpec(devices=resource.DeviceClaim(requests=(request,)))
    assert api.losses(resource.ResourceClaim(spec=spec), "v1beta1") == ("spec.devices.requests[0].exactly",)
    template = resource.ResourceClaimTemplate(spec=resource.ResourceClaimTemplateSpec(spec=spec))
    assert api.losses(template, "v1beta1") == ("spec.spec.devices.requests[0].exactly",)


def test_core_kinds_are_read() -> None:
    pod = api.decode(
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u"},"spec":{"containers":[{"name":"c","resources":'
        b'{"claims":[{"name":"gpu","request":"r"}],"requests":{"cpu":"500m"}}}],"resourceClaims":[{"name":"gpu",'
        b'"resourceClaimTemplateName":"t"}]},"status":{"resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"p-gpu-x"}]}}'
    )
    assert pod.spec.containers[0].resources.claims[0].request == "r"
    assert pod.status.resource_claim_statuses[0].resource_claim_name == "p-gpu-x"
    assert api.encode(pod)["apiVersion"] == "v1"


def test_core_kinds_may_have_nulls() -> None:
    node = api.decode(
        b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","labels":null},"spec":{"taints":null},"status":'
        b'{"capacity":{"cpu":"2"},"conditions":[null]}}'
    )
    assert node.metadata.name == "n"
    assert node.status.capacity["cpu"] == Quantity.parse("2")
    assert node.status.conditions == ()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"nonsense", "malformed"),
        (b'{"kind":"Thing"}', "unknown kind 'Thing'"),
        (b'{"apiVersion":"resource.k8s.io/v1beta1","kind":"DeviceTaintRule"}', "has no kind"),
        (b'{"apiVersion":"v1","kind":"Pod","spec":3}', "Expected `object`"),
        (b'{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","spec":[]}', "Expected `object`"),
        (b'{"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceClaim","spec":{"devices":3}}', "Expected `object`"),
    ],
)
def test_refusals(data: bytes, complaint: str) -> None:
    with pytest.raises((ValueError, msgspec.DecodeError), match=complaint):
        api.decode(data)


def _slice_json(name: str, devices: str) -> bytes:
    pool = '{"name":"p","generation":1,"resourceSliceCount":1}'
    spec = f'{{"driver":"d.example.com","pool":{pool},"nodeName":"n","devices":{devices}}}'
    return f'{{"metadata":{{"name":"{name}"}},"spec":{spec}}}'.encode()


def test_slices_with_the_same_devices_share_them() -> None:
    text = json.dumps([{"name": f"gpu-{index}", "attributes": {"x": {"int": index}}} for index in range(8)])
    first = api.decode(_slice_json("a", text), "ResourceSlice")
    second = api.decode(_slice_json("b", text), "ResourceSlice", "v1beta2")
    assert (first.metadata.name, second.metadata.name) == ("a", "b")
    assert first.spec.devices is second.spec.devices
    assert type(first.spec) is resource.ResourceSliceSpec
    assert first.spec.devices == tuple(
        resource.Device(name=f"gpu-{index}", attributes={"x": resource.DeviceAttribute(int=index)})
        for index in range(8)
    )


def test_long_lists_of_devices_are_not_kept() -> None:
    text = json.dumps([{"name": f"gpu-{index:05}", "attributes": {"x": {"int": index}}} for index in range(1000)])
    first, second = (api.decode(_slice_json(name, text), "ResourceSlice") for name in "ab")
    assert first.spec.devices is not second.spec.devices
    assert first.spec == second.spec


@pytest.mark.parametrize(
    ("devices", "complaint"),
    [
        ('[{"name":"a"},{"name":3}]', r"Expected `str`, got `int` - at `\$.spec.devices\[1\].name`"),
        ('[{"name":"a","capacity":{"m":{"value":"1x"}}}]', r"at `\$.spec.devices\[0\].capacity"),
        ('[{"name":"a"}', "malformed"),
    ],
)
def test_what_is_wrong_with_devices_is_said_with_its_place(devices: str, complaint: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=complaint):
        api.decode(_slice_json("a", devices), "ResourceSlice")


def test_null_devices_are_none() -> None:
    assert api.decode(_slice_json("a", "null"), "ResourceSlice").spec.devices == ()
    device = api.decode(_slice_json("a", '[{"name":"a","attributes":null}]'), "ResourceSlice").spec.devices[0]
    assert device == resource.Device(name="a")


NAMES = st.text("abc", min_size=1, max_size=3)
QUANTITIES = st.sampled_from(["1", "1Gi", "1500m", "0"]).map(Quantity.parse)
ATTRIBUTES = st.one_of(
    st.builds(resource.DeviceAttribute, int=st.integers(-5, 5)),
    st.builds(resource.DeviceAttribute, bool=st.booleans()),
    st.builds(resource.DeviceAttribute, strings=st.lists(st.text(max_size=3), min_size=1, max_size=3).map(tuple)),
)
DEVICES = st.builds(
    resource.Device,
    name=NAMES,
    attributes=st.dictionaries(NAMES, ATTRIBUTES, max_size=3),
    capacity=st.dictionaries(NAMES, st.builds(resource.DeviceCapacity, value=QUANTITIES), max_size=2),
    taints=st.lists(
        st.builds(resource.DeviceTaint, key=NAMES, effect=NAMES, value=st.text(max_size=2)), max_size=2
    ).map(tuple),
    node_name=st.none() | NAMES,
    allow_multiple_allocations=st.none() | st.booleans(),
)


@given(DEVICES, st.sampled_from(["v1", "v1beta2", "v1beta1"]))
def test_slices_round_trip_in_every_version(device: resource.Device, version: str) -> None:
    value = slice_of(device, node_name="n")
    encoded = api.encode(value, version)
    assert api.decode(encoded) == value
    assert api.decode(msgspec.json.encode(encoded)) == value
    assert api.shape(api.decode(encoded)) == api.shape(value)
