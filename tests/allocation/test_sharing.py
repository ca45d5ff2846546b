"""One allocator for many nodes, and many allocators with one store, answer as if each were alone."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drakit.allocation import AllocatedState, AllocationError, Allocator, Contents, NodeError
from drakit.allocation.__main__ import features_of, node_of
from drakit.api import core, decode, shape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import SimpleNamespace

    from drakit.allocation import Features
    from drakit.api import resource


class _Inputs:
    def __init__(self, case: dict[str, Any]) -> None:
        self.features: Features = features_of(case["features"])
        self.slices: list[resource.ResourceSlice] = [decode(each, "ResourceSlice") for each in case["slices"]]
        self.classes = [decode(each, "DeviceClass") for each in case["classes"]]
        self.claims = [decode(each, "ResourceClaim") for each in case["claims"]]
        self.held = [decode(each, "ResourceClaim") for each in case.get("allocatedClaims") or ()]
        first = node_of(case["node"])
        labels = dict(first.metadata.labels)
        self.nodes = [
            first,
            *(_node(f"node-{index}", labels) for index in (1, 2, 3)),
            _node("node-1", {"zone": "zone-b"}),
        ]

    def allocator(self, slices: Sequence[resource.ResourceSlice] | None = None, **options: Any) -> Allocator:
        numbers = itertools.count()
        state = AllocatedState.of(self.held)
        options["share_id"] = lambda: f"share-{next(numbers)}"
        return Allocator(self.slices if slices is None else slices, self.classes, state, self.features, **options)


def _node(name: str, labels: dict[str, str]) -> core.Node:
    return node_of({"name": name, "labels": {**labels, "kubernetes.io/hostname": name}})


def _answer(allocator: Allocator, node: core.Node, inputs: _Inputs) -> Any:
    try:
        results = allocator.allocate(node, inputs.claims)
    except (AllocationError, NodeError) as error:
        return str(error)
    return None if results is None else [_without_shares(each) for each in results]


def _without_shares(result: resource.AllocationResult) -> bytes:
    plain = [msgspec.structs.replace(each, share_id=each.share_id and "share") for each in result.devices.results]
    devices = msgspec.structs.replace(result.devices, results=tuple(plain))
    return shape(msgspec.structs.replace(result, devices=devices))


def test_nodes_asked_in_any_order_get_the_answer_of_an_allocator_of_their_own(cases: list[dict[str, Any]]) -> None:
    stores: dict[str, Contents] = {}
    for case in cases[::16]:
        inputs = _Inputs(case)
        expected = [_answer(inputs.allocator(), node, inputs) for node in inputs.nodes]
        shared = inputs.allocator(contents=stores.setdefault(str(inputs.features), Contents(inputs.features)))
        order = list(range(len(inputs.nodes))) * 2
        random.Random(case["id"]).shuffle(order)
        for index in order:
            assert _answer(shared, inputs.nodes[index], inputs) == expected[index], (case["id"], index)


def test_changes_one_by_one_lead_where_a_new_allocator_starts(cases: list[dict[str, Any]]) -> None:
    for case in cases[1::16]:
        inputs = _Inputs(case)
        chance = random.Random(case["id"])
        unique = list({each.metadata.name: each for each in inputs.slices}.values())
        present = set(chance.sample(range(len(unique)), len(unique) // 2))
        allocator = inputs.allocator([unique[index] for index in sorted(present)])
        for index in chance.sample(range(len(unique)), len(unique)):
            node = chance.choice(inputs.nodes)
            _answer(allocator, node, inputs)
            if index in present and chance.random() < 0.5:
                allocator.remove_slice(unique[index].metadata.name)
                present.discard(index)
            else:
                allocator.update_slice(unique[index])
                present.add(index)
        # Updated slices come last; the order of slices only matters for slices that contradict each other.
        fresh = inputs.allocator([unique[index] for index in sorted(present)])
        for node in inputs.nodes:
            assert _answer(allocator, node, inputs) == _answer(fresh, node, inputs), case["id"]


def test_a_store_at_its_limits_starts_anew_and_answers_the_same(
    build: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_MAX_SPECS", "_MAX_DEVICES", "_MAX_REQUESTS", "_MAX_TOKENS", "_MAX_OUTCOMES"):
        monkeypatch.setattr(f"drakit.allocation.contents.{name}", 3)
    monkeypatch.setattr("drakit.allocation.pools._MAX_CONDITIONS", 3)
    slices = [
        build.slice(f"s{index}", build.device("d", attributes={"x": index}), pool=f"p{index}", nodeName=f"n{index}")
        for index in range(12)
    ]
    allocator = Allocator(slices, build.default_classes())
    for index in range(12):
        wanted = f'device.attributes["driver-a"].x == {index}'
        claims = [build.claim("c", build.exactly("r", "class-a", wanted))]
        for node in range(12):
            found = allocator.allocate(build.node(f"n{node}"), claims)
            assert build.chosen(found) == ([["r=d"]] if node == index else None)


def test_classes_that_change_count_from_then_on(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d0", attributes={"x": 0}), build.device("d1", attributes={"x": 1}))]
    allocator = Allocator(slices, [build.class_("c", 'device.attributes["driver-a"].x == 0')])
    claims = [build.claim("claim", build.exactly("r", "c"))]
    assert build.chosen(allocator.allocate(build.node(), claims)) == [["r=d0"]]
    allocator.update_class(build.class_("c", 'device.attributes["driver-a"].x == 1'))
    assert build.chosen(allocator.allocate(build.node(), claims)) == [["r=d1"]]
    allocator.remove_class("c")
    with pytest.raises(AllocationError, match="could not retrieve device class c"):
        allocator.allocate(build.node(), claims)
