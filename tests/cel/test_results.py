"""Derived attributes: values with their return-type check, and the device view they are evaluated on."""

from __future__ import annotations

from typing import Any

import pytest

from drakit import api, cel
from drakit.api.resource import Device, DeviceAttribute, DeviceCapacity

A = 'device.attributes["gpu.example.com"]'


@pytest.mark.parametrize(
    ("expression", "value", "attribute"),
    [
        (f"{A}.model + '-x'", "LATEST-x", DeviceAttribute(string="LATEST-x")),
        (f"{A}.index + 1", 4, DeviceAttribute(int=4)),
        ("device.allowMultipleAllocations", True, DeviceAttribute(bool=True)),
        (f"{A}.version", api.Semver.parse("1.2.3-rc.1+build"), DeviceAttribute(version="1.2.3-rc.1+build")),
        (f"{A}.numbers.sort()", (1, 2, 3), DeviceAttribute(ints=(1, 2, 3))),
        ("[true]", (True,), DeviceAttribute(bools=(True,))),
        (f"{A}.names.map(n, n + '!')", ("a!", "b!", "c!"), DeviceAttribute(strings=("a!", "b!", "c!"))),
        ("[semver('1.0.0')]", (api.Semver.parse("1.0.0"),), DeviceAttribute(versions=("1.0.0",))),
    ],
)
def test_values(
    environment: cel.Environment, gpu: cel.DeviceView, expression: str, value: Any, attribute: DeviceAttribute
) -> None:
    program = environment.compile(expression, result="value")
    assert program.evaluate(gpu) == value
    assert program.attribute(gpu) == attribute


@pytest.mark.parametrize(
    "expression", ["1.5", "null", "{'a': 1}", "quantity('1')", "[1.5]", "[[1]]", "1u", "optional.of(1)"]
)
def test_types_that_no_attribute_has(environment: cel.Environment, expression: str) -> None:
    with pytest.raises(
        cel.CompileError, match=r"^must evaluate to a string, int, bool or semver, or a list of them, not"
    ):
        environment.compile(expression, result="value")


@pytest.mark.parametrize("expression", ["dyn(1.5)", f"dyn([{A}.index, 'a'])", "dyn(quantity('1'))", "[dyn(null)]"])
def test_values_that_no_attribute_has(environment: cel.Environment, gpu: cel.DeviceView, expression: str) -> None:
    if "'a'" in expression:
        expression = f"[dyn({A}.index)] + [dyn('a')]"
    with pytest.raises(cel.EvaluationError, match=r"an attribute cannot have a value of type"):
        environment.compile(expression, result="value").evaluate(gpu)


def test_lists_need_the_gate() -> None:
    with pytest.raises(cel.CompileError, match=r"^must evaluate to a string, int, bool or semver, not list\(int\)$"):
        cel.Environment("1.37", features=(), stored=False).compile("[1]", result="value")


@pytest.mark.parametrize(("expression", "value"), [("1", 1), ("'a'", "a"), ("true", True), ("dyn(1)", 1)])
def test_scalars_need_no_gate(gpu: cel.DeviceView, expression: str, value: Any) -> None:
    assert cel.Environment(features=()).compile(expression, result="value").evaluate(gpu) == value


def test_a_list_that_shows_at_run_time_needs_the_gate_too(gpu: cel.DeviceView, environment: cel.Environment) -> None:
    assert environment.compile("dyn([1, 2])", result="value").evaluate(gpu) == (1, 2)
    with pytest.raises(cel.EvaluationError, match=r"^an attribute cannot have a value of type list$"):
        cel.Environment(features=()).compile("dyn([1, 2])", result="value").evaluate(gpu)


def test_costs_add_up(environment: cel.Environment) -> None:
    programs = [environment.compile(each, result="value") for each in (f"{A}.index", f"{A}.model + 'x'")]
    assert [program.cost for program in programs] == [4, 11]


def test_unknown_result(environment: cel.Environment) -> None:
    with pytest.raises(ValueError, match=r"result must be one of"):
        environment.compile("true", result="int")


class TestDeviceView:
    device = Device(
        name="x",
        attributes={
            "plain": DeviceAttribute(string="a"),
            "other.example.com/plain": DeviceAttribute(int=1),
            "list": DeviceAttribute(versions=("1.0.0", "2.0.0")),
            "empty": DeviceAttribute(),
        },
        capacity={
            "memory": DeviceCapacity(value=api.Quantity.parse("1Gi")),
            "other.example.com/memory": DeviceCapacity(value=api.Quantity.parse("2Gi")),
        },
    )

    def matches(self, expression: str) -> Any:
        return cel.Environment().compile(expression).evaluate(cel.device_view("d.example.com", self.device))

    def test_domains(self) -> None:
        assert self.matches('device.attributes["d.example.com"].plain == "a"')
        assert self.matches('device.attributes["other.example.com"].plain == 1')
        assert self.matches(
            'device.capacity["d.example.com"].memory.isLessThan(device.capacity["other.example.com"].memory)'
        )
        assert self.matches('device.attributes["d.example.com"].list[1] == semver("2.0.0")')
        assert self.matches('device.driver == "d.example.com" && !device.allowMultipleAllocations')

    def test_a_device_as_a_value(self) -> None:
        assert self.matches("device == device && type(device) != type(device.driver)")

    def test_one_invalid_version_in_a_list(self) -> None:
        device = Device(name="x", attributes={"v": DeviceAttribute(versions=("1.0.0", "x"))})
        view = cel.device_view("d", device)
        with pytest.raises(cel.EvaluationError, match=r"^attribute v: parse semantic version: No Major"):
            cel.Environment().compile("true").evaluate(view)
