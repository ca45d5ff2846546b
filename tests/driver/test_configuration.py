"""Opaque configuration: precedence, matching, strict decoding (P7; pains 43-45)."""

from typing import Any, ClassVar, Literal

import msgspec
import pytest

from drakit.api import resource
from drakit.driver import Configuration
from drakit.driver.configuration import applicable, decode, schema_of
from drakit.driver.errors import ConfigurationError

DRIVER = "gpu.example.com"


class Slicing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    time_slice: str = "Short"


class GpuConfig(Configuration, frozen=True):
    api_version: ClassVar[str] = "gpu.example.com/v1"

    strategy: Literal["Exclusive", "TimeSlicing"] = "Exclusive"
    slicing: Slicing | None = None
    ports: tuple[Slicing, ...] = ()
    by_name: dict[str, Slicing] = msgspec.field(default_factory=dict)

    def validate(self) -> Any:
        if self.slicing is not None and self.strategy != "TimeSlicing":
            yield "slicing needs strategy TimeSlicing"


class Other(Configuration, frozen=True):
    api_version: ClassVar[str] = "gpu.example.com/v1"
    kind: ClassVar[str] = "OtherConfig"


def entry(source: str, parameters: str, *requests: str, driver: str = DRIVER) -> resource.DeviceAllocationConfiguration:
    return resource.DeviceAllocationConfiguration(
        source=source,
        requests=requests,
        opaque=resource.OpaqueDeviceConfiguration(driver=driver, parameters=msgspec.Raw(parameters.encode())),
    )


def chosen(request: str, *entries: resource.DeviceAllocationConfiguration) -> list[str]:
    return [bytes(found.parameters).decode() for found in applicable(entries, DRIVER, request)]


def test_p7_classes_come_before_the_claim_and_order_stays_otherwise() -> None:
    entries = (
        entry("FromClaim", "1"),
        entry("FromClass", "2"),
        entry("FromClaim", "3"),
        entry("FromClass", "4"),
    )
    assert chosen("gpu", *entries) == ["2", "4", "1", "3"]


def test_p7_other_drivers_parameters_are_not_ours() -> None:
    assert chosen("gpu", entry("FromClaim", "1", driver="nic.example.com"), entry("FromClaim", "2")) == ["2"]


@pytest.mark.parametrize(
    ("requests", "request_", "applies"),
    [
        ((), "gpu", True),
        ((), "gpu/big", True),
        (("gpu",), "gpu", True),
        (("gpu",), "gpu/big", True),
        (("gpu/big",), "gpu/big", True),
        (("gpu/small",), "gpu/big", False),
        (("gpu/big",), "gpu", False),
        (("nic", "gpu"), "gpu", True),
        (("gp",), "gpu", False),
    ],
)
def test_pains_43_subrequests(requests: Any, request_: Any, applies: Any) -> None:
    assert bool(chosen(request_, entry("FromClaim", "1", *requests))) is applies


def test_decoding_and_defaults() -> None:
    text = b'{"kind": "GpuConfig", "apiVersion": "gpu.example.com/v1", "strategy": "TimeSlicing", "slicing": {}}'
    config = decode(text, [Other, GpuConfig], "request gpu")
    assert config == GpuConfig(strategy="TimeSlicing", slicing=Slicing())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ('"stratgy": "x"', "request gpu: GpuConfig: unknown field $.stratgy: did you mean strategy?"),
        ('"slicing": {"timeslice": "x"}', "GpuConfig: unknown field $.slicing.timeslice: did you mean timeSlice?"),
        ('"ports": [{}, {"x": 1}]', "GpuConfig: unknown field $.ports[1].x"),
        ('"byName": {"a": {"timeSlise": 1}}', "unknown field $.byName[...].timeSlise: did you mean timeSlice?"),
        ('"strategy": "Sometimes"', "Invalid enum value 'Sometimes' - at `$.strategy`"),
        ('"strategy": 5', "Expected `str`, got `int` - at `$.strategy`"),
        ('"slicing": {}', "GpuConfig: slicing needs strategy TimeSlicing"),
    ],
)
def test_pains_45_strictness_names_path_and_suggestion(fields: Any, message: Any) -> None:
    text = f'{{"apiVersion": "gpu.example.com/v1", "kind": "GpuConfig", {fields}}}'.encode()
    with pytest.raises(ConfigurationError) as error:
        decode(text, [GpuConfig], "request gpu")
    assert message in str(error.value)
    assert error.value.permanent


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"apiVersion": "gpu.example.com/v1", "kind": "GpuConfg"}', "did you mean gpu.example.com/v1 GpuConfig?"),
        (b"{}", "of unknown kind"),
        (b"[]", "opaque parameters: Expected `object`"),
        (b"{", "opaque parameters: Input data was truncated"),
        (b'"text"', "opaque parameters: Expected `object`"),
    ],
)
def test_unknown_kinds_and_broken_parameters(text: Any, message: Any) -> None:
    with pytest.raises(ConfigurationError) as error:
        decode(text, [Other, GpuConfig], "request gpu")
    assert message in str(error.value)


def test_a_driver_without_parameters_refuses_all() -> None:
    with pytest.raises(ConfigurationError, match="this driver takes none"):
        decode(b'{"kind": "X", "apiVersion": "v"}', [], "request gpu")


def test_schema_for_documentation() -> None:
    assert set(schema_of([GpuConfig])) == {"gpu.example.com/v1/GpuConfig"}


async def test_74_configurations_reach_the_hook_per_request_in_order(node: Any, driver: Any) -> None:
    seen: list[Any] = []

    def prepare(claim: Any) -> Any:
        seen.extend((device.request, device.configuration(GpuConfig).strategy) for device in claim.devices)
        seen.append(len(claim.devices[0].configurations))
        return []

    driver.configurations = (GpuConfig,)
    driver.on_prepare = prepare
    _, kubelet = await node.start(driver)

    def config(source: str, strategy: str, *requests: str) -> dict[str, Any]:
        parameters = {"apiVersion": "gpu.example.com/v1", "kind": "GpuConfig", "strategy": strategy}
        return {
            "source": source,
            "requests": list(requests),
            "opaque": {"driver": DRIVER, "parameters": parameters},
        }

    claim = node.claim(
        "c",
        {"request": "a", "device": "gpu-0"},
        {"request": "b", "device": "gpu-1"},
        config=[config("FromClass", "TimeSlicing"), config("FromClaim", "Exclusive", "a")],
    )
    reply = (await kubelet.prepare(claim))[claim.uid]
    assert reply.error == ""
    assert seen == [("a", "Exclusive"), ("b", "TimeSlicing"), 2]


async def test_a_wrong_configuration_fails_the_claim_before_its_hook(node: Any, driver: Any) -> None:
    driver.configurations = (GpuConfig,)
    _, kubelet = await node.start(driver)
    parameters = {"apiVersion": "gpu.example.com/v1", "kind": "GpuConfig", "stratgy": "x"}
    claim = node.claim(
        "c",
        "gpu-0",
        config=[{"source": "FromClaim", "opaque": {"driver": DRIVER, "parameters": parameters}}],
    )
    error = (await kubelet.prepare(claim))[claim.uid].error
    assert error == "request r: GpuConfig: unknown field $.stratgy: did you mean strategy?"
    assert (driver.prepared, node.files()) == ([], [])
