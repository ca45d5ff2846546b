"""What is wrong with device metadata: the rules of its API (M13). Writers do not run them; drivers and tests may."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from drakit.api import limits, names
from drakit.api.semver import is_version
from drakit.metadata.model import Attribute, Device, DeviceMetadata, NetworkData

__all__ = ["Fault", "validate"]

_ODD_CIDR = re.compile(r"/0\d|/.*\.|%")  # taken by the parser, not in canonical form


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong: JSON path, such as `requests[0].devices[1].pool`, and what it must be."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def validate(metadata: DeviceMetadata) -> list[Fault]:
    """All faults; [] when the metadata is right."""
    return list(_metadata(metadata))


def _metadata(metadata: DeviceMetadata) -> Iterator[Fault]:
    if metadata.pod_claim_name is not None:
        yield from _each("podClaimName", names.dns_label(metadata.pod_claim_name))
    for index, request in enumerate(metadata.requests):
        path = f"requests[{index}]"
        if not request.name:
            yield Fault(f"{path}.name", "must not be empty")
        for number, device in enumerate(request.devices):
            yield from _device(device, f"{path}.devices[{number}]")


def _device(device: Device, path: str) -> Iterator[Fault]:
    yield from _each(f"{path}.driver", names.driver_name(device.driver))
    yield from _each(f"{path}.pool", names.pool_name(device.pool))
    yield from _each(f"{path}.name", names.dns_label(device.name))
    if len(device.attributes) > limits.ATTRIBUTES_AND_CAPACITIES:
        yield Fault(f"{path}.attributes", f"must have at most {limits.ATTRIBUTES_AND_CAPACITIES}")
    for name, attribute in device.attributes.items():
        yield from _attribute(attribute, f"{path}.attributes[{name}]")
    if device.network_data is not None:
        yield from _network_data(device.network_data, f"{path}.networkData")


def _attribute(attribute: Attribute, path: str) -> Iterator[Fault]:
    values: dict[str, Any] = msgspec.to_builtins(attribute)
    if len(values) != 1:
        yield Fault(path, f"must have exactly one value, not {len(values)}")
    for kind, content in values.items():
        for text in content if isinstance(content, (list, tuple)) else [content]:
            if isinstance(text, str) and len(text.encode("utf-8", "surrogatepass")) > limits.ATTRIBUTE_VALUE_LENGTH:
                yield Fault(f"{path}.{kind}", f"must have at most {limits.ATTRIBUTE_VALUE_LENGTH} bytes")
            elif kind in {"version", "versions"} and not is_version(text):
                yield Fault(f"{path}.{kind}", f"must be a semantic version such as 1.0.0, not {text!r}")


def _network_data(data: NetworkData, path: str) -> Iterator[Fault]:
    texts = {
        "interfaceName": (data.interface_name, limits.INTERFACE_NAME_LENGTH),
        "hardwareAddress": (data.hardware_address, limits.HARDWARE_ADDRESS_LENGTH),
    }
    for key, (text, limit) in texts.items():
        if len(text.encode("utf-8", "surrogatepass")) > limit:
            yield Fault(f"{path}.{key}", f"must have at most {limit} bytes")
    if len(data.ips) > limits.NETWORK_IPS:
        yield Fault(f"{path}.ips", f"must have at most {limits.NETWORK_IPS}")
    for index, address in enumerate(data.ips):
        if not _is_cidr(address):
            yield Fault(f"{path}.ips[{index}]", f"must be an address in canonical CIDR form, not {address!r}")
        elif address in data.ips[:index]:
            yield Fault(f"{path}.ips[{index}]", f"{address} is there already")


def _is_cidr(text: str) -> bool:
    try:
        return "/" in text and not _ODD_CIDR.search(text) and str(ipaddress.ip_interface(text)) == text
    except ValueError:
        return False


def _each(path: str, complaints: list[str]) -> Iterator[Fault]:
    for complaint in complaints:
        yield Fault(path, complaint)
