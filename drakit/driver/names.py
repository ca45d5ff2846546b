"""Names on the node: sockets, and what may become a path.

Socket names are the ones that the kubelet's Go helper computes (spec/kubeletplugin.md R4-R9), so that tools which look
for them find them; the limit is the kernel's 107 bytes.
"""

import base64
import hashlib
import os
import re
from pathlib import Path

__all__ = [
    "SOCKET_PATH_LIMIT",
    "DriverNameError",
    "IdentityError",
    "SocketPathError",
    "base_request",
    "check_driver_name",
    "check_identity",
    "check_socket_path",
    "fits",
    "registration_socket",
    "service_socket",
]

SOCKET_PATH_LIMIT = 107  # sun_path has 108 bytes, the last one is NUL
_DRIVER_NAME_LIMIT = 63

_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*")
_UID = re.compile(r"[0-9a-zA-Z-]{1,64}")
_SAFE_NAME = re.compile(r"[0-9a-z]([-.0-9a-z]{0,251}[0-9a-z])?")


class DriverNameError(ValueError):
    """The driver's name is no DNS subdomain of at most 63 bytes (resource.k8s.io validation)."""


class IdentityError(ValueError):
    """Namespace, name or UID of a claim cannot be a file name; the API server never hands out such ones."""


class SocketPathError(ValueError):
    """A Unix socket path has more than 107 bytes: neither bind nor the kubelet's dial can work (R6)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Say which path, and how much too long."""
        self.path = os.fspath(path)
        self.length = len(os.fsencode(self.path))
        super().__init__(
            f"socket path {self.path} has {self.length} bytes, the kernel allows {SOCKET_PATH_LIMIT}: "
            "use a shorter directory or driver name"
        )


def check_driver_name(name: str) -> str:
    """Return `name`.

    Raises:
        DriverNameError: the API server would refuse slices of such a driver.
    """
    if len(name) > _DRIVER_NAME_LIMIT or not _DNS_SUBDOMAIN.fullmatch(name):
        raise DriverNameError(
            f"driver name {name!r} is not a lower-case DNS subdomain of at most {_DRIVER_NAME_LIMIT} characters, "
            "for example gpu.example.com"
        )
    return name


def check_identity(namespace: str, name: str, uid: str) -> None:
    """Refuse what must not become a path.

    Raises:
        IdentityError: see there.
    """
    if not _SAFE_NAME.fullmatch(namespace) or len(namespace) > 63:
        raise IdentityError(f"claim namespace {namespace!r} is not a DNS label")
    if not _SAFE_NAME.fullmatch(name):
        raise IdentityError(f"claim name {name!r} is not a DNS subdomain")
    if not _UID.fullmatch(uid):
        raise IdentityError(f"claim UID {uid!r} does not match {_UID.pattern}")


def fits(path: str | os.PathLike[str]) -> bool:
    """Whether a Unix socket can have this path (R6)."""
    return len(os.fsencode(path)) <= SOCKET_PATH_LIMIT


def check_socket_path(path: Path) -> Path:
    """Return `path`.

    Raises:
        SocketPathError: see there.
    """
    if not fits(path):
        raise SocketPathError(path)
    return path


def registration_socket(directory: str | os.PathLike[str], driver: str, pod_uid: str = "") -> Path:
    """Where the driver registers: `<driver>-reg.sock`, or a name of its own for each pod UID (R4, R5)."""
    if not pod_uid:
        return Path(directory, f"{driver}-reg.sock")
    both = f"{driver}\0{pod_uid}".encode()
    candidates = (
        f"{driver}-{pod_uid}-reg.sock",
        f"{driver}-{_digest(pod_uid.encode(), 8)}-reg.sock",
        f"dra-{_digest(both, 16)}-reg.sock",
    )
    paths = [Path(directory, name) for name in candidates]
    return next(filter(fits, paths), paths[-1])


def service_socket(directory: str | os.PathLike[str], pod_uid: str = "") -> Path:
    """Where the driver serves: `dra.sock`, or with a pod UID `dra-<uid>.sock`, shortened when too long (R4, R7)."""
    if not pod_uid:
        return Path(directory, "dra.sock")
    full = Path(directory, f"dra-{pod_uid}.sock")
    return full if fits(full) else Path(directory, f"dra-{_digest(pod_uid.encode(), 8)}")


def base_request(request: str) -> str:
    """The request without its subrequest: the kubelet knows only these (P9, P26)."""
    return request.partition("/")[0]


def _digest(data: bytes, length: int) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()[:length]).rstrip(b"=").decode()
