"""Reading device metadata in a container (M28). Imports nothing but msgspec and the standard library."""

from pathlib import Path

import msgspec

from drakit.metadata.model import DeviceMetadata, MetadataError, Request, decode_stream
from drakit.metadata.paths import CONTAINER_BASE, container_directory, container_file

__all__ = ["read", "read_file"]

_SUFFIX = "-metadata.json"


def read(
    request: str, *, claim: str = "", pod_claim: str = "", driver: str = "", base: str = CONTAINER_BASE
) -> DeviceMetadata:
    """The metadata of the devices that this container has for `request`.

    Args:
        request: the request in the claim (what is before the slash of `request/subrequest`).
        claim: the name of the ResourceClaim, for a pod that names one; or
        pod_claim: the name of the entry in the pod's `resourceClaims`, for one that names a ResourceClaimTemplate.
        driver: only this driver's devices, with the claim's identity and the generation. Default: those of all drivers,
            requests of the same name joined in the order of the drivers' names, without the claim's identity.
        base: where the files are mounted.

    Raises:
        MetadataError: there are none, or one cannot be read or decoded; the message has the path.
        ValueError: a name cannot be one, or not exactly one of `claim` and `pod_claim` is given.
    """
    if driver:
        return read_file(container_file(driver, request, claim=claim, pod_claim=pod_claim, base=base))
    directory = Path(container_directory(request, claim=claim, pod_claim=pod_claim, base=base))
    found = [read_file(path) for path in _files(directory)]
    if not found:
        raise MetadataError(f"no metadata files found in {directory}")
    names = (metadata.pod_claim_name for metadata in found)
    return DeviceMetadata(
        pod_claim_name=next((name for name in names if name is not None), None),
        requests=_joined([request for metadata in found for request in metadata.requests]),
    )


def read_file(path: str | Path) -> DeviceMetadata:
    """The metadata of one file.

    Raises:
        MetadataError: it cannot be read or decoded; the message begins with the path.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise MetadataError(f"open metadata file: {path}: {error.strerror or error}") from error
    try:
        return decode_stream(data)
    except MetadataError as error:
        raise MetadataError(f"{path}: {error}") from error


def _files(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.name.endswith(_SUFFIX))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise MetadataError(f"list metadata files in {directory}: {error.strerror or error}") from error


def _joined(requests: list[Request]) -> tuple[Request, ...]:
    joined: dict[str, Request] = {}
    for request in requests:
        before = joined.get(request.name, Request(request.name))
        joined[request.name] = msgspec.structs.replace(before, devices=before.devices + request.devices)
    return tuple(joined.values())
