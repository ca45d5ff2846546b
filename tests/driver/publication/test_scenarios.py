"""The slice controller's scenarios of spec/resourceslice.md 5.1, by number.

Every case is looked at twice: the second look must do nothing. Where our outcome is better than upstream's, the test says
so. Scenarios 39-41 (indices) are in test_naming, 46 (own domain) in test_checking, 47-63 belong to the allocation side.
"""

from typing import Any

import pytest

from drakit.api import resource
from drakit.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from drakit.api.quantity import Quantity
from drakit.driver.publication import DriverResources, Fallback, Owner, Pool, PoolSlice, naming

DRIVER, NODE = "gpu.example.com", "node-1"
TIME = "2025-03-01T10:00:00Z"


def device(name: str, **fields: Any) -> resource.Device:
    return resource.Device(name=name, **fields)


def taint(key: str, time: str | None = None) -> resource.DeviceTaint:
    return resource.DeviceTaint(key=key, effect="NoSchedule", time_added=time)


def names(obj: dict[str, Any]) -> list[str]:
    return [each["name"] for each in obj["spec"].get("devices", [])]


def pool_spec(obj: dict[str, Any]) -> tuple[int, int]:
    return obj["spec"]["pool"]["generation"], obj["spec"]["pool"]["resourceSliceCount"]


async def published(lab: Any, resources: DriverResources, **arguments: Any) -> Any:
    """Publish, then look again (an update with the same content and a repair pass): the second look does nothing."""
    lab.forget()
    running = await lab.publisher(resources, **arguments)
    await lab.ready(running)
    await lab.settle(5)
    first = lab.writes()
    running.publisher.update(resources)
    running.publisher._schedule_all()
    await lab.settle(60)
    assert lab.writes() == first, "the second pass wrote"
    assert running.publisher.ready, running.publisher.reasons
    return running


async def test_01_first_publication_of_one_empty_slice(lab: Any, resources_of: Any) -> None:
    await published(lab, resources_of([]))
    assert lab.writes() == {"create": 1}
    (found,) = lab.slices()
    assert pool_spec(found) == (1, 1)
    assert naming.decode_index(found["metadata"]["name"], 5) == 0
    assert found["spec"]["nodeName"] == NODE
    assert found["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": lab.node["metadata"]["uid"], "controller": True}
    ]


async def test_02_identical_slice_no_writes(lab: Any, resources_of: Any) -> None:
    lab.store(0, ["a"])
    await published(lab, resources_of(["a"], generation=1))
    assert lab.writes() == {}


async def test_03_stored_time_of_a_taint_is_kept(lab: Any, resources_of: Any) -> None:
    lab.store(0, [{"name": "a", "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": TIME}]}])
    await published(lab, resources_of([device("a", taints=(taint("k"),))]))
    assert lab.writes() == {}
    assert lab.slices()[0]["spec"]["devices"][0]["taints"][0]["timeAdded"] == TIME


async def test_04_old_time_copied_server_time_filled_own_time_rounded(lab: Any, resources_of: Any) -> None:
    lab.store(0, [{"name": "a", "taints": [{"key": "k1", "effect": "NoSchedule", "timeAdded": TIME}]}])
    wanted = (taint("k1"), taint("k2"), taint("k3", "2025-04-01T10:00:00.7Z"))
    await published(lab, resources_of([device("a", taints=wanted)]))
    assert lab.writes() == {"update": 1}
    times = [each["timeAdded"] for each in lab.slices()[0]["spec"]["devices"][0]["taints"]]
    assert times == [TIME, "2026-01-01T00:00:00Z", "2025-04-01T10:00:01Z"]


async def test_05_taints_dropped(make_lab: Any, resources_of: Any) -> None:
    lab = await make_lab(gates=frozenset())
    lab.store(0, ["a"])
    running = await published(lab, resources_of([device("a", taints=(taint("k"),))]))
    assert lab.writes() == {"update": 1}
    assert "taints" not in lab.slices()[0]["spec"]["devices"][0]
    assert running.publisher.dropped[NODE, 0].gates == ("DRADeviceTaints",)
    assert any("DRADeviceTaints" in message for _, _, message in running.events)
    assert any("DRADeviceTaints" in words for words in running.publisher.warnings)


async def test_06_consumable_capacity_dropped(make_lab: Any, resources_of: Any) -> None:
    lab = await make_lab(gates=frozenset())
    lab.store(0, ["a"])
    running = await published(lab, resources_of([device("a", allow_multiple_allocations=True)]))
    assert lab.writes() == {"update": 1}
    assert running.publisher.dropped[NODE, 0].gates == ("DRAConsumableCapacity",)


async def test_07_empty_desired_map_deletes(lab: Any) -> None:
    lab.store(0, ["a"])
    await published(lab, DriverResources())
    assert lab.writes() == {"delete": 1}
    assert lab.slices() == []


