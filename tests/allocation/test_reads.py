"""Attributes that no claim reads change nothing, and devices that differ in them only share what was found out."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit import cel
from drakit.allocation import AllocatedState, AllocationError, Allocator, Contents, Features, NodeError
from drakit.allocation.reads import expression_reads
from drakit.api import resource, shape

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

NAMED = [
    ('device.driver == "driver-a"', set()),
    ("device.allowMultipleAllocations", set()),
    ('device.capacity["driver-a"].memory.compareTo(quantity("1Gi")) >= 0', set()),
    ('device.attributes["driver-a"].kind == "x"', {"kind"}),
    ("device . attributes [ 'driver-a' ] . kind == 'x'", {"kind"}),
    ('device.attributes[device.driver].kind.matches("x")', {"kind"}),
    ('has(device.attributes["x.example.com"].numa) && device.attributes["driver-a"].roots.exists(r, r == "p")', {"numa", "roots"}),
    ('device.attributes["driver-a"].kind.size() > 0', {"kind"}),
    ('"//" != ""', None),
    ('device.attributes["driver-a"].exists(k, k == "uuid")', None),
    ('device.attributes["driver-a"].map (k, k) == ["uuid"]', None),
    ('device.attributes["driver-a"].exists // all of them\n (k, k == "uuid")', None),
    ('device.attributes["driver-a"].size() > 2', None),
    ('size(device.attributes["driver-a"]) > 2', None),
    ('"uuid" in device.attributes["driver-a"]', None),
    ('"driver-a" in device.attributes', None),
    ('device.attributes["driver-a"]["uuid"] == "1"', None),
    ('device.attributes["driver-a"].?uuid.orValue("") == "1"', None),
    ('device.attributes[?"driver-a"].hasValue()', None),
    ('device.attributes[r"driver-a"].uuid == "1"', None),
    ('device.attributes["driver\\x2da"].uuid == "1"', None),
    ('device.attributes.exists(d, d == "driver-a")', None),
    ('[device].exists(d, d.attributes["driver-a"].uuid == "1")', None),
    ('cel.bind(d, device, d.attributes["driver-a"].uuid == "1")', None),
    ("device == device", None),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "reads"), NAMED)
def test_what_an_expression_reads(expression: str, reads: set[str] | None) -> None:
    found = expression_reads(expression)
    assert found == (None if reads is None else frozenset(reads))


_NAMES = ("kind", "numa", "roots", "driver-a/kind", "x.example.com/numa", "x.example.com/uuid", "uuid")
_VALUES: st.SearchStrategy[resource.DeviceAttribute] = st.one_of(
    st.sampled_from(["x", "p", "1"]).map(lambda value: resource.DeviceAttribute(string=value)),
    st.integers(0, 3).map(lambda value: resource.DeviceAttribute(int=value)),
    st.booleans().map(lambda value: resource.DeviceAttribute(bool=value)),
    st.sampled_from(["1.2.3", "1.2.4"]).map(lambda value: resource.DeviceAttribute(version=value)),
    st.just(resource.DeviceAttribute(strings=("p", "q"))),
)


@given(st.dictionaries(st.sampled_from(_NAMES), _VALUES))
def test_an_expression_answers_the_same_without_what_it_does_not_read(
    attributes: dict[str, resource.DeviceAttribute],
) -> None:
    environment = cel.Environment()
    for expression, reads in NAMED:
        if reads is not None:
            kept = {name: each for name, each in attributes.items() if name.rpartition("/")[2] in reads}
            program = environment.compile(expression)
            assert _outcome(program, attributes) == _outcome(program, kept), expression


def _outcome(program: cel.Program, attributes: dict[str, resource.DeviceAttribute]) -> Any:
    try:
        return program.evaluate(cel.device_view("driver-a", resource.Device(name="d", attributes=attributes)))
    except cel.EvaluationError as error:
        return error.enhanced()


_READING = (
    ["uuid", 'device.attributes["driver-a"].uuid != "u1"'],
    ["serial", 'has(device.attributes["driver-a"].serial) && device.attributes["driver-a"].serial > 1'],
    ["any", 'device.attributes["driver-a"].exists(k, k == "serial")'],
)


@given(seed=st.integers(0, 2**32))
def test_a_store_that_looks_at_everything_gives_the_same_answers(
    seed: int, make_world: Callable[..., SimpleNamespace], build: SimpleNamespace
) -> None:
    chance = random.Random(seed)
    world = make_world(seed, size=4)
    slices = [_distinct(each, chance) for each in world.slices]
    _, expression = chance.choice(_READING)
    extra = build.claim("extra", build.exactly("r", "any", expression))
    allocator = Allocator(slices, world.classes, AllocatedState.of(world.allocated), world.features)
    for claims in (world.claims, [extra], [*world.claims, extra], world.claims):
        everything = Contents(world.features)
        everything.widen(None)
        thorough = Allocator(
            slices, world.classes, AllocatedState.of(world.allocated), world.features, contents=everything
        )
        assert _answer(allocator, claims, build) == _answer(thorough, claims, build)


def _distinct(slice_: resource.ResourceSlice, chance: random.Random) -> resource.ResourceSlice:
    devices = []
    for device in slice_.spec.devices:
        more: dict[str, resource.DeviceAttribute] = {"uuid": resource.DeviceAttribute(string=f"u{chance.randrange(3)}")}
        if chance.random() < 0.5:
            more["serial"] = resource.DeviceAttribute(int=chance.randrange(3))
        if chance.random() < 0.1:
            more["driver-a/empty"] = resource.DeviceAttribute()
        if chance.random() < 0.1:
            more["firmware"] = resource.DeviceAttribute(version=chance.choice(("1.2.3", "01.2")))
        devices.append(msgspec.structs.replace(device, attributes={**device.attributes, **more}))
    spec = msgspec.structs.replace(slice_.spec, devices=tuple(devices))
    return msgspec.structs.replace(slice_, spec=spec)


def _answer(allocator: Allocator, claims: list[resource.ResourceClaim], build: SimpleNamespace) -> Any:
    try:
        results = allocator.allocate(build.node(), claims)
    except (AllocationError, NodeError) as error:
        return str(error)
    if results is None:
        return None
    return [
        [
            shape(msgspec.structs.replace(each, share_id=each.share_id and "share"))
            for each in (*result.devices.results, *result.devices.config)
            if isinstance(each, resource.DeviceRequestAllocationResult)
        ]
        for result in results
    ]


def _nodes_with_uuids(build: SimpleNamespace, count: int) -> list[resource.ResourceSlice]:
    return [
        build.slice(
            f"s{index}",
            build.device("d0", attributes={"kind": "x", "uuid": f"u{index}-0"}),
            build.device("d1", attributes={"kind": "y", "uuid": f"u{index}-1"}),
            pool=f"p{index}",
            nodeName=f"n{index}",
        )
        for index in range(count)
    ]


def test_nodes_whose_devices_have_uuids_share_one_search(build: SimpleNamespace) -> None:
    contents = Contents(Features())
    allocator = Allocator(_nodes_with_uuids(build, 20), build.default_classes(), contents=contents)
    claims = [build.claim("c", build.exactly("r", "class-a", 'device.attributes["driver-a"].kind == "y"'))]
    for index in range(20):
        assert build.chosen(allocator.allocate(build.node(f"n{index}"), claims)) == [["r=d1"]]
    assert len(contents.outcomes) == 1


def test_claims_that_read_ever_other_attributes_end_the_sharing_and_answer_the_same(build: SimpleNamespace) -> None:
    contents = Contents(Features())
    allocator = Allocator(_nodes_with_uuids(build, 3), build.default_classes(), contents=contents)
    for number in range(40):
        text = f'device.attributes["driver-a"].uuid == "u1-1" && !has(device.attributes["driver-a"].other{number})'
        claims = [build.claim("c", build.exactly("r", "class-a", text))]
        for index in range(3):
            found = allocator.allocate(build.node(f"n{index}"), claims)
            assert build.chosen(found) == ([["r=d1"]] if index == 1 else None)
    assert contents.reads is None
    assert contents.edition <= 20


def test_pools_that_were_looked_at_before_know_what_a_new_claim_reads(build: SimpleNamespace) -> None:
    allocator = Allocator(_nodes_with_uuids(build, 1), build.default_classes())
    pools = allocator.pools(build.node("n0"))
    assert dict(pools[0].content.devices[1].device.attributes) == {}
    allocator.plan([build.claim("c", build.exactly("r", "class-a", 'device.attributes["driver-a"].kind == "y"'))])
    assert set(pools[0].content.devices[1].device.attributes) == {"kind"}
    assert pools[0].condition.content is pools[0].content
