"""A scripted DRA plugin over real sockets, and a kubelet's plugin side without an API server."""

import asyncio
import contextlib
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest

from drakit import cdi, kube
from drakit._proto import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    health_v1_pb2,
    health_v1_pb2_grpc,
    health_v1alpha1_pb2,
    health_v1alpha1_pb2_grpc,
    pluginregistration_pb2,
    pluginregistration_pb2_grpc,
)
from drakit.clock import SYSTEM, Clock
from drakit.simulator.apiserver import FakeAPIServer
from drakit.simulator.clock import ManualClock
from drakit.simulator.kubelet import RECORDED, FakeKubelet, Plugins, Timers
from drakit.simulator.runtime import Runtime

FAST = Timers(
    reconciler_tick=0.02,
    registration_dial=0.5,
    get_info=0.5,
    notify=0.5,
    registration_backoff=0.01,
    rpc=2.0,
    sync=0.05,
    unprepare_first_retry=0.02,
    unprepare_retry=0.05,
    housekeeping=0.02,
    reconcile=0.2,
    slice_wipe=0.15,
    reconnect=0.02,
    container_backoff=0.05,
    pleg=0.0,
    removal=0.0,
    first_sync=0.05,
    health_retry=0.05,
)


@pytest.fixture
def timers() -> Timers:
    return FAST


class ScriptedPlugin:
    """Answers as told; records who called. `prepare` and `unprepare` are scripts: (request) -> reply dict or abort."""

    def __init__(self, directory: Path, registry: Path, driver: str, name: str = "") -> None:
        self.driver = driver
        self.service = directory / f"{name or driver}.sock"
        self.registration = registry / f"{name or driver}-reg.sock"
        self.versions: tuple[str, ...] = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
        self.type = "DRAPlugin"
        self.endpoint = str(self.service)
        self.calls: list[tuple[str, list[str]]] = []
        self.statuses: list[tuple[bool, str]] = []
        self.infos = 0
        self.info_error: str | None = None
        self.notify_error: str | None = None
        self.authorities: list[str] = []
        self.cancelled: list[str] = []
        self.health: asyncio.Queue[dict[str, Any] | None] | None = None
        """Reports to send, None ends the stream; no queue: the method is not there."""
        self.streams: list[str] = []
        self.prepare: Callable[[Any, Any], Awaitable[Any]] = self._prepare
        self.unprepare: Callable[[Any, Any], Awaitable[Any]] = self._unprepare
        self._service_server: grpc.aio.Server | None = None
        self._registration_server: grpc.aio.Server | None = None

    async def serve(self) -> None:
        server = grpc.aio.server()
        v1 = _servicer(self, "v1", dra_v1_pb2_grpc.DRAPluginServicer, dra_v1_pb2)
        v1beta1 = _servicer(self, "v1beta1", dra_v1beta1_pb2_grpc.DRAPluginServicer, dra_v1beta1_pb2)
        dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(v1, server)  # type: ignore[no-untyped-call]
        dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server(v1beta1, server)  # type: ignore[no-untyped-call]
        if self.health is not None:
            self._serve_health(server)
        server.add_insecure_port(f"unix:{self.service}")
        await server.start()
        self._service_server = server

    def _serve_health(self, server: grpc.aio.Server) -> None:
        for name, messages, stubs in (
            ("v1", health_v1_pb2, health_v1_pb2_grpc),
            ("v1alpha1", health_v1alpha1_pb2, health_v1alpha1_pb2_grpc),
        ):
            servicer = _health_servicer(self, name, stubs.DRAResourceHealthServicer, messages)
            stubs.add_DRAResourceHealthServicer_to_server(servicer, server)

    async def register(self) -> None:
        server = grpc.aio.server()
        registrar = _Registrar(self)
        pluginregistration_pb2_grpc.add_RegistrationServicer_to_server(registrar, server)  # type: ignore[no-untyped-call]
        server.add_insecure_port(f"unix:{self.registration}")
        await server.start()
        self._registration_server = server

    async def start(self) -> None:
        await self.serve()
        await self.register()

    async def stop_service(self) -> None:
        if self._service_server is not None:
            await self._service_server.stop(None)
            self._service_server = None

    async def stop_registration(self) -> None:
        if self._registration_server is not None:
            await self._registration_server.stop(None)
            self._registration_server = None

    async def stop(self) -> None:
        await self.stop_registration()
        await self.stop_service()

    async def handle(self, messages: Any, version: str, method: str, request: Any, context: Any) -> Any:
        self.calls.append((f"{version}.{method}", [claim.name for claim in request.claims]))
        script = self.prepare if method == "NodePrepareResources" else self.unprepare
        try:
            reply = await script(request, context)
        except asyncio.CancelledError:
            self.cancelled.append(method)
            raise
        response = getattr(messages, f"{method}Response")()
        for uid, entry in reply.items():
            response.claims[uid].error = entry.get("error", "")
            for device in entry.get("devices", ()):
                fields = {
                    key: value for key, value in device.items() if key in messages.Device.DESCRIPTOR.fields_by_name
                }
                response.claims[uid].devices.append(messages.Device(**fields))
        return response

    async def _prepare(self, request: Any, context: Any) -> Any:
        return {
            claim.uid: {
                "devices": [
                    {
                        "request_names": ["r"],
                        "pool_name": "pool",
                        "device_name": "d0",
                        "cdi_device_ids": [f"{self.driver}/class={claim.uid}"],
                    }
                ]
            }
            for claim in request.claims
        }

    async def _unprepare(self, request: Any, context: Any) -> Any:
        return {claim.uid: {} for claim in request.claims}


