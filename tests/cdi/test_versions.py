"""The lowest CDI version that allows what a Spec has (P32, pain 55)."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit import cdi


def device(name: str = "dev", **edits: object) -> cdi.Device:
    return cdi.Device(name, container_edits=cdi.ContainerEdits(**edits))  # type: ignore[arg-type]


NODE = cdi.DeviceNode("/dev/a")
CASES: dict[str, tuple[str, cdi.Spec]] = {
    "nothing special": ("0.3.0", cdi.Spec("", "a/b", devices=(device(env=("A=1",), device_nodes=(NODE,)),))),
    "mount without type": ("0.3.0", cdi.Spec("", "a/b", devices=(device(mounts=(cdi.Mount("/a", "/a"),)),))),
    "mount type": ("0.4.0", cdi.Spec("", "a/b", devices=(device(mounts=(cdi.Mount("/a", "/a", type="bind"),)),))),
    "mount type for all": (
        "0.4.0",
        cdi.Spec(
            "",
            "a/b",
            devices=(device(env=("A=1",)),),
            container_edits=cdi.ContainerEdits(mounts=(cdi.Mount("/a", "/a", type="bind"),)),
        ),
    ),
    "name begins with a digit": ("0.5.0", cdi.Spec("", "a/b", devices=(device("0", env=("A=1",)),))),
    "host path of a node": (
        "0.5.0",
        cdi.Spec("", "a/b", devices=(device(device_nodes=(cdi.DeviceNode("/dev/a", "/dev/b"),)),)),
    ),
    "dot in the class": ("0.6.0", cdi.Spec("", "a/b.c", devices=(device(env=("A=1",)),))),
    "dot in the vendor": ("0.3.0", cdi.Spec("", "a.com/b", devices=(device(env=("A=1",)),))),
    "annotation": ("0.6.0", cdi.Spec("", "a/b", {"a": "b"}, devices=(device(env=("A=1",)),))),
    "annotation of a device": (
        "0.6.0",
        cdi.Spec("", "a/b", devices=(cdi.Device("d", {"a": "b"}, cdi.ContainerEdits(env=("A=1",))),)),
    ),
    "additional group": ("0.7.0", cdi.Spec("", "a/b", devices=(device(additional_gids=(5,)),))),
    "rdt": ("0.7.0", cdi.Spec("", "a/b", devices=(device(intel_rdt=cdi.IntelRdt("c")),))),
    "empty rdt": ("0.7.0", cdi.Spec("", "a/b", devices=(device(intel_rdt=cdi.IntelRdt()),))),
    "rdt schemata": ("1.1.0", cdi.Spec("", "a/b", devices=(device(intel_rdt=cdi.IntelRdt(schemata=())),))),
    "rdt monitoring": ("1.1.0", cdi.Spec("", "a/b", devices=(device(intel_rdt=cdi.IntelRdt(enable_monitoring=True)),))),
    "rdt monitoring off": (
        "0.7.0",
        cdi.Spec("", "a/b", devices=(device(intel_rdt=cdi.IntelRdt(enable_monitoring=False)),)),
    ),
    "net device": ("1.1.0", cdi.Spec("", "a/b", devices=(device(net_devices=(cdi.NetDevice("e", "n"),)),))),
}


@pytest.mark.parametrize("name", CASES)
def test_minimum_version_by_feature(name: str) -> None:
    expected, spec = CASES[name]
    assert cdi.minimum_version(spec) == expected


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=30, deadline=None)
@given(data=st.data())
def test_every_version_below_the_minimum_is_refused(data: st.DataObject, specs: st.SearchStrategy[cdi.Spec]) -> None:
    spec = data.draw(specs)
    needed = cdi.RELEASED_VERSIONS.index(cdi.minimum_version(spec))
    for index, version in enumerate(cdi.RELEASED_VERSIONS):
        declared = cdi.Spec(version, spec.kind, spec.annotations, spec.devices, spec.container_edits)
        refused = [fault for fault in cdi.validate(declared) if fault.path == "cdiVersion"]
        assert bool(refused) == (index < needed)


@pytest.mark.parametrize("version", ["v0.6.0", "0.6.0", "v1.1.0"])
def test_versions_may_have_a_v(version: str) -> None:
    assert cdi.validate(cdi.Spec(version, "a/b", devices=(device(env=("A=1",)),))) == []


@pytest.mark.parametrize("version", ["", "1", "0.9.0", "1.1.0-rc1", "2.0.0", "vv0.6.0", " 0.6.0"])
def test_other_versions_are_unknown(version: str) -> None:
    [fault] = cdi.validate(cdi.Spec(version, "a/b", devices=(device(env=("A=1",)),)))
    assert fault.path == "cdiVersion"
    assert "0.3.0" in fault.message
