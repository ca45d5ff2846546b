"""The kubelet's plugin side over real sockets: registration, connections, calls, checkpoint, slice wipes.

It needs neither an API server nor pods: `prepare` and `unprepare` take what a pod worker would hand over.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from drakit import files
from drakit.clock import SYSTEM, Clock
from drakit.simulator.kubelet import checkpoint, health, wire
from drakit.simulator.kubelet.connection import Connection
from drakit.simulator.kubelet.decisions import decide, pick
from drakit.simulator.kubelet.registry import Registry
from drakit.simulator.kubelet.state import (
    Call,
    CancelWipe,
    Claim,
    ClaimInfo,
    ClaimRef,
    Connect,
    ConnectionChanged,
    Disconnect,
    Event,
    Fail,
    Instance,
    Introduced,
    Notified,
    Notify,
    PrepareAnswered,
    PrepareFinished,
    PreparePod,
    Register,
    RegistrationFailed,
    SaveCheckpoint,
    StartWipe,
    State,
    Tick,
    UnprepareAnswered,
    UnprepareFinished,
    UnpreparePod,
    WipeDue,
    WipeSlices,
)
from drakit.simulator.kubelet.timers import RECORDED, Timers

__all__ = ["PluginError", "Plugins"]

_LOG_LINES = 1000
_RECORDED = 36
_V1_SINCE = 34
Wipe = Callable[[str], Awaitable[None]]
HealthChanged = Callable[[str, frozenset[str]], None]
Answered = TypeVar("Answered", PrepareAnswered, UnprepareAnswered)


class PluginError(Exception):
    """A pod's claims could not be prepared or unprepared; the text is the kubelet's, without its last prefix."""


class Plugins:
    """One run of a kubelet's plugin side, from `run` to its cancellation.

    Args:
        root: the kubelet's root directory; holds the checkpoint.
        registry: where registration sockets appear.
        wipe: deletes the node's ResourceSlices of one driver.
        timers: see Timers.
        clock: for everything but RPC deadlines.
        rng: order among drivers, jitter of backoffs.
        version: of the kubelet, "1.32" to "1.37": before 1.34 it speaks v1beta1 only, before 1.36 it asks for no
            health; everything else is as recorded from 1.36.
        health_changed: told which devices (`pool/device`) of a driver are in another state now.

    Attributes:
        health: what plugins report of their devices.
    """

    def __init__(
        self,
        root: Path,
        registry: Path,
        *,
        wipe: Wipe,
        timers: Timers = RECORDED,
        clock: Clock = SYSTEM,
        rng: random.Random | None = None,
        version: str = "1.36",
        health_changed: HealthChanged = lambda _driver, _devices: None,
    ) -> None:
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        self._checkpoint, self._registry_path = root / checkpoint.FILE_NAME, registry
        self._wipe, self._timers, self._clock = wipe, timers, clock
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._version, self._health_changed = version, health_changed
        self.health: health.Cache = {}
        self._streams: dict[int, asyncio.Task[None]] = {}
        self._state = State(supported=_supported(version), claims=self._load())
        self._changed = asyncio.Event()
        self._connections: dict[int, Connection] = {}
        self._wipes: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._over = False
        self.ticked = asyncio.Event()
        """Set when the registry has been looked at for the first time."""
        self.ticks = 0
        """How often the registry was looked at."""

    @property
    def state(self) -> State:
        """All that is known of plugins and claims."""
        return self._state

    @property
    def is_idle(self) -> bool:
        """Whether no registration, dial or call is under way: for `ManualClock.idle_when`."""
        registering = any(socket.busy for socket in self._state.sockets.values())
        return not registering and all(connection.is_idle for connection in self._connections.values())

    def claims_in_use(self) -> dict[str, int]:
        """dra_resource_claims_in_use: by driver, only claims prepared by this run (recorded section 07)."""
        used: dict[str, int] = {}
        for info in self._state.claims.values():
            for driver in info.devices if info.prepared else ():
                used[driver] = used.get(driver, 0) + 1
        return used

    async def until(self, condition: Callable[[State], bool]) -> State:
        """The first state that fulfils `condition`."""
        while not condition(self._state):
            await self._changed.wait()
        return self._state

    async def registered(self, driver: str) -> None:
        """Wait until the driver is registered and connected."""
        await self.until(lambda state: (instance := pick(state, driver)) is not None and instance.connected)

    async def run(self) -> None:
        """Look for plugins until cancelled; then hang up everywhere."""
        registry = Registry(self._registry_path)
        try:
            async with asyncio.TaskGroup() as self._group:
                try:
                    while True:
                        self._tick(registry)
                        self.ticked.set()
                        await self._clock.sleep(self._timers.reconciler_tick)
                finally:
                    self._over = True
        finally:
            self._group = None
            registry.close()
            connections, self._connections = list(self._connections.values()), {}
            await asyncio.gather(*(connection.close() for connection in connections))

    def _tick(self, registry: Registry) -> None:
        """All sockets at once: one that nobody serves any more holds up only itself (recorded section 07)."""
        self.ticks += 1
        for action in self._feed(Tick(self._clock.monotonic(), registry.sockets())):
            if isinstance(action, Register):
                self._spawn(self._register(action.socket))

    def _spawn(self, awaitable: Awaitable[None]) -> asyncio.Task[None]:
        async def work() -> None:
            await awaitable

        assert self._group is not None
        return self._group.create_task(work())

    # Registration

    async def _register(self, socket: str) -> None:
        """One attempt, from the dial to the answer of Notify."""
        try:
            async with wire.registration(socket, self._timers) as channel:
                info = await channel.get_info()
                introduced = Introduced(
                    self._clock.monotonic(),
                    socket,
                    info.type,
                    info.name,
                    info.endpoint,
                    tuple(info.supported_versions),
                )
                notify = next(action for action in self._feed(introduced) if isinstance(action, Notify))
                taken = await channel.notify(notify.error)
        except wire.RegistrationError as error:
            self.log.append(str(error))
            self._feed(RegistrationFailed(self._clock.monotonic(), socket))
            return
        if notify.error:
            self.log.append(notify.error)
            self._feed(RegistrationFailed(self._clock.monotonic(), socket))
        else:
            self._feed(Notified(self._clock.monotonic(), socket, taken))

    # Claims

    async def prepare(self, pod: str, pod_name: str, claims: tuple[Claim, ...]) -> None:
        """Prepare the claims of a pod that needs a sandbox.

        Raises:
            PluginError: something failed; what was prepared stays, and all of it is called again next time (P20).
        """
        calls = self._calls(PreparePod(pod, pod_name, claims))
        for call in calls:
            self._calls(await self._call("NodePrepareResources", call, PrepareAnswered))
        self._calls(PrepareFinished(tuple(claim.ref for claim in claims)))

    async def unprepare(self, pod: str, claims: tuple[str, ...]) -> None:
        """Give up a pod's claims (cache keys); those without another pod are unprepared.

        Raises:
            PluginError: something failed; call again later.
        """
        calls = self._calls(UnpreparePod(pod, claims))
        refs: dict[str, ClaimRef] = {}
        for call in calls:
            self._calls(await self._call("NodeUnprepareResources", call, UnprepareAnswered))
            refs |= {ref.uid: ref for ref in call.claims}
        if refs:
            self._calls(UnprepareFinished(tuple(refs.values())))

    def _calls(self, event: Event) -> list[Call]:
        """Feed an event; its calls in random order (one Go map iteration, recorded section 11)."""
        actions = self._feed(event)
        for action in actions:
            if isinstance(action, Fail):
                raise PluginError(action.message)
        calls = [action for action in actions if isinstance(action, Call)]
        self._rng.shuffle(calls)
        return calls

    async def _call(self, method: str, call: Call, answer: type[Answered]) -> Answered:
        instance = pick(self._state, call.driver)
        connection = None if instance is None else self._connections.get(instance.id)
        if connection is None:
            raise PluginError(f"DRA driver {call.driver} is not registered")
        try:
            return answer(call.driver, call.claims, entries=await connection.call(method, call.claims))
        except wire.RpcError as error:
            return answer(call.driver, call.claims, error=str(error))

    # Actions

    def _feed(self, event: Event) -> tuple[object, ...]:
        """Decide, and do what can be done at once; the actions are returned for what only the caller can do."""
        if self._over:
            raise asyncio.CancelledError  # what still runs is about to be cancelled: the process would be gone
        self._state, actions = decide(self._state, event, self._timers)
        for action in actions:
            match action:
                case SaveCheckpoint():
                    files.replace(files.REAL, self._checkpoint, checkpoint.encode(self._state.claims))
                case Connect(instance):
                    self._connections[instance.id] = self._connect(instance)
                    self._open_stream(instance)
                case Disconnect(instance):
                    if stream := self._streams.pop(instance.id, None):
                        stream.cancel()
                    self._spawn(self._connections.pop(instance.id).close())
                case StartWipe(driver, due):
                    self._wipes[driver] = self._spawn(self._wipe_later(driver, due))
                case CancelWipe(driver):
                    if task := self._wipes.pop(driver, None):
                        task.cancel()
                case WipeSlices(driver):
                    self._spawn(self._wipe(driver))
                case _:
                    pass
        self._changed.set()
        self._changed = asyncio.Event()
        return actions

    def _connect(self, instance: Instance) -> Connection:
        def changed(connected: bool) -> None:
            if self._over:
                return
            self._feed(ConnectionChanged(self._clock.monotonic(), instance.id, connected))

        return Connection(instance, clock=self._clock, timers=self._timers, rng=self._rng, changed=changed)

    # Health

    def _open_stream(self, instance: Instance) -> None:
        service = health.choose_stream(instance.advertised, self._version)
        if service is not None:
            connection = self._connections[instance.id]
            self._streams[instance.id] = self._spawn(self._follow_health(connection, service))

    async def _follow_health(self, connection: Connection, service: str) -> None:
        """Keep one health stream open; its end clears what is known of the driver (H7, H10)."""
        driver = connection.instance.driver
        while True:
            final = False
            try:
                async for entries in connection.watch_health(service):
                    self._hear(driver, entries)
            except wire.RpcError as error:
                self.log.append(f"Error receiving from WatchResources stream of {driver}: {error}")
                final = error.unimplemented and health.minor(self._version) > _RECORDED
            finally:
                self.health = health.clear(self.health, driver)
            if final:
                return
            await self._clock.sleep(self._timers.health_retry)

    def _hear(self, driver: str, entries: Mapping[str, health.Health]) -> None:
        self.health, changed = health.report(self.health, driver, entries, self._clock.monotonic())
        if changed:
            self._health_changed(driver, changed)

    async def _wipe_later(self, driver: str, due: float) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        self._wipes.pop(driver, None)
        self._feed(WipeDue(self._clock.monotonic(), driver))

    def _load(self) -> dict[str, ClaimInfo]:
        try:
            return checkpoint.decode(files.REAL.read(self._checkpoint))
        except FileNotFoundError:
            return {}


def _supported(version: str) -> tuple[str, ...]:
    """The services that a kubelet of this version can call."""
    return ("v1.DRAPlugin", "v1beta1.DRAPlugin") if health.minor(version) >= _V1_SINCE else ("v1beta1.DRAPlugin",)
