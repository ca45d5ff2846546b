"""Device health towards the kubelet (H1-H11; recorded 17, 28; pains 70; scenarios 11-13)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit._proto import health_v1_pb2, health_v1_pb2_grpc, health_v1alpha1_pb2, health_v1alpha1_pb2_grpc
from drakit.clock import SYSTEM
from drakit.driver import HealthReport
from drakit.driver.health import HealthHub, cut
from drakit.simulator.clock import ManualClock

APIS = [
    (health_v1_pb2, health_v1_pb2_grpc.DRAResourceHealthStub),
    (health_v1alpha1_pb2, health_v1alpha1_pb2_grpc.DRAResourceHealthStub),
]


@pytest.fixture(name="reporting")
def _reporting(driver: Any) -> Any:
    """A driver that reports what the test puts into its queue."""

    class Reporting(type(driver)):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.reports: asyncio.Queue[Sequence[HealthReport]] = asyncio.Queue()

        async def health(self) -> AsyncIterator[Sequence[HealthReport]]:
            while True:
                yield await self.reports.get()

    return Reporting()


def watch(kubelet: Any, messages: Any, stub: Any) -> Any:
    return stub(kubelet._channel).NodeWatchResources(messages.NodeWatchResourcesRequest())


def states(reply: Any) -> dict[tuple[str, str], int]:
    return {(d.device.pool_name, d.device.device_name): d.health for d in reply.devices}


@pytest.mark.parametrize(("messages", "stub"), APIS)
async def test_13_h7_a_driver_without_health_says_so(node: Any, messages: Any, stub: Any) -> None:
    application, kubelet = await node.start()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await watch(kubelet, messages, stub).read()
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert refused.value.details() == "device health reporting is not supported by this driver"
    assert application.registration._info.supported_versions == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]


@pytest.mark.parametrize(("messages", "stub"), APIS)
async def test_11_reports_and_changes_arrive_in_both_versions(
    node: Any, reporting: Any, messages: Any, stub: Any
) -> None:
    application, kubelet = await node.start(reporting)
    assert list((await kubelet.register()).supported_versions)[2:] == [
        "v1.DRAResourceHealth",
        "v1alpha1.DRAResourceHealth",
    ]
    reporting.reports.put_nowait([HealthReport("gpu-0", "Healthy"), HealthReport("gpu-1", "Unhealthy", "hot")])
    stream = watch(kubelet, messages, stub)
    first = await stream.read()
    assert states(first) == {("node-a", "gpu-0"): 1, ("node-a", "gpu-1"): 2}
    assert [device.message for device in first.devices] == ["", "hot"]
    application.health.report([HealthReport("gpu-1", "Healthy", pool="node-a", timeout_seconds=60)])
    second = await stream.read()
    assert states(second) == {("node-a", "gpu-0"): 1, ("node-a", "gpu-1"): 1}
    assert [device.health_check_timeout_seconds for device in second.devices] == [0, 60]
    stream.cancel()


async def test_h5_h10_28_every_new_stream_begins_with_all_devices(node: Any, reporting: Any) -> None:
    application, kubelet = await node.start(reporting)
    application.health.report([HealthReport("gpu-0", "Healthy"), HealthReport("gpu-1", "Healthy")])
    application.health.report([HealthReport("gpu-1", "Unknown")])
    for _ in range(2):
        stream = watch(kubelet, *APIS[0])
        assert states(await stream.read()) == {("node-a", "gpu-0"): 1, ("node-a", "gpu-1"): 0}
        stream.cancel()


async def test_h6_pains_70_reports_are_repeated_before_they_grow_stale(node: Any, reporting: Any) -> None:
    clock = ManualClock()
    application, kubelet = await node.start(reporting, clock=clock)
    application.health.report([HealthReport("gpu-0", "Healthy", timeout_seconds=9)])
    stream = watch(kubelet, *APIS[0])
    first = await stream.read()
    await clock.advance(3)
    assert await stream.read() == first
    stream.cancel()


@given(st.text(max_size=1500))
def test_h2_recorded_17_messages_are_cut_on_a_character_boundary(text: str) -> None:
    shown = cut(text)
    assert len(shown.encode()) <= 1021
    assert text.startswith(shown)
    assert shown == text or len(shown.encode()) > 1021 - 4


async def test_h8_h9_states_of_a_watch_that_failed_are_not_repeated(driver: Any) -> None:
    class Failing(type(driver)):  # type: ignore[misc]
        async def health(self) -> AsyncIterator[Sequence[HealthReport]]:
            yield [HealthReport("gpu-0", "Healthy", timeout_seconds=1)]
            raise OSError("the library lost the device")

    hub = HealthHub(Failing(), "node-a", SYSTEM)
    with pytest.raises(OSError, match="lost the device"):
        await hub.run()
    stream: Any = hub.stream()
    first = asyncio.create_task(anext(stream))
    await asyncio.sleep(0.01)
    assert not first.done()
    hub.report([HealthReport("gpu-1", "Unhealthy")])
    assert [report.device for _, report, _ in await first] == ["gpu-1"]
    await stream.aclose()


async def test_an_ended_iterator_keeps_the_last_state(node: Any, driver: Any) -> None:
    class Once(type(driver)):  # type: ignore[misc]
        async def health(self) -> AsyncIterator[Sequence[HealthReport]]:
            yield [HealthReport("gpu-0", "Healthy")]

    _, kubelet = await node.start(Once())
    stream = watch(kubelet, *APIS[0])
    assert states(await stream.read()) == {("node-a", "gpu-0"): 1}
    stream.cancel()
