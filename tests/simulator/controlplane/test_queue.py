import asyncio
import itertools

from drakit.clock import SYSTEM
from drakit.simulator.clock import ManualClock
from drakit.simulator.controlplane.queue import WorkQueue


async def test_a_key_waits_once_and_in_order() -> None:
    seen: list[str] = []

    async def work(key: str) -> None:
        seen.append(key)

    queue: WorkQueue[str] = WorkQueue(work, retried=ValueError, clock=SYSTEM)
    for key in "abab":
        queue.add(key)
    task = asyncio.create_task(queue.run())
    await queue.idle()
    assert seen == ["a", "b"]
    queue.add("c")
    await queue.idle()
    assert seen == ["a", "b", "c"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_failures_come_back_later_and_later() -> None:
    clock = ManualClock()
    times: list[float] = []

    async def work(key: str) -> None:
        times.append(clock.monotonic())
        if len(times) < 4:
            raise ValueError(key)

    queue: WorkQueue[str] = WorkQueue(work, retried=ValueError, clock=clock)
    queue.add("a")
    task = asyncio.create_task(queue.run())
    await clock.advance(60)
    assert len(times) == 4
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps == sorted(gaps)
    assert gaps[0] > 0
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_other_exceptions_end_it() -> None:
    async def work(key: str) -> None:
        raise LookupError(key)

    queue: WorkQueue[str] = WorkQueue(work, retried=ValueError, clock=SYSTEM)
    queue.add("a")
    result = (await asyncio.gather(queue.run(), return_exceptions=True))[0]
    assert isinstance(result, BaseExceptionGroup)
    assert isinstance(result.exceptions[0], LookupError)
