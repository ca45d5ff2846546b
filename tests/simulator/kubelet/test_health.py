"""Device health in the kubelet: pure rules, then streams and pod statuses (recorded 17, 28)."""

import asyncio
from typing import Any

import pytest

from drakit.simulator.kubelet import health
from drakit.simulator.kubelet.health import Health
from drakit.simulator.kubelet.state import ClaimInfo, ClaimRef, Device

DRIVER = "gpu.example.com"


class TestRules:
    @pytest.mark.parametrize(
        ("advertised", "old", "new"),
        [
            ((), "v1alpha1.DRAResourceHealth", None),
            (("v1.DRAPlugin", "v1.DRAResourceHealth"), "v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth"),
            (
                ("v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth"),
                "v1alpha1.DRAResourceHealth",
                "v1.DRAResourceHealth",
            ),
            (("v1alpha1.DRAResourceHealth",), "v1alpha1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"),
        ],
    )
    def test_which_stream_h7(self, advertised: tuple[str, ...], old: str, new: str | None) -> None:
        assert health.choose_stream(advertised, "1.36") == old
        assert health.choose_stream(advertised, "1.37") == new
        assert health.choose_stream(advertised, "1.35") is None

    def test_changes_are_health_message_or_timeout_h8(self) -> None:
        cache, changed = health.report({}, DRIVER, {"p/a": Health("Healthy"), "p/b": Health("Healthy")}, 0)
        assert changed == {"p/a", "p/b"}
        cache, changed = health.report(cache, DRIVER, {"p/a": Health("Healthy"), "p/b": Health("Unhealthy")}, 1)
        assert changed == {"p/b"}
        cache, changed = health.report(
            cache, DRIVER, {"p/a": Health("Healthy", "warm"), "p/b": Health("Unhealthy", "", 0, 5)}, 2
        )
        assert changed == {"p/a", "p/b"}

    def test_silence_is_unknown_on_read_and_on_the_next_report_h8(self) -> None:
        cache, _ = health.report(
            {}, DRIVER, {"p/a": Health("Healthy", "", 0, 5), "p/b": Health("Healthy", "", 0, -1)}, 0
        )
        assert health.read(cache, DRIVER, "p/a", 5) == ("Healthy", "")
        assert health.read(cache, DRIVER, "p/a", 5.1) == ("Unknown", "")
        assert health.read(cache, DRIVER, "p/b", 30) == ("Healthy", "")
        assert health.read(cache, DRIVER, "p/b", 30.1) == ("Unknown", "")
        cache, changed = health.report(cache, DRIVER, {}, 6)
        assert changed == {"p/a"}
        _, changed = health.report(cache, DRIVER, {}, 7)
        assert changed == frozenset()

    def test_a_stream_that_ends_clears_the_driver_h10(self) -> None:
        cache, _ = health.report({"x": {"p/a": Health("Healthy")}}, DRIVER, {"p/a": Health("Healthy")}, 0)
        cache = health.clear(cache, DRIVER)
        assert health.read(cache, DRIVER, "p/a", 0) == ("Unknown", "")
        assert health.read(cache, "x", "p/a", 0) == ("Healthy", "")

    def test_messages_are_cut_by_bytes_h2_17(self) -> None:
        assert health.truncated("a" * 1024) == "a" * 1024
        assert health.truncated("a" * 1100) == "a" * 1021 + "..."
        assert len(health.truncated("é" * 600).encode()) == 1026  # refused by the API server, as recorded

    def test_what_a_container_shows_h11(self) -> None:
        devices = (
            Device("p", "a", ("r1",), ("cdi-a", "cdi-b")),
            Device("p", "b", ("r2",)),
            Device("p", "a", ("r1",), ("cdi-a",)),
        )
        claims = {"ns/c": ClaimInfo(ClaimRef("ns", "c", "u"), ("pod",), {DRIVER: devices}, prepared=True)}
        cache, _ = health.report({}, DRIVER, {"p/a": Health("Unhealthy", "hot")}, 0)

        def shown(*entries: dict[str, str]) -> list[dict[str, Any]]:
            return health.resources({"resources": {"claims": list(entries)}}, {"x": "ns/c"}, claims, cache, 0)

        hot = {"resourceID": "cdi-a", "health": "Unhealthy", "message": "hot"}
        other = {"resourceID": f"{DRIVER}/p/b", "health": "Unknown"}
        assert shown({"name": "x"}) == [{"name": "claim:x", "resources": [hot, other]}]
        assert shown({"name": "x", "request": "r2"}) == [{"name": "claim:x/r2", "resources": [other]}]
        assert shown({"name": "unknown"}) == []


def shown(world: Any) -> list[tuple[str, str]]:
    (container,) = world.stored_pod("p")["status"]["containerStatuses"]
    return [
        (entry["health"], entry.get("message", ""))
        for claim in container.get("allocatedResourcesStatus", [])
        for entry in claim["resources"]
    ]


async def test_reports_reach_the_pods_status_17(world: Any, eventually: Any) -> None:
    plugin = await world.plugin(health=True)
    pod = world.pod("p", "c")
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    assert shown(world) == [("Unknown", "")]
    plugin.health.put_nowait({"d0": ("HEALTHY", "", 0), "unused": ("UNHEALTHY", "", 0)})
    await eventually(lambda: shown(world) == [("Healthy", "")])
    plugin.health.put_nowait({"d0": ("UNHEALTHY", "too hot", 0)})
    await eventually(lambda: shown(world) == [("Unhealthy", "too hot")])
    plugin.health.put_nowait(None)  # the stream ends: cleared, seen at the next sync, opened again
    await eventually(lambda: shown(world) == [("Unknown", "")])
    await eventually(lambda: len(plugin.streams) >= 2)
    assert set(plugin.streams) == {"v1alpha1"}


async def test_without_the_method_it_is_tried_for_ever_on_1_36_17(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        await eventually(lambda: len([line for line in kubelet.log if "code = Unimplemented" in line]) >= 3)


async def test_1_37_asks_only_what_is_advertised_h7(bench: Any, eventually: Any) -> None:
    silent, plugin = bench.plugin("silent.example.com"), bench.plugin()
    for each in (silent, plugin):
        each.health = asyncio.Queue()
        await each.start()
    await plugin.stop_registration()
    plugin.versions = ("v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
    await plugin.register()
    async with bench.kubelet(version="1.37") as kubelet:
        await kubelet.registered("silent.example.com")
        await eventually(lambda: plugin.streams == ["v1"])
        plugin.health.put_nowait({"d": ("HEALTHY", "", 0)})
        await eventually(lambda: DRIVER in kubelet.health)
    assert silent.streams == []


async def test_1_37_takes_unimplemented_for_the_end_h7(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()
    plugin.versions = ("v1.DRAPlugin", "v1.DRAResourceHealth")
    await plugin.start()
    async with bench.kubelet(version="1.37") as kubelet:
        await kubelet.registered(DRIVER)
        await eventually(lambda: kubelet.log)
        ticks = kubelet.ticks
        await eventually(lambda: kubelet.ticks > ticks + 10)
        assert len(kubelet.log) == 1
