"""Time as a parameter: code that waits a second or more takes a Clock, so that tests drive it."""

import asyncio
import time
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Protocol, TypeVar

__all__ = ["SYSTEM", "Clock", "SystemClock"]

T = TypeVar("T")


class Clock(Protocol):
    """What waiting code may ask of time."""

    def now(self) -> datetime:
        """Wall-clock time, UTC, for timestamps that leave the process."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary point, never going back; for intervals."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`; zero or less yields once."""
        ...

    async def timeout(self, awaitable: Awaitable[T], seconds: float) -> T:
        """Await `awaitable`; cancel it and raise TimeoutError after `seconds`."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Wall-clock time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds from an arbitrary point."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        await asyncio.sleep(max(seconds, 0))

    async def timeout(self, awaitable: Awaitable[T], seconds: float) -> T:
        """Await `awaitable` for at most `seconds`."""
        return await asyncio.wait_for(awaitable, seconds)


SYSTEM = SystemClock()
