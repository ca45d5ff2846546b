"""DeviceMetadata as values, and the stream of versions in which files carry it (M8, M9, M25-M27).

The API group is metadata.resource.k8s.io; v1alpha1 and v1beta1 have the same fields, so one set of values serves both.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NoReturn, TypeAlias

import msgspec

__all__ = [
    "GROUP",
    "KIND",
    "VERSIONS",
    "Attribute",
    "Device",
    "DeviceMetadata",
    "MetadataError",
    "NetworkData",
    "ObjectMeta",
    "Request",
    "decode_stream",
    "encode_stream",
]

GROUP = "metadata.resource.k8s.io"
KIND = "DeviceMetadata"
VERSIONS = ("v1beta1", "v1alpha1")  # newest first, as streams carry them

_Int: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_Bool: TypeAlias = bool


class MetadataError(Exception):
    """Metadata that cannot be read, decoded or written; says why, and the file where there is one."""


class _Value(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    pass


class Attribute(_Value, frozen=True, kw_only=True):
    """One attribute of a device; exactly one field is set."""

    int: _Int | None = None
    bool: _Bool | None = None
    string: str | None = None
    version: str | None = None
    ints: tuple[_Int, ...] = ()
    bools: tuple[_Bool, ...] = ()
    strings: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()

    @property
    def value(self) -> "_Int | _Bool | str | tuple[_Int, ...] | tuple[_Bool, ...] | tuple[str, ...] | None":
        """The field that is set."""
        scalars = (self.int, self.bool, self.string, self.version)
        lists = (self.ints, self.bools, self.strings, self.versions)
        return next((field for field in scalars if field is not None), next((field for field in lists if field), None))


class NetworkData(_Value, frozen=True):
    """What is known of a network device: name in the container, addresses in CIDR form, hardware address."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class Device(_Value, frozen=True):
    """One allocated device. Attributes are what its driver chose to tell, e.g. `resource.kubernetes.io/pciBusID`."""

    driver: str
    pool: str
    name: str
    attributes: dict[str, Attribute] = {}
    network_data: NetworkData | None = None


class Request(_Value, frozen=True):
    """The devices allocated for one request; `name` is the full `request/subrequest` where there are alternatives."""

    name: str
    devices: tuple[Device, ...] = ()


class ObjectMeta(_Value, frozen=True):
    """The claim's identity; `generation` rises with each update of the metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: _Int = 0


class DeviceMetadata(_Value, frozen=True):
    """What a container may know of its devices. `pod_claim_name` is the pod's own name for a claim from a template."""

    metadata: ObjectMeta = ObjectMeta()
    pod_claim_name: str | None = None
    requests: tuple[Request, ...] = ()


def encode_stream(value: DeviceMetadata, versions: Sequence[str] = VERSIONS) -> bytes:
    """One JSON object per version, in the order given, each indented by two blanks and ended by a newline (M8)."""
    ordered = msgspec.structs.replace(
        value,
        requests=tuple(
            msgspec.structs.replace(request, devices=tuple(map(_with_sorted_attributes, request.devices)))
            for request in value.requests
        ),
    )
    body = {"metadata": {}} | msgspec.to_builtins(ordered)
    return b"".join(
        _escaped(msgspec.json.format(msgspec.json.encode({"kind": KIND, "apiVersion": f"{GROUP}/{version}"} | body)))
        + b"\n"
        for version in versions
    )


def decode_stream(data: bytes) -> DeviceMetadata:
    """The first object of a known version in a stream; objects of other versions are passed over (M25).

    Raises:
        MetadataError: broken before such an object (M26), or none in the stream (M27).
    """
    unknown: list[str] = []
    for value in _objects(data.decode("utf-8", "replace")):
        version = _version(value)
        if version in (f"{GROUP}/{known}" for known in VERSIONS):
            return _decode(value, version)
        unknown.append(version)
    if unknown:
        found = ", ".join(unknown)
        raise MetadataError(f"no compatible metadata version found in stream (unknown versions: {found})")
    raise MetadataError("no metadata objects found in stream")


def _with_sorted_attributes(device: Device) -> Device:
    return msgspec.structs.replace(device, attributes=dict(sorted(device.attributes.items())))


def _escaped(text: bytes) -> bytes:
    # As Go's encoder writes them: files of all drivers are the same byte for byte.
    for character in "<>&\u2028\u2029":
        text = text.replace(character.encode(), f"\\u{ord(character):04x}".encode())
    return text


def _objects(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(parse_constant=_refuse)
    position = 0
    while True:
        position = _skip_blanks(text, position)
        if position == len(text) or text[position] in "]}":
            return
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise MetadataError(f"read metadata object from stream: {error}") from error
        yield value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _version(value: Any) -> str:
    if not isinstance(value, dict) or not isinstance(value.get("apiVersion") or "", str):
        raise MetadataError("decode metadata object: not an object with a string apiVersion")
    version: str = value.get("apiVersion") or ""
    if not version:
        raise MetadataError("decode metadata object: apiVersion is missing")
    if not value.get("kind"):
        raise MetadataError(f"decode {version}: kind is missing")
    return version


def _decode(value: dict[str, Any], version: str) -> DeviceMetadata:
    if value["kind"] != KIND:
        raise MetadataError(f"decode {version}: kind {value['kind']!r} is not {KIND}")
    try:
        return msgspec.convert(_completed(_without_nulls(value)), DeviceMetadata)
    except msgspec.ValidationError as error:
        raise MetadataError(f"decode {version}: {error}") from error


def _completed(value: dict[str, Any]) -> dict[str, Any]:
    # Writers may leave out empty strings.
    requests = value.get("requests")
    for request in requests if isinstance(requests, list) else ():
        if isinstance(request, dict):
            request.setdefault("name", "")
            devices = request.get("devices")
            for device in devices if isinstance(devices, list) else ():
                if isinstance(device, dict):
                    device.update({key: device.get(key, "") for key in ("driver", "pool", "name")})
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(content) for key, content in value.items() if content is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
