"""What a container gets: CDI ids resolved over directories and applied to an OCI runtime spec, as runtimes do it.

The directories are scanned in order of rising priority. A device of a later directory hides one of the same id in an
earlier; two of the same priority are a conflict, and the id resolves to nothing. Files that a runtime would refuse
count as absent. Edits are joined in the order of the ids, each file's own edits before its first device.
"""

import copy
import os
import posixpath
import stat as modes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from drakit.cdi.model import ContainerEdits, Device, DeviceNode, Mount, Spec, merge
from drakit.cdi.parsing import parse
from drakit.cdi.validation import SpecError
from drakit.files import REAL, Filesystem, StrPath

__all__ = ["DEFAULT_DIRECTORIES", "HostNode", "Inventory", "ResolveError", "apply", "host_node", "resolve", "scan"]

DEFAULT_DIRECTORIES = ("/etc/cdi", "/var/run/cdi")

_HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")


class HostNode(msgspec.Struct, frozen=True):
    """What the host says of a device node: type (b, c or p), numbers, permission bits."""

    type: str
    major: int
    minor: int
    file_mode: int


class Inventory(msgspec.Struct, frozen=True):
    """All devices that a runtime finds in its directories, and why others are not among them."""

    devices: dict[str, tuple[str, Device, Spec]]  # CDI id: path of its file, device, Spec
    errors: dict[str, str]  # path: why it counts as absent
    conflicts: dict[str, tuple[str, ...]]  # CDI id: paths of the files that both have it


class ResolveError(Exception):
    """A container that would not start: `ids` do not resolve, or (`ids` empty) an edit cannot be made."""

    def __init__(self, message: str, ids: Sequence[str] = (), errors: Mapping[str, str] | None = None) -> None:
        """Keep the ids, and the errors of the files that were passed over."""
        self.ids, self.errors = tuple(ids), dict(errors or {})
        super().__init__(message)


def resolve(
    directories: Iterable[StrPath],
    ids: Iterable[str],
    oci_spec: Mapping[str, Any],
    *,
    fs: Filesystem = REAL,
    node: Callable[[str], HostNode | None] | None = None,
) -> dict[str, Any]:
    """The OCI spec `oci_spec` (plain JSON value, not changed) with the CDI devices `ids`.

    Args:
        directories: where CDI files are, lowest priority first.
        ids: CDI ids in the order of the container's request; a repeated id counts once, where it is first.
        oci_spec: the container's OCI runtime spec.
        fs: the file system of the directories.
        node: what the host has at a path (default: this machine's).

    Raises:
        ResolveError: ids that do not resolve, or a device node that the host does not have.
    """
    inventory = scan(directories, fs=fs)
    wanted = tuple(dict.fromkeys(ids))
    missing = [cdi_id for cdi_id in wanted if cdi_id not in inventory.devices]
    if missing:
        raise ResolveError(_unresolvable(missing, inventory), missing, inventory.errors)
    edits: list[ContainerEdits] = []
    files: set[str] = set()
    for cdi_id in wanted:
        path, device, spec = inventory.devices[cdi_id]
        if path not in files:
            files.add(path)
            edits.append(spec.container_edits)
        edits.append(device.container_edits)
    return apply(merge(*edits), oci_spec, node=node)


def scan(directories: Iterable[StrPath], *, fs: Filesystem = REAL) -> Inventory:
    """Read every CDI file of `directories`, lowest priority first.

    A missing directory is empty; one that cannot be read ends the scan there, as it does for runtimes.
    """
    devices: dict[str, tuple[str, Device, Spec]] = {}
    priorities: dict[str, int] = {}
    conflicts: dict[str, tuple[str, ...]] = {}
    errors: dict[str, str] = {}
    for priority, path, spec in _specs(fs, directories, errors):
        for device in spec.devices:
            cdi_id = f"{spec.kind}={device.name}"
            if priorities.get(cdi_id) == priority:
                conflicts[cdi_id] = (*conflicts.get(cdi_id, (devices[cdi_id][0],)), path)
            else:
                devices[cdi_id], priorities[cdi_id] = (path, device, spec), priority
    # A conflict anywhere takes the id away, even where a later directory has it too: so do runtimes.
    return Inventory({key: found for key, found in devices.items() if key not in conflicts}, errors, conflicts)


