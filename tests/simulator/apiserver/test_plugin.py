"""The fixtures that come with the package."""

import subprocess
import sys
from pathlib import Path

from drakit import kube
from drakit.simulator.apiserver import FakeAPIServer


async def test_the_fixtures_give_a_server_and_a_way_in(api_server: FakeAPIServer, kubeconfig: Path) -> None:
    async with kube.Client(kube.from_kubeconfig(kubeconfig)) as client:
        namespaces = await client.list(kube.NAMESPACES)
    assert api_server.requests.count("list", "namespaces") == 1
    assert namespaces is not None


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    code = "import sys, drakit.simulator.pytest_plugin as p; print([m for m in ('aiohttp', 'grpc', 'cryptography', 'kubernetes', 'msgspec', 'yaml') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert result.stdout.strip() == "[]"
