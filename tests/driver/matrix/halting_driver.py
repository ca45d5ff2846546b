"""A driver process that halts for ever at one place, so that a test can kill it there.

Arguments: the directory of the node, a kubeconfig, and the place: an operation, a pattern of the path's name, and which
one of them, such as `rename .uid-1.tmp 2`; or the name of a hook. It says where it is in the files `listening` and
`halted`.
"""

import asyncio
import fnmatch
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drakit import kube
from drakit.driver import Claim, ClaimRef, Device, Driver, Prepared
from drakit.driver.application import Application
from drakit.driver.publishing import Publishing
from drakit.driver.settings import Settings
from drakit.files import Filesystem

root, kubeconfig, operation, pattern, which = Path(sys.argv[1]), sys.argv[2], *sys.argv[3:6]
remaining = int(which)


def pass_by(name: str, path: str) -> None:
    """Halt here if this is the place."""
    global remaining  # noqa: PLW0603 - one process, one place
    if name == operation and fnmatch.fnmatch(Path(path).name, pattern):
        remaining -= 1
        if remaining == 0:
            (root / "halted").touch()
            threading.Event().wait()


class HaltingFilesystem(Filesystem):
    """Asks before each operation."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in vars(Filesystem) or name.startswith("_"):
            return found

        def passed(*args: Any, **kwargs: Any) -> Any:
            pass_by(name, str(args[0]))
            return found(*args, **kwargs)

        return passed


class HaltingDriver(Driver):
    """Prepares nothing, at its hooks' pleasure."""

    name = "gpu.example.com"

    def devices(self) -> Sequence[Device]:
        return [Device(name="gpu-0")]

    def prepare(self, claim: Claim) -> list[Prepared]:
        pass_by("prepare", claim.name)
        return [Prepared(device) for device in claim.devices]

    def unprepare(self, claim: ClaimRef) -> None:
        pass_by("unprepare", claim.name)


async def main() -> None:
    settings = Settings(
        node_name="node-a",
        driver_name=HaltingDriver.name,
        cdi_root=str(root / "cdi"),
        kubelet_registrar_directory_path=str(root / "reg"),
        kubelet_plugins_directory_path=str(root / "plugins"),
    )
    credentials = kube.from_kubeconfig(kubeconfig)
    application = Application(
        HaltingDriver(), settings, lambda: credentials, Publishing, fs=HaltingFilesystem(), boot_id="boot-1"
    )
    await application.start()
    (root / "listening").touch()
    await asyncio.Event().wait()


asyncio.run(main())