async def test_08_in_place_update_of_an_empty_slice(lab: Any, resources_of: Any) -> None:
    lab.store(0)
    await published(lab, resources_of(["a"]))
    assert lab.writes() == {"update": 1}
    assert pool_spec(lab.slices()[0]) == (1, 1)


async def test_09_device_added_to_the_first_of_two(lab: Any, resources_of: Any) -> None:
    lab.store(0, ["a"], count=2)
    second = lab.store(1, ["b"], count=2)
    await published(lab, resources_of(["a", "c"], ["b"]))
    assert lab.writes() == {"update": 1}
    assert lab.slices()[1] == second
    assert pool_spec(lab.slices()[0]) == (1, 2)


async def test_10_second_slice_gone_first_untouched(lab: Any, resources_of: Any) -> None:
    first = lab.store(0, ["a"], count=1)
    lab.store(1, ["b"], count=1)
    await published(lab, resources_of(["a"]))
    assert lab.writes() == {"delete": 1}
    assert lab.slices() == [first]


async def test_10b_shrinking_two_to_one_keeps_the_generation(lab: Any, resources_of: Any) -> None:
    lab.store(0, ["a"], count=2)
    lab.store(1, ["b"], count=2)
    await published(lab, resources_of(["a"]))
    assert lab.writes() == {"delete": 1, "update": 1}
    assert pool_spec(lab.slices()[0]) == (1, 1)


async def test_11_attribute_changed(lab: Any, resources_of: Any) -> None:
    lab.store(0, [{"name": "a", "attributes": {"x": {"int": 1}}}])
    await published(lab, resources_of([device("a", attributes={"x": resource.DeviceAttribute(int=2)})]))
    assert lab.writes() == {"update": 1}
    assert pool_spec(lab.slices()[0]) == (1, 1)


async def test_12_one_of_two_devices_changed(lab: Any, resources_of: Any) -> None:
    lab.store(0, ["a", "b"])
    await published(lab, resources_of(["a", device("b", attributes={"x": resource.DeviceAttribute(int=2)})]))
    assert lab.writes() == {"update": 1}
    assert pool_spec(lab.slices()[0]) == (1, 1)


def three(lab: Any, *generations: int) -> list[dict[str, Any]]:
    generations = generations or (1, 1, 1)
    return [lab.store(index, [letter], count=3, generation=generations[index]) for index, letter in enumerate("abc")]


async def test_13_three_identical(lab: Any, resources_of: Any) -> None:
    three(lab)
    await published(lab, resources_of(["a"], ["b"], ["c"]))
    assert lab.writes() == {}


async def test_14_generations_1_2_1_one_desired(lab: Any, resources_of: Any) -> None:
    """Upstream: 3 deletes, 1 create. The old slice with the right index is taken over: one write less."""
    three(lab, 1, 2, 1)
    await published(lab, resources_of(["a"]))
    assert lab.writes() == {"delete": 2, "update": 1}
    assert pool_spec(lab.slices()[0]) == (3, 1)


async def test_15_three_stored_one_changed(lab: Any, resources_of: Any) -> None:
    three(lab)
    await published(lab, resources_of(["a"], ["b", "x"], ["c"]))
    assert lab.writes() == {"update": 1}
    assert [pool_spec(each) for each in lab.slices()] == [(1, 3)] * 3


async def test_16_two_changed(lab: Any, resources_of: Any) -> None:
    three(lab)
    await published(lab, resources_of(["a"], ["b", "x"], ["c", "y"]))
    assert lab.writes() == {"update": 3}
    assert [pool_spec(each) for each in lab.slices()] == [(2, 3)] * 3


async def test_17_third_slice_removed(lab: Any, resources_of: Any) -> None:
    three(lab)
    await published(lab, resources_of(["a"], ["b"]))
    assert lab.writes() == {"update": 2, "delete": 1}
    assert [pool_spec(each) for each in lab.slices()] == [(2, 2)] * 2


async def test_18_fourth_slice_added(lab: Any, resources_of: Any) -> None:
    three(lab)
    await published(lab, resources_of(["a"], ["b"], ["c"], ["d"]))
    assert lab.writes() == {"update": 3, "create": 1}
    assert [pool_spec(each) for each in lab.slices()] == [(2, 4)] * 4


async def test_19_no_owner_all_nodes(lab: Any, pool_of: Any) -> None:
    await published(lab, DriverResources(pools={"shared": pool_of(["a"], all_nodes=True)}), node=None)
    (found,) = lab.slices()
    assert found["spec"]["allNodes"] is True
    assert "nodeName" not in found["spec"]
    assert "ownerReferences" not in found["metadata"]
    assert found["metadata"]["name"].startswith("00000-gpu.example.com-")
    assert NODE not in found["metadata"]["name"]


