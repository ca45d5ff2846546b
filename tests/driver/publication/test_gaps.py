"""What upstream never tests (spec/resourceslice.md 5.3), its traps (6), and pains 13-26 of the publication."""

import asyncio
from typing import Any

import pytest

from drakit.api import resource
from drakit.driver.publication import DriverResources, Owner, Pool, PoolState

DRIVER, NODE = "gpu.example.com", "node-1"


def device(name: str, **fields: Any) -> resource.Device:
    return resource.Device(name=name, **fields)


def taint(key: str, time: str | None = None) -> resource.DeviceTaint:
    return resource.DeviceTaint(key=key, effect="NoSchedule", time_added=time)


def generations(lab: Any) -> list[tuple[int, int]]:
    pools = [obj["spec"]["pool"] for obj in lab.slices()]
    return [(pool["generation"], pool["resourceSliceCount"]) for pool in pools]


def content(lab: Any) -> list[list[str]]:
    return [[each["name"] for each in obj["spec"].get("devices", [])] for obj in lab.slices()]


async def start(lab: Any, resources: DriverResources, **arguments: Any) -> Any:
    running = await lab.publisher(resources, **arguments)
    await lab.ready(running)
    lab.forget()
    return running


def edit(lab: Any, index: int, **spec: Any) -> None:
    obj = lab.slices()[index]
    lab.server.update({**obj, "spec": {**obj["spec"], **spec}})


# Partial failures (1.7)


async def test_a_permanently_refused_new_slice_does_not_raise_the_generation(lab: Any, resources_of: Any) -> None:
    """Case (a): upstream climbs a generation with every attempt and rewrites all good slices."""
    running = await start(lab, resources_of(["a"], ["b"]))
    before = lab.slices()
    lab.server.faults.fail(422, times=None, verb="create", resource="resourceslices", message="a webhook says no")
    running.publisher.update(resources_of(["a"], ["b"], ["c"]))
    await lab.settle(3600)
    assert lab.slices() == before, "the old generation stays whole"
    assert running.publisher.status[NODE].state is PoolState.REFUSED
    assert 2 <= lab.writes()["create"] <= 12, "attempts become rare"
    assert "update" not in lab.writes()
    assert "a webhook says no" in running.publisher.reasons[0]
    assert [event[:2] for event in running.events] == [("Warning", "PoolRefused")]
    lab.server.faults.clear()
    await lab.until(lambda: running.publisher.ready, within=1300, step=10)
    assert generations(lab) == [(2, 3)] * 3


async def test_a_refusal_in_the_middle_is_finished_at_the_same_generation(lab: Any, resources_of: Any) -> None:
    """Case (b): what was written stays, nothing is deleted, and the pass is finished when the cause is gone."""
    running = await start(lab, resources_of(["a"], ["b"], ["c"]))
    name = lab.slices()[1]["metadata"]["name"]
    lab.server.faults.fail(422, times=None, verb="update", name=name)
    running.publisher.update(resources_of(["a1"], ["b1"], ["c1"]))
    await lab.settle(600)
    assert sorted(generations(lab)) == [(1, 3), (2, 3), (2, 3)]
    assert "delete" not in lab.writes()
    lab.server.faults.clear()
    await lab.until(lambda: running.publisher.ready, within=1300, step=10)
    assert generations(lab) == [(2, 3)] * 3
    assert content(lab) == [["a1"], ["b1"], ["c1"]]


async def test_a_refused_change_of_one_slice_leaves_the_old_content(lab: Any, resources_of: Any) -> None:
    """Case (c)."""
    running = await start(lab, resources_of(["a"], ["b"]))
    before = lab.slices()
    lab.server.faults.fail(422, times=None, verb="update", resource="resourceslices")
    running.publisher.update(resources_of(["a"], ["x"]))
    await lab.settle(120)
    assert lab.slices() == before
    running.publisher.update(resources_of(["a"], ["b"]))
    await lab.settle(2)
    assert running.publisher.ready, "the old wish needs no write"


