"""What there is to publish: the driver's devices, read again whenever it says so."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import structlog

from drakit.driver.executors import HookThreads
from drakit.driver.plugin import Device, Driver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from drakit.driver.publication import DriverResources

__all__ = ["Inventory"]

_log = structlog.stdlib.get_logger("drakit.driver")


class Inventory:
    """Reads devices in a hook thread, as looking at hardware blocks.

    Args:
        driver: asked for its devices.
        hooks: where it is asked.
        on_change: told of each new list; what it does is awaited.
    """

    def __init__(
        self,
        driver: Driver,
        hooks: HookThreads,
        on_change: "Callable[[tuple[Device, ...] | DriverResources], Awaitable[None]]",
    ) -> None:
        self._driver = driver
        self._hooks = hooks
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
        inventory = await self._hooks.run(self._devices)
        if isinstance(inventory, tuple) and not inventory:
            _log.warning("the driver found no devices")
        await self._on_change(inventory)

    def _devices(self) -> "tuple[Device, ...] | DriverResources":
        found = self._driver.devices()
        return tuple(found) if isinstance(found, Iterable) else found
