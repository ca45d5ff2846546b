"""The publisher: keeps a driver's ResourceSlices as they should be, with as few writes as possible."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from drakit import kube
from drakit.clock import SYSTEM, Clock
from drakit.driver.publication.decision import Actions, decide
from drakit.driver.publication.features import Fallback
from drakit.driver.publication.gates import GateState
from drakit.driver.publication.layout import SliceContent, cut
from drakit.driver.publication.metrics import Metrics
from drakit.driver.publication.normalise import Adjustment, Normaliser, Policy
from drakit.driver.publication.observation import Observation
from drakit.driver.publication.resources import DriverResources, Owner, Pool
from drakit.driver.publication.slices import Stamp
from drakit.driver.publication.work import PoolState, PoolStatus, PoolWork
from drakit.driver.publication.writing import Dropped, RefusedError, Writer

__all__ = ["Publisher"]

Object = dict[str, Any]
_log = logging.getLogger(__name__)

REPAIR_SECONDS = 1.0
"""From somebody else's change to our repair: enough for a burst of changes to become one pass."""
STANDBY_SECONDS = 1.0
LOGGED = 20  # adjustments of one update; the rest is in `adjustments` and in the metric


class Publisher:
    """Publishes what `update` was last given, and puts back what others change. One task runs `run`.

    Which slices are its own: a node's publisher owns all slices of the driver with spec.nodeName = node, a cluster-wide
    one all slices of the driver without nodeName (with `only_pool`: those of that pool). Pools of them that `update`
    did not name are deleted. Before the first `update` nothing is touched, and `run` ending leaves all slices in place.

    Args:
        client: an open client of the API server.
        driver: the driver's name (spec.driver).
        node: name of the node whose pools these are; None = cluster-wide pools.
        owner: owner of the slices; default: the Node (its UID is looked up), or nobody for cluster-wide pools.
        only_pool: manage this cluster-wide pool alone, beside other publishers of the driver.
        resources: as if `update` had been called at once.
        labels: labels of all slices.
        policy: what to do with attributes that the API would refuse.
        fallbacks: by feature gate: what to publish when the server does not keep its fields; over DEFAULT_FALLBACKS.
        may_publish: asked before each pass; False = another instance publishes, try again in a second. An exception
            counts as False.
        clock: time.
        metrics: counters to use.
        on_event: told what people should know: (type "Normal" | "Warning", reason, message). See `kube.Recorder`.
        jitter: source of numbers in [0, 1).

    Attributes:
        dropped: what the server does not keep, by (pool, index).
        adjustments: what the policy changed in the current resources.
    """

    def __init__(
        self,
        client: kube.Client,
        *,
        driver: str,
        node: str | None = None,
        owner: Owner | None = None,
        only_pool: str | None = None,
        resources: DriverResources | None = None,
        labels: Mapping[str, str] | None = None,
        policy: Policy | None = None,
        fallbacks: Mapping[str, Fallback] | None = None,
        may_publish: Callable[[], Awaitable[bool]] | None = None,
        clock: Clock = SYSTEM,
        metrics: Metrics | None = None,
        on_event: Callable[[str, str, str], None] | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.dropped: dict[tuple[str, int], Dropped] = {}
        self.adjustments: tuple[Adjustment, ...] = ()
        self.metrics = metrics or Metrics()
        self._client, self._driver, self._clock, self._jitter = client, driver, clock, jitter
        self._node = node if only_pool is None else None
        self._only_pool = only_pool
        self._owner = owner or (Owner.node(node) if node else None)
        self._labels = dict(labels or {})
        self._normaliser = Normaliser(driver, policy)
        self._gates = GateState(fallbacks, clock, self._on_gate_off)
        self._may_publish = may_publish
        self._on_event = on_event or (lambda _type, _reason, _message: None)
        self._uid_known_at = float("-inf")
        self._works: dict[str, PoolWork] = {}
        self._wanted: DriverResources | None = None
        self._refused_update = ""
        self._listed = False
        self._reflector: kube.Reflector | None = None
        self._observation: Observation | None = None
        self._writer: Writer | None = None
        self._wake = asyncio.Event()
        self._passed = asyncio.Event()
        if resources is not None:
            self.update(resources)

    # What the driver says

    def update(self, resources: DriverResources) -> None:
        """Publish this from now on; returns at once, to be called in the event loop. An empty one deletes all pools.

        Args:
            resources: all pools; a pool that is not in it is deleted.

        Raises:
            ValueError: with `only_pool`, another pool is named; the old resources stay.
        """
        strangers = [name for name in resources.pools if self._only_pool is not None and name != self._only_pool]
        if strangers:
            self._refused_update = f"pool {strangers[0]} is not {self._only_pool}, the only pool of this publisher"
            self._wake.set()
            raise ValueError(self._refused_update)
        self._refused_update = ""
        pools, adjustments = {}, []
        for name, pool in resources.pools.items():
            pools[name], changed = self._normalised(name, pool)
            adjustments += changed
        self._normaliser.forget(set(pools))
        self._tell_adjustments(tuple(adjustments))
        self._wanted = DriverResources(pools=pools)
        now = self._clock.monotonic()
        for name in {*self._works, *pools}:
            work = self._work(name)
            if work.want(pools.get(name)):
                work.status = msgspec.structs.replace(work.status, state=PoolState.PENDING, reason="")
            work.schedule(now)
        self._wake.set()

    def _normalised(self, name: str, pool: Pool) -> tuple[Pool, list[Adjustment]]:
        devices, adjustments = self._normaliser.pool(name, pool.devices)
        found = list(adjustments)
        changes: dict[str, Any] = {} if devices == pool.devices else {"devices": devices}
        if pool.slices is not None:
            parts = []
            for part in pool.slices:
                fit, adjusted = self._normaliser.pool(name, part.devices, more=True)
                parts.append(msgspec.structs.replace(part, devices=fit))
                found += adjusted
            changes["slices"] = tuple(parts)
        return (msgspec.structs.replace(pool, **changes) if changes else pool), found

    def _tell_adjustments(self, adjustments: tuple[Adjustment, ...]) -> None:
        known = set(self.adjustments)
        new = [each for each in adjustments if each not in known]
        self.adjustments = adjustments
        for each in new:
            self.metrics.normalised.labels(each.action.value).inc()
        for each in new[:LOGGED]:
            _log.warning("%s", each)
        if new:
            more = f" (and {len(new) - 1} more)" if len(new) > 1 else ""
            self._on_event("Warning", "DeviceNormalised", f"{new[0]}{more}")

    # What the publisher says

    @property
    def status(self) -> dict[str, PoolStatus]:
        """All pools, wanted or not yet deleted."""
        return {name: work.status for name, work in self._works.items()}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why not everything is published as wanted; empty when ready."""
        if self._wanted is None:
            return ("nothing to publish yet: the inventory has not been read",)
        if not self._listed:
            failure = self._reflector.failure if self._reflector is not None else None
            return (f"cannot list slices: {failure}" if failure else "slices are being listed for the first time",)
        fine = {PoolState.PUBLISHED, PoolState.STANDBY}
        found = [
            f"pool {name} is {work.status.state.value}: {work.status.reason or 'not published yet'}"
            for name, work in sorted(self._works.items())
            if work.status.state not in fine
        ]
        return (*((self._refused_update,) if self._refused_update else ()), *found)

    @property
    def ready(self) -> bool:
        """Whether every pool is published as wanted (or another instance does it)."""
        return not self.reasons

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is published, but not as the driver meant it."""
        gates = sorted({gate for dropped in self.dropped.values() for gate in dropped.gates} | set(self._gates.off))
        return (
            *(f"the API server drops fields of feature gate {gate}: is it on?" for gate in gates),
            *map(str, self.adjustments),
        )

    async def settled(self) -> None:
        """Wait until no pool is pending or failing: all are published, refused, or somebody else's."""
        busy = {PoolState.PENDING, PoolState.FAILING}
        while (
            self._wanted is None or not self._listed or any(work.status.state in busy for work in self._works.values())
        ):
            self._passed.clear()
            await self._passed.wait()

    # The loop

    async def run(self) -> None:
        """Publish until cancelled. Errors of the API server never end it."""
        selector = f"spec.driver={self._driver},spec.nodeName={self._node or ''}"
        async with kube.Reflector(
            self._client,
            kube.RESOURCE_SLICES,
            field_selector=selector,
            clock=self._clock,
            jitter=self._jitter,
        ) as reflector:
            self._reflector = reflector
            self._observation = Observation(reflector, self._belongs)
            self._writer = Writer(
                self._client,
                self._observation,
                selector=selector,
                is_own=self._is_own,
                clock=self._clock,
                metrics=self.metrics,
                on_dropped=self._on_dropped,
                turn_off=self._gates.turn_off,
            )
            reflector.listeners.append(self._on_change)
            await reflector.synced.wait()
            self._schedule_all()
            while True:
                await self._wait()
                await self._pass()

    def _is_own(self, obj: Object) -> bool:
        spec = obj["spec"]
        return (
            spec.get("driver") == self._driver and spec.get("nodeName", "") == (self._node or "") and self._belongs(obj)
        )

    def _belongs(self, obj: Object) -> bool:
        return self._only_pool is None or obj["spec"]["pool"]["name"] == self._only_pool

    def _schedule_all(self) -> None:
        assert self._observation is not None
        for name in {*self._works, *self._observation.pools()}:
            self._work(name).schedule(self._clock.monotonic())
        self._listed = True
        self._passed.set()
        self._wake.set()

    def _on_change(self, change: kube.Change | None) -> None:
        assert self._observation is not None
        if change is None:
            # A list may have shown that something written a moment ago is gone.
            pools = self._observation.unconfirmed()
        elif self._observation.is_known(change) or not self._belongs(change.object):
            return
        else:
            pools = {change.object["spec"]["pool"]["name"]}
        for name in pools:
            self._work(name).schedule(self._clock.monotonic() + REPAIR_SECONDS)
        if pools:
            self._wake.set()

    async def _wait(self) -> None:
        while True:
            dues = [work.due for work in self._works.values() if work.due is not None]
            dues += [self._gates.probe_at] if self._gates.probe_at is not None else []
            if self._wanted is None or not dues:
                self._wake.clear()
                await self._wake.wait()
                continue
            remaining = min(dues) - self._clock.monotonic()
            if remaining <= 0:
                return
            self._wake.clear()
            try:
                await self._clock.timeout(self._wake.wait(), remaining)
            except TimeoutError:
                return

    async def _pass(self) -> None:
        now = self._clock.monotonic()
        if self._gates.probe_at is not None and now >= self._gates.probe_at:
            await self._probe(now)
        for work in [work for work in self._works.values() if work.due is not None and work.due <= now]:
            work.due = None
            try:
                await self._sync(work)
            except (kube.ApiError, kube.CredentialsError) as error:
                self._failed(work, error)
        gone = [n for n, w in self._works.items() if w.pool is None and w.due is None and not w.status.slices]
        for name in gone:
            if self._works[name].status.state is PoolState.PUBLISHED:
                del self._works[name]
        self.metrics.devices.set(sum(work.status.devices for work in self._works.values()))
        self._passed.set()

    async def _probe(self, now: float) -> None:
        """Find out by dry runs whether a gate has been turned on, and by writing what was dropped before."""
        assert self._writer is not None
        writer, stamp = self._writer, self._stamp()
        for work in list(self._works.values()):
            if work.pool is None:
                continue

            async def try_out(content: SliceContent, work: PoolWork = work) -> SliceContent | None:
                return await writer.try_out(work, content, stamp)

            try:
                turned_on = await self._gates.probe(cut(work.pool), try_out)
                turned_on |= await work.relearn(try_out)
            except (kube.ApiError, kube.CredentialsError) as error:
                _log.warning("cannot tell whether feature gates are on: %s", error)
                self._gates.noticed(())
                continue
            if turned_on:
                for each in self._works.values():
                    each.schedule(now)
        if self.dropped:
            self._gates.noticed(())

    def _work(self, name: str) -> PoolWork:
        if name not in self._works:
            self._works[name] = PoolWork(name, self._jitter)
        return self._works[name]

    # One pool

    async def _sync(self, work: PoolWork) -> None:
        assert self._observation is not None
        assert self._writer is not None
        writer = self._writer
        if not await self._is_publisher():
            work.status = msgspec.structs.replace(work.status, state=PoolState.STANDBY, reason="")
            work.schedule(self._clock.monotonic() + STANDBY_SECONDS)
            self.metrics.syncs.labels("standby").inc()
            return
        observed, pool = self._observation.pool(work.name), work.pool
        if pool is not None:
            await self._resolve_owner(fresh=not observed)
        stamp = self._stamp()
        contents = work.contents(observed, self._gates.off)
        if faults := work.faults(contents, stamp):
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            self._refuse(work, f"{faults[0]}{more}", "Check")
            return
        actions = decide(work.desired(contents, stamp), observed)
        now = self._clock.monotonic()
        if any(work.refused(write.index, write.content, now) for write in actions.writes):
            work.schedule(min(refusal.until for refusal in work.refusals.values()))
            return
        if actions and (wait := work.spend(now)):
            work.schedule(now + wait)
            return
        if actions.writes and await self._gates.verify(
            [write.content for write in actions.writes], lambda content: writer.try_out(work, content, stamp)
        ):
            work.schedule(now)
            return
        try:
            await writer.perform(work, actions, stamp)
        except RefusedError as error:
            self._refuse(work, str(error), "Api")
        else:
            self._succeeded(work, actions, contents)
        if work.pool is not pool:  # there was an update meanwhile
            work.status = msgspec.structs.replace(work.status, state=PoolState.PENDING, reason="")

    async def _is_publisher(self) -> bool:
        if self._may_publish is None:
            return True
        try:
            return await self._may_publish()
        except Exception:  # noqa: BLE001 - whatever it is: who cannot tell must not write
            _log.exception("cannot tell whether this instance publishes")
            return False

    def _stamp(self) -> Stamp:
        return Stamp(driver=self._driver, node_name=self._node or "", owner=self._owner, labels=self._labels)

    async def _resolve_owner(self, *, fresh: bool) -> None:
        """Look up the Node's UID; again when all slices are missing, as they are when the Node was created anew."""
        owner = self._owner
        if owner is None or not owner.is_node:
            return
        now = self._clock.monotonic()
        if owner.uid and not (fresh and now - self._uid_known_at > 5.0):
            return
        try:
            node = await self._client.get(kube.NODES, owner.name)
        except kube.ApiError:
            if not owner.uid:
                raise
        else:
            self._owner = Owner.node(owner.name, node["metadata"]["uid"])
            self._uid_known_at = now

    def _on_dropped(self, dropped: Dropped) -> None:
        if not dropped.gates:
            self.dropped.pop((dropped.pool, dropped.index), None)
            return
        if self.dropped.get((dropped.pool, dropped.index)) != dropped:
            names = " ".join(dropped.gates)
            message = f"pool {dropped.pool}, slice {dropped.index}: the API server dropped fields of {names}"
            _log.warning("%s", message)
            self._on_event("Warning", "FieldsDropped", message)
            for gate in dropped.gates:
                self.metrics.dropped.labels(gate).inc()
        self.dropped[dropped.pool, dropped.index] = dropped
        self._gates.noticed(dropped.gates)

    def _on_gate_off(self, gate: str, fallback: Fallback) -> None:
        message = f"feature gate {gate} seems to be off: publishing without it ({fallback.value})"
        _log.warning("%s", message)
        self._on_event("Warning", "FeatureGateOff", message)
        for work in self._works.values():
            work.schedule(self._clock.monotonic())
        self._wake.set()

    def _succeeded(self, work: PoolWork, actions: Actions, contents: tuple[Any, ...]) -> None:
        observed = self._observation.pool(work.name) if self._observation else []
        work.backoff.reset()
        work.refusals.clear()
        work.taken.clear()
        generation = max((found.generation for found in observed), default=0)
        work.floor = max(work.floor, generation)
        work.status = PoolStatus(
            state=PoolState.PUBLISHED,
            generation=generation,
            slices=len(contents),
            devices=sum(len(content.devices) for content in contents),
        )
        self.metrics.syncs.labels("written" if actions else "unchanged").inc()
        self.metrics.last.set(self._clock.now().timestamp())
        if actions:
            _log.info("published pool %s: generation %d, %d slices", work.name, generation, len(contents))

    def _failed(self, work: PoolWork, error: Exception) -> None:
        delay = work.backoff.delay(getattr(error, "retry_after", None))
        work.schedule(self._clock.monotonic() + delay)
        work.status = msgspec.structs.replace(work.status, state=PoolState.FAILING, reason=str(error))
        self.metrics.syncs.labels("failed").inc()
        _log.warning("pool %s: %s; again in %.1f s", work.name, error, delay)

    def _refuse(self, work: PoolWork, reason: str, source: str) -> None:
        known = work.status.state is PoolState.REFUSED and work.status.reason == reason
        work.status = msgspec.structs.replace(work.status, state=PoolState.REFUSED, reason=reason)
        self.metrics.syncs.labels("refused").inc()
        if not known:
            self.metrics.refusals.labels(source).inc()
            _log.error("pool %s cannot be published: %s", work.name, reason)
            self._on_event("Warning", "PoolRefused", f"pool {work.name} cannot be published: {reason}")