async def test_a_refused_pool_does_not_hold_up_others(lab: Any, resources_of: Any, pool_of: Any) -> None:
    running = await start(lab, resources_of(["a"]))
    name = lab.slices()[0]["metadata"]["name"]
    lab.server.faults.fail(422, times=None, verb="update", name=name)
    pools = {NODE: pool_of(["b"]), "other": pool_of(["x"])}
    running.publisher.update(DriverResources(pools=pools))
    await lab.settle(5)
    assert running.publisher.status["other"].state is PoolState.PUBLISHED
    assert running.publisher.status[NODE].state is PoolState.REFUSED


async def test_an_invalid_device_is_found_before_anything_is_sent(lab: Any, resources_of: Any) -> None:
    running = await start(lab, resources_of(["a"], ["b"]))
    running.publisher.update(resources_of(["a", "Not A Name"], ["b"], ["c"]))
    await lab.settle(300)
    assert lab.writes() == {}
    assert running.publisher.status[NODE].state is PoolState.REFUSED
    assert "device Not A Name: spec.devices[" in running.publisher.reasons[0]
    assert running.publisher.metrics.refusals.labels("Check")._value.get() == 1
    assert [event[:2] for event in running.events] == [("Warning", "PoolRefused")]


# Conflicts and unknown outcomes


@pytest.mark.parametrize("verb", ["update", "delete", "create"])
@pytest.mark.parametrize("code", [409, 429, 500, 503, 504])
async def test_transient_failures_are_repeated(lab: Any, resources_of: Any, verb: str, code: int) -> None:
    running = await start(lab, resources_of(["a"], ["b"], ["c"]))
    lab.server.faults.fail(code, times=3, verb=verb, resource="resourceslices", retry_after=2 if code == 429 else None)
    wanted = {"update": (["a"], ["b"], ["x"]), "delete": (["a"], ["b"]), "create": (["a"], ["b"], ["c"], ["d"])}[verb]
    running.publisher.update(resources_of(*wanted))
    await lab.until(lambda: content(lab) == [*map(list, wanted)], step=0.5)
    await lab.ready(running)
    assert len(set(generations(lab))) == 1


@pytest.mark.parametrize("after_work", [False, True])
@pytest.mark.parametrize("verb", ["update", "delete", "create"])
async def test_lost_answers_are_read_back(lab: Any, resources_of: Any, verb: str, after_work: bool) -> None:
    running = await start(lab, resources_of(["a"], ["b"], ["c"]))
    lab.server.faults.drop(times=2, after_work=after_work, verb=verb, resource="resourceslices")
    wanted = {"update": (["a"], ["b"], ["x"]), "delete": (["a"], ["b"]), "create": (["a"], ["b"], ["c"], ["d"])}[verb]
    running.publisher.update(resources_of(*wanted))
    await lab.until(lambda: content(lab) == [*map(list, wanted)])
    await lab.ready(running)
    assert len(set(generations(lab))) == 1, "nothing was published twice"


async def test_somebody_else_is_faster_with_every_update(lab: Any, resources_of: Any) -> None:
    running = await start(lab, resources_of(["a"]))
    for number in range(3):
        obj = lab.slices()[0]
        lab.server.update({**obj, "metadata": {**obj["metadata"], "annotations": {"n": str(number)}}})
    running.publisher.update(resources_of(["b"]))
    await lab.ready(running)
    assert content(lab) == [["b"]]
    assert lab.slices()[0]["metadata"]["annotations"] == {"n": "2"}, "annotations of others are left alone"


async def test_retry_after_is_obeyed(lab: Any, resources_of: Any) -> None:
    running = await start(lab, resources_of(["a"]))
    lab.server.faults.fail(503, times=1, verb="update", resource="resourceslices", retry_after=20)
    running.publisher.update(resources_of(["b"]))
    await lab.settle(19)
    assert content(lab) == [["a"]]
    assert "503" in running.publisher.reasons[0]
    await lab.settle(2)
    assert content(lab) == [["b"]]


async def test_an_update_does_not_wait_for_a_long_backoff(lab: Any, resources_of: Any) -> None:
    running = await start(lab, resources_of(["a"]))
    fault = lab.server.faults.fail(500, times=None, verb="update", resource="resourceslices")
    running.publisher.update(resources_of(["b"]))
    await lab.settle(300)
    lab.server.faults.clear()
    assert fault.left is None
    running.publisher.update(resources_of(["c"]))
    await lab.settle(0.5)
    assert content(lab) == [["c"]]