def _servicer(plugin: ScriptedPlugin, version: str, base: type, messages: Any) -> Any:
    async def prepare(_self: Any, request: Any, context: Any) -> Any:
        return await plugin.handle(messages, version, "NodePrepareResources", request, context)

    async def unprepare(_self: Any, request: Any, context: Any) -> Any:
        return await plugin.handle(messages, version, "NodeUnprepareResources", request, context)

    return type("Servicer", (base,), {"NodePrepareResources": prepare, "NodeUnprepareResources": unprepare})()


def _health_servicer(plugin: ScriptedPlugin, version: str, base: type, messages: Any) -> Any:
    async def watch(_self: Any, request: Any, context: Any) -> Any:
        plugin.streams.append(version)
        assert plugin.health is not None
        while (report := await plugin.health.get()) is not None:
            devices = [
                messages.DeviceHealth(
                    device=messages.DeviceIdentifier(pool_name="pool", device_name=name),
                    health=messages.HealthStatus.Value(status),
                    message=message,
                    health_check_timeout_seconds=timeout,
                )
                for name, (status, message, timeout) in report.items()
            ]
            yield messages.NodeWatchResourcesResponse(devices=devices)

    return type("Servicer", (base,), {"NodeWatchResources": watch})()


class _Registrar(pluginregistration_pb2_grpc.RegistrationServicer):
    def __init__(self, plugin: ScriptedPlugin) -> None:
        self._plugin = plugin

    async def GetInfo(self, request: Any, context: Any) -> Any:  # noqa: N802 - the method's name on the wire
        plugin = self._plugin
        plugin.infos += 1
        if plugin.info_error is not None:
            await context.abort(grpc.StatusCode.UNKNOWN, plugin.info_error)
        return pluginregistration_pb2.PluginInfo(
            type=plugin.type, name=plugin.driver, endpoint=plugin.endpoint, supported_versions=plugin.versions
        )

    async def NotifyRegistrationStatus(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._plugin.statuses.append((request.plugin_registered, request.error))
        if self._plugin.notify_error is not None and request.plugin_registered:
            await context.abort(grpc.StatusCode.UNKNOWN, self._plugin.notify_error)
        return pluginregistration_pb2.RegistrationStatusResponse()


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose sockets fit into 107 bytes, whatever the test is called."""
    with tempfile.TemporaryDirectory(prefix="dk") as path:
        yield Path(path)


class Bench:
    """A root directory, a registry, and any number of runs of the plugin side on them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.registry = root / "plugins_registry"
        self.registry.mkdir(parents=True)
        self.wiped: list[str] = []
        self.scripted: list[ScriptedPlugin] = []

    def plugin(self, driver: str = "gpu.example.com", name: str = "") -> ScriptedPlugin:
        plugin = ScriptedPlugin(self.root, self.registry, driver, name)
        self.scripted.append(plugin)
        return plugin

    @contextlib.asynccontextmanager
    async def kubelet(self, version: str = "1.36", **overrides: Any) -> AsyncIterator[Plugins]:
        async def wipe(driver: str) -> None:
            self.wiped.append(driver)

        timers = msgspec.structs.replace(FAST, **overrides)
        plugins = Plugins(self.root, self.registry, wipe=wipe, timers=timers, rng=random.Random(7), version=version)
        task = asyncio.create_task(plugins.run())
        try:
            yield plugins
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@pytest.fixture
async def bench(short_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(short_path)
    yield bench
    for plugin in bench.scripted:
        await plugin.stop()


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Wait until a condition over the outside world holds."""

    async def wait(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - the outside world sets no event
                await asyncio.sleep(0.005)

    return wait


class World:
    """An API server, a kubelet with a runtime, and pods that are placed by hand."""

    def __init__(
        self,
        server: FakeAPIServer,
        client: kube.Client,
        root: Path,
        timers: Timers = FAST,
        clock: Clock = SYSTEM,
    ) -> None:
        self.server, self.client, self.root, self.timers, self.clock = server, client, root, timers, clock
        self.cdi = root / "cdi"
        self.cdi.mkdir()
        self.runtime = Runtime((self.cdi,), root / "run", clock=clock)
        self.kubelet = FakeKubelet(client, self.runtime, node="n1", root=root / "k", timers=timers, clock=clock, seed=3)
        self.scripted: list[ScriptedPlugin] = []

    async def plugin(self, driver: str = "gpu.example.com", name: str = "", *, health: bool = False) -> ScriptedPlugin:
        self.kubelet.registry.mkdir(parents=True, exist_ok=True)
        self.kubelet.plugins_directory.mkdir(parents=True, exist_ok=True)
        plugin = ScriptedPlugin(self.kubelet.plugins_directory, self.kubelet.registry, driver, name)
        self.scripted.append(plugin)
        if health:
            plugin.health = asyncio.Queue()
        await plugin.start()
        return plugin

    async def start(self) -> None:
        """Start the kubelet, and wait until it is connected to every plugin that runs."""
        await self.kubelet.start()
        for plugin in self.scripted:
            await self.kubelet.plugins.registered(plugin.driver)

    def pod(self, name: str, *claims: str, command: str = "sleep infinity", **spec: Any) -> dict[str, Any]:
        """Create a pod that uses claims by name; nothing happens before `place`."""
        container = {
            "name": "main",
            "image": "busybox",
            "command": command.split(),
            "resources": {"claims": [{"name": claim} for claim in claims]},
        }
        return self.server.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [container],
                    "resourceClaims": [{"name": claim, "resourceClaimName": claim} for claim in claims],
                    **spec,
                },
            }
        )

    def claim(
        self, name: str, *pods: dict[str, Any], drivers: tuple[str, ...] = ("gpu.example.com",)
    ) -> dict[str, Any]:
        """Create a claim that is allocated and reserved for the pods."""
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}]
        claim = self.server.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"devices": {"requests": requests}},
            }
        )
        results = [
            {"request": "r", "driver": driver, "pool": "n1", "device": f"d{i}"} for i, driver in enumerate(drivers)
        ]
        claim["status"] = {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [
                {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in pods
            ],
        }
        return self.server.update(claim, subresource="status")

    async def place(self, *pods: dict[str, Any]) -> None:
        for pod in pods:
            path = kube.PODS.path("v1", "default", pod["metadata"]["name"], "binding")
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": pod["metadata"]["name"]},
                "target": {"kind": "Node", "name": "n1"},
            }
            await self.client.request("POST", path, body=body)

    def write_cdi(self, claim: dict[str, Any], driver: str = "gpu.example.com") -> None:
        uid = claim["metadata"]["uid"]
        spec = cdi.Spec(
            cdi_version="0.5.0",
            kind=f"{driver}/class",
            devices=(
                cdi.Device(name=uid, container_edits=cdi.ContainerEdits(env=(f"CLAIM={claim['metadata']['name']}",))),
            ),
        )
        (self.cdi / f"{uid}.json").write_bytes(cdi.encode(spec))

    def publish(self, name: str, node: str) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        self.server.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": {"driver": "gpu.example.com", "nodeName": node, "pool": pool},
            }
        )

    def stored_pod(self, name: str) -> dict[str, Any] | None:
        return self.server.get("pods", name, "default")

    def phase(self, name: str) -> str | None:
        pod = self.stored_pod(name)
        return None if pod is None else pod["status"].get("phase")

    def events(self, reason: str = "FailedPrepareDynamicResources") -> list[str]:
        return [event["message"] for event in self.server.list("events") if event["reason"] == reason]


@contextlib.asynccontextmanager
async def new_world(root: Path, timers: Timers, clock: Clock) -> AsyncIterator[World]:
    async with FakeAPIServer(clock=clock) as server:
        environment = server.service_account(root / "sa", name="kubelet")
        async with kube.Client(kube.in_cluster(root / "sa", environment)) as client:
            world = World(server, client, root, timers, clock)
            yield world
            await world.kubelet.stop()
            await world.runtime.close()
            for plugin in world.scripted:
                await plugin.stop()


@pytest.fixture
async def world(short_path: Path) -> AsyncIterator[World]:
    async with new_world(short_path, FAST, SYSTEM) as world:
        yield world


@pytest.fixture
async def manual_world(short_path: Path) -> AsyncIterator[tuple[World, ManualClock]]:
    """A world with the recorded timers, whose time stands still until the test moves it."""
    clock = ManualClock()
    async with new_world(short_path, RECORDED, clock) as world:
        clock.idle_when(lambda: world.server.is_idle)
        clock.idle_when(lambda: world.kubelet.is_idle)
        yield world, clock
