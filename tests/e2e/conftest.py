"""A cluster with the real driver beside it, in a process of its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from drakit import kube
from drakit.simulator.apiserver import Call
from drakit.simulator.cluster import QUICK, Cluster
from drakit.simulator.process import DriverProcess

DRIVER = "gpu.example.com"
CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  selectors:
  - cel: {expression: 'device.driver == "gpu.example.com"'}
"""


class Site:
    """The cluster, its driver, and short ways to say what a test wants."""

    def __init__(self, cluster: Cluster, driver: DriverProcess) -> None:
        self.cluster, self.driver, self.node = cluster, driver, cluster.node

    async def claim(self, name: str, count: int = 1) -> None:
        exactly = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": count}
        await self.cluster.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}},
            }
        )

    async def pod(self, name: str, *claims: str, command: str = "sleep infinity") -> dict[str, Any]:
        container = {
            "name": "main",
            "image": "busybox",
            "command": command.split(),
            "resources": {"claims": [{"name": claim} for claim in claims]},
        }
        (pod,) = await self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [container],
                    "resourceClaims": [{"name": claim, "resourceClaimName": claim} for claim in claims],
                },
            }
        )
        return pod

    async def delete_pod(self, name: str) -> None:
        await self.cluster.delete(kube.PODS, name)
        await self.cluster.gone(kube.PODS, name)

    async def registered(self) -> None:
        await self.node.kubelet.plugins.registered(DRIVER)

    async def published(self) -> None:
        await self.cluster.until(kube.RESOURCE_SLICES, lambda slices: slices)

    def env(self, pod: dict[str, Any]) -> dict[str, str]:
        (container,) = self.node.containers(pod["metadata"]["uid"])
        return {name: value for name, value in container.env.items() if name.startswith("GPU_")}

    def files_of(self, uid: str) -> list[str]:
        """Paths on the node that carry a claim's UID."""
        return sorted(str(path) for path in self.node.directory.rglob("*") if uid in path.name)

    async def forgotten(self, uid: str) -> None:
        """Wait until nothing of a claim is left on the node."""
        while self.files_of(uid):  # noqa: ASYNC110 - files set no event
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def running_site(authorizer: Callable[[Call], bool] | None = None, **timers: float) -> AsyncIterator[Site]:
    chosen = msgspec.structs.replace(QUICK, **timers)
    async with asyncio.timeout(50), Cluster(seed=5, timers=chosen, authorizer=authorizer) as cluster:
        driver = await cluster.start_driver(cluster.node)
        site = Site(cluster, driver)
        await site.registered()
        await site.published()
        await cluster.apply(CLASS)
        yield site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running_site() as site:
        yield site


@pytest.fixture
def make_site() -> Callable[..., contextlib.AbstractAsyncContextManager[Site]]:
    return running_site


@pytest.fixture
async def impatient_site() -> AsyncIterator[Site]:
    """One whose kubelet deletes slices soon after a driver is lost."""
    async with running_site(slice_wipe=0.3) as site:
        yield site


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Wait until a condition over the outside world holds."""

    async def wait(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - the outside world sets no event
                await asyncio.sleep(0.01)

    return wait
