"""A driver's own CDI files in a directory that it shares with other drivers and with every runtime's scanner.

File names are `<owner>_<purpose>_<claim UID>[_<part>].json`: the owner (driver name) has no underscore, so what is
one's own is known by name, without reading. Files appear and vanish whole. Nothing here is synced: after a power loss
they are written again from the driver's journal.
"""

import re
from collections.abc import Container
from pathlib import Path

import msgspec

from drakit import files
from drakit.cdi.model import Spec, encode
from drakit.cdi.validation import SpecError, validate
from drakit.cdi.versions import minimum_version
from drakit.files import REAL, Filesystem, StrPath

__all__ = ["DEFAULT_ROOT", "SpecFile", "Store", "StoreError"]

DEFAULT_ROOT = "/var/run/cdi"

_MODE = 0o644
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")
_PURPOSE = re.compile(r"[a-z]+")
_UID = re.compile(r"[0-9a-zA-Z-]{1,64}")
_PART = re.compile(r"[A-Za-z0-9._-]*")


class StoreError(Exception):
    """The directory for CDI files cannot be used; fields `directory` and `cause` say which and why."""

    def __init__(self, directory: Path, cause: OSError) -> None:
        """Say what failed and what to do."""
        self.directory, self.cause = directory, cause
        super().__init__(
            f"cannot keep CDI specs in {directory}: {cause.strerror or cause}. "
            "Mount that directory of the host writable, or choose another that the runtime reads"
        )


class SpecFile(msgspec.Struct, frozen=True):
    """The name of one CDI file of this driver, taken apart."""

    purpose: str
    uid: str
    part: str = ""


class Store:
    """The CDI files of one driver. Methods are safe in parallel for different claims; order calls for one claim."""

    def __init__(self, root: StrPath = DEFAULT_ROOT, fs: Filesystem = REAL, *, owner: str) -> None:
        """Use directory `root` (created with the first write) for the files of driver `owner`.

        Raises:
            ValueError: `owner` is not a driver name.
        """
        if not _OWNER.fullmatch(owner):
            raise ValueError(f"driver name {owner!r}: must be a DNS subdomain such as gpu.example.com")
        self.root, self.owner = Path(root), owner
        self._fs = fs

    def prepare(self) -> None:
        """Create the directory where it is missing, and try a write.

        Raises:
            StoreError: it cannot be created or written.
        """
        probe = self.root / f".{self.owner}_probe.tmp"
        try:
            files.make_directories(self._fs, self.root)
            self._fs.unlink(probe)
            self._fs.create(probe, b"")
            self._fs.unlink(probe)
        except OSError as error:
            raise StoreError(self.root, error) from error

    def path(self, file: SpecFile) -> Path:
        """Where `file` is.

        Raises:
            ValueError: purpose, UID or part would not be a safe file name.
        """
        if not (_PURPOSE.fullmatch(file.purpose) and _UID.fullmatch(file.uid) and _PART.fullmatch(file.part)):
            raise ValueError(f"not a CDI file of a claim: {file.purpose!r}, {file.uid!r}, {file.part!r}")
        ending = f"_{file.part}" if file.part else ""
        return self.root / f"{self.owner}_{file.purpose}_{file.uid}{ending}.json"

    def write(self, file: SpecFile, spec: Spec) -> Path:
        """Write `spec` as `file`, replacing it; the version declared is the lowest that `spec` allows.

        Raises:
            SpecError: a runtime would refuse it; nothing is written.
            StoreError: the directory cannot be created or written.
        """
        spec = msgspec.structs.replace(spec, cdi_version=minimum_version(spec))
        refused = [fault for fault in validate(spec) if fault.rejected]
        if refused:
            raise SpecError(refused)
        target = self.path(file)
        try:
            self._replace(target, encode(spec))
        except OSError as error:
            raise StoreError(self.root, error) from error
        return target

    def remove(self, file: SpecFile) -> bool:
        """Remove `file`; False when it is missing."""
        return self._fs.unlink(self.path(file))

    def remove_claim(self, uid: str, *, purpose: str | None = None) -> int:
        """Remove the files of claim `uid` (of one purpose only, if given); how many there were."""
        # Names first: with many claims, taking all of them apart costs more than all the rest of an unprepare.
        found = (self._own(name) for name in self._fs.list(self.root) if uid in name)
        return sum(
            self.remove(file)
            for file in found
            if file is not None and file.uid == uid and (purpose is None or file.purpose == purpose)
        )

    def list(self) -> tuple[SpecFile, ...]:
        """Own files, sorted by name; other drivers' files are never looked at."""
        found = (self._own(name) for name in self._fs.list(self.root))
        return tuple(file for file in found if file is not None)

    def clean(self, live: Container[str]) -> tuple[SpecFile, ...]:
        """Remove what earlier processes left: temporaries, and the files of claims that are not in `live`.

        Call it while nobody else writes for this driver. Returns the files removed.
        """
        files.clean_temporaries(self._fs, self.root, prefix=f"{self.owner}_")
        return tuple(file for file in self.list() if file.uid not in live and self._clear(file))

    def _clear(self, file: SpecFile) -> bool:
        try:
            return self.remove(file)
        except IsADirectoryError:  # somebody's joke, and no spec: it must not keep us from starting
            return False

    def _replace(self, target: Path, data: bytes) -> None:
        try:
            files.replace(self._fs, target, data, mode=_MODE)
        except FileNotFoundError:  # the directory is on a tmpfs, gone after a reboot or by a clean-up
            files.make_directories(self._fs, self.root)
            files.replace(self._fs, target, data, mode=_MODE)

    def _own(self, name: str) -> SpecFile | None:
        if not (name.startswith(f"{self.owner}_") and name.endswith(".json")):
            return None
        purpose, _, rest = name[len(self.owner) + 1 : -len(".json")].partition("_")
        uid, _, part = rest.partition("_")
        file = SpecFile(purpose, uid, part)
        try:
            return file if self.path(file).name == name else None
        except ValueError:
            return None
