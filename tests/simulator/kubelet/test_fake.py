"""Whole pods on the fake kubelet, over real sockets, against the fake API server."""

from typing import Any


async def test_a_pod_is_prepared_started_ended_and_unprepared_09(world: Any, eventually: Any) -> None:
    plugin = await world.plugin()
    pod = world.pod("p", "c")
    claim = world.claim("c", pod)
    world.write_cdi(claim)
    await world.kubelet.start()
    await world.place(pod)
    await eventually(lambda: world.phase("p") == "Running")
    assert plugin.calls == [("v1.NodePrepareResources", ["c"])]
    assert world.runtime.container(pod["metadata"]["uid"], "main").env["CLAIM"] == "c"
    world.server.delete("pods", "p", "default")
    await eventually(lambda: world.stored_pod("p") is None)
    assert plugin.calls[1:] == [("v1.NodeUnprepareResources", ["c"])]
    assert world.kubelet.plugins.state.claims == {}
    assert world.runtime.containers() == ()
