"""What the documentation pages promise to users, sentence by sentence (DRA concepts, features, taints; 1.37)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drakit.allocation import AllocationError, Features, score

if TYPE_CHECKING:
    from types import SimpleNamespace

EVERYTHING = Features.everything()
A = 'device.attributes["driver-a"]'


def _without(gate: str) -> Features:
    return msgspec.structs.replace(EVERYTHING, **{gate: False})


# Prioritized list


def _cats(build: SimpleNamespace, *kinds: str) -> list[Any]:
    devices = []
    for index, kind in enumerate(kinds):
        color, size = kind.split("-")
        devices.append(build.device(f"cat-{index}", attributes={"color": color, "size": size}))
    return [build.slice("cats", *devices)]


def _cat_claim(build: SimpleNamespace) -> Any:
    large = f'{A}.color == "black" && {A}.size == "large"'
    small = f'{A}.color == "white" && {A}.size == "small"'
    return build.claim(
        "c",
        build.first_available(
            "req-0",
            build.alternative("large-black", "class-a", large),
            build.alternative("small-white", "class-a", small, count=2),
        ),
    )


def test_the_first_alternative_that_can_be_allocated_is_chosen(build: SimpleNamespace) -> None:
    both = _cats(build, "white-small", "white-small", "black-large")
    assert build.chosen(build.allocate(both, [_cat_claim(build)])) == [["req-0/large-black=cat-2"]]
    only_small = _cats(build, "white-small", "white-large", "white-small")
    expected = [["req-0/small-white=cat-0", "req-0/small-white=cat-2"]]
    assert build.chosen(build.allocate(only_small, [_cat_claim(build)])) == expected


def test_the_pod_stays_pending_when_no_alternative_is_there(build: SimpleNamespace) -> None:
    assert build.allocate(_cats(build, "white-small", "black-small"), [_cat_claim(build)]) is None


def test_nodes_with_better_alternatives_score_higher(build: SimpleNamespace) -> None:
    claims = [_cat_claim(build)]
    better = build.allocate(_cats(build, "black-large"), claims)
    worse = build.allocate(_cats(build, "white-small", "white-small"), claims)
    assert score(claims, better) > score(claims, worse)


# Names and priorities


def test_pools_and_slices_are_evaluated_in_the_order_of_their_names(build: SimpleNamespace) -> None:
    slices = [
        build.slice("s2", build.device("d2"), pool="a", count=2),
        build.slice("s10", build.device("d10"), pool="a", count=2),
        build.slice("first", build.device("p10"), pool="p10"),
        build.slice("second", build.device("p2"), pool="p2"),
    ]
    claims = [build.claim("c", build.exactly("r", count=4))]
    assert build.chosen(build.allocate(slices, claims)) == [["r=d10", "r=d2", "r=p10", "r=p2"]]


def test_pools_without_binding_conditions_always_come_first(build: SimpleNamespace) -> None:
    slices = [
        build.slice("s1", build.device("bound", bindingConditions=["ready"]), build.device("free"), pool="a"),
        build.slice("s2", build.device("plain"), pool="z"),
    ]
    assert build.chosen(build.allocate(slices, [build.claim("c", build.exactly("r"))])) == [["r=plain"]]


# Admin access


def test_admin_access_grants_devices_in_use(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d0"), build.device("d1"))]
    held = [build.holding("h", {"device": "d0"})]
    claims = [build.claim("c", build.everything("r", adminAccess=True))]
    [result] = build.allocate(slices, claims, allocated=held)
    assert [(each.device, each.admin_access) for each in result.devices.results] == [("d0", True), ("d1", True)]
    with pytest.raises(AllocationError, match="admin access is requested, but the feature is disabled"):
        build.allocate(slices, claims, features=_without("admin_access"))


def test_admin_access_allocations_do_not_hold_devices(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d"))]
    held = [build.holding("h", {"device": "d", "adminAccess": True})]
    assert build.allocate(slices, [build.claim("c", build.exactly("r"))], allocated=held) is not None


# List attributes


def _rooted(build: SimpleNamespace, *roots: Any) -> list[Any]:
    return [build.slice("s", *(build.device(f"d{at}", attributes={"root": each}) for at, each in enumerate(roots)))]


def _pair(build: SimpleNamespace, constraint: str) -> list[Any]:
    return [build.claim("c", build.exactly("r", count=2), constraints=[{constraint: "driver-a/root"}])]


def test_match_needs_a_common_element_and_a_scalar_is_a_list_of_one(build: SimpleNamespace) -> None:
    claims = _pair(build, "matchAttribute")
    assert build.chosen(build.allocate(_rooted(build, ["a", "b"], ["c"], "b"), claims)) == [["r=d0", "r=d2"]]
    assert build.allocate(_rooted(build, ["a", "b"], ["c", "d"]), claims) is None


def test_distinct_needs_lists_without_common_elements(build: SimpleNamespace) -> None:
    claims = _pair(build, "distinctAttribute")
    assert build.chosen(build.allocate(_rooted(build, ["a", "b"], ["b", "c"], "c"), claims)) == [["r=d0", "r=d2"]]
    assert build.allocate(_rooted(build, ["a", "b"], ["b", "c"]), claims) is None


def test_without_the_gate_lists_match_nothing(build: SimpleNamespace) -> None:
    slices = _rooted(build, ["a"], ["a"])
    assert build.allocate(slices, _pair(build, "matchAttribute"), features=_without("list_type_attributes")) is None


# Partitionable devices


def _partitioned(build: SimpleNamespace, *amounts: str) -> list[Any]:
    devices = [
        build.device(f"device-{index + 1}", consumesCounters=[build.draws("gpu-1-counters", memory=amount)])
        for index, amount in enumerate(amounts)
    ]
    counters = [build.counter_set("gpu-1-counters", memory="8Gi")]
    return [
        build.slice("resourceslice-with-countersets", count=2, sharedCounters=counters),
        build.slice("resourceslice-with-devices", *devices, count=2),
    ]


def test_only_one_of_two_devices_that_draw_6_of_8_gi_can_be_allocated(build: SimpleNamespace) -> None:
    slices = _partitioned(build, "6Gi", "6Gi")
    assert build.chosen(build.allocate(slices, [build.claim("c", build.exactly("r"))])) == [["r=device-1"]]
    held = [build.holding("h", {"device": "device-1"})]
    assert build.allocate(slices, [build.claim("c", build.exactly("r"))], allocated=held) is None
    assert build.allocate(slices, [build.claim("c", build.exactly("r", count=2))]) is None


def test_a_device_may_draw_from_any_counter_set_of_its_pool(build: SimpleNamespace) -> None:
    slices = [
        build.slice("n0", count=3, sharedCounters=[build.counter_set("a", memory="1")]),
        build.slice("n1", count=3, sharedCounters=[build.counter_set("b", memory="1")]),
        build.slice(
            "s",
            build.device("d", consumesCounters=[build.draws("a", memory="1"), build.draws("b", memory="1")]),
            build.device("e", consumesCounters=[build.draws("b", memory="1")]),
            count=3,
        ),
    ]
    assert build.allocate(slices, [build.claim("c", build.exactly("r"))]) is not None
    assert build.allocate(slices, [build.claim("c", build.exactly("r", count=2))]) is None


def test_without_the_gate_devices_with_counters_are_not_allocated(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d", consumesCounters=[build.draws("a", memory="1")]), build.device("e"))]
    claims = [build.claim("c", build.exactly("r"))]
    features = _without("partitionable_devices")
    assert build.chosen(build.allocate(slices, claims, features=features)) == [["r=e"]]


# Consumable capacity


def _eth(build: SimpleNamespace) -> list[Any]:
    bandwidth = {"value": "10G", "requestPolicy": {"default": "1M", "validRange": {"min": "1M", "step": "8"}}}
    fields = {"allowMultipleAllocations": True, "capacity": {"bandwidth": bandwidth}}
    return [build.slice("s", build.device("eth1", attributes={"name": "eth1"}, **fields))]


def _bandwidth(build: SimpleNamespace, name: str, amount: str) -> Any:
    return build.exactly(name, capacity={"requests": {"bandwidth": amount}})


def test_the_result_has_the_consumed_capacity_and_a_share_id(build: SimpleNamespace) -> None:
    [result] = build.allocate(_eth(build), [build.claim("c", _bandwidth(build, "req-0", "1G"))])
    [device] = result.devices.results
    assert device.device == "eth1"
    assert {name: each.value() for name, each in device.consumed_capacity.items()} == {"bandwidth": 10**9}
    assert device.share_id


def test_claims_and_requests_share_a_device_until_its_capacity_is_used_up(build: SimpleNamespace) -> None:
    four = [build.claim(f"c{index}", _bandwidth(build, "r", "4G")) for index in range(2)]
    results = build.allocate(_eth(build), four)
    assert build.chosen(results) == [["r=eth1"], ["r=eth1"]]
    assert len({result.devices.results[0].share_id for result in results}) == 2
    assert build.allocate(_eth(build), [*four, build.claim("c2", _bandwidth(build, "r", "4G"))]) is None
    one_claim = build.claim("c", _bandwidth(build, "r0", "5G"), _bandwidth(build, "r1", "5G"))
    assert build.chosen(build.allocate(_eth(build), [one_claim])) == [["r0=eth1", "r1=eth1"]]


def test_a_request_without_capacity_takes_the_default(build: SimpleNamespace) -> None:
    [result] = build.allocate(_eth(build), [build.claim("c", build.exactly("r"))])
    assert result.devices.results[0].consumed_capacity["bandwidth"].value() == 10**6


def test_a_device_that_is_not_shareable_is_taken_as_a_whole(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("eth0", capacity={"bandwidth": "10G"}))]
    results = build.allocate(slices, [build.claim("c", _bandwidth(build, "r", "1G"))])
    assert results[0].devices.results[0].share_id is None
    assert results[0].devices.results[0].consumed_capacity == {}
    claims = [build.claim(f"c{index}", _bandwidth(build, "r", "1G")) for index in range(2)]
    assert build.allocate(slices, claims) is None


def test_a_selector_can_insist_on_shareable_devices(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("eth0", capacity={"bandwidth": "10G"})), *_eth(build)[:0]]
    shared = "device.allowMultipleAllocations == true"
    assert build.allocate(slices, [build.claim("c", build.exactly("r", "class-a", shared))]) is None
    assert build.allocate(_eth(build), [build.claim("c", build.exactly("r", "class-a", shared))]) is not None


def test_distinct_keeps_a_claim_from_taking_a_shareable_device_twice(build: SimpleNamespace) -> None:
    requests = [_bandwidth(build, "r0", "1G"), _bandwidth(build, "r1", "1G")]
    distinct = [{"distinctAttribute": "driver-a/name"}]
    assert build.allocate(_eth(build), [build.claim("c", *requests)]) is not None
    assert build.allocate(_eth(build), [build.claim("c", *requests, constraints=distinct)]) is None


# Binding conditions


def test_binding_conditions_are_copied_and_the_node_recorded(build: SimpleNamespace) -> None:
    fields = {
        "bindsToNode": True,
        "bindingConditions": ["dra.example.com/is-prepared"],
        "bindingFailureConditions": ["dra.example.com/preparing-failed"],
    }
    terms = [{"matchExpressions": [{"key": "accelerator-type", "operator": "In", "values": ["high-performance"]}]}]
    slices = [build.slice("s", build.device("gpu-1", **fields), nodeSelector={"nodeSelectorTerms": terms})]
    claims = [build.claim("c", build.exactly("r"))]
    fast = build.node("node-3", **{"accelerator-type": "high-performance"})
    [result] = build.allocate(slices, claims, at=fast)
    [device] = result.devices.results
    assert device.binding_conditions == ("dra.example.com/is-prepared",)
    assert device.binding_failure_conditions == ("dra.example.com/preparing-failed",)
    assert result.node_selector.node_selector_terms[0].match_fields[0].values == ("node-3",)
    assert build.allocate(slices, claims, at=build.node("node-4")) is None
    features = _without("device_binding_and_status")
    assert build.allocate(slices, claims, at=fast, features=features) is None


# Taints


@pytest.mark.parametrize(
    ("effect", "tolerations", "fits"),
    [
        ("NoSchedule", [], False),
        ("NoExecute", [], False),
        ("None", [], True),
        ("NoExecute", [{"operator": "Exists"}], True),
        ("NoExecute", [{"operator": "Exists", "effect": "NoSchedule"}], False),
        ("NoSchedule", [{"key": "k", "value": "v"}], True),
        ("NoSchedule", [{"key": "k", "value": "w"}], False),
        ("NoSchedule", [{"key": "k", "operator": "Exists"}], True),
    ],
)
@pytest.mark.parametrize("admin", [None, True])
def test_tainted_devices_need_a_toleration_even_with_admin_access(
    build: SimpleNamespace, effect: str, tolerations: list[Any], fits: bool, admin: bool | None
) -> None:
    slices = [build.slice("s", build.device("d", taints=[{"key": "k", "value": "v", "effect": effect}]))]
    fields = {"adminAccess": admin} if admin else {}
    claims = [build.claim("c", build.exactly("r", tolerations=tolerations, **fields))]
    assert (build.allocate(slices, claims) is not None) is fits


def test_all_needs_every_device_untainted_or_tolerated(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d0"), build.device("d1", taints=[{"key": "k", "effect": "NoSchedule"}]))]
    assert build.allocate(slices, [build.claim("c", build.everything("r"))]) is None
    tolerant = build.everything("r", tolerations=[{"operator": "Exists"}])
    assert build.chosen(build.allocate(slices, [build.claim("c", tolerant)])) == [["r=d0", "r=d1"]]
