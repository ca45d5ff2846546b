"""The plugin side over real sockets, against scripted plugins and the recorded behaviour."""

import asyncio
import socket
from typing import Any

import pytest

from drakit.simulator.kubelet import PluginError
from drakit.simulator.kubelet.decisions import pick
from drakit.simulator.kubelet.state import Claim, ClaimRef

DRIVER = "gpu.example.com"


def claim(name: str = "c", *, pod: str = "p1", drivers: tuple[str, ...] = (DRIVER,)) -> Claim:
    return Claim(ref=ClaimRef("default", name, f"uid-{name}"), drivers=drivers, reserved_for=(pod,))


async def test_a_plugin_is_registered_prepared_and_unprepared_01_09(bench: Any) -> None:
    plugin = bench.plugin()
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        await kubelet.prepare("p1", "pod", (claim(),))
        assert kubelet.claims_in_use() == {DRIVER: 1}
        await kubelet.unprepare("p1", ("default/c",))
        assert kubelet.claims_in_use() == {}
    assert plugin.infos == 1
    assert plugin.statuses == [(True, "")]
    assert plugin.calls == [("v1.NodePrepareResources", ["c"]), ("v1.NodeUnprepareResources", ["c"])]


@pytest.mark.parametrize(
    ("versions", "called"),
    [(("v1beta1.DRAPlugin", "v1.DRAPlugin"), "v1beta1"), (("v1.DRAResourceHealth", "v1.DRAPlugin"), "v1")],
)
async def test_the_plugins_first_known_version_is_spoken_r27_02(
    bench: Any, versions: tuple[str, ...], called: str
) -> None:
    plugin = bench.plugin()
    plugin.versions = versions
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        await kubelet.prepare("p1", "pod", (claim(),))
    assert plugin.calls == [(f"{called}.NodePrepareResources", ["c"])]


async def test_an_old_kubelet_speaks_v1beta1_only(bench: Any, eventually: Any) -> None:
    old, new = bench.plugin("old.example.com"), bench.plugin("new.example.com")
    new.versions = ("v1.DRAPlugin",)
    await old.start()
    await new.start()
    async with bench.kubelet(version="1.33") as kubelet:
        await kubelet.registered("old.example.com")
        await kubelet.prepare("p1", "pod", (claim(drivers=("old.example.com",)),))
        await eventually(lambda: new.statuses)
    assert old.calls == [("v1beta1.NodePrepareResources", ["c"])]
    assert new.statuses[0][1].endswith('are supported by the kubelet (["v1beta1.DRAPlugin"])')


async def test_share_ids_exist_in_v1_only_23(bench: Any) -> None:
    async def with_share(request: Any, context: Any) -> Any:
        return {
            entry.uid: {"devices": [{"pool_name": "n", "device_name": "d", "share_id": "s"}]}
            for entry in request.claims
        }

    for driver, version in (("a.example.com", "v1.DRAPlugin"), ("b.example.com", "v1beta1.DRAPlugin")):
        plugin = bench.plugin(driver)
        plugin.versions, plugin.prepare = (version,), with_share
        await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered("a.example.com")
        await kubelet.registered("b.example.com")
        await kubelet.prepare("p1", "pod", (claim(drivers=("a.example.com", "b.example.com")),))
        devices = kubelet.state.claims["default/c"].devices
    assert {driver: entries[0].share_id for driver, entries in devices.items()} == {
        "a.example.com": "s",
        "b.example.com": None,
    }


