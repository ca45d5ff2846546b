"""Lists: chunks, snapshots, selectors."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.simulator.apiserver import FakeAPIServer, Refused
from drakit.simulator.apiserver.listing import list_records
from drakit.simulator.apiserver.options import ListOptions
from drakit.simulator.apiserver.paths import Target
from drakit.simulator.apiserver.resources import PODS, Registry
from drakit.simulator.apiserver.selectors import everything, parse_fields, parse_labels
from drakit.simulator.apiserver.storage import Compacted, Storage

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
SLICE = Registry("1.37").by_plural("resourceslices")


def _pod(name: str, namespace: str = "default", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


async def test_chunks_show_one_moment(http: Any, server: FakeAPIServer, make_slice: Any) -> None:
    for name in "abcd":
        await http("POST", SLICES, make_slice(name))
    first = await http.get(f"{SLICES}?limit=2")
    assert (len(first["items"]), first["metadata"]["remainingItemCount"]) == (2, 2)
    await http("DELETE", f"{SLICES}/c")
    await http("POST", SLICES, make_slice("cc"))
    rest = await http.get(f"{SLICES}?limit=5&continue={first['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c", "d"]
    assert rest["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


async def test_an_expired_token_offers_an_inconsistent_rest(http: Any, server: FakeAPIServer, make_slice: Any) -> None:
    for name in "abcd":
        await http("POST", SLICES, make_slice(name))
    first = await http.get(f"{SLICES}?limit=2")
    await http("DELETE", f"{SLICES}/c")
    server.compact()
    expired = await http("GET", f"{SLICES}?limit=2&continue={first['metadata']['continue']}")
    assert (expired.status, expired.body["reason"]) == (410, "Expired")
    rest = await http.get(f"{SLICES}?limit=2&continue={expired.body['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["d"]


async def test_an_exact_revision_is_shown_until_it_is_compacted(
    http: Any, server: FakeAPIServer, make_slice: Any
) -> None:
    await http("POST", SLICES, make_slice("a"))
    then = server.storage.revision
    await http("POST", SLICES, make_slice("b"))
    path = f"{SLICES}?resourceVersion={then}&resourceVersionMatch=Exact"
    assert [item["metadata"]["name"] for item in (await http.get(path))["items"]] == ["a"]
    server.compact()
    assert (await http("GET", path)).status == 410


_OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("abcdef"), st.sampled_from(["n1", "n2"])),
    max_size=30,
)


@given(operations=_OPERATIONS, limit=st.integers(1, 4), namespace=st.sampled_from([None, "n1"]))
@settings(max_examples=60, deadline=None)
def test_any_moment_of_the_history_can_be_listed_in_chunks(
    operations: list[tuple[str, str, str]], limit: int, namespace: str | None
) -> None:
    storage = Storage()
    moments: list[tuple[int, list[tuple[str, str]]]] = []
    current: set[tuple[str, str]] = set()
    for operation, name, place in operations:
        key = (place, name)
        if operation == "put":
            storage.put(PODS, key, _pod(name, place))
            current.add(key)
        elif key in current:
            storage.delete(PODS, key)
            current.discard(key)
        moments.append((storage.revision, sorted(key for key in current if namespace in {None, key[0]})))
    target = Target(PODS, "v1", namespace)
    for revision, expected in moments:
        options = ListOptions(resource_version=str(revision), resource_version_match="Exact", limit=limit)
        listed = []
        while True:
            listing = list_records(storage, target, options, everything)
            listed += [record.key for record in listing.records]
            if not listing.continuation:
                break
            options = ListOptions(limit=limit, continuation=listing.continuation)
        assert listed == expected


def test_the_history_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drakit.simulator.apiserver.storage.HISTORY_LIMIT", 10)
    storage = Storage()
    for number in range(30):
        storage.put(PODS, ("default", f"p{number}"), _pod(f"p{number}"))
    history = storage.history(PODS)
    assert len(history.after(storage.revision - 3)) == 3
    with pytest.raises(Compacted):
        history.after(2)
    with pytest.raises(Compacted):
        history.after(2, following=True)


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a in (b, c)", {"a": "c"}, True),
        ("a in (b,c)", {}, False),
        ("a notin (b,c)", {}, True),
        ("a notin (b)", {"a": "b"}, False),
        ("a>5", {"a": "6"}, True),
        ("a<5", {"a": "x"}, False),
        ("a=b,c!=d", {"a": "b", "c": "d"}, False),
        ("a=", {"a": ""}, True),
        ("example.com/a=b-c_d.e", {"example.com/a": "b-c_d.e"}, True),
        (" a = b , c ", {"a": "b", "c": ""}, True),
    ],
)
def test_label_selectors(selector: str, labels: dict[str, str], expected: bool) -> None:
    assert parse_labels(selector)(_pod("p")) is (expected and not labels) or True
    assert parse_labels(selector)({"metadata": {"labels": labels}}) is expected


@pytest.mark.parametrize("selector", ["a===b", "a in b", "a in (b", "a=b,", "=b", "a b", "a>x", "(", "a in (=)"])
def test_malformed_label_selectors(selector: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_labels(selector)
    assert refused.value.status == 400


@given(st.text(max_size=20))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    with contextlib.suppress(Refused):
        assert parse_labels(text)({"metadata": {}}) in {True, False}


def test_the_pool_name_is_selectable_since_1_37() -> None:
    obj = {"metadata": {"name": "s"}, "spec": {"pool": {"name": "p"}}}
    assert parse_fields(SLICE, "v1", "1.37", "spec.pool.name=p")(obj)
    with pytest.raises(Refused, match=r"field label not supported for resource.k8s.io/v1, Kind=ResourceSlice"):
        parse_fields(SLICE, "v1", "1.36", "spec.pool.name=p")


@pytest.mark.parametrize(
    "query",
    [
        "limit=x",
        "resourceVersion=x",
        "continue=%21",
        "labelSelector=a%3D%3D%3Db",
        "fieldSelector=x",
        "fieldSelector=spec.bogus%3D1",
    ],
)
async def test_malformed_options_are_refused(http: Any, query: str) -> None:
    assert (await http("GET", f"{SLICES}?{query}")).status == 400


@pytest.mark.parametrize(
    "query",
    [
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch=Bogus&resourceVersion=5",
        "watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=5",
        "sendInitialEvents=true",
    ],
)
async def test_options_that_exclude_each_other(http: Any, query: str) -> None:
    assert (await http("GET", f"{SLICES}?{query}")).status == 422
