"""Only the end of a gRPC server ends the process (issue 6 point 1): one that nobody stopped."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import asyncio
from drakit.driver import Device, Driver, run
from drakit.driver.listener import Listener
from drakit.driver.settings import from_environment

class Fragile(Driver):
    name = "gpu.example.com"
    def devices(self): return [Device(name="gpu-0")]
    def prepare(self, claim): return []
    def unprepare(self, claim): pass

start = Listener.start
async def start_and_end(self):
    await start(self)
    if self.path.name == "dra.sock":
        asyncio.get_running_loop().call_later(0.05, lambda: asyncio.ensure_future(self._servers[-1].stop(None)))
Listener.start = start_and_end
run(Fragile())
"""


@pytest.mark.parametrize("which", ["service_listener", "registration_listener"])
async def test_a_server_that_ends_by_itself_is_told(node: Any, which: str) -> None:
    application, _ = await node.start()
    listener = getattr(application, which)
    await listener._servers[-1].stop(None)
    async with asyncio.timeout(5):
        reason = await application.ended
    assert reason == f"the gRPC server at {listener.path} ended: it stopped"


async def test_servers_that_are_replaced_or_stopped_are_no_failure(node: Any) -> None:
    application, _ = await node.start()
    for _ in range(3):  # two servers are kept: the third one's place is made by stopping the first
        for path in (application.settings.service_socket, application.settings.registration_socket):
            path.unlink()
        await application.sockets.check()
    await node.stop(application)
    assert not application.ended.done()


def test_the_process_says_so_in_one_line_and_exits_with_1(root: Path) -> None:
    kubeconfig = root / "config"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {token: t}}]}"
    )
    variables = {
        "NODE_NAME": "node-a",
        "KUBECONFIG": str(kubeconfig),
        "CDI_ROOT": str(root / "cdi"),
        "KUBELET_REGISTRAR_DIRECTORY_PATH": str(root / "reg"),
        "KUBELET_PLUGINS_DIRECTORY_PATH": str(root / "plugins"),
        "LOG_FORMAT": "json",
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBERNETES_")}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    records = [json.loads(line) for line in (ended.stdout + ended.stderr).splitlines() if line.startswith("{")]
    errors = [record for record in records if record["msg"] == "cannot go on"]
    assert ended.returncode == 1, ended.stderr
    assert [record["err"] for record in errors] == [
        f"the gRPC server at {root}/plugins/gpu.example.com/dra.sock ended: it stopped"
    ]
    assert records[-1]["msg"] == "stopped"
    assert not list((root / "reg").iterdir())
