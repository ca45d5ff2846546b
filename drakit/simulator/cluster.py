"""A whole cluster in one process: API server, control plane, and nodes with kubelet and runtime; no hardware.

Drivers run beside it as they would on a node, in processes of their own or in this one: their sockets, files and API
requests are real.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import yaml

from drakit import kube
from drakit.clock import SYSTEM, Clock
from drakit.simulator.apiserver import Call, FakeAPIServer
from drakit.simulator.clock import ManualClock
from drakit.simulator.controlplane.loop import ControlPlane
from drakit.simulator.kubelet import FakeKubelet, Timers
from drakit.simulator.process import DriverProcess, driver_command
from drakit.simulator.runtime import Container, Runtime

__all__ = ["QUICK", "Cluster", "SimulatedNode", "resource_of"]

Object = dict[str, Any]
T = TypeVar("T")

QUICK = Timers(
    reconciler_tick=0.05,
    registration_backoff=0.05,
    sync=0.2,
    unprepare_first_retry=0.05,
    unprepare_retry=0.2,
    housekeeping=0.1,
    reconcile=1.0,
    slice_wipe=30.0,
    reconnect=0.05,
    container_backoff=0.2,
    pleg=0.0,
    first_sync=0.1,
    health_retry=0.5,
    removal=0.0,
)
"""A kubelet in a hurry, for tests and demonstrations: the recorded order of events, little of the waiting."""

_RESOURCES = {
    resource.kind: resource
    for resource in (
        kube.EVENTS,
        kube.DEVICE_CLASSES,
        kube.DEVICE_TAINT_RULES,
        kube.NAMESPACES,
        kube.NODES,
        kube.PODS,
        kube.RESOURCE_CLAIMS,
        kube.RESOURCE_CLAIM_TEMPLATES,
        kube.RESOURCE_SLICES,
    )
}


def resource_of(obj: Mapping[str, Any]) -> kube.Resource:
    """The collection that an object belongs to.

    Raises:
        KeyError: a kind that the cluster does not know.
    """
    return _RESOURCES[obj["kind"]]


class SimulatedNode:
    """A node: its directories, kubelet, runtime, and what a driver on it is told.

    Attributes:
        name: of the Node object.
        directory: everything of the node lies below.
        cdi: where CDI specs belong.
        runtime: its containers.
        kubelet: runs while the cluster does; may be stopped, started and restarted.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        client: kube.Client,
        *,
        version: str,
        timers: Timers,
        clock: Clock,
        seed: int | None,
    ) -> None:
        self.name, self.directory = name, directory
        self.cdi = directory / "cdi"
        self.cdi.mkdir(parents=True)
        self.runtime = Runtime((self.cdi,), directory / "run", clock=clock)
        self.kubelet = FakeKubelet(
            client,
            self.runtime,
            node=name,
            root=directory / "kubelet",
            timers=timers,
            clock=clock,
            seed=seed,
            version=version,
        )

    def driver_flags(self) -> dict[str, str]:
        """The flags of `drakit run` that place a driver on this node."""
        return {
            "--node-name": self.name,
            "--cdi-root": str(self.cdi),
            "--kubelet-registrar-directory-path": str(self.kubelet.registry),
            "--kubelet-plugins-directory-path": str(self.kubelet.plugins_directory),
        }

    def containers(self, pod_uid: str) -> tuple[Container, ...]:
        """The newest container of every name in a pod."""
        return tuple(container for container in self.runtime.containers() if container.pod_uid == pod_uid)