async def test_the_api_server_is_away_for_twenty_minutes(lab: Any, resources_of: Any) -> None:
    running = await start(lab, resources_of(["a"]))
    lab.server.faults.fail(503, times=None)
    lab.server.drop_watches()
    running.publisher.update(resources_of(["b"]))
    await lab.settle(1200)
    lab.server.faults.clear()
    await lab.until(lambda: content(lab) == [["b"]])


# Deleted and edited by others


@pytest.mark.parametrize("within", [0.0, 10.0, 120.0])
@pytest.mark.parametrize("change", ["create", "update"])
async def test_deleted_right_after_our_write_it_comes_back(
    lab: Any, resources_of: Any, change: str, within: float
) -> None:
    """Trap 1: upstream's cache hid the deletion for ever (PR 132683, 140063)."""
    running = await start(lab, resources_of(["a"]))
    if change == "update":
        running.publisher.update(resources_of(["b"]))
        await lab.settle()
    await lab.settle(within)
    wanted = content(lab)
    lab.server.delete("resourceslices", lab.slices()[0]["metadata"]["name"])
    await lab.settle(3)
    assert content(lab) == wanted
    assert running.publisher.ready


@pytest.mark.parametrize("change", ["create", "update"])
async def test_written_and_deleted_while_the_watch_is_away(lab: Any, resources_of: Any, change: str) -> None:
    running = await start(lab, resources_of(["a"]) if change == "update" else DriverResources())
    lab.server.faults.fail(503, times=8, verb="watch")
    lab.server.drop_watches()
    running.publisher.update(resources_of(["b"]))
    await lab.settle()
    assert content(lab) == [["b"]]
    lab.server.delete("resourceslices", lab.slices()[0]["metadata"]["name"])
    lab.server.compact()
    await lab.until(lambda: content(lab) == [["b"]])


async def test_wiped_by_the_kubelet_it_is_back_within_seconds(lab: Any, resources_of: Any) -> None:
    """Pain 19; the generation is as sane as before."""
    running = await start(lab, resources_of(["a"], ["b"], ["c"]))
    running.publisher.update(resources_of(["a"], ["x"], ["y"]))
    await lab.settle(2)
    for obj in lab.slices():
        lab.server.delete("resourceslices", obj["metadata"]["name"])
    await lab.settle(1.5)
    assert content(lab) == [["a"], ["x"], ["y"]]
    assert generations(lab) == [(2, 3)] * 3


@pytest.mark.parametrize(
    "change",
    [
        {"devices": [{"name": "other"}]},
        {"devices": [{"name": "a", "attributes": {"x": {"int": 1}}}]},
        {"pool": {"name": NODE, "generation": 1, "resourceSliceCount": 2}},
        {"pool": {"name": NODE, "generation": 7, "resourceSliceCount": 1}},
    ],
)
async def test_every_edit_of_the_spec_is_put_back(lab: Any, resources_of: Any, change: dict[str, Any]) -> None:
    await start(lab, resources_of(["a"]))
    edit(lab, 0, **change)
    await lab.settle(5)
    assert content(lab) == [["a"]]
    assert "attributes" not in lab.slices()[0]["spec"]["devices"][0]
    generation, count = generations(lab)[0]
    assert count == 1
    assert generation == change.get("pool", {}).get("generation", 1)


@pytest.mark.parametrize(
    "change",
    [{"labels": {"team": "x"}}, {"labels": {"app": "other"}}, {"ownerReferences": []}, {"labels": {}}],
)
async def test_edits_of_labels_and_owner_are_put_back(lab: Any, resources_of: Any, change: dict[str, Any]) -> None:
    await start(lab, resources_of(["a"]), labels={"app": "drakit"})
    obj = lab.slices()[0]
    lab.server.update({**obj, "metadata": {**obj["metadata"], **change}})
    await lab.settle(5)
    found = lab.slices()[0]["metadata"]
    assert found["labels"] == {"app": "drakit"}
    assert found["ownerReferences"] == obj["metadata"]["ownerReferences"]
    assert generations(lab) == [(1, 1)]


