"""Registration and sockets (R1-R36, recorded 01-08, 26, 32, 37; pains 29-36)."""

import asyncio
import socket
import stat
from pathlib import Path
from typing import Any

import grpc
import pytest

from drakit._proto import pluginregistration_pb2
from drakit.driver.application import StartError, preflight
from drakit.driver.settings import SettingsError
from drakit.driver.sockets import is_live


def listening(path: Path) -> socket.socket:
    """Somebody else's live socket."""
    path.parent.mkdir(parents=True, exist_ok=True)
    other = socket.socket(socket.AF_UNIX)
    other.bind(str(path))
    other.listen()
    return other


def listed(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def dead(path: Path) -> None:
    """What a killed process leaves."""
    listening(path).close()


async def test_r17_r18_get_info_says_who_we_are(node: Any, driver: Any) -> None:
    application, kubelet = await node.start(driver)
    info = await kubelet.register()
    assert (info.type, info.name, info.endpoint) == (
        "DRAPlugin",
        "gpu.example.com",
        str(application.settings.service_socket),
    )
    assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]


async def test_r21_r32_any_number_of_registrations(node: Any) -> None:
    application, kubelet = await node.start()
    assert not application.registration.registered
    for _ in range(3):
        await kubelet.register()
    assert application.registration.registered


async def test_r21_recorded_02_pains_34_refusal_is_logged_and_makes_the_driver_unready(node: Any, caplog: Any) -> None:
    application, kubelet = await node.start()
    reason = "RegisterPlugin error -- plugin validation failed"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await kubelet.register(error=reason)
    assert (refused.value.code(), refused.value.details()) == (
        grpc.StatusCode.UNKNOWN,
        f"failed registration process: {reason}",
    )
    assert f"refused by the kubelet: {reason}" in application.unready()
    await kubelet.register()
    assert not any("kubelet" in why for why in application.unready())


async def test_r14_the_service_answers_before_it_can_be_found(node: Any, driver: Any) -> None:
    application = node.application(driver)
    seen = []
    publish = application.registration_listener.placement.publish

    def watching() -> None:
        seen.append(is_live(application.settings.service_socket))
        publish()

    application.registration_listener.placement.publish = watching
    await application.start()
    assert seen == [True]


async def test_sockets_and_state_are_for_root_only(node: Any) -> None:
    application, _ = await node.start()
    for path in (application.settings.service_socket, application.settings.registration_socket):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    plugins = application.settings.plugin_directory
    assert stat.S_IMODE(plugins.stat().st_mode) == 0o750
    assert {stat.S_IMODE((plugins / name).stat().st_mode) for name in ("claims", "instances")} == {0o700}
    assert stat.S_IMODE((plugins / "state.lock").stat().st_mode) == 0o600


async def test_r23_only_the_two_sockets_are_left_in_their_directories(node: Any) -> None:
    application, _ = await node.start()
    assert listed(node.root / "reg") == ["gpu.example.com-reg.sock"]
    assert [name for name in listed(application.settings.plugin_directory) if name.startswith(".")] == []


async def test_r10_r33_stale_sockets_and_stray_files_of_our_name_are_replaced(node: Any) -> None:
    settings = node.settings()
    dead(settings.service_socket)
    settings.registration_socket.parent.mkdir(parents=True)
    settings.registration_socket.write_text("stray")
    _, kubelet = await node.start()
    assert (await kubelet.register()).name == "gpu.example.com"


