"""drakit publish and drakit uninstall-slices as processes against a fake API server over HTTPS."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from drakit import cli
from drakit.driver.instances import DRAINED, Instance
from drakit.simulator.apiserver import FakeAPIServer

DRIVER = "gpu.example.com"
FILE = "pools: {shared: {allNodes: true, devices: [{name: a}]}}"


@pytest.fixture(name="server")
async def _server() -> AsyncIterator[FakeAPIServer]:
    async with FakeAPIServer() as server:
        yield server


async def drakit(server: FakeAPIServer, *words: str) -> asyncio.subprocess.Process:
    environment = {
        **{key: value for key, value in os.environ.items() if key in {"PATH", "HOME"}},
        "KUBECONFIG": str(server.kubeconfig()),
        "DRIVER_NAME": DRIVER,
        "METRICS_PORT": "-1",
    }
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "drakit.cli", *words, env=environment, stdout=-1, stderr=-1
    )


async def finished(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    async with asyncio.timeout(40):
        out, err = await process.communicate()
    return process.returncode, (out + err).decode()


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(40):
        while not condition():  # noqa: ASYNC110 - another process is waited for
            await asyncio.sleep(0.02)


async def test_publish_until_a_signal_then_uninstall(server: FakeAPIServer, tmp_path: Path) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(FILE)
    publishing = await drakit(server, "publish", "--inventory", str(path), "--log-format", "json")
    await eventually(lambda: len(server.list("resourceslices")) == 1)
    lease = server.get("leases", DRIVER, "default")
    assert lease is not None
    assert lease["spec"]["holderIdentity"]
    code, output = await finished(await drakit(server, "uninstall-slices", "--settle", "1.5"))
    assert code == 1, output
    assert "was publishing until now: remove its Deployment" in output
    assert server.list("resourceslices") == []
    code, output = await finished(publishing)
    assert code == 1, "it ends when the Lease is taken from it"
    code, output = await finished(await drakit(server, "uninstall-slices", "--settle", "0.2"))
    assert code == 0, output


async def test_publish_ends_cleanly_with_a_signal_and_leaves_the_slices(server: FakeAPIServer, tmp_path: Path) -> None:
    publishing = await drakit(server, "publish", "--profile", "everywhere")
    await eventually(lambda: len(server.list("resourceslices")) == 1)
    publishing.send_signal(signal.SIGTERM)
    code, output = await finished(publishing)
    assert code == 0, output
    assert len(server.list("resourceslices")) == 1
    lease = server.get("leases", DRIVER, "default")
    assert lease is not None
    assert lease["spec"].get("holderIdentity", "") == "", "given back at once"


async def test_publish_once(server: FakeAPIServer, tmp_path: Path) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(FILE)
    assert (await finished(await drakit(server, "publish", "--inventory", str(path), "--once")))[0] == 0
    assert len(server.list("resourceslices")) == 1
    path.write_text(FILE.replace("name: a", "name: Not Legal"))
    code, output = await finished(await drakit(server, "publish", "--inventory", str(path), "--once"))
    assert code == 1
    assert "device Not Legal" in output
    path.write_text("nothing")
    code, output = await finished(await drakit(server, "publish", "--inventory", str(path), "--once"))
    assert code == 1
    assert 'must hold a mapping "pools"' in output


async def test_uninstall_drains_the_node_it_runs_on(server: FakeAPIServer, tmp_path: Path) -> None:
    import msgspec

    server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    directory = tmp_path / DRIVER
    directory.mkdir()
    words = ("uninstall-slices", "--settle", "0.1", "--kubelet-plugins-directory-path", str(tmp_path))
    code, output = await finished(await drakit(server, *words, "--node-name", "n1"))
    assert code == 0, output
    assert "0 slices of gpu.example.com deleted" in output
    assert msgspec.json.decode((directory / "publisher.json").read_bytes(), type=Instance).id == DRAINED


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["publish"], "--driver-name is missing"),
        (["publish", "--driver-name", "Not/Legal"], "--driver-name 'Not/Legal'"),
        (["publish", "--driver-name", "d"], "give either --inventory FILE or --profile NAME"),
        (["publish", "--driver-name", "d", "--profile", "many"], "--profile 'many' is not one of"),
        (["publish", "--driver-name", "d", "--inventory", "/nowhere"], "does not exist"),
        (["publish", "--driver-name", "d", "--profile", "zone", "--kubeconfig", "/nowhere"], "is not a file"),
        (["publish", "--inventery", "x"], "did you mean --inventory?"),
        (["uninstall-slices"], "--driver-name is missing"),
        (["uninstall-slices", "--driver-name", "d", "--kubeconfig", "/nowhere"], "is not a file"),
    ],
)
def test_wrong_use_is_one_line(words: list[str], message: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DRIVER_NAME", "KUBECONFIG", "INVENTORY", "PROFILE"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(words) == 2
    output = capsys.readouterr().err
    assert message in output
    assert output.count("\n") == 1
