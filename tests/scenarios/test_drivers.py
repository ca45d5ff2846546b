"""Drivers that are upgraded, or stand side by side."""

import asyncio
from collections.abc import Callable
from typing import Any

from drakit import kube
from drakit.simulator.kubelet.decisions import pick

Play = Callable[..., Any]
DRIVER = "gpu.example.com"
NEW = "22222222-2222-4222-8222-222222222222"


async def test_an_upgrade_without_a_gap(scene: Play) -> None:
    async with scene() as play:
        cluster, node = play.cluster, play.cluster.node
        (first,) = cluster.drivers
        await cluster.apply(play.template("t", {"name": "gpu", "deviceClassName": DRIVER}))
        await cluster.apply(play.pod("before", "t"))
        await cluster.pod("before")
        slices = {item["metadata"]["uid"] for item in cluster.server.list("resourceslices")}
        await cluster.start_driver(node, pod_uid=NEW)
        plugins = node.kubelet.plugins
        await plugins.until(lambda state: len([entry for entry in state.instances if entry.connected]) == 2)
        await cluster.apply(play.pod("during", "t"))
        await cluster.pod("during")
        assert await first.stop() == 0
        await plugins.until(lambda state: len(state.instances) == 1)
        assert NEW in pick(plugins.state, DRIVER).endpoint  # type: ignore[union-attr]
        await cluster.apply(play.pod("after", "t"))
        await cluster.pod("after")
        assert {item["metadata"]["uid"] for item in cluster.server.list("resourceslices")} == slices
        await play.nothing_left()


async def test_two_drivers_on_one_node_serve_one_claim(scene: Play) -> None:
    async with scene() as play:
        cluster = play.cluster
        await cluster.start_driver(cluster.node, driver_name="nic.example.com")
        await cluster.node.kubelet.plugins.registered("nic.example.com")
        await cluster.until(kube.RESOURCE_SLICES, lambda slices: len(slices) == 2)
        await cluster.apply(play.device_class("nic", 'device.driver == "nic.example.com"'))
        requests = [{"name": name, "deviceClassName": cls} for name, cls in (("gpu", DRIVER), ("nic", "nic"))]
        await cluster.apply(play.template("t", *requests))
        await cluster.apply(play.pod("p", "t"))
        pod = await cluster.pod("p")
        (container,) = cluster.node.containers(pod["metadata"]["uid"])
        assert {cdi_id.partition("/")[0] for cdi_id in container.cdi_devices} == {DRIVER, "nic.example.com"}
        await play.nothing_left()


async def test_a_pod_that_was_there_before_its_driver(scene: Play) -> None:
    async with scene() as play:
        cluster = play.cluster
        (driver,) = cluster.drivers
        await driver.stop()
        await cluster.apply(play.template("t", {"name": "gpu", "deviceClassName": DRIVER}))
        await cluster.apply(play.pod("p", "t"))  # its slices are still there: it is placed and waits on the node
        events = await cluster.until(kube.EVENTS, lambda found: any(_waits(event) for event in found))
        assert any(_waits(event) for event in events)
        await driver.start()
        await cluster.pod("p")
        await play.nothing_left()


async def test_many_pods_at_once(scene: Play) -> None:
    async with scene() as play:
        await play.cluster.apply(play.template("t", {"name": "gpu", "deviceClassName": DRIVER}))
        await asyncio.gather(*(play.cluster.apply(play.pod(f"p{index}", "t")) for index in range(8)))
        pods = [await play.cluster.pod(f"p{index}") for index in range(8)]
        assert sorted(device for pod in pods for device in play.devices(pod)) == [f"gpu-{index}" for index in range(8)]
        await play.nothing_left()


def _waits(event: dict[str, Any]) -> bool:
    return event["reason"] == "FailedPrepareDynamicResources" and "is not registered" in event["message"]
