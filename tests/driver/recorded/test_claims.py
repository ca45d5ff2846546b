"""Recorded scenarios of claims and containers, seen from the plugin: the number is the recording's."""

from typing import Any

from drakit import cdi, metadata
from drakit.driver.claims import Preparation, Prepared

DRIVER = "gpu.example.com"


def edits(*env: str) -> cdi.ContainerEdits:
    return cdi.ContainerEdits(env=env)


def requests(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}} for name in names]


def own(container: Any) -> list[str]:
    """CDI ids of devices and claims, without those of metadata files."""
    return [cdi_id for cdi_id in container.cdi_devices if cdi_id.startswith(f"{DRIVER}/claim=")]


def result(request: str, device: str) -> dict[str, Any]:
    return {"request": request, "device": device}


async def test_09_prepare_comes_before_the_sandbox_and_unprepare_after_it(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    await stage.start(stage.logged(driver))
    node.claim("c", "gpu-0")
    await stage.run("p", "c")
    await eventually(lambda: stage.phase("p") == "Running")
    stage.delete("p")
    await eventually(lambda: stage.phase("p") == "")
    assert stage.log == ["prepare", "sandbox", "sandbox stopped", "unprepare"]
    assert node.files() == []


async def test_09_a_claim_that_no_container_uses_is_prepared_and_given_back_when_the_pod_ends(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    await stage.start(stage.logged(driver))
    node.claim("c", "gpu-0")
    pod = await stage.run("p", "c", containers=[{"command": ["true"]}])
    await eventually(lambda: driver.unprepared)
    await eventually(lambda: stage.phase("p") == "Succeeded")  # not deleted
    assert stage.log == ["prepare", "sandbox", "sandbox stopped", "unprepare"]
    assert stage.container(pod).cdi_devices == ()


async def test_11_two_drivers_of_one_claim_are_called_again_until_both_are_done(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    nic = type(driver)("nic.example.com")
    luck = [False]

    def prepare(claim: Any) -> Any:
        if not luck[0]:
            raise OSError("no link")
        return [Prepared(each, edits("NIC=1")) for each in claim.devices]

    nic.on_prepare = prepare
    await stage.start(driver)
    await node.start(nic, driver_name=nic.name)
    await stage.kubelet.plugins.registered(nic.name)
    wanted = node.claim("c", result("r1", "gpu-0"), result("r2", "eth-0") | {"driver": nic.name})
    pod = await stage.run("p", "c")
    await eventually(lambda: len(nic.prepared) >= 2)  # and the good one, too
    luck[0] = True
    await eventually(lambda: stage.phase("p") == "Running")
    assert driver.prepared == [wanted.uid]
    # The kubelet notes devices again with each reply; as the ids are the same, each is injected once.
    assert {one.split("/")[0] for one in stage.container(pod).cdi_devices} == {DRIVER, nic.name}
    assert len(set(own(stage.container(pod)))) == 1
    stage.delete("p")
    await eventually(lambda: stage.phase("p") == "")
    assert driver.unprepared == [wanted.uid]
    assert nic.unprepared[-1] == wanted.uid
    assert node.files() == []


async def test_13_a_container_that_starts_again_finds_its_devices_without_a_call(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    driver.on_prepare = lambda claim: [Prepared(each, edits("GPU=1")) for each in claim.devices]
    await stage.start(driver)
    node.claim("c", "gpu-0")
    pod = await stage.run("p", "c", restartPolicy="Always")
    await eventually(lambda: stage.phase("p") == "Running")
    first = stage.container(pod)
    stage.runtime.end(pod["metadata"]["uid"], "main", 1)
    await eventually(lambda: stage.container(pod).id != first.id)
    assert stage.container(pod).cdi_devices == first.cdi_devices
    assert stage.container(pod).env["GPU"] == "1"
    assert (len(driver.prepared), driver.unprepared) == (1, [])


async def test_14b_claims_come_back_from_the_kubelets_checkpoint_when_all_objects_are_gone(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    await stage.start(driver)
    graceful, forced, gone = (node.claim(name, f"gpu-{index}") for index, name in enumerate(("a", "b", "c")))
    for name in "abc":
        await stage.run(f"p{name}", name)
    await eventually(lambda: all(stage.phase(f"p{name}") == "Running" for name in "abc"))

    await stage.kubelet.stop()
    stage.delete("pa")
    stage.delete("pb", grace_period_seconds=0)
    stage.delete("pc", grace_period_seconds=0)
    node.server.delete("resourceclaims", "c", "default")
    assert driver.unprepared == []
    await stage.kubelet.start()

    await eventually(lambda: len(driver.unprepared) == 3)
    assert driver.unprepared[0] == graceful.uid  # the others wait for the kubelet's loop
    assert {ref.uid: (ref.namespace, ref.name) for ref in driver.refs} == {
        wanted.uid: ("default", wanted.name) for wanted in (graceful, forced, gone)
    }
    await eventually(lambda: not stage.kubelet.plugins.state.claims)
    assert node.files() == []
    assert len(driver.prepared) == 3


async def test_21_devices_are_injected_in_the_order_of_the_allocation(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    driver.on_prepare = lambda claim: Preparation(
        devices=[Prepared(each, edits(f"DEVICE={each.device}", f"HAS_{each.device[-1]}=1")) for each in claim.devices],
        edits=edits("DEVICE=none", "CLAIM=1"),
    )
    await stage.start(driver)
    names = ("gpu-5", "gpu-1", "gpu-3")
    results = [result(request, name) for request, name in zip(("r0", "r0", "r2"), names, strict=True)]
    node.claim("c", *results, requests=requests("r0", "r2"))
    whole = {"name": "whole", "resources": {"claims": [{"name": "c"}]}}
    chosen = {"name": "chosen", "resources": {"claims": [{"name": "c", "request": r} for r in ("r2", "r0")]}}
    one = {"name": "one", "resources": {"claims": [{"name": "c", "request": "r2"}]}}
    pod = await stage.run("p", "c", containers=[whole, chosen, one, {"name": "none"}])
    await eventually(lambda: stage.phase("p") == "Running")

    def order(container: str) -> list[str]:
        return [one.rpartition("gpu-")[2] for one in own(stage.container(pod, container)) if "gpu-" in one[-5:]]

    assert (order("whole"), order("chosen"), order("one")) == (["5", "1", "3"], ["3", "5", "1"], ["3"])
    env = {name: stage.container(pod, name).env for name in ("whole", "chosen", "one", "none")}
    assert [env[name].get("DEVICE") for name in env] == ["gpu-3", "gpu-1", "gpu-3", None]  # the last one wins
    assert [env[name].get("CLAIM") for name in env] == ["1", "1", "1", None]
    assert sorted(name for name in env["one"] if name.startswith("HAS_")) == ["HAS_3"]


async def test_22_the_metadata_file_is_mounted_read_only_and_stays_the_same_file(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    driver.on_prepare = lambda claim: [Prepared(each, attributes={"slot": 3}) for each in claim.devices]
    application = await stage.start(driver)
    node.claim("c", "gpu-0")
    pod = await stage.run("p", "c")
    await eventually(lambda: stage.phase("p") == "Running")
    inside = metadata.paths.container_file(DRIVER, "r", claim="c")
    host = metadata.paths.host_file(str(application.settings.plugin_directory), "default", "c", "r")
    container = stage.container(pod)
    (mount,) = [entry for entry in container.spec["mounts"] if entry["destination"] == inside]
    assert mount["source"] == host
    assert {"ro", "bind"} <= set(mount["options"])
    assert '"slot"' in container.path(inside).read_text()

    # A second pod after a kubelet restart brings another prepare: the running container must not be left with an old file.
    await stage.kubelet.restart()
    second = stage.pod("p2", "c")
    stage.reserve("c", pod, second)
    await stage.place(second)
    await eventually(lambda: stage.phase("p2") == "Running")
    assert container.path(inside).samefile(host)
    assert stage.container(second).path(inside).samefile(host)


async def test_25_podresources_lists_each_device_with_its_pool_and_cdi_id(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    """What the kubelet lists is what the reply said, kept in its checkpoint."""
    await stage.start(driver)
    wanted = node.claim("c", result("r1", "gpu-0"), result("r2", "gpu-1"))
    await stage.run("p", "c")
    await eventually(lambda: stage.phase("p") == "Running")
    await stage.kubelet.restart()
    info = stage.kubelet.plugins.state.claims["default/c"]
    assert info.ref.uid == wanted.uid
    listed = [(device.pool, device.device, device.request_names) for device in info.devices[DRIVER]]
    assert listed == [("node-a", "gpu-0", ("r1",)), ("node-a", "gpu-1", ("r2",))]
    for entry in info.devices[DRIVER]:
        first, *others = entry.cdi_device_ids  # the one that podresources and health know the device by (H11)
        assert first.startswith(f"{DRIVER}/claim=")
        assert first.endswith(entry.device)
        assert [other.partition("=")[0] for other in others] == [f"{DRIVER}/metadata"]


async def test_33_a_claim_from_a_template_has_its_metadata_under_the_pods_name_for_it(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    await stage.start(driver)
    pod = stage.pod(
        "p",
        containers=[{"resources": {"claims": [{"name": "x"}]}}],
        resourceClaims=[{"name": "x", "resourceClaimTemplateName": "t"}],
    )
    generated(stage, node, pod, "p-x-cvcql", **{"resource.kubernetes.io/pod-claim-name": "x"})
    pod["status"] = {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "p-x-cvcql"}]}
    node.server.update(pod, subresource="status")
    await stage.place(pod)
    await eventually(lambda: stage.phase("p") == "Running")
    inside = stage.container(pod).path(metadata.paths.container_file(DRIVER, "r", pod_claim="x"))
    stored = metadata.read_file(inside)
    assert stored.pod_claim_name == "x"
    stage.delete("p")
    await eventually(lambda: stage.phase("p") == "")
    assert [ref.name for ref in driver.refs] == ["p-x-cvcql"]


async def test_33_a_claim_for_extended_resources_goes_to_its_container(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    await stage.start(driver)
    pod = stage.pod("p", containers=[{"name": "mapped"}, {"name": "other"}])
    generated(stage, node, pod, "p-extended-resources-7x")
    mapping = {"containerName": "mapped", "resourceName": "example.com/gpu", "requestName": "r"}
    status = {"resourceClaimName": "p-extended-resources-7x", "requestMappings": [mapping]}
    pod["status"] = {"extendedResourceClaimStatus": status}
    node.server.update(pod, subresource="status")
    await stage.place(pod)
    await eventually(lambda: stage.phase("p") == "Running")
    assert len(own(stage.container(pod, "mapped"))) == 1
    assert stage.container(pod, "other").cdi_devices == ()
    stage.delete("p")
    await eventually(lambda: stage.phase("p") == "")
    assert node.files() == []


def generated(stage: Any, node: Any, pod: dict[str, Any], name: str, **annotations: str) -> None:
    """A claim that the control plane made for a pod."""
    node.claim(name, "gpu-0", annotations=annotations)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    stored = node.server.get("resourceclaims", name, "default")
    stored["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    node.server.update(stored)
    stage.reserve(name, pod)


async def test_33_a_pod_without_a_reservation_never_reaches_the_driver(
    stage: Any, node: Any, driver: Any, eventually: Any
) -> None:
    await stage.start(driver)
    node.claim("c", "gpu-0")
    node.claim("unallocated")
    stage.reserve("c", stage.pod("somebody"))
    for name, claim in (("p", "c"), ("q", "unallocated")):
        await stage.place(stage.pod(name, claim))
    await eventually(lambda: len({event for event in stage.events() if "is not allowed to use" in event}) == 2)
    assert driver.prepared == []
    assert node.files() == []
