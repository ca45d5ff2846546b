"""The CDI specification 1.1.0 as values: every field, in the order in which files carry them.

Absent is None or empty; `encode` writes neither. Names are the specification's in snake case.
"""

from typing import Annotated, TypeAlias

import msgspec

__all__ = [
    "ContainerEdits",
    "Device",
    "DeviceNode",
    "Hook",
    "IntelRdt",
    "Mount",
    "NetDevice",
    "Spec",
    "encode",
    "merge",
]

UInt32: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 32) - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _Value(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True):
    pass


class DeviceNode(_Value, frozen=True):
    """A device node in the container; what is left out is that of `host_path` (default: `path`) on the host."""

    path: str
    host_path: str | None = None
    type: str | None = None  # b, c, u (c), p
    major: Int64 | None = None
    minor: Int64 | None = None
    file_mode: UInt32 | None = None
    permissions: str | None = None  # of the device cgroup: any of r, w, m; "none"; default rwm
    uid: UInt32 | None = None
    gid: UInt32 | None = None


class NetDevice(_Value, frozen=True):
    """A network interface of the host that moves into the container as `name` (since 1.1.0)."""

    host_interface_name: str
    name: str


class Hook(_Value, frozen=True):
    """A program that the runtime runs at a point of the container's life; `timeout` is in seconds.

    `hook_name` is prestart, createRuntime, createContainer, startContainer, poststart or poststop.
    """

    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: Int64 | None = None


class Mount(_Value, frozen=True):
    """A mount of a host path (`type` since 0.4.0)."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str | None = None


class IntelRdt(_Value, frozen=True):
    """Intel resource director settings (since 0.7.0; `schemata`, `enable_monitoring` since 1.1.0)."""

    clos_id: str | None = msgspec.field(default=None, name="closID")
    l3_cache_schema: str | None = None
    mem_bw_schema: str | None = None
    schemata: tuple[str, ...] | None = None
    enable_monitoring: bool | None = None


class ContainerEdits(_Value, frozen=True):
    """What a runtime changes in a container: for one device, or (on the Spec) once for any of its devices."""

    env: tuple[str, ...] = ()  # NAME=value
    device_nodes: tuple[DeviceNode, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mounts: tuple[Mount, ...] = ()
    intel_rdt: IntelRdt | None = None
    additional_gids: tuple[UInt32, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to edit."""
        return self != _NOTHING


_NOTHING = ContainerEdits()


class Device(_Value, frozen=True):
    """One device of a Spec; `name` becomes the last part of its CDI id."""

    name: str
    annotations: dict[str, str] = {}
    container_edits: ContainerEdits = _NOTHING


class Spec(_Value, frozen=True):
    """The content of one CDI file. `kind` is vendor/class; see `drakit.cdi.minimum_version` for `cdi_version`."""

    cdi_version: str
    kind: str
    annotations: dict[str, str] = {}
    devices: tuple[Device, ...] = ()
    container_edits: ContainerEdits = _NOTHING


def encode(spec: Spec) -> bytes:
    """`spec` as the JSON text of a file: two blanks of indentation, no newline at the end (M2)."""
    return msgspec.json.format(msgspec.json.encode(spec), indent=2)


def merge(*edits: ContainerEdits) -> ContainerEdits:
    """All of `edits` in order, as a runtime joins those of several devices: the last `intel_rdt` wins."""
    rdt = [edit.intel_rdt for edit in edits if edit.intel_rdt is not None]
    return ContainerEdits(
        env=tuple(variable for edit in edits for variable in edit.env),
        device_nodes=tuple(node for edit in edits for node in edit.device_nodes),
        net_devices=tuple(device for edit in edits for device in edit.net_devices),
        hooks=tuple(hook for edit in edits for hook in edit.hooks),
        mounts=tuple(mount for edit in edits for mount in edit.mounts),
        intel_rdt=rdt[-1] if rdt else None,
        additional_gids=tuple(gid for edit in edits for gid in edit.additional_gids),
    )
