"""One instance of a driver: all parts, their start, their supervision and their end."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import grpc.aio
import structlog

import drakit
from drakit import cdi, files, metadata
from drakit._proto import (
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2_grpc,
    health_v1_pb2_grpc,
    health_v1alpha1_pb2_grpc,
    pluginregistration_pb2_grpc,
)
from drakit.clock import SYSTEM, Clock
from drakit.driver.artifacts import Artifacts
from drakit.driver.claimstatus import StatusWriter
from drakit.driver.errors import StateError
from drakit.driver.executors import FileExecutor, HookThreads
from drakit.driver.health import HealthHub, HealthV1, HealthV1alpha1
from drakit.driver.instances import Instance, Instances, new_id
from drakit.driver.inventory import Inventory
from drakit.driver.journal import NewerFormatError
from drakit.driver.ledger import Broken, Change, Ledger, View
from drakit.driver.listener import Listener
from drakit.driver.liveness import Liveness, LivenessServer
from drakit.driver.lookup import ClaimLookup
from drakit.driver.metrics import Metrics
from drakit.driver.plugin import Device, Driver
from drakit.driver.preparation import Preparer
from drakit.driver.probes import HttpProbes
from drakit.driver.registration import Registration, supported_versions
from drakit.driver.service import NodeService, PluginV1, PluginV1beta1
from drakit.driver.settings import Settings, SettingsError
from drakit.driver.sockets import AddressInUseError
from drakit.driver.supervisor import Supervisor
from drakit.driver.tasks import ClaimTasks
from drakit.driver.upkeep import Reconciler, Restorer, SocketKeeper
from drakit.files import REAL, Filesystem

if TYPE_CHECKING:
    from drakit import kube
    from drakit.driver.publication import DriverResources

__all__ = ["Application", "Publishes", "StartError", "preflight"]

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SOCKET_WAIT_SECONDS = 2.0
REPLY_GRACE_SECONDS = 1.0
EARLY_EVENTS = 100

_log = structlog.stdlib.get_logger("drakit.driver")


class StartError(Exception):
    """The instance cannot start; the text says what to do."""


class Publishes(Protocol):
    """What keeps the inventory in ResourceSlices."""

    def update(self, inventory: "tuple[Device, ...] | DriverResources") -> None:
        """Publish this from now on."""
        ...

    async def run(self, client: "kube.Client") -> None:
        """Publish for ever."""
        ...

    def unready(self) -> str:
        """Why nothing is published, "" when it is."""
        ...


def preflight(settings: Settings, fs: Filesystem = REAL) -> None:
    """Try what has to work, before anything is started.

    Raises:
        SettingsError: a name, path or directory cannot work.
    """
    settings.check()
    for option, path in (
        ("kubelet-plugins-directory-path", settings.plugin_directory),
        ("kubelet-registrar-directory-path", Path(settings.kubelet_registrar_directory_path)),
    ):
        probe = path / f".{new_id()}"
        try:
            files.make_directories(fs, path, 0o750)
            fs.create(probe, b"")
            fs.unlink(probe)
        except OSError as error:
            raise SettingsError(
                f"cannot write in {path}: {error.strerror or error}; mount it writable or change --{option}"
            ) from error
    try:
        cdi.Store(settings.cdi_root, fs, owner=settings.driver_name).prepare()
    except cdi.StoreError as error:
        raise SettingsError(f"{error} (--cdi-root)") from error


class Application:
    """All parts of one instance.

    Args:
        driver: the device driver.
        settings: how it runs.
        credentials: makes the API client's credentials; called once the sockets listen.
        publishing: keeps slices published.
        fs: file operations.
        clock: time.
        boot_id: of this boot of the machine; default: the kernel's.
    """

    def __init__(
        self,
        driver: Driver,
        settings: Settings,
        credentials: Callable[[], "kube.Credentials"],
        publishing: Callable[["Application"], Publishes],
        *,
        fs: Filesystem = REAL,
        clock: Clock = SYSTEM,
        boot_id: str | None = None,
    ) -> None:
        self.driver = driver
        self.settings = settings
        self.clock = clock
        self.version = drakit.__version__
        self.metrics = Metrics(driver.name, self.version)
        self.boot_id = BOOT_ID.read_text(encoding="ascii").strip() if boot_id is None else boot_id
        self._credentials = credentials
        self.executor = FileExecutor()
        self.hooks = HookThreads(settings.max_hooks)
        self.tasks = ClaimTasks()
        self.ledger = Ledger(fs, settings.plugin_directory, self.executor, clock, self._on_broken)
        store = cdi.Store(settings.cdi_root, fs, owner=driver.name)
        writer = metadata.Writer(fs, driver=driver.name, data_directory=settings.plugin_directory, store=store)
        self.artifacts = Artifacts(store, writer)
        self.statuses = StatusWriter(
            driver=driver.name, ledger=self.ledger, boot_id=self.boot_id, clock=clock, record=self.record
        )
        self.preparer = Preparer(
            driver=driver,
            tasks=self.tasks,
            ledger=self.ledger,
            artifacts=self.artifacts,
            hooks=self.hooks,
            clock=clock,
            boot_id=self.boot_id,
            hook_seconds=settings.hook_timeout,
            record=self.record,
            on_prepared=self.statuses.submit,
        )
        self.lookup = ClaimLookup(driver.name, driver.configurations)
        self.service = NodeService(self.lookup, self.preparer, clock, self.metrics, self.record)
        self.health = HealthHub(driver, settings.node_name, clock)
        self.registration = Registration(
            driver.name,
            str(settings.service_socket),
            supported_versions(health=self.health.supported),
            self._on_registration,
        )
        self.instances = Instances(fs, settings.plugin_directory, self._instance(), self.ledger.open_lock)
        own = self.instances.own.id
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        """Why the process cannot go on: one of the two gRPC servers ended by itself."""
        self.service_listener = Listener(settings.service_socket, fs, self._add_services, own, self._on_end)
        self.registration_listener = Listener(
            settings.registration_socket, fs, self._add_registration, own, self._on_end
        )
        self.sockets = SocketKeeper([self.service_listener, self.registration_listener], clock)
        self.supervisor = Supervisor(clock, self.metrics)
        self.restorer = Restorer(
            ledger=self.ledger,
            artifacts=self.artifacts,
            preparer=self.preparer,
            executor=self.executor,
            clock=clock,
            metrics=self.metrics,
            boot_id=self.boot_id,
        )
        self.reconciler = Reconciler(
            ledger=self.ledger,
            lookup=self.lookup,
            preparer=self.preparer,
            clock=clock,
            metrics=self.metrics,
            grace=settings.reconcile_grace,
        )
        self.publishing = publishing(self)
        self.inventory = Inventory(driver, self.hooks, self._on_inventory)
        self.liveness = LivenessServer(
            settings.listen_address,
            settings.healthcheck_port,
            Liveness(settings.registration_socket, settings.service_socket, self.hanging),
        )
        self.probes = HttpProbes(settings.listen_address, settings.metrics_port, self._exposition, self.unready)
        self._stopped = False
        self._recorder: kube.Recorder | None = None
        self._early_events: list[tuple[str, str, str]] = []

    # Start and end

    async def start(self) -> None:
        """Bring the state in order, listen, and start all parts. The service listens before it is registered (R14).

        Raises:
            StartError: the state cannot be used, or another process has the sockets.
        """
        try:
            await self._open_state()
            await self._listen(self.service_listener)
            await self._listen(self.registration_listener)
            if self.settings.healthcheck_port >= 0:
                await self.liveness.start()
            if self.settings.metrics_port >= 0:
                await self.probes.start()
        except (StateError, NewerFormatError, AddressInUseError, OSError) as error:
            await self.stop(0)
            raise StartError(str(error)) from error
        self.supervisor.start("sockets", self.sockets.run)
        self.supervisor.start("restore", self.restorer.run)
        self.supervisor.start("inventory", self.inventory.run)
        self.supervisor.start("api", self._use_api)
        if self.health.supported:
            self.supervisor.start("health", self.health.run)

    async def stop(self, drain_seconds: float | None = None) -> None:
        """Finish claims, then take the sockets away, then end (recorded 37)."""
        if self._stopped:
            return
        self._stopped = True
        self.service.draining = True
        seconds = self.settings.drain_timeout if drain_seconds is None else drain_seconds
        if self.tasks and seconds:
            _log.info("finishing claims", claims=len(self.tasks), drain_s=seconds)
        with contextlib.suppress(TimeoutError):
            await self.clock.timeout(self.tasks.drain(), seconds)
        self.registration_listener.unpublish()
        await self.supervisor.stop()
        await self.service_listener.stop(REPLY_GRACE_SECONDS)
        await self.registration_listener.stop(0)
        await self.liveness.stop()
        await self.probes.stop()
        await self._leave()

    async def abandon(self) -> None:
        """Leave everything as it is, as a kill would: for tests of what the next process makes of it."""
        for task in self.tasks.all():
            task.cancel()
        await self.supervisor.stop()
        await self.service_listener.abandon()
        await self.registration_listener.abandon()
        self.instances.abandon()
        self.preparer.close()
        self.ledger.close()
        self.executor.close()
        self.hooks.close()

    async def _leave(self) -> None:
        with contextlib.suppress(OSError):
            await self.executor.run(self.instances.leave)
        self.preparer.close()
        self.ledger.close()
        self.executor.close()
        self.hooks.close()

    async def _open_state(self) -> None:
        await self.ledger.open()
        await self.executor.run(self.instances.enter)
        for path in await self.executor.run(self.instances.sweep):
            _log.info("removed the socket of an instance that died", path=path)
        await self.ledger.apply(self._sweeping)

    def _sweeping(self, view: View) -> Change[None]:
        def sweep() -> None:
            if count := self.artifacts.sweep(view.records.keys()):
                _log.info("removed files that no claim needs", files=count)

        return Change(None, before=sweep)

    async def _listen(self, listener: Listener) -> None:
        """Listen; a process that is about to end may hold the path a little longer."""
        deadline = self.clock.monotonic() + SOCKET_WAIT_SECONDS
        while True:
            try:
                await listener.start()
            except AddressInUseError:
                if self.clock.monotonic() > deadline:
                    raise
            else:
                return
            await self.clock.sleep(0.25)

    async def _use_api(self) -> None:
        from drakit import kube

        async with kube.Client(self._credentials(), clock=self.clock) as client:
            self.lookup.use(client)
            recorder = self._new_recorder(client)
            # Parts of their own: what fails in one of them must not take the client from prepare.
            self.supervisor.start("events", recorder.run)
            self.supervisor.start("publish", lambda: self.publishing.run(client))
            self.supervisor.start("reconcile", self.reconciler.run)
            self.supervisor.start("claim status", lambda: self.statuses.run(client))
            await asyncio.Event().wait()

    def _new_recorder(self, client: "kube.Client") -> "kube.Recorder":
        """Events go to the Node; its name stands for its UID there, as in the kubelet's own events."""
        from drakit import kube

        node = self.settings.node_name
        regarding = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node}
        recorder = kube.Recorder(client, regarding=regarding, component=self.driver.name, host=node, clock=self.clock)
        self._recorder = recorder
        early, self._early_events = self._early_events, []
        for event in early:
            recorder.record(*event)
        return recorder

    def record(self, kind: str, reason: str, message: str) -> None:
        """Write an Event (kind Normal or Warning) about the node; those of the start wait for the API client."""
        if self._recorder is not None:
            self._recorder.record(kind, reason, message)
        elif len(self._early_events) < EARLY_EVENTS:
            self._early_events.append((kind, reason, message))

    # What the parts tell

    def unready(self) -> list[str]:
        """Why the driver is not ready; empty when it is registered, published, and all parts run."""
        reasons = [f"{part} is down: {reason}" for part, reason in self.supervisor.failing.items()]
        if self.registration.error:
            reasons.append(f"refused by the kubelet: {self.registration.error}")
        elif not self.registration.registered:
            reasons.append("not registered by the kubelet yet")
        if self.sockets.lost:
            reasons.append("a socket is lost")
        if unpublished := self.publishing.unready():
            reasons.append(unpublished)
        if self.service.draining:
            reasons.append("stopping")
        return reasons

    def hanging(self) -> str:
        """Why only a restart helps, "" when all is well."""
        self.metrics.hooks_running.set(self.hooks.running)
        if self.hooks.longest() > self.settings.hook_timeout:
            return f"a call of the device driver has been running for {self.hooks.longest():.0f} s"
        return ""

    def _exposition(self) -> tuple[bytes, str]:
        self.metrics.hooks_running.set(self.hooks.running)
        return self.metrics.exposition(), self.metrics.content_type

    async def _on_inventory(self, inventory: "tuple[Device, ...] | DriverResources") -> None:
        self.publishing.update(inventory)

    def _on_end(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)

    def _on_registration(self, registered: bool, error: str) -> None:
        self.metrics.registered.set(registered)
        if not registered:
            self.metrics.refusals.inc()
            self.record("Warning", "RegistrationRefused", f"the kubelet refused {self.driver.name}: {error}")

    def _on_broken(self, broken: Broken) -> None:
        self.metrics.quarantined.inc()
        _log.error("claim record is broken, its bytes are kept", claim_uid=broken.identity.uid, err=broken.reason)
        text = f"the record of claim {broken.identity} is broken and will be rebuilt; its bytes are in {broken.kept}"
        self._loop.call_soon_threadsafe(self.record, "Warning", "ClaimRecordBroken", text)

    # gRPC

    def _instance(self) -> Instance:
        return Instance(
            id=new_id(),
            started=time.time_ns(),
            registration=str(self.settings.registration_socket),
            service=str(self.settings.service_socket),
            version=self.version,
        )

    def _add_services(self, server: grpc.aio.Server) -> None:
        dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(PluginV1(self.service), server)  # type: ignore[no-untyped-call]
        dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server(PluginV1beta1(self.service), server)  # type: ignore[no-untyped-call]
        health_v1_pb2_grpc.add_DRAResourceHealthServicer_to_server(HealthV1(self.health), server)  # type: ignore[no-untyped-call]
        health_v1alpha1_pb2_grpc.add_DRAResourceHealthServicer_to_server(HealthV1alpha1(self.health), server)  # type: ignore[no-untyped-call]

    def _add_registration(self, server: grpc.aio.Server) -> None:
        pluginregistration_pb2_grpc.add_RegistrationServicer_to_server(self.registration, server)  # type: ignore[no-untyped-call]