class Cluster:
    """API server, control plane and nodes; an async context manager.

    ```python
    async with Cluster(nodes=("n1",)) as cluster:
        await cluster.apply(manifest)
        pod = await cluster.pod("example-claim", phase="Running")
    ```

    Args:
        directory: everything lies below; socket paths must fit into 107 bytes. Default: a directory of its own that
            goes with the cluster.
        version: of Kubernetes, "1.32" to "1.37"; of API server and kubelets.
        gates: feature gates of the API server; None: the version's defaults.
        nodes: names.
        timers: of all kubelets.
        clock: of everything but socket timeouts and driver processes; a ManualClock waits until the cluster is idle.
        seed: for what is random.
        authorizer: says which requests are allowed; None: all.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        version: str = "1.37",
        gates: Iterable[str] | None = None,
        nodes: Iterable[str] = ("n1",),
        timers: Timers = QUICK,
        clock: Clock = SYSTEM,
        seed: int | None = None,
        authorizer: Callable[[Call], bool] | None = None,
    ) -> None:
        self._directory = directory
        self._names, self._timers, self._clock, self._seed = tuple(nodes), timers, clock, seed
        self.server = FakeAPIServer(
            version, gates=None if gates is None else tuple(gates), clock=clock, authorizer=authorizer
        )
        self.nodes: dict[str, SimulatedNode] = {}
        self.drivers: list[DriverProcess] = []
        self._client: kube.Client | None = None
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            if self._directory is None:
                self._directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drakit-")))
            await stack.enter_async_context(self.server)
            self._client = await stack.enter_async_context(self.client("cluster-admin"))
            control = await stack.enter_async_context(self.client("control-plane"))
            self.control_plane = await stack.enter_async_context(ControlPlane(control, clock=self._clock))
            for name in self._names:
                await self._start_node(stack, name)
            if isinstance(self._clock, ManualClock):
                self._clock.idle_when(lambda: self.is_idle)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _start_node(self, stack: contextlib.AsyncExitStack, name: str) -> None:
        client = await stack.enter_async_context(self.client(f"kubelet-{name}"))
        node = SimulatedNode(
            name,
            self.directory / name,
            client,
            version=self.server.version,
            timers=self._timers,
            clock=self._clock,
            seed=self._seed,
        )
        self.nodes[name] = node
        stack.push_async_callback(node.runtime.close)
        await stack.enter_async_context(node.kubelet)

    @property
    def directory(self) -> Path:
        """Where everything lies."""
        assert self._directory is not None, "the cluster has not been entered"
        return self._directory

    @property
    def node(self) -> SimulatedNode:
        """The first node."""
        return next(iter(self.nodes.values()))

    @property
    def api(self) -> kube.Client:
        """A client that may do everything."""
        assert self._client is not None, "the cluster has not been entered"
        return self._client

    def service_account(self, name: str, *, node: str = "") -> tuple[Path, dict[str, str]]:
        """In-cluster credentials: the directory with token, ca.crt and namespace, and the environment beside it."""
        directory = self.directory / "serviceaccounts" / name
        return directory, self.server.service_account(directory, namespace="kube-system", name=name, node=node)

    def client(self, name: str) -> kube.Client:
        """A new client (not yet entered) with the in-cluster credentials of a service account."""
        directory, environment = self.service_account(name)
        return kube.Client(kube.in_cluster(directory, environment), clock=self._clock)

    async def start_driver(self, node: SimulatedNode, **flags: str) -> DriverProcess:
        """Run `drakit run` on a node in a process of its own, with in-cluster credentials; stopped with the cluster.

        Args:
            node: where.
            flags: further flags, in snake case.
        """
        given = {f"--{flag.replace('_', '-')}": value for flag, value in flags.items()}
        files, environment = self.service_account(f"drakit-{node.name}", node=node.name)
        command = driver_command({**node.driver_flags(), "--service-account-directory": str(files), **given})
        name = flags.get("driver_name", "driver") + (f"-{flags['pod_uid']}" if "pod_uid" in flags else "")
        process = DriverProcess(command, node.directory / f"{name}.log", environment, node=node.name)
        self.drivers.append(process)
        await process.start()
        self._stack.push_async_callback(process.stop)
        return process

    @property
    def is_idle(self) -> bool:
        """Whether nothing happens in API server, control plane and kubelets until time moves on."""
        return (
            self.server.is_idle
            and self.control_plane.is_idle
            and all(node.kubelet.is_idle for node in self.nodes.values())
            and self._all_seen()
        )

    def _all_seen(self) -> bool:
        """Whether every write has reached all who watch: the last bytes may still be on their way."""
        for resource, reflector in self.control_plane.reflectors.items():
            if _states(self.server.list(resource)) != _states(reflector):
                return False
        pods = self.server.list("pods")
        for node in self.nodes.values():
            own = [pod for pod in pods if pod["spec"].get("nodeName") == node.name]
            if node.kubelet.pods is not None and _states(own) != _states(node.kubelet.pods):
                return False
        return True

    # Objects

    async def apply(self, manifest: str | Mapping[str, Any]) -> list[Object]:
        """Create the objects of a manifest (YAML documents, or one object); those in no namespace go to `default`."""
        documents = list(yaml.safe_load_all(manifest)) if isinstance(manifest, str) else [dict(manifest)]
        return [await self._create(document) for document in documents if document]

    async def _create(self, obj: Object) -> Object:
        resource = resource_of(obj)
        namespace = obj["metadata"].get("namespace", "default") if resource.namespaced else None
        # Sent as it is: the version of the manifest is part of what is tested.
        group_version = obj["apiVersion"].rpartition("/")[2]
        path = resource.path(group_version, namespace)
        await self.api.request("POST", path, body=obj)
        return await self.api.get(resource, obj["metadata"]["name"], namespace=namespace)

    async def delete(self, resource: kube.Resource, name: str, namespace: str = "default") -> None:
        """Delete an object as kubectl does."""
        await self.api.delete(resource, name, namespace=namespace if resource.namespaced else None)

    async def until(
        self, resource: kube.Resource, condition: Callable[[list[Object]], Any], *, namespace: str | None = None
    ) -> list[Object]:
        """The objects of a collection, as soon as they fulfil `condition`."""
        async with kube.Reflector(self.api, resource, namespace=namespace, clock=self._clock) as reflector:
            await self._while_well(reflector.synced.wait())
            async with contextlib.aclosing(reflector.changes()) as changes:
                while not condition(objects := list(reflector)):
                    await self._while_well(anext(changes))
                return objects

    async def _while_well(self, awaitable: Awaitable[T]) -> T:
        """Await something as long as control plane and kubelets live; what ended one of them is raised."""
        waiting = asyncio.ensure_future(awaitable)
        parts = [self.control_plane.task, *(node.kubelet.task for node in self.nodes.values())]
        running = {part for part in parts if part is not None}
        try:
            await asyncio.wait({waiting, *running}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                for part in running:
                    if part.done():
                        part.result()
            return await waiting
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def pod(self, name: str, *, phase: str = "Running", namespace: str = "default") -> Object:
        """A pod, as soon as it has that phase."""

        def found(pods: list[Object]) -> list[Object]:
            return [p for p in pods if p["metadata"]["name"] == name and (p.get("status") or {}).get("phase") == phase]

        return found(await self.until(kube.PODS, found, namespace=namespace))[0]

    async def gone(self, resource: kube.Resource, name: str, *, namespace: str = "default") -> None:
        """Wait until an object is gone."""

        def absent(objects: list[Object]) -> bool:
            return all(obj["metadata"]["name"] != name for obj in objects)

        await self.until(resource, absent, namespace=namespace if resource.namespaced else None)


def _states(objects: Iterable[Object]) -> dict[str, str]:
    """Versions by UID."""
    return {obj["metadata"]["uid"]: obj["metadata"]["resourceVersion"] for obj in objects}
