"""Watches: order, selections, bookmarks, expiry, broken connections."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from drakit.simulator.apiserver import FakeAPIServer, resources
from drakit.simulator.apiserver.options import ListOptions
from drakit.simulator.apiserver.paths import Target
from drakit.simulator.apiserver.selectors import everything
from drakit.simulator.apiserver.storage import Storage
from drakit.simulator.apiserver.watching import Watch
from drakit.simulator.clock import ManualClock

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/default/pods"


async def _next(response: aiohttp.ClientResponse) -> Any:
    async with asyncio.timeout(10):
        line = await response.content.readline()
    return json.loads(line) if line else None


async def test_changes_arrive_in_order_and_once(http: Any, make_slice: Any, server: FakeAPIServer) -> None:
    start = server.storage.revision
    async with http.open("GET", f"{SLICES}?watch=true&resourceVersion={start}") as response:
        await http("POST", SLICES, make_slice("a"))
        for number in range(2, 22):
            await http.patch(f"{SLICES}/a", {"spec": {"pool": {"generation": number}}})
        await http("DELETE", f"{SLICES}/a")
        events = [await _next(response) for _ in range(22)]
    assert [event["type"] for event in events] == ["ADDED", *["MODIFIED"] * 20, "DELETED"]
    revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert revisions == sorted(set(revisions))


async def test_a_watch_resumes_where_another_ended(http: Any, make_slice: Any, server: FakeAPIServer) -> None:
    for name in "abc":
        await http("POST", SLICES, make_slice(name))
    middle = (await http.get(f"{SLICES}/b"))["metadata"]["resourceVersion"]
    async with http.open("GET", f"{SLICES}?watch=true&resourceVersion={middle}") as response:
        assert (await _next(response))["object"]["metadata"]["name"] == "c"


async def test_a_watch_of_one_namespace_sees_only_it(http: Any, server: FakeAPIServer, make_pod: Any) -> None:
    server.add_namespace("other")
    start = server.storage.revision
    async with http.open("GET", f"{PODS}?watch=true&resourceVersion={start}") as response:
        await http("POST", "/api/v1/namespaces/other/pods", make_pod("x", "other"))
        await http("POST", PODS, make_pod("y"))
        assert (await _next(response))["object"]["metadata"]["name"] == "y"


async def test_the_watch_path_of_one_object(http: Any, make_slice: Any) -> None:
    for name in "ab":
        await http("POST", SLICES, make_slice(name))
    async with http.open("GET", "/apis/resource.k8s.io/v1/watch/resourceslices/b") as response:
        assert (await _next(response))["object"]["metadata"]["name"] == "b"


async def test_initial_events_end_with_a_bookmark(http: Any, make_slice: Any, server: FakeAPIServer) -> None:
    await http("POST", SLICES, make_slice("a"))
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with http.open("GET", f"{SLICES}?{query}") as response:
        added, mark = await _next(response), await _next(response)
    assert added["type"] == "ADDED"
    assert mark["object"]["metadata"] == {
        "resourceVersion": str(server.storage.revision),
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


async def test_a_compacted_revision_is_gone(http: Any, make_slice: Any, server: FakeAPIServer) -> None:
    await http("POST", SLICES, make_slice("a"))
    server.compact()
    await http("POST", SLICES, make_slice("b"))
    async with http.open("GET", f"{SLICES}?watch=true&resourceVersion=1") as response:
        event = await _next(response)
        assert (response.status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
        assert await _next(response) is None


async def test_compaction_does_not_disturb_an_open_watch(
    http: Any, make_slice: Any, server: FakeAPIServer, until: Any
) -> None:
    start = server.storage.revision
    async with http.open("GET", f"{SLICES}?watch=true&resourceVersion={start}") as response:
        await until(server.watching)
        await http("POST", SLICES, make_slice("a"))
        server.compact()
        await http("POST", SLICES, make_slice("b"))
        assert [(await _next(response))["object"]["metadata"]["name"] for _ in "ab"] == ["a", "b"]


async def test_dropped_watches_break_in_the_middle(http: Any, server: FakeAPIServer, until: Any) -> None:
    async with http.open("GET", f"{SLICES}?watch=true&resourceVersion=1") as response:
        await until(server.watching)
        assert server.drop_watches("pods") == 0
        assert server.drop_watches("resourceslices") == 1
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.readline()
    assert server.watching() == 0


async def test_a_future_revision_times_out(session: aiohttp.ClientSession, bare: Any) -> None:
    async with FakeAPIServer(future_wait=0) as server:
        answer = await bare(server, session)("GET", f"{SLICES}?watch=true&resourceVersion=999")
    assert (answer.status, answer.body["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")
    assert answer.headers["Retry-After"] == "1"


async def test_the_server_forgets_a_watch_whose_client_left(http: Any, server: FakeAPIServer, until: Any) -> None:
    async with http.open("GET", f"{SLICES}?watch=true&resourceVersion=1"):
        await until(server.watching)
    await until(lambda: not server.watching())


@pytest.fixture
async def timed(session: aiohttp.ClientSession, bare: Any) -> AsyncIterator[tuple[FakeAPIServer, Any, ManualClock]]:
    """A server on a clock that the test drives."""
    clock = ManualClock()
    async with FakeAPIServer(clock=clock) as server:
        clock.idle_when(lambda: server.is_idle)
        yield server, bare(server, session), clock


async def test_a_watch_ends_after_its_timeout(timed: Any, until: Any) -> None:
    server, http, clock = timed
    async with http.open("GET", f"{SLICES}?watch=true&resourceVersion=1&timeoutSeconds=400") as response:
        await until(server.watching)
        await clock.advance(399)
        assert server.watching() == 1
        await clock.advance(2)
        assert await _next(response) is None


async def test_bookmarks_tell_of_changes_elsewhere(timed: Any, make_pod: Any, until: Any) -> None:
    server, http, clock = timed
    query = "watch=true&resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=500"
    async with http.open("GET", f"{SLICES}?{query}") as response:
        await until(server.watching)
        await http("POST", PODS, make_pod("p"))
        await clock.advance(61)
        mark = await _next(response)
        assert (mark["type"], mark["object"]["metadata"]["resourceVersion"]) == (
            "BOOKMARK",
            str(server.storage.revision),
        )
        await clock.advance(120)
        await http("POST", PODS, make_pod("q"))
        await clock.advance(61)
        assert (await _next(response))["object"]["metadata"]["resourceVersion"] == str(server.storage.revision)


async def test_a_bookmark_never_overtakes_a_change() -> None:
    clock, storage, kind = ManualClock(), Storage(), resources.PODS
    target = Target(kind, "v1")
    options = ListOptions(watch=True, resource_version="1", allow_bookmarks=True)
    shown = lambda record: json.dumps(record.object).encode()  # noqa: E731
    watch = Watch(storage, target, options, select=everything, show=shown, clock=clock)
    storage.put(kind, ("", "a"), {"metadata": {"name": "a"}})
    lines = watch.lines(1000)
    first = json.loads(await anext(lines))
    await clock.advance(61)
    storage.put(kind, ("", "b"), {"metadata": {"name": "b"}})
    rest = [json.loads(await anext(lines))]
    storage.revision += 1
    rest.append(json.loads(await anext(lines)))
    await lines.aclose()
    assert [event["type"] for event in (first, *rest)] == ["ADDED", "ADDED", "BOOKMARK"]


async def test_tables_are_streamed(http: Any, make_slice: Any) -> None:
    await http("POST", SLICES, make_slice("a"))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    async with http.open("GET", f"{SLICES}?watch=true", Accept=accept) as response:
        first = (await _next(response))["object"]
        await http.patch(f"{SLICES}/a", {"metadata": {"labels": {"a": "b"}}})
        second = (await _next(response))["object"]
    assert (first["kind"], len(first["columnDefinitions"]), second["columnDefinitions"]) == ("Table", 5, [])
    assert second["rows"][0]["cells"][0] == "a"
