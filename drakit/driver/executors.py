"""Where blocking work runs: files in a thread of their own, hooks of the device driver in bounded daemon threads.

The event loop's default executor is never used: its threads are joined at exit, and one hanging call would starve all.
All threads here are daemons: whatever hangs in them, the process can end.
"""

import asyncio
import collections
import contextvars
import functools
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from drakit.driver.errors import TooManyHooksError

__all__ = ["FileExecutor", "HookThreads"]

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")

_SPREAD_FROM = 4  # fewer syncs than this are not worth waking threads for
_QUICK_THREADS = 4  # kept for the next hook: starting a thread costs as much as a prepare's time on the disk
_PATIENCE_SECONDS = 0.005


class _Thread:
    """A daemon thread that does one thing after the other for an event loop."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, done: Callable[[Any, BaseException | None], None], function: Callable[..., T], *args: Any) -> None:
        """Call `function(*args)` in the thread, then `done(result, error)` on the running loop."""
        loop = asyncio.get_running_loop()

        def job() -> None:
            result, error = _outcome(function, *args)
            try:
                loop.call_soon_threadsafe(done, result, error)
            except RuntimeError:  # the loop is closed: the process is about to end
                return

        self._jobs.put(job)

    def end(self) -> None:
        """End the thread once it is idle."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # holds the caller's arguments


def _outcome(function: Callable[..., T], *args: Any) -> tuple[T | None, BaseException | None]:
    try:
        return function(*args), None
    except (StopIteration, SystemExit, KeyboardInterrupt) as error:  # a future must not carry these to the event loop
        return None, RuntimeError(f"raised {error!r}")
    except BaseException as error:  # noqa: BLE001 - it belongs to the caller
        return None, error


def _settle(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


class FileExecutor:
    """One thread for file operations, and a few more to overlap the waiting for the disk."""

    def __init__(self, width: int = 8) -> None:
        self._thread = _Thread("files")
        self._spread = ThreadPoolExecutor(width, "sync")

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` in the thread; calls run one after the other, in order."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        work = (lambda: function(*args, **kwargs)) if kwargs else function
        self._thread.submit(lambda result, error: _settle(future, result, error), work, *args if not kwargs else ())
        return await future

    def spread(self, function: Callable[[Item], object], items: Iterable[Item]) -> list[tuple[Item, Exception | None]]:
        """Call `function` for each item, many at once when there are many; pairs each with the OSError it raised."""
        todo = list(items)

        def attempt(item: Item) -> tuple[Item, Exception | None]:
            try:
                function(item)
            except OSError as error:
                return item, error
            return item, None

        return [*(map(attempt, todo) if len(todo) < _SPREAD_FROM else self._spread.map(attempt, todo))]

    def close(self) -> None:
        """Let the threads end."""
        self._thread.end()
        self._spread.shutdown(wait=False)


class HookThreads:
    """Daemon threads for the device driver's hooks, at most `limit` at work at once.

    A call waits at most a few milliseconds for a thread that is about to be free, then gets a new one: quick hooks
    share few threads, slow ones never hold up others. A hook that never returns keeps its thread and its place.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._numbers = itertools.count(1)
        self._started: dict[int, float] = {}
        self._waiting: collections.deque[Callable[[_Thread], None]] = collections.deque()
        self._idle: list[_Thread] = []
        self._threads = 0

    @property
    def running(self) -> int:
        """How many calls are at work or about to be."""
        return len(self._started)

    def longest(self) -> float:
        """Seconds for which the oldest one has been at work."""
        return time.monotonic() - min(self._started.values()) if self._started else 0.0

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call `function(*args)` in a thread and wait for it; it goes on whatever happens to the caller.

        Raises:
            TooManyHooksError: `limit` hooks run already.
        """
        if self.running >= self.limit:
            raise TooManyHooksError(f"{self.running} hooks of the device driver run already, no more are allowed")
        number = next(self._numbers)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        call = functools.partial(contextvars.copy_context().run, function, *args)

        def begin(thread: _Thread) -> None:
            def done(result: T | None, error: BaseException | None) -> None:
                self._started.pop(number, None)
                self._release(thread)
                _settle(future, result, error)

            thread.submit(done, call)

        if self._idle:
            begin(self._idle.pop())
        elif self._threads < _QUICK_THREADS:
            begin(self._new_thread())
        else:
            self._waiting.append(begin)
            if len(self._waiting) == 1:
                self._look_again()
        self._started[number] = time.monotonic()
        return await future

    def close(self) -> None:
        """Let idle threads end."""
        while self._idle:
            self._idle.pop().end()

    def _look_again(self) -> None:
        asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, self._grow, self._waiting[0])

    def _grow(self, first: Callable[[_Thread], None]) -> None:
        """If nothing has moved since, all threads are busy with something slow: give every waiting call a new one."""
        if self._waiting and self._waiting[0] is first:
            try:
                while self._waiting:
                    thread = self._new_thread()
                    self._waiting.popleft()(thread)
            except TooManyHooksError:  # they get the next thread that is free
                return
        elif self._waiting:
            self._look_again()

    def _new_thread(self) -> _Thread:
        try:
            thread = _Thread(f"hook-{self._threads + 1}")
        except RuntimeError as error:
            raise TooManyHooksError(f"no thread for the device driver's hook: {error}") from error
        self._threads += 1
        return thread

    def _release(self, thread: _Thread) -> None:
        if self._waiting:
            self._waiting.popleft()(thread)
        elif len(self._idle) < _QUICK_THREADS:
            self._idle.append(thread)
        else:
            self._threads -= 1
            thread.end()
