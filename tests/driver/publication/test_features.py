"""Gates: which fields belong to which, and what is published without them (1.7; pain 26; trap 7)."""

from typing import Any

import msgspec
import pytest

from drakit.api.quantity import Quantity
from drakit.api.resource import Counter, CounterSet, Device, DeviceAttribute, DeviceCounterConsumption, DeviceTaint
from drakit.devices.simulated.pools import POOL_PROFILES
from drakit.driver.publication import DEFAULT_FALLBACKS, DriverResources, Fallback, Pool, SliceContent, cut
from drakit.driver.publication.features import GATES, UNKNOWN, dropped, hinted, without

NODE = "node-1"
BY_GATE = {
    "DRADeviceTaints": "taints",
    "DRAPartitionableDevices": "partitions",
    "DRADeviceBindingConditions": "binding",
    "DRAConsumableCapacity": "sharing",
    "DRAPartitionableDevicesType": "partition-types",
    "DRADeviceCompatibilityGroups": "compatibility",
    "DRAListTypeAttributes": "lists",
    "DRANodeAllocatableResources": "allocatable",
    "DRAOptionalNodeOperations": "licences",
}


def pool_for(gate: str) -> Pool:
    (pool,) = POOL_PROFILES[BY_GATE[gate]].build(NODE).pools.values()
    return pool


@pytest.mark.parametrize("gate", [gate.name for gate in GATES])
def test_what_a_gate_loses_is_laid_at_its_door(gate: str) -> None:
    pool = pool_for(gate)
    kept = without(pool, {gate: Fallback.KEEP})
    assert kept is not None
    sent, stored = cut(pool), cut(kept)
    gates = {name for a, b in zip(sent, stored, strict=False) if a != b for name in dropped(a, b)}
    if gate != "DRAPartitionableDevices":  # there the counters' slice is gone altogether
        assert gates == {gate}
    assert set(DEFAULT_FALLBACKS) == set(BY_GATE)


def test_what_no_gate_explains_is_unknown() -> None:
    sent = SliceContent(devices=(Device(name="a", attributes={"x": DeviceAttribute(int=1)}),))
    assert dropped(sent, SliceContent(devices=(Device(name="a"),))) == (UNKNOWN,)


def test_several_gates_are_named_in_upstreams_order() -> None:
    device = Device(name="a", taints=(DeviceTaint(key="k", effect="None"),), allow_multiple_allocations=True)
    sent = SliceContent(devices=(device,), per_device_node_selection=True)
    stored = SliceContent(devices=(Device(name="a"),))
    assert dropped(sent, stored) == ("DRADeviceTaints", "DRAPartitionableDevices", "DRAConsumableCapacity")


@pytest.mark.parametrize("gate", [gate.name for gate in GATES])
def test_withholding_leaves_no_device_that_uses_the_gate(gate: str) -> None:
    pool = without(pool_for(gate), {gate: Fallback.WITHHOLD})
    assert pool is not None
    table = next(each for each in GATES if each.name == gate)
    empty = table.part(Device(name="x"))
    assert all(table.part(device) == empty for device in pool.devices)


def test_without_per_device_selection_nothing_can_be_published() -> None:
    (pool,) = POOL_PROFILES["per-device"].build("p").pools.values()
    assert without(pool, {"DRAPartitionableDevices": Fallback.KEEP}) is None


def test_unknown_gates_change_nothing() -> None:
    pool = pool_for("DRADeviceTaints")
    assert without(pool, {UNKNOWN: Fallback.WITHHOLD}) is pool


def test_the_drivers_own_cut_is_stripped_too() -> None:
    from drakit.driver.publication import PoolSlice

    counters = CounterSet(name="s", counters={"c": Counter(value=Quantity.parse("1"))})
    taken = DeviceCounterConsumption(counter_set="s", counters={"c": Counter(value=Quantity.parse("1"))})
    parts = (
        PoolSlice(shared_counters=(counters,)),
        PoolSlice(
            devices=(Device(name="a", consumes_counters=(taken,)), Device(name="b")), partition_type_attribute="d/x"
        ),
    )
    pool = without(Pool(slices=parts), {"DRAPartitionableDevices": Fallback.WITHHOLD})
    assert pool is not None
    assert pool.slices is not None
    assert [[device.name for device in part.devices] for part in pool.slices] == [[], ["b"]]
    pool = without(Pool(slices=parts), {"DRAPartitionableDevicesType": Fallback.KEEP})
    assert pool is not None
    assert pool.slices is not None
    assert pool.slices[1].partition_type_attribute is None


def test_refusals_that_hint_at_a_gate() -> None:
    lists = SliceContent(devices=(Device(name="a", attributes={"x": DeviceAttribute(ints=(1,))}),))
    assert hinted(lists, ("spec.devices[0].attributes[x]",)) == ("DRAListTypeAttributes",)
    assert hinted(lists, ("spec.devices[0].name",)) == ()
    assert hinted(SliceContent(per_device_node_selection=True), ("spec",)) == ("DRAPartitionableDevices",)


async def test_partitions_are_not_offered_as_whole_devices(make_lab: Any) -> None:
    """Without counters the same memory would be given away twice."""
    lab = await make_lab(gates=frozenset())
    base = pool_for("DRAPartitionableDevices")
    pool = msgspec.structs.replace(base, devices=(*base.devices, Device(name="plain")))
    running = await lab.publisher(DriverResources(pools={NODE: pool}))
    await lab.ready(running)
    await lab.settle(60)
    names = [device["name"] for obj in lab.slices() for device in obj["spec"].get("devices", [])]
    assert names == ["plain"]
    assert any("DRAPartitionableDevices" in words for words in running.publisher.warnings)
    assert any(event[1] == "FeatureGateOff" for event in running.events)


async def test_a_gate_that_is_turned_on_is_noticed(make_lab: Any) -> None:
    from drakit.simulator.apiserver.gatekeeper import Gatekeeper

    lab = await make_lab(gates=frozenset())
    running = await lab.publisher(DriverResources(pools={NODE: pool_for("DRAPartitionableDevices")}))
    await lab.ready(running)
    await lab.settle(5)
    lab.server._objects.gatekeeper = Gatekeeper("1.37", frozenset({"DRAPartitionableDevices"}))
    await lab.settle(3700)
    names = [device["name"] for obj in lab.slices() for device in obj["spec"].get("devices", [])]
    assert names == ["card-0", "card-0-half-0", "card-0-half-1"]
    assert running.publisher.warnings == ()
    assert running.publisher.ready
