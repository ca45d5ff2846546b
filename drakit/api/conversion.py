"""Between the versions of resource.k8s.io, on JSON objects: v1beta1 to v1 and back; v1beta2 and v1alpha3 look like v1.

v1beta1 keeps the body of a device in `basic`, has flat requests, and writes an unset node name or allNodes as the zero
value. Inputs are not changed; unknown and malformed parts pass as they are. Source: spec/resourceslice.md 3.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["from_v1", "to_v1"]

_FLAT: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "derivedAttributes",
)
_ABSENT_WHEN_ZERO: Final = frozenset({"deviceClassName", "allocationMode", "count"})


def to_v1(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """Turn the body of an object (any kind) from a served version into v1; apiVersion is left alone."""
    return _convert(obj, _slice_to_v1, _request_to_v1) if version == "v1beta1" else obj


def from_v1(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """Turn the body of a v1 object (any kind) into a served version; apiVersion is left alone."""
    return _convert(obj, _slice_from_v1, _request_from_v1) if version == "v1beta1" else obj


def _convert(obj: dict[str, Any], slice_spec: Any, request: Any) -> dict[str, Any]:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    if "devices" not in spec and isinstance(spec.get("spec"), dict):  # a template
        return {**obj, "spec": {**spec, "spec": _claim_spec(spec["spec"], request)}}
    if isinstance(spec.get("devices"), dict):
        return {**obj, "spec": _claim_spec(spec, request)}
    if obj.get("kind") == "ResourceSlice" or isinstance(spec.get("devices"), list):
        return {**obj, "spec": slice_spec(spec)}
    return obj


def _claim_spec(spec: dict[str, Any], request: Any) -> dict[str, Any]:
    devices = spec.get("devices")
    if not isinstance(devices, dict) or not isinstance(devices.get("requests"), list):
        return spec
    requests = [request(each) if isinstance(each, dict) else each for each in devices["requests"]]
    return {**spec, "devices": {"requests": requests, **{k: v for k, v in devices.items() if k != "requests"}}}


def _slice_to_v1(spec: dict[str, Any]) -> dict[str, Any]:
    converted = dict(spec)
    for name, zero in (("nodeName", ""), ("allNodes", False)):
        if converted.get(name, zero) == zero:
            converted.pop(name, None)
    if isinstance(spec.get("devices"), list):
        converted["devices"] = [_device_to_v1(each) for each in spec["devices"]]
    return converted


def _device_to_v1(device: Any) -> Any:
    if not isinstance(device, dict) or "basic" not in device:
        return device
    body = device["basic"]
    outer = {name: value for name, value in device.items() if name != "basic"}
    return {**outer, **body} if isinstance(body, dict) else outer


def _slice_from_v1(spec: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(spec.get("devices"), list):
        return spec
    return {**spec, "devices": [_device_from_v1(each) for each in spec["devices"]]}


def _device_from_v1(device: Any) -> Any:
    if not isinstance(device, dict):
        return device
    body = {name: value for name, value in device.items() if name != "name"}
    return {"name": device.get("name", ""), "basic": body}


def _request_to_v1(request: dict[str, Any]) -> dict[str, Any]:
    flat = {name: request[name] for name in _FLAT if request.get(name) is not None}
    outer = {name: value for name, value in request.items() if name not in _FLAT}
    if not any(value or name not in _ABSENT_WHEN_ZERO for name, value in flat.items()):
        return outer
    return {**outer, "exactly": {"deviceClassName": "", **flat}}


def _request_from_v1(request: dict[str, Any]) -> dict[str, Any]:
    exactly = request.get("exactly")
    outer = {name: value for name, value in request.items() if name != "exactly"}
    body = exactly if isinstance(exactly, dict) else {}
    named = {"name": outer.pop("name")} if "name" in outer else {}
    return {**named, "deviceClassName": "", **body, **outer}
