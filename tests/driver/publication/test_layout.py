"""Cutting pools: the 128/64 rules, order, and steadiness (pain 16, traps 9 and 15)."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.api import limits
from drakit.api.quantity import Quantity
from drakit.api.resource import Counter, CounterSet, Device, DeviceAttribute, DeviceCounterConsumption, DeviceTaint
from drakit.driver.publication import Pool, PoolSlice, SliceContent, cut
from drakit.driver.publication.layout import is_limited

quick = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
TAINTS = (DeviceTaint(key="k", effect="NoSchedule"),)
COUNTERS = (DeviceCounterConsumption(counter_set="s", counters={"c": Counter(value=Quantity.parse("1"))}),)
LISTS = {"l": DeviceAttribute(ints=(1, 2))}
FEATURES: list[dict[str, Any]] = [
    {},
    {"taints": TAINTS},
    {"consumes_counters": COUNTERS},
    {"attributes": LISTS},
    {"attributes": {"l": DeviceAttribute(strings=("a",))}},
    {"attributes": {"l": DeviceAttribute(bools=(True,))}},
    {"attributes": {"l": DeviceAttribute(versions=("1.0.0",))}},
]


def devices(count: int, **fields: Any) -> tuple[Device, ...]:
    return tuple(Device(name=f"d{number}", **fields) for number in range(count))


def sizes(parts: tuple[SliceContent, ...]) -> list[int]:
    return [len(part.devices) for part in parts]


@pytest.mark.parametrize("fields", FEATURES)
@pytest.mark.parametrize("count", [0, 1, 64, 65, 128, 129, 300])
def test_slices_are_within_the_limits(fields: dict[str, Any], count: int) -> None:
    limit = 64 if fields else 128
    parts = cut(Pool(devices=devices(count, **fields)))
    full, rest = divmod(count, limit)
    assert sizes(parts) == ([limit] * full + ([rest] if rest else []) or [0])
    assert all(is_limited(device) is bool(fields) for part in parts for device in part.devices)


def test_one_limited_device_halves_its_slice_only() -> None:
    mixed = (*devices(200), Device(name="t", taints=TAINTS), *(Device(name=f"e{number}") for number in range(100)))
    assert sizes(cut(Pool(devices=mixed))) == [128, 72, 64, 37]


@quick
@given(
    flags=st.lists(st.booleans(), max_size=400), gone=st.sets(st.integers(0, 400)), added=st.sets(st.integers(0, 400))
)
def test_order_and_limits_hold_whatever_was_published(flags: list[bool], gone: set[int], added: set[int]) -> None:
    listed = [Device(name=f"d{at}", taints=TAINTS if flag else ()) for at, flag in enumerate(flags)]
    before = cut(Pool(devices=tuple(device for at, device in enumerate(listed) if at not in added)))
    layout = [[device.name for device in part.devices] for part in before]
    after = tuple(device for at, device in enumerate(listed) if at not in gone)
    parts = cut(Pool(devices=after), layout)
    assert [device for part in parts for device in part.devices] == list(after)
    for part in parts:
        limit = limits.DEVICES_WITH_FEATURES if any(map(is_limited, part.devices)) else limits.DEVICES
        assert len(part.devices) <= limit
    assert len(parts) <= 2 * max(1, len(cut(Pool(devices=after))))


@quick
@given(count=st.integers(129, 600), at=st.integers(0, 599))
def test_removing_a_device_changes_one_slice(count: int, at: int) -> None:
    listed = devices(count)
    before = cut(Pool(devices=listed))
    layout = [[device.name for device in part.devices] for part in before]
    after = cut(Pool(devices=listed[: at % count] + listed[at % count + 1 :]), layout)
    if len(after) == len(before):
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_a_new_device_goes_beside_its_predecessor() -> None:
    listed = devices(200)
    layout = [[device.name for device in part.devices] for part in cut(Pool(devices=listed))]
    new = Device(name="new")
    parts = cut(Pool(devices=(*listed[:150], new, *listed[150:])), layout)
    assert sizes(parts) == [128, 73]
    assert sizes(cut(Pool(devices=(*listed, new)), layout)) == [128, 73]
    assert sizes(cut(Pool(devices=(new, *listed)), layout)) == [128, 73], "no room in the first: cut afresh"


def test_a_new_order_is_the_drivers_wish() -> None:
    listed = devices(200)
    layout = [[device.name for device in part.devices] for part in cut(Pool(devices=listed))]
    turned = tuple(reversed(listed))
    assert [device for part in cut(Pool(devices=turned), layout) for device in part.devices] == list(turned)


def test_counters_have_slices_of_their_own_in_front() -> None:
    sets = tuple(CounterSet(name=f"s{number}", counters={}) for number in range(9))
    parts = cut(
        Pool(devices=devices(2, consumes_counters=COUNTERS), shared_counters=sets, partition_type_attribute="d/t")
    )
    assert [len(part.shared_counters) for part in parts] == [8, 1, 0]
    assert sizes(parts) == [0, 0, 2]
    assert [part.partition_type_attribute for part in parts] == [None, None, "d/t"]


def test_fields_of_the_pool_are_in_every_slice() -> None:
    parts = cut(Pool(devices=devices(200), all_nodes=True, skip_node_operations=("*",)))
    assert all(part.all_nodes and part.skip_node_operations == ("*",) for part in parts)


def test_the_drivers_own_cut_is_kept() -> None:
    parts = (PoolSlice(devices=devices(1)), PoolSlice(), PoolSlice(per_device_node_selection=True))
    found = cut(Pool(slices=parts), [["d0", "x"]])
    assert sizes(found) == [1, 0, 0]
    assert [part.per_device_node_selection for part in found] == [False, False, True]
    assert cut(Pool(slices=())) == ()
