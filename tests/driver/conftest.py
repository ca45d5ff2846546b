"""A node in a directory, an API server, and a kubelet reduced to its calls."""

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from drakit import kube
from drakit._proto import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    pluginregistration_pb2,
    pluginregistration_pb2_grpc,
)
from drakit.clock import SYSTEM, Clock
from drakit.driver import logs
from drakit.driver.application import Application
from drakit.driver.claims import Claim, ClaimRef, Prepared
from drakit.driver.plugin import Device, Driver
from drakit.driver.publishing import Publishing
from drakit.driver.settings import Settings
from drakit.files import REAL, Filesystem
from drakit.simulator.apiserver import FakeAPIServer

NODE = "node-a"
DRIVER = "gpu.example.com"


@dataclass(frozen=True)
class Wanted:
    """A claim as the kubelet knows it."""

    name: str
    uid: str
    namespace: str = "default"


class Kubelet:
    """The kubelet's calls on one pair of sockets, one connection for all (R29)."""

    def __init__(self, service: Path, registration: Path) -> None:
        self._channel = grpc.aio.insecure_channel(
            f"unix:{service}", options=(("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1))
        )
        self._registration = registration
        self.v1 = dra_v1_pb2_grpc.DRAPluginStub(self._channel)  # type: ignore[no-untyped-call]
        self.v1beta1 = dra_v1beta1_pb2_grpc.DRAPluginStub(self._channel)  # type: ignore[no-untyped-call]

    async def prepare(self, *claims: Wanted, deadline: float = 45.0) -> dict[str, Any]:
        request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[_claim(dra_v1_pb2, claim) for claim in claims])
        return dict((await self.v1.NodePrepareResources(request, timeout=deadline)).claims)

    async def unprepare(self, *claims: Wanted, deadline: float = 45.0) -> dict[str, str]:
        request = dra_v1_pb2.NodeUnprepareResourcesRequest(claims=[_claim(dra_v1_pb2, claim) for claim in claims])
        reply = await self.v1.NodeUnprepareResources(request, timeout=deadline)
        return {uid: entry.error for uid, entry in reply.claims.items()}

    async def prepare_v1beta1(self, *claims: Wanted) -> dict[str, Any]:
        request = dra_v1beta1_pb2.NodePrepareResourcesRequest(
            claims=[_claim(dra_v1beta1_pb2, claim) for claim in claims]
        )
        return dict((await self.v1beta1.NodePrepareResources(request)).claims)

    @contextlib.asynccontextmanager
    async def registrar(self) -> AsyncIterator[Any]:
        """A connection to the registration socket, with the authority that kubelet 1.36 sends (R30)."""
        options = (
            ("grpc.default_authority", "%2Fvar%2Flib%2Fkubelet%2Freg.sock"),
            ("grpc.use_local_subchannel_pool", 1),
        )
        async with grpc.aio.insecure_channel(f"unix:{self._registration}", options=options) as channel:
            yield pluginregistration_pb2_grpc.RegistrationStub(channel)  # type: ignore[no-untyped-call]

    async def register(self, error: str = "") -> Any:
        """GetInfo, then the verdict."""
        async with self.registrar() as stub:
            info = await stub.GetInfo(pluginregistration_pb2.InfoRequest(), timeout=1)
            status = pluginregistration_pb2.RegistrationStatus(plugin_registered=not error, error=error)
            await stub.NotifyRegistrationStatus(status, timeout=5)
        return info

    async def close(self) -> None:
        await self._channel.close()


def _claim(messages: Any, claim: Wanted) -> Any:
    return messages.Claim(namespace=claim.namespace, uid=claim.uid, name=claim.name)


class ScriptedDriver(Driver):
    """Counts its hooks and does what the test scripts."""

    def __init__(self, name: str = DRIVER) -> None:
        self.name = name
        self.prepared: list[str] = []
        self.unprepared: list[str] = []
        self.refs: list[ClaimRef] = []
        self.on_prepare: Callable[[Claim], Any] = lambda claim: [Prepared(device) for device in claim.devices]
        self.on_unprepare: Callable[[ClaimRef], None] = lambda _: None

    def devices(self) -> Sequence[Device]:
        return [Device(name=f"gpu-{index}") for index in range(8)]

    def prepare(self, claim: Claim) -> Any:
        self.prepared.append(claim.uid)
        return self.on_prepare(claim)

    def unprepare(self, claim: ClaimRef) -> None:
        self.unprepared.append(claim.uid)
        self.refs.append(claim)
        self.on_unprepare(claim)


@dataclass
class Node:
    """One node: directories, API server, and driver instances started on it."""

    root: Path
    server: FakeAPIServer
    applications: list[Application] = field(default_factory=list)
    kubelets: list[Kubelet] = field(default_factory=list)

    def settings(self, **changes: Any) -> Settings:
        defaults: dict[str, Any] = {
            "node_name": NODE,
            "driver_name": DRIVER,
            "cdi_root": str(self.root / "cdi"),
            "kubelet_registrar_directory_path": str(self.root / "reg"),
            "kubelet_plugins_directory_path": str(self.root / "plugins"),
            "drain_timeout": 5.0,
        }
        return Settings(**{**defaults, **changes})

    def application(
        self,
        driver: Driver | None = None,
        *,
        fs: Filesystem = REAL,
        clock: Clock = SYSTEM,
        boot_id: str = "boot-1",
        **settings: Any,
    ) -> Application:
        """An application that is not started."""
        application = Application(
            driver or ScriptedDriver(),
            self.settings(**settings),
            lambda: kube.from_kubeconfig(self.server.kubeconfig()),
            Publishing,
            fs=fs,
            clock=clock,
            boot_id=boot_id,
        )
        self.applications.append(application)
        return application

    async def start(self, driver: Driver | None = None, **options: Any) -> tuple[Application, Kubelet]:
        """A running application and a kubelet for it."""
        application = self.application(driver, **options)
        await application.start()
        return application, self.kubelet(application)

    def kubelet(self, application: Application) -> Kubelet:
        kubelet = Kubelet(application.settings.service_socket, application.settings.registration_socket)
        self.kubelets.append(kubelet)
        return kubelet

    async def stop(self, application: Application) -> None:
        self.applications.remove(application)
        await application.stop(1)

    async def crash(self, application: Application) -> None:
        """End an application as SIGKILL does: no rollback, no record changed, locks gone, sockets left."""
        self.applications.remove(application)
        await application.abandon()

    def claim(
        self,
        name: str,
        *devices: str | dict[str, Any],
        namespace: str = "default",
        driver: str = DRIVER,
        config: Sequence[dict[str, Any]] = (),
        annotations: dict[str, str] | None = None,
        requests: Sequence[dict[str, Any]] | None = None,
    ) -> Wanted:
        """Create an allocated claim with one result per device: a name, or fields of the result."""
        results = [
            {"request": "r", "driver": driver, "pool": NODE, **({"device": d} if isinstance(d, str) else d)}
            for d in devices
        ]
        names = dict.fromkeys(result["request"].split("/")[0] for result in results) or {"r": None}
        asked = requests or [{"name": n, "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}} for n in names]
        stored = self.server.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": namespace, "annotations": annotations or {}},
                "spec": {"devices": {"requests": list(asked)}},
            }
        )
        if devices:
            allocation = {"devices": {"results": results, **({"config": list(config)} if config else {})}}
            self.server.update({**stored, "status": {"allocation": allocation}}, subresource="status")
        return Wanted(name, stored["metadata"]["uid"], namespace)

    def files(self) -> list[str]:
        """Everything below the node's directory that claims may leave behind."""
        found = [path for base in ("cdi", "plugins") for path in (self.root / base).rglob("*")]
        kept = {"state.lock", "publisher.json"}
        return sorted(
            str(path.relative_to(self.root))
            for path in found
            if path.name not in kept
            and not path.name.startswith(".publisher")
            and "instances" not in path.parts
            and not path.is_dir()
            and not path.is_socket()
        )

    async def close(self) -> None:
        for kubelet in self.kubelets:
            await kubelet.close()
        for application in self.applications:
            await application.stop(0)


@pytest.fixture(name="root")
def _root() -> Iterator[Path]:
    """A directory with a path short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="dk", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(name="server")
async def _server() -> AsyncIterator[FakeAPIServer]:
    async with FakeAPIServer(tls=False, authenticate=False) as server:
        yield server


@pytest.fixture(name="node")
async def _node(root: Path, server: FakeAPIServer) -> AsyncIterator[Node]:
    node = Node(root, server)
    yield node
    await node.close()


@pytest.fixture(name="driver")
def _driver() -> ScriptedDriver:
    return ScriptedDriver()


@pytest.fixture(name="wanted")
def _wanted() -> Callable[..., Wanted]:
    """Claims that exist only in the kubelet's words."""
    return lambda name="ghost", uid=None, namespace="default": Wanted(name, uid or str(uuid.uuid4()), namespace)


@pytest.fixture(name="eventually")
def _eventually() -> Callable[..., Awaitable[None]]:
    async def wait(condition: Callable[[], object], seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - conditions of files and threads have no event
                await asyncio.sleep(0.002)

    return wait


class CountingFilesystem(Filesystem):
    """The real one, with its calls counted by method."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in _OPERATIONS:
            return found

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return found(*args, **kwargs)

        return counted

    def __getitem__(self, name: str) -> int:
        return self.calls[name]

    def clear(self) -> None:
        self.calls.clear()


_OPERATIONS = frozenset(name for name in vars(Filesystem) if not name.startswith("_"))


@pytest.fixture(name="counting")
def _counting() -> CountingFilesystem:
    return CountingFilesystem()


@pytest.fixture(scope="session", autouse=True)
def _logging() -> Iterator[None]:
    """Records as the process makes them; structlog's own default would render coloured tracebacks for half a second."""
    kept = logging.getLogger().handlers[:]
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        logs.configure("info", "json", nowhere)
        yield
    logging.getLogger().handlers[:] = kept
