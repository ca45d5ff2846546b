"""Unix sockets of the driver: put in place in one step, kept in place, and never anyone else's.

A server binds a dot name in the same directory, which the kubelet ignores (R23), and the name is renamed over the final
path once the server listens. So nobody ever connects to a socket that does not answer, an old server object that goes
away unlinks only its dot name (R11), and a path is taken over only from the dead.
"""

import contextlib
import errno
import os
import socket
import stat
from pathlib import Path

from drakit import files
from drakit.driver import names
from drakit.files import Filesystem

__all__ = ["AddressInUseError", "Placement", "is_live", "temporary_path"]

_MODE = 0o600
_DIRECTORY_MODE = 0o750  # as the kubelet makes them (R23)
_PROBE_SECONDS = 0.25


class AddressInUseError(Exception):
    """Another process answers at the path."""

    def __init__(self, path: Path) -> None:
        """Say which path, and what to do."""
        self.path = path
        super().__init__(
            f"another process serves {path}: stop it first, or give each instance its --pod-uid for seamless upgrades"
        )


def is_live(path: Path) -> bool:
    """Whether somebody accepts connections at `path`. A full backlog counts as alive."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(os.fspath(path))
        except TimeoutError:
            return True
        except OSError as error:
            return error.errno in {errno.EAGAIN, errno.EINPROGRESS}
    return True


def temporary_path(path: Path, instance: str) -> Path:
    """Where instance `instance` binds what it then moves to `path`: a known name, so that a dead one is found."""
    return path.with_name(f".{instance[:6]}")


class Placement:
    """One socket path of this process.

    Usage: let a server listen at `temporary()`, then call `publish`; from then on `is_own` tells whether the path still
    is that socket, and `remove` unlinks it only if so.
    """

    def __init__(self, path: Path, fs: Filesystem, instance: str) -> None:
        """Plan for `path`; `instance` is the id of this process among those that may have it.

        Raises:
            SocketPathError: it can never be bound.
        """
        self.path = names.check_socket_path(path)
        self._fs = fs
        self._instance = instance
        self._temporary: Path | None = None
        self._inode: tuple[int, int] | None = None

    def temporary(self) -> Path:
        """A fresh dot name beside the path, for the server to bind. Creates the directory where it is missing.

        Raises:
            AddressInUseError: somebody else answers at the path.
            OSError: the directory cannot be used.
        """
        files.make_directories(self._fs, self.path.parent, _DIRECTORY_MODE)
        self._refuse_foreign()
        self._temporary = names.check_socket_path(temporary_path(self.path, self._instance))
        self._fs.unlink(self._temporary)
        return self._temporary

    def publish(self) -> None:
        """Move the bound socket to the path, readable by root only.

        Raises:
            AddressInUseError: somebody else was faster.
        """
        temporary, self._temporary = self._temporary, None
        assert temporary is not None
        temporary.chmod(_MODE)
        found = self._fs.stat(temporary)
        try:
            self._refuse_foreign()
            self._fs.rename(temporary, self.path)
        except (AddressInUseError, OSError):
            with contextlib.suppress(OSError):
                self._fs.unlink(temporary)
            raise
        self._inode = None if found is None else (found.st_dev, found.st_ino)

    def is_own(self) -> bool:
        """Whether the path is the socket that was published."""
        found = self._fs.stat(self.path)
        return found is not None and self._inode == (found.st_dev, found.st_ino)

    def is_foreign(self) -> bool:
        """Whether somebody else answers at the path."""
        found = self._fs.stat(self.path)
        return found is not None and stat.S_ISSOCK(found.st_mode) and not self.is_own() and is_live(self.path)

    def remove(self) -> None:
        """Unlink the path if it is ours."""
        if self.is_own():
            self._fs.unlink(self.path)
        self._inode = None

    def _refuse_foreign(self) -> None:
        if self.is_foreign():
            raise AddressInUseError(self.path)
