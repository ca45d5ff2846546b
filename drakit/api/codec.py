"""Between JSON and values: `decode`, `decode_list`, `encode`, `losses`, `shape`."""

from __future__ import annotations

import contextlib
import functools
import operator
from typing import Any, Final, TypeAlias

import msgspec

from drakit.api import conversion, core, resource, wire
from drakit.api.fields import KINDS, TABLES
from drakit.api.meta import ListMeta
from drakit.api.quantity import Quantity

__all__ = ["GROUP", "Object", "decode", "decode_list", "encode", "losses", "shape", "struct_for"]

Object: TypeAlias = (
    resource.ResourceSlice
    | resource.DeviceClass
    | resource.ResourceClaim
    | resource.ResourceClaimTemplate
    | resource.DeviceTaintRule
    | resource.ResourcePoolStatusRequest
    | core.Node
    | core.Namespace
    | core.Pod
)

_STRUCTS: Final[dict[str, type[Any]]] = {
    "ResourceSlice": resource.ResourceSlice,
    "DeviceClass": resource.DeviceClass,
    "ResourceClaim": resource.ResourceClaim,
    "ResourceClaimTemplate": resource.ResourceClaimTemplate,
    "DeviceTaintRule": resource.DeviceTaintRule,
    "ResourcePoolStatusRequest": resource.ResourcePoolStatusRequest,
    "Node": core.Node,
    "Namespace": core.Namespace,
    "Pod": core.Pod,
}


GROUP: Final = "resource.k8s.io"


