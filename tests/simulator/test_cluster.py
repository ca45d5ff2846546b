"""The cluster as a whole; what its parts do stands beside them, what drivers do in it in tests/scenarios."""

import asyncio
from typing import Any

import pytest

from drakit import kube, simulator
from drakit.simulator.clock import ManualClock
from drakit.simulator.cluster import Cluster
from drakit.simulator.kubelet import RECORDED


def pod(name: str = "p", command: str = "sleep 60") -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": command.split()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def phase(cluster: Cluster) -> str:
    found = cluster.server.get("pods", "p", "default")
    assert found is not None
    return str(found["status"]["phase"])


async def test_the_fixture_is_a_running_cluster(cluster: Cluster) -> None:
    (node,) = cluster.server.list("nodes")
    assert node["metadata"]["name"] == cluster.node.name == "n1"
    assert node["status"]["conditions"][0]["type"] == "Ready"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.37.0"
    await cluster.apply(pod())
    await cluster.pod("p")
    await cluster.delete(kube.PODS, "p")
    await cluster.gone(kube.PODS, "p")


async def test_time_that_only_the_test_moves() -> None:
    clock = ManualClock()
    async with Cluster(clock=clock, timers=RECORDED) as cluster:
        await clock.advance(2)
        await cluster.apply(pod())
        await clock.advance(58)
        assert phase(cluster) == "Running"
        await clock.advance(5)
        assert phase(cluster) == "Succeeded"
        (container,) = cluster.node.runtime.containers()
        assert (container.finished - container.started).total_seconds() == 60  # type: ignore[operator]


async def test_nothing_is_left_behind() -> None:
    async with Cluster(nodes=("n1", "n2")) as cluster:
        directory = cluster.directory
        assert sorted(path.name for path in directory.iterdir()) == ["n1", "n2", "serviceaccounts"]
    assert not directory.exists()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_fault_of_the_simulator_is_told_to_whoever_waits() -> None:
    def broken(_key: Any) -> None:
        raise LookupError("a bug")

    async def wait() -> None:
        async with asyncio.timeout(10), Cluster() as cluster:
            cluster.control_plane.scheduler._snapshot = broken  # type: ignore[assignment,method-assign]
            await cluster.apply(pod())
            await cluster.pod("p")

    with pytest.raises(BaseExceptionGroup) as raised:
        await wait()
    assert raised.group_contains(LookupError, match="a bug")


def test_the_room_offers_its_names() -> None:
    for name in simulator.__all__:
        assert getattr(simulator, name) is not None
    with pytest.raises(AttributeError):
        simulator.nothing  # noqa: B018
