"""Defects of upstream, each decided: fixed, or kept as recorded (spec/allocator.md 1.18, docs/deviations.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drakit.allocation import AllocationError, Features

if TYPE_CHECKING:
    from types import SimpleNamespace

ONE_GIGA = {"memory": "1Gi"}


def _partitions(build: SimpleNamespace, total: str, *devices: dict[str, Any], **options: Any) -> list[Any]:
    counters = [build.counter_set("set", memory=total)]
    return [
        build.slice("counters", count=2, sharedCounters=counters, **options),
        build.slice("devices", *devices, count=2, **options),
    ]


def _drawing(build: SimpleNamespace, name: str, amount: str, **fields: Any) -> Any:
    return build.device(name, consumesCounters=[build.draws("set", memory=amount)], **fields)


# Fixed


def test_a_candidate_with_counters_that_fails_on_a_taint_leaves_no_charge(build: SimpleNamespace) -> None:
    """A."""
    tainted = _drawing(build, "tainted", "1Gi", taints=[{"key": "t", "effect": "NoSchedule"}])
    slices = _partitions(build, "1Gi", tainted, _drawing(build, "d", "1Gi"))
    assert build.chosen(build.allocate(slices, [build.claim("c", build.exactly("r"))])) == [["r=d"]]


def test_a_candidate_with_counters_that_fails_a_constraint_leaves_no_charge(build: SimpleNamespace) -> None:
    """B."""
    slices = _partitions(
        build, "1Gi", _drawing(build, "odd", "1Gi"), _drawing(build, "even", "1Gi", attributes={"numa": 0})
    )
    claim = build.claim("c", build.exactly("r"), constraints=[{"matchAttribute": "driver-a/numa"}])
    assert build.chosen(build.allocate(slices, [claim])) == [["r=even"]]


def test_going_back_over_a_shareable_device_gives_its_counters_back(build: SimpleNamespace) -> None:
    """F: `r1` needs the counters that `r0` drew first."""
    shared = _drawing(build, "shared", "1Gi", allowMultipleAllocations=True)
    special = _drawing(build, "special", "1Gi", attributes={"kind": "special"})
    free = build.device("free")
    slices = _partitions(build, "1Gi", shared, special, free)
    is_special = 'device.attributes["driver-a"].?kind.orValue("") == "special"'
    claim = build.claim("c", build.exactly("r0"), build.exactly("r1", "class-a", is_special))
    assert build.chosen(build.allocate(slices, [claim])) == [["r0=free", "r1=special"]]


def test_a_narrowed_list_is_restored_on_backtracking(build: SimpleNamespace) -> None:
    """C."""
    values = {"l0": ["a", "b"], "l1": ["a"], "l2": ["b"], "l3": ["b"]}
    devices = [build.device(name, attributes={"roots": each}) for name, each in values.items()]
    claim = build.claim("c", build.exactly("r", count=3), constraints=[{"matchAttribute": "driver-a/roots"}])
    assert build.chosen(build.allocate([build.slice("s", *devices)], [claim])) == [["r=l0", "r=l2", "r=l3"]]


def test_distinct_remembers_all_devices_of_a_request(build: SimpleNamespace) -> None:
    """D: a, b, a are not distinct."""
    devices = [build.device(f"d{index}", attributes={"kind": kind}) for index, kind in enumerate("aba")]
    claim = build.claim("c", build.exactly("r", count=3), constraints=[{"distinctAttribute": "driver-a/kind"}])
    assert build.allocate([build.slice("s", *devices)], [claim]) is None
    assert build.chosen(
        build.allocate([build.slice("s", *devices, build.device("d3", attributes={"kind": "c"}))], [claim])
    ) == [["r=d0", "r=d1", "r=d3"]]


def test_pools_of_one_name_in_two_drivers_have_counters_of_their_own(build: SimpleNamespace) -> None:
    """X1."""
    slices = [
        *_partitions(build, "1Gi", _drawing(build, "a", "1Gi")),
        build.slice("bc", count=2, driver="driver-b", sharedCounters=[build.counter_set("set", memory="2Gi")]),
        build.slice("bd", _drawing(build, "b", "2Gi"), count=2, driver="driver-b"),
    ]
    claim = build.claim("c", build.exactly("r0"), build.exactly("r1", "class-b"))
    assert build.chosen(build.allocate(slices, [claim])) == [["r0=a", "r1=b"]]


def test_an_all_request_that_fails_on_capacity_leaves_nothing_behind(build: SimpleNamespace) -> None:
    """X3b: All of s0 adds `small` to the constraint, then has no room; s1 must be free to choose `big`."""
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": "2"}}
    small = build.device("small", attributes={"kind": "small"}, **shared)
    big = build.device("big", attributes={"kind": "big"})
    all_small = 'device.attributes["driver-a"].kind == "small"'
    all_big = 'device.attributes["driver-a"].kind == "big"'
    capacity = {"requests": {"memory": "2"}}
    claim = build.claim(
        "c",
        build.exactly("r0", "class-a", all_small, capacity=capacity),
        build.first_available(
            "r1",
            build.alternative("s0", "class-a", all_small, mode="All", capacity=capacity),
            build.alternative("s1", "class-a", all_big),
        ),
        constraints=[{"matchAttribute": "driver-a/kind", "requests": ["r1"]}],
    )
    assert build.chosen(build.allocate([build.slice("s", small, big)], [claim])) == [["r0=small", "r1/s1=big"]]


# Kept


def test_one_overdrawn_counter_set_blocks_all_devices_with_counters_of_the_pool(build: SimpleNamespace) -> None:
    """X2."""
    counters = [build.counter_set("set", memory="1Gi"), build.counter_set("other", memory="4Gi")]
    other = build.device("other", consumesCounters=[build.draws("other", memory="1Gi")])
    devices = [_drawing(build, "held", "2Gi"), other, build.device("plain")]
    slices = [build.slice("counters", count=2, sharedCounters=counters), build.slice("devices", *devices, count=2)]
    claim = build.claim("c", build.exactly("r"))
    allocated = [build.holding("h", {"device": "held"})]
    assert build.chosen(build.allocate(slices, [claim], allocated=allocated)) == [["r=plain"]]


def test_all_violating_a_constraint_is_fatal_even_inside_first_available(build: SimpleNamespace) -> None:
    """X4."""
    devices = [build.device(f"d{index}", attributes={"numa": index}) for index in range(2)]
    request = build.first_available("r", build.alternative("s0", mode="All"), build.alternative("s1"))
    claim = build.claim("c", request, constraints=[{"matchAttribute": "driver-a/numa"}])
    with pytest.raises(AllocationError, match="cannot add device driver-a/pool/d1 because a claim constraint"):
        build.allocate([build.slice("s", *devices)], [claim])


def test_a_broken_pool_of_any_driver_makes_all_fatal(build: SimpleNamespace) -> None:
    """X5."""
    slices = [build.slice("s", build.device("d")), build.slice("t", build.device("e"), driver="driver-b", count=2)]
    with pytest.raises(AllocationError, match="resource pool driver-b/pool is currently being updated"):
        build.allocate(slices, [build.claim("c", build.everything("r"))])


def test_a_shareable_device_without_capacity_is_charged_again(build: SimpleNamespace) -> None:
    """X6."""
    shared = _drawing(build, "shared", "1Gi", allowMultipleAllocations=True)
    allocated = [build.holding("h", {"device": "shared", "shareID": "s"})]
    claims = [build.claim("c", build.exactly("r"))]
    assert build.allocate(_partitions(build, "1Gi", shared), claims, allocated=allocated) is None
    assert build.allocate(_partitions(build, "2Gi", shared), claims, allocated=allocated) is not None


def test_a_dedicated_device_with_live_shares_is_allocated_when_its_capacity_allows(build: SimpleNamespace) -> None:
    """X7."""
    allocated = [build.holding("h", {"device": "d", "shareID": "s", "consumedCapacity": {"memory": "1"}})]
    roomy = build.device(
        "d", capacity={"memory": {"value": "2", "requestPolicy": {"default": "1", "validValues": ["1"]}}}
    )
    full = build.device("d", capacity={"memory": "2"})
    claims = [build.claim("c", build.exactly("r"))]
    assert build.chosen(build.allocate([build.slice("s", roomy)], claims, allocated=allocated)) == [["r=d"]]
    assert build.allocate([build.slice("s", full)], claims, allocated=allocated) is None


def test_more_slices_than_announced_are_incomplete(build: SimpleNamespace) -> None:
    """X9."""
    slices = [build.slice("s0", build.device("d0")), build.slice("s1", build.device("d1"))]
    assert build.allocate(slices, [build.claim("c", build.exactly("r"))]) is None


def test_admin_access_first_blocks_a_normal_request_in_the_same_call(build: SimpleNamespace) -> None:
    """G2."""
    slices = [build.slice("s", build.device("d"))]
    admin, normal = build.exactly("r", adminAccess=True), build.exactly("r")
    assert build.allocate(slices, [build.claim("c0", admin), build.claim("c1", normal)]) is None
    both = build.allocate(slices, [build.claim("c0", normal), build.claim("c1", admin)])
    assert build.chosen(both) == [["r=d"], ["r=d"]]


def test_constraints_see_the_qualified_value_of_an_attribute_published_twice(build: SimpleNamespace) -> None:
    """X12."""
    devices = [build.device(f"d{index}", attributes={"x": 0, "driver-a/x": index}) for index in range(2)]
    claim = build.claim("c", build.exactly("r", count=2), constraints=[{"distinctAttribute": "driver-a/x"}])
    assert build.chosen(build.allocate([build.slice("s", *devices)], [claim])) == [["r=d0", "r=d1"]]


def test_a_count_near_the_end_of_64_bits_is_refused_instead_of_a_panic(build: SimpleNamespace) -> None:
    claim = build.claim("c", build.exactly("r0", count=3), build.exactly("r1", count=2**63 - 1))
    with pytest.raises(AllocationError, match="exceeds the claim limit of 32"):
        build.allocate([], [claim])


# Rules


def _rule(build: SimpleNamespace, selector: dict[str, str] | None) -> Any:
    from drakit import api

    spec: dict[str, Any] = {"taint": {"key": "t", "effect": "NoSchedule"}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return api.decode({"metadata": {"name": "rule"}, "spec": spec}, "DeviceTaintRule")


@pytest.mark.parametrize(
    ("selector", "left"),
    [
        (None, ["r=d0"]),
        ({}, None),
        ({"driver": "driver-a"}, None),
        ({"driver": "driver-b"}, ["r=d0"]),
        ({"pool": "pool"}, None),
        ({"device": "d0"}, ["r=d1"]),
        ({"driver": "driver-a", "pool": "other"}, ["r=d0"]),
    ],
)
def test_rules_taint_what_their_selector_matches_and_nothing_without_one(
    build: SimpleNamespace, selector: dict[str, str] | None, left: list[str] | None
) -> None:
    slices = [build.slice("s", build.device("d0"), build.device("d1"))]
    results = build.allocate(slices, [build.claim("c", build.exactly("r"))], rules=[_rule(build, selector)])
    assert build.chosen(results) == ([left] if left else None)


def test_rules_come_and_go(build: SimpleNamespace) -> None:
    from drakit.allocation import Allocator

    allocator = Allocator([build.slice("s", build.device("d"))], build.default_classes())
    claims = [build.claim("c", build.exactly("r"))]
    allocator.update_rule(_rule(build, {}))
    assert allocator.allocate(build.node(), claims) is None
    allocator.remove_rule("rule")
    assert build.chosen(allocator.allocate(build.node(), claims)) == [["r=d"]]


def test_taints_are_ignored_without_the_gate(build: SimpleNamespace) -> None:
    features = msgspec.structs.replace(Features(), device_taints=False)
    slices = [build.slice("s", build.device("d", taints=[{"key": "t", "effect": "NoExecute"}]))]
    claims = [build.claim("c", build.exactly("r"))]
    assert build.allocate(slices, claims) is None
    assert build.chosen(build.allocate(slices, claims, features=features)) == [["r=d"]]
