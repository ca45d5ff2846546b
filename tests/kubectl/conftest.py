"""kubectl as a process against the fake API server."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from drakit.simulator.apiserver import FakeAPIServer

KUBECTL = shutil.which("kubectl")


class Result:
    """What a kubectl printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def rows(self) -> list[list[str]]:
        return [line.split() for line in self.out.splitlines()]


class Kubectl:
    """Runs kubectl with an administrator's kubeconfig and a cache of its own."""

    def __init__(self, server: FakeAPIServer, directory: Path) -> None:
        self.server, self.directory, self.kubeconfig = server, directory, server.kubeconfig()
        self._files = 0

    async def start(self, *arguments: str, stdin: bool = False) -> asyncio.subprocess.Process:
        assert KUBECTL is not None
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            KUBECTL,
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.directory / 'cache'}",
            *arguments,
            stdin=pipe if stdin else asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.directory)},
        )

    async def run(self, *arguments: str, stdin: str = "") -> Result:
        process = await self.start(*arguments, stdin=bool(stdin))
        async with asyncio.timeout(30):
            out, err = await process.communicate(stdin.encode() if stdin else None)
        return Result(process.returncode or 0, out.decode(), err.decode())

    async def __call__(self, *arguments: str, stdin: str = "") -> Result:
        """Run it and expect success."""
        result = await self.run(*arguments, stdin=stdin)
        assert result.code == 0, result.err
        return result

    def file(self, *objects: dict[str, Any]) -> str:
        """A manifest of these objects."""
        self._files += 1
        path = self.directory / f"manifest-{self._files}.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return str(path)

    async def json(self, *arguments: str) -> Any:
        return json.loads((await self(*arguments, "-o", "json")).out)


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    """kubectl and the server that it talks to (`kubectl.server`)."""
    if KUBECTL is None:
        pytest.skip("kubectl is not on the PATH: the fake API server is not driven by a real client here")
    async with FakeAPIServer() as server:
        yield Kubectl(server, tmp_path)


def _claim(name: str = "gpu", **labels: str) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    metadata = {"name": name, "namespace": "default", **({"labels": labels} if labels else {})}
    spec = {"devices": {"requests": [request]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def _slice(name: str = "node-a-gpu", **spec: Any) -> dict[str, Any]:
    whole = {
        "driver": "gpu.example.com",
        "nodeName": "node-a",
        "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "LATEST"}}}],
        **spec,
    }
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": whole}


@pytest.fixture
def claim() -> Any:
    return _claim


@pytest.fixture
def resource_slice() -> Any:
    return _slice
