"""Fields of features that are off: dropped, unless the stored object uses the feature already.

Use is per feature and over the whole object, whichever device or request has it. Source: spec/resourceslice.md 2.9,
spec/apiserver.md Gates off.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from drakit.api import fields

if TYPE_CHECKING:
    from drakit.admission.policy import Policy

__all__ = ["prune"]

_ALSO_NEEDED: Final = {
    "DRADeviceBindingConditions": "DRAResourceClaimDeviceStatus",
    "DRADeviceCompatibilityGroups": "DRAPartitionableDevices",
}


def prune(obj: dict[str, Any], old: dict[str, Any] | None, kind: str, policy: Policy) -> list[str]:
    """Drop, in place, what the disabled features brought; returns the JSON paths that went."""
    disabled = _disabled(policy)
    gates = _gates_of(kind) & disabled
    if not gates:
        return []
    kept = gates & _used(old, kind, gates) if old else frozenset()
    dropped: list[str] = []
    _drop(obj, kind, gates - kept, "", dropped)
    return dropped


@functools.lru_cache(maxsize=256)
def _disabled(policy: Policy) -> frozenset[str]:
    gates = {field.gate for types in fields.TABLES.values() for table in types.values() for field in table}
    return frozenset(
        gate
        for gate in gates
        if gate and not (policy.on(gate) and (gate not in _ALSO_NEEDED or policy.on(_ALSO_NEEDED[gate])))
    )


@functools.cache
def _gates_of(name: str) -> frozenset[str]:
    """All gates of fields below a type."""
    found: set[str] = set()
    for field in _table(name):
        found |= {field.gate} - {""}
        if _is_object(field):
            found |= _gates_of(field.type.name)
    return frozenset(found)


def _table(name: str) -> fields.Table:
    return fields.TABLES["v1"].get(name) or fields.TABLES["v1alpha3"][name]


def _is_object(field: fields.Field) -> bool:
    return field.type.shape == "object" or field.type.item == "object"


@functools.lru_cache(maxsize=1024)
def _relevant(name: str, gates: frozenset[str]) -> tuple[tuple[fields.Field, bool], ...]:
    """The fields of a type that are gated themselves (True), or may hold such fields (False)."""
    found = []
    for field in _table(name):
        if field.gate in gates:
            found.append((field, True))
        elif _is_object(field) and _gates_of(field.type.name) & gates:
            found.append((field, False))
    return tuple(found)


def _items(value: Any, field: fields.Field) -> list[tuple[str, Any]]:
    """The objects below a field with what they add to the path."""
    if field.type.shape == "object":
        return [("", value)]
    if field.type.shape == "list":
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    return [(f"[{key}]", item) for key, item in value.items()]


def _used(obj: dict[str, Any], name: str, gates: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for field, gated in _relevant(name, gates):
        value = obj.get(field.name)
        if value is None or (field.type.item and not value):
            continue
        if gated:
            found.add(field.gate)
        if _is_object(field):
            for _, item in _items(value, field):
                found |= _used(item, field.type.name, gates)
    return frozenset(found)


def _drop(obj: dict[str, Any], name: str, gates: frozenset[str], path: str, dropped: list[str]) -> None:
    for field, gated in _relevant(name, gates):
        value = obj.get(field.name)
        if value is None:
            continue
        where = f"{path}.{field.name}" if path else field.name
        if gated:
            del obj[field.name]
            dropped.append(where)
        elif _is_object(field):
            for suffix, item in _items(value, field):
                _drop(item, field.type.name, gates, where + suffix, dropped)
