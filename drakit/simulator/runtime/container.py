"""A container: its OCI spec, and what a process in it would see."""

import posixpath
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

__all__ = ["Container", "base_spec", "words"]

_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Container:
    """One container from its creation on.

    Attributes:
        id: unique within the runtime.
        pod_uid: of its pod.
        name: in the pod.
        spec: the OCI runtime spec after CDI injection.
        cdi_devices: the CDI ids asked for, in order.
        root: a directory that looks like the container's root, with the mounts of files and directories in it.
        started: when it started.
        finished: when it ended; None while it runs.
        exit_code: how it ended; None while it runs.
    """

    def __init__(
        self,
        id: str,
        *,
        pod_uid: str,
        name: str,
        spec: dict[str, Any],
        cdi_devices: tuple[str, ...],
        root: Path,
        started: datetime,
    ) -> None:
        self.id, self.pod_uid, self.name = id, pod_uid, name
        self.spec, self.cdi_devices, self.root = spec, cdi_devices, root
        self.started = started
        self.finished: datetime | None = None
        self.exit_code: int | None = None

    @property
    def env(self) -> dict[str, str]:
        """The environment of its process."""
        return dict(entry.partition("=")[::2] for entry in self.spec["process"]["env"])

    @property
    def devices(self) -> tuple[str, ...]:
        """Paths of its device nodes."""
        return tuple(device["path"] for device in self.spec["linux"].get("devices") or ())

    @property
    def mounts(self) -> dict[str, str]:
        """Host path by path in the container."""
        return {mount["destination"]: mount["source"] for mount in self.spec["mounts"] if "source" in mount}

    def path(self, inside: str) -> Path:
        """Where a path of the container is found on this machine."""
        return self.root / posixpath.normpath(inside).lstrip("/")

    def lay_out(self) -> None:
        """Make the mounts appear below `root`.

        A file is linked, not copied: as with a bind mount, writes in place are seen, and after a rename on the host the
        container keeps the old file (M22, recorded section 22). Device nodes are only listed in the spec.
        """
        self.root.mkdir(parents=True)
        for mount in self.spec["mounts"]:
            source = Path(mount.get("source", ""))
            if source.is_absolute() and source.exists():
                _bind(source, self.path(mount["destination"]))

    def clear(self) -> None:
        """Remove what `lay_out` made."""
        shutil.rmtree(self.root, ignore_errors=True)


def _bind(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink() or target.is_file():
        target.unlink()
    if source.is_file():
        try:
            target.hardlink_to(source)
        except OSError:
            target.symlink_to(source)
    elif not target.exists():
        target.symlink_to(source)


def base_spec(pod: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, Any]:
    """The OCI spec of a container before CDI injection."""
    env = [_PATH, f"HOSTNAME={pod['metadata']['name']}"]
    env += [f"{entry['name']}={entry['value']}" for entry in container.get("env") or () if "value" in entry]
    return {
        "ociVersion": "1.2.0",
        "process": {"args": words(container), "env": env, "cwd": container.get("workingDir", "/"), "user": {}},
        "root": {"path": "rootfs"},
        "hostname": pod["metadata"]["name"],
        "mounts": [],
        "linux": {"resources": {}, "devices": []},
        "annotations": {
            "io.kubernetes.cri.container-name": container["name"],
            "io.kubernetes.cri.sandbox-name": pod["metadata"]["name"],
            "io.kubernetes.cri.sandbox-namespace": pod["metadata"]["namespace"],
            "io.kubernetes.cri.sandbox-uid": pod["metadata"]["uid"],
        },
    }


def words(container: Mapping[str, Any]) -> Sequence[str]:
    """The command line as far as the pod gives it."""
    return [*(container.get("command") or ()), *(container.get("args") or ())]
