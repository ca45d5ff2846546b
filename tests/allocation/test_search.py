"""Shapes that explode upstream (spec/allocator.md 7), counted in devices tried, and the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drakit.allocation import AllocatedState, AllocationTooDeep, Allocator, Budget, Features, Prunings

if TYPE_CHECKING:
    from types import SimpleNamespace

FEW = Budget(steps=400)


def _devices(build: SimpleNamespace, count: int, **attributes: Any) -> list[Any]:
    return [build.device(f"d{index:02}", attributes=dict(attributes)) for index in range(count)]


def _run(build: SimpleNamespace, devices: list[Any], claims: list[Any], **options: Any) -> Any:
    options.setdefault("budget", FEW)
    return build.chosen(build.allocate([build.slice("s", *devices)], claims, **options))


NEVER = 'device.driver == "nobody"'


def test_pf1_one_more_than_there_are(build: SimpleNamespace) -> None:
    assert _run(build, _devices(build, 31), [build.claim("c", build.exactly("r", count=32))]) is None


def test_pf2_half_of_them_and_then_something_impossible(build: SimpleNamespace) -> None:
    claim = build.claim("c", build.exactly("r0", count=15), build.exactly("r1", "class-a", NEVER))
    assert _run(build, _devices(build, 30), [claim]) is None


def test_pf3_one_more_request_than_devices(build: SimpleNamespace) -> None:
    requests = [build.exactly(f"r{index}") for index in range(16)]
    assert _run(build, _devices(build, 15), [build.claim("c", *requests)]) is None


def test_pf4_one_more_claim_than_devices(build: SimpleNamespace) -> None:
    claims = [build.claim(f"c{index}", build.exactly("r")) for index in range(16)]
    assert _run(build, _devices(build, 15), claims) is None


def test_pf5_many_alternatives_before_something_impossible(build: SimpleNamespace) -> None:
    requests = [
        build.first_available(f"r{index}", *(build.alternative(f"s{rank}") for rank in range(8))) for index in range(6)
    ]
    claim = build.claim("c", *requests, build.exactly("last", "class-a", NEVER))
    assert _run(build, _devices(build, 8), [claim]) is None


def test_pf6_gpus_and_a_nic_without_a_common_value(build: SimpleNamespace) -> None:
    gpus = [build.device(f"g{index:02}", attributes={"example.com/numa": 0}) for index in range(16)]
    nics = [build.device("n", attributes={"example.com/numa": 1})]
    slices = [build.slice("s", *gpus), build.slice("t", *nics, driver="driver-b")]
    claim = build.claim(
        "c",
        build.exactly("gpus", count=8),
        build.exactly("nic", "class-b"),
        constraints=[{"matchAttribute": "example.com/numa"}],
    )
    assert build.allocate(slices, [claim], budget=FEW) is None


def _counted(build: SimpleNamespace, amounts: list[str], total: str, claim: Any) -> Any:
    devices = [
        build.device(f"d{index:02}", consumesCounters=[build.draws("set", memory=amount, **{f"own{index}": "1"})])
        for index, amount in enumerate(amounts)
    ]
    counters = build.counter_set("set", memory=total, **{f"own{index}": "1" for index in range(len(amounts))})
    slices = [build.slice("n", count=2, sharedCounters=[counters]), build.slice("s", *devices, count=2)]
    return build.chosen(build.allocate(slices, [claim], budget=FEW))


def test_pf7_counters_admit_one_less(build: SimpleNamespace) -> None:
    assert _counted(build, ["1Gi"] * 16, "9Gi", build.claim("c", build.exactly("r", count=10))) is None


def test_pf7_counters_admit_them_without_the_first(build: SimpleNamespace) -> None:
    claim = build.claim("c", build.exactly("r", count=11))
    expected = [[f"r=d{index:02}" for index in range(1, 12)]]
    assert _counted(build, ["20Gi"] + ["10Gi"] * 22, "110Gi", claim) == expected


def test_pf8_the_first_claim_fits_and_the_second_does_not(build: SimpleNamespace) -> None:
    claims = [build.claim("c0", build.exactly("r", count=15)), build.claim("c1", build.exactly("r", "class-a", NEVER))]
    assert _run(build, _devices(build, 30), claims) is None


def test_pf9_the_later_request_needs_the_first_device(build: SimpleNamespace) -> None:
    devices = [build.device("first", attributes={"kind": "x"}), *_devices(build, 127, kind="y")]
    wanted = 'device.attributes["driver-a"].kind == "x"'
    claim = build.claim("c", build.exactly("r0", count=4), build.exactly("r1", "class-a", wanted))
    expected = [["r0=d00", "r0=d01", "r0=d02", "r0=d03", "r1=first"]]
    assert _run(build, devices, [claim]) == expected


@pytest.mark.parametrize("pruning", ["bounds", "interchange", "memo"])
def test_each_pruning_alone_copes_with_identical_devices(build: SimpleNamespace, pruning: str) -> None:
    only = Prunings(**{name: name == pruning for name in ("bounds", "interchange", "memo")})
    claim = build.claim("c", build.exactly("r0", count=8), build.exactly("r1", count=8))
    assert _run(build, _devices(build, 15), [claim], prunings=only, budget=Budget(steps=3000)) is None


def test_a_search_beyond_its_budget_names_the_claim(build: SimpleNamespace) -> None:
    plain = Prunings(bounds=False, interchange=False, memo=False)
    claims = [build.claim("easy", build.exactly("r")), build.claim("hard", build.exactly("r", count=15))]
    with pytest.raises(AllocationTooDeep, match="ns/hard") as raised:
        _run(build, _devices(build, 15), claims, prunings=plain, budget=Budget(steps=1000))
    assert raised.value.claim == "ns/hard"
    assert raised.value.steps == 1001


def test_time_is_a_budget_too(build: SimpleNamespace) -> None:
    plain = Prunings(bounds=False, interchange=False, memo=False)
    claim = build.claim("hard", build.exactly("r", count=32))
    with pytest.raises(AllocationTooDeep):
        _run(build, _devices(build, 31), [claim], prunings=plain, budget=Budget(steps=10**9, seconds=0.01))


def test_an_error_that_the_search_does_not_reach_stays_latent(build: SimpleNamespace) -> None:
    """Section 7: the second device would fail the selector, but the first one is enough."""
    devices = [build.device("good", attributes={"x": 1}), build.device("bad")]
    claim = build.claim("c", build.exactly("r", "class-a", 'device.attributes["driver-a"].x == 1'))
    for patience in (0, 24):
        assert _run(build, devices, [claim], prunings=Prunings(patience=patience)) == [["r=good"]]


def test_nodes_of_the_same_shape_share_one_search(build: SimpleNamespace) -> None:
    """Ten nodes with the same devices and the same ones in use: one outcome, ten results."""
    slices = [
        build.slice(f"s{index}", *_devices(build, 4), pool=f"p{index}", nodeName=f"n{index}") for index in range(10)
    ]
    held = [build.holding(f"h{index}", {"pool": f"p{index}", "device": "d00"}) for index in range(10)]
    allocator = Allocator(slices, build.default_classes(), AllocatedState.of(held), Features())
    claims = [build.claim("c", build.exactly("r"))]
    for index in range(10):
        results = allocator.allocate(build.node(f"n{index}"), claims)
        assert results is not None
        [device] = results[0].devices.results
        assert (device.pool, device.device) == (f"p{index}", "d01")
        selector = results[0].node_selector
        assert selector is not None
        assert selector.node_selector_terms[0].match_fields[0].values == (f"n{index}",)
    assert len(allocator.contents.outcomes) == 1


def test_claims_that_differ_in_name_only_share_one_search(build: SimpleNamespace) -> None:
    allocator = Allocator([build.slice("s", *_devices(build, 2))], build.default_classes())
    for name in ("a", "b"):
        assert build.chosen(allocator.allocate(build.node(), [build.claim(name, build.exactly("r"))])) == [["r=d00"]]
    assert len(allocator.contents.outcomes) == 1
