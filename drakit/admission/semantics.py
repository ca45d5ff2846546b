"""Decoded objects compared as the server compares them, and brought into the form in which it shows them."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from drakit.api import Quantity, fields

__all__ = ["equal", "fill", "plain", "raw_bytes", "tidy"]


def equal(left: Any, right: Any, name: str) -> bool:
    """Semantic equality of values of a v1 type: empty lists, maps are absent, quantities amounts, raw fields bytes."""
    return left is right or _canonical(left, name) == _canonical(right, name)


@functools.cache
def _fields(name: str) -> dict[str, fields.Field]:
    table = fields.TABLES["v1"].get(name) or fields.TABLES["v1alpha3"][name]
    return {field.name: field for field in table}


def _canonical(value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        return value
    described = _fields(name)
    members = {key: _member(member, described[key]) for key, member in value.items() if key in described}
    return {
        key: member
        for key, member in members.items()
        if (member is not None or described[key].type.name == "time") and (member or not described[key].type.item)
    }


def _member(value: Any, field: fields.Field) -> Any:
    name = field.type.name
    if field.type.shape == "object":
        return _canonical(value, name)
    if value is None:
        return None
    if name == "quantity" or field.raw:
        return _scalar(value, name)
    if field.type.shape == "list" and field.type.item == "object":
        return [_canonical(item, name) for item in value]
    if field.type.shape == "map" and field.type.item == "object":
        return {key: _canonical(item, name) for key, item in value.items()}
    return value


def _scalar(value: Any, name: str) -> Any:
    if name == "raw":
        return raw_bytes(value)
    if isinstance(value, list):
        return [Quantity.parse(item) for item in value]
    if isinstance(value, dict):
        return {key: Quantity.parse(item) for key, item in value.items()}
    return Quantity.parse(value)


def raw_bytes(value: Any) -> bytes:
    """The bytes of a raw field as they arrived."""
    return bytes(value) if isinstance(value, msgspec.Raw) else msgspec.json.encode(value)


def tidy(value: Any, name: str) -> Any:
    """Without empty lists and maps, as `omitempty` leaves them out."""
    if not isinstance(value, dict):
        return value
    described = _fields(name)
    shown: dict[str, Any] = {}
    for key, member in value.items():
        field = described.get(key)
        if field is None:
            shown[key] = member
        elif member is None:
            if field.type.name == "time":
                shown[key] = None
        elif member or not field.type.item:
            shown[key] = _tidy_member(member, field)
    return shown


def _tidy_member(value: Any, field: fields.Field) -> Any:
    name = field.type.name
    if field.type.shape == "object":
        return tidy(value, name)
    if field.type.shape == "list" and field.type.item == "object":
        return [tidy(item, name) for item in value]
    if field.type.shape == "map" and field.type.item == "object":
        return {key: tidy(item, name) for key, item in value.items()}
    return value


def fill(value: Any, name: str, version: str) -> Any:
    """With null for the lists and pointers that the API shows even when they are absent, in a served version."""
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for field in fields.TABLES[version][name]:
        member = filled.get(field.name)
        if member is None:
            if field.required and (field.pointer or field.type.item):
                filled[field.name] = None
        elif field.type.shape == "object":
            filled[field.name] = fill(member, field.type.name, version)
        elif field.type.item == "object" and field.type.shape == "list":
            filled[field.name] = [fill(item, field.type.name, version) for item in member]
        elif field.type.item == "object":
            filled[field.name] = {key: fill(item, field.type.name, version) for key, item in member.items()}
    return filled


def plain(value: Any) -> Any:
    """A deep copy without raw bytes: what a GET shows, always compact."""
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
