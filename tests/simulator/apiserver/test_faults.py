"""Failures on purpose and the counting of requests."""

import asyncio
from typing import Any

import aiohttp
import pytest

from drakit.simulator.apiserver import FakeAPIServer
from drakit.simulator.clock import ManualClock

SLICES = "/apis/resource.k8s.io/v1/resourceslices"


async def test_the_next_requests_fail_and_then_no_more(http: Any, server: FakeAPIServer, make_slice: Any) -> None:
    fault = server.faults.fail(429, times=2, retry_after=3, verb="create", resource="resourceslices")
    assert (await http("GET", SLICES)).status == 200
    for _ in range(2):
        answer = await http("POST", SLICES, make_slice("a"))
        assert (answer.status, answer.body["reason"], answer.headers["Retry-After"]) == (429, "TooManyRequests", "3")
    assert fault.left == 0
    assert (await http("POST", SLICES, make_slice("a"))).status == 201


async def test_a_lasting_fault_ends_when_it_is_cleared(http: Any, server: FakeAPIServer) -> None:
    server.faults.fail(503, times=None, name="a")
    for _ in range(3):
        assert (await http("GET", f"{SLICES}/a")).status == 503
    assert (await http("GET", f"{SLICES}/b")).status == 404
    server.faults.clear()
    assert (await http("GET", f"{SLICES}/a")).status == 404


async def test_dropped_connections_before_and_after_the_work(http: Any, server: FakeAPIServer, make_slice: Any) -> None:
    for name, after_work in (("before", False), ("after", True)):
        server.faults.drop(verb="create", after_work=after_work)
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await http("POST", SLICES, make_slice(name))
    assert [obj["metadata"]["name"] for obj in server.list("resourceslices")] == ["after"]


async def test_a_delay_runs_on_the_servers_clock(session: aiohttp.ClientSession, bare: Any, until: Any) -> None:
    clock = ManualClock()
    async with FakeAPIServer(clock=clock) as server:
        server.faults.delay(60, resource="resourceslices")
        waiting = asyncio.ensure_future(bare(server, session)("GET", SLICES))
        await until(lambda: clock.sleepers)
        assert not waiting.done()
        await clock.advance(61)
        assert (await waiting).status == 200


async def test_requests_are_counted_by_verb_and_resource(http: Any, server: FakeAPIServer, make_slice: Any) -> None:
    await http("POST", SLICES, make_slice("a"))
    await http.patch(f"{SLICES}/a", {"metadata": {"labels": {"a": "b"}}})
    await http("GET", f"{SLICES}/a")
    await http("GET", "/api/v1/pods")
    await http("DELETE", f"{SLICES}/a")
    assert server.requests.writes("resourceslices") == 3
    assert server.requests.writes("pods") == 0
    assert (server.requests.count("list"), server.requests.count("get", "resourceslices")) == (1, 1)
    assert [call.verb for call in server.requests.calls] == ["create", "patch", "get", "list", "delete"]
    server.requests.clear()
    assert server.requests.count() == 0


async def test_a_restarted_server_keeps_port_objects_and_tokens(
    http: Any, server: FakeAPIServer, make_slice: Any
) -> None:
    await http("POST", SLICES, make_slice("a"))
    await server.stop()
    with pytest.raises(aiohttp.ClientConnectorError):
        await http("GET", SLICES)
    await server.start()
    assert (await http("GET", f"{SLICES}/a")).status == 200
