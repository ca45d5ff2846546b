"""Objects of resource.k8s.io between their served version and v1, as plain JSON values: no field is ever dropped.

v1beta2 has the shape of v1. v1beta1 differs in three places (spec/resourceslice.md 3): a device keeps everything but
its name under `basic`, a slice says "unset" as nodeName "" and allNodes false, and a request keeps the fields of
`exactly` beside its name. Fields that this module does not know travel with their neighbours.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["from_v1", "to_v1"]

Object = dict[str, Any]
_REQUEST_OWN = frozenset({"name", "firstAvailable"})


def to_v1(obj: Object, kind: str, version: str) -> Object:
    """`obj`, served as `version`, in the shape of v1; may share parts with `obj`."""
    return _TO_V1[kind](obj) if version == "v1beta1" and kind in _TO_V1 else obj


def from_v1(obj: Object, kind: str, version: str) -> Object:
    """`obj` (whole, or a merge patch of it) in the shape of `version`; may share parts with `obj`."""
    return _FROM_V1[kind](obj) if version == "v1beta1" and kind in _FROM_V1 else obj


def _slice_to_v1(obj: Object) -> Object:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    spec = {key: value for key, value in spec.items() if (key, value) not in _UNSET}
    if isinstance(spec.get("devices"), list):
        spec["devices"] = [_device_to_v1(device) for device in spec["devices"]]
    return {**obj, "spec": spec}


_UNSET = (("nodeName", ""), ("allNodes", False))


def _device_to_v1(device: Any) -> Any:
    if not isinstance(device, dict):
        return device
    return {**{key: value for key, value in device.items() if key != "basic"}, **(device.get("basic") or {})}


def _slice_from_v1(obj: Object) -> Object:
    spec = obj.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("devices"), list):
        return obj
    return {**obj, "spec": {**spec, "devices": [_device_from_v1(device) for device in spec["devices"]]}}


def _device_from_v1(device: Any) -> Any:
    if not isinstance(device, dict):
        return device
    basic = {key: value for key, value in device.items() if key != "name"}
    return {**({"name": device["name"]} if "name" in device else {}), "basic": basic}


def _request_to_v1(request: Any) -> Any:
    if not isinstance(request, dict):
        return request
    own = {key: value for key, value in request.items() if key in _REQUEST_OWN}
    flat = {key: value for key, value in request.items() if key not in _REQUEST_OWN}
    if "firstAvailable" in request:
        # The server prints the required string even where firstAvailable makes it meaningless.
        flat = {key: value for key, value in flat.items() if (key, value) != ("deviceClassName", "")}
    return {**own, "exactly": flat} if flat else own


def _request_from_v1(request: Any) -> Any:
    if not isinstance(request, dict):
        return request
    own = {key: value for key, value in request.items() if key != "exactly"}
    return {**own, **(request.get("exactly") or {})}


def _claim(convert: Callable[[Any], Any]) -> Callable[[Object], Object]:
    def claim(obj: Object) -> Object:
        spec = obj.get("spec")
        devices = spec.get("devices") if isinstance(spec, dict) else None
        requests = devices.get("requests") if isinstance(devices, dict) else None
        if not isinstance(requests, list) or not isinstance(devices, dict):
            return obj
        return {**obj, "spec": {**obj["spec"], "devices": {**devices, "requests": [convert(r) for r in requests]}}}

    return claim


def _template(convert: Callable[[Object], Object]) -> Callable[[Object], Object]:
    def template(obj: Object) -> Object:
        return {**obj, "spec": convert(obj["spec"])} if isinstance(obj.get("spec"), dict) else obj

    return template


_TO_V1: dict[str, Callable[[Object], Object]] = {
    "ResourceSlice": _slice_to_v1,
    "ResourceClaim": _claim(_request_to_v1),
    "ResourceClaimTemplate": _template(_claim(_request_to_v1)),
}
_FROM_V1: dict[str, Callable[[Object], Object]] = {
    "ResourceSlice": _slice_from_v1,
    "ResourceClaim": _claim(_request_from_v1),
    "ResourceClaimTemplate": _template(_claim(_request_from_v1)),
}
