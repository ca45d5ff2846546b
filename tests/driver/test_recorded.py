"""What a real kubelet was seen doing, from the plugin's side: what other files of this directory do not name already.

Scenarios that only concern the kubelet (25 podresources, 36 its backoff, most of 18) have no test here.
"""

import json
from itertools import pairwise
from typing import Any

import grpc
import pytest

from drakit import cdi
from drakit.driver import Prepared
from drakit.driver.application import preflight


async def test_recorded_03_04_35_any_number_of_attempts_ends_well(node: Any) -> None:
    application, kubelet = await node.start()
    for _ in range(10):
        with pytest.raises(grpc.aio.AioRpcError):
            await kubelet.register(error="still not")
    await kubelet.register()
    assert not any("kubelet" in reason for reason in application.unready())
    exposition = application.metrics.exposition()
    assert b"drakit_registration_refusals_total 10.0" in exposition
    assert b"drakit_registered 1.0" in exposition


async def test_recorded_06_sigkill_with_stale_sockets(node: Any) -> None:
    """Both files stay; the next process has new inodes, which is what makes the kubelet register it anew."""
    killed, kubelet = await node.start()
    claim = node.claim("c", "gpu-0")
    reply = await kubelet.prepare(claim)
    paths = (killed.settings.registration_socket, killed.settings.service_socket)
    await node.crash(killed)
    stale = [path.stat().st_ctime_ns for path in paths]
    _, again = await node.start()
    assert all(path.stat().st_ctime_ns > before for path, before in zip(paths, stale, strict=True))
    assert await again.prepare(claim) == reply


async def test_recorded_09_11_all_claims_of_a_pod_come_in_one_call_and_come_again(node: Any, driver: Any) -> None:
    broken = ["c-bad"]

    def prepare(claim: Any) -> Any:
        if claim.name in broken:
            raise OSError("not yet")
        return [Prepared(device) for device in claim.devices]

    driver.on_prepare = prepare
    _, kubelet = await node.start(driver)
    good, bad = node.claim("c-good", "gpu-0"), node.claim("c-bad", "gpu-1")
    first = await kubelet.prepare(good, bad)
    assert (first[good.uid].error, bool(first[bad.uid].error)) == ("", True)
    broken.clear()
    second = await kubelet.prepare(good, bad)
    assert second[good.uid] == first[good.uid]
    assert second[bad.uid].error == ""
    assert driver.prepared.count(good.uid) == 1
    assert await kubelet.unprepare(good, bad) == {good.uid: "", bad.uid: ""}
    assert node.files() == []


