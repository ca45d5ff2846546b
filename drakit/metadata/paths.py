"""Where device metadata is, on the host (M1) and in a container (M4): strings only, for writer and reader alike."""

import hashlib
import re

__all__ = [
    "CONTAINER_BASE",
    "HOST_DIRECTORY",
    "PathError",
    "base_request",
    "claim_directory",
    "container_directory",
    "container_file",
    "host_directory",
    "host_file",
]

CONTAINER_BASE = "/var/run/kubernetes.io/dra-device-attributes"
HOST_DIRECTORY = "dra-device-metadata"

_NAME_BYTES = 255
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(
    r"(?!.{254})[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.IGNORECASE
)


class PathError(ValueError):
    """A name that cannot be part of a path; `what` it names and the `name` itself."""

    def __init__(self, what: str, name: str) -> None:
        """Say which name and what it must be."""
        self.what, self.name = what, name
        super().__init__(f"{what} {name!r}: must be lower-case letters, digits and dashes, as Kubernetes names are")


def base_request(request: str) -> str:
    """The request that paths and CDI names carry: what is before the slash of `request/subrequest`."""
    return request.partition("/")[0]


def host_directory(data_directory: str) -> str:
    """The directory of all claims' metadata below a driver's data directory."""
    return f"{data_directory.rstrip('/')}/{HOST_DIRECTORY}"


def claim_directory(data_directory: str, namespace: str, claim: str) -> str:
    """The directory of one claim's metadata: `<namespace>_<claim>`, cut and made unique by a hash above 255 bytes."""
    name = f"{_label('namespace', namespace)}_{_subdomain('claim', claim)}"
    if len(name) > _NAME_BYTES:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        name = f"{name[: _NAME_BYTES - 17]}_{digest}"  # a second underscore: no other claim's name
    return f"{host_directory(data_directory)}/{name}"


def host_file(data_directory: str, namespace: str, claim: str, request: str) -> str:
    """The host's file of one request (`request` or `request/subrequest`)."""
    directory = claim_directory(data_directory, namespace, claim)
    return f"{directory}/{_label('request', base_request(request))}/metadata.json"


def container_directory(request: str, *, claim: str = "", pod_claim: str = "", base: str = CONTAINER_BASE) -> str:
    """The directory in a container for one request: of a claim by its name, or of a template by its entry in the pod.

    Exactly one of `claim` and `pod_claim` is given.
    """
    if bool(claim) == bool(pod_claim):
        raise ValueError("give either claim (a ResourceClaim's name) or pod_claim (the pod's name for a template)")
    name = _label("request", base_request(request))
    if pod_claim:
        return f"{base}/resourceclaimtemplates/{_label('pod claim', pod_claim)}/{name}"
    return f"{base}/resourceclaims/{_subdomain('claim', claim)}/{name}"


def container_file(
    driver: str, request: str, *, claim: str = "", pod_claim: str = "", base: str = CONTAINER_BASE
) -> str:
    """The file in a container with one driver's metadata for one request."""
    directory = container_directory(request, claim=claim, pod_claim=pod_claim, base=base)
    return f"{directory}/{_subdomain('driver', driver)}-metadata.json"


def _label(what: str, name: str) -> str:
    if not _LABEL.fullmatch(name):
        raise PathError(what, name)
    return name


def _subdomain(what: str, name: str) -> str:
    if not _SUBDOMAIN.fullmatch(name):
        raise PathError(what, name)
    return name
