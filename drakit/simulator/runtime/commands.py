"""How long a command would run and how it would end, read from its words."""

import re
from collections.abc import Sequence

import msgspec

__all__ = ["Outcome", "outcome"]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SLEEP = re.compile(r"\bsleep\s+(infinity|(?:\d+(?:\.\d+)?[smhd]?)(?:\s+\d+(?:\.\d+)?[smhd]?)*)")
_EXIT = re.compile(r"(?:^|[;&|\s])exit\s+(\d+)\s*$")
_FOREVER = re.compile(r"\bwhile\s+(?:true|:)|\btail\s+-[fF]\b|\bpause\b")
_INSTANT = re.compile(r"^(?:\S*/)?(?:true|false|echo|ls|env|printenv|cat|test|id|date|uname)\b")


class Outcome(msgspec.Struct, frozen=True):
    """Seconds until the command ends by itself (None: never) and its exit code then."""

    seconds: float | None
    exit_code: int = 0


def outcome(words: Sequence[str]) -> Outcome:
    """The outcome of a command line (command and args of a container together).

    Understood are `sleep` with its units, also inside `sh -c`, `exit N` at the end, `true`, `false` and commands that
    only print. A command that is not understood, and an image's own entry point (no words), run for ever: servers do.
    """
    text = " ".join(words)
    if not words or _FOREVER.search(text):
        return Outcome(None)
    sleeps = _SLEEP.findall(text)
    script = _is_shell(words)
    code = _exit_code(words, script)
    if any("infinity" in sleep for sleep in sleeps):
        return Outcome(None)
    if sleeps:
        return Outcome(sum(_seconds(part) for sleep in sleeps for part in sleep.split()), code)
    if script or _INSTANT.match(text):
        return Outcome(0.0, code)
    return Outcome(None)


def _is_shell(words: Sequence[str]) -> bool:
    return len(words) > 1 and words[0].rsplit("/", 1)[-1] in {"sh", "bash", "ash"} and any("c" in w for w in words[1:2])


def _exit_code(words: Sequence[str], script: bool) -> int:
    last = words[-1].strip()
    found = _EXIT.search(last) if script else None
    if found:
        return int(found[1]) & 0xFF
    return 1 if last.rsplit("/", 1)[-1].split()[-1:] == ["false"] else 0


def _seconds(text: str) -> float:
    unit = text[-1] if text[-1] in _UNITS else ""
    return float(text.removesuffix(unit)) * _UNITS[unit]