async def test_edits_of_node_selection_are_put_back(lab: Any, pool_of: Any) -> None:
    await start(lab, DriverResources(pools={"p": pool_of(["a"], all_nodes=True)}), node=None)
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    edit(lab, 0, allNodes=None, nodeSelector={"nodeSelectorTerms": [term]})
    await lab.settle(5)
    assert lab.slices()[0]["spec"]["allNodes"] is True
    assert "nodeSelector" not in lab.slices()[0]["spec"]


async def test_a_stored_slice_at_a_higher_generation(lab: Any, resources_of: Any) -> None:
    await start(lab, resources_of(["a"], ["b"]))
    edit(lab, 1, pool={"name": NODE, "generation": 7, "resourceSliceCount": 2})
    await lab.settle(5)
    assert generations(lab) == [(7, 2)] * 2
    assert lab.writes() == {"update": 1}, "only the other slice had to follow"


async def test_strangers_slices_of_our_pool_are_removed(lab: Any, resources_of: Any) -> None:
    await start(lab, resources_of(["a"]))
    lab.store(0, ["x"], name="00000-gpu.example.com-node-1-zzzzz")
    lab.store(0, ["y"], pool="stale", name="00000-gpu.example.com-node-1-yyyyy")
    await lab.settle(5)
    assert content(lab) == [["a"]]


async def test_our_name_taken_by_a_stranger(lab: Any, resources_of: Any) -> None:
    from drakit.driver.publication import naming

    name = naming.slice_name(0, 5, DRIVER, NODE, NODE)
    lab.server.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name},
            "spec": {
                "driver": "other.example.com",
                "nodeName": NODE,
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            },
        }
    )
    running = await lab.publisher(resources_of(["a"]))
    await lab.ready(running)
    mine = next(obj for obj in lab.slices() if obj["spec"]["driver"] == DRIVER)
    assert mine["metadata"]["name"].startswith("00000-gpu.example.com-node-1-")
    assert mine["metadata"]["name"] != name


async def test_a_slice_with_a_finalizer_is_replaced_not_waited_for(lab: Any, resources_of: Any) -> None:
    running = await start(lab, resources_of(["a"], ["b"]))
    obj = lab.slices()[0]
    lab.server.update({**obj, "metadata": {**obj["metadata"], "finalizers": ["example.com/hold"]}})
    await lab.settle(5)
    lab.server.delete("resourceslices", obj["metadata"]["name"])
    await lab.settle(10)
    newest = [each for each in lab.slices() if each["spec"]["pool"]["generation"] == 2]
    assert [each["spec"]["devices"][0]["name"] for each in newest] == ["a", "b"]
    assert running.publisher.ready
    writes = lab.writes()
    await lab.settle(300)
    assert lab.writes() == writes


async def test_the_node_is_created_anew(lab: Any, resources_of: Any) -> None:
    """The garbage collector removes slices of the old UID; the new ones must not have it."""
    await start(lab, resources_of(["a"]))
    lab.server.delete("nodes", NODE)
    new = lab.server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    await lab.settle(10)
    lab.server.delete("resourceslices", lab.slices()[0]["metadata"]["name"])
    await lab.settle(5)
    assert lab.slices()[0]["metadata"]["ownerReferences"][0]["uid"] == new["metadata"]["uid"]


async def test_a_missing_node_is_a_reason_and_is_waited_for(lab: Any, resources_of: Any) -> None:
    running = await lab.publisher(DriverResources(pools={"later": Pool()}), node="later")
    await lab.settle(10)
    assert 'nodes "later" not found' in running.publisher.reasons[0]
    lab.server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "later"}})
    await lab.ready(running)


async def test_a_known_uid_needs_no_node(lab: Any, resources_of: Any) -> None:
    lab.server.faults.fail(403, times=None, resource="nodes")
    await start(lab, resources_of(["a"]), owner=Owner.node(NODE, "uid-1"))
    assert lab.slices()[0]["metadata"]["ownerReferences"][0]["uid"] == "uid-1"


# Equality


async def test_quantities_in_other_words_are_no_change(lab: Any, resources_of: Any) -> None:
    from drakit.api.quantity import Quantity

    lab.store(0, [{"name": "a", "capacity": {"m": {"value": "1024Mi"}}}])
    capacity = {"m": resource.DeviceCapacity(value=Quantity.parse("1Gi"))}
    await start(lab, resources_of([device("a", capacity=capacity)]))
    running = lab.running[-1]
    assert int(running.publisher.metrics.writes.labels("update")._value.get()) == 0


