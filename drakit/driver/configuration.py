"""Opaque configuration: which entries of a claim apply to a device, decoded strictly into typed classes.

A device team declares its parameters as frozen Structs:

    class Sharing(Configuration, frozen=True):
        api_version: ClassVar[str] = "gpu.example.com/v1"
        strategy: Literal["Exclusive", "TimeSlicing"] = "Exclusive"

Unknown fields are errors that name the JSON path and the nearest known field; missing ones take their defaults.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec
import msgspec.inspect

from drakit.api import resource
from drakit.driver import names
from drakit.driver.errors import ConfigurationError

__all__ = ["Configuration", "applicable", "decode", "schema_of"]

_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<field>[^`]*)`(?: - at `(?P<path>[^`]*)`)?")


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Base of typed opaque parameters; nested Structs should set forbid_unknown_fields as well.

    `api_version` and `kind` (by default the class's name) say which parameter objects the class is for.
    """

    api_version: ClassVar[str] = ""
    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Name the kind after the class unless it says otherwise."""
        super().__init_subclass__()
        if "kind" not in cls.__dict__:
            cls.kind = cls.__name__

    def validate(self) -> Iterable[str]:
        """Faults that types cannot express, each one a sentence. Override as needed."""
        return ()


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


def applicable(
    config: Sequence[resource.DeviceAllocationConfiguration], driver: str, request: str
) -> tuple[resource.OpaqueDeviceConfiguration, ...]:
    """The entries of `driver` that apply to `request` (`name` or `name/subrequest`), least specific first.

    Classes come before the claim, otherwise the order of the allocation result stays (P7). An entry that names
    `gpu` applies to `gpu/small`, one that names `gpu/big` does not; an entry without requests applies to all.
    """
    wanted = {request, names.base_request(request)}
    matching = [
        entry
        for entry in config
        if entry.opaque is not None
        and entry.opaque.driver == driver
        and (not entry.requests or wanted.intersection(entry.requests))
    ]
    matching.sort(key=lambda entry: entry.source != "FromClass")
    return tuple(entry.opaque for entry in matching if entry.opaque is not None)


def decode(parameters: bytes | msgspec.Raw, classes: Sequence[type[Configuration]], where: str) -> Configuration:
    """Decode one parameters object into the class that its apiVersion and kind name.

    Args:
        parameters: JSON.
        classes: what the driver understands.
        where: shown in errors, for example "request gpu".

    Raises:
        ConfigurationError: not JSON, an unknown kind or field, a wrong type, or a fault that the class finds.
    """
    data = bytes(parameters)
    try:
        head = msgspec.json.decode(data, type=_Head)
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{where}: opaque parameters: {error}") from error
    found = next((cls for cls in classes if (cls.api_version, cls.kind) == (head.api_version, head.kind)), None)
    if found is None:
        raise ConfigurationError(f"{where}: {_unknown_kind(head, classes)}")
    fields.pop("apiVersion", None)
    fields.pop("kind", None)
    return _strict(msgspec.json.encode(fields), found, where)


def _strict(data: bytes, cls: type[Configuration], where: str) -> Configuration:
    try:
        value = msgspec.json.decode(data, type=cls)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {cls.kind}: {_explain(error, cls)}") from error
    faults = [*value.validate()]
    if faults:
        raise ConfigurationError(f"{where}: {cls.kind}: {'; '.join(faults)}")
    return value


def _unknown_kind(head: _Head, classes: Sequence[type[Configuration]]) -> str:
    known = [f"{cls.api_version} {cls.kind}" for cls in classes]
    given = f"{head.api_version} {head.kind}"
    if not known:
        return f"opaque parameters of kind {given!r}, but this driver takes none"
    near = difflib.get_close_matches(given, known, n=1, cutoff=0.0)
    return f"opaque parameters of unknown kind {given!r}: did you mean {near[0]}?"


def _explain(error: msgspec.ValidationError, cls: type[Configuration]) -> str:
    match = _UNKNOWN_FIELD.fullmatch(str(error))
    if match is None:
        return str(error)
    path = match["path"] or "$"
    near = difflib.get_close_matches(match["field"], _fields_at(cls, path), n=1, cutoff=0.5)
    advice = f": did you mean {near[0]}?" if near else ""
    return f"unknown field {path}.{match['field']}{advice}"


def _fields_at(cls: type[Configuration], path: str) -> list[str]:
    current: list[msgspec.inspect.Type] = [msgspec.inspect.type_info(cls)]
    for step in re.findall(r"\.([^.\[]+)|(\[[^\]]*\])", path):
        current = [deeper for info in current for deeper in _step(info, step[0])]
    return [field.encode_name for info in current for member in _members(info) for field in _struct_fields(member)]


def _members(info: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    if isinstance(info, msgspec.inspect.UnionType):
        yield from info.types
    else:
        yield info


def _struct_fields(info: msgspec.inspect.Type) -> tuple[msgspec.inspect.Field, ...]:
    return info.fields if isinstance(info, msgspec.inspect.StructType) else ()


def _step(info: msgspec.inspect.Type, name: str) -> Iterator[msgspec.inspect.Type]:
    for member in _members(info):
        if name:
            yield from (field.type for field in _struct_fields(member) if field.encode_name == name)
        elif isinstance(member, msgspec.inspect.CollectionType):
            yield member.item_type
        elif isinstance(member, msgspec.inspect.DictType):
            yield member.value_type


def schema_of(classes: Sequence[type[Configuration]]) -> dict[str, Any]:
    """JSON schema of the parameters that a driver takes, by `apiVersion/kind`; for documentation and editors."""
    return {f"{cls.api_version}/{cls.kind}": msgspec.json.schema(cls) for cls in classes}
