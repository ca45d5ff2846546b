"""The fake API server over HTTPS: start, writes, reads, lists, and how soon a watch sees a change.

python bench/apiserver.py [--objects 500]
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from drakit import kube
from drakit.simulator.apiserver import FakeAPIServer


def a_slice(number: int, generation: int = 1) -> dict[str, Any]:
    """A slice of eight devices."""
    devices = [
        {"name": f"gpu-{index}", "attributes": {"index": {"int": index}}, "capacity": {"memory": {"value": "80Gi"}}}
        for index in range(8)
    ]
    pool = {"name": f"node-{number}", "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": f"node-{number}", "pool": pool, "devices": devices}
    metadata = {"name": f"slice-{number}"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def show(what: str, seconds: list[float]) -> None:
    print(f"{what:<40} {statistics.median(seconds) * 1e3:8.2f} ms")


def imports(runs: int) -> list[float]:
    code = "import time; t = time.process_time(); import drakit.simulator.apiserver; print(time.process_time() - t)"
    command = [sys.executable, "-c", code]
    return [float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(runs)]


async def timed(call: Callable[[int], Awaitable[object]], count: int) -> list[float]:
    took = []
    for number in range(count):
        began = time.perf_counter()
        await call(number)
        took.append(time.perf_counter() - began)
    return took


async def seen(server: FakeAPIServer, client: kube.Client, count: int) -> list[float]:
    """From the call that changes an object to the event in another task."""
    arrived: asyncio.Queue[float] = asyncio.Queue()

    async def follow() -> None:
        async for _ in client.watch(kube.RESOURCE_SLICES, resource_version=str(server.storage.revision)):
            arrived.put_nowait(time.perf_counter())

    following = asyncio.create_task(follow())
    while not server.watching():  # noqa: ASYNC110  (opened by another task)
        await asyncio.sleep(0.01)
    took = []
    for number in range(count):
        began = time.perf_counter()
        server.update(a_slice(number, generation=3))
        took.append(await arrived.get() - began)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return took


async def main(count: int) -> None:
    began = time.perf_counter()
    async with FakeAPIServer() as server:
        show("start", [time.perf_counter() - began])
        async with kube.Client(kube.from_kubeconfig(server.kubeconfig())) as client:
            slices = kube.RESOURCE_SLICES
            show("create a slice of 8 devices", await timed(lambda n: client.create(slices, a_slice(n)), count))
            show("update it", await timed(lambda n: client.update(slices, a_slice(n, 2)), count))
            show("get it", await timed(lambda n: client.get(slices, f"slice-{n}"), count))
            show(f"list all {count}", await timed(lambda _: client.list(slices), 5))
            show("from a write to its watch event", await seen(server, client, min(count, 200)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=500)
    show("import (processor time)", imports(5))
    asyncio.run(main(parser.parse_args().objects))
