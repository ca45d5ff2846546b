"""Threads for hooks and files: bounded, never lost, never in the way."""

import asyncio
import threading
from typing import Any

import pytest

from drakit.driver.errors import TooManyHooksError
from drakit.driver.executors import FileExecutor, HookThreads


async def test_quick_hooks_share_few_threads() -> None:
    hooks = HookThreads(64)
    names = await asyncio.gather(*(hooks.run(lambda: threading.current_thread().name) for _ in range(64)))
    assert len(set(names)) <= 8
    hooks.close()


async def test_slow_hooks_never_hold_up_others() -> None:
    hooks, gate = HookThreads(64), threading.Event()
    slow = [asyncio.create_task(hooks.run(gate.wait, 20)) for _ in range(20)]
    assert await hooks.run(lambda: "quick") == "quick"
    assert hooks.running == 20
    assert hooks.longest() > 0
    gate.set()
    assert await asyncio.gather(*slow) == [True] * 20
    assert (hooks.running, hooks.longest()) == (0, 0.0)
    hooks.close()


async def test_no_more_than_the_limit() -> None:
    hooks, gate = HookThreads(2), threading.Event()
    slow = [asyncio.create_task(hooks.run(gate.wait, 20)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyHooksError):
        await hooks.run(print)
    gate.set()
    await asyncio.gather(*slow)


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
async def test_whatever_a_hook_raises_reaches_its_caller_alone(error: Any) -> None:
    hooks = HookThreads(2)

    def fail() -> None:
        raise error

    with pytest.raises((type(error), RuntimeError)):
        await hooks.run(fail)
    assert await hooks.run(lambda: 1) == 1


async def test_stop_iteration_does_not_hang() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await HookThreads(1).run(next, iter(()))


async def test_a_hook_goes_on_without_its_caller() -> None:
    hooks, gate, done = HookThreads(1), threading.Event(), threading.Event()

    def work() -> None:
        gate.wait(20)
        done.set()

    call = asyncio.create_task(hooks.run(work))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert hooks.running == 1
    gate.set()
    assert await asyncio.to_thread(done.wait, 20)


async def test_file_operations_run_in_order_and_failures_are_paired() -> None:
    files, order = FileExecutor(), list[int]()
    await asyncio.gather(*(files.run(order.append, number) for number in range(50)))
    assert order == list(range(50))

    def odd(number: int) -> None:
        if number % 2:
            raise OSError(number, "odd")

    for count in (3, 30):
        results = await files.run(files.spread, odd, range(count))
        assert [(number, error is not None) for number, error in results] == [(n, bool(n % 2)) for n in range(count)]
    files.close()
