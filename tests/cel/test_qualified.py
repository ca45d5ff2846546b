"""X12: a device that publishes both `x` and `<driver>/x` shows CEL the qualified value, whatever the order."""

import itertools

import pytest

from drakit import cel
from drakit.api import Quantity
from drakit.api.resource import Device, DeviceAttribute, DeviceCapacity

NAMES = ("x", "gpu.example.com/x")


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)))
def test_x12_attributes(order: tuple[str, str]) -> None:
    values = {"x": DeviceAttribute(int=1), "gpu.example.com/x": DeviceAttribute(int=2)}
    device = Device(name="d", attributes={name: values[name] for name in order})
    program = cel.Environment().compile('device.attributes["gpu.example.com"].x == 2')
    assert program.evaluate(cel.device_view("gpu.example.com", device)) is True


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)))
def test_x12_capacity(order: tuple[str, str]) -> None:
    values = {"x": Quantity.parse("1Gi"), "gpu.example.com/x": Quantity.parse("2Gi")}
    device = Device(name="d", capacity={name: DeviceCapacity(value=values[name]) for name in order})
    program = cel.Environment().compile('device.capacity["gpu.example.com"].x == quantity("2Gi")')
    assert program.evaluate(cel.device_view("gpu.example.com", device)) is True
