"""The fake kubelet: pods of its node from the API server, claims through plugins, containers in a runtime."""

import asyncio
import contextlib
import os
import random
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from drakit import kube
from drakit.clock import SYSTEM, Clock
from drakit.simulator.kubelet import podclaims
from drakit.simulator.kubelet.cri import ContainerRuntime
from drakit.simulator.kubelet.plugins import PluginError, Plugins
from drakit.simulator.kubelet.pods import PodWorker
from drakit.simulator.kubelet.state import Claim
from drakit.simulator.kubelet.timers import RECORDED, Timers

__all__ = ["FakeKubelet"]

Pod = Mapping[str, Any]


class FakeKubelet:
    """A kubelet for one node, as far as claims are concerned, as recorded from version 1.36.

    The runtime and the root directory outlive it: `stop` and `start` again (or `restart`) are a kubelet restart, with
    everything that follows from it: slices wiped, plugins found again, claims from the checkpoint, running pods left
    alone. Use it as an async context manager, or call `start` and `stop`.

    Args:
        client: an open client with the rights of a kubelet.
        runtime: see cri.ContainerRuntime.
        node: the node's name; the Node object is made when it is missing.
        root: the kubelet's root directory (/var/lib/kubelet on a real node).
        registry: the plugin registry; default: `plugins_registry` below root.
        timers: the recorded ones unless a test shortens them.
        clock: for everything but RPC deadlines.
        seed: for what is random in a kubelet: the order of drivers, the jitter of waits.
        version: "1.32" to "1.37"; what differs stands at Plugins.
    """

    def __init__(
        self,
        client: kube.Client,
        runtime: ContainerRuntime,
        *,
        node: str,
        root: Path,
        registry: Path | None = None,
        timers: Timers = RECORDED,
        clock: Clock = SYSTEM,
        seed: int | None = None,
        version: str = "1.36",
    ) -> None:
        self.version = version
        self.client, self.runtime, self.clock, self.timers = client, runtime, clock, timers
        self.node, self.root = node, root
        self.registry = registry or root / "plugins_registry"
        self.plugins_directory = root / "plugins"
        self.rng = random.Random(seed)  # noqa: S311 - jitter
        self._task: asyncio.Task[None] | None = None
        self._started = asyncio.Event()
        self._requests = 0
        self.pods: kube.Reflector | None = None
        """The pods of the node as far as they were seen; None: the kubelet does not run."""
        self._workers: dict[str, PodWorker] = {}
        self._finished: set[str] = set()
        self._events: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._group: asyncio.TaskGroup | None = None
        self.plugins = self._new_plugins()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start a run: returns as soon as the node is registered and plugins are being looked for."""
        assert self._task is None, "the kubelet runs already"
        self.root.mkdir(parents=True, exist_ok=True)
        self.plugins_directory.mkdir(exist_ok=True)
        self.plugins = self._new_plugins()
        self._workers, self._finished, self._requests = {}, set(), 0
        self._started = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"kubelet {self.node}")
        started = asyncio.create_task(self._started.wait())
        await asyncio.wait({self._task, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if self._task.done():
            task, self._task = self._task, None
            task.result()

    async def stop(self) -> None:
        """End the run as SIGTERM does: calls in flight are cancelled, containers go on.

        Raises:
            BaseExceptionGroup: what went wrong inside.
        """
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        self.pods = None
        with contextlib.suppress(asyncio.CancelledError):
            await task

    @property
    def is_idle(self) -> bool:
        """Whether no call of a plugin and no request is under way: for `ManualClock.idle_when`."""
        return self.plugins.is_idle and self._requests == 0

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The run; None: stopped. It ends early only by a fault of the simulator."""
        return self._task

    async def restart(self) -> None:
        """Stop and start again."""
        await self.stop()
        await self.start()

    def _new_plugins(self) -> Plugins:
        self.root.mkdir(parents=True, exist_ok=True)
        return Plugins(
            self.root,
            self.registry,
            wipe=self._wipe,
            timers=self.timers,
            clock=self.clock,
            rng=self.rng,
            version=self.version,
            health_changed=self._health_changed,
        )

    def _health_changed(self, driver: str, devices: frozenset[str]) -> None:
        """Pods that use one of the devices show it at once."""
        for info in self.plugins.state.claims.values():
            if any(f"{entry.pool}/{entry.device}" in devices for entry in info.devices.get(driver, ())):
                for uid in info.pods:
                    if uid in self._workers:
                        self._workers[uid].refresh()

    async def _run(self) -> None:
        await self._register_node()
        async with asyncio.TaskGroup() as self._group:
            self._group.create_task(self._wipe(None))
            self._group.create_task(self.plugins.run())
            self._group.create_task(self._reconcile())
            self._group.create_task(self._watch_pods())
            await self.plugins.ticked.wait()
            self._started.set()

    # The node and its slices

    async def _register_node(self) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node, "labels": self._labels()}}
        with contextlib.suppress(kube.Conflict):
            await self.client.create(kube.NODES, node)
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastTransitionTime": self._timestamp(),
            "lastHeartbeatTime": self._timestamp(),
        }
        info = {"kubeletVersion": f"v{self.version}.0", "operatingSystem": "linux", "architecture": os.uname().machine}
        status = {"status": {"conditions": [ready], "nodeInfo": info}}
        await self.client.patch(
            kube.NODES, self.node, status, subresource="status", content_type=kube.STRATEGIC_MERGE_PATCH
        )

    def _labels(self) -> dict[str, str]:
        return {"kubernetes.io/hostname": self.node, "kubernetes.io/os": "linux"}

    def _timestamp(self) -> str:
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    async def _wipe(self, driver: str | None) -> None:
        """Delete the node's slices, of one driver or (at the start) of all; retried until it works (R31)."""
        selector = f"spec.nodeName={self.node}" + (f",spec.driver={driver}" if driver else "")
        delay = 1.0
        while True:
            try:
                await self.client.delete_collection(kube.RESOURCE_SLICES, field_selector=selector)
            except kube.ApiError as error:
                self.log(f"deleting ResourceSlices {selector}: {error}")
                await self.clock.sleep(delay * self.rng.uniform(1, 1.2))
                delay = min(delay * 2, 300)
            else:
                return

    # Pods

    async def _watch_pods(self) -> None:
        selector = f"spec.nodeName={self.node}"
        async with kube.Reflector(self.client, kube.PODS, field_selector=selector, clock=self.clock) as self.pods:
            pods = self.pods
            await self.clock.sleep(self.timers.first_sync)
            await pods.synced.wait()
            for pod in pods:
                self._see(pod)
            await self._kill_orphans()
            async for change in pods.changes():
                if change.type == "DELETED":
                    self._lose(change.object)
                else:
                    self._see(change.object)

    async def _reconcile(self) -> None:
        """Unprepare claims of pods that nobody knows any more (P24, recorded section 14b)."""
        while True:
            await self.clock.sleep(self.timers.reconcile)
            for pod, keys in self._forgotten().items():
                try:
                    await self.plugins.unprepare(pod, tuple(keys))
                except PluginError as error:
                    self.log(f"unprepare of pod {pod}: {error}")

    def _forgotten(self) -> dict[str, list[str]]:
        forgotten: dict[str, list[str]] = {}
        for key, info in self.plugins.state.claims.items():
            for pod in info.pods:
                if pod not in self._workers:
                    forgotten.setdefault(pod, []).append(key)
        return forgotten

    async def _kill_orphans(self) -> None:
        """Pods that were deleted by force while the kubelet was down: containers end, without unprepare."""
        for uid in self.runtime.sandboxes():
            if uid not in self._workers:
                await self.runtime.stop_sandbox(uid, 0)
                self.runtime.remove_sandbox(uid)

    def _see(self, pod: Pod) -> None:
        uid = pod["metadata"]["uid"]
        worker = self._workers.get(uid)
        if worker is not None:
            worker.update(pod)
            return
        if uid in self._finished:
            return  # news from before its end
        worker = self._workers[uid] = PodWorker(self, pod)
        self._spawn(self._work(worker))

    async def _work(self, worker: PodWorker) -> None:
        await worker.run()
        del self._workers[worker.uid]
        if not worker.gone:
            self._finished.add(worker.uid)

    def _lose(self, pod: Pod) -> None:
        uid = pod["metadata"]["uid"]
        self._finished.discard(uid)
        worker = self._workers.get(uid)
        if worker is not None:
            worker.disappear()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._group is not None
        self._group.create_task(work)

    # What pod workers need

    async def read_claims(self, pod: Pod) -> tuple[Claim, ...]:
        """The pod's claims from the API server, in the pod's order."""
        names = podclaims.claim_names(pod)
        templates = {
            entry["name"] for entry in pod["spec"].get("resourceClaims") or () if not entry.get("resourceClaimName")
        }
        claims = [await self._read_claim(pod, name, generated=entry in templates) for entry, name in names.items()]
        extended = podclaims.extended_claim(pod)
        if extended:
            claims.append(await self._read_claim(pod, extended, generated=True))
        return tuple(claims)

    async def _read_claim(self, pod: Pod, name: str, *, generated: bool) -> Claim:
        self._requests += 1
        try:
            claim = await self.client.get(kube.RESOURCE_CLAIMS, name, namespace=pod["metadata"]["namespace"])
        except kube.ApiError as error:
            raise podclaims.ClaimError(f"fetch ResourceClaim {name}: {error.message}") from error
        finally:
            self._requests -= 1
        return podclaims.read_claim(pod, claim, generated=generated)

    async def report(self, pod: Pod, status: dict[str, Any]) -> None:
        """Patch the pod's status; a pod that is gone is no error."""
        metadata = pod["metadata"]
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        with self._api_errors(f"status of pod {metadata['name']}"):
            await self.client.patch(
                kube.PODS,
                metadata["name"],
                body,
                namespace=metadata["namespace"],
                subresource="status",
                content_type=kube.STRATEGIC_MERGE_PATCH,
            )

    async def record(self, pod: Pod, reason: str, message: str) -> None:
        """Record a Warning event; the same one again only counts up."""
        self.log(f"{reason}: {message}")
        metadata = pod["metadata"]
        now = self._timestamp()
        known = self._events.get((metadata["uid"], reason, message))
        with self._api_errors(f"event for pod {metadata['name']}"):
            if known is None:
                event = await self.client.create(kube.EVENTS, self._event(pod, reason, message, now))
            else:
                body = {"count": known["count"] + 1, "lastTimestamp": now}
                name = known["metadata"]["name"]
                event = await self.client.patch(kube.EVENTS, name, body, namespace=metadata["namespace"])
            self._events[metadata["uid"], reason, message] = event

    def _event(self, pod: Pod, reason: str, message: str, now: str) -> dict[str, Any]:
        metadata = pod["metadata"]
        identity = {key: metadata[key] for key in ("namespace", "name", "uid")}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", **identity},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": self.node},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    async def remove(self, pod: Pod) -> None:
        """Delete the pod object for good."""
        metadata = pod["metadata"]
        with self._api_errors(f"deletion of pod {metadata['name']}"):
            await self.client.delete(
                kube.PODS,
                metadata["name"],
                namespace=metadata["namespace"],
                uid=metadata["uid"],
                grace_period_seconds=0,
            )

    def log(self, line: str) -> None:
        """Write a line to the kubelet's log (`plugins.log`, of the last run)."""
        self.plugins.log.append(line)

    @contextlib.contextmanager
    def _api_errors(self, what: str) -> Iterator[None]:
        self._requests += 1
        try:
            yield
        except (kube.NotFound, kube.Conflict):
            return  # the object is gone, or another one of that name is there
        except kube.ApiError as error:
            self.log(f"{what}: {error}")
        finally:
            self._requests -= 1