def host_node(path: str) -> HostNode | None:
    """What this machine has at `path`, links not followed; None when that is no device node or missing."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    kinds = {modes.S_IFBLK: "b", modes.S_IFCHR: "c", modes.S_IFIFO: "p"}
    kind = kinds.get(modes.S_IFMT(found.st_mode))
    if kind is None:
        return None
    return HostNode(kind, os.major(found.st_rdev), os.minor(found.st_rdev), modes.S_IMODE(found.st_mode))


def apply(
    edits: ContainerEdits, oci_spec: Mapping[str, Any], *, node: Callable[[str], HostNode | None] | None = None
) -> dict[str, Any]:
    """`oci_spec` with `edits` made.

    Raises:
        ResolveError: a device node is neither described completely nor on the host.
    """
    spec = copy.deepcopy(dict(oci_spec))
    if edits.env:
        process = _member(spec, "process")
        process["env"] = _env(process.get("env") or [], edits.env)
    for device_node in edits.device_nodes:
        _add_node(spec, device_node, node or host_node)
    for device in edits.net_devices:
        _member(_member(spec, "linux"), "netDevices")[device.host_interface_name] = {"name": device.name}
    if edits.mounts:
        spec["mounts"] = _mounts(spec, edits.mounts)
    for hook in edits.hooks:
        content = _plain(hook)
        hooks = _member(spec, "hooks")
        hooks.setdefault(content.pop("hookName"), []).append(content)
    if edits.intel_rdt is not None:
        _member(spec, "linux")["intelRdt"] = _plain(edits.intel_rdt)
    _add_gids(spec, edits.additional_gids)
    return spec


def _specs(fs: Filesystem, directories: Iterable[StrPath], errors: dict[str, str]) -> Iterator[tuple[int, str, Spec]]:
    for priority, directory in enumerate(directories):
        try:
            names = fs.list(directory)
        except OSError as error:
            errors[os.fspath(directory)] = error.strerror or str(error)
            return
        for name in names:
            path = Path(directory, name)
            found = fs.stat(path) if name.endswith((".json", ".yaml")) else None
            spec = _read(fs, path, errors) if found is not None and not modes.S_ISDIR(found.st_mode) else None
            if spec is not None:
                yield priority, os.fspath(path), spec


def _read(fs: Filesystem, path: Path, errors: dict[str, str]) -> Spec | None:
    try:
        return parse(fs.read(path, follow=True))
    except SpecError as error:
        errors[os.fspath(path)] = str(error)
    except OSError as error:
        errors[os.fspath(path)] = error.strerror or str(error)
    return None


def _unresolvable(missing: Sequence[str], inventory: Inventory) -> str:
    message = f"unresolvable CDI devices {', '.join(missing)}"
    reasons = [
        f"{cdi_id} is in {' and '.join(inventory.conflicts[cdi_id])}"
        for cdi_id in missing
        if cdi_id in inventory.conflicts
    ]
    reasons += [f"{path} counts as absent: {why}" for path, why in inventory.errors.items()]
    return f"{message} ({'; '.join(reasons)})" if reasons else message


def _plain(value: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return plain


def _member(parent: dict[str, Any], key: str) -> dict[str, Any]:
    if parent.get(key) is None:
        parent[key] = {}
    member: dict[str, Any] = parent[key]
    return member


def _env(present: Sequence[str], added: Sequence[str]) -> list[str]:
    env = list(present)
    places = {variable.partition("=")[0]: index for index, variable in enumerate(env)}
    for variable in added:
        name = variable.partition("=")[0]
        if name in places:
            env[places[name]] = variable
        else:
            places[name] = len(env)
            env.append(variable)
    return env


def _add_node(spec: dict[str, Any], node: DeviceNode, host: Callable[[str], HostNode | None]) -> None:
    device = _complete(node, host)
    user = (spec.get("process") or {}).get("user") or {}
    for key in ("uid", "gid"):
        if key not in device and user.get(key):
            device[key] = user[key]
    linux = _member(spec, "linux")
    linux["devices"] = [other for other in linux.get("devices") or [] if other.get("path") != node.path] + [device]
    if device["type"] in {"b", "c"}:
        access = {None: "rwm", "": "rwm", "none": ""}.get(node.permissions, node.permissions)
        rule = {"allow": True, "type": device["type"], "major": device["major"], "minor": device["minor"]}
        rules = _member(linux, "resources").setdefault("devices", [])
        rules.append(rule | ({"access": access} if access else {}))


def _complete(node: DeviceNode, host: Callable[[str], HostNode | None]) -> dict[str, Any]:
    complete = bool(node.type) and (bool(node.major) or node.type == "p")
    path = node.host_path or node.path
    found = host(path)
    kind, major, minor = node.type, node.major, node.minor
    if not complete:
        if found is None:
            raise ResolveError(f"device node {path}: the host has no such device")
        if kind and kind != found.type:
            raise ResolveError(f"device node {path}: is of type {found.type} on the host, not {kind}")
        kind = found.type
        if kind != "p" and not major:
            major, minor = found.major, found.minor
    device: dict[str, Any] = {"path": node.path, "type": kind, "major": major or 0, "minor": minor or 0}
    mode = node.file_mode if node.file_mode is not None or found is None else found.file_mode
    optional = {"fileMode": mode, "uid": node.uid, "gid": node.gid}
    return device | {key: value for key, value in optional.items() if value is not None}


def _mounts(spec: dict[str, Any], added: Sequence[Mount]) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = list(spec.get("mounts") or [])
    namespaces = (spec.get("linux") or {}).get("namespaces") or []
    mapped = any(namespace.get("type") == "user" for namespace in namespaces)
    for mount in added:
        place = next((i for i, other in enumerate(mounts) if other.get("destination") == mount.container_path), None)
        if place is not None:
            del mounts[place]
        mounts.append(_mount(mount, mapped=mapped))
    # Parents before what is mounted below them; the sort keeps the order of equals.
    return sorted(mounts, key=lambda other: posixpath.normpath(other.get("destination") or ".").count("/"))


def _mount(mount: Mount, *, mapped: bool) -> dict[str, Any]:
    options = list(mount.options)
    if mapped and not {"idmap", "ridmap"} & set(options):
        # In a user namespace a bind mount needs mapped ids, or everything in it belongs to nobody.
        kinds = [option for option in options if option in {"bind", "rbind"}]
        last = kinds[-1] if kinds else mount.type
        options += {"bind": ["idmap"], "rbind": ["ridmap"]}.get(last or "", [])
    result: dict[str, Any] = {"destination": mount.container_path, "source": mount.host_path}
    if mount.type:
        result["type"] = mount.type
    return result | ({"options": options} if options else {})


def _add_gids(spec: dict[str, Any], gids: Sequence[int]) -> None:
    for gid in gids:
        if gid:
            groups = _member(_member(spec, "process"), "user").setdefault("additionalGids", [])
            if gid not in groups:
                groups.append(gid)
