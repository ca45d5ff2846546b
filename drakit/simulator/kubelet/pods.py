"""One pod of the kubelet from its first sync to the end of its object."""

import asyncio
import random
from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from drakit.clock import Clock
from drakit.simulator.kubelet import health, podclaims, podstatus
from drakit.simulator.kubelet.cri import ContainerRuntime
from drakit.simulator.kubelet.plugins import PluginError, Plugins
from drakit.simulator.kubelet.podstatus import ContainerState
from drakit.simulator.kubelet.state import Claim
from drakit.simulator.kubelet.timers import Timers

__all__ = ["Node", "PodWorker"]

Pod = Mapping[str, Any]
_DEFAULT_GRACE = 30


class Node(Protocol):
    """What a pod worker needs of its kubelet."""

    plugins: Plugins
    runtime: ContainerRuntime
    clock: Clock
    timers: Timers
    rng: random.Random

    async def read_claims(self, pod: Pod) -> tuple[Claim, ...]:
        """The pod's claims from the API server, in the pod's order; ClaimError."""
        ...

    async def report(self, pod: Pod, status: dict[str, Any]) -> None:
        """Patch the pod's status; a pod that is gone is no error."""
        ...

    async def record(self, pod: Pod, reason: str, message: str) -> None:
        """Record a Warning event."""
        ...

    async def remove(self, pod: Pod) -> None:
        """Delete the pod object for good."""
        ...

    def log(self, line: str) -> None:
        """Write a line to the kubelet's log."""
        ...