def selector(value: str) -> NodeSelector:
    requirement = NodeSelectorRequirement(key="zone", operator="In", values=(value,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),))


async def test_20_other_owner_node_selector(lab: Any, pool_of: Any) -> None:
    owner = Owner(api_version="apps/v1", kind="Deployment", name="ctl", uid="u-1")
    pools = {"shared": pool_of(["a"], node_selector=selector("z1"))}
    await published(lab, DriverResources(pools=pools), node=None, owner=owner)
    (found,) = lab.slices()
    assert found["metadata"]["ownerReferences"][0]["name"] == "ctl"
    assert found["spec"]["nodeSelector"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["z1"]


@pytest.mark.parametrize(
    ("number", "fields"),
    [
        (21, {"all_nodes": True}),
        (22, {"node_selector": selector("z1")}),
        (23, {"per_device_node_selection": True}),
    ],
)
async def test_21_to_23_one_cluster_wide_pool_of_a_node(lab: Any, pool_of: Any, number: int, fields: Any) -> None:
    devices = [device("a", node_selector=selector("z2"))] if number == 23 else ["a"]
    resources = DriverResources(pools={"mine": pool_of(devices, **fields)})
    await published(lab, resources, owner=Owner.node(NODE), only_pool="mine")
    (found,) = lab.slices()
    assert "nodeName" not in found["spec"]
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Node"


async def test_24_node_selector_changed(lab: Any, pool_of: Any) -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}
    lab.store(0, ["a"], pool="shared", nodeSelector={"nodeSelectorTerms": [term]})
    pools = {"shared": pool_of(["a"], node_selector=selector("z2"))}
    await published(lab, DriverResources(pools=pools), node=None)
    assert lab.writes() == {"update": 1}
    assert pool_spec(lab.slices()[0]) == (1, 1)


def partitionable() -> DriverResources:
    counters = resource.CounterSet(name="set", counters={"mem": resource.Counter(value=Quantity.parse("10Gi"))})
    taken = resource.DeviceCounterConsumption(
        counter_set="set", counters={"mem": resource.Counter(value=Quantity.parse("4Gi"))}
    )
    part = device("p", consumes_counters=(taken,), all_nodes=True)
    pool = Pool(
        slices=(
            PoolSlice(shared_counters=(counters,), per_device_node_selection=True),
            PoolSlice(devices=(part,), per_device_node_selection=True),
        ),
        generation=1,
    )
    return DriverResources(pools={"shared": pool})


async def test_25_partitionable_pool(lab: Any) -> None:
    await published(lab, partitionable(), node=None)
    assert lab.writes() == {"create": 2}
    assert [pool_spec(each) for each in lab.slices()] == [(1, 2)] * 2


async def test_26_partitionable_pool_without_the_gate(make_lab: Any) -> None:
    """Upstream's fake client only drops fields; a real server refuses the rest (2.9). The refusal names the gate."""
    lab = await make_lab(gates=frozenset())
    running = await lab.publisher(partitionable(), node=None, fallbacks={"DRAPartitionableDevices": Fallback.KEEP})
    await lab.settle(10)
    assert lab.slices() == []
    assert any("DRAPartitionableDevices" in words for words in running.publisher.warnings)
    first = lab.writes()
    await lab.settle(600)
    assert lab.writes() == first, "nothing is sent that was refused"


def binding() -> resource.Device:
    return device(
        "a",
        binds_to_node=True,
        binding_conditions=("ready.example.com",),
        binding_failure_conditions=("bad.example.com",),
    )


async def test_27_binding_conditions(lab: Any, resources_of: Any) -> None:
    await published(lab, resources_of([binding()]))
    assert lab.writes() == {"create": 1}
    assert lab.slices()[0]["spec"]["devices"][0]["bindsToNode"] is True


async def test_28_binding_conditions_dropped(make_lab: Any, resources_of: Any) -> None:
    lab = await make_lab(gates=frozenset())
    running = await published(lab, resources_of([binding()]), fallbacks={"DRADeviceBindingConditions": Fallback.KEEP})
    assert lab.writes() == {"create": 1}
    assert running.publisher.dropped[NODE, 0].gates == ("DRADeviceBindingConditions",)


COUNTERS = {"set": {"mem"}}


def consuming(name: str, counter_set: str, counter: str) -> resource.Device:
    value = {counter: resource.Counter(value=Quantity.parse("1"))}
    return device(name, consumes_counters=(resource.DeviceCounterConsumption(counter_set=counter_set, counters=value),))


def counter_slice() -> PoolSlice:
    counters = {"mem": resource.Counter(value=Quantity.parse("2"))}
    return PoolSlice(shared_counters=(resource.CounterSet(name="set", counters=counters),))


