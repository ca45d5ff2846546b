"""What there is to publish: the driver's devices, read again whenever it says so."""

from collections.abc import Awaitable, Callable

import structlog

from drakit.driver.executors import HookThreads
from drakit.driver.metrics import Metrics
from drakit.driver.plugin import Device, Driver

__all__ = ["Inventory"]

_log = structlog.stdlib.get_logger("drakit.driver")


class Inventory:
    """Reads devices in a hook thread, as looking at hardware blocks.

    Args:
        driver: asked for its devices.
        hooks: where it is asked.
        metrics: how many devices there are.
        on_change: told of each new list; what it does is awaited.
    """

    def __init__(
        self,
        driver: Driver,
        hooks: HookThreads,
        metrics: Metrics,
        on_change: Callable[[tuple[Device, ...]], Awaitable[None]],
    ) -> None:
        self._driver = driver
        self._hooks = hooks
        self._metrics = metrics
        self._on_change = on_change

    async def run(self) -> None:
        """Read the devices now and after each change, until there are no more changes to come."""
        await self._read()
        changes = self._driver.changes()
        if changes is None:
            return
        async for _ in changes:
            await self._read()

    async def _read(self) -> None:
        devices = await self._hooks.run(lambda: tuple(self._driver.devices()))
        self._metrics.published_devices.set(len(devices))
        if not devices:
            _log.warning("the driver found no devices")
        await self._on_change(devices)
