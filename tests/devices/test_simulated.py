"""The simulated gpu.example.com as the documentation shows it."""

from typing import Any

import pytest

from drakit import api
from drakit.devices.simulated import GpuConfig, SimulatedDriver
from drakit.devices.simulated.profiles import gpus
from drakit.driver import AllocatedDevice, Claim


def claim(*devices: AllocatedDevice) -> Claim:
    return Claim(
        namespace="default",
        name="c",
        uid="u",
        devices=devices,
        pod_claim_name=None,
        object=api.resource.ResourceClaim(),
        allocation="",
    )


def env(*devices: AllocatedDevice) -> list[str]:
    prepared = SimulatedDriver("node-a").prepare(claim(*devices))
    return [variable for one in prepared for variable in one.edits.env]


def test_eight_gpus_as_documented() -> None:
    devices = gpus("node-a")
    assert [device.name for device in devices] == [f"gpu-{index}" for index in range(8)]
    first = api.shape(devices[0]).decode()
    assert '"driverVersion":{"version":"1.0.0"}' in first
    assert '"model":{"string":"LATEST-GPU-MODEL"}' in first
    assert '"memory":{"value":"80Gi"}' in first
    assert [device.attributes["index"].int for device in devices] == list(range(8))


def test_uuids_are_stable_per_node_and_index_and_differ_otherwise() -> None:
    uuids = [device.attributes["uuid"].string for node in ("node-a", "node-b") for device in gpus(node)]
    assert len(set(uuids)) == 16
    assert uuids[:8] == [device.attributes["uuid"].string for device in gpus("node-a")]
    assert uuids[0] == "gpu-89760067-61ef-5868-a570-61269c174a81"


def test_containers_see_which_device_they_got() -> None:
    device = AllocatedDevice(request="r", pool="node-a", device="gpu-3")
    assert env(device) == ["GPU_DEVICE_3=gpu-3", "GPU_DEVICE_3_SHARING_STRATEGY=Exclusive"]


def test_configuration_shows() -> None:
    config = GpuConfig(sharing="TimeSlicing")
    device = AllocatedDevice(request="r", pool="node-a", device="gpu-0", configurations=(config,))
    assert env(device)[1:] == ["GPU_DEVICE_0_SHARING_STRATEGY=TimeSlicing", "GPU_DEVICE_0_TIMESLICE_INTERVAL=Default"]


def test_shares_and_consumed_capacity_show() -> None:
    device = AllocatedDevice(
        request="r",
        pool="node-a",
        device="gpu-0",
        share_id="s",
        consumed_capacity={"memory": api.Quantity.parse("10Gi")},
    )
    assert env(device)[2:] == ["GPU_DEVICE_0_SHARE_ID=s", "GPU_DEVICE_0_CONSUMED_MEMORY=10Gi"]


def test_metadata_repeats_the_attributes() -> None:
    prepared = [*SimulatedDriver("node-a").prepare(claim(AllocatedDevice(request="r", pool="p", device="gpu-1")))]
    assert prepared[0].attributes == gpus("node-a")[1].attributes


@pytest.mark.parametrize("device", ["gpu-99", "other"])
def test_a_device_that_is_gone_can_still_be_prepared(device: Any) -> None:
    assert env(AllocatedDevice(request="r", pool="p", device=device))
