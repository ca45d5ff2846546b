"""JSON objects on their way in and out: exact bytes of raw fields, nulls, and what a version cannot carry."""

from __future__ import annotations

import functools
from typing import Any, Final

import msgspec

from drakit.api.fields import KINDS, TABLES, Field, carried

__all__ = ["drop_nulls", "losses", "parse"]

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_ANY: Final = msgspec.json.Decoder()


def parse(data: bytes | msgspec.Raw, kind: str, version: str) -> Any:
    """Decode JSON, keeping raw fields (opaque parameters, driver data) as `msgspec.Raw`.

    Raises:
        ValueError: Not JSON.
    """
    return _parse(data, kind, version) if (version, kind) in _raw_types() else _ANY.decode(data)


@functools.cache
def _raw_types() -> frozenset[tuple[str, str]]:
    """The (version, type) pairs that contain a raw field somewhere."""
    found: set[tuple[str, str]] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for version, types in TABLES.items():
            found |= {
                (version, name)
                for name, table in types.items()
                if any(field.raw or (version, field.type.name) in found for field in table)
            }
    return frozenset(found)


@functools.cache
def _raw_fields(version: str, name: str) -> dict[str, Field]:
    return {
        field.name: field for field in TABLES[version][name] if field.raw or (version, field.type.name) in _raw_types()
    }


def _parse(data: bytes | msgspec.Raw, name: str, version: str) -> Any:
    try:
        members = _OBJECT.decode(data)
    except msgspec.ValidationError:
        return _ANY.decode(data)
    fields = _raw_fields(version, name)
    return {key: _member(value, fields.get(key), version) for key, value in members.items()}


def _member(value: msgspec.Raw, field: Field | None, version: str) -> Any:
    if field is None:
        return _ANY.decode(value)
    if field.raw:
        return value.copy()
    if field.type.shape == "object":
        return _parse(value, field.type.name, version)
    try:
        return [_parse(item, field.type.name, version) for item in _LIST.decode(value)]
    except msgspec.ValidationError:
        return _ANY.decode(value)


def drop_nulls(value: Any, kind: str, version: str) -> Any:
    """Remove members that are null (for the API: absent); raw fields keep theirs."""
    if not isinstance(value, dict):
        return value
    fields = {field.name: field for field in TABLES[version].get(kind, ())}
    cleaned: dict[str, Any] = {}
    for key, member in value.items():
        field = fields.get(key)
        if member is None:
            continue
        if field is None or field.raw or (field.type.shape != "object" and not field.type.item):
            cleaned[key] = member
        else:
            cleaned[key] = _clean_member(member, field, version)
    return cleaned


def _clean_member(member: Any, field: Field, version: str) -> Any:
    name = field.type.name
    if field.type.shape == "object":
        return drop_nulls(member, name, version)
    if field.type.shape == "list" and isinstance(member, list):
        return [drop_nulls(item, name, version) for item in member if item is not None]
    if field.type.shape == "map" and isinstance(member, dict):
        return {key: drop_nulls(item, name, version) for key, item in member.items() if item is not None}
    return member


def losses(obj: dict[str, Any], kind: str, version: str, minor: str) -> tuple[str, ...]:
    """JSON paths of a v1 object that a server of this minor drops when it is sent in this version.

    The path `""` means that the version does not serve the kind at all.
    """
    since = KINDS[kind].versions.get(version)
    if since is None or since > minor:
        return ("",)
    found: list[str] = []
    _losses(obj, kind, minor, "", found)
    if version == "v1beta1":
        found += _inexpressible(obj)
    return tuple(found)


def _losses(obj: Any, name: str, minor: str, path: str, found: list[str]) -> None:
    if not isinstance(obj, dict):
        return
    for field in _table(name):
        if field.name not in obj:
            continue
        where = f"{path}.{field.name}" if path else field.name
        value = obj[field.name]
        if not carried(field, minor):
            found.append(where)
        elif field.type.shape == "object":
            _losses(value, field.type.name, minor, where, found)
        elif field.type.shape == "list" and field.type.item == "object":
            for index, item in enumerate(value):
                _losses(item, field.type.name, minor, f"{where}[{index}]", found)
        elif field.type.shape == "map" and field.type.item == "object":
            for key, item in value.items():
                _losses(item, field.type.name, minor, f"{where}[{key}]", found)


def _table(name: str) -> tuple[Field, ...]:
    return TABLES["v1"].get(name) or TABLES["v1alpha3"][name]


def _inexpressible(obj: dict[str, Any]) -> list[str]:
    """What v1beta1 writes like an absent field: an empty node name, allNodes false, an empty `exactly`."""
    spec = obj.get("spec", {})
    found = [
        f"spec.{name}" for name, zero in (("nodeName", ""), ("allNodes", False)) if name in spec and spec[name] == zero
    ]
    prefix = "spec.spec" if "devices" not in spec and "spec" in spec else "spec"
    devices = spec.get("spec", spec).get("devices", {})
    requests = devices.get("requests", []) if isinstance(devices, dict) else []
    for index, request in enumerate(requests):
        if "exactly" in request and not any(request["exactly"].values()):
            found.append(f"{prefix}.devices.requests[{index}].exactly")
    return found