async def test_empty_and_missing_are_the_same(lab: Any, resources_of: Any) -> None:
    lab.store(0, [{"name": "a", "attributes": {}, "taints": [], "consumesCounters": None}])
    lab.forget()
    running = await lab.publisher(resources_of([device("a")]))
    await lab.ready(running)
    assert lab.writes() == {}


# Many


async def test_more_than_a_hundred_slices_without_duplicates(lab: Any, resources_of: Any) -> None:
    running = await start(lab, resources_of(*([f"d{number}"] for number in range(130))))
    assert len(lab.slices()) == 130
    assert generations(lab) == [(1, 130)] * 130
    assert [each[0] for each in content(lab)] == [f"d{number}" for number in range(130)], (
        "names sort as the driver says"
    )
    await lab.settle(120)
    assert lab.writes() == {}
    assert running.publisher.ready


async def test_one_changed_device_of_many_is_one_write(lab: Any) -> None:
    devices = [device(f"d{number}") for number in range(600)]
    running = await start(lab, DriverResources.for_node(NODE, devices))
    devices[300] = device("d300", attributes={"x": resource.DeviceAttribute(int=1)})
    running.publisher.update(DriverResources.for_node(NODE, devices))
    await lab.settle(5)
    assert lab.writes() == {"update": 1}
    del devices[0]
    running.publisher.update(DriverResources.for_node(NODE, devices))
    await lab.settle(5)
    assert lab.writes() == {"update": 2}, "devices stay in their slices"
    running.publisher.update(DriverResources.for_node(NODE, [device("new"), *devices]))
    await lab.settle(5)
    assert lab.writes() == {"update": 3}


async def test_churn_is_slowed_down(lab: Any, resources_of: Any) -> None:
    """Trap 14: at most five passes at once, then one every two seconds; the last wish is reached."""
    running = await start(lab, resources_of(["d"]))
    for number in range(100):
        running.publisher.update(resources_of([f"d{number}"]))
        await lab.settle(0.1)
    await lab.settle(3)
    assert content(lab) == [["d99"]]
    assert lab.writes()["update"] <= 12


# Taints


async def test_two_taints_without_time_both_keep_theirs(lab: Any, resources_of: Any) -> None:
    """Trap 13 (PR 141107): upstream kept the last one's only."""
    stored = [{"key": key, "effect": "NoSchedule", "timeAdded": f"2025-01-0{key[1]}T00:00:00Z"} for key in ("k1", "k2")]
    lab.store(0, [{"name": "a", "taints": stored}])
    wanted = device("a", taints=(taint("k1"), taint("k2")), attributes={"x": resource.DeviceAttribute(int=1)})
    await start(lab, resources_of([wanted]))
    assert lab.slices()[0]["spec"]["devices"][0]["taints"] == stored


async def test_a_device_that_moves_to_another_slice_keeps_its_time(lab: Any, resources_of: Any) -> None:
    stored = {"key": "k", "effect": "NoSchedule", "timeAdded": "2025-01-01T00:00:00Z"}
    lab.store(0, [{"name": "a", "taints": [stored]}], count=2)
    lab.store(1, ["b"], count=2)
    await start(lab, resources_of(["b"], [device("a", taints=(taint("k"),))]))
    assert lab.slices()[1]["spec"]["devices"][0]["taints"] == [stored]


async def test_times_survive_a_wipe(lab: Any, resources_of: Any) -> None:
    running = await start(lab, resources_of([device("a", taints=(taint("k"),))]))
    before = lab.slices()[0]["spec"]["devices"]
    await lab.settle(100)
    lab.server.delete("resourceslices", lab.slices()[0]["metadata"]["name"])
    await lab.settle(5)
    assert lab.slices()[0]["spec"]["devices"] == before
    running.publisher.update(resources_of([device("a")]))
    await lab.settle(5)
    running.publisher.update(resources_of([device("a", taints=(taint("k"),))]))
    await lab.settle(5)
    after = lab.slices()[0]["spec"]["devices"][0]["taints"][0]
    if "timeAdded" in after:
        assert after["timeAdded"] != before[0]["taints"][0]["timeAdded"], "a taint that was gone is a new one"


