"""What is left of the kubelet's contract: one test per fact, named after its id (spec/kubeletplugin.md, pains 5.3, 5.4)."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from drakit import admission, cdi
from drakit._proto import dra_v1_pb2, health_v1_pb2, health_v1_pb2_grpc
from drakit.driver import Prepared
from drakit.driver.settings import SettingsError
from drakit.simulator.apiserver import FakeAPIServer


@pytest.mark.parametrize("option", ["kubelet_plugins_directory_path", "kubelet_registrar_directory_path", "cdi_root"])
def test_r3_relative_paths_mean_nothing_to_the_kubelet(node: Any, option: Any) -> None:
    with pytest.raises(SettingsError, match="must be an absolute path, the same on the host"):
        node.settings(**{option: "relative"}).check()


async def test_r18_r27_pains_33_v1_comes_first_and_both_are_served(node: Any) -> None:
    application, kubelet = await node.start()
    assert list((await kubelet.register()).supported_versions)[:2] == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
    claim = node.claim("c", "gpu-0")
    assert (await kubelet.prepare_v1beta1(claim))[claim.uid].error == ""
    assert (await kubelet.prepare(claim))[claim.uid].error == ""
    assert application.settings.registration_socket.exists()


async def test_r12_a_restart_does_not_widen_modes(node: Any) -> None:
    application, _ = await node.start()
    await node.crash(application)
    again, _ = await node.start()
    assert again.settings.service_socket.stat().st_mode & 0o777 == 0o600


async def test_r25_a_slow_start_of_the_api_does_not_delay_registration(node: Any) -> None:
    node.server.faults.fail(503, times=None)
    _, kubelet = await node.start()
    assert (await kubelet.register()).type == "DRAPlugin"


async def test_p5_success_without_devices_is_an_entry_without_error(node: Any) -> None:
    _, kubelet = await node.start()
    claim = node.claim("c", "gpu-0")
    request = dra_v1_pb2.NodeUnprepareResourcesRequest(
        claims=[dra_v1_pb2.Claim(namespace="default", uid=claim.uid, name="c")]
    )
    reply = await kubelet.v1.NodeUnprepareResources(request)
    assert claim.uid in reply.claims
    assert not reply.claims[claim.uid].error


async def test_p10_plain_errors_have_code_unknown(node: Any, wanted: Any) -> None:
    _, kubelet = await node.start()
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await kubelet.prepare(wanted("ghost"))
    assert error.value.code() == grpc.StatusCode.UNKNOWN


async def test_p14_p16_claims_do_not_wait_for_each_other(node: Any, driver: Any, eventually: Any) -> None:
    """Upstream's helper holds one lock for all; here only calls for one claim wait for each other."""
    gate = threading.Event()
    slow, quick = node.claim("slow", "gpu-0"), node.claim("quick", "gpu-1")

    def prepare(claim: Any) -> Any:
        assert claim.uid != slow.uid or gate.wait(20)
        return []

    driver.on_prepare = prepare
    _, kubelet = await node.start(driver)
    waiting = asyncio.create_task(kubelet.prepare(slow))
    await eventually(lambda: driver.prepared)
    assert (await kubelet.prepare(quick))[quick.uid].error == ""
    assert await kubelet.unprepare(quick) == {quick.uid: ""}
    gate.set()
    assert (await waiting)[slow.uid].error == ""


async def test_p36_unprepare_without_prepare_and_neither(node: Any, driver: Any) -> None:
    """skipNodeOperations: the kubelet may leave out either call."""
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0")
    assert await kubelet.unprepare(claim) == {claim.uid: ""}
    assert (driver.prepared, driver.unprepared, node.files()) == ([], [], [])


@pytest.fixture(name="skipping")
async def _skipping(node: Any) -> AsyncIterator[Any]:
    """The node, with an API server that knows skipNodeOperations."""
    gates = admission.profile("1.37") | {"DRAOptionalNodeOperations"}
    async with FakeAPIServer(gates=gates, tls=False, authenticate=False) as server:
        node.server = server
        yield node


async def test_p36_prepare_without_unprepare(skipping: Any, driver: Any) -> None:
    """What nobody unprepares is undone when its device goes to another claim, or when the claim is gone."""
    application, kubelet = await skipping.start(driver)
    device = {"device": "gpu-0", "skipNodeOperations": ["NodeUnprepareResources"]}
    first, second = skipping.claim("a", device), skipping.claim("b", device)
    assert (await kubelet.prepare(first))[first.uid].error == ""
    assert (await kubelet.prepare(second))[second.uid].error == ""
    assert driver.unprepared == [first.uid]
    skipping.server.delete("resourceclaims", "b", "default")
    await application.reconciler.check()
    assert (driver.unprepared, skipping.files()) == ([first.uid, second.uid], [])


async def test_p36_one_attended_device_makes_the_claim_attended(skipping: Any, driver: Any) -> None:
    _, kubelet = await skipping.start(driver)
    device = {"device": "gpu-0", "skipNodeOperations": ["*"]}
    mixed, other = skipping.claim("a", device, "gpu-1"), skipping.claim("b", device)
    assert (await kubelet.prepare(mixed))[mixed.uid].error == ""
    assert "is in use by claim default/a" in (await kubelet.prepare(other))[other.uid].error
    assert driver.unprepared == []


