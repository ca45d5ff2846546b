"""The real application between a fake kubelet with its runtime and a fake API server; pods are placed by hand."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from drakit import kube
from drakit.clock import SYSTEM, Clock
from drakit.driver.application import Application
from drakit.simulator.cluster import QUICK
from drakit.simulator.kubelet import FakeKubelet, Timers
from drakit.simulator.kubelet.decisions import pick
from drakit.simulator.kubelet.state import Instance
from drakit.simulator.runtime import Runtime
from drakit.simulator.runtime.container import Container

NODE = "node-a"
DRIVER = "gpu.example.com"
HASTE = msgspec.structs.replace(QUICK, get_info=0.3, notify=0.3, sync=0.1, reconcile=0.3)
PLAIN = {"name": "main", "image": "busybox", "command": ["sleep", "infinity"]}


class LoggedRuntime(Runtime):
    """Says when sandboxes come and go."""

    def __init__(self, node: Any, clock: Clock) -> None:
        super().__init__((node.root / "cdi",), node.root / "run", clock=clock)
        self.log: list[str] = []

    async def run_sandbox(self, pod: Mapping[str, Any]) -> None:
        self.log.append("sandbox")
        await super().run_sandbox(pod)

    async def stop_sandbox(self, pod_uid: str, grace_seconds: float) -> None:
        await super().stop_sandbox(pod_uid, grace_seconds)
        self.log.append("sandbox stopped")


class Stage:
    """A node with a kubelet, and short ways to say what a pod wants."""

    def __init__(self, node: Any, client: kube.Client, timers: Timers, clock: Clock) -> None:
        self.node, self.client = node, client
        self.runtime = LoggedRuntime(node, clock)
        self.kubelet = FakeKubelet(
            client,
            self.runtime,
            node=NODE,
            root=node.root / "kubelet",
            registry=node.root / "reg",
            timers=timers,
            clock=clock,
            seed=5,
        )

    @property
    def log(self) -> list[str]:
        return self.runtime.log

    def logged(self, driver: Any) -> Any:
        """A driver whose hooks write into the same log."""
        prepare, unprepare = driver.on_prepare, driver.on_unprepare

        def on_prepare(claim: Any) -> Any:
            self.log.append("prepare")
            return prepare(claim)

        def on_unprepare(claim: Any) -> None:
            self.log.append("unprepare")
            unprepare(claim)

        driver.on_prepare, driver.on_unprepare = on_prepare, on_unprepare
        return driver

    async def start(self, driver: Any = None, **settings: Any) -> Application:
        """An application that the kubelet has registered, its slices published."""
        application: Application
        application, _ = await self.node.start(driver, **settings)
        if self.kubelet.task is None:
            await self.kubelet.start()
        await self.kubelet.plugins.registered(DRIVER)
        return application

    def picked(self) -> Instance | None:
        """The instance that the kubelet would call."""
        return pick(self.kubelet.plugins.state, DRIVER)

    @property
    def connected(self) -> bool:
        picked = self.picked()
        return picked is not None and picked.connected

    def slices(self) -> set[str]:
        return {item["metadata"]["uid"] for item in self.node.server.list("resourceslices")}

    def pod(self, name: str, *claims: str, containers: Sequence[dict[str, Any]] = (), **spec: Any) -> dict[str, Any]:
        """Create a pod that uses existing claims by their names."""
        uses = {"resources": {"claims": [{"name": claim} for claim in claims]}}
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "restartPolicy": "Never",
                "containers": [PLAIN | container for container in containers] or [PLAIN | uses],
                "resourceClaims": [{"name": claim, "resourceClaimName": claim} for claim in claims],
                **spec,
            },
        }
        created: dict[str, Any] = self.node.server.create(body)
        return created

    def reserve(self, claim: str, *pods: dict[str, Any]) -> None:
        """Reserve a claim for pods, and nobody else."""
        stored = self.node.server.get("resourceclaims", claim, "default")
        stored["status"]["reservedFor"] = [
            {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in pods
        ]
        self.node.server.update(stored, subresource="status")

    async def place(self, pod: dict[str, Any]) -> None:
        path = kube.PODS.path("v1", "default", pod["metadata"]["name"], "binding")
        metadata = {"name": pod["metadata"]["name"]}
        target = {"kind": "Node", "name": NODE}
        await self.client.request(
            "POST", path, body={"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        )

    async def run(self, name: str, *claims: str, **options: Any) -> dict[str, Any]:
        """Create a pod, reserve its claims for it, and place it."""
        pod = self.pod(name, *claims, **options)
        for claim in claims:
            self.reserve(claim, pod)
        await self.place(pod)
        return pod

    def phase(self, name: str) -> str:
        """The pod's phase, "" when it is gone."""
        pod = self.node.server.get("pods", name, "default")
        return "" if pod is None else pod.get("status", {}).get("phase", "Pending")

    def container(self, pod: dict[str, Any], name: str = "main") -> Container:
        found = self.runtime.container(pod["metadata"]["uid"], name)
        assert found is not None
        return found

    def delete(self, name: str, **options: Any) -> None:
        self.node.server.delete("pods", name, "default", **options)

    def events(self) -> list[str]:
        found = self.node.server.list("events")
        return [event["message"] for event in found if event["reason"] == "FailedPrepareDynamicResources"]

    async def close(self) -> None:
        await self.kubelet.stop()
        await self.runtime.close()


@pytest.fixture(name="stages")
async def _stages(node: Any) -> AsyncIterator[Callable[..., Awaitable[Stage]]]:
    """Makes stages: with other timers, or another clock for kubelet and runtime."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(timers: Timers = HASTE, clock: Clock = SYSTEM) -> Stage:
            client = await stack.enter_async_context(kube.Client(kube.from_kubeconfig(node.server.kubeconfig())))
            stage = Stage(node, client, timers, clock)
            stack.push_async_callback(stage.close)
            return stage

        yield make


@pytest.fixture(name="stage")
async def _stage(stages: Callable[..., Awaitable[Stage]]) -> Stage:
    return await stages()


class Registrar:
    """Stands in for the two calls of an application's registration, before it starts; counts them."""

    def __init__(self, application: Application) -> None:
        registration = application.registration
        self.get_info, self.notify = registration.GetInfo, registration.NotifyRegistrationStatus
        self.infos = 0
        self.statuses: list[tuple[bool, str]] = []
        self.on_info: Callable[[int, Any], Awaitable[Any]] = self._nothing
        self.on_notify: Callable[[int, Any], Awaitable[Any]] = self._nothing
        registration.GetInfo = self._get_info  # type: ignore[method-assign]
        registration.NotifyRegistrationStatus = self._notify  # type: ignore[method-assign]

    async def _nothing(self, number: int, context: Any) -> Any:
        """Change nothing."""

    async def _get_info(self, request: Any, context: Any) -> Any:
        self.infos += 1
        other = await self.on_info(self.infos, context)
        return other or await self.get_info(request, context)

    async def _notify(self, request: Any, context: Any) -> Any:
        self.statuses.append((request.plugin_registered, request.error))
        await self.on_notify(len(self.statuses), context)
        return await self.notify(request, context)


@pytest.fixture(name="intercept")
def _intercept() -> Callable[[Application], Registrar]:
    return Registrar
