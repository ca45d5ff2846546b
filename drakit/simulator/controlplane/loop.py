"""The control plane of a cluster: scheduler, resourceclaim controller and garbage collector against an API server."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Self

from drakit import kube
from drakit.allocation import Features
from drakit.clock import SYSTEM, Clock
from drakit.simulator.controlplane.caches import Caches
from drakit.simulator.controlplane.controllers import ClaimController, GarbageCollector
from drakit.simulator.controlplane.scheduler import Scheduler

__all__ = ["ControlPlane"]


class ControlPlane:
    """Runs as an async context manager, with its own caches.

    Args:
        client: an open client that may do everything.
        clock: for retries and timestamps.
        features: the allocator's gates.
    """

    def __init__(self, client: kube.Client, *, clock: Clock = SYSTEM, features: Features | None = None) -> None:
        self._caches = Caches(client, clock)
        self.claims = ClaimController(client, self._caches, clock)
        self.garbage = GarbageCollector(client, self._caches, clock)
        self.scheduler = Scheduler(client, self._caches, clock, features or Features())
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        started = asyncio.Event()
        self._task = asyncio.create_task(self._run(started), name="control plane")
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done():
            self._task.result()
        return self

    async def __aexit__(self, *_: object) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The run. It ends early only by a fault of the simulator."""
        return self._task

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being worked on: for `ManualClock.idle_when`."""
        return all(queue.is_idle for queue in (self.claims.queue, self.garbage.queue, self.scheduler.queue))

    @property
    def reflectors(self) -> dict[str, kube.Reflector]:
        """What it knows of the cluster, by plural resource name."""
        return self._caches.by_resource

    async def _run(self, started: asyncio.Event) -> None:
        caches = self._caches
        async with caches, asyncio.TaskGroup() as group:
            for queue in (self.claims.queue, self.garbage.queue, self.scheduler.queue):
                group.create_task(queue.run())
            group.create_task(_follow(caches.pods, self.claims.saw_pod, self.garbage.saw_owner, self.scheduler.saw_pod))
            group.create_task(
                _follow(
                    caches.claims,
                    caches.current_claims.seen,
                    self.claims.saw_claim,
                    self.garbage.saw_dependent,
                    self.scheduler.saw_other,
                    self._forget,
                )
            )
            group.create_task(
                _follow(caches.slices, self.garbage.saw_dependent, self.scheduler.saw_other, self._forget)
            )
            group.create_task(_follow(caches.nodes, self.garbage.saw_owner, self.scheduler.saw_other, self._forget))
            group.create_task(_follow(caches.rules, self.scheduler.saw_other, self._forget))
            group.create_task(_follow(caches.classes, self.scheduler.saw_other, self._forget))
            group.create_task(_follow(caches.templates, self.claims.saw_template))
            started.set()

    def _forget(self, change: kube.Change) -> None:
        if change.type == "DELETED":
            self._caches.forget(change.object)


async def _follow(reflector: kube.Reflector, *handlers: Callable[[kube.Change], None]) -> None:
    async for change in reflector.changes():
        for handler in handlers:
            handler(change)
