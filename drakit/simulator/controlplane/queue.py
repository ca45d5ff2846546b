"""A work queue of keys: a key waits at most once, failed keys come back after a delay."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from drakit.clock import Clock

__all__ = ["WorkQueue"]

K = TypeVar("K", bound=Hashable)
_log = logging.getLogger(__name__)
_FIRST_DELAY, _LAST_DELAY = 0.005, 30.0


class WorkQueue(Generic[K]):
    """Keys in order of arrival, worked on one at a time.

    Args:
        work: called with each key; whatever exception of `retried` it raises, the key comes back with rising delay.
        retried: exceptions that time may heal.
        clock: for the delays.
    """

    def __init__(
        self,
        work: Callable[[K], Awaitable[None]],
        *,
        retried: type[Exception],
        clock: Clock,
    ) -> None:
        self._work, self._retried, self._clock = work, retried, clock
        self._waiting: dict[K, None] = {}
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._group: asyncio.TaskGroup | None = None

    def add(self, key: K) -> None:
        """Let `key` be worked on (again)."""
        self._waiting[key] = None
        self._idle.clear()
        self._wake.set()

    def add_later(self, key: K, seconds: float) -> None:
        """Let `key` be worked on again after some time; the queue must be running."""
        assert self._group is not None
        self._group.create_task(self._add_after(key, seconds))

    async def _add_after(self, key: K, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self.add(key)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to do but what is delayed."""
        return self._idle.is_set()

    async def idle(self) -> None:
        """Wait until nothing is left to do but what is delayed."""
        await self._idle.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            while True:
                while self._waiting:
                    key = next(iter(self._waiting))
                    del self._waiting[key]
                    try:
                        await self._work(key)
                    except self._retried as error:
                        _log.info("%s is tried again: %s", key, error)
                        self._group.create_task(self._later(key))
                    else:
                        self._failures.pop(key, None)
                self._idle.set()
                self._wake.clear()
                await self._wake.wait()

    async def _later(self, key: K) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        await self._add_after(key, min(_FIRST_DELAY * 2**failures, _LAST_DELAY))
