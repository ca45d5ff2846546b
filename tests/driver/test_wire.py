"""The kubelet's contracts on the wire: full method names (R16, R19) and bytes computed by hand (P1-P3, H1)."""

from typing import Any

import pytest

from drakit._proto import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    health_v1_pb2,
    health_v1_pb2_grpc,
    health_v1alpha1_pb2,
    health_v1alpha1_pb2_grpc,
    pluginregistration_pb2,
    pluginregistration_pb2_grpc,
)


class Recorder:
    """A channel that only notes which methods a stub calls."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    def unary_unary(self, method: Any, **_: Any) -> None:
        self.methods.append(method)

    def unary_stream(self, method: Any, **_: Any) -> None:
        self.methods.append(method)


@pytest.mark.parametrize(
    ("stub", "methods"),
    [
        (
            pluginregistration_pb2_grpc.RegistrationStub,
            ["/pluginregistration.Registration/GetInfo", "/pluginregistration.Registration/NotifyRegistrationStatus"],
        ),
        (
            dra_v1_pb2_grpc.DRAPluginStub,
            [
                "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
                "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources",
            ],
        ),
        (
            dra_v1beta1_pb2_grpc.DRAPluginStub,
            [
                "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",
                "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources",
            ],
        ),
        (health_v1_pb2_grpc.DRAResourceHealthStub, ["/v1.DRAResourceHealth/NodeWatchResources"]),
        (health_v1alpha1_pb2_grpc.DRAResourceHealthStub, ["/v1alpha1.DRAResourceHealth/NodeWatchResources"]),
    ],
)
def test_r16_r19_full_method_names(stub: Any, methods: Any) -> None:
    recorder = Recorder()
    stub(recorder)
    assert recorder.methods == methods


@pytest.mark.parametrize("messages", [dra_v1_pb2, dra_v1beta1_pb2])
def test_p1_requests(messages: Any) -> None:
    claim = messages.Claim(namespace="ns", uid="u", name="c")
    expected = bytes.fromhex("0a0a0a026e731201751a0163")
    assert messages.NodePrepareResourcesRequest(claims=[claim]).SerializeToString() == expected
    assert messages.NodeUnprepareResourcesRequest(claims=[claim]).SerializeToString() == expected


def test_p2_prepare_reply_with_share_id() -> None:
    device = dra_v1_pb2.Device(
        request_names=["r"], pool_name="p", device_name="d", cdi_device_ids=["v/c=n"], share_id="s"
    )
    entry = dra_v1_pb2.NodePrepareResourceResponse(devices=[device], error="e")
    reply = dra_v1_pb2.NodePrepareResourcesResponse(claims={"u": entry})
    wire_device = bytes.fromhex("0a01721201701a01642205762f633d6e2a0173")
    wire_entry = b"\x0a" + bytes([len(wire_device)]) + wire_device + b"\x12\x01e"
    wire_map = b"\x0a\x01u" + b"\x12" + bytes([len(wire_entry)]) + wire_entry
    assert reply.SerializeToString() == b"\x0a" + bytes([len(wire_map)]) + wire_map


def test_p2_an_empty_share_id_is_present_and_an_unset_one_is_not() -> None:
    assert dra_v1_pb2.Device(share_id="").SerializeToString() == b"\x2a\x00"
    assert dra_v1_pb2.Device().SerializeToString() == b""


def test_p2_v1beta1_knows_no_share_id_and_takes_it_for_an_unknown_field() -> None:
    device = dra_v1beta1_pb2.Device.FromString(b"\x12\x01p\x2a\x01s")
    assert device.pool_name == "p"
    assert [field.name for field in device.DESCRIPTOR.fields] == [
        "request_names",
        "pool_name",
        "device_name",
        "cdi_device_ids",
    ]


@pytest.mark.parametrize("messages", [dra_v1_pb2, dra_v1beta1_pb2])
def test_p3_unprepare_reply(messages: Any) -> None:
    entry = messages.NodeUnprepareResourceResponse(error="e")
    reply = messages.NodeUnprepareResourcesResponse(claims={"u": entry})
    assert reply.SerializeToString() == bytes.fromhex("0a080a017512030a0165")


def test_r17_plugin_info() -> None:
    info = pluginregistration_pb2.PluginInfo(type="T", name="n", endpoint="e", supported_versions=["a", "b"])
    assert info.SerializeToString() == bytes.fromhex("0a015412016e1a0165220161220162")
    status = pluginregistration_pb2.RegistrationStatus(plugin_registered=True, error="x")
    assert status.SerializeToString() == bytes.fromhex("0801120178")


@pytest.mark.parametrize("messages", [health_v1_pb2, health_v1alpha1_pb2])
def test_h1_health(messages: Any) -> None:
    device = messages.DeviceHealth(
        device=messages.DeviceIdentifier(pool_name="p", device_name="d"),
        health=messages.UNHEALTHY,
        last_updated_time=1,
        health_check_timeout_seconds=30,
        message="m",
    )
    reply = messages.NodeWatchResourcesResponse(devices=[device])
    assert reply.SerializeToString() == bytes.fromhex("0a110a060a017012016410021801201e2a016d")
    assert messages.HealthStatus.items() == [("UNKNOWN", 0), ("HEALTHY", 1), ("UNHEALTHY", 2)]
