"""A driver in a process of its own, as it runs on a node."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["DriverProcess", "driver_command"]

_STOP_SECONDS = 30.0
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")


def driver_command(flags: Mapping[str, str]) -> tuple[str, ...]:
    """The command line of `drakit run` with this interpreter."""
    words = [word for flag, value in flags.items() for word in (flag, value)]
    return (sys.executable, "-m", "drakit.cli", "run", *words)


class DriverProcess:
    """Starts, stops and kills one driver process; its output goes to a file.

    Args:
        command: what to run.
        log: where standard output and error go (appended).
        environment: added to the little that is passed on; settings of this process are not.
        node: the node that it serves.
    """

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, *, node: str = ""
    ) -> None:
        self.command, self.log, self.node = tuple(command), log, node
        self._environment = {key: os.environ[key] for key in _KEPT if key in os.environ} | dict(environment or {})
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """Of the running process; 0: none runs."""
        return self._process.pid if self._process is not None and self._process.returncode is None else 0

    @property
    def output(self) -> str:
        """All it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    async def start(self) -> None:
        """Start it (again)."""
        assert self.pid == 0, "the driver runs already"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,  # a Ctrl-C in the terminal is for us, not for the driver
            )

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        assert self._process is not None, "the driver was never started"
        return await self._process.wait()

    async def stop(self) -> int:
        """SIGTERM, and SIGKILL when it does not end in time; returns the exit code."""
        self._signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.wait(), _STOP_SECONDS)
        except TimeoutError:
            return await self.kill()

    async def kill(self) -> int:
        """SIGKILL."""
        self._signal(signal.SIGKILL)
        return await self.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
