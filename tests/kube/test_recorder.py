"""Events for people: written once, bounded, and never in the way."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from drakit import kube

REGARDING = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1"}


@pytest.fixture(name="accepting")
def _accepting(server: Any) -> Any:
    server.script(web.json_response({"metadata": {"name": "e"}}, status=201))
    return server


async def written(recorder: kube.Recorder, server: Any, count: int) -> list[Any]:
    task = asyncio.create_task(recorder.run())
    async with asyncio.timeout(10):
        while len(server.seen) < count:  # noqa: ASYNC110 - the server counts in another task
            await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return [request.json() for request in server.seen]


async def test_an_event_about_a_node(client: Any, accepting: Any, clock: Any) -> None:
    recorder = kube.Recorder(client, regarding=REGARDING, component="gpu.example.com", host="n1", clock=clock)
    recorder.record("Warning", "PoolRefused", "no")
    (event,) = await written(recorder, accepting, 1)
    assert event["involvedObject"] == REGARDING
    assert event["metadata"]["namespace"] == "default"
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "PoolRefused", "no")
    assert event["source"] == {"component": "gpu.example.com", "host": "n1"}
    assert event["firstTimestamp"] == "1970-01-01T00:16:40Z"


async def test_the_same_again_is_written_after_ten_minutes_only(client: Any, accepting: Any, clock: Any) -> None:
    recorder = kube.Recorder(client, regarding=REGARDING, component="d", clock=clock)
    for _ in range(5):
        recorder.record("Warning", "A", "same")
    recorder.record("Warning", "A", "other")
    clock.time += 601
    recorder.record("Warning", "A", "same")
    events = await written(recorder, accepting, 3)
    assert [event["message"] for event in events] == ["same", "other", "same"]


async def test_long_messages_are_cut_at_a_character(client: Any, accepting: Any, clock: Any) -> None:
    recorder = kube.Recorder(client, regarding={**REGARDING, "namespace": "ns"}, component="d", clock=clock)
    recorder.record("Normal", "A", "ü" * 2000)
    (event,) = await written(recorder, accepting, 1)
    assert event["message"] == "ü" * 512
    assert event["metadata"]["namespace"] == "ns"


async def test_failures_are_forgotten_and_the_queue_is_bounded(
    client: Any, server: Any, clock: Any, status: Any
) -> None:
    server.script(status(403, "Forbidden"), web.json_response({"metadata": {"name": "e"}}, status=201))
    recorder = kube.Recorder(client, regarding=REGARDING, component="d", clock=clock)
    for number in range(500):
        recorder.record("Warning", "A", str(number))
    events = await written(recorder, server, 100)
    assert [event["message"] for event in events[:2]] == ["0", "1"]
    assert len(events) == 100
