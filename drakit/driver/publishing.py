"""Keeps the inventory published while this instance is the one to do it."""

from typing import TYPE_CHECKING

from drakit.driver.application import Application

if TYPE_CHECKING:
    from drakit import kube
    from drakit.driver.plugin import Device
    from drakit.driver.publication import DriverResources, Metrics, Publisher

__all__ = ["Publishing"]


class Publishing:
    """Runs a Publisher; the record of the publisher tells it whether this instance writes or stands by.

    Args:
        application: whose inventory.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._inventory: tuple[Device, ...] | DriverResources | None = None
        self._publisher: Publisher | None = None
        self._metrics: Metrics | None = None

    def update(self, inventory: "tuple[Device, ...] | DriverResources") -> None:
        """Publish this from now on: devices of the node's pool, or pools."""
        self._inventory = inventory
        if self._publisher is not None:
            self._publisher.update(self._resources())

    def unready(self) -> str:
        """Why nothing is published, "" when it is or another instance does it."""
        if self._publisher is None:
            return "no connection to the API server yet"
        return "; ".join(self._publisher.reasons)

    async def run(self, client: "kube.Client") -> None:
        """Publish for ever."""
        from drakit.driver.publication import Metrics, Publisher

        application = self._application
        # Once for all restarts: a registry takes every name only once.
        self._metrics = self._metrics or Metrics(application.metrics.registry)
        self._publisher = Publisher(
            client,
            driver=application.driver.name,
            node=application.settings.node_name,
            resources=None if self._inventory is None else self._resources(),
            may_publish=self._may_publish,
            clock=application.clock,
            metrics=self._metrics,
            on_event=application.record,
        )
        await self._publisher.run()

    async def _may_publish(self) -> bool:
        """Asked before each pass, which there is none of before the inventory is known."""
        return await self._application.executor.run(self._application.instances.claim_publishing)

    def _resources(self) -> "DriverResources":
        from drakit.driver.publication import DriverResources

        assert self._inventory is not None
        if isinstance(self._inventory, DriverResources):
            return self._inventory
        return DriverResources.for_node(self._application.settings.node_name, self._inventory)
