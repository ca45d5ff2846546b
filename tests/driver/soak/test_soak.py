"""2,000 claims come and go through real processes, over restarts of kubelet and driver and an upgrade."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from drakit.simulator.apiserver import FakeAPIServer

PAIRS = 2000
CALLERS = 8
WARM_UP_PAIRS = 200
MEMORY_KIB = 4096  # issue 6: after 1,000 claims at most 4 MiB more


@dataclass(frozen=True)
class Footprint:
    """What a process holds."""

    memory_kib: int
    descriptors: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> "Footprint":
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
        )
        return cls(
            int(status["VmRSS"].split()[0]), len(list(Path(f"/proc/{pid}/fd").iterdir())), int(status["Threads"])
        )


class Fleet:
    """Driver processes on one node; the newest one is called."""

    def __init__(self, node: Any, server: Any, eventually: Any) -> None:
        self.node, self.server, self.eventually = node, server, eventually
        self.processes: list[asyncio.subprocess.Process] = []
        self.kubelet: Any = None
        self.pod_uid = ""
        self.environment = {**os.environ, **server.service_account(node.root / "sa"), "NODE_NAME": "node-a"}

    async def launch(self, pod_uid: str = "") -> asyncio.subprocess.Process:
        settings = self.node.settings(pod_uid=pod_uid)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "drakit.cli",
            "run",
            f"--service-account-directory={self.node.root / 'sa'}",
            f"--cdi-root={settings.cdi_root}",
            f"--kubelet-registrar-directory-path={settings.kubelet_registrar_directory_path}",
            f"--kubelet-plugins-directory-path={settings.kubelet_plugins_directory_path}",
            f"--pod-uid={pod_uid}",
            "--log-level=error",
            env=self.environment,
        )
        self.processes.append(process)
        self.pod_uid = pod_uid
        await self.eventually(lambda: _answers(settings.service_socket), 30)
        await self.connect()
        return process

    async def connect(self) -> None:
        """The kubelet (re)starts: a new connection; calls on the old one are cancelled."""
        old, self.kubelet = self.kubelet, self.node.kubelet(self.node.application(pod_uid=self.pod_uid))
        self.node.applications.pop()
        if old is not None:
            await old.close()

    async def call(self, verb: str, claim: Any) -> Any:
        """As the kubelet does it: again and again until there is an answer without an error."""
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError, grpc.aio.UsageError):
                answer = (await getattr(self.kubelet, verb)(claim, deadline=10))[claim.uid]
                if not (answer if isinstance(answer, str) else answer.error):
                    return answer
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        for process in self.processes:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _answers(path: Path) -> bool:
    import socket

    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.fixture(name="fleet")
async def _fleet(node: Any, eventually: Any) -> AsyncIterator[Fleet]:
    async with FakeAPIServer() as server:
        server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}})
        node.server = server
        fleet = Fleet(node, server, eventually)
        yield fleet
        await fleet.close()


class Load:
    """Pairs of calls from several callers, each with a device of its own."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.done = 0
        self.prepared: dict[str, Any] = {}

    async def run(self, pairs: int) -> None:
        """As many pairs, from all callers together."""
        left = iter(range(pairs))

        async def caller(number: int) -> None:
            for _ in left:
                await self.pair(number)

        await asyncio.gather(*map(caller, range(CALLERS)))

    async def pair(self, caller: int) -> None:
        name = f"claim-{caller}-{self.done}"
        claim = self.fleet.node.claim(name, f"gpu-{caller}")
        first = await self.fleet.call("prepare", claim)
        assert await self.fleet.call("prepare", claim) == first
        await self.fleet.call("unprepare", claim)
        self.fleet.server.delete("resourceclaims", name, "default")
        self.done += 1

    async def disturbed(self, pairs: int, disturb: Any) -> None:
        """The same, with something going wrong in the middle."""
        goal = self.done + pairs // 2
        work = asyncio.create_task(self.run(pairs))
        await self.fleet.eventually(lambda: self.done >= goal or work.done(), 120)
        await disturb()
        await work


@pytest.mark.soak
@pytest.mark.timeout(280)
async def test_nothing_is_left_and_nothing_grows(fleet: Fleet, node: Any) -> None:
    load = Load(fleet)
    await fleet.launch()

    await load.disturbed(300, fleet.connect)

    async def kill() -> None:
        fleet.processes[-1].send_signal(signal.SIGKILL)
        await fleet.processes[-1].wait()
        await fleet.launch()

    await load.disturbed(300, kill)
    await load.disturbed(300, fleet.connect)

    async def upgrade() -> None:
        old = fleet.processes[-1]
        await fleet.launch(pod_uid="new")
        old.send_signal(signal.SIGTERM)
        assert await old.wait() == 0

    await load.disturbed(300, upgrade)

    process = fleet.processes[-1]
    await load.run(WARM_UP_PAIRS)
    before = Footprint.of(process.pid)
    await load.run(PAIRS - load.done)
    after = Footprint.of(process.pid)

    assert load.done == PAIRS
    assert after.memory_kib - before.memory_kib < MEMORY_KIB, (before, after)
    assert after.descriptors <= before.descriptors + 2, (before, after)
    assert after.threads <= before.threads + 2, (before, after)
    assert node.files() == []
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    assert list(node.root.rglob("*.sock")) == []
    claims = node.root / "plugins/gpu.example.com/claims"
    assert [path for path in claims.rglob("*") if path.is_file()] == []
