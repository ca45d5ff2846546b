"""Atomic durable files and locks over a Filesystem object: the only place that renames, syncs, locks.

The host's file system is shared with others and survives us, so nothing here trusts it: state is never read or written
through a symbolic link, modes are exact whatever the umask, a file appears whole or not at all, and every operation is
a method of `Filesystem`, so that tests count them, fail them, and kill the process between any two.
"""

import contextlib
import errno
import fcntl  # noqa: TID251 - the one place that locks
import hashlib
import os
import secrets
import stat as modes
import struct
import zlib
from pathlib import Path
from typing import TypeAlias

__all__ = [
    "REAL",
    "Filesystem",
    "LockFile",
    "StrPath",
    "clean_temporaries",
    "lock_offset",
    "make_directories",
    "remove",
    "replace",
]

StrPath: TypeAlias = str | os.PathLike[str]

_NAME_BYTES = 255  # NAME_MAX of every file system that a node uses
_READ_LIMIT = 64 << 20  # state files are kilobytes; more is not ours
_CHUNK = 64 << 10  # a buffer for the limit would cost a mapping of 64 MiB for each small file
_COUNTER_BYTES = 20  # 2**64 in decimal
_CLEANED_RETRIES = 3


class LockFile:
    """Byte-range locks (open file description locks) and a counter in one file.

    One LockFile is one owner: its own ranges never exclude each other, and releasing a range releases it whoever in
    this process took it. Threads or tasks that must exclude each other each need a LockFile, or a lock above it. Locks
    end with `close`, and with the process however it dies; they exclude other processes and other LockFiles alike.
    """

    def __init__(self, descriptor: int, path: StrPath) -> None:
        """Take ownership of `descriptor`, open for reading and writing."""
        self._descriptor = descriptor
        self.path = os.fspath(path)

    def acquire(self, offset: int, length: int, *, exclusive: bool = True, blocking: bool = True) -> bool:
        """Lock `length` bytes from `offset`; False when not blocking and somebody else holds any of them.

        Blocking has no time limit (the kernel offers none): call it from a thread that may wait.
        """
        command = fcntl.F_OFD_SETLKW if blocking else fcntl.F_OFD_SETLK
        try:
            self._control(command, fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK, offset, length)
        except OSError as error:
            if error.errno in {errno.EAGAIN, errno.EACCES}:
                return False
            raise
        return True

    def release(self, offset: int, length: int) -> None:
        """Unlock `length` bytes from `offset`; bytes that are not locked are fine."""
        self._control(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, offset, length)

    def read_counter(self) -> int:
        """The number last written by any process, 0 in a new file."""
        text = os.pread(self._descriptor, _COUNTER_BYTES + 1, 0)
        if not text:
            return 0
        digits = text.removesuffix(b"\n")
        if digits.isdigit():
            return int(digits)
        return (1 << 48) + zlib.crc32(text)  # damaged: a number that no cache has seen

    def write_counter(self, number: int) -> None:
        """Store `number` (0 <= number < 10**20). Hold a lock around reading and raising it."""
        os.pwrite(self._descriptor, b"%0*d\n" % (_COUNTER_BYTES, number), 0)

    def is_current(self) -> bool:
        """Whether the path still names this file. Somebody who replaced it locks another file: open it anew."""
        try:
            found = Path(self.path).lstat()
        except FileNotFoundError:
            return False
        own = os.fstat(self._descriptor)
        return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)

    def close(self) -> None:
        """Release everything. Closing twice is fine."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _control(self, command: int, kind: int, offset: int, length: int) -> None:
        # struct flock: type, whence, start, length, pid (must be 0 for open file description locks)
        fcntl.fcntl(self._descriptor, command, struct.pack("hhqqi", kind, os.SEEK_SET, offset, length, 0))

    def __enter__(self) -> "LockFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Filesystem:
    """The kernel's file operations, one method each. Subclass to count, fail or kill."""

    def read(self, path: StrPath, *, follow: bool = False) -> bytes:
        """The content of a regular file.

        Raises:
            OSError: ELOOP for a symbolic link (unless `follow`), EINVAL for a pipe, device or directory, EFBIG above
                64 MiB.
        """
        descriptor = _open(path, os.O_RDONLY | os.O_NONBLOCK, follow=follow)
        try:
            _require_regular(descriptor, path)
            data = b""
            while chunk := os.read(descriptor, _CHUNK):
                data += chunk
                if len(data) > _READ_LIMIT:
                    raise OSError(errno.EFBIG, "too large for a state file", os.fspath(path))
        finally:
            os.close(descriptor)
        return data

    def create(self, path: StrPath, data: bytes, mode: int = 0o600) -> None:
        """Write a new file of exactly `mode`, not synced; FileExistsError when anything is there."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            os.fchmod(descriptor, mode)
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]

    def sync(self, path: StrPath) -> None:
        """Bring a file's content to the disk."""
        descriptor = _open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.fsync(descriptor)  # noqa: TID251 - the one place that syncs
        finally:
            os.close(descriptor)

    def sync_directory(self, path: StrPath) -> None:
        """Bring a directory's names to the disk: creations, renames and removals in it."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)  # noqa: TID251 - the one place that syncs
        finally:
            os.close(descriptor)

    def rename(self, source: StrPath, target: StrPath) -> None:
        """Give `source` the name `target`, replacing what has it."""
        os.rename(source, target)  # noqa: TID251, PTH104 - the one place that renames

    def unlink(self, path: StrPath) -> bool:
        """Remove a name that is not a directory; False when missing."""
        try:
            Path(path).unlink()
        except FileNotFoundError:
            return False
        return True

    def mkdir(self, path: StrPath, mode: int = 0o755) -> None:
        """Create one directory of exactly `mode`; FileExistsError when anything is there."""
        Path(path).mkdir(mode)
        descriptor = _open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def rmdir(self, path: StrPath) -> bool:
        """Remove an empty directory; False when missing."""
        try:
            Path(path).rmdir()
        except FileNotFoundError:
            return False
        return True

    def list(self, path: StrPath) -> tuple[str, ...]:
        """Names in a directory, sorted; () when it is missing."""
        try:
            return tuple(sorted(os.listdir(path)))  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return ()

    def stat(self, path: StrPath, *, follow: bool = False) -> os.stat_result | None:
        """What is at `path` itself (a link is a link unless `follow`); None when missing."""
        try:
            return Path(path).stat(follow_symlinks=follow)
        except FileNotFoundError:
            return None

    def open_lock(self, path: StrPath) -> LockFile:
        """Open (creating it, mode 0600) a lock file; nothing is locked yet."""
        descriptor = _open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK)
        try:
            _require_regular(descriptor, path)
            os.fchmod(descriptor, 0o600)
        except OSError:
            os.close(descriptor)
            raise
        return LockFile(descriptor, path)


REAL = Filesystem()


def replace(fs: Filesystem, path: StrPath, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
    """Write `path` so that readers see the old content or the new, never a part.

    With `durable` the content is on the disk before the name changes; the caller then calls `sync_directory` once for
    all that it renamed. The temporary begins with a dot and ends in `.tmp`: directory scanners (CDI reads *.json and
    *.yaml) pass it by.
    """
    for remaining in reversed(range(_CLEANED_RETRIES)):
        temporary = _temporary(path)
        created = False
        try:
            fs.create(temporary, data, mode)
            created = True
            if durable:
                fs.sync(temporary)
            fs.rename(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                fs.unlink(temporary)
            # A second process of ours may clean temporaries between two of our steps.
            if created and remaining and isinstance(error, FileNotFoundError):
                continue
            raise
        return


def make_directories(fs: Filesystem, path: StrPath, mode: int = 0o755) -> None:
    """Create `path` and its missing parents, each of exactly `mode`; those that exist keep theirs.

    Raises:
        NotADirectoryError: something else has the name.
    """
    try:
        fs.mkdir(path, mode)
    except FileNotFoundError:
        # Some file systems (/proc) answer so in a parent that is there: asking again would never end.
        if fs.stat(Path(path).parent, follow=True) is not None:
            raise
        make_directories(fs, Path(path).parent, mode)
        make_directories(fs, path, mode)
    except FileExistsError:
        found = fs.stat(path, follow=True)
        if found is None or not modes.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "exists and is not a directory", os.fspath(path)) from None


def remove(fs: Filesystem, path: StrPath) -> None:
    """Remove a file, link or whole directory; missing is fine. Links are removed, never followed."""
    found = fs.stat(path)
    if found is None:
        return
    if not modes.S_ISDIR(found.st_mode):
        fs.unlink(path)
        return
    for name in fs.list(path):
        remove(fs, Path(path, name))
    fs.rmdir(path)


def clean_temporaries(fs: Filesystem, directory: StrPath, *, prefix: str = "") -> None:
    """Remove what `replace` left in `directory` when its process died.

    Args:
        fs: where.
        directory: the directory; missing is fine.
        prefix: only temporaries of targets whose names begin so (a directory shared with others).
    """
    for name in fs.list(directory):
        if name.startswith(f".{prefix}") and name.endswith(".tmp"):
            with contextlib.suppress(IsADirectoryError):  # not of our making
                fs.unlink(Path(directory, name))


def lock_offset(name: str) -> int:
    """The byte of a lock file that stands for `name` (a claim's UID), in [2**32, 2**62).

    Offsets below 2**32 are free for fixed purposes. Two names may share a byte: then they wait for each other, no more.
    """
    digest = hashlib.sha256(name.encode()).digest()
    return (1 << 32) + int.from_bytes(digest[:8], "big") % ((1 << 62) - (1 << 32))


def _open(path: StrPath, flags: int, *, follow: bool = False) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW), 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise OSError(errno.ELOOP, "is a symbolic link, which is not followed here", os.fspath(path)) from error
        raise


def _require_regular(descriptor: int, path: StrPath) -> None:
    if not modes.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", os.fspath(path))


def _temporary(path: StrPath) -> Path:
    ending = f".{secrets.token_hex(4)}.tmp"
    room = _NAME_BYTES - len(ending) - 1
    return Path(path).with_name("." + os.fsdecode(os.fsencode(Path(path).name)[:room]) + ending)
