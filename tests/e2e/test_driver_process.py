"""The real driver under a kubelet, runtime, scheduler and API server, through what goes wrong on nodes."""

from typing import Any

from drakit import kube
from drakit.simulator.kubelet.decisions import pick

DRIVER = "gpu.example.com"


async def test_killed_between_prepare_and_unprepare(site: Any) -> None:
    await site.claim("c")
    await site.pod("p", "c")
    pod = await site.cluster.pod("p")
    uid = site.cluster.server.get("resourceclaims", "c", "default")["metadata"]["uid"]
    assert site.env(pod)
    await site.driver.kill()
    assert site.files_of(uid)
    await site.driver.start()
    await site.delete_pod("p")
    await site.forgotten(uid)
    assert list(site.node.cdi.iterdir()) == []
    assert site.node.kubelet.plugins.state.claims == {}
    claim = site.cluster.server.get("resourceclaims", "c", "default")
    assert "allocation" not in claim.get("status", {})


async def test_unprepare_waits_for_a_driver_that_is_down(site: Any, eventually: Any) -> None:
    await site.claim("c")
    await site.pod("p", "c")
    await site.cluster.pod("p")
    uid = site.cluster.server.get("resourceclaims", "c", "default")["metadata"]["uid"]
    await site.driver.stop()
    plugins = site.node.kubelet.plugins
    await plugins.until(lambda state: pick(state, DRIVER) is None)
    await site.cluster.delete(kube.PODS, "p")
    await eventually(lambda: any("unprepare dynamic resources" in line for line in plugins.log))
    assert site.files_of(uid)
    await site.driver.start()
    await site.cluster.gone(kube.PODS, "p")
    await site.forgotten(uid)


async def test_a_kubelet_restart_leaves_the_pod_and_wipes_the_slices(site: Any) -> None:
    await site.claim("c")
    await site.pod("p", "c")
    pod = await site.cluster.pod("p")
    before = site.cluster.server.list("resourceslices")
    await site.node.kubelet.restart()
    await site.registered()
    # The kubelet deletes the node's slices at its start; the driver puts them back.
    await site.cluster.until(
        kube.RESOURCE_SLICES, lambda found: found and found[0]["metadata"]["uid"] != before[0]["metadata"]["uid"]
    )
    assert site.node.runtime.created == 1
    assert site.env(pod)
    await site.delete_pod("p")
    assert site.node.kubelet.plugins.state.claims == {}


async def test_a_reboot_prepares_again_with_the_same_devices(site: Any, eventually: Any) -> None:
    await site.claim("c", 2)
    await site.pod("p", "c")
    pod = await site.cluster.pod("p")
    env = site.env(pod)
    await site.node.kubelet.stop()
    await site.driver.stop()
    site.node.runtime.crash()
    for path in site.node.cdi.iterdir():
        path.unlink()
    await site.driver.start()
    await site.node.kubelet.start()
    await eventually(lambda: site.node.runtime.created == 2)
    assert site.env(pod) == env


async def test_slices_are_wiped_without_a_driver_and_come_back_with_it(impatient_site: Any) -> None:
    site = impatient_site
    await site.driver.kill()
    await site.cluster.until(kube.RESOURCE_SLICES, lambda slices: not slices)
    await site.driver.start()
    await site.published()
    devices = [
        device["name"] for item in site.cluster.server.list("resourceslices") for device in item["spec"]["devices"]
    ]
    assert sorted(devices) == [f"gpu-{index}" for index in range(8)]


async def test_two_pods_share_a_claim(site: Any) -> None:
    await site.claim("c")
    await site.pod("a", "c")
    first = await site.cluster.pod("a")
    await site.pod("b", "c")
    second = await site.cluster.pod("b")
    assert site.env(first) == site.env(second) != {}
    uid = site.cluster.server.get("resourceclaims", "c", "default")["metadata"]["uid"]
    await site.delete_pod("a")
    assert site.files_of(uid)
    await site.delete_pod("b")
    await site.forgotten(uid)


async def test_a_pod_that_does_not_fit_starts_when_devices_are_free(site: Any) -> None:
    await site.claim("most", 7)
    await site.claim("more", 2)
    await site.pod("first", "most")
    await site.cluster.pod("first")
    await site.pod("second", "more")

    def told(pods: list[dict[str, Any]]) -> bool:
        conditions = [entry for pod in pods for entry in pod.get("status", {}).get("conditions", [])]
        return any(entry.get("reason") == "Unschedulable" for entry in conditions)

    await site.cluster.until(kube.PODS, told)
    second = site.cluster.server.get("pods", "second", "default")
    (condition,) = [entry for entry in second["status"]["conditions"] if entry["type"] == "PodScheduled"]
    assert condition["message"] == "0/1 nodes are available: 1 cannot allocate all claims."
    await site.delete_pod("first")
    pod = await site.cluster.pod("second")
    assert len([name for name in site.env(pod) if name.count("_") == 2]) == 2


async def test_a_pod_that_ends_gives_its_devices_back(site: Any) -> None:
    await site.claim("c")
    await site.pod("p", "c", command="sleep 0.1")
    await site.cluster.pod("p", phase="Succeeded")
    uid = site.cluster.server.get("resourceclaims", "c", "default")["metadata"]["uid"]
    await site.forgotten(uid)
    await site.cluster.until(kube.RESOURCE_CLAIMS, lambda claims: not claims[0].get("status", {}).get("allocation"))


async def test_the_driver_ends_well(site: Any) -> None:
    assert await site.driver.stop() == 0
    assert not [path for path in site.node.kubelet.root.rglob("*") if path.is_socket()]
