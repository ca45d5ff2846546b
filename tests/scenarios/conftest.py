"""Clusters with drivers, and short ways to say what a scenario wants."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

from drakit import kube
from drakit.simulator.cluster import Cluster, SimulatedNode

DRIVER = "gpu.example.com"


class Scene:
    """A cluster in which a scenario plays."""

    def __init__(self, cluster: Cluster, version: str) -> None:
        self.cluster, self.version = cluster, version

    async def prepare(self, nodes: Iterable[SimulatedNode]) -> None:
        """Drivers on these nodes, all slices published, and their class."""
        chosen = list(nodes)
        for node in chosen:
            await self.cluster.start_driver(node)
        for node in chosen:
            await node.kubelet.plugins.registered(DRIVER)
        await self.cluster.until(kube.RESOURCE_SLICES, lambda slices: len(slices) == len(chosen))
        await self.cluster.apply(self.device_class(DRIVER, 'device.driver == "gpu.example.com"'))

    def device_class(self, name: str, expression: str) -> dict[str, Any]:
        return {
            "apiVersion": f"resource.k8s.io/{self.version}",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }

    def template(self, name: str, *requests: dict[str, Any]) -> dict[str, Any]:
        """A template; requests are given flat, as v1beta1 has them."""
        shaped = list(requests)
        if self.version != "v1beta1":
            shaped = [
                {"name": request["name"], "exactly": {key: value for key, value in request.items() if key != "name"}}
                if "firstAvailable" not in request
                else request
                for request in requests
            ]
        return {
            "apiVersion": f"resource.k8s.io/{self.version}",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": shaped}}},
        }

    def pod(self, name: str, template: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
        """A pod with one claim, `gpus`, from a template."""
        plain = {"name": "main", "image": "busybox", "command": ["sleep", "infinity"]}
        uses = {"resources": {"claims": [{"name": "gpus"}]}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "restartPolicy": "Never",
                "containers": [plain | container for container in containers] or [plain | uses],
                "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": template}],
                **spec,
            },
        }

    def devices(self, pod: dict[str, Any], container: str = "main") -> list[str]:
        """Names of the GPUs that a container's environment tells of."""
        node = self.cluster.nodes[pod["spec"]["nodeName"]]
        (found,) = [entry for entry in node.containers(pod["metadata"]["uid"]) if entry.name == container]
        return sorted(
            value for name, value in found.env.items() if name.startswith("GPU_DEVICE_") and name.count("_") == 2
        )

    async def nothing_left(self) -> None:
        """Delete all pods; nothing of any claim may be left anywhere."""
        for pod in self.cluster.server.list("pods"):
            await self.cluster.delete(kube.PODS, pod["metadata"]["name"])
        await self.cluster.until(kube.PODS, lambda pods: not pods)
        await self.cluster.until(kube.RESOURCE_CLAIMS, lambda claims: not claims)
        for node in self.cluster.nodes.values():
            assert list(node.cdi.iterdir()) == []
            assert node.kubelet.plugins.state.claims == {}
            assert node.runtime.containers() == ()


@pytest.fixture
def scene() -> Callable[..., contextlib.AbstractAsyncContextManager[Scene]]:
    @contextlib.asynccontextmanager
    async def play(
        *, nodes: tuple[str, ...] = ("n1",), kubernetes: str = "1.37", version: str = "v1"
    ) -> AsyncIterator[Scene]:
        async with asyncio.timeout(50), Cluster(version=kubernetes, nodes=nodes, seed=11) as cluster:
            scene = Scene(cluster, version)
            await scene.prepare(cluster.nodes.values())
            yield scene

    return play
