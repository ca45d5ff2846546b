"""What is found before anything is sent (spec/resourceslice.md 1.8; scenario 46)."""

from typing import Any

import pytest

from drakit.api.quantity import Quantity
from drakit.api.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceAttribute,
    DeviceCapacity,
)
from drakit.driver.publication import SliceContent, Stamp
from drakit.driver.publication.checking import Fault, pool_faults, slice_faults

DRIVER = "gpu.example.com"
STAMP = Stamp(driver=DRIVER, node_name="n")


def faults(*devices: Device) -> list[str]:
    return [str(fault) for fault in slice_faults("p", SliceContent(devices=devices), STAMP, devices)]


@pytest.mark.parametrize(
    "name", ["x", "example.com/x", "sub.gpu.example.com/x", "agpu.example.com/x", "gpu.example.com.org/x"]
)
def test_46_unqualified_and_other_domains_are_fine(name: str) -> None:
    amount = DeviceCapacity(value=Quantity.parse("1"))
    assert faults(Device(name="d", attributes={name: DeviceAttribute(int=1)}, capacity={name: amount})) == []


def test_46_the_drivers_own_domain_is_not() -> None:
    amount = DeviceCapacity(value=Quantity.parse("1"))
    name = f"{DRIVER}/x"
    found = faults(Device(name="d", attributes={name: DeviceAttribute(int=1)}, capacity={name: amount}))
    assert [words.split(" is ")[0] for words in found] == [
        f"pool p, device d: attribute {name}",
        f"pool p, device d: capacity {name}",
    ]


def test_a_fault_names_device_field_and_cause() -> None:
    (found,) = faults(Device(name="ok"), Device(name="bad", attributes={"v": DeviceAttribute(version="v1")}))
    assert found.startswith("pool p, device bad: spec.devices[1].attributes[v].version: ")


def test_the_place_is_that_in_the_whole_slice() -> None:
    devices = (*(Device(name=f"d{number}") for number in range(5)), Device(name="Bad"))
    (found,) = slice_faults("p", SliceContent(devices=devices), STAMP, devices[5:])
    assert (found.field, found.device) == ("spec.devices[5].name", "Bad")


@pytest.mark.parametrize("step", ["0", "0Gi", "18446744073709551616", "1e30", "-1"])
def test_a_step_that_would_crash_the_api_server_is_never_sent(step: str) -> None:
    """Trap 12 (issues 139653, 140472)."""
    one, most = Quantity.parse("1"), Quantity.parse("8")
    spread = CapacityRequestPolicyRange(min=one, max=most, step=Quantity.parse(step))
    policy = CapacityRequestPolicy(default=one, valid_range=spread)
    capacity = {"m": DeviceCapacity(value=Quantity.parse("16"), request_policy=policy)}
    found = faults(Device(name="d", allow_multiple_allocations=True, capacity=capacity))
    assert any("requestPolicy.validRange.step" in words for words in found)


@pytest.mark.parametrize(
    ("driver", "pool", "words"),
    [
        ("Not/Valid", "p", "driver name 'Not/Valid'"),
        ("", "p", "driver name ''"),
        (DRIVER, "Bad Pool", "pool name"),
        (DRIVER, "", "pool name"),
    ],
)
def test_names_of_driver_and_pool(driver: str, pool: str, words: str) -> None:
    found = pool_faults(pool, [SliceContent()], driver, local=True)
    assert any(words in str(fault) for fault in found)


@pytest.mark.parametrize(
    ("fields", "local", "fine"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"all_nodes": True}, False, True),
        ({"all_nodes": True}, True, False),
        ({"all_nodes": True, "per_device_node_selection": True}, False, False),
        ({"per_device_node_selection": True}, False, True),
    ],
)
def test_node_selection(fields: dict[str, Any], local: bool, fine: bool) -> None:
    assert (pool_faults("p", [SliceContent(**fields)], DRIVER, local=local) == []) is fine


def test_faults_print_without_empty_parts() -> None:
    assert str(Fault(pool="p", message="m")) == "pool p: m"
    assert str(Fault(pool="p", message="m", device="d", field="f")) == "pool p, device d: f: m"
