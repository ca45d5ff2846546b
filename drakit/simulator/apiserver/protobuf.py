"""Bodies in Kubernetes' protobuf envelope, for the few kinds that kubectl's own subcommands send that way.

`kubectl create namespace`, `create configmap`, `create token`, `drain` and the like encode what they make as protobuf,
whatever the server would prefer. Answers are always JSON, which those clients accept. Unknown fields are skipped.
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from drakit.simulator.apiserver.errors import bad_request

__all__ = ["PROTOBUF", "to_json"]

PROTOBUF = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

Fields = dict[int, tuple[str, str]]
"""Field number to JSON name and type: a scalar, a message of `_MESSAGES`, `map:VALUE`, or `[]TYPE`."""

_MESSAGES: dict[str, Fields] = {
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "bytes")},
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        7: ("generation", "int"),
        8: ("creationTimestamp", "Time"),
        11: ("labels", "map:string"),
        12: ("annotations", "map:string"),
        13: ("ownerReferences", "[]OwnerReference"),
        14: ("finalizers", "[]string"),
    },
    "OwnerReference": {
        1: ("kind", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("controller", "bool"),
        7: ("blockOwnerDeletion", "bool"),
    },
    "Time": {1: ("seconds", "int"), 2: ("nanos", "int")},
    "Namespace": {1: ("metadata", "ObjectMeta"), 2: ("spec", "NamespaceSpec")},
    "NamespaceSpec": {1: ("finalizers", "[]string")},
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "map:string"),
        3: ("binaryData", "map:bytes"),
        4: ("immutable", "bool"),
    },
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "map:bytes"),
        3: ("type", "string"),
        4: ("stringData", "map:string"),
        5: ("immutable", "bool"),
    },
    "ServiceAccount": {1: ("metadata", "ObjectMeta")},
    "PriorityClass": {
        1: ("metadata", "ObjectMeta"),
        2: ("value", "int"),
        3: ("globalDefault", "bool"),
        4: ("description", "string"),
        5: ("preemptionPolicy", "string"),
    },
    "TokenRequest": {1: ("metadata", "ObjectMeta"), 2: ("spec", "TokenRequestSpec")},
    "TokenRequestSpec": {
        1: ("audiences", "[]string"),
        3: ("boundObjectRef", "BoundObjectReference"),
        4: ("expirationSeconds", "int"),
    },
    "BoundObjectReference": {
        1: ("kind", "string"),
        2: ("apiVersion", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
    },
    "SelfSubjectReview": {1: ("metadata", "ObjectMeta")},
    "SelfSubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "SelfSubjectAccessReviewSpec")},
    "SelfSubjectAccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "NonResourceAttributes"),
    },
    "ResourceAttributes": {
        1: ("namespace", "string"),
        2: ("verb", "string"),
        3: ("group", "string"),
        4: ("version", "string"),
        5: ("resource", "string"),
        6: ("subresource", "string"),
        7: ("name", "string"),
    },
    "NonResourceAttributes": {1: ("path", "string"), 2: ("verb", "string")},
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"),
        2: ("preconditions", "Preconditions"),
        4: ("propagationPolicy", "string"),
        5: ("dryRun", "[]string"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
}


def to_json(body: bytes) -> bytes:
    """The enveloped object as JSON.

    Raises:
        Refused: 400 for what is no envelope, is cut off, or is of a kind that is not read here.
    """
    if not body.startswith(_MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix k8s")
    try:
        envelope = _message(body[len(_MAGIC) :], "Unknown")
        meta = envelope.get("typeMeta", {})
        kind = meta.get("kind", "")
        if kind not in _MESSAGES:
            raise bad_request(f"{kind} is not read as protobuf by this server: send JSON or YAML")
        value = _message(base64.b64decode(envelope.get("raw", "")), kind)
    except (ValueError, IndexError) as fault:
        raise bad_request(f"malformed protobuf: {fault}") from fault
    return msgspec.json.encode({**meta, **value})


def _message(data: bytes, name: str) -> dict[str, Any]:
    fields = _MESSAGES[name]
    result: dict[str, Any] = {}
    for number, raw in _wire(data):
        if number not in fields:
            continue
        field, type_ = fields[number]
        if type_.startswith("map:"):
            key, value = _entry(raw, type_.removeprefix("map:"))
            result.setdefault(field, {})[key] = value
        elif type_.startswith("[]"):
            result.setdefault(field, []).append(_value(raw, type_.removeprefix("[]")))
        else:
            result[field] = _value(raw, type_)
    return result


def _entry(raw: int | bytes, type_: str) -> tuple[str, Any]:
    pair = dict(_wire(_bytes(raw)))
    return _bytes(pair.get(1, b"")).decode(), _value(pair.get(2, b""), type_)


def _value(raw: int | bytes, type_: str) -> Any:
    if type_ == "int":
        return _integer(raw) - (1 << 64) if _integer(raw) >> 63 else _integer(raw)
    if type_ == "bool":
        return bool(_integer(raw))
    if type_ == "string":
        return _bytes(raw).decode()
    if type_ == "bytes":
        return base64.b64encode(_bytes(raw)).decode()
    if type_ == "Time":
        seconds = _message(_bytes(raw), "Time").get("seconds")
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else None
    return _message(_bytes(raw), type_)


def _integer(raw: int | bytes) -> int:
    if isinstance(raw, bytes):
        raise ValueError("a number was expected")  # noqa: TRY004  (malformed input, not a wrong call)
    return raw


def _bytes(raw: int | bytes) -> bytes:
    if isinstance(raw, int):
        raise ValueError("bytes were expected")  # noqa: TRY004  (malformed input, not a wrong call)
    return raw


def _wire(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers with their raw values: a number for varints, bytes for everything else."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire_type = tag & 7
        if wire_type == 0:
            number, position = _varint(data, position)
            yield tag >> 3, number
            continue
        if wire_type == 2:
            length, position = _varint(data, position)
        elif wire_type in {1, 5}:
            length = 8 if wire_type == 1 else 4
        else:
            raise ValueError(f"wire type {wire_type}")
        if position + length > len(data):
            raise ValueError("unexpected end")
        yield tag >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
