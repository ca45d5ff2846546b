"""Time that stands still until a test moves it."""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar

__all__ = ["ManualClock"]

T = TypeVar("T")
_START = datetime(2026, 1, 1, tzinfo=UTC)
_QUIET_ROUNDS = 25  # passes of the event loop in which nothing may happen; a chain of tasks needs one for each link


class ManualClock:
    """A `drakit.clock.Clock` driven by `advance`; every sleeper wakes at its own moment, one after the other.

    `advance` reads the time of the next sleeper, sets the clock to it, wakes that one sleeper, and waits until all work
    that it caused is done before it looks for the next. So the order of events depends on the times alone. What counts
    as work: the passes of the event loop, everything inside `working()`, and any check added by `idle_when` (requests
    in flight, events not yet delivered). Sockets stay on real time: while a check says busy, `settle` waits in real
    time.

    Args:
        start: wall-clock time at the beginning.
        patience: real seconds that `settle` waits for the world to become idle before it raises TimeoutError.
    """

    def __init__(self, start: datetime = _START, *, patience: float = 30.0) -> None:
        self._start, self._elapsed, self._patience = start, 0.0, patience
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._checks: list[Callable[[], bool]] = []
        self._working = 0
        self._activity = 0

    def now(self) -> datetime:
        """Wall-clock time: the start plus all that was advanced."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been advanced by `seconds`; zero or less yields once."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._activity += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), future))
        try:
            await future
        finally:
            self._activity += 1

    async def timeout(self, awaitable: Awaitable[T], seconds: float) -> T:
        """Await `awaitable`; cancel it and raise TimeoutError once `seconds` were advanced."""
        task = asyncio.ensure_future(awaitable)
        alarm = asyncio.ensure_future(self.sleep(seconds))
        try:
            await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise TimeoutError(f"nothing within {seconds} s")
        finally:
            for pending in (task, alarm):
                if not pending.done():
                    pending.cancel()
                    await asyncio.gather(pending, return_exceptions=True)

    @property
    def sleepers(self) -> int:
        """How many are asleep now."""
        return sum(not future.done() for _, _, future in self._sleepers)

    @property
    def next_wake(self) -> float | None:
        """Seconds until the next sleeper is due; None when nobody sleeps."""
        due = self._next()
        return None if due is None else due - self._elapsed

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count the body as work in progress: `advance` waits for its end."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1
            self._activity += 1

    def idle_when(self, check: Callable[[], bool]) -> None:
        """Add a condition of the world being idle, e.g. no request in flight and no event undelivered."""
        self._checks.append(check)

    async def advance(self, seconds: float) -> None:
        """Move the time on by `seconds`, waking sleepers one by one, each followed by `settle`."""
        target = self._elapsed + seconds
        await self.settle()
        while (due := self._next()) is not None and due <= target:
            self._elapsed = max(self._elapsed, due)
            _, _, future = heapq.heappop(self._sleepers)
            future.set_result(None)
            await self.settle()
        self._elapsed = max(self._elapsed, target)

    async def settle(self) -> None:
        """Wait until nothing happens any more.

        Raises:
            TimeoutError: the world was not idle within `patience` real seconds.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        quiet, seen = 0, self._activity
        while quiet < _QUIET_ROUNDS:
            busy = self._working > 0 or not all(check() for check in self._checks)
            # A busy world waits for sockets or threads: give them real time instead of spinning.
            await asyncio.sleep(0.001 if busy else 0)
            quiet = 0 if busy or self._activity != seen else quiet + 1
            seen = self._activity
            if loop.time() > deadline:
                raise TimeoutError(f"the world is still busy after {self._patience} s")

    def _next(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None