async def test_r11_a_living_socket_is_never_taken(node: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("drakit.driver.application.SOCKET_WAIT_SECONDS", 0.0)
    other = listening(node.settings().registration_socket)
    application = node.application()
    with pytest.raises(
        StartError, match=r"another process serves .*: stop it first, or give each instance its --pod-uid"
    ):
        await application.start()
    assert is_live(application.settings.registration_socket)
    assert not application.settings.service_socket.exists()
    other.close()


async def test_a_socket_that_is_let_go_in_time_is_taken(node: Any) -> None:
    other = listening(node.settings().registration_socket)
    application = node.application()
    start = asyncio.create_task(application.start())
    await asyncio.sleep(0)
    other.close()
    await start
    assert application.registration_listener.placement.is_own()


async def test_r11_stopping_leaves_the_successors_sockets_alone(node: Any) -> None:
    old, _ = await node.start()
    for path in (old.settings.service_socket, old.settings.registration_socket):
        path.unlink()
    new, kubelet = await node.start()
    await node.stop(old)
    assert new.registration_listener.placement.is_own()
    assert (await kubelet.register()).name == "gpu.example.com"


async def test_r36_stopping_removes_own_sockets(node: Any) -> None:
    application, _ = await node.start(pod_uid="uid-1")
    paths = [application.settings.service_socket, application.settings.registration_socket]
    assert [path.name for path in paths] == ["dra-uid-1.sock", "gpu.example.com-uid-1-reg.sock"]
    await node.stop(application)
    assert not any(path.exists() for path in paths)


async def test_r36_pains_30_sockets_of_killed_instances_are_removed_and_foreign_ones_stay(node: Any) -> None:
    killed, _ = await node.start(pod_uid="uid-1")
    foreign = [node.root / "reg" / "gpu.example.com-uid-9-reg.sock", node.root / "reg" / "other.example.com-reg.sock"]
    for path in foreign:
        dead(path)
    await node.crash(killed)
    assert killed.settings.registration_socket.exists()

    living, _ = await node.start(pod_uid="uid-2")
    await node.start(pod_uid="uid-3")

    assert not killed.settings.registration_socket.exists()
    assert not killed.settings.service_socket.exists()
    assert is_live(living.settings.registration_socket)
    assert all(path.exists() for path in foreign)


async def test_r36_an_instance_that_saw_others_come_is_cleaned_up_after_all_the_same(node: Any) -> None:
    first, _ = await node.start(pod_uid="uid-1")
    second, _ = await node.start(pod_uid="uid-2")
    await node.crash(first)
    await node.start(pod_uid="uid-3")
    assert not first.settings.registration_socket.exists()
    assert is_live(second.settings.registration_socket)


@pytest.mark.parametrize("which", ["registration_listener", "service_listener"])
async def test_r26_pains_29_recorded_05_a_vanished_socket_comes_back(node: Any, driver: Any, which: Any) -> None:
    application, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0")
    await kubelet.prepare()
    listener = getattr(application, which)

    listener.path.unlink()
    await application.sockets.check()

    assert is_live(listener.path)
    assert not application.sockets.lost
    # Nobody who is connected notices (R29), and new connections work.
    assert (await kubelet.prepare(claim))[claim.uid].error == ""
    assert (await node.kubelet(application).prepare(claim))[claim.uid].error == ""


async def test_recorded_31_a_vanished_directory_comes_back(node: Any) -> None:
    application, kubelet = await node.start()
    application.settings.registration_socket.unlink()
    application.settings.registration_socket.parent.rmdir()
    await application.sockets.check()
    assert (await kubelet.register()).name == "gpu.example.com"
    assert stat.S_IMODE(application.settings.registration_socket.parent.stat().st_mode) == 0o750


async def test_recorded_05_nothing_is_touched_while_the_sockets_are_in_place(node: Any) -> None:
    application, _ = await node.start()
    before = application.settings.registration_socket.stat().st_ino
    for _ in range(3):
        await application.sockets.check()
    assert application.settings.registration_socket.stat().st_ino == before


async def test_a_path_that_another_process_took_is_left_to_it_until_it_dies(node: Any) -> None:
    application, _ = await node.start()
    path = application.settings.registration_socket
    path.unlink()
    other = listening(path)
    await application.sockets.check()
    assert application.sockets.lost
    assert "a socket is lost" in application.unready()
    other.close()
    await application.sockets.check()
    assert not application.sockets.lost
    assert application.registration_listener.placement.is_own()


async def test_r30_odd_authorities_are_fine(node: Any) -> None:
    application, kubelet = await node.start()
    path = application.settings.registration_socket
    for authority in ("localhost", "%2Fvar%2Flib%2Fkubelet", str(path)):
        options = (("grpc.default_authority", authority), ("grpc.use_local_subchannel_pool", 1))
        async with grpc.aio.insecure_channel(f"unix:{path}", options=options) as channel:
            call = channel.unary_unary(
                "/pluginregistration.Registration/GetInfo",
                request_serializer=pluginregistration_pb2.InfoRequest.SerializeToString,
                response_deserializer=pluginregistration_pb2.PluginInfo.FromString,
            )
            assert (await call(pluginregistration_pb2.InfoRequest())).type == "DRAPlugin"
    assert (await kubelet.register()).name == "gpu.example.com"


@pytest.mark.parametrize("extra", [0, 1])
async def test_r6_recorded_26_107_bytes_work_and_108_are_refused_before_the_start(node: Any, extra: Any) -> None:
    room = 107 - len(str(node.root / "reg")) - len("/-reg.sock") + extra
    registrar = str(node.root / "reg")
    while room > 63:  # driver names end there: lengthen the directory instead
        registrar += "/" + "x" * 20
        room -= 21
    settings = node.settings(driver_name="d" * room, kubelet_registrar_directory_path=registrar)
    assert len(str(settings.registration_socket)) == 107 + extra
    if extra:
        with pytest.raises(SettingsError, match="has 108 bytes, the kernel allows 107"):
            preflight(settings)
    else:
        preflight(settings)


async def test_pains_32_a_relocated_kubelet_root_moves_everything(node: Any) -> None:
    application, kubelet = await node.start(
        kubelet_registrar_directory_path=str(node.root / "x" / "plugins_registry"),
        kubelet_plugins_directory_path=str(node.root / "x" / "plugins"),
    )
    info = await kubelet.register()
    assert info.endpoint == str(node.root / "x" / "plugins" / "gpu.example.com" / "dra.sock")
    assert set(listed(node.root)) <= {"cdi", "x"}
    assert application.settings.plugin_directory.is_dir()


async def test_recorded_08_two_instances_answer_side_by_side(node: Any, driver: Any) -> None:
    _, old = await node.start(driver, pod_uid="uid-1")
    _, new = await node.start(driver, pod_uid="uid-2")
    claim = node.claim("c", "gpu-0")
    first = (await old.prepare(claim))[claim.uid]
    assert (await new.prepare(claim))[claim.uid] == first
    assert await new.unprepare(claim) == {claim.uid: ""}
    assert await old.unprepare(claim) == {claim.uid: ""}
    assert (len(driver.prepared), len(driver.unprepared)) == (1, 1)
    assert node.files() == []