@pytest.mark.parametrize(
    ("number", "slices", "words"),
    [
        (29, (counter_slice(), counter_slice()), "counter set set appears twice"),
        (
            30,
            (PoolSlice(devices=(device("a"),)), PoolSlice(devices=(device("a"),))),
            "device a: the name appears twice",
        ),
        (
            31,
            (PoolSlice(devices=(consuming("a", "other", "mem"),)),),
            "counter set other, which the pool does not have",
        ),
        (
            32,
            (counter_slice(), PoolSlice(devices=(consuming("a", "set", "gpu"),))),
            "counter gpu, which counter set set",
        ),
    ],
)
async def test_29_to_32_an_inconsistent_pool_is_not_written(lab: Any, number: int, slices: Any, words: str) -> None:
    stored = lab.store(0, ["old"])
    lab.forget()
    resources = DriverResources(pools={NODE: Pool(slices=slices), "fine": Pool(devices=(device("x"),))})
    running = await lab.publisher(resources)
    await lab.settle(60)
    assert lab.writes() == {"create": 1}, "the other pool is published all the same"
    assert lab.server.get("resourceslices", stored["metadata"]["name"]) == stored
    assert words in running.publisher.status[NODE].reason
    assert any(words in reason for reason in running.publisher.reasons)
    assert [event[1] for event in running.events] == ["PoolRefused"]


async def test_33_three_randomly_named_slices(lab: Any, resources_of: Any) -> None:
    for letter in "abc":
        lab.store(0, [letter], count=3, name=f"{NODE}-{DRIVER}-{letter * 5}")
    await published(lab, resources_of(["a"], ["b"], ["c"]))
    assert lab.writes() == {"delete": 3, "create": 3}
    assert [pool_spec(each) for each in lab.slices()] == [(2, 3)] * 3


async def test_34_two_random_one_indexed(lab: Any, resources_of: Any) -> None:
    lab.store(1, ["b"], count=3)
    for letter in "ac":
        lab.store(0, [letter], count=3, name=f"{NODE}-{DRIVER}-{letter * 5}")
    await published(lab, resources_of(["a"], ["b"], ["c"]))
    assert lab.writes() == {"delete": 2, "create": 2, "update": 1}
    assert [pool_spec(each) for each in lab.slices()] == [(2, 3)] * 3


@pytest.mark.parametrize(
    ("number", "pools", "fine"),
    [(35, ("mine", "other"), False), (36, ("other",), False), (37, (), True), (38, ("mine",), True)],
)
async def test_35_to_38_update_of_a_one_pool_publisher(
    lab: Any, pool_of: Any, number: int, pools: Any, fine: bool
) -> None:
    before = DriverResources(pools={"mine": pool_of(["a"], all_nodes=True)})
    running = await published(lab, before, node=None, only_pool="mine")
    update = DriverResources(pools={name: pool_of(["b"], all_nodes=True) for name in pools})
    if fine:
        running.publisher.update(update)
        await lab.settle(5)
        assert [names(each) for each in lab.slices()] == ([["b"]] if pools else [])
    else:
        with pytest.raises(ValueError, match="the only pool of this publisher"):
            running.publisher.update(update)
        await lab.settle(5)
        assert [names(each) for each in lab.slices()] == [["a"]], "the old desired state stays"
        assert not running.publisher.ready


async def test_42_43_a_one_pool_publisher_sees_only_its_pool(lab: Any, pool_of: Any) -> None:
    running = await published(
        lab, DriverResources(pools={"mine": pool_of(["a"], all_nodes=True)}), node=None, only_pool="mine"
    )
    lab.store(0, ["x"], pool="other", allNodes=True)
    await lab.settle(60)
    assert sorted(each["spec"]["pool"]["name"] for each in lab.slices()) == ["mine", "other"]
    assert set(running.publisher.status) == {"mine"}


async def test_43b_a_cluster_wide_publisher_deletes_pools_it_does_not_know(lab: Any, pool_of: Any) -> None:
    lab.store(0, ["x"], pool="other", allNodes=True)
    node_local = lab.store(0, ["n"])
    await published(lab, DriverResources(pools={"mine": pool_of(["a"], all_nodes=True)}), node=None)
    assert {each["spec"]["pool"]["name"] for each in lab.slices()} == {"mine", NODE}
    assert node_local in lab.slices(), "slices of nodes are not its own"


async def test_44_stopping_leaves_the_slices(lab: Any, resources_of: Any) -> None:
    running = await published(lab, resources_of(["a"]))
    before = lab.slices()
    await running.stop()
    await running.stop()
    await lab.settle(60)
    assert lab.slices() == before


async def test_45_restart_with_the_same_data_writes_nothing(lab: Any, resources_of: Any) -> None:
    running = await published(lab, resources_of(["a"], ["b"]))
    await running.stop()
    await published(lab, resources_of(["a"], ["b"]))
    assert lab.writes() == {}
