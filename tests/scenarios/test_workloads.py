"""Workloads as the documentation shows them, on whole clusters with the real driver."""

from collections.abc import Callable
from typing import Any

import pytest

from drakit import kube

Play = Callable[..., Any]
DRIVER = "gpu.example.com"


@pytest.mark.parametrize(
    ("kubernetes", "version"), [("1.32", "v1beta1"), ("1.33", "v1beta2"), ("1.34", "v1"), ("1.37", "v1beta1")]
)
async def test_every_served_version(scene: Play, kubernetes: str, version: str) -> None:
    async with scene(kubernetes=kubernetes, version=version) as play:
        await play.cluster.apply(play.template("t", {"name": "gpu", "deviceClassName": DRIVER, "count": 2}))
        await play.cluster.apply(play.pod("p", "t"))
        assert play.devices(await play.cluster.pod("p")) == ["gpu-0", "gpu-1"]
        await play.nothing_left()


async def test_containers_see_only_their_requests(scene: Play) -> None:
    async with scene() as play:
        requests = [{"name": name, "deviceClassName": DRIVER} for name in ("a", "b")]
        await play.cluster.apply(play.template("t", *requests))
        containers = [
            {"name": name, "resources": {"claims": [{"name": "gpus", "request": name}]}} for name in ("a", "b")
        ]
        whole = {"name": "whole", "resources": {"claims": [{"name": "gpus"}]}}
        await play.cluster.apply(play.pod("p", "t", *containers, whole, {"name": "none"}))
        pod = await play.cluster.pod("p")
        seen = {name: play.devices(pod, name) for name in ("a", "b", "whole", "none")}
        assert len(seen["a"]) == len(seen["b"]) == 1
        assert seen["a"] != seen["b"]
        assert seen["whole"] == sorted(seen["a"] + seen["b"])
        assert seen["none"] == []
        await play.nothing_left()


async def test_the_first_alternative_that_fits(scene: Play) -> None:
    async with scene() as play:
        alternatives = [
            {"name": "many", "deviceClassName": DRIVER, "count": 9},
            {"name": "some", "deviceClassName": DRIVER, "count": 3},
        ]
        await play.cluster.apply(play.template("t", {"name": "gpus", "firstAvailable": alternatives}))
        await play.cluster.apply(play.pod("p", "t"))
        assert len(play.devices(await play.cluster.pod("p"))) == 3
        (claim,) = play.cluster.server.list("resourceclaims")
        results = claim["status"]["allocation"]["devices"]["results"]
        assert {result["request"] for result in results} == {"gpus/some"}
        await play.nothing_left()


async def test_pods_spread_to_the_nodes_that_have_devices(scene: Play) -> None:
    async with scene(nodes=("n1", "n2")) as play:
        await play.cluster.apply(play.template("t", {"name": "gpu", "deviceClassName": DRIVER, "count": 3}))
        for index in range(5):
            await play.cluster.apply(play.pod(f"p{index}", "t"))

        def placed(pods: list[dict[str, Any]]) -> bool:
            phases = [(pod.get("status") or {}).get("phase") for pod in pods]
            return phases.count("Running") == 4

        pods = await play.cluster.until(kube.PODS, placed)
        used = {
            (pod["spec"].get("nodeName"), device)
            for pod in pods
            if pod["spec"].get("nodeName")
            for device in play.devices(pod)
        }
        assert len(used) == 12  # no device twice
        waiting = next(pod for pod in pods if not pod["spec"].get("nodeName"))
        freed = next(pod for pod in pods if pod["spec"].get("nodeName"))
        await play.cluster.delete(kube.PODS, freed["metadata"]["name"])
        await play.cluster.pod(waiting["metadata"]["name"])
        await play.nothing_left()


async def test_a_node_selector_decides(scene: Play) -> None:
    async with scene(nodes=("n1", "n2")) as play:
        await play.cluster.apply(play.template("t", {"name": "gpu", "deviceClassName": DRIVER}))
        await play.cluster.apply(play.pod("p", "t", nodeSelector={"kubernetes.io/hostname": "n2"}))
        assert (await play.cluster.pod("p"))["spec"]["nodeName"] == "n2"
        await play.nothing_left()


async def test_a_class_that_comes_late(scene: Play) -> None:
    async with scene() as play:
        await play.cluster.apply(play.template("t", {"name": "gpu", "deviceClassName": "late"}))
        await play.cluster.apply(play.pod("p", "t"))

        def told(pods: list[dict[str, Any]]) -> bool:
            conditions = [entry for pod in pods for entry in (pod.get("status") or {}).get("conditions") or ()]
            return any("device class late does not exist" in entry.get("message", "") for entry in conditions)

        await play.cluster.until(kube.PODS, told)
        await play.cluster.apply(play.device_class("late", f'device.attributes["{DRIVER}"].index == 5'))
        assert play.devices(await play.cluster.pod("p")) == ["gpu-5"]
        await play.nothing_left()


async def test_a_template_that_comes_late(scene: Play) -> None:
    async with scene() as play:
        await play.cluster.apply(play.pod("p", "t"))
        events = await play.cluster.until(kube.EVENTS, lambda found: found)
        assert events[0]["reason"] == "FailedResourceClaimCreation"
        await play.cluster.apply(play.template("t", {"name": "gpu", "deviceClassName": DRIVER}))
        await play.cluster.pod("p")
        await play.nothing_left()


async def test_a_deleted_claim_of_a_waiting_pod_is_made_again(scene: Play) -> None:
    async with scene() as play:
        await play.cluster.apply(play.template("t", {"name": "gpu", "deviceClassName": DRIVER, "count": 9}))
        await play.cluster.apply(play.pod("p", "t"))
        (first,) = await play.cluster.until(kube.RESOURCE_CLAIMS, lambda found: found)
        await play.cluster.delete(kube.RESOURCE_CLAIMS, first["metadata"]["name"])
        await play.cluster.until(
            kube.RESOURCE_CLAIMS, lambda found: found and found[0]["metadata"]["uid"] != first["metadata"]["uid"]
        )
        await play.nothing_left()


async def test_a_claim_in_use_is_deleted_only_when_its_pod_is_gone(scene: Play) -> None:
    async with scene() as play:
        await play.cluster.apply(play.template("t", {"name": "gpu", "deviceClassName": DRIVER}))
        await play.cluster.apply(play.pod("p", "t"))
        await play.cluster.pod("p")
        (claim,) = play.cluster.server.list("resourceclaims")
        await play.cluster.delete(kube.RESOURCE_CLAIMS, claim["metadata"]["name"])
        (kept,) = play.cluster.server.list("resourceclaims")
        assert kept["metadata"]["deletionTimestamp"]
        assert kept["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        await play.nothing_left()


async def test_slices_of_a_deleted_node_are_collected(scene: Play) -> None:
    async with scene(nodes=("n1", "n2")) as play:
        (process,) = [entry for entry in play.cluster.drivers if entry.node == "n2"]
        await process.stop()
        await play.cluster.delete(kube.NODES, "n2")
        slices = await play.cluster.until(kube.RESOURCE_SLICES, lambda found: len(found) == 1)
        assert slices[0]["spec"]["nodeName"] == "n1"
