"""Between JSON and values: `decode`, `decode_list`, `encode`, `shape`."""

from __future__ import annotations

import functools
from typing import Any, Final, TypeAlias

import msgspec

from drakit.api import core, resource
from drakit.api.meta import ListMeta
from drakit.api.quantity import Quantity

__all__ = ["Object", "decode", "decode_list", "encode", "shape", "struct_for"]

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


class _TypeMeta(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""


class _List(msgspec.Struct, rename="camel", gc=False):
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


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_enc_hook)
_STABLE_ENCODER: Final = msgspec.json.Encoder(enc_hook=_enc_hook, order="deterministic")
_TYPE_META: Final = msgspec.json.Decoder(_TypeMeta)
_LIST: Final = msgspec.json.Decoder(_List)


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


def decode(obj: bytes | dict[str, Any], kind: str = "") -> Any:
    """Turn JSON (bytes, or already decoded) into a value; `kind` for list items, which do not carry it.

    Raises:
        ValueError: Not JSON, an unknown kind, or a field of a wrong type (`msgspec.ValidationError` is one).
    """
    data = obj if isinstance(obj, bytes) else _ENCODER.encode(obj)
    return _decoder(kind or _TYPE_META.decode(data).kind).decode(data)


def decode_list(data: bytes, kind: str) -> tuple[ListMeta, tuple[Any, ...]]:
    """Decode the answer of a list request."""
    listed = _LIST.decode(data)
    return listed.metadata, tuple(decode(bytes(item), kind) for item in listed.items or ())


def encode(value: Object, version: str = "v1") -> dict[str, Any]:
    """Turn a value into JSON objects of the given version."""
    kind = type(value).__name__
    group = "resource.k8s.io/" if kind not in {"Node", "Namespace", "Pod"} else ""
    body: dict[str, Any] = msgspec.json.decode(_ENCODER.encode(value))
    return {"apiVersion": f"{group}{version}", "kind": kind, **body}


def shape(value: msgspec.Struct) -> bytes:
    """Content identity: the same bytes for the same content, whatever the order of maps."""
    return _STABLE_ENCODER.encode(value)
