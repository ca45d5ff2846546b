"""ManualClock: sleepers wake at their own moment, one by one, each followed by a settled world."""

import asyncio
import threading

import pytest

from drakit.simulator.clock import ManualClock


async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    clock = ManualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    tasks = [
        asyncio.create_task(sleeper(name, s)) for name, s in [("c", 3), ("a", 1), ("b", 2), ("a2", 1), ("late", 9)]
    ]
    await clock.advance(5)
    assert woken == [("a", 1), ("a2", 1), ("b", 2), ("c", 3)]
    assert clock.monotonic() == 5
    assert clock.sleepers == 1
    assert clock.next_wake == 4
    await clock.advance(4)
    await asyncio.gather(*tasks)
    assert clock.next_wake is None


async def test_sleeps_started_by_woken_sleepers_are_within_the_same_advance() -> None:
    clock = ManualClock()
    ticks: list[float] = []

    async def ticker() -> None:
        while True:
            await clock.sleep(10)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await clock.advance(35)
    assert ticks == [10, 20, 30]
    assert (clock.now() - ManualClock().now()).total_seconds() == 35
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await clock.advance(100)
    assert ticks == [10, 20, 30]
    assert clock.sleepers == 0


async def test_one_sleeper_is_settled_before_the_next_wakes() -> None:
    clock = ManualClock()
    log: list[str] = []

    async def sleeper(name: str) -> None:
        await clock.sleep(1)
        log.append(f"{name} woke")
        with clock.working():
            await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 0.01)
        log.append(f"{name} done")

    tasks = [asyncio.create_task(sleeper(name)) for name in "ab"]
    await clock.advance(1)
    assert log == ["a woke", "a done", "b woke", "b done"]
    await asyncio.gather(*tasks)


async def test_idle_checks_are_waited_for() -> None:
    clock = ManualClock()
    pending = 1

    def finish() -> None:
        nonlocal pending
        pending = 0

    clock.idle_when(lambda: pending == 0)
    asyncio.get_running_loop().call_later(0.02, finish)
    await clock.advance(1)
    assert pending == 0


async def test_a_world_that_never_rests_is_an_error() -> None:
    clock = ManualClock(patience=0.05)
    clock.idle_when(lambda: False)
    with pytest.raises(TimeoutError, match="still busy"):
        await clock.advance(1)


async def test_timeout_by_manual_time() -> None:
    clock = ManualClock()
    assert await clock.timeout(asyncio.sleep(0, "value"), 5) == "value"
    never = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(clock.timeout(never, 5))
    await clock.advance(4)
    assert not task.done()
    await clock.advance(1)
    with pytest.raises(TimeoutError):
        await task
    assert never.cancelled()


async def test_timeout_passes_errors_and_cancellation_on() -> None:
    clock = ManualClock()

    async def fail() -> None:
        raise ValueError("inner")

    with pytest.raises(ValueError, match="inner"):
        await clock.timeout(fail(), 5)
    never = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(clock.timeout(never, 5))
    await clock.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert never.cancelled()
    assert clock.sleepers == 0


async def test_zero_sleeps_yield_once() -> None:
    clock = ManualClock()
    await clock.sleep(0)
    await clock.sleep(-1)
    assert clock.sleepers == 0
