"""A process killed between any two operations leaves the old content or the new, and what it left can be cleaned."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drakit import files
from drakit.files import REAL

_WRITER = """
import os, signal, sys
from drakit import files

class Dying(files.Filesystem):
    left = int(sys.argv[2])

    def __getattribute__(self, name):
        if name in ("create", "sync", "rename", "sync_directory"):
            if Dying.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            Dying.left -= 1
        return super().__getattribute__(name)

fs = Dying()
files.replace(fs, sys.argv[1] + "/state.json", b"new" * 1000, durable=True)
fs.sync_directory(sys.argv[1])
"""


@pytest.mark.parametrize("operations", range(5))
def test_killed_after(tmp_path: Path, operations: int) -> None:
    (tmp_path / "state.json").write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", _WRITER, str(tmp_path), str(operations)], check=False)
    assert done.returncode == (0 if operations == 4 else -signal.SIGKILL)
    expected = b"new" * 1000 if operations >= 3 else b"old"
    assert (tmp_path / "state.json").read_bytes() == expected
    left = [name for name in REAL.list(tmp_path) if name != "state.json"]
    assert len(left) == (1 if operations in {1, 2} else 0)
    assert not any(name.endswith((".json", ".yaml")) for name in left)
    files.clean_temporaries(REAL, tmp_path, prefix="state")
    assert REAL.list(tmp_path) == ("state.json",)
