"""How the demo talks: numbered steps, indented facts, colours on a terminal only."""

import os
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

import yaml

__all__ = ["Report"]

_BOLD, _DIM, _GREEN, _RED, _OFF = "\033[1m", "\033[2m", "\033[32m", "\033[31m", "\033[0m"
_WIDTH = 78


class Report:
    """Writes steps to a stream as they happen."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._colours = self._stream.isatty() and "NO_COLOR" not in os.environ
        self._start = self._step_start = time.monotonic()
        self._steps = 0
        self.current = "start"

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._start

    def title(self, text: str) -> None:
        """A line above everything."""
        self._write(self._styled(text, _BOLD))

    def step(self, text: str) -> None:
        """The next step begins."""
        self._steps += 1
        self.current = text
        self._step_start = time.monotonic()
        self._write("")
        self._write(self._styled(f"{self._steps:2} {text}", _BOLD))

    def ok(self, text: str) -> None:
        """Something was checked and is as it should be."""
        seconds = f"{time.monotonic() - self._step_start:.2f} s"
        self._write(f"   {self._styled('ok', _GREEN)} {text} {self._styled(f'({seconds})', _DIM)}")

    def line(self, text: str) -> None:
        """A plain line."""
        self._write(f"   {text}" if text else "")

    def table(self, *rows: Sequence[str]) -> None:
        """Rows in columns, the first one the heading."""
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        for row in rows:
            self.line("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def document(self, document: Any) -> None:
        """A JSON value as YAML."""
        for line in yaml.safe_dump(document, sort_keys=False, width=_WIDTH).splitlines():
            self.line(f"| {line}")

    def failed(self, message: str) -> None:
        """The last word when something is not as it should be."""
        self._write("")
        self._write(f"{self._styled('FAILED', _RED)} at step {self._steps} ({self.current}): {message}")

    def passed(self) -> None:
        """The last word when all is well."""
        self._write("")
        self._write(self._styled(f"All {self._steps} steps are as they should be ({self.elapsed:.1f} s).", _BOLD))

    def _styled(self, text: str, style: str) -> str:
        return f"{style}{text}{_OFF}" if self._colours else text

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()
