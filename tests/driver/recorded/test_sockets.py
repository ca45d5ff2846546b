"""Recorded scenarios of registration and connections, seen from the plugin: the number is the recording's."""

import asyncio
from typing import Any

import grpc

from drakit._proto import pluginregistration_pb2
from drakit.simulator.clock import ManualClock
from drakit.simulator.kubelet import RECORDED

NOT_REGISTERED = "not registered by the kubelet yet"


async def manual(stages: Any, node: Any) -> tuple[Any, ManualClock]:
    """A kubelet with the recorded timers, whose time stands still until the test moves it."""
    clock = ManualClock()
    stage = await stages(RECORDED, clock)
    clock.idle_when(lambda: node.server.is_idle)
    clock.idle_when(lambda: stage.kubelet.is_idle)
    return stage, clock


async def test_01_one_get_info_and_one_notify(
    stage: Any, node: Any, driver: Any, intercept: Any, eventually: Any
) -> None:
    application = node.application(driver)
    registrar = intercept(application)
    await stage.kubelet.start()
    await application.start()
    await eventually(lambda: stage.connected and application.unready() == [])
    seen = stage.kubelet.plugins.ticks
    await eventually(lambda: stage.kubelet.plugins.ticks > seen + 2)
    assert (registrar.infos, registrar.statuses) == (1, [(True, "")])
    assert stage.picked().endpoint == str(application.settings.service_socket)
    assert stage.picked().version == "v1.DRAPlugin"


async def test_03_get_info_that_fails_or_is_late_is_asked_again(
    stage: Any, node: Any, driver: Any, intercept: Any, eventually: Any
) -> None:
    application = node.application(driver)
    registrar = intercept(application)
    cancelled: list[int] = []

    async def stumble(number: int, context: Any) -> None:
        assert NOT_REGISTERED in application.unready()
        if number == 1:
            await context.abort(grpc.StatusCode.INTERNAL, "not now")
        if number == 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(number)
                raise

    registrar.on_info = stumble
    await application.start()
    await stage.kubelet.start()
    await stage.kubelet.plugins.registered(driver.name)
    await eventually(lambda: application.unready() == [])
    assert (registrar.infos, registrar.statuses, cancelled) == (3, [(True, "")], [2])


async def test_04_notify_that_fails_or_hangs_starts_over(
    stage: Any, node: Any, driver: Any, intercept: Any, eventually: Any
) -> None:
    application = node.application(driver)
    registrar = intercept(application)

    async def stumble(number: int, context: Any) -> None:
        if number == 1:
            await context.abort(grpc.StatusCode.INTERNAL, "cannot note it")
        if number == 2:
            await asyncio.Event().wait()

    registrar.on_notify = stumble
    await application.start()
    await stage.kubelet.start()
    await eventually(lambda: len(registrar.statuses) == 3 and application.unready() == [])
    assert registrar.infos == 3
    await stage.kubelet.plugins.registered(driver.name)
    assert len(stage.kubelet.plugins.state.instances) == 1
    # The service never went away: the registration in between needed no restart of anything.
    node.claim("c", "gpu-0")
    await stage.run("p", "c")
    await eventually(lambda: stage.phase("p") == "Running")


