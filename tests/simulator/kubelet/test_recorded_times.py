"""When things happen: the fake kubelet with the recorded timers, on a clock that only the test moves.

Sockets and requests stay real. Times are compared with the timer table of the recording (kubelet 1.36.2).
"""

import itertools
from typing import Any

import pytest

from drakit.simulator.clock import ManualClock
from drakit.simulator.kubelet import RECORDED

DRIVER = "gpu.example.com"


class Times:
    """A kubelet on a manual clock, and when its plugin was called."""

    def __init__(self, world: Any, clock: ManualClock) -> None:
        self.world, self.clock = world, clock
        self.calls: list[tuple[float, str]] = []
        self.plugin: Any = None

    async def plug(self) -> Any:
        self.plugin = await self.world.plugin()
        for method in ("prepare", "unprepare"):
            setattr(self.plugin, method, self._timed(method, getattr(self.plugin, method)))
        return self.plugin

    def _timed(self, method: str, script: Any) -> Any:
        async def timed(request: Any, context: Any) -> Any:
            self.calls.append((self.clock.monotonic(), method))
            with self.clock.working():
                return await script(request, context)

        return timed

    async def started(self) -> None:
        """A kubelet after its first pod syncs."""
        await self.world.kubelet.start()
        await self.clock.advance(2)

    def gaps(self, method: str) -> list[float]:
        times = [time for time, called in self.calls if called == method]
        return [later - earlier for earlier, later in itertools.pairwise(times)]

    async def pass_until(self, condition: Any, limit: float) -> float:
        """Move the clock from sleeper to sleeper until the condition holds; returns the seconds it took."""
        start = self.clock.monotonic()
        while not condition():
            assert self.clock.monotonic() - start < limit, f"nothing within {limit} s"
            await self.clock.advance(max(self.clock.next_wake or 0.0, 0.01))
        return self.clock.monotonic() - start


@pytest.fixture
async def times(manual_world: Any) -> Times:
    world, clock = manual_world
    return Times(world, clock)


async def test_prepare_is_tried_again_after_60_to_90_seconds_10m(times: Times, eventually: Any) -> None:
    plugin = await times.plug()
    plugin.prepare = times._timed("prepare", _failing)
    pod = times.world.pod("p", "c")
    times.world.claim("c", pod)
    await times.started()
    await times.world.place(pod)
    await eventually(times.world.events)
    await times.pass_until(lambda: len(times.calls) == 3, 200)
    assert all(RECORDED.sync <= gap <= RECORDED.sync * 1.5 + 0.5 for gap in times.gaps("prepare"))


async def test_unprepare_is_tried_again_soon_and_then_every_10_to_15_seconds_19(times: Times, eventually: Any) -> None:
    plugin = await times.plug()
    plugin.unprepare = times._timed("unprepare", _failing)
    pod = times.world.pod("p", "c")
    times.world.write_cdi(times.world.claim("c", pod))
    await times.started()
    await times.world.place(pod)
    await eventually(lambda: times.world.phase("p") == "Running")
    times.world.server.delete("pods", "p", "default")
    await times.pass_until(lambda: times.gaps("unprepare")[3:], 100)
    first, *later = times.gaps("unprepare")
    assert 0.15 <= first <= 1
    assert all(10 <= gap <= 15.5 for gap in later)


async def test_slices_go_30_seconds_after_the_connection_18(times: Times, eventually: Any) -> None:
    plugin = await times.plug()
    await times.started()
    times.world.publish("own", "n1")
    await eventually(lambda: times.world.kubelet.plugins.state.instances)
    await eventually(lambda: times.world.kubelet.plugins.state.instances[0].connected)
    await plugin.stop_service()
    await eventually(lambda: not times.world.kubelet.plugins.state.instances[0].connected)
    seconds = await times.pass_until(lambda: not times.world.server.list("resourceslices"), 60)
    assert 29.5 <= seconds <= 31


async def test_a_plugin_back_in_time_keeps_them_18(times: Times, eventually: Any) -> None:
    plugin = await times.plug()
    await times.started()
    times.world.publish("own", "n1")
    await eventually(lambda: any(entry.connected for entry in times.world.kubelet.plugins.state.instances))
    await plugin.stop()
    await times.clock.advance(5)
    await plugin.start()
    await times.pass_until(lambda: plugin.infos == 2, 5)
    await eventually(lambda: any(entry.connected for entry in times.world.kubelet.plugins.state.instances))
    await times.clock.advance(60)
    assert len(times.world.server.list("resourceslices")) == 1


async def test_pods_deleted_by_force_while_it_was_down_wait_a_minute_14b(times: Times, eventually: Any) -> None:
    await times.plug()
    pod = times.world.pod("p", "c")
    times.world.write_cdi(times.world.claim("c", pod))
    await times.started()
    await times.world.place(pod)
    await eventually(lambda: times.world.phase("p") == "Running")
    await times.world.kubelet.stop()
    times.world.server.delete("pods", "p", "default", grace_period_seconds=0)
    await times.world.kubelet.start()
    start = times.clock.monotonic()
    await times.pass_until(lambda: times.calls[-1][1] == "unprepare", 90)
    assert 60 <= times.calls[-1][0] - start <= 61


async def test_registration_attempts_follow_the_recorded_backoff_35(times: Times) -> None:
    plugin = await times.plug()
    plugin.info_error = "no"
    await times.world.kubelet.start()
    seen: list[float] = []

    def attempts() -> bool:
        while len(seen) < plugin.infos:
            seen.append(times.clock.monotonic())
        return len(seen) == 7

    await times.pass_until(attempts, 60)
    gaps = [later - earlier for earlier, later in itertools.pairwise(seen)]
    assert gaps == pytest.approx([1, 1, 2, 4, 8, 16], abs=1.5)


async def test_the_service_is_dialled_with_grpc_gos_backoff_32(times: Times, eventually: Any) -> None:
    plugin = await times.plug()
    await times.started()
    await eventually(lambda: any(entry.connected for entry in times.world.kubelet.plugins.state.instances))
    await plugin.stop_service()
    await eventually(lambda: not times.world.kubelet.plugins.state.instances[0].connected)
    await times.clock.advance(12)
    await plugin.serve()
    seconds = await times.pass_until(lambda: times.world.kubelet.plugins.state.instances[0].connected, 20)
    assert seconds <= 12  # at most about as long again as it was down (recorded: 3.62 s after 12 s)


async def _failing(request: Any, context: Any) -> Any:
    return {claim.uid: {"error": "scripted"} for claim in request.claims}
