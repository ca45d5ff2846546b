"""What is wrong with a CDI file: every fault, each with its JSON path.

The rules are those of the reference implementation that runtimes use, and of the specification's JSON schema. Faults
for which runtimes refuse the whole file are `rejected`; the others break rules that no runtime checks.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from drakit.cdi import names
from drakit.cdi.model import ContainerEdits, DeviceNode, Hook, Mount, Spec
from drakit.cdi.versions import RELEASED_VERSIONS, minimum_version, parse_version

__all__ = ["Fault", "SpecError", "decode", "validate"]

_HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
_NODE_TYPES = ("b", "c", "u", "p")
_ANNOTATIONS_BYTES = 256 << 10
_CLOS_BYTES = 4096
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_QUALIFIED = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")

_Path = tuple[str | int, ...]
_Found = Iterator["Fault"]


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong: where (JSON path, e.g. `devices[0].name`, empty for the file itself), what, and how bad."""

    path: str
    message: str
    rejected: bool = True

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class SpecError(ValueError):
    """Content that is no valid CDI Spec; `faults` has all reasons."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        """Keep `faults`, at least one."""
        self.faults = tuple(faults)
        super().__init__("; ".join(map(str, self.faults)))


def validate(spec: Spec | object) -> list[Fault]:
    """All faults of a Spec, or of the plain value of a file; [] when it is right.

    Fields of a wrong shape are reported first; the rules on content are applied only to a value of the right shape.
    """
    value = _without_nulls(msgspec.to_builtins(spec) if isinstance(spec, Spec) else spec)
    if not isinstance(value, dict):
        return [Fault("", f"must be a mapping with cdiVersion, kind and devices, not {_kind(value)}")]
    return list(_shape(value, Spec, ())) or list(_spec(msgspec.convert(value, Spec)))


def decode(value: object) -> Spec:
    """The Spec of the plain value of a file, accepted as runtimes accept it.

    Raises:
        SpecError: a runtime refuses it.
    """
    refused = [fault for fault in validate(value) if fault.rejected]
    if refused:
        raise SpecError(refused)
    return msgspec.convert(_without_nulls(value), Spec)


# ---- shape: types, unknown and missing fields, from the model itself


def _shape(value: Any, expected: Any, path: _Path) -> _Found:
    if get_origin(expected) in {Union, UnionType}:
        expected = next(choice for choice in get_args(expected) if choice is not NoneType)
    if get_origin(expected) is Annotated:
        yield from _integer(value, expected, path)
    elif isinstance(expected, type) and issubclass(expected, msgspec.Struct):
        yield from _struct(value, expected, path)
    elif get_origin(expected) is tuple:
        yield from _array(value, get_args(expected)[0], path)
    elif get_origin(expected) is dict:
        yield from _strings(value, path)
    elif not isinstance(value, expected):
        yield _fault(path, f"must be {_NAMES[expected]}, not {_kind(value)}")


_NAMES = {str: "a string", bool: "a boolean"}


def _integer(value: Any, expected: Any, path: _Path) -> _Found:
    _, limits = get_args(expected)
    if not isinstance(value, int) or isinstance(value, bool):
        yield _fault(path, f"must be an integer, not {_kind(value)}")
    elif not limits.ge <= value <= limits.le:
        yield _fault(path, f"must be from {limits.ge} to {limits.le}, not {value}")


def _struct(value: Any, expected: type[msgspec.Struct], path: _Path) -> _Found:
    if not isinstance(value, dict):
        yield _fault(path, f"must be a mapping, not {_kind(value)}")
        return
    fields = _fields(expected)
    for name, content in value.items():
        if name not in fields:
            yield _fault((*path, name), "unknown field")
        else:
            yield from _shape(content, fields[name].type, (*path, name))
    for name, field in fields.items():
        if name not in value and field.required:
            yield _fault((*path, name), "is missing")


@functools.cache
def _fields(expected: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(expected)}


def _array(value: Any, expected: Any, path: _Path) -> _Found:
    if not isinstance(value, (list, tuple)):
        yield _fault(path, f"must be a list, not {_kind(value)}")
        return
    for index, item in enumerate(value):
        yield from _shape(item, expected, (*path, index))


def _strings(value: Any, path: _Path) -> _Found:
    if not isinstance(value, dict):
        yield _fault(path, f"must be a mapping of strings, not {_kind(value)}")
        return
    for key, content in value.items():
        if not isinstance(key, str) or not isinstance(content, str):
            yield _fault((*path, str(key)), f"must be a string, not {_kind(content)}")


# ---- content


def _spec(spec: Spec) -> _Found:
    yield from _version(spec)
    vendor, _, cls = spec.kind.partition("/")
    if not (vendor and cls):
        yield Fault("kind", f"must be vendor/class, not {spec.kind!r}")
    elif not (names.is_vendor(vendor) and names.is_class(cls)):
        rule = "vendor and class begin with a letter, end with a letter or digit, and have only these and _.- between"
        yield Fault("kind", f"{spec.kind!r} is not valid: {rule}")
    yield from _annotations(spec.annotations, ("annotations",))
    yield from _container_edits(spec.container_edits, ("containerEdits",))
    yield from _devices(spec)


def _version(spec: Spec) -> _Found:
    declared, needed = parse_version(spec.cdi_version), minimum_version(spec)
    if declared is None:
        yield Fault("cdiVersion", f"{spec.cdi_version!r} is not one of {', '.join(RELEASED_VERSIONS)}")
    elif declared < (parse_version(needed) or ()):
        yield Fault(
            "cdiVersion", f"must be at least {needed} for the fields that this file uses, not {spec.cdi_version}"
        )


def _devices(spec: Spec) -> _Found:
    if not spec.devices:
        yield Fault("devices", "must have at least one device")
    seen: dict[str, int] = {}
    for index, device in enumerate(spec.devices):
        path: _Path = ("devices", index)
        if not names.is_device_name(device.name):
            rule = "must begin and end with a letter or digit, with only these and _.:- between"
            yield _fault((*path, "name"), f"{device.name!r} is not valid: {rule}")
        if seen.setdefault(device.name, index) != index:
            yield _fault((*path, "name"), f"{device.name!r} is also the name of devices[{seen[device.name]}]")
        yield from _annotations(device.annotations, (*path, "annotations"))
        if not device.container_edits:
            yield _fault((*path, "containerEdits"), "must not be empty")
        yield from _container_edits(device.container_edits, (*path, "containerEdits"))


def _container_edits(edits: ContainerEdits, path: _Path) -> _Found:
    yield from _env(edits.env, (*path, "env"))
    yield from _each(edits.device_nodes, _device_node, (*path, "deviceNodes"))
    yield from _net_devices(edits, (*path, "netDevices"))
    yield from _each(edits.hooks, _hook, (*path, "hooks"))
    yield from _each(edits.mounts, _mount, (*path, "mounts"))
    clos = (edits.intel_rdt.clos_id or "") if edits.intel_rdt is not None else ""
    if clos != "/" and (len(clos) >= _CLOS_BYTES or clos in {".", ".."} or set(clos) & set("/\n")):
        yield _fault((*path, "intelRdt", "closID"), "must be a file name, or / for the root class")


def _each(items: tuple[Any, ...], rule: Callable[[Any, _Path], _Found], path: _Path) -> _Found:
    for index, item in enumerate(items):
        yield from rule(item, (*path, index))


def _env(env: tuple[str, ...], path: _Path) -> _Found:
    for index, variable in enumerate(env):
        if variable.find("=") <= 0:
            yield _fault((*path, index), f"must be NAME=value, not {variable!r}")


def _device_node(node: DeviceNode, path: _Path) -> _Found:
    yield from _required(node.path, (*path, "path"))
    yield from _absolute(node.path, (*path, "path"))
    yield from _absolute(node.host_path, (*path, "hostPath"))
    if node.type and node.type not in _NODE_TYPES:
        yield _fault((*path, "type"), f"{node.type!r} is not one of {', '.join(_NODE_TYPES)}")
    permissions = node.permissions or ""
    if permissions != "none" and permissions.strip("rwm"):
        yield _fault((*path, "permissions"), f"{permissions!r} must be of the letters r, w, m, or none")


def _net_devices(edits: ContainerEdits, path: _Path) -> _Found:
    for field, key in (("host_interface_name", "hostInterfaceName"), ("name", "name")):
        seen: dict[str, int] = {}
        for index, device in enumerate(edits.net_devices):
            value = getattr(device, field)
            if not value:
                yield _fault((*path, index, key), "must not be empty")
            elif seen.setdefault(value, index) != index:
                yield _fault((*path, index, key), f"{value!r} is also that of netDevices[{seen[value]}]")


def _hook(hook: Hook, path: _Path) -> _Found:
    if hook.hook_name not in _HOOKS:
        yield _fault((*path, "hookName"), f"{hook.hook_name!r} is not one of {', '.join(_HOOKS)}")
    yield from _required(hook.path, (*path, "path"))
    yield from _absolute(hook.path, (*path, "path"))
    yield from _env(hook.env, (*path, "env"))
    if hook.timeout is not None and not 0 <= hook.timeout < 1 << 32:
        limits = f"must be from 0 to {(1 << 32) - 1} seconds"
        yield _fault((*path, "timeout"), f"{limits}, not {hook.timeout}", rejected=False)


def _mount(mount: Mount, path: _Path) -> _Found:
    yield from _required(mount.host_path, (*path, "hostPath"))  # may be a word, such as tmpfs
    yield from _required(mount.container_path, (*path, "containerPath"))
    yield from _absolute(mount.container_path, (*path, "containerPath"))


def _required(value: str, path: _Path) -> _Found:
    if not value:
        yield _fault(path, "must not be empty")


def _absolute(value: str | None, path: _Path) -> _Found:
    if value and not value.startswith("/"):
        yield _fault(path, f"must be an absolute path, not {value!r}", rejected=False)


def _annotations(annotations: Mapping[str, str], path: _Path) -> _Found:
    for key in annotations:
        prefix, slash, name = key.rpartition("/")
        if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix.lower())):
            yield _fault((*path, key), "what is before the slash must be a DNS subdomain", rejected=False)
        if len(name) > 63 or not _QUALIFIED.fullmatch(name):
            rule = "must be 1 to 63 letters, digits, and _.- between"
            yield _fault((*path, key), f"the name of an annotation {rule}", rejected=False)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_BYTES:
        yield _fault(path, f"must have at most {_ANNOTATIONS_BYTES} bytes, not {size}", rejected=False)


# ---- plain values


def _fault(path: _Path, message: str, *, rejected: bool = True) -> Fault:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return Fault(text, message, rejected)


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a string", bool: "a boolean", NoneType: "nothing"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else type(value).__name__)


def _without_nulls(value: Any) -> Any:
    # A null member counts as absent, as it does for runtimes; a null in a list stays and is a fault.
    if isinstance(value, dict):
        return {key: _without_nulls(content) for key, content in value.items() if content is not None}
    if isinstance(value, (list, tuple)):
        return [_without_nulls(item) for item in value]
    return value
