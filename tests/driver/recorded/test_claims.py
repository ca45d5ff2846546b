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


async def test_16_none_of_the_wrong_answers_is_ever_given(node: Any, driver: Any, wanted: Any) -> None:
    """One entry per UID; error or devices, never both; ids that resolve; base request names; no share id of our own."""

    def prepare(claim: Any) -> Any:
        if claim.name == "bad":
            raise RuntimeError("no luck")
        return [] if claim.name == "bare" else [Prepared(device, edits("A=1")) for device in claim.devices]

    driver.on_prepare = prepare
    _, kubelet = await node.start(driver)
    alternative = [{"name": "r", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}]}]
    claims = [
        node.claim("good", result("r1", "gpu-0"), result("r2", "gpu-1")),
        node.claim("sub", result("r/big", "gpu-2"), requests=alternative),
        node.claim("bare", "gpu-3"),
        node.claim("bad", "gpu-4"),
    ]
    reply = await kubelet.prepare(*claims)
    assert set(reply) == {claim.uid for claim in claims}
    good, sub, bare, bad = (reply[claim.uid] for claim in claims)
    assert [bool(entry.error) for entry in (good, sub, bare, bad)] == [False, False, False, True]
    assert list(bad.devices) == []
    assert [list(device.request_names) for device in (*good.devices, *sub.devices)] == [["r1"], ["r2"], ["r"]]
    devices = [*good.devices, *sub.devices, *bare.devices]
    assert [device.device_name for device in devices] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert all(device.pool_name == "node-a" and not device.HasField("share_id") for device in devices)
    for device in devices:
        assert device.cdi_device_ids
        cdi.resolve([node.root / "cdi"], list(device.cdi_device_ids), {"ociVersion": "1.0.2", "process": {"env": []}})
    again = await kubelet.prepare(*claims[:3])
    assert again == {claim.uid: reply[claim.uid] for claim in claims[:3]}  # other ids would be injected beside these
    everything = [*claims, wanted("ghost")]
    assert await kubelet.unprepare(*everything) == {claim.uid: "" for claim in everything}
    assert node.files() == []


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
