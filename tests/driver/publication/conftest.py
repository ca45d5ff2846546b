"""A laboratory: a fake API server over real HTTP, a manual clock, and publishers on both."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from drakit import kube
from drakit.api import resource
from drakit.driver.publication import DriverResources, Pool, Publisher, naming
from drakit.simulator.apiserver import FakeAPIServer
from drakit.simulator.clock import ManualClock

DRIVER = "gpu.example.com"
NODE = "node-1"
ALL_GATES = frozenset(
    {
        "DRAConsumableCapacity", "DRADeviceBindingConditions", "DRADeviceCompatibilityGroups", "DRADeviceTaints",
        "DRAListTypeAttributes", "DRANodeAllocatableResources", "DRAOptionalNodeOperations", "DRAPartitionableDevices",
        "DRAPartitionableDevicesType", "DRAResourceClaimDeviceStatus", "DRAFractionalCapacityRange",
    }
)  # fmt: skip


class Running:
    """A publisher at work."""

    def __init__(self, lab: "Lab", publisher: Publisher, client: kube.Client) -> None:
        self.lab, self.publisher, self.client = lab, publisher, client
        self.events: list[tuple[str, str, str]] = []
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.publisher.run())

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
            self.task = None

    def is_idle(self) -> bool:
        """No request in flight, and everything that a watch has to tell is told."""
        if self.client.in_flight:
            return False
        observation = self.publisher._observation
        if self.task is None or observation is None or not self.lab.server.watching("resourceslices"):
            return True
        reflector = observation._reflector
        return not reflector._current or int(reflector.version or 0) >= self.lab.last_matching(self.publisher)


class Lab:
    """One API server, one clock, any number of publishers."""

    def __init__(self, server: FakeAPIServer, clock: ManualClock, stack: AsyncExitStack) -> None:
        self.server, self.clock, self.stack = server, clock, stack
        self.running: list[Running] = []
        self.node = server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})

    def last_matching(self, publisher: Publisher) -> int:
        """Revision of the last change that the publisher's watch has to tell."""
        kind = self.server.registry.by_plural("resourceslices")
        last = 0
        for change in self.server.storage.history(kind)._changes:
            spec = change.record.object["spec"]
            if (spec["driver"], spec.get("nodeName") or "") == (publisher._driver, publisher._node or ""):
                last = change.revision
        return last

    async def publisher(self, resources: DriverResources | None = None, **arguments: Any) -> Running:
        """Start a publisher of the node (or as the arguments say)."""
        client = await self.client()
        events: list[tuple[str, str, str]] = []
        options = {"driver": DRIVER, "node": NODE, **arguments}
        publisher = Publisher(
            client,
            resources=resources,
            clock=self.clock,
            jitter=lambda: 0.5,
            on_event=lambda *event: events.append(event),
            **options,
        )
        running = Running(self, publisher, client)
        running.events = events
        self.running.append(running)
        self.clock.idle_when(running.is_idle)
        running.start()
        self.stack.push_async_callback(running.stop)
        return running

    async def client(self) -> kube.Client:
        credentials = kube.from_kubeconfig(self.server.kubeconfig(certificate=False))
        client = kube.Client(credentials, clock=self.clock, jitter=lambda: 0.5, attempts=2)
        return await self.stack.enter_async_context(client)

    async def settle(self, seconds: float = 0.0) -> None:
        """Let the world come to rest, after `seconds`."""
        await self.clock.advance(seconds)
        await self.clock.settle()

    async def until(self, condition: Callable[[], bool], *, within: float = 120.0, step: float = 0.5) -> None:
        """Advance the clock until the condition holds."""
        waited = 0.0
        await self.settle()
        while not condition():
            assert waited < within, "the condition does not become true"
            await self.settle(step)
            waited += step

    async def ready(self, running: Running) -> None:
        await self.until(lambda: running.publisher.ready)

    def slices(self) -> list[dict[str, Any]]:
        return self.server.list("resourceslices")

    def writes(self) -> dict[str, int]:
        """Writes of slices since the last `forget`, by verb."""
        verbs = ("create", "update", "patch", "delete", "deletecollection")
        calls = [call for call in self.server.requests.calls if call.resource == "resourceslices" and not call.dry_run]
        counts = {verb: sum(call.verb == verb for call in calls) for verb in verbs}
        return {verb: count for verb, count in counts.items() if count}

    def forget(self) -> None:
        self.server.requests.clear()

    def store(
        self,
        index: int,
        devices: Iterable[str | dict[str, Any]] = (),
        *,
        count: int = 1,
        generation: int = 1,
        pool: str = NODE,
        name: str | None = None,
        **spec: Any,
    ) -> dict[str, Any]:
        """A slice that an earlier controller left behind; owner and node as ours unless `spec` says otherwise."""
        metadata = {
            "name": name or naming.slice_name(index, 5, DRIVER, NODE, pool),
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": NODE,
                    "uid": self.node["metadata"]["uid"],
                    "controller": True,
                }
            ],
        }
        where: dict[str, Any] = {"nodeName": NODE}
        if spec.keys() & {"allNodes", "nodeSelector", "perDeviceNodeSelection"}:
            where = {}
            metadata.pop("ownerReferences")
            metadata["name"] = name or naming.slice_name(index, 5, DRIVER, "", pool)
        listed = [{"name": device} if isinstance(device, str) else device for device in devices]
        body = {
            "driver": DRIVER,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            **where,
            **({"devices": listed} if listed else {}),
            **spec,
        }
        head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
        return self.server.create({**head, "metadata": metadata, "spec": body})


def pool_of(*slices: Iterable[str | resource.Device], **fields: Any) -> Pool:
    """A pool with the driver's own cut, devices by name."""
    from drakit.driver.publication import PoolSlice

    parts = tuple(
        PoolSlice(devices=tuple(resource.Device(name=d) if isinstance(d, str) else d for d in devices))
        for devices in slices
    )
    return Pool(slices=parts, **fields)


@pytest.fixture(name="pool_of")
def _pool_of() -> Callable[..., Pool]:
    return pool_of


@pytest.fixture(name="resources_of")
def _resources_of() -> Callable[..., DriverResources]:
    """The node's pool with these slices."""

    def build(*slices: Iterable[str | resource.Device], **fields: Any) -> DriverResources:
        return DriverResources(pools={NODE: pool_of(*slices, **fields)})

    return build


@asynccontextmanager
async def laboratory(
    version: str = "1.37", gates: Collection[str] | None = ALL_GATES, **arguments: Any
) -> AsyncIterator[Lab]:
    clock = ManualClock()
    async with (
        FakeAPIServer(version, gates=gates, tls=False, clock=clock, **arguments) as server,
        AsyncExitStack() as stack,
    ):
        yield Lab(server, clock, stack)


@pytest.fixture(name="make_lab_context")
def _make_lab_context() -> Callable[..., Any]:
    return laboratory


@pytest.fixture(name="make_lab")
async def _make_lab() -> AsyncIterator[Callable[..., Any]]:
    async with AsyncExitStack() as stack:

        async def make(*arguments: Any, **options: Any) -> Lab:
            return await stack.enter_async_context(laboratory(*arguments, **options))

        yield make


@pytest.fixture(name="lab")
async def _lab(make_lab: Callable[..., Any]) -> Lab:
    made: Lab = await make_lab()
    return made
