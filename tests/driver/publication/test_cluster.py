"""`drakit publish`: one leader, pools from a file, no surprise for live claims; and the removal of slices."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from drakit import kube
from drakit.api import resource
from drakit.driver.instances import DRAINED, Instance, Instances, drain
from drakit.driver.publication import DriverResources, Pool
from drakit.driver.publication.cleanup import remove_slices
from drakit.driver.publication.cluster import ClusterPublisher, SkipChangeError
from drakit.driver.publication.inventory_file import InventoryError, InventoryFile
from drakit.files import REAL

DRIVER, NODE = "gpu.example.com", "node-1"

FILE = """
pools:
  licences:
    allNodes: true
    devices:
    - name: licence-0
      attributes: {edition: {string: gold}}
      capacity: {seats: {value: 10}}
"""


@pytest.fixture(name="inventory")
def _inventory(tmp_path: Path) -> Path:
    path = tmp_path / "pools.yaml"
    path.write_text(FILE)
    return path


async def replica(lab: Any, path: Path, identity: str, **arguments: Any) -> tuple[ClusterPublisher, Any]:
    client = await lab.client()
    lab.clock.idle_when(lambda: client.in_flight == 0)
    election = kube.Election(
        client, name="pub", namespace="default", identity=identity, clock=lab.clock, jitter=lambda: 0.5
    )
    publisher = ClusterPublisher(
        client, driver=DRIVER, read=InventoryFile(path, DRIVER).read, election=election, clock=lab.clock, **arguments
    )
    task = asyncio.create_task(publisher.run())

    async def stop() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    lab.stack.push_async_callback(stop)
    return publisher, task


def pools(lab: Any) -> dict[str, list[str]]:
    return {
        obj["spec"]["pool"]["name"]: [each["name"] for each in obj["spec"].get("devices", [])] for obj in lab.slices()
    }


async def test_one_of_two_replicas_publishes_and_the_other_takes_over(lab: Any, inventory: Path) -> None:
    first, task = await replica(lab, inventory, "a")
    await lab.settle(2)
    second, _ = await replica(lab, inventory, "b")
    await lab.until(lambda: pools(lab) == {"licences": ["licence-0"]})
    await lab.settle(30)
    assert first.unready() == []
    assert second.unready() == [], "who waits for its turn is ready"
    lab.forget()
    task.cancel()
    await lab.settle(30)
    lab.server.delete("resourceslices", lab.slices()[0]["metadata"]["name"])
    await lab.settle(5)
    assert pools(lab) == {"licences": ["licence-0"]}


async def test_the_file_is_followed(lab: Any, inventory: Path) -> None:
    publisher, _ = await replica(lab, inventory, "a")
    await lab.until(lambda: bool(pools(lab)))
    inventory.write_text(FILE.replace("licence-0", "licence-1"))
    await lab.until(lambda: pools(lab) == {"licences": ["licence-1"]})
    inventory.write_text("pools: {}")
    await lab.until(lambda: pools(lab) == {})
    assert publisher.unready() == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", 'must hold a mapping "pools"'),
        ("a: [", "is not YAML"),
        ("pools: []", 'must hold a mapping "pools"'),
        ("pools: {p: {allNodez: true}}", "allNodez"),
        ("pools: {p: {allNodes: true, devices: [{name: a, atributes: {}}]}}", "atributes"),
        ("pools: {p: {allNodes: true, devices: [{name: a, capacity: {x: {value: lots}}}]}}", "p"),
        (None, "cannot read"),
    ],
)
async def test_an_inventory_that_cannot_be_read_keeps_the_last_good_one(
    lab: Any, inventory: Path, content: str | None, words: str
) -> None:
    publisher, _ = await replica(lab, inventory, "a")
    await lab.until(lambda: bool(pools(lab)))
    inventory.unlink() if content is None else inventory.write_text(content)
    await lab.until(lambda: bool(publisher.unready()))
    assert words in publisher.unready()[0]
    assert pools(lab) == {"licences": ["licence-0"]}
    inventory.write_text(FILE)
    await lab.until(lambda: not publisher.unready())
    assert any(event["reason"] == "InventoryRefused" for event in lab.server.list("events"))


def allocated(lab: Any, pool: str) -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    claim = lab.server.create({**head, "metadata": {"name": "live", "namespace": "default"}, "spec": spec})
    result = {"request": "r", "driver": DRIVER, "pool": pool, "device": "licence-0"}
    claim["status"] = {"allocation": {"devices": {"results": [result]}}}
    lab.server.update(claim, subresource="status")


SKIPPING = FILE + "    skipNodeOperations: ['*']\n"


async def test_skipping_node_operations_waits_for_live_claims(lab: Any, inventory: Path) -> None:
    publisher, _ = await replica(lab, inventory, "a")
    await lab.until(lambda: bool(pools(lab)))
    allocated(lab, "licences")
    inventory.write_text(SKIPPING)
    await lab.until(lambda: bool(publisher.unready()))
    assert "from [] to [*] while 1 claims are live (default/live)" in publisher.unready()[0]
    assert "--force" in publisher.unready()[0]
    assert "skipNodeOperations" not in lab.slices()[0]["spec"]
    lab.server.delete("resourceclaims", "live", "default")
    await lab.until(lambda: lab.slices()[0]["spec"].get("skipNodeOperations") == ["*"])
    await lab.until(lambda: not publisher.unready())


async def test_claims_of_other_pools_do_not_matter_and_force_forces(lab: Any, inventory: Path) -> None:
    await replica(lab, inventory, "a", force=True)
    await lab.until(lambda: bool(pools(lab)))
    allocated(lab, "licences")
    inventory.write_text(SKIPPING)
    await lab.until(lambda: lab.slices()[0]["spec"].get("skipNodeOperations") == ["*"])


async def test_once_ends_when_all_is_settled(lab: Any, inventory: Path) -> None:
    client = await lab.client()
    election = kube.Election(client, name="pub", namespace="default", identity="x", clock=lab.clock)
    publisher = ClusterPublisher(
        client, driver=DRIVER, read=InventoryFile(inventory, DRIVER).read, election=election, clock=lab.clock
    )
    task = asyncio.create_task(publisher.run(once=True))
    await lab.until(task.done)
    await task
    assert pools(lab) == {"licences": ["licence-0"]}
    allocated(lab, "licences")
    inventory.write_text(SKIPPING)
    again = ClusterPublisher(
        client, driver=DRIVER, read=InventoryFile(inventory, DRIVER).read, election=election, clock=lab.clock
    )
    task = asyncio.create_task(again.run(once=True))
    await lab.until(task.done)
    with pytest.raises(SkipChangeError):
        await task


def test_the_file_is_parsed_once_per_change(inventory: Path) -> None:
    source = InventoryFile(inventory, DRIVER)
    first = source.read()
    assert first is not None
    assert first.pools["licences"].devices[0].capacity["seats"].value.value() == 10
    assert source.read() is None
    inventory.unlink()
    with pytest.raises(InventoryError):
        source.read()
    inventory.write_text(FILE)
    assert source.read() == first


# Removal


async def removal(lab: Any, **arguments: Any) -> Any:
    client = await lab.client()
    lab.clock.idle_when(lambda: client.in_flight == 0)
    task = asyncio.create_task(remove_slices(client, driver=DRIVER, clock=lab.clock, **arguments))
    await lab.until(task.done, step=1)
    return await task


async def test_all_slices_of_the_driver_go_and_no_others(lab: Any) -> None:
    lab.store(0, ["a"])
    lab.store(0, ["b"], pool="shared", allNodes=True)
    other = lab.server.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "other"},
            "spec": {
                "driver": "other.example.com",
                "allNodes": True,
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            },
        }
    )
    found = await removal(lab)
    assert found.complete
    assert found.deleted == 2
    assert lab.slices() == [other]


async def test_one_nodes_slices(lab: Any) -> None:
    lab.store(0, ["a"])
    lab.store(0, ["b"], pool="shared", allNodes=True)
    found = await removal(lab, node=NODE)
    assert found.deleted == 1
    assert pools(lab) == {"shared": ["b"]}


async def test_a_publisher_that_still_runs_is_found_out(lab: Any, resources_of: Any) -> None:
    running = await lab.publisher(resources_of(["a"]))
    await lab.ready(running)
    found = await removal(lab)
    assert not found.complete
    assert found.back == (NODE,)
    assert pools(lab) == {NODE: ["a"]}, "it is not fought with"
    await running.stop()
    assert (await removal(lab)).complete


async def test_what_waits_for_a_finalizer_is_left_and_named(lab: Any) -> None:
    obj = lab.store(0, ["a"])
    lab.server.update({**obj, "metadata": {**obj["metadata"], "finalizers": ["example.com/hold"]}})
    found = await removal(lab)
    assert not found.complete
    assert found.left == (obj["metadata"]["name"],)


async def test_live_claims_are_told(lab: Any) -> None:
    lab.store(0, ["licence-0"], pool="licences", allNodes=True)
    allocated(lab, "licences")
    assert (await removal(lab)).claims == ("default/live",)


async def test_failing_deletions_are_repeated(lab: Any) -> None:
    lab.store(0, ["a"])
    lab.server.faults.fail(503, times=3, verb="delete")
    found = await removal(lab)
    assert found.complete
    assert found.deleted == 1


async def test_nothing_to_remove_is_fine(lab: Any) -> None:
    found = await removal(lab)
    assert found.complete
    assert found.deleted == 0


# One publisher per node


def instance(directory: Path, name: str, started: int) -> Instances:
    return Instances(
        REAL,
        directory,
        Instance(id=name, started=started),
        lambda: REAL.open_lock(directory / "state.lock"),
    )


async def test_old_and_new_instance_of_a_node_do_not_overwrite_each_other(
    lab: Any, resources_of: Any, tmp_path: Path
) -> None:
    old, new = instance(tmp_path, "old", 1), instance(tmp_path, "new", 2)

    async def old_may() -> bool:
        return old.claim_publishing()

    async def new_may() -> bool:
        return new.claim_publishing()

    old.enter()
    first = await lab.publisher(resources_of(["a"]), may_publish=old_may)
    await lab.ready(first)
    new.enter()
    second = await lab.publisher(None, may_publish=new_may)
    await lab.settle(10)
    assert pools(lab) == {NODE: ["a"]}, "the new one's inventory is not ready"
    lab.forget()
    second.publisher.update(resources_of(["b"]))
    await lab.settle(10)
    assert pools(lab) == {NODE: ["b"]}
    first.publisher.update(resources_of(["a2"]))
    await lab.settle(30)
    assert pools(lab) == {NODE: ["b"]}
    assert lab.writes() == {"update": 1}
    await second.stop()
    new.leave()
    await lab.settle(5)
    assert pools(lab) == {NODE: ["a2"]}, "taken back when the holder is gone"


async def test_a_drained_node_stays_drained_until_a_later_instance(lab: Any, resources_of: Any, tmp_path: Path) -> None:
    old, new = instance(tmp_path, "old", 10), instance(tmp_path, "new", 30)

    async def old_may() -> bool:
        return old.claim_publishing()

    async def new_may() -> bool:
        return new.claim_publishing()

    old.enter()
    first = await lab.publisher(resources_of(["a"]), may_publish=old_may)
    await lab.ready(first)
    drain(REAL, tmp_path, 20)
    await lab.settle(2)
    assert (await removal(lab)).complete
    await lab.settle(60)
    assert pools(lab) == {}
    assert DRAINED
    new.enter()
    second = await lab.publisher(resources_of(["b"]), may_publish=new_may)
    await lab.ready(second)
    assert pools(lab) == {NODE: ["b"]}


def test_pools_from_devices() -> None:
    found = DriverResources.for_node(NODE, [resource.Device(name="a")])
    assert found.pools == {NODE: Pool(devices=(resource.Device(name="a"),))}