# Versions


@pytest.mark.parametrize("version", ["1.32", "1.33", "1.34", "1.36"])
async def test_older_servers(make_lab: Any, resources_of: Any, version: str) -> None:
    lab = await make_lab(version, gates=None)
    attributes = {"x": resource.DeviceAttribute(string="y")}
    running = await start(lab, resources_of([device("a", attributes=attributes)], ["b"]))
    found = lab.slices()[0]["spec"]["devices"][0]
    assert found.get("basic", found)["attributes"] == {"x": {"string": "y"}}
    running.publisher.update(resources_of(["a"], ["b"]))
    await lab.settle(5)
    assert lab.writes() == {"update": 1}
    lab.server.delete("resourceslices", lab.slices()[1]["metadata"]["name"])
    await lab.settle(5)
    assert len(lab.slices()) == 2
    await lab.settle(100)
    assert lab.writes() == {"update": 1, "create": 1}


# Several instances


async def test_two_cluster_wide_publishers_beside_each_other(lab: Any, pool_of: Any) -> None:
    one = await start(lab, DriverResources(pools={"p1": pool_of(["a"], all_nodes=True)}), node=None, only_pool="p1")
    two = await start(lab, DriverResources(pools={"p2": pool_of(["b"], all_nodes=True)}), node=None, only_pool="p2")
    await lab.settle(120)
    assert lab.writes() == {}
    assert one.publisher.ready
    assert two.publisher.ready
    assert content(lab) == [["a"], ["b"]] or content(lab) == [["b"], ["a"]]


async def test_an_instance_that_may_not_publish_stands_by(lab: Any, resources_of: Any) -> None:
    turn = {"old": True, "new": False}

    async def old() -> bool:
        return turn["old"]

    async def new() -> bool:
        return turn["new"]

    first = await start(lab, resources_of(["a"]), may_publish=old)
    second = await lab.publisher(resources_of(["b"]), may_publish=new)
    await lab.settle(60)
    assert content(lab) == [["a"]]
    assert second.publisher.status[NODE].state is PoolState.STANDBY
    assert second.publisher.ready
    turn.update(old=False, new=True)
    await lab.settle(3)
    assert content(lab) == [["b"]]
    await lab.settle(60)
    assert content(lab) == [["b"]]
    assert lab.writes() == {"update": 1}, "they do not fight"
    turn.update(old=True, new=False)
    await lab.settle(3)
    assert content(lab) == [["a"]], "taken back"
    assert first.publisher.ready


async def test_who_cannot_tell_whether_it_publishes_does_not(lab: Any, resources_of: Any, caplog: Any) -> None:
    async def broken() -> bool:
        raise OSError("disk")

    lab.forget()
    await lab.publisher(resources_of(["a"]), may_publish=broken)
    await lab.settle(10)
    assert lab.writes() == {}


# Inventory


async def test_nothing_is_touched_before_the_first_inventory(lab: Any) -> None:
    lab.store(0, ["a"])
    lab.forget()
    running = await lab.publisher()
    await lab.settle(300)
    assert lab.writes() == {}
    assert "has not been read" in running.publisher.reasons[0]
    assert not running.publisher.ready


async def test_an_empty_inventory_is_one_empty_slice(lab: Any) -> None:
    running = await start(lab, DriverResources.for_node(NODE, [device("a")]))
    running.publisher.update(DriverResources.for_node(NODE, []))
    await lab.settle(5)
    assert content(lab) == [[]]
    assert lab.writes() == {"update": 1}


async def test_pools_come_and_go(lab: Any, pool_of: Any) -> None:
    running = await start(lab, DriverResources(pools={"p1": pool_of(["a"]), "p2": pool_of(["b"])}))
    running.publisher.update(DriverResources(pools={"p2": pool_of(["b"]), "p3": pool_of(["c"])}))
    await lab.settle(5)
    assert lab.writes() == {"create": 1, "delete": 1}
    assert set(running.publisher.status) == {"p2", "p3"}


async def test_a_cluster_wide_pool_of_a_node_is_refused_with_the_way_out(lab: Any, pool_of: Any) -> None:
    running = await lab.publisher(DriverResources(pools={"p": pool_of(["a"], all_nodes=True)}))
    await lab.settle(5)
    assert "use `drakit publish`" in running.publisher.reasons[0]


