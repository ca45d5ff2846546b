"""Commands whose extra is not installed name it."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from drakit.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [
        ("structlog", ["run", "--node-name", "n"], "driver"),
        ("grpc", ["run", "--node-name", "n"], "driver"),
        ("aiohttp", ["uninstall-slices", "--driver-name", "d.example.com"], "kube"),
        ("cryptography", ["demo"], "simulator"),
    ],
)
def test_a_missing_extra_is_one_line_that_names_it(module: str, words: list[str], extra: str) -> None:
    command = [sys.executable, "-c", PROGRAM, module, *words]
    answer = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert answer.returncode == 2
    assert answer.stderr == f"drakit: this needs {module}: pip install 'drakit[{extra}]'\n"
