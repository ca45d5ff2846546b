"""What explanations say: one test per rule of spec/allocator.md 1.17, then conflicts, changes and the text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drakit.allocation import AllocatedState, AllocationError, Allocator, Budget, Features, Prunings, reasons
from drakit.allocation.explain import (
    Change,
    ConstraintRef,
    DropConstraint,
    DropSelector,
    FreeDevice,
    LowerCapacity,
    LowerCount,
    RequestRef,
    Tolerate,
    text,
)
from drakit.allocation.explain import (
    reasons as more,
)
from drakit.allocation.explain.conflicts import minimal_core
from drakit.allocation.explain.parts import Parts
from drakit.allocation.explain.world import Effort, World

if TYPE_CHECKING:
    from types import SimpleNamespace

    from drakit.allocation.explain import DeviceReport, Report

MEMORY = 'device.capacity["driver-a"].memory.compareTo(quantity("80Gi")) >= 0'
PLAIN = Prunings(bounds=False, interchange=False, memo=False)
NUMA = [{"matchAttribute": "driver-a/numa"}]
GIB = 2**30 * 10**9


@pytest.fixture
def explain(build: SimpleNamespace) -> Any:
    """One explanation on node-1, everything on."""

    def run(
        slices: list[Any],
        claims: list[Any],
        *,
        allocated: list[Any] | None = None,
        features: Features | None = None,
        at: Any = None,
        **options: Any,
    ) -> Report:
        allocator = Allocator(
            slices,
            build.default_classes(),
            AllocatedState.of(allocated or []),
            features or Features.everything(),
            **options,
        )
        return allocator.explain(at or build.node(), claims)

    return run


def only(report: Report, device: str, request: str = "r") -> DeviceReport:
    """The report of one device for one request."""
    return next(
        each
        for claim in report.claims
        for one in claim.requests
        if one.request == request
        for each in one.devices
        if each.device == device
    )


def off(**gates: bool) -> Features:
    return msgspec.structs.replace(Features.everything(), **gates)


# --- one reason per rule


def test_rule_1_the_pool_is_obsolete_here(explain: Any, build: SimpleNamespace) -> None:
    slices = [
        build.slice("old", build.device("d"), count=2),
        build.slice("new", build.device("d"), generation=2, nodeName="node-2"),
    ]
    report = explain(slices, [build.claim("c", build.exactly("r"))])
    assert [(each.pool, each.devices, each.reason) for each in report.pools] == [
        ("pool", 1, reasons.PoolObsolete(generation=1, newest=2))
    ]
    assert "  pool driver-a/pool (1 device): generation 1 is obsolete, other nodes have 2" in report.lines()
    assert "the node sees no devices; 1 slice for other nodes" in report.lines()[-1]


def test_rule_2_the_pool_is_incomplete(explain: Any, build: SimpleNamespace) -> None:
    report = explain([build.slice("s", build.device("d"), count=3)], [build.claim("c", build.exactly("r"))])
    incomplete = reasons.PoolIncomplete(seen=1, announced=3)
    assert report.pools[0].reason == incomplete
    assert only(report, "d").reasons == (incomplete,)
    assert "1 device: 1 in an incomplete pool (1 of 3 slices seen)" in report.lines()[-1]


def test_rule_3_the_pool_is_invalid(explain: Any, build: SimpleNamespace) -> None:
    report = explain([build.slice("s", build.device("d"), build.device("d"))], [build.claim("c", build.exactly("r"))])
    assert report.outcome == "does not fit"
    assert "driver-a/pool: duplicate device name d" in report.error
    assert only(report, "d").reasons == (reasons.PoolInvalid(reason="duplicate device name d"),)


def test_rule_4_slices_and_devices_are_for_other_nodes(explain: Any, build: SimpleNamespace) -> None:
    slices = [
        build.slice("elsewhere", build.device("d"), nodeName="node-2", pool="other"),
        build.slice(
            "s",
            build.device("far", nodeName="node-2"),
            build.device("near", nodeName="node-1"),
            perDeviceNodeSelection=True,
        ),
    ]
    report = explain(slices, [build.claim("c", build.exactly("r", count=2))])
    assert report.elsewhere == 1
    assert only(report, "far").reasons == (reasons.NotForNode(),)
    assert only(report, "near").usable


def test_rule_5_slices_are_hidden_by_a_gate(explain: Any, build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d", allNodes=True), perDeviceNodeSelection=True)]
    report = explain(slices, [build.claim("c", build.exactly("r"))], features=off(partitionable_devices=False))
    assert [each.slice for each in report.slices] == ["s"]
    assert "DRAPartitionableDevices feature is off" in report.slices[0].message
    assert report.elsewhere == 0


def test_rule_6_binding_conditions_need_their_gate(explain: Any, build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d", bindingConditions=["ready"]))]
    report = explain(slices, [build.claim("c", build.exactly("r"))], features=off(device_binding_and_status=False))
    (reason,) = only(report, "d").reasons
    assert isinstance(reason, reasons.FeatureOff)
    assert (reason.number, reason.gate) == (6, "DRADeviceBindingConditions")


def test_rule_7_a_class_selector_is_false(explain: Any, build: SimpleNamespace) -> None:
    report = explain([build.slice("s", build.device("d"))], [build.claim("c", build.exactly("r", "class-b"))])
    (reason,) = only(report, "d").reasons
    assert isinstance(reason, more.SelectorUnmet)
    assert (reason.source, reason.index, reason.owner) == ("class", 0, "class-b")
    assert "1 fails selector 0 of class class-b: driver driver-a != driver-b" in report.lines()[-1]
    assert report.changes == ()


def test_rule_8_a_request_selector_is_false(explain: Any, build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d", capacity={"memory": "40Gi"}))]
    report = explain(slices, [build.claim("c", build.exactly("r", "class-a", "true", MEMORY))])
    (reason,) = only(report, "d").reasons
    assert isinstance(reason, more.SelectorUnmet)
    assert (reason.source, reason.index, [str(each) for each in reason.facts]) == ("claim", 1, ["memory 40Gi < 80Gi"])
    assert report.changes == (Change((DropSelector("ns/c", "r", 1, reason.facts),)),)


@pytest.mark.parametrize(
    ("expression", "compiling"), [('device.attributes["driver-a"].x == 1', False), ("device.", True)]
)
def test_rule_9_a_selector_fails(explain: Any, build: SimpleNamespace, expression: str, compiling: bool) -> None:
    slices = [build.slice("s", build.device("d"), build.device("e", attributes={"x": 1}))]
    report = explain(slices, [build.claim("c", build.exactly("r", "class-a", expression))])
    assert report.outcome == "error"
    (reason,) = only(report, "d").reasons
    assert isinstance(reason, reasons.SelectorFailed)
    assert reason.compiling is compiling
    if not compiling:
        assert only(report, "e").usable
        assert isinstance(only(report, "e").reasons[0], more.SearchEnded)
        assert "1 would do, but an error ends the search first" in report.lines()[-1]


def test_rule_10_somebody_holds_the_device(explain: Any, build: SimpleNamespace) -> None:
    report = explain(
        [build.slice("s", build.device("d"))],
        [build.claim("c", build.exactly("r"))],
        allocated=[build.holding("h", {"device": "d"})],
    )
    assert only(report, "d").reasons == (reasons.HeldExclusively(holders=("ns/h",)),)
    assert report.changes == (Change((FreeDevice("driver-a", "pool", "d", ("ns/h",)),)),)
    assert report.lines()[-1] == "  would fit: free driver-a/pool/d, held by ns/h"


def test_rule_11_another_request_needs_the_device(explain: Any, build: SimpleNamespace) -> None:
    claims = [build.claim("c", build.exactly("r")), build.claim("e", build.exactly("q"))]
    report = explain([build.slice("s", build.device("d"))], claims)
    assert only(report, "d").reasons == (reasons.TakenInThisCall(claim="ns/e", request="q"),)
    assert only(report, "d", "q").reasons == (reasons.TakenInThisCall(claim="ns/c", request="r"),)


def test_rule_12_admin_access_twice_in_one_claim(explain: Any, build: SimpleNamespace) -> None:
    requests = [build.exactly("q", adminAccess=True), build.exactly("r", adminAccess=True)]
    report = explain([build.slice("s", build.device("d"))], [build.claim("c", *requests)])
    assert only(report, "d").reasons == (reasons.AdminTwice(request="q"),)


def test_rule_13_counters_need_their_gate(explain: Any, build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d", consumesCounters=[build.draws("set", a="1")]))]
    report = explain(slices, [build.claim("c", build.exactly("r"))], features=off(partitionable_devices=False))
    (reason,) = only(report, "d").reasons
    assert isinstance(reason, reasons.FeatureOff)
    assert (reason.number, reason.gate) == (13, "DRAPartitionableDevices")


def partitions(build: SimpleNamespace, total: str, *amounts: str) -> list[Any]:
    devices = [build.device(f"p{i}", consumesCounters=[build.draws("set", a=each)]) for i, each in enumerate(amounts)]
    counters = build.slice("n", count=2, sharedCounters=[build.counter_set("set", a=total)])
    return [build.slice("s", *devices, count=2), counters]


def test_rule_14_counters_are_short(explain: Any, build: SimpleNamespace) -> None:
    report = explain(
        partitions(build, "4", "3", "2"),
        [build.claim("c", build.exactly("r"))],
        allocated=[build.holding("h", {"device": "p0"})],
    )
    short = reasons.CountersShort(counter_set="set", counter="a", need=2 * 10**9, have=10**9, holders=("ns/h",))
    assert only(report, "p1").reasons == (short,)
    assert report.changes[0] == Change((FreeDevice("driver-a", "pool", "p0", ("ns/h",)),))


def test_rule_14_an_overdrawn_counter_blocks_all_that_draw(explain: Any, build: SimpleNamespace) -> None:
    held = [build.holding("h", {"device": "p0"}), build.holding("i", {"device": "p1"})]
    report = explain(partitions(build, "4", "3", "3", "0"), [build.claim("c", build.exactly("r"))], allocated=held)
    assert only(report, "p2").reasons == (
        reasons.CountersShort(counter_set="set", counter="a", need=0, have=-2 * 10**9, holders=("ns/h", "ns/i")),
    )


def test_rule_14_requests_compete_for_counters(explain: Any, build: SimpleNamespace) -> None:
    report = explain(partitions(build, "4", "3", "3"), [build.claim("c", build.exactly("q"), build.exactly("r"))])
    assert report.conflicts[0].requests == (RequestRef("ns/c", "q"), RequestRef("ns/c", "r"))
    assert only(report, "p1").reasons == (
        reasons.CountersShort(counter_set="set", counter="a", need=3 * 10**9, have=10**9, holders=("ns/c q",)),
    )


def test_rule_15_taints_are_not_tolerated(explain: Any, build: SimpleNamespace) -> None:
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "ignored", "effect": "None"}]
    report = explain([build.slice("s", build.device("d", taints=taints))], [build.claim("c", build.exactly("r"))])
    assert only(report, "d").reasons == (reasons.TaintNotTolerated(key="k", value="v", effect="NoSchedule"),)
    assert report.changes == (Change((Tolerate("ns/c", "r", "k", "v", "NoSchedule"),)),)


def test_rule_16_attributes_are_missing_or_differ(explain: Any, build: SimpleNamespace) -> None:
    devices = [build.device(f"d{i}", attributes={"numa": i // 2}) for i in range(4)]
    slices = [build.slice("s", *devices, build.device("bare"))]
    report = explain(slices, [build.claim("c", build.exactly("r", count=3), constraints=NUMA)])
    assert only(report, "bare").reasons == (reasons.AttributeMissing(constraint=0, attribute="driver-a/numa"),)
    assert only(report, "d0").reasons == (more.TooFew(need=3, have=2),)
    assert only(report, "d3").reasons == (
        reasons.AttributeConflict(
            constraint=0, attribute="driver-a/numa", distinct=False, values=("1",), others=("d0 (0)", "d1 (0)")
        ),
    )
    constraint = ConstraintRef("ns/c", 0, "driver-a/numa", False)
    assert report.conflicts[0].constraints == (constraint,)
    assert report.changes == (
        Change((LowerCount("ns/c", "r", 2),)),
        Change((DropConstraint("ns/c", constraint),)),
    )


def test_rule_16_values_that_must_differ_do_not(explain: Any, build: SimpleNamespace) -> None:
    devices = [build.device(f"d{i}", attributes={"numa": 0}) for i in range(2)]
    distinct = [{"matchAttribute": "driver-a/other", "requests": ["q"]}, {"distinctAttribute": "driver-a/numa"}]
    claim = build.claim("c", build.exactly("r", count=2), constraints=distinct)
    report = explain([build.slice("s", *devices)], [claim])
    (reason,) = only(report, "d1").reasons
    assert isinstance(reason, reasons.AttributeConflict)
    assert (reason.constraint, reason.distinct, reason.others) == (1, True, ("d0 (0)",))
    assert "with driver-a/numa 0 also in d0 (0)" in "\n".join(report.lines())


def test_rule_17_capacity_is_unknown_forbidden_or_short(explain: Any, build: SimpleNamespace) -> None:
    ranged = {"value": "8", "requestPolicy": {"default": "1", "validRange": {"min": "1", "max": "2"}}}
    shared = {"allowMultipleAllocations": True}
    devices = [
        build.device("none"),
        build.device("forbidding", capacity={"memory": ranged}, **shared),
        build.device("small", capacity={"memory": "2"}, **shared),
        build.device("busy", capacity={"memory": "4"}, **shared),
    ]
    share = {"device": "busy", "shareID": "s", "consumedCapacity": {"memory": "3"}}
    request = build.exactly("r", capacity={"requests": {"memory": "3"}})
    report = explain([build.slice("s", *devices)], [build.claim("c", request)], allocated=[build.holding("h", share)])
    need = 3 * 10**9
    assert only(report, "none").reasons == (reasons.CapacityUnknown(name="memory"),)
    assert only(report, "forbidding").reasons == (reasons.CapacityPolicyViolated(name="memory", amount="3"),)
    assert only(report, "small").reasons == (reasons.CapacityShort(name="memory", need=need, have=2 * 10**9),)
    assert only(report, "busy").reasons == (
        reasons.CapacityShort(name="memory", need=need, have=10**9, holders=("ns/h",)),
    )
    assert report.changes == (
        Change((FreeDevice("driver-a", "pool", "busy", ("ns/h",)),)),
        Change((LowerCapacity("ns/c", "r", "memory", "2"),)),
    )


def test_rule_17_requests_compete_for_capacity(explain: Any, build: SimpleNamespace) -> None:
    device = build.device("d", capacity={"memory": "80Gi"}, allowMultipleAllocations=True)
    asked = {"capacity": {"requests": {"memory": "50Gi"}}}
    report = explain(
        [build.slice("s", device)], [build.claim("c", build.exactly("q", **asked), build.exactly("r", **asked))]
    )
    assert only(report, "d").reasons == (
        reasons.CapacityShort(name="memory", need=50 * GIB, have=30 * GIB, holders=("ns/c q",)),
    )
    assert "1 short of memory: 30Gi < 50Gi, used by ns/c q" in "\n".join(report.lines())


@pytest.mark.parametrize("in_call", [False, True])
def test_rule_18_compatibility_groups_differ(explain: Any, build: SimpleNamespace, in_call: bool) -> None:
    devices = [build.device(f"d{g}", consumesCounters=[build.draws("set", [g], a="1")]) for g in "mv"]
    slices = [
        build.slice("s", *devices, count=2),
        build.slice("n", count=2, sharedCounters=[build.counter_set("set", a="9")]),
    ]
    requests = [build.exactly("q"), build.exactly("r")] if in_call else [build.exactly("r")]
    allocated = [] if in_call else [build.holding("h", {"device": "dm"})]
    report = explain(slices, [build.claim("c", *requests)], allocated=allocated)
    assert only(report, "dv").reasons == (reasons.GroupsIncompatible(counter_set="set", groups=("v",), others=("m",)),)


def test_rule_19_all_needs_every_device(explain: Any, build: SimpleNamespace) -> None:
    report = explain(
        [build.slice("s", build.device("d"), build.device("e"))],
        [build.claim("c", build.everything("r"))],
        allocated=[build.holding("h", {"device": "e"})],
    )
    assert isinstance(only(report, "d").reasons[0], more.AllOrNothing)
    assert report.changes == (Change((FreeDevice("driver-a", "pool", "e", ("ns/h",)),)),)


def test_rule_19_a_broken_pool_ends_all_requests(explain: Any, build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d")), build.slice("t", build.device("e"), pool="other", count=2)]
    report = explain(slices, [build.claim("c", build.everything("r"))])
    assert report.outcome == "error"
    assert isinstance(only(report, "d").reasons[0], more.SearchEnded)


def test_rule_20_a_claim_holds_32_devices(explain: Any, build: SimpleNamespace) -> None:
    devices = [build.device(f"d{i}") for i in range(40)]
    requests = [build.exactly("q", count=20), build.exactly("r", count=20)]
    report = explain([build.slice("s", *devices)], [build.claim("c", *requests)])
    assert report.outcome == "error"
    assert set(only(report, "d0").reasons) == {more.LimitReached(limit=32)}
    assert report.changes == (Change((LowerCount("ns/c", "q", 12),)),)


def test_rule_21_the_node_cannot_skip_operations(explain: Any, build: SimpleNamespace) -> None:
    skipping = {"skipNodeOperations": ["NodePrepareResources", "NodeUnprepareResources"]}
    slices = [build.slice("s", build.device("d"), **skipping, nodeName="node-1")]
    for features in (None, off(optional_node_operations=False)):
        report = explain(slices, [build.claim("c", build.exactly("r"))], features=features)
        (reason,) = only(report, "d").reasons
        assert isinstance(reason, reasons.FeatureOff)
        assert (reason.number, reason.gate) == (21, "DRAOptionalNodeOperations")


def test_rule_22_a_shareable_device_serves_a_request_once(explain: Any, build: SimpleNamespace) -> None:
    device = build.device("d", capacity={"memory": "4"}, allowMultipleAllocations=True)
    report = explain([build.slice("s", device)], [build.claim("c", build.exactly("r", count=2))])
    assert only(report, "d").reasons == (more.TooFew(need=2, have=1),)


def test_rule_23_validation_errors_hide_nothing_else(explain: Any, build: SimpleNamespace) -> None:
    claim = build.claim("c", build.exactly("q", "nope"), build.exactly("r", "class-a", MEMORY))
    report = explain([build.slice("s", build.device("d", capacity={"memory": "1"}))], [claim])
    assert report.outcome == "error"
    first, second = report.claims[0].requests
    assert "nope" in first.error
    assert first.devices == ()
    assert isinstance(second.devices[0].reasons[0], more.SelectorUnmet)
    assert [each.requests for each in report.conflicts] == [(RequestRef("ns/c", "q"),), (RequestRef("ns/c", "r"),)]


def test_rule_23_gates_and_empty_constraints(explain: Any, build: SimpleNamespace) -> None:
    alternatives = build.first_available("r", build.alternative("s"), build.alternative("t"))
    report = explain(
        [build.slice("s", build.device("d"))], [build.claim("c", alternatives)], features=off(prioritized_list=False)
    )
    assert all("DRAPrioritizedList" in each.error for each in report.claims[0].requests)
    empty = build.claim("c", build.exactly("r"), constraints=[{}])
    report = explain([build.slice("s", build.device("d"))], [empty])
    assert report.claims[0].error == "constraint 0 names no attribute"
    assert report.conflicts[0].constraints == (ConstraintRef("ns/c", 0, "", False),)
    assert len(report.changes) == 1


# --- all reasons, no matter what else is wrong


def test_a_device_has_all_its_reasons(explain: Any, build: SimpleNamespace) -> None:
    device = build.device("d", capacity={"memory": "40Gi"}, taints=[{"key": "t", "effect": "NoExecute"}])
    report = explain(
        [build.slice("s", device)],
        [build.claim("c", build.exactly("r", "class-a", MEMORY), constraints=NUMA)],
        allocated=[build.holding("h", {"device": "d"})],
    )
    assert [type(each) for each in only(report, "d").reasons] == [
        more.SelectorUnmet,
        reasons.HeldExclusively,
        reasons.TaintNotTolerated,
        reasons.AttributeMissing,
    ]
    assert "1 device: 1 fails selector 0: memory 40Gi < 80Gi" in "\n".join(report.lines())
    (change,) = report.changes
    assert len(change.edits) == 4


def test_one_bad_slice_hides_no_other(explain: Any, build: SimpleNamespace) -> None:
    broken = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Nope"}]}]}
    slices = [
        build.slice("bad", build.device("x"), pool="bad", nodeSelector=broken),
        build.slice(
            "mixed",
            build.device("worse", nodeSelector=broken),
            build.device("near", nodeName="node-1"),
            pool="mixed",
            perDeviceNodeSelection=True,
        ),
        build.slice("good", build.device("d")),
    ]
    report = explain(slices, [build.claim("c", build.exactly("r", count=3))])
    assert report.outcome == "error"
    assert report.error.startswith("gather pool information: failed to perform node selection for slice bad")
    assert [(each.slice, each.device) for each in report.slices] == [("bad", ""), ("mixed", "worse")]
    assert [each.device for each in report.claims[0].requests[0].devices] == ["near", "d"]
    assert report.claims[0].requests[0].usable == 2
    assert report.changes == ()


def test_a_broken_slice_is_an_error_even_if_the_rest_would_fit(explain: Any, build: SimpleNamespace) -> None:
    broken = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Nope"}]}]}
    slices = [
        build.slice("bad", build.device("x"), pool="bad", nodeSelector=broken),
        build.slice("s", build.device("d")),
    ]
    report = explain(slices, [build.claim("c", build.exactly("r"))])
    assert report.outcome == "error"
    assert report.conflicts == ()
    assert report.claims[0].requests[0].fits_alone


# --- conflicts, changes, text


def test_the_example_of_the_issue(explain: Any, build: SimpleNamespace) -> None:
    unhealthy = [{"key": "dra.example.com/unhealthy", "effect": "NoSchedule"}]
    devices = [build.device(f"gpu-{i}", capacity={"memory": "80Gi"}) for i in range(5)]
    devices += [build.device(f"gpu-{i}", capacity={"memory": "80Gi"}, taints=unhealthy) for i in (5, 6)]
    devices += [build.device("gpu-7", capacity={"memory": "40Gi"})]
    held = [build.holding("ab"[i % 2], {"device": f"gpu-{i}"}) for i in range(5)]
    claim = build.claim("c", build.exactly("gpu", "class-a", "true", MEMORY))
    report = explain([build.slice("s", *devices)], [claim], allocated=held)
    assert report.lines() == (
        "node-1: does not fit",
        "  claim ns/c",
        (
            "    request gpu (1 device of class class-a): 8 devices: 5 in use by ns/a, ns/b; "
            "2 tainted dra.example.com/unhealthy; 1 fails selector 1: memory 40Gi < 80Gi"
        ),
        "  would fit: free driver-a/pool/gpu-0, held by ns/a",
        "  or: tolerate dra.example.com/unhealthy:NoSchedule in request gpu of ns/c",
        "  or: relax selector 1 of request gpu of ns/c to admit memory 40Gi < 80Gi",
    )
    assert str(report) == "\n".join(report.lines())


def test_a_node_where_it_fits_says_so(explain: Any, build: SimpleNamespace) -> None:
    report = explain([build.slice("s", build.device("d"))], [build.claim("c", build.exactly("r"))])
    assert report.fits
    assert report.lines() == ("node-1: fits", "  ns/c r: driver-a/pool/d")
    assert (report.claims, report.conflicts, report.changes) == ((), (), ())


def test_no_claims_fit_everywhere(explain: Any) -> None:
    assert explain([], []).fits


def test_a_conflict_leaves_out_what_does_not_matter(explain: Any, build: SimpleNamespace) -> None:
    gpus = [build.device(f"gpu-{i}", attributes={"numa": 0, "model": "m"}) for i in range(4)]
    nics = [build.device("nic-0", attributes={"driver-a/numa": 1, "driver-a/model": "m"})]
    slices = [build.slice("g", *gpus), build.slice("n", *nics, driver="driver-b", pool="nics")]
    constraints = [
        {"matchAttribute": "driver-a/model"},
        {"matchAttribute": "driver-a/numa", "requests": ["gpu", "nic"]},
    ]
    claim = build.claim(
        "c", build.exactly("gpu"), build.exactly("other"), build.exactly("nic", "class-b"), constraints=constraints
    )
    report = explain(slices, [claim])
    (conflict,) = report.conflicts
    assert conflict.minimal
    assert [each.request for each in conflict.requests] == ["gpu", "nic"]
    assert [each.index for each in conflict.constraints] == [1]
    assert (
        "  conflict: gpu, nic of ns/c with matchAttribute driver-a/numa cannot be satisfied together" in report.lines()
    )
    assert "    request other: fits alone" in report.lines()
    assert only(report, "gpu-0", "gpu").reasons[0].rule == 16


def test_many_requests_for_few_devices(explain: Any, build: SimpleNamespace) -> None:
    devices = [build.device(f"d{i}") for i in range(20)]
    claim = build.claim("c", *[build.exactly(f"r{i}") for i in range(32)])
    report = explain([build.slice("s", *devices)], [claim])
    (conflict,) = report.conflicts
    assert (len(conflict.requests), conflict.minimal) == (21, True)
    assert "20 devices: 20 wanted by requests r1, r2, r3, r4 and 16 more of ns/c" in report.lines()[2]
    assert "    requests r21, r22, r23, r24 and 7 more: fit alone" in report.lines()


def test_alternatives_are_explained_one_by_one(explain: Any, build: SimpleNamespace) -> None:
    request = build.first_available("r", build.alternative("big", count=3), build.alternative("small", "class-b"))
    report = explain([build.slice("s", build.device("d"), build.device("e"))], [build.claim("c", request)])
    assert [each.request for each in report.claims[0].requests] == ["r/big", "r/small"]
    assert report.changes == (Change((LowerCount("ns/c", "r/big", 2),)),)


def test_several_edits_are_combined_when_none_suffices(explain: Any, build: SimpleNamespace) -> None:
    devices = [build.device(f"d{i}") for i in range(4)]
    devices += [build.device("t", taints=[{"key": "k", "effect": "NoSchedule"}])]
    held = [build.holding(f"h{i}", {"device": f"d{i}"}) for i in range(4)]
    report = explain([build.slice("s", *devices)], [build.claim("c", build.exactly("r", count=3))], allocated=held)
    assert [len(each.edits) for each in report.changes] == [3]
    text = "\n".join(report.lines())
    assert "would fit: free driver-a/pool/{d0, d1, d2}, held by ns/h0, ns/h1, ns/h2" in text


def test_edits_that_help_many_devices_come_first(explain: Any, build: SimpleNamespace) -> None:
    devices = [build.device(f"d{i}") for i in range(4)]
    devices += [build.device(f"t{i}", taints=[{"key": "k", "effect": "NoSchedule"}]) for i in range(2)]
    held = [build.holding(f"h{i}", {"device": f"d{i}"}) for i in range(4)]
    report = explain([build.slice("s", *devices)], [build.claim("c", build.exactly("r", count=3))], allocated=held)
    mixed, freed = report.changes
    assert [type(each) for each in mixed.edits] == [Tolerate, FreeDevice]
    assert len(freed.edits) == 3


def test_a_search_without_end_is_not_known(explain: Any, build: SimpleNamespace) -> None:
    devices = [build.device(f"d{i}", attributes={"u": i, "numa": i % 7}) for i in range(20)]
    requests = [build.exactly(f"r{i}", count=2) for i in range(8)]
    constraints = [{"matchAttribute": "driver-a/numa", "requests": [f"r{i}", f"r{i + 1}"]} for i in range(0, 8, 2)]
    claims = [build.claim("c", *requests, constraints=constraints)]
    report = explain([build.slice("s", *devices)], claims, budget=Budget(steps=30), prunings=PLAIN)
    assert report.outcome == "unknown"
    assert report.lines()[0].startswith("node-1: not known, the search took too long: claim ns/c: gave up after")
    assert report.claims[0].requests[0].fits_alone
    assert report.conflicts == ()


def test_nodes_share_nothing_but_contents(build: SimpleNamespace) -> None:
    slices = [build.slice(f"s{i}", build.device("d"), pool=f"p{i}", nodeName=f"node-{i}") for i in range(1, 4)]
    held = [build.holding(f"h{i}", {"device": "d", "pool": f"p{i}"}) for i in range(1, 4)]
    allocator = Allocator(slices, build.default_classes(), AllocatedState.of(held))
    claim = build.claim("c", build.exactly("r"))
    for i in range(1, 4):
        report = allocator.explain(build.node(f"node-{i}"), [claim])
        assert report.lines()[-1] == f"  would fit: free driver-a/p{i}/d, held by ns/h{i}"
        assert report.elsewhere == 2


def test_explanations_follow_updates(build: SimpleNamespace) -> None:
    first, second = build.holding("h", {"device": "d"}), build.holding("i", {"device": "d"})
    allocator = Allocator([build.slice("s", build.device("d"))], build.default_classes(), AllocatedState.of([first]))
    claim, node = build.claim("c", build.exactly("r")), build.node()
    assert "in use by ns/h" in str(allocator.explain(node, [claim]))
    allocator.update_claim(second, first)
    assert "in use by ns/i" in str(allocator.explain(node, [claim]))
    allocator.remove_claim(second)
    assert allocator.explain(node, [claim]).fits
    allocator.update_slice(build.slice("s", build.device("d", taints=[{"key": "k", "effect": "NoSchedule"}])))
    assert "1 tainted k" in str(allocator.explain(node, [claim]))
    allocator.remove_class("class-a")
    assert allocator.explain(node, [claim]).outcome == "error"


def test_taints_of_rules_count(explain: Any, build: SimpleNamespace) -> None:
    from drakit import api

    body = {
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": {"device": "d"}, "taint": {"key": "r", "effect": "NoSchedule"}},
    }
    rule = api.decode(body, "DeviceTaintRule")
    report = explain([build.slice("s", build.device("d"))], [build.claim("c", build.exactly("r"))], rules=[rule])
    assert only(report, "d").reasons == (reasons.TaintNotTolerated(key="r", value="", effect="NoSchedule"),)


def test_many_kinds_of_reasons_are_cut_short(explain: Any, build: SimpleNamespace) -> None:
    devices = [build.device(f"d{i}", taints=[{"key": f"k{i}", "effect": "NoSchedule"}]) for i in range(12)]
    report = explain([build.slice("s", *devices)], [build.claim("c", build.exactly("r"))])
    assert "12 devices: 1 tainted k0; " in report.lines()[2]
    assert report.lines()[2].endswith("; 4 for other reasons")


PHRASES: list[tuple[reasons.Reason, str]] = [
    (reasons.PoolObsolete(generation=1, newest=2), "generation 1 is obsolete, other nodes have 2"),
    (reasons.PoolIncomplete(seen=0, announced=1), "in an incomplete pool (0 of 1 slice seen)"),
    (reasons.PoolInvalid(reason="x"), "in an invalid pool (x)"),
    (reasons.NotForNode(), "for other nodes"),
    (more.NodeSelectorBroken(message="x\ny"), "with a broken node selector: x"),
    (reasons.FeatureOff(number=6, gate="G", needed_for="f"), "unusable without G (f)"),
    (more.SelectorUnmet(source="claim", index=2, expression="false"), "fails selector 2: false"),
    (reasons.HeldExclusively(holders=("a/b",)), "in use by a/b"),
    (reasons.TakenInThisCall(claim="a/b", request="r"), "wanted by request r of a/b"),
    (reasons.AdminTwice(request="r"), "already used by request r of the same claim"),
    (reasons.TaintNotTolerated(key="k", value="v", effect="NoExecute"), "tainted k=v"),
    (
        reasons.CountersShort(counter_set="s", counter="c", need=2 * GIB, have=GIB, holders=("a/b",)),
        "short of counter s/c: 1Gi < 2Gi, used by a/b",
    ),
    (
        reasons.CountersShort(counter_set="s", counter="c", need=0, have=-(10**9)),
        "blocked by overdrawn counter s/c (-1)",
    ),
    (reasons.CapacityShort(name="m", need=3 * 10**9, have=5 * 10**8), "short of m: 500m < 3"),
    (reasons.CapacityUnknown(name="m"), "without capacity m"),
    (reasons.CapacityPolicyViolated(name="m", amount="3"), "with a policy that does not allow 3 of m"),
    (reasons.AttributeMissing(constraint=1, attribute="d/a"), "without attribute d/a of constraint 1"),
    (
        reasons.AttributeTypeUnknown(constraint=1, attribute="d/a"),
        "with an incomparable attribute d/a of constraint 1",
    ),
    (
        reasons.AttributeConflict(constraint=0, attribute="d/a", distinct=False, values=("1",), others=("x (2)",)),
        "with d/a 1 unlike x (2)",
    ),
    (
        reasons.GroupsIncompatible(counter_set="s", groups=(), others=("m",)),
        "with compatibility groups none unlike those in use on s (m)",
    ),
    (more.TooFew(need=2, have=1), "would do, but only 1 of 2 can be had"),
    (more.AllOrNothing(), "would do, but all of them are asked for"),
    (more.LimitReached(limit=32), "would do, but a claim holds at most 32 devices"),
    (more.NotTogether(requests=("a/b r", "a/b s")), "would do alone, but not for a/b r, a/b s together"),
    (more.SearchEnded(error="x"), "would do, but an error ends the search first"),
]


@pytest.mark.parametrize(("reason", "expected"), PHRASES)
def test_each_reason_has_a_phrase(reason: reasons.Reason, expected: str) -> None:
    assert text.phrase(reason) == expected


def test_every_type_of_reason_has_a_rank() -> None:
    kinds = {type(reason) for reason, _ in PHRASES}
    assert len({more.rank(reason) for reason, _ in PHRASES}) == len(kinds)
    on_class = more.SelectorUnmet(source="class", index=0, expression="false")
    on_request = more.SelectorUnmet(source="claim", index=0, expression="false")
    assert more.rank(on_class) > more.rank(on_request) > more.rank(reasons.HeldExclusively(holders=()))


def test_a_request_for_nothing(explain: Any, build: SimpleNamespace) -> None:
    report = explain([build.slice("s", build.device("d"))], [build.claim("c", {"name": "r"}, build.exactly("q"))])
    assert report.outcome == "error"
    empty, other = report.claims[0].requests
    assert "missing device class name" in empty.error
    assert other.fits_alone
    assert report.conflicts[0].requests == (RequestRef("ns/c", "r"),)
    assert report.changes == ()


def test_no_trial_is_made_beyond_the_bound(build: SimpleNamespace) -> None:
    allocator = Allocator([build.slice("s", build.device("d"))], build.default_classes())
    effort = Effort()
    world = World(allocator, build.node(), [build.slice("s", build.device("d"))], effort)
    claims = [build.claim("c", build.exactly("r"))]
    assert all(world.attempt(claims).fits for _ in range(Effort.SEARCHES))
    assert not world.attempt(claims).known
    assert world.ask(claims).fits
    effort = Effort()
    for _ in range(Effort.DEEP):
        assert effort.is_left
        effort.spend(deep=True)
    assert not effort.is_left


def test_a_conflict_that_was_not_proved_says_so(build: SimpleNamespace) -> None:
    allocator = Allocator([build.slice("s", build.device("d"))], build.default_classes())
    effort = Effort()
    world = World(allocator, build.node(), [build.slice("s", build.device("d"))], effort)
    parts = Parts([build.claim("c", build.exactly("r"), build.exactly("q"))])
    effort.searches = 1
    core = minimal_core(world, parts, parts.requests, [])
    assert (core.requests, core.minimal) == (((0, 0), (0, 1)), False)


def test_explaining_never_raises_what_allocating_raises(explain: Any, build: SimpleNamespace) -> None:
    claim = build.claim("c", build.exactly("r", "nope"))
    with pytest.raises(AllocationError):
        build.allocate([], [claim])
    assert explain([], [claim]).outcome == "error"


def test_a_report_is_json(explain: Any, build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d", capacity={"memory": "40Gi"}))]
    held = [build.holding("h", {"device": "d"})]
    report = explain(slices, [build.claim("c", build.exactly("r", "class-a", MEMORY))], allocated=held)
    plain = report.plain()
    assert json.loads(json.dumps(plain)) == plain
    assert (plain["outcome"], plain["fits"]) == ("does not fit", False)
    request = plain["claims"][0]["requests"][0]
    assert (request["className"], request["fitsAlone"]) == ("class-a", False)
    unmet, held_ = request["devices"][0]["reasons"]
    assert (unmet["type"], unmet["rule"], unmet["facts"][0]["wanted"]) == ("SelectorUnmet", 8, "80Gi")
    assert held_ == {"type": "HeldExclusively", "rule": 10, "holders": ["ns/h"]}
    assert {edit["type"] for edit in plain["changes"][0]["edits"]} == {"FreeDevice", "DropSelector"}


def test_a_feature_tells_its_rule(explain: Any, build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d", bindingConditions=["ready"]))]
    report = explain(slices, [build.claim("c", build.exactly("r"))], features=off(device_binding_and_status=False))
    (reason,) = report.plain()["claims"][0]["requests"][0]["devices"][0]["reasons"]
    assert (reason["type"], reason["rule"]) == ("FeatureOff", 6)
