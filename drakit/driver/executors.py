"""Where blocking work runs: files in a small pool of their own, hooks of the device driver in bounded daemon threads.

The event loop's default executor is never used: its threads are joined at exit, and one hanging call would starve all.
"""

import asyncio
import contextvars
import itertools
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


class FileExecutor:
    """Threads for file operations: one runs batches, a few more overlap the waiting for the disk."""

    def __init__(self, width: int = 4) -> None:
        self._runner = ThreadPoolExecutor(1, "files")
        self._spread = ThreadPoolExecutor(width, "sync")

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` in the pool; calls run one after the other, in order."""
        return await asyncio.wrap_future(self._runner.submit(function, *args, **kwargs))

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
        self._runner.shutdown(wait=False)
        self._spread.shutdown(wait=False)


class HookThreads:
    """Daemon threads for the device driver's hooks, one for each call, at most `limit` at once.

    A hook that never returns keeps its thread and its place; the process can still end.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._numbers = itertools.count(1)
        self._started: dict[int, float] = {}

    @property
    def running(self) -> int:
        """How many are at work."""
        return len(self._started)

    def longest(self) -> float:
        """Seconds for which the oldest one has been at work."""
        return time.monotonic() - min(self._started.values()) if self._started else 0.0

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call `function(*args)` in a thread of its own and wait for it, whatever happens to the caller.

        Raises:
            TooManyHooksError: `limit` hooks run already.
        """
        if self.running >= self.limit:
            raise TooManyHooksError(f"{self.running} hooks of the device driver run already, no more are allowed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()
        number = next(self._numbers)

        def finish(result: T | None, error: BaseException | None) -> None:
            self._started.pop(number, None)
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]  # T may be None

        def body() -> None:
            result: T | None = None
            error: BaseException | None = None
            try:
                result = context.run(function, *args)
            except StopIteration as stop:
                error = RuntimeError(f"hook raised {stop!r}")
            except BaseException as caught:  # noqa: BLE001 - it belongs to the caller
                error = caught
            try:
                loop.call_soon_threadsafe(finish, result, error)
            except RuntimeError:  # the loop is closed: the process is about to end
                return

        self._started[number] = time.monotonic()
        try:
            threading.Thread(target=body, name=f"hook-{number}", daemon=True).start()
        except RuntimeError as error:
            self._started.pop(number, None)
            raise TooManyHooksError(f"no thread for the device driver's hook: {error}") from error
        return await future