async def test_h3_h4_one_implementation_serves_streams_that_come_and_go(node: Any, driver: Any) -> None:
    class Reporting(type(driver)):  # type: ignore[misc]
        def health(self) -> Any:
            return self.reports()

        async def reports(self) -> Any:
            from drakit.driver import HealthReport

            yield [HealthReport("gpu-0", "Healthy")]
            await asyncio.Event().wait()

    _, kubelet = await node.start(Reporting())
    stub = health_v1_pb2_grpc.DRAResourceHealthStub(kubelet._channel)  # type: ignore[no-untyped-call]
    for _ in range(3):
        stream = stub.NodeWatchResources(health_v1_pb2.NodeWatchResourcesRequest())
        assert len((await stream.read()).devices) == 1
        stream.cancel()


async def test_g6_an_exception_becomes_text_and_not_a_traceback(node: Any, driver: Any) -> None:
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0")
    driver.on_prepare = lambda _: dict[str, Any]()["missing"]
    error = (await kubelet.prepare(claim))[claim.uid].error
    assert error == "prepare of the device driver failed: KeyError: 'missing'"


async def test_g7_many_health_streams_starve_nobody(node: Any, driver: Any) -> None:
    class Silent(type(driver)):  # type: ignore[misc]
        async def health(self) -> Any:
            await asyncio.Event().wait()
            yield []

    _, kubelet = await node.start(Silent())
    stub = health_v1_pb2_grpc.DRAResourceHealthStub(kubelet._channel)  # type: ignore[no-untyped-call]
    streams = [stub.NodeWatchResources(health_v1_pb2.NodeWatchResourcesRequest()) for _ in range(50)]
    claim = node.claim("c", "gpu-0")
    assert (await kubelet.prepare(claim))[claim.uid].error == ""
    for stream in streams:
        stream.cancel()


async def test_pains_44_class_configuration_without_requests_applies_to_all(node: Any, driver: Any) -> None:
    """Documented precedence: later entries win, whichever class they came from."""
    from drakit.devices.simulated import GpuConfig

    seen: list[str] = []

    def prepare(claim: Any) -> Any:
        seen.extend(device.configuration(GpuConfig).sharing for device in claim.devices)
        return []

    driver.configurations = (GpuConfig,)
    driver.on_prepare = prepare
    _, kubelet = await node.start(driver)

    def entry(sharing: str) -> dict[str, Any]:
        parameters = {"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig", "sharing": sharing}
        return {"source": "FromClass", "opaque": {"driver": "gpu.example.com", "parameters": parameters}}

    claim = node.claim(
        "c",
        {"request": "a", "device": "gpu-0"},
        {"request": "b", "device": "gpu-1"},
        config=[entry("Exclusive"), entry("TimeSlicing")],
    )
    assert (await kubelet.prepare(claim))[claim.uid].error == ""
    assert seen == ["TimeSlicing", "TimeSlicing"]


async def test_pains_48_p20_repeated_after_another_drivers_failure(node: Any, driver: Any) -> None:
    """The other driver of the pod failed: all is prepared again, or unprepared, or both."""
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0", {"driver": "nic.example.com", "device": "nic-0"})
    first = await kubelet.prepare(claim)
    for _ in range(2):
        assert await kubelet.prepare(claim) == first
    for _ in range(2):
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
    assert await kubelet.prepare(claim) == first


async def test_pains_52_each_container_gets_what_its_requests_declare(node: Any, driver: Any) -> None:
    driver.on_prepare = lambda claim: [
        Prepared(device, cdi.ContainerEdits(env=(f"GOT_{device.request.upper()}={device.device}",)))
        for device in claim.devices
    ]
    _, kubelet = await node.start(driver)
    claim = node.claim("c", {"request": "a", "device": "gpu-0"}, {"request": "b", "device": "gpu-1"})
    devices = (await kubelet.prepare(claim))[claim.uid].devices

    def container(*requests: str) -> list[str]:
        ids = [
            identifier
            for device in devices
            if not requests or set(requests) & set(device.request_names)
            for identifier in device.cdi_device_ids
        ]
        env: list[str] = cdi.resolve([node.root / "cdi"], ids, {"process": {"env": []}})["process"]["env"]
        return env

    assert container("a") == ["GOT_A=gpu-0"]
    assert container("b") == ["GOT_B=gpu-1"]
    assert container() == ["GOT_A=gpu-0", "GOT_B=gpu-1"]


@pytest.mark.parametrize("name", ["3d.example.com", "0.example.com", "a.b-c.d"])
async def test_p31_trap_16_every_driver_name_makes_valid_cdi_ids(node: Any, name: Any) -> None:
    from drakit.devices.simulated import SimulatedDriver

    _, kubelet = await node.start(SimulatedDriver("node-a", name), driver_name=name)
    claim = node.claim("c", {"driver": name, "device": "gpu-0"})
    ids = (await kubelet.prepare(claim))[claim.uid].devices[0].cdi_device_ids
    env = cdi.resolve([node.root / "cdi"], ids, {"process": {"env": []}})["process"]["env"]
    assert "GPU_DEVICE_0=gpu-0" in env


async def test_group_only_devices_use_additional_gids(node: Any, driver: Any) -> None:
    driver.on_prepare = lambda claim: [Prepared(claim.devices[0], cdi.ContainerEdits(additional_gids=(109,)))]
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0")
    ids = (await kubelet.prepare(claim))[claim.uid].devices[0].cdi_device_ids
    assert '"cdiVersion": "0.7.0"' in (node.root / "cdi" / f"gpu.example.com_claim_{claim.uid}.json").read_text()
    resolved = cdi.resolve([node.root / "cdi"], ids, {"process": {"user": {"uid": 0, "gid": 0}}})
    assert resolved["process"]["user"]["additionalGids"] == [109]
