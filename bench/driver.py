"""The node service as the kubelet sees it: start, prepare, unprepare, batches, memory.

API server (HTTPS, in-cluster style credentials), driver (`drakit run`) and caller are three processes. Prints medians;
nothing is asserted. `--claims N` sets the sample size.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from drakit import kube
from drakit._proto import dra_v1_pb2, dra_v1_pb2_grpc
from drakit.driver import names

NODE, DRIVER, BATCH = "node-a", "gpu.example.com", 64
SETTLE_SECONDS = 2.0


async def serve(root: Path) -> None:
    """The API server's process: files for the others, then wait."""
    from drakit.simulator.apiserver import FakeAPIServer

    async with FakeAPIServer() as server:
        server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        environment = server.service_account(root / "sa")
        (root / "environment.tmp").write_text(json.dumps(environment))
        (root / "environment.tmp").rename(root / "environment.json")
        await asyncio.Event().wait()


@asynccontextmanager
async def process(*words: str, env: dict[str, str] | None = None) -> Any:
    running = await asyncio.create_subprocess_exec(sys.executable, *words, env=env)
    try:
        yield running
    finally:
        if running.returncode is None:
            running.terminate()
        await running.wait()


def driver_words(root: Path) -> list[str]:
    return [
        "-m",
        "drakit.cli",
        "run",
        f"--service-account-directory={root / 'sa'}",
        f"--cdi-root={root / 'cdi'}",
        f"--kubelet-registrar-directory-path={root / 'reg'}",
        f"--kubelet-plugins-directory-path={root / 'plugins'}",
        "--log-format=json",
        "--log-level=warning",
    ]


async def until(condition: Any) -> None:
    while not condition():  # noqa: ASYNC110 - another process makes it true
        await asyncio.sleep(0.001)


async def start_times(root: Path, environment: dict[str, str], client: kube.Client) -> tuple[float, float]:
    """Milliseconds from exec to listening sockets and to published slices."""
    for item in (await client.list(kube.RESOURCE_SLICES))["items"]:
        await client.delete(kube.RESOURCE_SLICES, item["metadata"]["name"])
    started = time.perf_counter()
    async with process(*driver_words(root), env=environment):
        await until(names.registration_socket(root / "reg", DRIVER).exists)
        listening = time.perf_counter() - started
        while not (await client.list(kube.RESOURCE_SLICES))["items"]:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.002)
        published = time.perf_counter() - started
    return listening * 1000, published * 1000


async def allocated(client: kube.Client, name: str, device: str) -> Any:
    """A claim as the scheduler leaves it."""
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": requests}},
    }
    stored = await client.create(kube.RESOURCE_CLAIMS, claim)
    result = {"request": "r", "driver": DRIVER, "pool": NODE, "device": device}
    stored["status"] = {"allocation": {"devices": {"results": [result]}}}
    await client.update(kube.RESOURCE_CLAIMS, stored, subresource="status")
    return dra_v1_pb2.Claim(namespace="default", name=name, uid=stored["metadata"]["uid"])


def memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


async def call(stub: Any, method: str, claims: Sequence[Any]) -> float:
    """Milliseconds of one call; fails loudly when a claim did."""
    request = getattr(dra_v1_pb2, f"{method}Request")(claims=claims)
    started = time.perf_counter()
    reply = await getattr(stub, method)(request)
    taken = time.perf_counter() - started
    errors = [entry.error for entry in reply.claims.values() if entry.error]
    if errors or len(reply.claims) != len(claims):
        raise SystemExit(f"{method}: {errors}")
    return taken * 1000


def report(name: str, values: Sequence[float], unit: str, target: str) -> None:
    ordered = sorted(values)
    p90 = ordered[int(len(ordered) * 0.9)] if len(ordered) > 1 else ordered[0]
    print(f"{name:42} median {statistics.median(ordered):8.2f} {unit}  p90 {p90:8.2f}  (target {target})", flush=True)


async def measure(claims: int) -> None:
    root = Path(tempfile.mkdtemp(prefix="dk", dir="/tmp"))
    async with process(__file__, "--serve", str(root)):
        await until((root / "environment.json").exists)
        extra = json.loads((root / "environment.json").read_text())
        environment = {**os.environ, **extra, "NODE_NAME": NODE}
        async with kube.Client(kube.in_cluster(root / "sa", extra)) as client:
            times = [await start_times(root, environment, client) for _ in range(5)]
            report("sockets listening after exec", [one for one, _ in times], "ms", "400")
            report("slices published after exec", [one for _, one in times], "ms", "600")
            async with process(*driver_words(root), env=environment) as driver:
                await until(names.registration_socket(root / "reg", DRIVER).exists)
                await measure_calls(root, client, driver.pid, claims)


async def measure_calls(root: Path, client: kube.Client, pid: int, claims: int) -> None:
    socket = names.service_socket(root / "plugins" / DRIVER)
    channel = grpc.aio.insecure_channel(f"unix:{socket}", options=(("grpc.default_authority", "localhost"),))
    stub = dra_v1_pb2_grpc.DRAPluginStub(channel)  # type: ignore[no-untyped-call]
    await asyncio.sleep(SETTLE_SECONDS)
    report("RSS idle", [memory(pid)], "MiB", "56")
    wanted = [await allocated(client, f"c{index}", f"gpu-{index}") for index in range(max(claims, BATCH))]
    idle = memory(pid)
    prepare, unprepare = [], []
    for claim in wanted[:claims]:
        prepare.append(await call(stub, "NodePrepareResources", [claim]))
        unprepare.append(await call(stub, "NodeUnprepareResources", [claim]))
    report("prepare, one claim, one device", prepare, "ms", "4, p90 8")
    report("unprepare", unprepare, "ms", "2")
    for index in range(1000 - claims):
        claim = wanted[index % len(wanted)]
        await call(stub, "NodePrepareResources", [claim])
        await call(stub, "NodeUnprepareResources", [claim])
    report("RSS growth by 1,000 claims", [memory(pid) - idle], "MiB", "4")
    batches, back = [], []
    for _ in range(7):
        batches.append(await call(stub, "NodePrepareResources", wanted[:BATCH]))
        back.append(await call(stub, "NodeUnprepareResources", wanted[:BATCH]))
    report(f"prepare {BATCH} claims in one call", batches, "ms", "120")
    report(f"unprepare {BATCH} claims in one call", back, "ms", "-")
    await channel.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", type=int, default=200)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.serve) if arguments.serve else measure(arguments.claims))


if __name__ == "__main__":
    main()
