"""List and watch: bookmarks, 410 both ways, gaps, re-creation, backoff."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from drakit import kube


def obj(name: str, version: int, uid: str = "u", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"{uid}-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


class Watched:
    """Serves scripted lists and scripted watches; a watch is a list of events, left open unless it ends with None."""

    def __init__(self, status: Callable[..., web.Response]) -> None:
        self.lists: deque[Any] = deque()
        self.watches: deque[Any] = deque()
        self.status = status
        self.held = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            answer = self.lists.popleft() if len(self.lists) > 1 else self.lists[0]
            if isinstance(answer, int):
                return self.status(answer, "Failed")
            items, version = answer
            return web.json_response({"metadata": {"resourceVersion": str(version)}, "items": items})
        if not self.watches:
            await self.held.wait()
            return web.Response()
        script = self.watches.popleft()
        if isinstance(script, int):
            return self.status(script, "Failed")
        response = web.StreamResponse()
        await response.prepare(request)
        for event in script:
            if event is None:
                return response
            if isinstance(event, bytes):
                await response.write(event)
            else:
                await response.write(json.dumps({"type": event[0], "object": event[1]}).encode() + b"\n")
        await self.held.wait()
        return response


@pytest.fixture(name="watched")
async def _watched(server: Any, status: Any) -> AsyncIterator[Watched]:
    watched = Watched(status)
    server.handler = watched
    yield watched
    watched.held.set()


async def collect(reflector: kube.Reflector, count: int) -> list[tuple[str, str]]:
    found = []
    async with asyncio.timeout(10):
        async for change in reflector.changes():
            found.append(
                (change.type, f"{change.object['metadata']['name']}@{change.object['metadata']['resourceVersion']}")
            )
            if len(found) == count:
                break
    return found


async def test_list_then_watch_from_its_version(client: Any, watched: Watched, server: Any, clock: Any) -> None:
    watched.lists.append(([obj("a", 1)], 5))
    watched.watches.append([("ADDED", obj("b", 6)), ("MODIFIED", obj("a", 7)), ("DELETED", obj("b", 8))])
    async with kube.Reflector(client, kube.RESOURCE_SLICES, field_selector="spec.driver=d", clock=clock) as reflector:
        assert await collect(reflector, 4) == [
            ("ADDED", "a@1"), ("ADDED", "b@6"), ("MODIFIED", "a@7"), ("DELETED", "b@8"),
        ]  # fmt: skip
        assert reflector.synced.is_set()
        assert set(reflector.store) == {("", "a")}
        assert reflector.get("a") == obj("a", 7)
    query = next(request.query for request in server.seen if "watch" in request.query)
    assert query["resourceVersion"] == "5"
    assert query["allowWatchBookmarks"] == "true"
    assert query["fieldSelector"] == "spec.driver=d"
    assert 300 <= int(query["timeoutSeconds"]) <= 600


async def test_changes_begin_with_the_call(client: Any, watched: Watched, clock: Any) -> None:
    watched.lists.append(([obj("a", 1)], 5))
    watched.watches.append([("DELETED", obj("a", 6))])
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock) as reflector, asyncio.timeout(10):
        await reflector.synced.wait()
        assert reflector.get("a") is not None
        changes = reflector.changes()
        assert await collect(reflector, 2) == [("ADDED", "a@1"), ("DELETED", "a@6")]
        assert reflector.get("a") is None
        assert [(await anext(changes)).type for _ in range(2)] == ["ADDED", "DELETED"]


async def test_a_watch_that_ends_is_continued_after_the_last_bookmark(
    client: Any, watched: Watched, server: Any, clock: Any
) -> None:
    watched.lists.append(([], 5))
    bookmark = {"kind": "ResourceSlice", "metadata": {"resourceVersion": "90"}, "spec": {"driver": "", "pool": {}}}
    watched.watches.append([("BOOKMARK", bookmark), None])
    watched.watches.append([("ADDED", obj("a", 91))])
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock) as reflector:
        assert await collect(reflector, 1) == [("ADDED", "a@91")]
        assert reflector.lists == 1
    assert [r.query["resourceVersion"] for r in server.seen if "watch" in r.query] == ["5", "90"]


@pytest.mark.parametrize("way", ["http", "event"])
async def test_410_relists_and_tells_the_difference(client: Any, watched: Watched, clock: Any, way: str) -> None:
    watched.lists.extend(
        [([obj("a", 1), obj("b", 2), obj("c", 3)], 5), ([obj("a", 1), obj("b", 12), obj("d", 13)], 20)]
    )
    expired = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
    watched.watches.append(410 if way == "http" else [("ERROR", expired)])
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock) as reflector:
        found = await collect(reflector, 6)
        assert set(found[3:]) == {("DELETED", "c@3"), ("MODIFIED", "b@12"), ("ADDED", "d@13")}
        assert reflector.lists == 2
    assert clock.sleeps == []


async def test_deleted_and_created_again_between_lists_is_two_changes(
    client: Any, watched: Watched, clock: Any
) -> None:
    watched.lists.extend([([obj("a", 1, "old")], 5), ([obj("a", 9, "new")], 20)])
    watched.watches.append(410)
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock) as reflector:
        assert await collect(reflector, 3) == [("ADDED", "a@1"), ("DELETED", "a@1"), ("ADDED", "a@9")]


async def test_events_are_cut_anywhere(client: Any, watched: Watched, clock: Any) -> None:
    watched.lists.append(([], 5))
    line = json.dumps({"type": "ADDED", "object": obj("a", 6, note="ü" * 100_000)}).encode() + b"\n"
    watched.watches.append([line[:10], line[10:70_001], line[70_001:] + line.replace(b'"6"', b'"7"')[:-1], b"\n"])
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock) as reflector:
        assert await collect(reflector, 2) == [("ADDED", "a@6"), ("MODIFIED", "a@7")]


async def test_an_event_cut_short_or_garbled_is_watched_again(client: Any, watched: Watched, clock: Any) -> None:
    watched.lists.append(([], 5))
    watched.watches.extend([[b'{"type": "ADD', None], [b"garbage\n", None], [("ADDED", obj("a", 6))]])
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock) as reflector:
        assert await collect(reflector, 1) == [("ADDED", "a@6")]
        assert len(clock.sleeps) == 2
        assert reflector.failure is None


async def test_failing_lists_back_off_with_growing_delays(client: Any, watched: Watched, clock: Any) -> None:
    watched.lists.extend([403, 403, 403, ([obj("a", 1)], 5)])
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock, jitter=lambda: 0.0) as reflector:
        assert await collect(reflector, 1) == [("ADDED", "a@1")]
    assert clock.sleeps == [0.1, 0.2, 0.4]


async def test_watches_that_end_at_once_do_not_spin(client: Any, watched: Watched, clock: Any) -> None:
    watched.lists.append(([], 5))
    watched.watches.extend([[None]] * 5 + [[("ADDED", obj("a", 6))]])
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock, jitter=lambda: 0.0) as reflector:
        assert await collect(reflector, 1) == [("ADDED", "a@6")]
    assert clock.sleeps == [0.1, 0.2, 0.4, 0.8, 1.6]


async def test_a_version_that_is_no_longer_served_is_listed_again(
    client: Any, watched: Watched, server: Any, clock: Any
) -> None:
    watched.lists.extend([([], 5), ([obj("a", 1)], 9)])
    gone = web.Response(status=404, body=b"404 page not found")

    async def handler(request: web.Request) -> web.StreamResponse:
        if "/v1/" in request.path and "watch" in request.query:
            return web.Response(status=404, body=gone.body)
        return await watched(request)

    server.handler = handler
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock) as reflector:
        assert await collect(reflector, 1) == [("ADDED", "a@1")]


async def test_late_consumers_get_the_store_first(client: Any, watched: Watched, clock: Any) -> None:
    watched.lists.append(([obj("a", 1), obj("b", 2)], 5))
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock) as reflector:
        await reflector.synced.wait()
        assert await collect(reflector, 2) == [("ADDED", "a@1"), ("ADDED", "b@2")]
        assert len(list(reflector)) == 2


async def test_v1beta1_events_come_in_v1_form(client: Any, watched: Watched, server: Any, clock: Any) -> None:
    device = {"name": "d", "basic": {"attributes": {}}}
    watched.lists.append(([], 5))
    watched.watches.append([("ADDED", obj("a", 6, devices=[device], nodeName="", allNodes=True))])

    async def handler(request: web.Request) -> web.StreamResponse:
        return await watched(request) if "/v1beta1/" in request.path else web.Response(status=404)

    server.handler = handler
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock) as reflector:
        await collect(reflector, 1)
        found = reflector.get("a")
    assert found is not None
    assert found["spec"] == {"allNodes": True, "devices": [{"name": "d", "attributes": {}}]}


async def test_410_again_and_again_is_slowed_down(client: Any, watched: Watched, clock: Any) -> None:
    watched.lists.append(([], 5))
    watched.watches.extend([410] * 4 + [[("ADDED", obj("a", 6))]])
    async with kube.Reflector(client, kube.RESOURCE_SLICES, clock=clock, jitter=lambda: 0.0) as reflector:
        assert await collect(reflector, 1) == [("ADDED", "a@6")]
        assert reflector.lists == 5
    assert clock.sleeps == [0.2, 0.4, 0.8]
