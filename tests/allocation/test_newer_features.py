"""What Kubernetes 1.37 added and no recording covers: the sentences of spec/allocator.md 1.16 and of the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drakit.allocation import AllocationError, Features

if TYPE_CHECKING:
    from types import SimpleNamespace

EVERYTHING = Features.everything()


def _without(gate: str) -> Features:
    return msgspec.structs.replace(EVERYTHING, **{gate: False})


def _able_node(build: SimpleNamespace) -> Any:
    node = build.node()
    status = msgspec.structs.replace(node.status, declared_features=("DRAOptionalNodeOperations",))
    return msgspec.structs.replace(node, status=status)


# skipNodeOperations (KEP-5945)


def test_skip_node_operations_are_copied_to_every_result_of_the_slice(build: SimpleNamespace) -> None:
    slice_ = build.slice("s", build.device("d0"), build.device("d1"), skipNodeOperations=["*"])
    [result] = build.allocate([slice_], [build.claim("c", build.exactly("r", count=2))], at=_able_node(build))
    assert [each.skip_node_operations for each in result.devices.results] == [("*",), ("*",)]


def test_without_the_gate_a_slice_that_skips_operations_offers_nothing(build: SimpleNamespace) -> None:
    slice_ = build.slice("s", build.device("d0"), skipNodeOperations=["*"])
    claims = [build.claim("c", build.exactly("r"))]
    features = _without("optional_node_operations")
    assert build.allocate([slice_], claims, features=features, at=_able_node(build)) is None


def test_a_node_that_does_not_declare_the_feature_cannot_use_the_devices(build: SimpleNamespace) -> None:
    skipping = build.slice("s", build.device("d0"), skipNodeOperations=["*"])
    plain = build.slice("t", build.device("d1"), pool="plain")
    claims = [build.claim("c", build.exactly("r"))]
    assert build.chosen(build.allocate([skipping, plain], claims)) == [["r=d1"]]
    assert build.chosen(build.allocate([skipping, plain], claims, at=_able_node(build))) == [["r=d1"]]
    assert build.allocate([skipping], claims) is None


def test_without_skipped_operations_nothing_is_copied(build: SimpleNamespace) -> None:
    [result] = build.allocate([build.slice("s", build.device("d0"))], [build.claim("c", build.exactly("r"))])
    assert result.devices.results[0].skip_node_operations == ()


# Compatibility groups (KEP-5963)


def _gpu(build: SimpleNamespace, *devices: Any, sets: tuple[str, ...] = ("gpu-0",), **options: Any) -> list[Any]:
    counters = [build.counter_set(name, memory="8Gi") for name in sets]
    return [
        build.slice("counters", count=2, sharedCounters=counters, **options),
        build.slice("devices", *devices, count=2, **options),
    ]


def _partition(build: SimpleNamespace, name: str, groups: list[str] | None, *sets: str) -> Any:
    entries = [build.draws(each, groups, memory="2Gi") for each in sets or ("gpu-0",)]
    return build.device(name, consumesCounters=entries)


def test_devices_on_one_counter_set_need_a_group_in_common(build: SimpleNamespace) -> None:
    slices = _gpu(build, _partition(build, "mig", ["mig"]), _partition(build, "vgpu", ["vgpu"]))
    assert build.allocate(slices, [build.claim("c", build.exactly("r", count=2))]) is None
    slices = _gpu(
        build,
        _partition(build, "mig", ["mig"]),
        _partition(build, "vgpu", ["vgpu"]),
        _partition(build, "mig2", ["mig"]),
    )
    assert build.chosen(build.allocate(slices, [build.claim("c", build.exactly("r", count=2))])) == [
        ["r=mig", "r=mig2"]
    ]


def test_the_intersection_of_all_devices_must_not_become_empty(build: SimpleNamespace) -> None:
    slices = _gpu(
        build,
        _partition(build, "ab", ["a", "b"]),
        _partition(build, "bc", ["b", "c"]),
        _partition(build, "ac", ["a", "c"]),
    )
    assert build.chosen(build.allocate(slices, [build.claim("c", build.exactly("r", count=2))])) == [["r=ab", "r=bc"]]
    assert build.allocate(slices, [build.claim("c", build.exactly("r", count=3))]) is None


@pytest.mark.parametrize("none", [None, []])
def test_a_device_without_groups_only_goes_with_others_without_groups(
    build: SimpleNamespace, none: list[str] | None
) -> None:
    slices = _gpu(
        build, _partition(build, "plain", none), _partition(build, "mig", ["mig"]), _partition(build, "plain2", none)
    )
    claims = [build.claim("c", build.exactly("r", count=2))]
    assert build.chosen(build.allocate(slices, claims)) == [["r=plain", "r=plain2"]]
    assert (
        build.allocate(
            slices[:1] + _gpu(build, _partition(build, "p", none), _partition(build, "m", ["m"]))[1:], claims
        )
        is None
    )


def test_different_counter_sets_are_never_compared(build: SimpleNamespace) -> None:
    slices = _gpu(
        build,
        _partition(build, "mig", ["mig"], "gpu-0"),
        _partition(build, "vgpu", ["vgpu"], "gpu-1"),
        sets=("gpu-0", "gpu-1"),
    )
    assert build.chosen(build.allocate(slices, [build.claim("c", build.exactly("r", count=2))])) == [
        ["r=mig", "r=vgpu"]
    ]


def test_a_device_with_two_entries_must_pass_both(build: SimpleNamespace) -> None:
    wide = build.device(
        "wide",
        consumesCounters=[build.draws("gpu-0", ["mig"], memory="2Gi"), build.draws("gpu-1", ["vgpu"], memory="2Gi")],
    )
    one = _partition(build, "one", ["mig"], "gpu-0")
    two = _partition(build, "two", ["mig"], "gpu-1")
    slices = _gpu(build, wide, two, one, sets=("gpu-0", "gpu-1"))
    assert build.chosen(build.allocate(slices, [build.claim("c", build.exactly("r", count=2))])) == [
        ["r=wide", "r=one"]
    ]


def test_groups_hold_across_claims_of_one_call(build: SimpleNamespace) -> None:
    slices = _gpu(build, _partition(build, "mig", ["mig"]), _partition(build, "vgpu", ["vgpu"]))
    claims = [build.claim("c0", build.exactly("r")), build.claim("c1", build.exactly("r"))]
    assert build.allocate(slices, claims) is None


def test_groups_of_allocated_devices_come_from_the_current_slices(build: SimpleNamespace) -> None:
    slices = _gpu(
        build, _partition(build, "mig", ["mig"]), _partition(build, "vgpu", ["vgpu"]), _partition(build, "m2", ["mig"])
    )
    claims = [build.claim("c", build.exactly("r"))]
    allocated = [build.holding("h", {"device": "mig"})]
    assert build.chosen(build.allocate(slices, claims, allocated=allocated)) == [["r=m2"]]


def test_groups_narrowed_by_a_device_are_given_back_on_backtracking(build: SimpleNamespace) -> None:
    """The first device only goes with `b`; the only pair that fits a later request is `a` with `a`."""
    slices = _gpu(
        build,
        _partition(build, "b", ["b"]),
        _partition(build, "a", ["a"]),
        build.device(
            "special", attributes={"special": True}, consumesCounters=[build.draws("gpu-0", ["a"], memory="2Gi")]
        ),
    )
    claims = [
        build.claim(
            "c",
            build.exactly("r0"),
            build.exactly("r1", "class-a", 'device.attributes["driver-a"].?special.orValue(false)'),
        )
    ]
    assert build.chosen(build.allocate(slices, claims)) == [["r0=a", "r1=special"]]


def test_without_the_gate_a_pool_with_groups_is_incomplete(build: SimpleNamespace) -> None:
    slices = _gpu(build, _partition(build, "mig", ["mig"]), build.device("other"))
    features = _without("device_compatibility_groups")
    assert build.allocate(slices, [build.claim("c", build.exactly("r"))], features=features) is None
    with pytest.raises(AllocationError, match="currently being updated"):
        build.allocate(slices, [build.claim("c", build.everything("r"))], features=features)


@pytest.mark.parametrize("none", [None, []])
def test_without_the_gate_empty_lists_do_not_count(build: SimpleNamespace, none: list[str] | None) -> None:
    slices = _gpu(build, _partition(build, "plain", none))
    claims = [build.claim("c", build.exactly("r"))]
    assert build.chosen(build.allocate(slices, claims, features=_without("device_compatibility_groups"))) == [
        ["r=plain"]
    ]


def test_groups_are_scoped_to_the_pool(build: SimpleNamespace) -> None:
    slices = [
        *_gpu(build, _partition(build, "mig", ["mig"]), pool="p0"),
        *_gpu(build, _partition(build, "vgpu", ["vgpu"]), pool="p1"),
    ]
    assert build.chosen(build.allocate(slices, [build.claim("c", build.exactly("r", count=2))])) == [
        ["r=mig", "r=vgpu"]
    ]


# Derived attributes (KEP-6080)


def _derived(name: str, expression: str) -> dict[str, Any]:
    return {"derivedAttributes": [{"name": name, "expression": expression}]}


def _gpu_and_nic(build: SimpleNamespace) -> list[Any]:
    gpus = [build.device(f"gpu{index}", attributes={"numa": index}) for index in range(2)]
    nics = [build.device(f"nic{index}", attributes={"numaNode": 1 - index}) for index in range(2)]
    return [build.slice("a", *gpus), build.slice("b", *nics, driver="driver-b")]


def test_a_match_constraint_aligns_requests_on_a_derived_attribute(build: SimpleNamespace) -> None:
    claim = build.claim(
        "c",
        build.exactly("gpu", **_derived("derived/numa", 'device.attributes["driver-a"].numa')),
        build.exactly("nic", "class-b", **_derived("derived/numa", 'device.attributes["driver-b"].numaNode')),
        constraints=[{"requests": ["gpu", "nic"], "matchAttribute": "derived/numa"}],
    )
    assert build.chosen(build.allocate(_gpu_and_nic(build), [claim])) == [["gpu=gpu0", "nic=nic1"]]


def test_a_distinct_constraint_works_on_a_derived_attribute(build: SimpleNamespace) -> None:
    claim = build.claim(
        "c",
        build.exactly("r", count=2, **_derived("derived/half", 'device.attributes["driver-a"].index / 2')),
        constraints=[{"distinctAttribute": "derived/half"}],
    )
    devices = [build.device(f"d{index}", attributes={"index": index}) for index in range(4)]
    assert build.chosen(build.allocate([build.slice("s", *devices)], [claim])) == [["r=d0", "r=d2"]]


def test_a_derived_attribute_shadows_one_of_the_driver(build: SimpleNamespace) -> None:
    devices = [build.device(f"d{index}", attributes={"numa": index}) for index in range(2)]
    constraint = [{"matchAttribute": "driver-a/numa"}]
    plain = build.claim("c", build.exactly("r", count=2), constraints=constraint)
    shadowed = build.claim("c", build.exactly("r", count=2, **_derived("driver-a/numa", "7")), constraints=constraint)
    assert build.allocate([build.slice("s", *devices)], [plain]) is None
    assert build.chosen(build.allocate([build.slice("s", *devices)], [shadowed])) == [["r=d0", "r=d1"]]


def test_selectors_do_not_see_derived_attributes(build: SimpleNamespace) -> None:
    claim = build.claim(
        "c",
        build.exactly("r", "class-a", '"numa" in device.attributes["derived"]', **_derived("derived/numa", "7")),
        constraints=[{"matchAttribute": "derived/numa"}],
    )
    assert build.allocate([build.slice("s", build.device("d"))], [claim]) is None


def test_a_derived_attribute_is_computed_only_for_devices_that_the_selectors_accept(build: SimpleNamespace) -> None:
    devices = [build.device("bare"), build.device("full", attributes={"numa": 0})]
    claim = build.claim(
        "c",
        build.exactly(
            "r",
            "class-a",
            'has(device.attributes["driver-a"].numa)',
            **_derived("derived/numa", 'device.attributes["driver-a"].numa'),
        ),
        constraints=[{"matchAttribute": "derived/numa"}],
    )
    assert build.chosen(build.allocate([build.slice("s", *devices)], [claim])) == [["r=full"]]


def test_an_error_in_a_derived_attribute_ends_the_attempt(build: SimpleNamespace) -> None:
    claim = build.claim(
        "c",
        build.exactly("r", **_derived("derived/numa", 'device.attributes["driver-a"].numa')),
        constraints=[{"matchAttribute": "derived/numa"}],
    )
    with pytest.raises(AllocationError, match=r"derived/numa.*driver-a/pool/bare.*no such key: numa") as raised:
        build.allocate([build.slice("s", build.device("bare"))], [claim])
    assert raised.value.path == "spec.devices.requests[0].exactly.derivedAttributes[0]"


@pytest.mark.parametrize(
    "expression", ['"text"', "true", "7", 'semver("1.2.3")'], ids=["string", "bool", "int", "semver"]
)
def test_derived_attributes_may_be_any_scalar(build: SimpleNamespace, expression: str) -> None:
    claim = build.claim(
        "c",
        build.exactly("r", count=2, **_derived("derived/x", expression)),
        constraints=[{"matchAttribute": "derived/x"}],
    )
    slices = [build.slice("s", build.device("d0"), build.device("d1"))]
    assert build.chosen(build.allocate(slices, [claim])) == [["r=d0", "r=d1"]]


def test_derived_lists_need_the_gate_for_lists(build: SimpleNamespace) -> None:
    claim = build.claim(
        "c",
        build.exactly("r", count=2, **_derived("derived/x", '["a", device.driver]')),
        constraints=[{"matchAttribute": "derived/x"}],
    )
    slices = [build.slice("s", build.device("d0"), build.device("d1"))]
    assert build.chosen(build.allocate(slices, [claim])) == [["r=d0", "r=d1"]]
    assert build.allocate(slices, [claim], features=_without("list_type_attributes")) is None


def test_alternatives_have_derived_attributes_of_their_own(build: SimpleNamespace) -> None:
    claim = build.claim(
        "c",
        build.first_available(
            "gpu",
            build.alternative("s0", **_derived("derived/x", "1")),
            build.alternative("s1", **_derived("derived/x", "2")),
        ),
        build.exactly("nic", "class-b", **_derived("derived/x", "2")),
        constraints=[{"matchAttribute": "derived/x"}],
    )
    assert build.chosen(build.allocate(_gpu_and_nic(build), [claim])) == [["gpu/s1=gpu0", "nic=nic0"]]


def test_without_the_gate_derived_attributes_are_refused(build: SimpleNamespace) -> None:
    claim = build.claim(
        "c", build.exactly("r", **_derived("derived/x", "1")), constraints=[{"matchAttribute": "derived/x"}]
    )
    with pytest.raises(AllocationError, match="DRADerivedAttributes feature is disabled"):
        build.allocate([build.slice("s", build.device("d"))], [claim], features=_without("derived_attributes"))


# Fractional ranges (DRAFractionalCapacityRange)


def _shared(build: SimpleNamespace, value: str, **range_: str) -> list[Any]:
    policy = {"default": range_["min"], "validRange": range_}
    capacity = {"cores": {"value": value, "requestPolicy": policy}}
    return [build.slice("s", build.device("d", allowMultipleAllocations=True, capacity=capacity))]


def _consumed(build: SimpleNamespace, slices: list[Any], requested: str, features: Features) -> str | None:
    claim = build.claim("c", build.exactly("r", capacity={"requests": {"cores": requested}}))
    results = build.allocate(slices, [claim], features=features)
    return None if results is None else str(results[0].devices.results[0].consumed_capacity["cores"])


@pytest.mark.parametrize(
    ("requested", "exact", "rounded"),
    [("600m", "1", "1"), ("1500m", "1500m", "2"), ("1", "1", "1"), ("2100m", "2500m", "3")],
)
def test_fractional_steps_are_exact_with_the_gate(
    build: SimpleNamespace, requested: str, exact: str, rounded: str
) -> None:
    slices = _shared(build, "4", min="500m", step="500m")
    assert _consumed(build, slices, requested, EVERYTHING) == exact
    assert _consumed(build, slices, requested, _without("fractional_capacity_range")) == rounded


def test_whole_ranges_round_up_to_whole_units_even_with_the_gate(build: SimpleNamespace) -> None:
    assert _consumed(build, _shared(build, "4", min="1", step="1"), "1500m", EVERYTHING) == "2"
