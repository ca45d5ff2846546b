"""Whole pods on the fake kubelet, over real sockets, against the fake API server."""

import asyncio
from typing import Any

DRIVER = "gpu.example.com"


async def test_a_pod_is_prepared_started_ended_and_unprepared_09(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    pod = world.pod("p", "c")
    claim = world.claim("c", pod)
    world.write_cdi(claim)
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    assert plugin.calls == [("v1.NodePrepareResources", ["c"])]
    assert world.runtime.container(pod["metadata"]["uid"], "main").env["CLAIM"] == "c"
    world.server.delete("pods", "p", "default")
    await eventually(lambda: world.stored_pod("p") is None)
    assert plugin.calls[1:] == [("v1.NodeUnprepareResources", ["c"])]
    assert world.kubelet.plugins.state.claims == {}
    assert world.runtime.containers() == ()


async def test_a_pod_that_ends_by_itself_is_unprepared_then_09(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    good, bad = world.pod("good", "c", command="sleep 0.05"), world.pod("bad", command="false")
    world.write_cdi(world.claim("c", good))
    await world.start()
    await world.place(good, bad)
    await eventually(lambda: (world.phase("good"), world.phase("bad")) == ("Succeeded", "Failed"))
    assert plugin.calls == [("v1.NodePrepareResources", ["c"]), ("v1.NodeUnprepareResources", ["c"])]
    status = world.stored_pod("good")["status"]["containerStatuses"][0]
    assert status["state"]["terminated"]["exitCode"] == 0
    world.server.delete("pods", "good", "default")
    await eventually(lambda: world.stored_pod("good") is None)


async def test_a_failed_prepare_is_told_and_tried_again_10(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    answer = plugin.prepare

    async def first_fails(request: Any, context: Any) -> Any:
        if len(plugin.calls) == 1:
            return {entry.uid: {"error": "scripted claim error"} for entry in request.claims}
        return await answer(request, context)

    plugin.prepare = first_fails
    pod = world.pod("p", "c")
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    (message,) = world.events()
    assert message == (
        "Failed to prepare dynamic resources: prepare dynamic resources: "
        "NodePrepareResources failed for ResourceClaim c: scripted claim error"
    )
    assert len(plugin.calls) == 2


async def test_the_same_event_counts_up_10(world: Any, eventually: Any) -> None:
    pod = world.pod("p", "c")
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.server.list("events") and world.server.list("events")[0]["count"] >= 3)
    (event,) = world.server.list("events")
    assert (event["type"], event["source"]["component"]) == ("Warning", "kubelet")


async def test_a_claim_that_is_not_reserved_makes_no_call_33(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    pod = world.pod("p", "c")
    claim = world.claim("c")
    await world.start()
    await world.place(pod)
    await eventually(world.events)
    uid = pod["metadata"]["uid"]
    assert world.events()[0].endswith(
        f"pod p ({uid}) is not allowed to use ResourceClaim c ({claim['metadata']['uid']})"
    )
    assert plugin.calls == []
    world.server.delete("pods", "p", "default")
    await eventually(lambda: world.stored_pod("p") is None)
    assert plugin.calls == []


async def test_a_missing_claim_fails_the_sync_p18(world: Any, eventually: Any) -> None:
    pod = world.pod("p", "c")
    await world.start()
    await world.place(pod)
    await eventually(world.events)
    assert 'fetch ResourceClaim c: resourceclaims.resource.k8s.io "c" not found' in world.events()[0]


async def test_an_unregistered_driver_is_waited_for_05(world: Any, eventually: Any) -> None:
    pod = world.pod("p", "c")
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(world.events)
    assert world.events()[0].endswith(f"DRA driver {DRIVER} is not registered")
    await world.plugin()
    await eventually(lambda: world.phase("p") == "Running")


async def test_unprepare_is_tried_until_it_works_without_an_event_19(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    answer = plugin.unprepare
    busy = True

    async def sometimes(request: Any, context: Any) -> Any:
        return {entry.uid: {"error": "busy"} for entry in request.claims} if busy else await answer(request, context)

    plugin.unprepare = sometimes
    pod = world.pod("p", "c")
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    world.server.delete("pods", "p", "default")
    await eventually(lambda: len(plugin.calls) >= 4)
    assert world.phase("p") == "Running"
    busy = False
    await eventually(lambda: world.stored_pod("p") is None)
    assert world.events() == []
    assert any("NodeUnprepareResources failed for ResourceClaim c: busy" in line for line in world.kubelet.plugins.log)


async def test_a_shared_claim_is_prepared_once_and_unprepared_last_12(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    first, second = world.pod("a", "c"), world.pod("b", "c")
    world.write_cdi(world.claim("c", first, second))
    await world.start()
    await world.place(first)
    await eventually(lambda: world.phase("a") == "Running")
    await world.place(second)
    await eventually(lambda: world.phase("b") == "Running")
    world.server.delete("pods", "a", "default")
    await eventually(lambda: world.stored_pod("a") is None)
    assert plugin.calls == [("v1.NodePrepareResources", ["c"])]
    world.server.delete("pods", "b", "default")
    await eventually(lambda: world.stored_pod("b") is None)
    assert plugin.calls[1:] == [("v1.NodeUnprepareResources", ["c"])]


async def test_a_restart_leaves_running_pods_alone_07(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    pod = world.pod("p", "c")
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    await world.kubelet.restart()
    await world.kubelet.plugins.registered(DRIVER)
    assert plugin.infos == 2
    world.server.delete("pods", "p", "default")
    await eventually(lambda: world.stored_pod("p") is None)
    assert [method for method, _ in plugin.calls] == ["v1.NodePrepareResources", "v1.NodeUnprepareResources"]
    assert world.runtime.created == 1


async def test_after_a_reboot_the_claim_is_prepared_again_34(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    pod = world.pod("p", "c", restartPolicy="Always")
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    await world.kubelet.stop()
    world.runtime.crash()
    await world.kubelet.start()
    await eventually(lambda: world.runtime.created == 2)
    assert plugin.calls == [("v1.NodePrepareResources", ["c"])] * 2
    devices = world.kubelet.plugins.state.claims["default/c"].devices[DRIVER]
    assert len(devices) == 2  # appended to those of the checkpoint (P22)


async def test_a_pod_deleted_by_force_is_unprepared_14(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    pod = world.pod("p", "c")
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    world.server.delete("pods", "p", "default", grace_period_seconds=0)
    await eventually(lambda: len(plugin.calls) == 2)
    await eventually(lambda: not world.kubelet.plugins.state.claims)


async def test_deleted_by_force_while_the_kubelet_was_down_14b(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    pod = world.pod("p", "c")
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    await world.kubelet.stop()
    world.server.delete("pods", "p", "default", grace_period_seconds=0)
    await world.kubelet.start()
    await eventually(lambda: not world.runtime.sandboxes())
    assert len(plugin.calls) == 1
    await eventually(lambda: len(plugin.calls) == 2)
    await eventually(lambda: not world.kubelet.plugins.state.claims)


async def test_a_container_whose_devices_do_not_resolve_waits_without_prepare_15(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    pod = world.pod("p", "c")
    claim = world.claim("c", pod)
    await world.start()
    await world.place(pod)
    await eventually(lambda: any(event["count"] >= 2 for event in world.server.list("events")))
    uid = claim["metadata"]["uid"]
    assert world.events("Failed")[0] == (
        f"Error: failed to create containerd container: CDI device injection failed: unresolvable CDI devices {DRIVER}/class={uid}"
    )
    state = world.stored_pod("p")["status"]["containerStatuses"][0]["state"]
    assert state["waiting"]["reason"] == "CreateContainerError"
    world.write_cdi(claim)
    await eventually(lambda: world.phase("p") == "Running")
    assert len(plugin.calls) == 1


async def test_a_container_restart_makes_no_call_13(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    pod = world.pod("p", "c", restartPolicy="Always")
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    world.runtime.end(pod["metadata"]["uid"], "main", 3)
    await eventually(lambda: world.runtime.created == 2)
    await eventually(lambda: world.stored_pod("p")["status"]["containerStatuses"][0]["restartCount"] == 1)
    assert len(plugin.calls) == 1


async def test_init_containers_run_first_and_see_the_devices_21(world: Any, eventually: Any) -> None:
    await world.plugin()
    init = {"name": "init", "command": ["true"], "resources": {"claims": [{"name": "c"}]}}
    pod = world.pod("p", "c", initContainers=[init])
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    containers = {container.name: container for container in world.runtime.containers()}
    assert containers["init"].env["CLAIM"] == containers["main"].env["CLAIM"] == "c"
    assert containers["init"].exit_code == 0


async def test_slices_of_the_node_are_wiped_at_start_r31(world: Any, eventually: Any) -> None:
    world.publish("own", "n1")
    world.publish("other", "n2")
    await world.kubelet.start()
    await eventually(lambda: len(world.server.list("resourceslices")) == 1)
    assert [item["metadata"]["name"] for item in world.server.list("resourceslices")] == ["other"]


async def test_a_deletion_does_not_cancel_a_running_prepare_20(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    release = asyncio.Event()
    answer = plugin.prepare

    async def slow(request: Any, context: Any) -> Any:
        await release.wait()
        return await answer(request, context)

    plugin.prepare = slow
    pod = world.pod("p", "c")
    world.write_cdi(world.claim("c", pod))
    await world.start()
    await world.place(pod)
    await eventually(lambda: plugin.calls)
    world.server.delete("pods", "p", "default")
    release.set()
    await eventually(lambda: world.stored_pod("p") is None)
    assert plugin.cancelled == []
    assert [method for method, _ in plugin.calls] == ["v1.NodePrepareResources", "v1.NodeUnprepareResources"]
