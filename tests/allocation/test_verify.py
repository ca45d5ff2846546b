"""Verification finds what is wrong with an allocation, rule by rule, and follows upstream where inputs contradict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drakit.allocation import AllocatedState, Features, Inputs, verify
from drakit.api import core, decode, resource

if TYPE_CHECKING:
    from types import SimpleNamespace


def _result(*devices: str, request: str = "r", **fields: Any) -> resource.AllocationResult:
    results = [
        {"request": request, "driver": "driver-a", "pool": "pool", "device": device, **fields} for device in devices
    ]
    status = {"allocation": {"devices": {"results": results}}}
    claim = decode({"metadata": {"name": "c"}, "spec": {}, "status": status}, "ResourceClaim")
    return claim.status.allocation  # type: ignore[no-any-return]


def _inputs(build: SimpleNamespace, *claims: resource.ResourceClaim, **fields: Any) -> Inputs:
    devices = [
        build.device("d0", attributes={"kind": "x", "numa": 0}),
        build.device("d1", attributes={"kind": "y", "numa": 1}),
        build.device("tainted", taints=[{"key": "t", "effect": "NoSchedule"}], attributes={"kind": "x", "numa": 0}),
    ]
    defaults: dict[str, Any] = {
        "node": build.node(),
        "slices": (build.slice("s", *devices),),
        "classes": tuple(build.default_classes()),
        "features": Features.everything(),
    }
    return Inputs(claims=claims, **(defaults | fields))


@pytest.mark.parametrize(
    ("options", "result", "rules"),
    [
        ({}, _result("d0"), []),
        ({}, _result(), ["every request"]),
        ({}, _result("d0", "d1"), ["count"]),
        ({}, _result("d9"), ["the node sees it"]),
        ({}, _result("d0", request="other"), ["every request", "known request"]),
        ({}, _result("tainted"), ["taints"]),
        ({}, _result("d0", adminAccess=True), ["adminAccess is copied"]),
        ({}, _result("d0", tolerations=[{"operator": "Exists"}]), ["tolerations are copied"]),
        ({}, _result("d0", bindingConditions=["ready"]), ["binding conditions are copied"]),
        ({}, _result("d0", skipNodeOperations=["x"]), ["skipNodeOperations are copied"]),
        ({}, _result("d0", shareID="s"), ["dedicated devices are not shared"]),
        ({"count": 2}, _result("d0", "d0"), ["each device once per request", "one user"]),
        ({"count": 2}, _result("d0", "d1"), []),
        ({"count": 33}, _result(*["d0"] * 33), ["32 results", "each device once per request", *["one user"] * 32]),
    ],
)
def test_rules_of_one_request(
    build: SimpleNamespace, options: dict[str, Any], result: resource.AllocationResult, rules: list[str]
) -> None:
    inputs = _inputs(build, build.claim("c", build.exactly("r", "class-a", **options)))
    assert [each.rule for each in verify([result], inputs)] == rules


def test_selectors_classes_and_expressions_that_fail(build: SimpleNamespace) -> None:
    for cls, expression, message in (
        ("class-a", 'device.attributes["driver-a"].kind == "y"', "is false"),
        ("class-a", 'device.attributes["driver-a"].none == "y"', "no such key"),
        ("class-a", "1 +", "Syntax error"),
        ("class-b", "true", "is false"),
        ("absent", "true", "does not exist"),
    ):
        inputs = _inputs(build, build.claim("c", build.exactly("r", cls, expression)))
        (violation,) = verify([_result("d0")], inputs)
        assert (violation.rule, violation.device) == ("selectors", "driver-a/pool/d0")
        assert message in violation.message


@pytest.mark.parametrize(
    ("constraint", "devices", "rules"),
    [
        ({"matchAttribute": "driver-a/numa"}, ("d0", "d1"), ["matchAttribute"]),
        ({"distinctAttribute": "driver-a/numa"}, ("d0", "d1"), []),
        ({"matchAttribute": "driver-a/none"}, ("d0", "d1"), ["matchAttribute"]),
        ({"matchAttribute": "driver-a/numa", "requests": ["other"]}, ("d0", "d1"), []),
    ],
)
def test_constraints(
    build: SimpleNamespace, constraint: dict[str, Any], devices: tuple[str, ...], rules: list[str]
) -> None:
    inputs = _inputs(build, build.claim("c", build.exactly("r", count=2), constraints=[constraint]))
    assert [each.rule for each in verify([_result(*devices)], inputs)] == rules


def test_rules_of_several_claims(build: SimpleNamespace) -> None:
    claims = [build.claim(name, build.exactly("r")) for name in ("a", "b")]
    inputs = _inputs(build, *claims)
    assert verify([_result("d0"), _result("d1")], inputs) == []
    assert [each.rule for each in verify([_result("d0")], inputs)] == ["one allocation per claim"]
    (twice,) = verify([_result("d0"), _result("d0")], inputs)
    assert (twice.rule, twice.claim) == ("one user", "ns/b")
    held = msgspec.structs.replace(inputs, allocated=AllocatedState.of([build.holding("h", {"device": "d0"})]))
    (used,) = verify([_result("d0"), _result("d1")], held)
    assert (used.rule, used.message) == ("one user", "it is held by ns/h")


def test_all_means_all_and_the_node_selector_admits_the_node(build: SimpleNamespace) -> None:
    tolerations = [{"operator": "Exists"}]
    inputs = _inputs(build, build.claim("c", build.everything("r", tolerations=tolerations)))
    whole = _result("d0", "d1", "tainted", tolerations=tolerations)
    assert verify([whole], inputs) == []
    (violation,) = verify([_result("d0", "d1", tolerations=tolerations)], inputs)
    assert violation.rule == "All means all"
    assert "tainted" in violation.message
    requirement = core.NodeSelectorRequirement(key="metadata.name", operator="In", values=("node-2",))
    elsewhere = core.NodeSelector(node_selector_terms=(core.NodeSelectorTerm(match_fields=(requirement,)),))
    misplaced = msgspec.structs.replace(whole, node_selector=elsewhere)
    assert [each.rule for each in verify([misplaced], inputs)] == ["node selector"]


@pytest.mark.parametrize("local_first", [True, False])
@pytest.mark.parametrize(("local", "shared", "complete"), [(2, 1, True), (1, 2, False), (2, 2, True), (1, 1, False)])
def test_what_the_nodes_own_slices_announce_counts(
    build: SimpleNamespace, local: int, shared: int, complete: bool, local_first: bool
) -> None:
    """Slices of one generation that contradict: the node's own come first, whatever the order of the input (1.2)."""
    slices = [build.slice("own", build.device("d0"), count=local)]
    slices.insert(local_first, build.slice("shared", build.device("d1"), count=shared, allNodes=True))
    claim = build.claim("c", build.exactly("r"))
    found = build.allocate(slices, [claim])
    assert build.chosen(found) == ([["r=d0"]] if complete else None)
    violations = verify([_result("d0")], _inputs(build, claim, slices=tuple(slices)))
    assert [each.rule for each in violations] == ([] if complete else ["the node sees it"])
