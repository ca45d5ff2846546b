"""Writing device metadata: one file and one CDI spec per request of a claim (M1-M3, M14-M20).

Everything is made from the claim's identity and its prepared devices, so a journal record can make it again. Calls for
one claim must be ordered by the caller (its claim lock); nothing is kept in memory.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from drakit import cdi, files
from drakit.files import REAL, Filesystem, StrPath
from drakit.metadata import paths
from drakit.metadata.model import (
    VERSIONS,
    Device,
    DeviceMetadata,
    MetadataError,
    ObjectMeta,
    Request,
    decode_stream,
    encode_stream,
)

__all__ = ["POD_CLAIM_NAME", "Claim", "PreparedDevice", "Writer"]

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"

_PURPOSE = "metadata"
_FILE_MODE = 0o644


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim's identity as far as metadata needs it; `pod_claim_name` is None for a claim that users made."""

    namespace: str
    name: str
    uid: str
    pod_claim_name: str | None = None

    @classmethod
    def of(cls, namespace: str, name: str, uid: str, annotations: Mapping[str, str] | None = None) -> "Claim":
        """From a ResourceClaim's metadata: the annotation tells whether it was made from a template (M5)."""
        return cls(namespace, name, uid, (annotations or {}).get(POD_CLAIM_NAME))