async def test_a_cluster_wide_pool_needs_one_selection(lab: Any, pool_of: Any) -> None:
    running = await lab.publisher(DriverResources(pools={"p": pool_of(["a"])}), node=None)
    await lab.settle(5)
    assert "exactly one of nodeSelector, allNodes" in running.publisher.reasons[0]


async def test_rbac_is_named(lab: Any, resources_of: Any) -> None:
    lab.server.faults.fail(403, times=None, verb="create", resource="resourceslices", message="not allowed to create")
    running = await lab.publisher(resources_of(["a"]))
    await lab.settle(20)
    assert "not allowed to create" in running.publisher.reasons[0]
    assert running.publisher.metrics.refusals.labels("Api")._value.get() == 1
    lab.server.faults.clear()
    await lab.until(lambda: running.publisher.ready, step=5)


async def test_a_forbidden_list_is_named(lab: Any, resources_of: Any) -> None:
    lab.server.faults.fail(403, times=None, verb="list", resource="resourceslices", message="not allowed to list")
    running = await lab.publisher(resources_of(["a"]))
    await lab.settle(20)
    assert "cannot list slices: 403 Forbidden: not allowed to list" in running.publisher.reasons[0]
    lab.server.faults.clear()
    await lab.until(lambda: running.publisher.ready, step=5)


async def test_settled_waits_for_all_pools(lab: Any, resources_of: Any) -> None:
    running = await lab.publisher()
    task = asyncio.create_task(running.publisher.settled())
    await lab.settle()
    assert not task.done()
    running.publisher.update(resources_of(["a"]))
    await lab.settle(1)
    await task
    assert content(lab) == [["a"]]


async def test_an_update_during_a_pass_is_not_taken_for_published(lab: Any, resources_of: Any) -> None:
    running = await start(lab, resources_of(["a"]))
    running.publisher.update(resources_of(["b"]))
    while not running.client.in_flight:  # noqa: ASYNC110 - until the first write is on its way
        await asyncio.sleep(0)
    running.publisher.update(resources_of(["c"]))
    assert not running.publisher.ready
    async with asyncio.timeout(20):
        await running.publisher.settled()
    assert content(lab) == [["c"]]


async def test_an_empty_inventory_is_settled_only_when_old_pools_are_gone(lab: Any) -> None:
    lab.store(0, ["a"])
    running = await lab.publisher(DriverResources())
    task = asyncio.create_task(running.publisher.settled())
    await lab.settle(2)
    await task
    assert content(lab) == []


async def test_a_bad_version_on_every_device_costs_no_device(lab: Any) -> None:
    """Pain 13."""
    bad = {"driverVersion": resource.DeviceAttribute(version="580.159.04")}
    devices = [device(f"d{number}", attributes=bad) for number in range(2000)]
    running = await start(lab, DriverResources.for_node(NODE, devices))
    assert sum(map(len, content(lab))) == 2000
    assert lab.slices()[0]["spec"]["devices"][0]["attributes"]["driverVersion"] == {"version": "580.159.4"}
    assert len(running.publisher.adjustments) == 2000
    assert [event[1] for event in running.events] == ["DeviceNormalised"]
    assert running.publisher.metrics.normalised.labels("normalise")._value.get() == 2000
    assert b"drakit_device_normalised_total" in running.publisher.metrics.exposition()[0]


async def test_the_verbs_used_are_those_that_the_documentation_asks_for(lab: Any, resources_of: Any) -> None:
    lab.store(0, ["stale"], pool="stale")
    lab.forget()
    running = await lab.publisher(resources_of(["a"], ["b"]))
    await lab.ready(running)
    running.publisher.update(resources_of(["a"], ["x"]))
    lab.server.faults.drop(after_work=True, verb="update", resource="resourceslices")
    await lab.settle(5)
    await lab.ready(running)
    used = {(call.resource, call.verb) for call in lab.server.requests.calls}
    slices = {("resourceslices", verb) for verb in ("get", "list", "watch", "create", "update", "delete")}
    assert used <= slices | {("nodes", "get")}
    assert used >= slices - {("resourceslices", "get"), ("resourceslices", "watch")}
