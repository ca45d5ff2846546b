"""Instances of one driver on one node: who is alive, what the dead left behind, and who publishes (R34-R36).

During an upgrade two processes share the plugin directory. Each holds a byte of the state lock for as long as it lives,
and `instances/<id>.json` says which sockets are its own. Exactly one publishes slices: `publisher.json` names it. The
newer one takes over when its inventory is ready; an older one takes it back when the newer one has died.
"""

import contextlib
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from drakit import files
from drakit.driver.sockets import is_live, temporary_path
from drakit.files import Filesystem, LockFile, lock_offset

__all__ = ["DRAINED", "Instance", "Instances", "drain"]

DRAINED = "drained"
"""Holder of the publisher's record while and after the driver's slices are removed for good."""


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One process: when it started (nanoseconds, wall clock) and its socket paths."""

    id: str
    started: int
    registration: str = ""
    service: str = ""
    version: str = ""


class Instances:
    """Records of the instances in the plugin directory.

    Args:
        fs: file operations.
        directory: the plugin directory.
        own: this process; see `new_id`.
        open_lock: the state lock as another owner.
    """

    def __init__(self, fs: Filesystem, directory: Path, own: Instance, open_lock: Callable[[], LockFile]) -> None:
        self.own = own
        self._fs = fs
        self._directory = directory / "instances"
        self._publisher = directory / "publisher.json"
        self._open_lock = open_lock
        self._lock: LockFile | None = None
        self._took = False

    def enter(self) -> None:
        """Record this process as alive."""
        self._lock = self._open_lock()
        self._lock.acquire(lock_offset(self.own.id), 1, blocking=False)
        files.make_directories(self._fs, self._directory, 0o700)
        files.replace(self._fs, self._path(self.own.id), msgspec.json.encode(self.own))

    def leave(self) -> None:
        """Withdraw the record and let go of the lock; the publisher's record goes with it."""
        if self.is_publisher():
            self._fs.unlink(self._publisher)
        self._fs.unlink(self._path(self.own.id))
        self.abandon()

    def abandon(self) -> None:
        """Let go of the lock and leave the records, as a kill does."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def sweep(self) -> list[str]:
        """Remove the sockets and records of instances that died; paths of the sockets removed. Call `enter` first.

        Sockets that somebody serves, and sockets of which no record tells, are never touched.
        """
        removed = []
        for instance in self.others():
            if self._is_alive(instance):
                continue
            for path in _sockets(instance):
                entry = self._fs.stat(path)
                if entry is not None and stat.S_ISSOCK(entry.st_mode) and not is_live(path):
                    self._fs.unlink(path)
                    removed.append(str(path))
            self._fs.unlink(self._path(instance.id))
        files.clean_temporaries(self._fs, self._directory)
        return removed

    def others(self) -> list[Instance]:
        """All other instances of which there is a record."""
        found = []
        for name in self._fs.list(self._directory):
            if not name.endswith(".json") or name == f"{self.own.id}.json":
                continue
            try:
                instance = msgspec.json.decode(self._fs.read(self._directory / name), type=Instance)
            except FileNotFoundError:
                continue
            except (OSError, msgspec.DecodeError):  # lost with the power, or no file: nothing to learn from it
                instance = None
            if instance is not None and name == self._path(instance.id).name:
                found.append(instance)
            else:
                with contextlib.suppress(OSError):
                    self._fs.unlink(self._directory / name)
        return found

    def is_publisher(self) -> bool:
        """Whether the record names this process."""
        holder = self._holder()
        return holder is not None and holder.id == self.own.id

    def claim_publishing(self) -> bool:
        """Become the publisher if that is due; whether this process is it now."""
        holder = self._holder()
        if holder is not None and holder.id == self.own.id:
            return True
        if holder is not None and holder.id == DRAINED and holder.started >= self.own.started:
            return False  # the slices are being removed for good; only an instance started after that publishes again
        newer = holder is None or holder.started < self.own.started
        if holder is None or not self._is_alive(holder) or (newer and not self._took):
            files.replace(self._fs, self._publisher, msgspec.json.encode(self.own))
            self._took = True
            return True
        return False

    def _holder(self) -> Instance | None:
        try:
            return msgspec.json.decode(self._fs.read(self._publisher), type=Instance)
        except (OSError, msgspec.DecodeError):
            return None

    def _is_alive(self, instance: Instance) -> bool:
        """Whether somebody holds its byte."""
        if instance.id == self.own.id:
            return self._lock is not None
        assert self._lock is not None, "only those who entered can tell"
        offset = lock_offset(instance.id)
        if not self._lock.acquire(offset, 1, blocking=False):
            return True
        self._lock.release(offset, 1)
        return False

    def _path(self, identifier: str) -> Path:
        return self._directory / f"{identifier}.json"


def _sockets(instance: Instance) -> list[Path]:
    """Where sockets of an instance may be: in place, and not yet."""
    places = [Path(path) for path in (instance.registration, instance.service) if path]
    return places + [temporary_path(path, instance.id) for path in places]


def drain(fs: Filesystem, directory: Path, started: int) -> None:
    """Stop all instances that were started before `started` (nanoseconds, wall clock) from publishing.

    Args:
        fs: file operations.
        directory: the plugin directory.
        started: usually now.
    """
    files.replace(fs, directory / "publisher.json", msgspec.json.encode(Instance(id=DRAINED, started=started)))


def new_id() -> str:
    """An id that no other process has."""
    return secrets.token_hex(8)
