"""The rules of the metadata API (M13, scenario 26), each at its limit and one past it."""

import pytest

from drakit import metadata
from drakit.metadata import Attribute, Device, DeviceMetadata, NetworkData, Request

D = "gpu.example.com"


def of(device: Device) -> DeviceMetadata:
    return DeviceMetadata(requests=(Request("gpu/large", (device,)),))


def with_attribute(attribute: Attribute) -> DeviceMetadata:
    return of(Device(D, "p", "d", {"a": attribute}))


def with_network(data: NetworkData) -> DeviceMetadata:
    return of(Device(D, "p", "d", {}, data))


DEVICE = "requests[0].devices[0]"
IPS = tuple(f"10.0.0.{n}/24" for n in range(1, 18))
CASES: dict[str, tuple[DeviceMetadata, list[str]]] = {
    "nothing": (DeviceMetadata(), []),
    "everything": (
        DeviceMetadata(
            pod_claim_name="gpus",
            requests=(
                Request(
                    "gpu", (Device("GPU.example.com", "a/b.c", "gpu-0", {"x": Attribute(int=0)}, NetworkData("e")),)
                ),
            ),
        ),
        [],
    ),
    "pod claim name": (DeviceMetadata(pod_claim_name="A"), ["podClaimName"]),
    "empty pod claim name": (DeviceMetadata(pod_claim_name=""), ["podClaimName"]),
    "no request name": (DeviceMetadata(requests=(Request(""),)), ["requests[0].name"]),
    "no driver": (of(Device("", "p", "d")), [f"{DEVICE}.driver"]),
    "driver of 63": (of(Device("d" * 59 + ".com", "p", "d")), []),
    "driver of 64": (of(Device("d" * 60 + ".com", "p", "d")), [f"{DEVICE}.driver"]),
    "no pool": (of(Device(D, "", "d")), [f"{DEVICE}.pool"]),
    "bad pool": (of(Device(D, "a//b", "d")), [f"{DEVICE}.pool"]),
    "no device": (of(Device(D, "p", "")), [f"{DEVICE}.name"]),
    "device with dot": (of(Device(D, "p", "a.b")), [f"{DEVICE}.name"]),
    "32 attributes": (of(Device(D, "p", "d", {f"a{n}": Attribute(int=n) for n in range(32)})), []),
    "33 attributes": (
        of(Device(D, "p", "d", {f"a{n}": Attribute(int=n) for n in range(33)})),
        [f"{DEVICE}.attributes"],
    ),
    "no value": (with_attribute(Attribute()), [f"{DEVICE}.attributes[a]"]),
    "two values": (with_attribute(Attribute(int=0, bool=False)), [f"{DEVICE}.attributes[a]"]),
    "text of 64": (with_attribute(Attribute(string="x" * 64)), []),
    "text of 65 bytes": (with_attribute(Attribute(string="é" * 32 + "x")), [f"{DEVICE}.attributes[a].string"]),
    "texts": (with_attribute(Attribute(strings=("a", "x" * 65))), [f"{DEVICE}.attributes[a].strings"]),
    "version": (with_attribute(Attribute(version="1.0.0-a+b")), []),
    "bad version": (with_attribute(Attribute(version="v1")), [f"{DEVICE}.attributes[a].version"]),
    "bad versions": (with_attribute(Attribute(versions=("1.0.0", "1"))), [f"{DEVICE}.attributes[a].versions"]),
    "network": (with_network(NetworkData("x" * 256, IPS[:16], "x" * 128)), []),
    "long interface": (with_network(NetworkData("x" * 257)), [f"{DEVICE}.networkData.interfaceName"]),
    "long address": (with_network(NetworkData(hardware_address="x" * 129)), [f"{DEVICE}.networkData.hardwareAddress"]),
    "17 addresses": (with_network(NetworkData(ips=IPS)), [f"{DEVICE}.networkData.ips"]),
    "repeated address": (with_network(NetworkData(ips=(IPS[0], IPS[0]))), [f"{DEVICE}.networkData.ips[1]"]),
    "address without prefix": (with_network(NetworkData(ips=("10.0.0.1",))), [f"{DEVICE}.networkData.ips[0]"]),
    "address in words": (with_network(NetworkData(ips=("a/24",))), [f"{DEVICE}.networkData.ips[0]"]),
    "address in another form": (with_network(NetworkData(ips=("2001:DB8::1/64",))), [f"{DEVICE}.networkData.ips[0]"]),
    "address of six": (with_network(NetworkData(ips=("2001:db8::1/64",))), []),
}


@pytest.mark.parametrize("name", CASES)
def test_rules(name: str) -> None:
    value, expected = CASES[name]
    faults = metadata.validate(value)
    assert [fault.path for fault in faults] == expected
    assert all(str(fault).startswith(f"{fault.path}: ") for fault in faults)
