"""Looking for registration sockets as the kubelet's plugin watcher does (R23)."""

import os
import stat
from pathlib import Path

__all__ = ["Registry"]


class Registry:
    """The registry directory of one kubelet run.

    The directory is made (0750) when missing. It stays the one that was there at the start: when it is removed and
    made anew, the new one is not seen until the kubelet restarts (recorded section 31).
    """

    def __init__(self, path: Path) -> None:
        path.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def sockets(self) -> dict[str, str]:
        """Identity by path of all sockets, sub-directories included, names beginning with "." left out."""
        found: dict[str, str] = {}
        for directory, names, files, descriptor in os.fwalk(".", dir_fd=self._descriptor):
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in sorted(files):
                identity = None if name.startswith(".") else _identity(name, descriptor)
                if identity is not None:
                    found[os.path.normpath(self._path / directory / name)] = identity
        return found

    def close(self) -> None:
        """Stop watching."""
        os.close(self._descriptor)


def _identity(name: str, descriptor: int) -> str | None:
    """Inode and time of creation: a socket that replaces another may get its inode number."""
    try:
        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return f"{status.st_ino}:{status.st_mtime_ns}" if stat.S_ISSOCK(status.st_mode) else None