class _TypeMeta(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""


class _List(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    metadata: ListMeta = ListMeta()
    items: tuple[msgspec.Raw, ...] | None = None


def _enc_hook(value: object) -> object:
    if isinstance(value, Quantity):
        return str(value)
    raise TypeError(f"cannot encode {type(value).__name__}")


def _dec_hook(type_: type, value: object) -> object:
    if type_ is Quantity:
        return Quantity.parse(value if isinstance(value, str) else str(value))
    raise TypeError(f"cannot decode {type_.__name__}")


class _SliceSpec(resource.ResourceSliceSpec, frozen=True, kw_only=True, rename="camel", gc=False):
    """A slice's spec whose devices are not decoded yet."""

    devices: msgspec.Raw = msgspec.Raw(b"[]")  # type: ignore[assignment]


class _Slice(resource.ResourceSlice, frozen=True, kw_only=True, rename="camel", gc=False):
    spec: _SliceSpec


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_enc_hook)
_STABLE_ENCODER: Final = msgspec.json.Encoder(enc_hook=_enc_hook, order="deterministic")
_TYPE_META: Final = msgspec.json.Decoder(_TypeMeta)
_LIST: Final = msgspec.json.Decoder(_List)
_SLICE: Final = msgspec.json.Decoder(_Slice, dec_hook=_dec_hook)
_DEVICES: Final = msgspec.json.Decoder(tuple[resource.Device, ...], dec_hook=_dec_hook)
_SPEC_FIELDS: Final = resource.ResourceSliceSpec.__struct_fields__
_spec_values: Final = operator.attrgetter(*_SPEC_FIELDS)
_MAX_INTERNED: Final = 32_768
"""Bytes of JSON; longer lists of devices are not remembered."""


def struct_for(kind: str) -> type[Any]:
    """The struct of a kind.

    Raises:
        ValueError: drakit has no such kind.
    """
    if kind not in _STRUCTS:
        raise ValueError(f"unknown kind {kind!r}, expected one of {', '.join(sorted(_STRUCTS))}")
    return _STRUCTS[kind]


@functools.cache
def _decoder(kind: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct_for(kind), dec_hook=_dec_hook)


@functools.lru_cache(maxsize=256)
def _interned(devices: bytes) -> tuple[resource.Device, ...]:
    return _DEVICES.decode(devices)


def _decode_slice(data: bytes) -> resource.ResourceSlice:
    """A slice; most nodes of a cluster publish the same devices, so equal lists of devices become one object."""
    found = _SLICE.decode(data)
    values = dict(zip(_SPEC_FIELDS, _spec_values(found.spec), strict=True))
    devices = bytes(values["devices"])
    values["devices"] = _interned(devices) if len(devices) <= _MAX_INTERNED else _DEVICES.decode(devices)
    return resource.ResourceSlice(metadata=found.metadata, spec=resource.ResourceSliceSpec(**values))


def decode(obj: bytes | dict[str, Any], kind: str = "", version: str = "") -> Any:
    """Turn JSON (bytes, or already decoded) of any served version into a v1 value.

    `kind` and `version` are for list items, which carry neither. Values with equal contents may share parts.

    Raises:
        ValueError: Not JSON, an unknown kind, or a field of a wrong type (`msgspec.ValidationError` is one).
    """
    data = obj if isinstance(obj, bytes) else _ENCODER.encode(obj)
    if not kind:
        type_meta = _TYPE_META.decode(data)
        kind, version = type_meta.kind, version or type_meta.api_version.rpartition("/")[2]
    version = version or "v1"
    if version != "v1beta1":
        if kind == "ResourceSlice":
            with contextlib.suppress(msgspec.DecodeError):  # the decoder of whole slices names the place
                return _decode_slice(data)
        try:
            return _decoder(kind).decode(data)
        except msgspec.ValidationError:
            if kind not in KINDS:
                return _decoder(kind).decode(_ENCODER.encode(_without_nulls(msgspec.json.decode(data))))
    return _decode_slowly(data, kind, version)


def _decode_slowly(data: bytes, kind: str, version: str) -> Any:
    """For v1beta1, and for objects with nulls, which the API takes as absent."""
    if kind not in TABLES.get(version, {}):
        raise ValueError(f"resource.k8s.io/{version} has no kind {kind!r}")
    parsed = wire.parse(data, kind, version)
    if version == "v1beta1":
        try:
            return _decoder(kind).decode(_ENCODER.encode(conversion.to_v1(parsed, version)))
        except msgspec.ValidationError:
            pass
    cleaned = wire.drop_nulls(parsed, kind, version)
    return _decoder(kind).decode(_ENCODER.encode(conversion.to_v1(cleaned, version)))


def _without_nulls(value: Any) -> Any:
    """For kinds of core/v1, of which we read no raw fields."""
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


def decode_list(data: bytes, kind: str) -> tuple[ListMeta, tuple[Any, ...]]:
    """Decode the answer of a list request in any served version into v1 values."""
    listed = _LIST.decode(data)
    version = listed.api_version.rpartition("/")[2]
    return listed.metadata, tuple(decode(bytes(item), kind, version) for item in listed.items or ())


def encode(value: Object, version: str = "v1") -> dict[str, Any]:
    """Turn a value into a JSON object of the given version; see `losses` for what it cannot carry.

    Raises:
        ValueError: The version does not have the kind.
    """
    kind = type(value).__name__
    body: dict[str, Any] = msgspec.json.decode(_ENCODER.encode(value))
    if kind not in KINDS:
        return {"apiVersion": version, "kind": kind, **body}
    if version not in KINDS[kind].versions:
        raise ValueError(f"resource.k8s.io/{version} has no {kind}; it is in {', '.join(KINDS[kind].versions)}")
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, **conversion.from_v1(body, version)}


def losses(value: Object, version: str = "v1", minor: str = "1.37") -> tuple[str, ...]:
    """JSON paths (of v1) that a server of this minor loses when the value is sent in this version.

    The path `""` means that the version does not serve the kind there at all.
    """
    return wire.losses(msgspec.json.decode(_ENCODER.encode(value)), type(value).__name__, version, minor)


def shape(value: msgspec.Struct) -> bytes:
    """Content identity: the same bytes for the same content, whatever the order of maps."""
    return _STABLE_ENCODER.encode(value)
