"""Cluster-wide publication from a Deployment: one leader by Lease, pools from a source, no kubelet."""

import asyncio
import logging
from collections.abc import Callable

from drakit import kube
from drakit.clock import SYSTEM, Clock
from drakit.driver.executors import HookThreads
from drakit.driver.publication import guard
from drakit.driver.publication.inventory_file import InventoryError
from drakit.driver.publication.metrics import Metrics
from drakit.driver.publication.publisher import Publisher
from drakit.driver.publication.resources import DriverResources

__all__ = ["ClusterPublisher", "SkipChangeError"]

READ_SECONDS = 5.0
_log = logging.getLogger(__name__)


class SkipChangeError(Exception):
    """The inventory changes skipNodeOperations of a pool whose devices are allocated."""


class ClusterPublisher:
    """Publishes the pools that `read` gives, while this process leads.

    Args:
        client: an open client.
        driver: the driver's name.
        read: gives the pools, or None when nothing has changed; may block; raises InventoryError.
        election: who leads.
        only_pool: see Publisher.
        force: change skipNodeOperations although claims are live.
        clock: time.
        metrics: counters to use.
    """

    def __init__(
        self,
        client: kube.Client,
        *,
        driver: str,
        read: Callable[[], DriverResources | None],
        election: kube.Election,
        only_pool: str | None = None,
        force: bool = False,
        clock: Clock = SYSTEM,
        metrics: Metrics | None = None,
    ) -> None:
        self._client, self._driver, self._clock = client, driver, clock
        self._read, self._election, self._force = read, election, force
        self._recorder = kube.Recorder(client, regarding=election.lease, component=driver, clock=clock)
        self.publisher = Publisher(
            client,
            driver=driver,
            only_pool=only_pool,
            clock=clock,
            metrics=metrics,
            on_event=self._recorder.record,
        )
        self._problem = ""
        self._pending: DriverResources | None = None
        self._threads = HookThreads(1)

    def unready(self) -> list[str]:
        """Why not everything is published as wanted; a process that waits for its turn is ready."""
        if not self._election.leads:
            return []
        return [*([self._problem] if self._problem else []), *self.publisher.reasons]

    async def run(self, *, once: bool = False) -> None:
        """Wait for the lease, then publish; with `once` until all pools are settled, else for ever.

        Raises:
            LostLeadershipError: another process leads now.
            InventoryError, SkipChangeError: with `once`, the inventory cannot be published; without it, what was
                published stays, and the problem is told by `unready`.
        """
        await self._election.run(lambda: self._lead(once=once))

    async def _lead(self, *, once: bool) -> None:
        tasks = [asyncio.ensure_future(self.publisher.run()), asyncio.ensure_future(self._recorder.run())]
        try:
            if once:
                await self._take()
                await self.publisher.settled()
                return
            tasks.append(asyncio.ensure_future(self._follow()))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            try:
                await self._take()
                self._problem = ""
            except (InventoryError, SkipChangeError) as error:
                if str(error) != self._problem:
                    _log.error("%s; what is published stays", error)
                    self._recorder.record("Warning", "InventoryRefused", str(error))
                self._problem = str(error)
            except kube.ApiError as error:
                _log.warning("cannot check the inventory against live claims: %s", error)
            await self._clock.sleep(READ_SECONDS)

    async def _take(self) -> None:
        """Read the inventory and hand it on, unless it must not be published now."""
        fresh = await self._threads.run(self._read)
        if fresh is not None:
            self._pending = fresh
        if self._pending is None:
            return
        await self._check_skips(self._pending)
        self.publisher.update(self._pending)
        self._pending = None

    async def _check_skips(self, resources: DriverResources) -> None:
        if self._force:
            return
        selector = f"spec.driver={self._driver},spec.nodeName="
        stored = await self._client.list(kube.RESOURCE_SLICES, field_selector=selector)
        changes = guard.skip_changes(resources, stored["items"])
        if not changes:
            return
        claims = guard.live_claims((await self._client.list(kube.RESOURCE_CLAIMS))["items"], self._driver, changes)
        if not claims:
            return
        pool, (published, wanted) = next(iter(changes.items()))
        names = ", ".join(claims[:3]) + (" ..." if len(claims) > 3 else "")
        raise SkipChangeError(
            f"pool {pool}: skipNodeOperations would change from [{', '.join(published)}] to [{', '.join(wanted)}] "
            f"while {len(claims)} claims are live ({names}): nodes would prepare some of them and not others; "
            "wait until they are gone, or use --force"
        )
