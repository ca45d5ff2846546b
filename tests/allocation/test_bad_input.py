"""What no API server would let in, or what a newer one might: upstream's error class, with object and path named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drakit.allocation import AllocationError, NodeError

if TYPE_CHECKING:
    from types import SimpleNamespace

D = 'device.attributes["driver-a"]'


def _refused(build: SimpleNamespace, *requests: Any, **options: Any) -> AllocationError:
    slices = options.pop("slices", None) or [build.slice("s", build.device("d"))]
    claim = build.claim("c", *requests, constraints=options.pop("constraints", None))
    with pytest.raises(AllocationError) as raised:
        build.allocate(slices, [claim], **options)
    return raised.value


def test_an_unknown_mode(build: SimpleNamespace) -> None:
    error = _refused(build, build.exactly("r", mode="Most"))
    assert str(error) == "claim ns/c, request r: unsupported count mode Most"
    assert (error.claim, error.request, error.path) == ("ns/c", "r", "spec.devices.requests[0].exactly.allocationMode")


def test_an_empty_constraint(build: SimpleNamespace) -> None:
    error = _refused(build, build.exactly("r"), constraints=[{}])
    assert str(error) == "claim ns/c, constraint #0: empty constraint (unsupported constraint type?)"
    assert error.path == "spec.devices.constraints[0]"


def test_an_unknown_kind_of_selector(build: SimpleNamespace) -> None:
    error = _refused(build, {"name": "r", "exactly": {**build.exactly("r")["exactly"], "selectors": [{}]}})
    assert error.path == "spec.devices.requests[0].exactly.selectors[0]"


def test_a_request_of_an_unknown_kind(build: SimpleNamespace) -> None:
    error = _refused(build, {"name": "r"})
    assert "missing device class name (unsupported request type?)" in str(error)


def test_a_selector_that_does_not_compile(build: SimpleNamespace) -> None:
    error = _refused(build, build.exactly("r", "class-a", "device.nope"))
    assert str(error).startswith("claim ns/c: selector #0: CEL compile error: ")
    assert error.path == "spec.devices.requests[0].exactly.selectors[0].cel.expression"


def test_a_class_that_does_not_compile(build: SimpleNamespace) -> None:
    error = _refused(build, build.exactly("r", "broken"), classes=[build.class_("broken", "true", "device.nope")])
    assert str(error).startswith("class broken: selector #1: CEL compile error: ")
    assert error.path == "spec.selectors[1].cel.expression"


def test_a_selector_that_fails_names_the_device(build: SimpleNamespace) -> None:
    error = _refused(build, build.first_available("r", build.alternative("s", "class-a", f"{D}.numa == 0")))
    assert "claim ns/c: selector #0 on device driver-a/pool/d: CEL runtime error: no such key: numa." in str(error)
    assert error.path == "spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression"


@pytest.mark.parametrize(
    ("attribute", "text"),
    [({"version": "1.x"}, "parse semantic version"), ({}, "attribute odd: unsupported attribute value")],
)
@pytest.mark.parametrize("expression", ['device.driver == "driver-a"', f'"odd" in {D}', "true"])
def test_one_bad_attribute_makes_every_selector_fail_on_the_device(
    build: SimpleNamespace, attribute: dict[str, str], text: str, expression: str
) -> None:
    slices = [build.slice("s", build.device("d", attributes={"odd": attribute}))]
    error = _refused(build, build.exactly("r", "c"), slices=slices, classes=[build.class_("c", expression)])
    assert str(error).startswith("class c: selector #0 on device driver-a/pool/d: CEL runtime error: ")
    assert text in str(error)


def test_a_bad_attribute_does_not_matter_without_selectors(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d", attributes={"odd": {}}))]
    assert build.chosen(build.allocate(slices, [build.claim("c", build.exactly("r", "any"))])) == [["r=d"]]


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        ({"operator": "Gt", "values": ["many"]}, "the value must be an integer"),
        ({"operator": "In", "values": []}, "values set can't be empty"),
        ({"operator": "Exists", "values": ["x"]}, "must be empty"),
        ({"operator": "Near", "values": ["x"]}, "not a valid label selector operator"),
    ],
)
def test_a_bad_node_selector_is_fatal_for_everybody(
    build: SimpleNamespace, requirement: dict[str, Any], text: str
) -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", **requirement}]}]}
    slices = [
        build.slice("good", build.device("d")),
        build.slice("bad", build.device("e"), pool="q", nodeSelector=selector),
    ]
    error = _refused(build, build.exactly("r"), slices=slices)
    assert "gather pool information: failed to perform node selection for slice bad: " in str(error)
    assert text in str(error)
    assert error.path.startswith("spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0]")


def test_a_bad_node_selector_of_a_device(build: SimpleNamespace) -> None:
    bad = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["many"]}]}]}
    first = build.slice(
        "s", build.device("d0", nodeSelector=bad), build.device("d1", allNodes=True), perDeviceNodeSelection=True
    )
    assert "for device d0 in slice s" in str(_refused(build, build.exactly("r"), slices=[first]))
    later = build.slice(
        "s", build.device("d0", allNodes=True), build.device("d1", nodeSelector=bad), perDeviceNodeSelection=True
    )
    claims = [build.claim("c", build.exactly("r"))]
    assert build.chosen(build.allocate([later], claims)) == [["r=d0"]]
    assert "failed to parse node selector" in str(_refused(build, build.exactly("r", count=2), slices=[later]))


def test_a_node_selector_with_two_terms_ends_a_successful_search(build: SimpleNamespace) -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}] * 2
    slices = [build.slice("s", build.device("d"), nodeSelector={"nodeSelectorTerms": terms})]
    error = _refused(build, build.exactly("r"), slices=slices)
    assert str(error) == "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms"


@pytest.mark.parametrize(
    ("devices", "counters", "reason"),
    [
        (["d", "d"], [], "duplicate device name d"),
        (["d"], ["set", "set"], "duplicate counter set name set"),
        (["lost"], ["set"], "counter set none not found"),
        (["odd"], ["set"], "counter x not found in counter set set"),
    ],
)
def test_an_invalid_pool_is_named_with_its_reason(
    build: SimpleNamespace, devices: list[str], counters: list[str], reason: str
) -> None:
    draws = {"lost": build.draws("none", x="1"), "odd": build.draws("set", x="1")}
    made = [build.device(name, **({"consumesCounters": [draws[name]]} if name in draws else {})) for name in devices]
    slices = [build.slice("s", *made, count=1 + len(counters))]
    slices += [
        build.slice(f"n{index}", count=1 + len(counters), sharedCounters=[build.counter_set(name, memory="1")])
        for index, name in enumerate(counters)
    ]
    with pytest.raises(NodeError) as raised:
        build.allocate(slices, [build.claim("c", build.exactly("r"))])
    assert raised.value.pools == (("driver-a", "pool", reason),)
    assert reason in str(raised.value)
    good = build.slice("good", build.device("g"), pool="other")
    assert build.chosen(build.allocate([*slices, good], [build.claim("c", build.exactly("r"))])) == [["r=g"]]
