"""The DRAPlugin service as the kubelet sees it."""

import grpc
import pytest


async def test_prepare_and_unprepare_leave_nothing(node, driver):
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0", "gpu-1")

    reply = (await kubelet.prepare(claim))[claim.uid]

    assert reply.error == ""
    assert [(d.request_names, d.pool_name, d.device_name, d.HasField("share_id")) for d in reply.devices] == [
        (["r"], "node-a", "gpu-0", False),
        (["r"], "node-a", "gpu-1", False),
    ]
    assert node.files() == [
        f"cdi/gpu.example.com_claim_{claim.uid}.json",
        f"cdi/gpu.example.com_metadata_{claim.uid}_r.json",
        f"plugins/gpu.example.com/claims/default/c/{claim.uid}.json",
        "plugins/gpu.example.com/dra-device-metadata/default_c/r/metadata.json",
    ]
    assert await kubelet.unprepare(claim) == {claim.uid: ""}
    assert node.files() == []
    assert (driver.prepared, driver.unprepared) == ([claim.uid], [claim.uid])
