"""Parts that are restarted when they fail: only the two gRPC servers may end the process."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

from drakit.clock import Clock
from drakit.driver.metrics import Metrics

__all__ = ["Supervisor"]

_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 60.0
_CALM_SECONDS = 120.0
_STOP_SECONDS = 2.0

_log = structlog.stdlib.get_logger("drakit.driver")


class Supervisor:
    """Runs parts, restarts them with jittered backoff, and knows which are down.

    Args:
        clock: for the pauses.
        metrics: counts restarts.
        jitter: numbers in [0, 1).
    """

    def __init__(self, clock: Clock, metrics: Metrics, jitter: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._metrics = metrics
        self._jitter = jitter
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.failing: dict[str, str] = {}
        """Parts that are waiting to be restarted, with the reason."""

    def start(self, name: str, part: Callable[[], Awaitable[None]]) -> None:
        """Run `part()` for ever; its normal end is final. A part that runs already is left alone."""
        if name in self._tasks and not self._tasks[name].done():
            return
        self._tasks[name] = asyncio.create_task(self._keep(name, part), name=name)

    async def stop(self) -> None:
        """Cancel all parts and wait a little: a device driver's iterators may not let themselves be cancelled."""
        tasks = [*self._tasks.values()]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        _, pending = await asyncio.wait(tasks, timeout=_STOP_SECONDS)
        for task in pending:
            _log.warning("part does not end", part=task.get_name())

    async def _keep(self, name: str, part: Callable[[], Awaitable[None]]) -> None:
        pause = _FIRST_SECONDS
        while True:
            started = self._clock.monotonic()
            try:
                await part()
            except Exception as error:  # noqa: BLE001 - whatever it is, the part is started again
                if self._clock.monotonic() - started > _CALM_SECONDS:
                    pause = _FIRST_SECONDS
                self.failing[name] = f"{type(error).__name__}: {error}"
                self._metrics.restarts.labels(name).inc()
                _log.exception("part failed, will be restarted", part=name, pause_s=pause)
            else:
                self.failing.pop(name, None)
                return
            await self._clock.sleep(pause * (0.5 + self._jitter()))
            pause = min(2 * pause, _LONGEST_SECONDS)
            self.failing.pop(name, None)