class PreparedDevice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A device of the reply to kubelet: the requests that it serves (`request` or `request/subrequest`), its data."""

    requests: tuple[str, ...]
    device: Device


class Writer:
    """Writes, updates and removes the metadata of one driver's claims."""

    def __init__(
        self,
        fs: Filesystem = REAL,
        *,
        driver: str,
        data_directory: StrPath,
        store: cdi.Store,
        versions: Sequence[str] = VERSIONS,
    ) -> None:
        """Write below `data_directory` (a path that is the same on the host), with CDI specs in `store`.

        Raises:
            ValueError: `versions` lacks the newest, or has an unknown one (M12).
        """
        unknown = [version for version in versions if version not in VERSIONS]
        if unknown:
            raise ValueError(f"device metadata version {unknown[0]!r}: must be one of {', '.join(VERSIONS)}")
        if VERSIONS[0] not in versions:
            raise ValueError(f"device metadata versions {list(versions)}: must include {VERSIONS[0]}")
        self.driver, self._vendor = driver, cdi.vendor_of_driver(driver)
        self._fs, self._store = fs, store
        self._data, self._versions = str(data_directory), tuple(versions)

    def write(
        self,
        claim: Claim,
        devices: Sequence[PreparedDevice],
        *,
        generations: Mapping[str, int] | None = None,
        only_missing: bool = False,
    ) -> tuple[tuple[str, ...], ...]:
        """Write the metadata of all requests of a prepared claim.

        Args:
            claim: whose.
            devices: in the order of the reply to kubelet; one without requests gets no metadata.
            generations: by base request, for a rewrite after updates; default 1 (M18).
            only_missing: leave files alone that exist (restoring).

        Returns:
            For each device, in order, the CDI ids to append to its own: that of a request goes to the first device that
            serves it (M16).

        Raises:
            MetadataError: something could not be written. The claim may still start, without metadata ids (M17); what
                was written is removed with the claim.
        """
        requests = _by_request(devices)
        try:
            for request, members in requests.items():
                base = paths.base_request(request)
                metadata = self._metadata(claim, request, members, (generations or {}).get(base, 1))
                self._write_request(claim, base, metadata, only_missing=only_missing)
        except (OSError, ValueError, cdi.StoreError) as error:
            raise MetadataError(f"write device metadata of claim {claim.namespace}/{claim.name}: {error}") from error
        return self.ids(claim, devices)

    def ids(self, claim: Claim, devices: Sequence[PreparedDevice]) -> tuple[tuple[str, ...], ...]:
        """What `write` returns, without writing."""
        given: set[str] = set()
        result: list[tuple[str, ...]] = []
        for device in devices:
            new = [base for base in dict.fromkeys(map(paths.base_request, device.requests)) if base not in given]
            given.update(new)
            result.append(tuple(self._id(claim, base) for base in new))
        return tuple(result)

    def missing(self, claim: Claim, requests: Iterable[str]) -> int:
        """How many of the base requests' metadata files are not there; their content is not looked at."""
        return sum(self._fs.stat(self._path(claim, request)) is None for request in requests)

    def update(self, claim: Claim, request: str, devices: Sequence[Device]) -> int:
        """Replace what is told of a request's devices; the new generation (M19).

        Raises:
            MetadataError: the request was not prepared, or its file cannot be read or written.
        """
        path = self._path(claim, request)
        try:
            old = decode_stream(self._fs.read(path))
        except FileNotFoundError:
            raise _not_prepared(claim, request) from None
        except OSError as error:
            raise MetadataError(f"read metadata file: {error}") from error
        except MetadataError as error:
            raise MetadataError(f"decode existing metadata: {error}") from error
        if old.metadata.uid != claim.uid:
            raise _not_prepared(claim, request)
        generation = old.metadata.generation + 1
        known = msgspec.structs.replace(claim, pod_claim_name=old.pod_claim_name)
        try:
            self._write_file(path, self._metadata(known, request, devices, generation))
        except (OSError, ValueError) as error:
            raise MetadataError(f"write metadata file: {error}") from error
        return generation

    def remove(self, claim: Claim) -> None:
        """Remove a claim's metadata; nothing there is fine. A newer claim of the same name keeps its files.

        Raises:
            MetadataError: something could not be removed: repeat.
        """
        try:
            directory = Path(paths.claim_directory(self._data, claim.namespace, claim.name))
            if self._owner(directory) in {None, claim.uid}:
                files.remove(self._fs, directory)
            self._store.remove_claim(claim.uid, purpose=_PURPOSE)
        except (OSError, ValueError) as error:
            raise MetadataError(f"clean up device metadata: {error}") from error

    def clean(self, live: Container[str]) -> tuple[str, ...]:
        """Remove what earlier processes left: temporaries, and directories of claims whose UID is not in `live`.

        CDI specs are cleaned by their store. Call it while nobody else writes for this driver. Returns the names of
        the directories removed.
        """
        base = Path(paths.host_directory(self._data))
        removed: list[str] = []
        for name in self._fs.list(base):
            owner = self._owner(base / name)
            if owner is None or owner not in live:
                files.remove(self._fs, base / name)
                removed.append(name)
            else:
                for request in self._fs.list(base / name):
                    files.clean_temporaries(self._fs, base / name / request)
        return tuple(removed)

    def _id(self, claim: Claim, base: str) -> str:
        return cdi.qualified_name(self._vendor, _PURPOSE, cdi.device_name(claim.uid, base))

    def _path(self, claim: Claim, request: str) -> Path:
        try:
            return Path(paths.host_file(self._data, claim.namespace, claim.name, request))
        except ValueError as error:
            raise MetadataError(str(error)) from error

    def _metadata(self, claim: Claim, request: str, devices: Sequence[Device], generation: int) -> DeviceMetadata:
        meta = ObjectMeta(claim.name, claim.namespace, claim.uid, generation)
        return DeviceMetadata(meta, claim.pod_claim_name, (Request(request, tuple(devices)),))

    def _write_request(self, claim: Claim, base: str, metadata: DeviceMetadata, *, only_missing: bool) -> None:
        path = Path(paths.host_file(self._data, claim.namespace, claim.name, base))
        file = cdi.SpecFile(_PURPOSE, claim.uid, base)
        if not (only_missing and self._uid(path) == claim.uid):
            files.make_directories(self._fs, path.parent)
            self._write_file(path, metadata)
        if not (only_missing and self._fs.stat(self._store.path(file)) is not None):
            self._store.write(file, self._spec(claim, base, path))

    def _write_file(self, path: Path, metadata: DeviceMetadata) -> None:
        files.replace(self._fs, path, encode_stream(metadata, self._versions), mode=_FILE_MODE)

    def _spec(self, claim: Claim, base: str, path: Path) -> cdi.Spec:
        names = {"pod_claim": claim.pod_claim_name} if claim.pod_claim_name else {"claim": claim.name}
        target = paths.container_file(self.driver, base, **names)
        edits = cdi.ContainerEdits(mounts=(cdi.Mount(str(path), target, ("ro", "bind")),))
        return cdi.Spec(
            cdi_version="",
            kind=f"{self._vendor}/{_PURPOSE}",
            devices=(cdi.Device(cdi.device_name(claim.uid, base), container_edits=edits),),
        )

    def _owner(self, directory: Path) -> str | None:
        """The UID of the claim whose metadata is in `directory`, None when no file tells."""
        found = (self._uid(directory / request / "metadata.json") for request in self._fs.list(directory))
        return next((uid for uid in found if uid is not None), None)

    def _uid(self, path: Path) -> str | None:
        try:
            return decode_stream(self._fs.read(path)).metadata.uid
        except (OSError, MetadataError):
            return None


def _by_request(devices: Sequence[PreparedDevice]) -> dict[str, list[Device]]:
    requests: dict[str, list[Device]] = {}
    for prepared in devices:
        for request in dict.fromkeys(prepared.requests):
            requests.setdefault(request, []).append(prepared.device)
    return requests


def _not_prepared(claim: Claim, request: str) -> MetadataError:
    return MetadataError(f'request "{request}" not found in prepared claim {claim.namespace}/{claim.name}')