async def test_a_refused_plugin_is_told_why_and_asked_again_02(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()
    plugin.versions = ("v1alpha4.Node",)
    await plugin.start()
    async with bench.kubelet():
        await eventually(lambda: len(plugin.statuses) >= 3)
    assert all(not registered and "none of services supported" in error for registered, error in plugin.statuses)


async def test_get_info_errors_bring_no_notify_03(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()
    plugin.info_error = "not yet"
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await eventually(lambda: plugin.infos >= 3)
        assert plugin.statuses == []
        plugin.info_error = None
        await kubelet.registered(DRIVER)


async def test_a_failed_notify_starts_over_04(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()
    plugin.notify_error = "no"
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await eventually(lambda: len(plugin.statuses) >= 3)
        plugin.notify_error = None
        await kubelet.until(lambda state: any(socket.registered for socket in state.sockets.values()))
    assert plugin.infos >= 3


async def test_dot_names_and_files_are_ignored_sub_directories_are_not_01_r23(bench: Any, eventually: Any) -> None:
    (bench.registry / "note-reg.sock").write_text("no socket")
    hidden, deep = bench.plugin("hidden.example.com"), bench.plugin("deep.example.com")
    hidden.registration = bench.registry / ".hidden-reg.sock"
    (bench.registry / "sub").mkdir()
    deep.registration = bench.registry / "sub" / "deep-reg.sock"
    await hidden.start()
    await deep.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered("deep.example.com")
    assert hidden.infos == 0


async def test_a_service_that_comes_after_the_registration_01_r29(bench: Any) -> None:
    plugin = bench.plugin()
    await plugin.register()
    async with bench.kubelet() as kubelet:
        await kubelet.until(lambda state: any(socket.registered for socket in state.sockets.values()))
        with pytest.raises(PluginError) as raised:
            await kubelet.prepare("p1", "pod", (claim(),))
        assert str(raised.value) == (
            "NodePrepareResources: rpc error: code = Unavailable desc = connection error: desc = "
            f'"transport: Error while dialing: dial unix {plugin.service}: connect: no such file or directory"'
        )
        await plugin.serve()
        await kubelet.registered(DRIVER)
        await kubelet.prepare("p1", "pod", (claim(),))
    assert plugin.infos == 1


async def test_a_restarted_service_is_found_again_without_registration_05_32(bench: Any) -> None:
    plugin = bench.plugin()
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        await plugin.stop_service()
        await kubelet.until(lambda state: not pick(state, DRIVER).connected)  # type: ignore[union-attr]
        await plugin.serve()
        await kubelet.registered(DRIVER)
        await kubelet.prepare("p1", "pod", (claim(),))
    assert plugin.infos == 1
    assert bench.wiped == []


async def test_a_recreated_registration_socket_is_asked_again_05_r26(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        await plugin.stop_registration()
        await plugin.register()
        await eventually(lambda: plugin.infos == 2)
        await kubelet.registered(DRIVER)


async def test_slices_go_after_the_last_connection_and_only_once_18(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        await plugin.stop()
        await eventually(lambda: bench.wiped)
        assert pick(kubelet.state, DRIVER) is None
    assert bench.wiped == [DRIVER]


async def test_of_two_instances_the_last_registered_is_called_08_r28(bench: Any, eventually: Any) -> None:
    first, second = bench.plugin(name="a"), bench.plugin(name="b")
    await first.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        await second.start()
        await kubelet.until(lambda state: len([i for i in state.instances if i.connected]) == 2)
        await kubelet.prepare("p1", "pod", (claim(),))
        await second.stop()
        await kubelet.until(lambda state: len(state.instances) == 1)
        await kubelet.unprepare("p1", ("default/c",))
    assert first.calls == [("v1.NodeUnprepareResources", ["c"])]
    assert second.calls == [("v1.NodePrepareResources", ["c"])]
    assert bench.wiped == []


async def test_deadlines_reach_the_plugin_as_a_cancellation_10(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()

    async def hang(request: Any, context: Any) -> Any:
        await asyncio.Event().wait()

    plugin.prepare = hang
    await plugin.start()
    async with bench.kubelet(rpc=0.2) as kubelet:
        await kubelet.registered(DRIVER)
        with pytest.raises(PluginError, match="code = DeadlineExceeded desc = context deadline exceeded"):
            await kubelet.prepare("p1", "pod", (claim(),))
        await eventually(lambda: plugin.cancelled == ["NodePrepareResources"])


async def test_deregistration_cancels_calls_in_flight_37(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()

    async def hang(request: Any, context: Any) -> Any:
        await asyncio.Event().wait()

    plugin.prepare = hang
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        call = asyncio.create_task(kubelet.prepare("p1", "pod", (claim(),)))
        await eventually(lambda: plugin.calls)
        await plugin.stop_registration()
        with pytest.raises(PluginError, match="code = Canceled desc = grpc: the client connection is closing"):
            await call
        await eventually(lambda: plugin.cancelled)


async def test_a_stopped_kubelet_cancels_calls_and_finds_its_claims_again_07b(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()
    await plugin.start()
    release = asyncio.Event()
    answer = plugin.prepare

    async def hang(request: Any, context: Any) -> Any:
        await release.wait()
        return await answer(request, context)

    plugin.prepare = hang
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        call = asyncio.create_task(kubelet.prepare("p1", "pod", (claim(),)))
        await eventually(lambda: plugin.calls)
        call.cancel()
    await eventually(lambda: plugin.cancelled)
    async with bench.kubelet() as kubelet:
        info = kubelet.state.claims["default/c"]
        assert (info.devices, info.prepared, info.pods) == ({DRIVER: ()}, False, ("p1",))
        await kubelet.registered(DRIVER)
        await kubelet.unprepare("p1", ("default/c",))
    assert plugin.calls[-1] == ("v1.NodeUnprepareResources", ["c"])


async def test_one_rpc_per_driver_in_the_pods_order_p19_11(bench: Any) -> None:
    a, b = bench.plugin("a.example.com"), bench.plugin("b.example.com")
    await a.start()
    await b.start()
    both = ("a.example.com", "b.example.com")
    async with bench.kubelet() as kubelet:
        await kubelet.registered(both[0])
        await kubelet.registered(both[1])
        await kubelet.prepare("p1", "pod", (claim("z", drivers=both), claim("y", drivers=both[:1])))
    assert a.calls == [("v1.NodePrepareResources", ["z", "y"])]
    assert b.calls == [("v1.NodePrepareResources", ["z"])]


async def test_after_a_failure_all_drivers_are_called_again_p20_11(bench: Any) -> None:
    a, b = bench.plugin("a.example.com"), bench.plugin("b.example.com")
    failing = True
    answer = b.prepare

    async def sometimes(request: Any, context: Any) -> Any:
        return {entry.uid: {"error": "no"} for entry in request.claims} if failing else await answer(request, context)

    b.prepare = sometimes
    await a.start()
    await b.start()
    wanted = claim(drivers=("a.example.com", "b.example.com"))
    async with bench.kubelet() as kubelet:
        await kubelet.registered("a.example.com")
        await kubelet.registered("b.example.com")
        while not a.calls:  # the order is random: until the good driver came first
            with pytest.raises(PluginError, match="NodePrepareResources failed for ResourceClaim c: no"):
                await kubelet.prepare("p1", "pod", (wanted,))
        failing = False
        await kubelet.prepare("p1", "pod", (wanted,))
        devices = kubelet.state.claims["default/c"].devices
    assert len(devices["a.example.com"]) == len(a.calls) == 2
    assert len(devices["b.example.com"]) == 1


async def test_a_registry_removed_while_the_kubelet_runs_is_lost_31_r23(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        await plugin.stop_registration()
        bench.registry.rmdir()
        await kubelet.until(lambda state: not state.instances)
        bench.registry.mkdir()
        await plugin.register()
        ticks = kubelet.ticks
        await eventually(lambda: kubelet.ticks > ticks + 5)
        assert plugin.infos == 1
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)


async def test_two_calls_for_one_claim_may_run_at_once_12(bench: Any, eventually: Any) -> None:
    plugin = bench.plugin()
    release = asyncio.Event()
    answer = plugin.prepare

    async def slow(request: Any, context: Any) -> Any:
        await release.wait()
        return await answer(request, context)

    plugin.prepare = slow
    await plugin.start()
    async with bench.kubelet() as kubelet:
        await kubelet.registered(DRIVER)
        calls = [asyncio.create_task(kubelet.prepare(pod, pod, (claim(pod=pod),))) for pod in ("p1", "p2")]
        await eventually(lambda: len(plugin.calls) == 2)
        release.set()
        await asyncio.gather(*calls)
        info = kubelet.state.claims["default/c"]
    assert len(info.devices[DRIVER]) == 2
    assert info.pods == ("p1", "p2")


async def test_a_stale_socket_holds_up_only_itself_07(bench: Any) -> None:
    stale, plugin = bench.plugin("stale.example.com"), bench.plugin()
    with socket.socket(socket.AF_UNIX) as dead:  # closed without being unlinked, as after SIGKILL
        dead.bind(str(stale.registration))
    await plugin.start()
    async with bench.kubelet(registration_dial=5.0) as kubelet, asyncio.timeout(2):
        await kubelet.registered(DRIVER)
        assert kubelet.state.sockets[str(stale.registration)].busy
        stale.registration.unlink()
        await stale.start()
        await kubelet.registered("stale.example.com")
