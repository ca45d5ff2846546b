"""The three client-side patch types as functions."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.simulator.apiserver import Refused
from drakit.simulator.apiserver.patches import json_patch, merge_patch, strategic_merge_patch
from drakit.simulator.apiserver.resources import PODS, Registry
from drakit.simulator.apiserver.schema import shape_of

POD = shape_of(PODS, "v1", "1.37")
CLAIM = shape_of(Registry("1.37").by_plural("resourceclaims"), "v1", "1.37")

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc/~", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [  # RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(target: Any, patch: Any, expected: Any) -> None:
    assert merge_patch(target, patch) == expected


@given(_JSON, _JSON)
@settings(max_examples=150, deadline=None)
def test_merge_patch_is_idempotent_and_leaves_its_input_alone(target: Any, patch: Any) -> None:
    before = json.dumps(target)
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert json.dumps(target) == before


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}),
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "replace", "path": "/a", "value": 0}], {"a": 0}),
        ([{"op": "move", "from": "/a", "path": "/b"}], {"b": [1, 2]}),
        ([{"op": "copy", "from": "/a/0", "path": "/b"}], {"a": [1, 2], "b": 1}),
        ([{"op": "test", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
        ([{"op": "add", "path": "/x~1y~0", "value": 1}], {"a": [1, 2], "x/y~": 1}),
        ([{"op": "replace", "path": "", "value": {}}], {}),
    ],
)
def test_json_patch(operations: Any, expected: Any) -> None:
    assert json_patch({"a": [1, 2]}, operations) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/nope"},
        {"op": "replace", "path": "/nope", "value": 1},
        {"op": "add", "path": "/nope/x", "value": 1},
        {"op": "add", "path": "/a/7", "value": 1},
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "remove", "path": "/a/-1"},
        {"op": "test", "path": "/a/0", "value": True},
        {"op": "test", "path": "/a/0", "value": 2},
        {"op": "bogus", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/a/0/b", "value": 1},
        {"op": "add", "path": "/b"},
        {"path": "/a"},
    ],
)
def test_json_patches_that_fail(operation: Any) -> None:
    with pytest.raises(Refused) as refused:
        json_patch({"a": [1, 2]}, [operation])
    assert (refused.value.status, refused.value.details) == (422, {})


@given(
    _JSON, st.lists(st.sampled_from(["add", "remove", "replace", "test"]), max_size=3), st.text("/abc0-", max_size=5)
)
@settings(max_examples=150, deadline=None)
def test_json_patch_never_changes_its_input(target: Any, names: list[str], path: str) -> None:
    before = json.dumps(target)
    operations = [{"op": name, "path": path, "value": 1} for name in names]
    with contextlib.suppress(Refused):
        json_patch(target, operations)
    assert json.dumps(target) == before


def test_strategic_patch_merges_lists_by_their_keys() -> None:
    pod = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}
    patch = {"spec": {"containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "3"}]}}
    containers = strategic_merge_patch(pod, patch, POD)["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in containers] == [("a", "1"), ("b", "2"), ("c", "3")]


def test_strategic_patch_knows_its_directives() -> None:
    pod = {"metadata": {"finalizers": ["x", "y"]}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
    delete = {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}
    assert strategic_merge_patch(pod, delete, POD)["spec"]["containers"] == [{"name": "b"}]
    replace = {"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}
    assert strategic_merge_patch(pod, replace, POD)["spec"]["containers"] == [{"name": "z"}]
    primitive = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"], "finalizers": ["z"]}}
    assert strategic_merge_patch(pod, primitive, POD)["metadata"]["finalizers"] == ["y", "z"]
    order = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}
    assert [c["name"] for c in strategic_merge_patch(pod, order, POD)["spec"]["containers"]] == ["b", "a"]
    whole = {"spec": {"$patch": "replace", "containers": []}}
    assert strategic_merge_patch(pod, whole, POD)["spec"] == {"containers": []}
    keep = {"spec": {"$retainKeys": ["nodeName"], "nodeName": "n"}}
    assert strategic_merge_patch(pod, keep, POD)["spec"] == {"nodeName": "n"}


def test_strategic_patch_of_reservations_merges_by_uid() -> None:
    claim = {"status": {"reservedFor": [{"uid": "1", "name": "a"}]}}
    patch = {"status": {"reservedFor": [{"uid": "2", "name": "b"}]}}
    merged = strategic_merge_patch(claim, patch, CLAIM)
    assert [entry["uid"] for entry in merged["status"]["reservedFor"]] == ["1", "2"]
    gone = {"status": {"reservedFor": [{"uid": "1", "$patch": "delete"}]}}
    assert [entry["uid"] for entry in strategic_merge_patch(merged, gone, CLAIM)["status"]["reservedFor"]] == ["2"]


def test_an_item_without_its_merge_key_is_refused() -> None:
    with pytest.raises(Refused, match="does not contain declared merge key: name"):
        strategic_merge_patch({"spec": {"containers": []}}, {"spec": {"containers": [{"image": "x"}]}}, POD)
