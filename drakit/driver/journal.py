"""Records of claims on disk: what must survive a crash, a power loss and a release.

One file per claim, `claims/<namespace>/<name>/<uid>.json`: the path alone tells whose record it is, even when the
content is broken. The content is one JSON object {"format", "checksum", "record"}; this envelope never
changes. The checksum covers the format and the exact bytes of `record`, so fields that a later release adds to the
record do not make it invalid for an earlier one. A record goes
through the phases `preparing` (the hook may have begun) and `prepared` (the reply was or will be given); a file
`<uid>.unpreparing` beside it says that the hook may have begun to undo it.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from drakit import cdi
from drakit import metadata as device_metadata
from drakit.driver import names
from drakit.driver.devicestatus import DeviceStatus
from drakit.files import Filesystem

__all__ = [
    "FORMAT",
    "MARKER",
    "PREPARED",
    "PREPARING",
    "BrokenRecordError",
    "Identity",
    "NewerFormatError",
    "PreparedDevice",
    "Record",
    "children",
    "decode",
    "encode",
    "identities",
    "marker_path",
    "record_path",
]

FORMAT = 1
PREPARING = "preparing"
PREPARED = "prepared"

MARKER = ".unpreparing"
_SUFFIX = ".json"


class BrokenRecordError(Exception):
    """A record's bytes are not what was written."""


class NewerFormatError(Exception):
    """A later release wrote this record and an earlier one cannot know what it means."""

    def __init__(self, path: Path, found: int) -> None:
        """Name the file and the way out."""
        self.path, self.found = path, found
        super().__init__(
            f"{path} has format {found}, this release understands up to {FORMAT}: "
            "run the release that wrote it, or drain the node before going back"
        )


class Identity(msgspec.Struct, frozen=True, order=True):
    """Namespace, name and UID of a claim."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """Like klog prints it: namespace/name:uid."""
        return f"{self.namespace}/{self.name}:{self.uid}"


class PreparedDevice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One allocated device with what the kubelet was told about it.

    `request` keeps its subrequest; `cdi_ids` begins with the device's own id, metadata ids follow; `status` is what the
    claim's status shall say about it.
    """

    request: str
    pool: str
    device: str
    share_id: str | None = None
    admin_access: bool = False
    cdi_ids: tuple[str, ...] = ()
    status: DeviceStatus | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is known of one claim on this node; enough to answer again and to rebuild its files.

    `allocation` identifies the allocation that was prepared; `metadata` has one entry per device, or none when none is
    kept; `generations` are those above 1, by base request; `state` is the device driver's own JSON value. A `broken`
    record stands for one whose content was lost; `retry` says that an earlier hook may have left something;
    `unattended` that nobody will unprepare the claim (P36).
    """

    namespace: str
    name: str
    uid: str
    phase: str
    boot_id: str = ""
    allocation: str = ""
    devices: tuple[PreparedDevice, ...] = ()
    spec: cdi.Spec | None = None
    pod_claim_name: str | None = None
    metadata: tuple[device_metadata.PreparedDevice, ...] = ()
    generations: dict[str, int] = {}
    state: Any = None
    broken: bool = False
    retry: bool = False
    unattended: bool = False

    @property
    def identity(self) -> Identity:
        """Whose record this is."""
        return Identity(self.namespace, self.name, self.uid)


class _Envelope(msgspec.Struct, frozen=True):
    format: int
    checksum: str
    record: msgspec.Raw


_encoder = msgspec.json.Encoder()
_envelopes = msgspec.json.Decoder(_Envelope)
_records = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """The bytes of a record's file."""
    raw = _encoder.encode(record)
    return _encoder.encode(_Envelope(FORMAT, _checksum(FORMAT, raw), msgspec.Raw(raw))) + b"\n"


def decode(data: bytes, path: Path) -> Record:
    """Read the file of the claim that `path` names.

    Raises:
        BrokenRecordError: not a record, a wrong checksum, or the record of another claim.
        NewerFormatError: see there.
    """
    try:
        envelope = _envelopes.decode(data)
    except msgspec.DecodeError as error:
        raise BrokenRecordError(f"{path}: {error}") from error
    if envelope.checksum != _checksum(envelope.format, bytes(envelope.record)):
        raise BrokenRecordError(f"{path}: the checksum does not fit")
    if envelope.format > FORMAT:
        raise NewerFormatError(path, envelope.format)
    try:
        record = _records.decode(envelope.record)
    except msgspec.DecodeError as error:
        raise BrokenRecordError(f"{path}: {error}") from error
    if (record.namespace, record.name, f"{record.uid}{_SUFFIX}") != (path.parts[-3], path.parts[-2], path.name):
        raise BrokenRecordError(f"{path}: holds the record of {record.identity}")
    return record


def record_path(root: Path, identity: Identity) -> Path:
    """Where the record of a claim lies below the claims directory `root`."""
    return Path(f"{root}/{identity.namespace}/{identity.name}/{identity.uid}{_SUFFIX}")


def marker_path(root: Path, identity: Identity) -> Path:
    """The file that says: unpreparing this claim has begun."""
    return Path(f"{root}/{identity.namespace}/{identity.name}/{identity.uid}{MARKER}")


def identities(fs: Filesystem, root: Path) -> Iterator[Identity]:
    """Whose records lie below `root`; names that no claim can have are passed by."""
    for namespace in fs.list(root):
        for name in children(fs, root / namespace):
            for file in children(fs, root / namespace / name):
                if file.endswith(_SUFFIX) and _valid(namespace, name, file.removesuffix(_SUFFIX)):
                    yield Identity(namespace, name, file.removesuffix(_SUFFIX))


def children(fs: Filesystem, directory: Path) -> tuple[str, ...]:
    """Names in a directory; () when it is missing, or a file of somebody else's."""
    try:
        return fs.list(directory)
    except NotADirectoryError:
        return ()


def _valid(namespace: str, name: str, uid: str) -> bool:
    try:
        names.check_identity(namespace, name, uid)
    except names.IdentityError:
        return False
    return True


def _checksum(number: int, data: bytes) -> str:
    return f"crc32:{zlib.crc32(b'%d:%b' % (number, data)):08x}"
