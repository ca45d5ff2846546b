"""Defaults, on decoded v1 objects, in place. Source: spec/resourceslice.md 2.9, spec/apiserver.md 12 and 24."""

from __future__ import annotations

from typing import Any

__all__ = ["default"]

Json = dict[str, Any]


def default(obj: Json, kind: str, version: str, now: str) -> None:
    """Fill in what the server fills in; `version` is the one that the object was sent in, `now` its time."""
    spec = obj.get("spec", {})
    if kind == "ResourceSlice":
        _slice(spec, now)
    elif kind == "ResourceClaim":
        _claim(spec, version)
        for result in _results(obj):
            _tolerations(result)
    elif kind == "ResourceClaimTemplate":
        _claim(spec.get("spec", {}), version)
    elif kind == "DeviceTaintRule":
        spec["taint"].setdefault("timeAdded", now)
    elif kind == "ResourcePoolStatusRequest":
        spec.setdefault("limit", 100)


def _slice(spec: Json, now: str) -> None:
    for device in spec.get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", now)
        for mapping in device.get("nodeAllocatableResourceMappings", {}).values():
            mapping.setdefault("allocationMultiplier", "1")


def _claim(spec: Json, version: str) -> None:
    for request in spec.get("devices", {}).get("requests") or ():
        exactly = request.get("exactly")
        if exactly is not None:
            _tolerations(exactly)
            if version != "v1beta1" or exactly.get("deviceClassName"):
                _count(exactly)
        for alternative in request.get("firstAvailable") or ():
            _tolerations(alternative)
            _count(alternative)


def _count(request: Json) -> None:
    if request.setdefault("allocationMode", "ExactCount") == "ExactCount":
        request.setdefault("count", 1)


def _tolerations(owner: Json) -> None:
    for toleration in owner.get("tolerations") or ():
        toleration.setdefault("operator", "Equal")


def _results(obj: Json) -> list[Json]:
    allocation = obj.get("status", {}).get("allocation") or {}
    return allocation.get("devices", {}).get("results") or []