async def test_06_killed_with_stale_sockets_the_same_names_are_replaced(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    application = await stage.start(driver)
    await eventually(stage.slices)
    before = stage.slices()
    paths = (application.settings.service_socket, application.settings.registration_socket)
    inodes = [path.stat().st_ino for path in paths]
    await node.crash(application)
    assert [path.stat().st_ino for path in paths] == inodes  # both stay behind
    await eventually(lambda: not stage.connected)
    node.claim("c", "gpu-0")
    await stage.run("p", "c")
    await eventually(lambda: any("connection refused" in event for event in stage.events()))
    assert driver.prepared == []

    again = await stage.start(driver)
    assert (again.settings.service_socket, again.settings.registration_socket) == paths
    await eventually(lambda: stage.phase("p") == "Running")
    assert len(driver.prepared) == 1
    assert stage.slices() == before


async def test_07_a_kubelet_restart_changes_nothing_but_the_slices(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    application = await stage.start(driver)
    node.claim("old", "gpu-0")
    node.claim("new", "gpu-1")
    await stage.run("running", "old")
    await eventually(lambda: stage.phase("running") == "Running" and stage.slices())
    wiped = stage.slices()
    paths = (application.settings.service_socket, application.settings.registration_socket)
    inodes = [path.stat().st_ino for path in paths]

    await stage.kubelet.stop()
    await stage.run("waiting", "new")
    await stage.kubelet.start()

    await eventually(lambda: stage.phase("waiting") == "Running")
    await eventually(lambda: stage.slices() and not stage.slices() & wiped)
    await eventually(lambda: application.unready() == [])
    assert [path.stat().st_ino for path in paths] == inodes
    assert len(driver.prepared) == 2  # the running pod's claim only once
    stage.delete("running")  # from the checkpoint: this kubelet never prepared it
    await eventually(lambda: stage.phase("running") == "")
    assert [ref.name for ref in driver.refs] == ["old"]


async def test_18_slices_go_after_30_seconds_and_come_back_with_the_driver(
    stages: Any, node: Any, driver: Any, eventually: Any
) -> None:
    stage, clock = await manual(stages, node)
    application = await stage.start(driver)
    await eventually(stage.slices)

    kept = stage.slices()
    await node.stop(application)
    await clock.advance(25)
    application = await stage_back(stage, clock, driver)
    await clock.advance(60)
    assert stage.slices() == kept  # back within 30 s, and a normal stop leaves them

    await node.stop(application)
    await clock.advance(29)
    assert stage.slices() == kept
    await clock.advance(3)
    assert not stage.slices()
    application = await stage_back(stage, clock, driver)
    await eventually(lambda: stage.slices() and application.unready() == [])
    assert not stage.slices() & kept


async def stage_back(stage: Any, clock: ManualClock, driver: Any) -> Any:
    """Start again; the kubelet looks once in a second."""
    application, _ = await stage.node.start(driver)
    await clock.advance(2)
    await stage.kubelet.plugins.registered(driver.name)
    return application


async def test_30_after_kubelet_restarts_any_of_three_instances_may_be_called(
    stage: Any, node: Any, driver: Any, intercept: Any, eventually: Any
) -> None:
    applications = [node.application(driver, pod_uid=f"uid-{letter}") for letter in "abc"]
    turn = [applications[2]]

    def last(application: Any) -> Any:
        async def wait(number: int, context: Any) -> None:
            if application is turn[0]:
                await eventually(lambda: len(stage.kubelet.plugins.state.instances) == 2)

        return wait

    for application in applications:
        intercept(application).on_info = last(application)
        await application.start()
    await stage.kubelet.start()
    for index, application in enumerate(applications):  # chance in a real kubelet; here each one's turn comes
        turn[:] = [application]
        await stage.kubelet.restart()
        await eventually(lambda: len([one for one in stage.kubelet.plugins.state.instances if one.connected]) == 3)
        assert stage.picked().endpoint == str(application.settings.service_socket)
        node.claim(f"c{index}", f"gpu-{index}")
        await stage.run(f"p{index}", f"c{index}")
        await eventually(lambda name=f"p{index}": stage.phase(name) == "Running")
    for name in ("p0", "p1", "p2"):  # by the last one, whoever prepared them
        stage.delete(name)
        await eventually(lambda name=name: stage.phase(name) == "")
    assert (len(driver.prepared), len(driver.unprepared)) == (3, 3)
    assert node.files() == []


async def test_32_a_service_socket_that_is_made_again_is_found_without_a_new_registration(
    stage: Any, node: Any, driver: Any, intercept: Any, eventually: Any
) -> None:
    application = node.application(driver)
    registrar = intercept(application)
    await application.start()
    await stage.kubelet.start()
    await stage.kubelet.plugins.registered(driver.name)
    application.settings.service_socket.unlink()
    await application.sockets.check()
    node.claim("a", "gpu-0")
    await stage.run("a", "a")  # over the old connection: nobody noticed
    await eventually(lambda: stage.phase("a") == "Running")

    await application.service_listener._servers.pop(0).stop(None)  # now it is lost
    node.claim("b", "gpu-1")
    await stage.run("b", "b")
    await eventually(lambda: stage.phase("b") == "Running")
    assert registrar.infos == 1
    assert not application.ended.done()


async def test_35_a_driver_that_is_refused_for_long_serves_on_and_recovers(
    stages: Any, node: Any, driver: Any, intercept: Any, eventually: Any
) -> None:
    stage, clock = await manual(stages, node)
    application = node.application(driver)
    registrar = intercept(application)
    versions = ["v9.DRAPlugin"]

    async def ahead(number: int, context: Any) -> Any:
        endpoint = str(application.settings.service_socket)
        info = pluginregistration_pb2.PluginInfo(type="DRAPlugin", name=driver.name, endpoint=endpoint)
        info.supported_versions.extend(versions)
        return info

    registrar.on_info = ahead
    await application.start()
    await stage.kubelet.start()
    await clock.advance(400)
    assert registrar.infos == 11  # after 0 1 3 6 11 19 35 67 131 253 375 s
    assert all(not registered and "none of services supported" in error for registered, error in registrar.statuses)
    assert any("refused by the kubelet: RegisterPlugin error" in reason for reason in application.unready())
    claim = node.claim("c", "gpu-0")
    assert (await node.kubelet(application).prepare(claim))[claim.uid].error == ""

    versions[:] = ["v1.DRAPlugin"]
    await clock.advance(122)
    await stage.kubelet.plugins.registered(driver.name)
    await eventually(lambda: application.unready() == [])
    events = [event for event in node.server.list("events") if event["reason"] == "RegistrationRefused"]
    assert len(events) == 1
