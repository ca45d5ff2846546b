"""The pure rules: node selectors, tolerations, capacity rounding, scores, allocated state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drakit.allocation import AllocatedState, Features, capacity, nodes, normalize, score, taints
from drakit.allocation.reasons import CapacityPolicyViolated, CapacityUnknown
from drakit.api import core, resource
from drakit.api.quantity import Quantity

if TYPE_CHECKING:
    from types import SimpleNamespace

LABELS = {"zone": "a", "cores": "16", "empty": ""}


def _selector(*requirements: tuple[str, str, list[str]], fields: bool = False) -> core.NodeSelector:
    made = tuple(
        core.NodeSelectorRequirement(key=key, operator=op, values=tuple(values)) for key, op, values in requirements
    )
    term = core.NodeSelectorTerm(match_fields=made) if fields else core.NodeSelectorTerm(match_expressions=made)
    return core.NodeSelector(node_selector_terms=(term,))


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ["a", "b"], True),
        ("zone", "In", ["b"], False),
        ("none", "In", ["a"], False),
        ("zone", "NotIn", ["b"], True),
        ("none", "NotIn", ["b"], True),
        ("zone", "Exists", [], True),
        ("empty", "Exists", [], True),
        ("none", "DoesNotExist", [], True),
        ("zone", "DoesNotExist", [], False),
        ("cores", "Gt", ["8"], True),
        ("cores", "Lt", ["16"], False),
        ("zone", "Gt", ["1"], False),
        ("none", "Lt", ["1"], False),
    ],
)
def test_label_requirements(key: str, operator: str, values: list[str], expected: bool) -> None:
    assert nodes.selector_matches(_selector((key, operator, values)), "n", LABELS) is expected


def test_terms_are_alternatives_and_an_empty_one_matches_nothing() -> None:
    empty = core.NodeSelector(node_selector_terms=(core.NodeSelectorTerm(),))
    assert not nodes.selector_matches(empty, "n", LABELS)
    both = _selector(("zone", "In", ["b"])).node_selector_terms + _selector(("zone", "In", ["a"])).node_selector_terms
    assert nodes.selector_matches(core.NodeSelector(node_selector_terms=both), "n", LABELS)


def test_field_requirements_see_the_name() -> None:
    assert nodes.selector_matches(_selector(("metadata.name", "In", ["n"]), fields=True), "n", {})
    assert not nodes.selector_matches(_selector(("metadata.name", "NotIn", ["n"]), fields=True), "n", {})
    with pytest.raises(nodes.NodeSelectorError, match="must have one element"):
        nodes.selector_matches(_selector(("metadata.name", "In", ["n", "m"]), fields=True), "n", {})


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "key": "k"}, True),
        ({"operator": "Exists", "key": "other"}, False),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Roughly", "key": "k", "value": "v"}, False),
        ({"operator": "Exists", "toleration_seconds": 1}, True),
    ],
)
def test_tolerations(toleration: dict[str, Any], expected: bool) -> None:
    taint = resource.DeviceTaint(key="k", value="v", effect="NoSchedule")
    assert taints.tolerates(resource.DeviceToleration(**toleration), taint) is expected


def test_only_known_effects_block() -> None:
    several = [
        resource.DeviceTaint(key=effect, effect=effect) for effect in ("None", "NoSchedule", "NoExecute", "Later")
    ]
    assert [each.key for each in taints.blocking(several)] == ["NoSchedule", "NoExecute"]


def _q(text: str | None) -> Quantity | None:
    return Quantity.parse(text) if text is not None else None


def _declared(value: str, **policy: Any) -> resource.DeviceCapacity:
    if not policy:
        return resource.DeviceCapacity(value=Quantity.parse(value))
    bounds = {key: _q(policy.pop(key)) for key in ("min", "max", "step") if key in policy}
    made = resource.CapacityRequestPolicy(
        default=_q(policy.get("default")),
        valid_values=tuple(Quantity.parse(each) for each in policy.get("values", ())),
        valid_range=resource.CapacityRequestPolicyRange(**bounds) if bounds else None,
    )
    return resource.DeviceCapacity(value=Quantity.parse(value), request_policy=made)


@pytest.mark.parametrize(
    ("policy", "requested", "amount"),
    [
        ({}, None, "10"),
        ({}, "3", "3"),
        ({"default": "2"}, None, "2"),
        ({"default": "2"}, "3", "3"),
        ({"default": "1M", "min": "1M", "step": "8"}, "1G", "1G"),
        ({"default": "1", "min": "1", "step": "2", "max": "4"}, "4", None),
        ({"default": "2", "min": "2"}, "0", "2"),
        ({"default": "2", "min": "2"}, "1500m", "2"),
        ({"default": "1", "min": "1"}, "1500m", "1500m"),
        ({"default": "1", "min": "1", "max": "4"}, "6", None),
        ({"default": "1", "values": ["1", "2"]}, "3", None),
        ({"default": "1", "values": ["1", "3"]}, "2", "3"),
        ({"default": "3", "min": "1", "step": "2", "max": "5"}, None, "3"),
        ({"default": "0", "values": ["0"]}, None, "0"),
        ({"default": "0", "values": ["0"]}, "1", None),
        ({"default": "1", "min": "1", "step": "1"}, "1500m", "2"),
        ({"default": "1Mi", "min": "1Mi", "step": "1Mi"}, "1000000", "1Mi"),
    ],
)
def test_rounding_of_requested_capacity(policy: dict[str, Any], requested: str | None, amount: str | None) -> None:
    """The verified roundings of spec/allocator.md 1.9."""
    declared = {"memory": _declared("10", **policy)}
    requests = {"memory": Quantity.parse(requested)} if requested is not None else None
    found = capacity.consume(declared, requests, fractional=True)
    if amount is None:
        assert isinstance(found, CapacityPolicyViolated)
    else:
        assert isinstance(found, capacity.Consumption)
        assert found.quantities == (Quantity.parse(amount),)


def test_a_capacity_that_the_device_does_not_declare() -> None:
    assert capacity.consume({}, {"x": Quantity.parse("1")}, fractional=True) == CapacityUnknown(name="x")


def test_scores_add_up_over_all_prioritized_requests(build: SimpleNamespace) -> None:
    alternatives = [build.alternative(f"s{rank}", "any" if rank else "class-b") for rank in range(3)]
    claims = [
        build.claim("c0", build.first_available("r0", *alternatives), build.first_available("r1", *alternatives[:1])),
        build.claim("c1", build.exactly("r")),
    ]
    slices = [
        build.slice("a", *[build.device(f"d{index}") for index in range(2)]),
        build.slice("b", build.device("e"), driver="driver-b"),
    ]
    allocations = build.allocate(slices, claims)
    assert build.chosen(allocations) == [["r0/s1=d0", "r1/s0=e"], ["r=d1"]]
    assert score(claims, allocations) == 7 + 8
    assert normalize([8, 7, 0]) == [100, 87, 0]
    assert normalize([0, 0]) == [0, 0]
    with pytest.raises(ValueError, match="2 claims but 0 allocations"):
        score(claims, [])


def test_features_follow_from_gates() -> None:
    assert Features.of_gates(Features.gates()) == Features.everything()
    assert Features.of_gates(()) == Features(**dict.fromkeys(Features.__struct_fields__, False))
    half = {"DRADeviceBindingConditions", "DRADeviceCompatibilityGroups", "DRAFractionalCapacityRange"}
    assert Features.of_gates(half) == Features.of_gates(())


def test_allocated_state_tells_holders_and_amounts(build: SimpleNamespace) -> None:
    whole = build.holding("a", {"device": "d"}, {"device": "watched", "adminAccess": True})
    shares = [
        build.holding(name, {"device": "e", "shareID": name, "consumedCapacity": {"memory": "2"}})
        for name in ("b", "c")
    ]
    state = AllocatedState.of([whole, *shares])
    use = state.pools["driver-a", "pool"]
    assert use.holders("d") == ("ns/a",)
    assert use.holders("watched") == ()
    assert use.holders("e") == ("ns/b", "ns/c")
    assert use.consumed("e") == {"memory": 4 * 10**9}
    state.remove(shares[0])
    assert use.holders("e") == ("ns/c",)
    state.remove(shares[1])
    state.remove(whole)
    assert not use.exclusive
    assert not use.shared