async def test_recorded_16_answers_are_never_what_the_kubelet_or_a_runtime_refuses(node: Any, driver: Any) -> None:
    """Each claim once and no other, error or devices, base requests, ids that resolve."""
    _, kubelet = await node.start(driver)
    odd = [{"request": "a/b", "device": "gpu-0"}, {"request": "c", "device": "gpu-1"}, {"request": "c", "device": "g2"}]
    requests = [
        {"name": "a", "firstAvailable": [{"name": "b", "deviceClassName": "gpu", "allocationMode": "All"}]},
        {"name": "c", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
    ]
    claim, none = node.claim("c", *odd, requests=requests), node.claim("none", "gpu-3", driver="other.example.com")
    reply = await kubelet.prepare(claim, none, claim)
    assert set(reply) == {claim.uid, none.uid}
    assert reply[none.uid].error
    assert not reply[none.uid].devices
    devices = reply[claim.uid].devices
    assert [list(device.request_names) for device in devices] == [["a"], ["c"], ["c"]]
    assert all(device.pool_name and device.device_name and not device.share_id for device in devices)
    ids = [name for device in devices for name in device.cdi_device_ids]
    assert cdi.resolve([node.root / "cdi"], ids, {})["process"]["env"]


async def test_recorded_21_devices_come_in_the_order_of_the_allocation(node: Any, driver: Any) -> None:
    driver.on_prepare = lambda claim: [
        Prepared(device, cdi.ContainerEdits(env=(f"LAST={device.device}", f"GOT_{device.device[-1]}=1")))
        for device in reversed(claim.devices)
    ]
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-2", "gpu-0", "gpu-1")
    devices = (await kubelet.prepare(claim))[claim.uid].devices
    assert [device.device_name for device in devices] == ["gpu-2", "gpu-0", "gpu-1"]
    ids = [device.cdi_device_ids[0] for device in devices]
    env = cdi.resolve([node.root / "cdi"], ids, {})["process"]["env"]
    assert env == ["LAST=gpu-1", "GOT_2=1", "GOT_0=1", "GOT_1=1"]


async def test_recorded_22_metadata_is_mounted_read_only(node: Any) -> None:
    _, kubelet = await node.start()
    await kubelet.prepare(node.claim("c", "gpu-0"))
    (path,) = (node.root / "cdi").glob("*_metadata_*")
    (device,) = json.loads(path.read_text())["devices"]
    (mount,) = device["containerEdits"]["mounts"]
    assert {"ro", "bind"} <= set(mount["options"])


async def test_recorded_29_even_the_longest_reply_is_accepted(node: Any, driver: Any) -> None:
    """grpc-go takes 4 MiB; errors are texts of device drivers and may be anything."""

    def prepare(claim: Any) -> Any:
        raise OSError("first line\n" + claim.name * (1 << 20))

    driver.on_prepare = prepare
    _, kubelet = await node.start(driver)
    claims = [node.claim(f"c{index}", f"gpu-{index}") for index in range(16)]
    reply = await kubelet.prepare(*claims)
    assert all(reply[claim.uid].error.startswith("prepare of the device driver failed:") for claim in claims)
    assert sum(entry.ByteSize() for entry in reply.values()) < 1 << 17


async def test_recorded_30_r35_after_a_kubelet_restart_any_instance_may_be_called(node: Any, driver: Any) -> None:
    kubelets = [(await node.start(driver, pod_uid=uid))[1] for uid in "abc"]
    claim = node.claim("c", "gpu-0")
    replies = [await kubelet.prepare(claim) for kubelet in (*kubelets, kubelets[0])]
    assert all(one == other for one, other in pairwise(replies))
    assert driver.prepared == [claim.uid]
    assert await kubelets[0].unprepare(claim) == {claim.uid: ""}
    assert await kubelets[2].prepare(claim) == replies[0]
    assert driver.prepared == [claim.uid] * 2, "what another instance unprepared is no longer prepared"
    assert await kubelets[1].unprepare(claim) == {claim.uid: ""}
    assert node.files() == []


async def test_recorded_33_template_claims_and_extended_resources(node: Any) -> None:
    _, kubelet = await node.start()
    template = node.claim("pt-x-cvcql", "gpu-0", annotations={"resource.kubernetes.io/pod-claim-name": "x"})
    extended = node.claim("p-extended-resources-zzzzz", {"request": "container-0-request-0", "device": "gpu-1"})
    reply = await kubelet.prepare(template, extended)
    assert reply[extended.uid].devices[0].request_names == ["container-0-request-0"]
    (path,) = (node.root / "cdi").glob(f"*_metadata_{template.uid}_*")
    assert "/x/" in json.loads(path.read_text())["devices"][0]["containerEdits"]["mounts"][0]["containerPath"]
    assert await kubelet.unprepare(template, extended) == {template.uid: "", extended.uid: ""}
    assert node.files() == []


async def test_pains_56_two_claims_on_one_device_have_different_ids(node: Any) -> None:
    _, kubelet = await node.start()
    admin = {"device": "gpu-0", "adminAccess": True}
    ask = [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All", "adminAccess": True}}]
    node.server.add_namespace("admin", **{"resource.kubernetes.io/admin-access": "true"})
    claims = [node.claim("a", "gpu-0"), node.claim("b", admin, namespace="admin", requests=ask)]
    reply = await kubelet.prepare(*claims)
    ids = [set(reply[claim.uid].devices[0].cdi_device_ids) for claim in claims]
    assert not ids[0] & ids[1]


async def test_pains_59_missing_directories_are_made(node: Any) -> None:
    preflight(node.settings())
    assert (node.root / "cdi").is_dir()
    (node.root / "cdi").rmdir()
    _, kubelet = await node.start()
    claim = node.claim("c", "gpu-0")
    assert (await kubelet.prepare(claim))[claim.uid].error == ""
    assert list((node.root / "cdi").iterdir())
