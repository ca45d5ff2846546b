"""The decisions work where neither aiohttp nor grpc is installed."""

import subprocess
import sys

SCRIPT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"aiohttp", "grpc", "kubernetes", "structlog"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import drakit.simulator.controlplane
"""


def test_pure_decisions_need_neither_aiohttp_nor_grpc() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