class PodWorker:
    """Starts, watches and ends one pod.

    Order as recorded (09): prepare, sandbox, containers; at the end containers, sandbox, unprepare, final status, end
    of the object. A container's restart makes no RPC.
    """

    def __init__(self, node: Node, pod: Pod) -> None:
        self.uid: str = pod["metadata"]["uid"]
        self._node, self._pod = node, pod
        self._ending, self._stale = asyncio.Event(), asyncio.Event()
        self.gone = False
        """Whether the object is known to be gone."""
        self._restarts: dict[str, int] = {}
        self._waiting: dict[str, tuple[str, str]] = {}
        self._reported: dict[str, Any] = {}
        self.update(pod)

    @property
    def pod(self) -> Pod:
        """The newest known state of the pod."""
        return self._pod

    def update(self, pod: Pod) -> None:
        """A new state of the pod was seen."""
        self._pod = pod
        if pod["metadata"].get("deletionTimestamp"):
            self._ending.set()

    def disappear(self) -> None:
        """The object is gone: deleted by force, or by this worker."""
        self.gone = True
        self._ending.set()

    async def run(self) -> None:
        """Live through the pod's life."""
        ended = (self._pod.get("status") or {}).get("phase") in podstatus.TERMINAL
        has_sandbox = self.uid in self._node.runtime.sandboxes()
        if not ended and (has_sandbox or await self._start()):
            await self._until_ending(self._run_containers())
        await self._end(ended)

    # Start

    async def _start(self) -> bool:
        """Prepare and make the sandbox; False: the pod is deleted before it came to that.

        A deletion does not cancel a running prepare, and the sandbox is still made after it (recorded section 20).
        """
        while not self._ending.is_set():
            try:
                claims = await self._node.read_claims(self._pod)
                await self._node.plugins.prepare(self.uid, self._pod["metadata"]["name"], claims)
            except (podclaims.ClaimError, PluginError) as error:
                message = f"Failed to prepare dynamic resources: prepare dynamic resources: {error}"
                await self._node.record(self._pod, "FailedPrepareDynamicResources", message)
                await self._report("Pending")
                await self._pause(self._node.timers.sync_delay(self._node.rng))
                continue
            await self._node.runtime.run_sandbox(self._pod)
            return True
        return False

    async def _pause(self, seconds: float) -> None:
        """Wait; a deletion ends the wait."""
        await self._until_ending(self._node.clock.sleep(seconds))

    def refresh(self) -> None:
        """Report the status now: the health of a device changed."""
        self._stale.set()

    async def _resync(self) -> None:
        """Look at the status again whenever asked, and once in a sync period at the latest."""
        while True:
            waiting = {
                asyncio.ensure_future(self._stale.wait()),
                asyncio.ensure_future(self._node.clock.sleep(self._node.timers.sync_delay(self._node.rng))),
            }
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in waiting:
                    task.cancel()
            self._stale.clear()
            await self._report()

    async def _until_ending(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` to its end or to the pod's deletion."""
        tasks = {asyncio.ensure_future(work), asyncio.ensure_future(self._ending.wait())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    # Containers

    async def _run_containers(self) -> None:
        """Init containers one after the other, then all others, until none is left to run."""
        await self._report("Pending")
        for container in self._pod["spec"].get("initContainers") or ():
            if not await self._keep(container, until_success=True):
                return
        async with asyncio.TaskGroup() as group:
            resync = group.create_task(self._resync())
            await asyncio.gather(*(self._keep(container) for container in self._pod["spec"]["containers"]))
            resync.cancel()

    async def _keep(self, container: Pod, *, until_success: bool = False) -> bool:
        """Run a container, again as the restart policy says; whether it ended well."""
        policy = self._pod["spec"].get("restartPolicy", "Always")
        name, failures = container["name"], 0
        while True:
            if self._node.runtime.container(self.uid, name) is None and not await self._create(container):
                failures += 1
                await self._node.clock.sleep(self._node.timers.container_delay(failures))
                continue
            await self._report()
            code = await self._node.runtime.wait(self.uid, name)
            await self._node.clock.sleep(self._node.timers.pleg)
            await self._report()
            if policy == "Never" or (code == 0 and (policy == "OnFailure" or until_success)):
                return code == 0
            failures += 1
            await self._node.clock.sleep(self._node.timers.container_delay(failures))
            self._restarts[name] = self._restarts.get(name, 0) + 1
            while not await self._create(container):
                failures += 1
                await self._node.clock.sleep(self._node.timers.container_delay(failures))

    async def _create(self, container: Pod) -> bool:
        """Create a container with its CDI devices; a failure never leads to another prepare (recorded section 15)."""
        name = container["name"]
        try:
            claims = self._node.plugins.state.claims
            devices = podclaims.cdi_devices(self._pod, container, claims, self._node.rng)
            await self._node.runtime.create_container(self._pod, container, devices)
        except podclaims.ClaimError as error:
            await self._container_fault(name, "CreateContainerConfigError", str(error))
        except RuntimeError as error:
            await self._container_fault(name, "CreateContainerError", str(error))
        else:
            self._waiting.pop(name, None)
            return True
        return False

    async def _container_fault(self, name: str, reason: str, message: str) -> None:
        self._waiting[name] = (reason, message)
        await self._node.record(self._pod, "Failed", f"Error: {message}")
        await self._report()

    def _states(self, field: str) -> list[ContainerState]:
        return [self._state(container) for container in self._pod["spec"].get(field) or ()]

    def _state(self, container: Pod) -> ContainerState:
        name = container["name"]
        reason, message = self._waiting.get(name, ("ContainerCreating", ""))
        return ContainerState(
            name,
            container.get("image", ""),
            None if name in self._waiting else self._node.runtime.container(self.uid, name),
            reason,
            message,
            self._restarts.get(name, 0),
            tuple(self._resources(container)),
        )

    def _resources(self, container: Pod) -> list[dict[str, Any]]:
        """The health of the container's devices."""
        try:
            names = podclaims.claim_names(self._pod)
        except podclaims.ClaimError:
            return []
        namespace, plugins = self._pod["metadata"]["namespace"], self._node.plugins
        keys = {pod_claim: f"{namespace}/{name}" for pod_claim, name in names.items()}
        return health.resources(container, keys, plugins.state.claims, plugins.health, self._node.clock.monotonic())

    async def _report(self, phase: str | None = None) -> None:
        containers = self._states("containers")
        phase = phase or podstatus.phase(containers, self._pod["spec"].get("restartPolicy", "Always"))
        # A pod is not reported as ended before its claims are given back (recorded section 09).
        await self._send("Running" if phase in podstatus.TERMINAL else phase)

    async def _send(self, phase: str) -> None:
        status = podstatus.status(
            self._pod,
            phase,
            self._states("containers"),
            self._states("initContainers"),
            sandbox=self.uid in self._node.runtime.sandboxes(),
            now=self._node.clock.now(),
        )
        if status != self._reported and not self.gone:
            self._reported = status
            await self._node.report(self._pod, status)

    # End

    async def _end(self, reported: bool) -> None:
        grace = self._pod["metadata"].get("deletionGracePeriodSeconds")
        if grace is None:
            grace = self._pod["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
        await self._node.runtime.stop_sandbox(self.uid, 0 if self.gone else grace)
        await self._unprepare()
        if not reported:
            await self._send(podstatus.final_phase([*self._states("containers"), *self._states("initContainers")]))
        await self._ending.wait()
        self._node.runtime.remove_sandbox(self.uid)  # the object is the last to go
        if not self.gone:
            await self._node.clock.sleep(self._node.timers.removal)
            await self._node.remove(self._pod)

    async def _unprepare(self) -> None:
        """Give the claims back, however long it takes; failures are only logged (recorded section 19)."""
        failures = 0
        while True:
            try:
                await self._node.plugins.unprepare(self.uid, podclaims.claim_keys(self._pod))
            except PluginError as error:
                failures += 1
                self._node.log(f"Error syncing pod, skipping: unprepare dynamic resources: {error}")
                timers = self._node.timers
                delay = timers.housekeeping if self.gone else timers.unprepare_delay(failures, self._node.rng)
                await self._node.clock.sleep(delay)
            else:
                return
