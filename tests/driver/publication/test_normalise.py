"""Attributes made fit (issue 7.7; pains 13-15; traps 10 and 11)."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit import admission
from drakit.api.quantity import Quantity
from drakit.api.resource import Device, DeviceAttribute, DeviceCapacity
from drakit.driver.publication import Action, Normaliser, Policy
from drakit.driver.publication.normalise import semver_like, truncate

DRIVER = "gpu.example.com"
quick = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])


def run(attributes: dict[str, DeviceAttribute], policy: Policy | None = None, **fields: Any) -> tuple[Any, list[str]]:
    device, adjustments = Normaliser(DRIVER, policy).device(Device(name="d", attributes=attributes, **fields))
    return device, [str(each) for each in adjustments]


def version(text: str) -> dict[str, DeviceAttribute]:
    return {"v": DeviceAttribute(version=text)}


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("580.159.04", "580.159.4"),
        ("6.10.5.1", "6.10.5+1"),
        ("v1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("V2.3.4-rc.1", "2.3.4-rc.1"),
        (" 1.0.0 ", "1.0.0"),
        ("1.2.3.4.5+build", "1.2.3+4.5.build"),
        ("550.54.14-", "550.54.14"),
        ("00.1.2", "0.1.2"),
    ],
)
def test_13_versions_are_normalised(text: str, normal: str) -> None:
    device, adjustments = run(version(text))
    assert device.attributes == version(normal)
    assert len(adjustments) == 1
    assert repr(text)[1:-1] in adjustments[0]


@pytest.mark.parametrize("text", ["", "unknown", "r1", "-1.0.0", "x" * 65, "1..2"])
def test_13_what_has_no_version_becomes_a_string(text: str) -> None:
    device, adjustments = run(version(text))
    assert device.attributes == {"v": DeviceAttribute(string=text[:64])}
    assert adjustments


@pytest.mark.parametrize("text", ["1.0.0", "0.0.1-alpha+x", "1.2.3-0a", "5.15.0-91-generic"])
def test_semantic_versions_are_left_alone(text: str) -> None:
    device, adjustments = run(version(text))
    assert device.attributes == version(text)
    assert adjustments == []


@pytest.mark.parametrize(
    ("action", "attributes", "kept"),
    [
        (Action.STRING, {"v": DeviceAttribute(string="v1")}, True),
        (Action.DROP, {}, True),
        (Action.FAIL, None, False),
    ],
)
def test_the_policy_decides_about_versions(action: Action, attributes: Any, kept: bool) -> None:
    for policy in (Policy(version=action), Policy(attributes={"v": action})):
        device, adjustments = run(version("v1"), policy)
        assert (device is not None) is kept
        assert len(adjustments) == 1
        if kept:
            assert device.attributes == attributes


def test_14_long_strings_are_cut_at_a_character() -> None:
    device, adjustments = run({"s": DeviceAttribute(string="ü" * 40)})
    assert device.attributes["s"].string == "ü" * 32
    assert "80 bytes" in adjustments[0]
    device, _ = run({"s": DeviceAttribute(string="a" + "ü" * 40)})
    assert device.attributes["s"].string == "a" + "ü" * 31
    assert len(device.attributes["s"].string.encode()) == 63


@pytest.mark.parametrize("action", [Action.DROP, Action.FAIL])
def test_14_long_strings_by_policy(action: Action) -> None:
    device, adjustments = run(
        {"s": DeviceAttribute(string="x" * 65), "i": DeviceAttribute(int=1)}, Policy(string=action)
    )
    assert len(adjustments) == 1
    assert (device is None) if action is Action.FAIL else (set(device.attributes) == {"i"})


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("vendor-id", "vendor_id"),
        ("a.b", "a_b"),
        ("3d", "_3d"),
        ("x" * 33, "x" * 32),
        ("example.com/a-b", "example.com/a_b"),
        ("größe", "gr__e"),
    ],
)
def test_15_names_are_normalised(name: str, normal: str) -> None:
    device, adjustments = run({name: DeviceAttribute(int=1)})
    assert set(device.attributes) == {normal}
    assert name in adjustments[0]
    assert "device d" in adjustments[0]


@pytest.mark.parametrize("name", ["", "/", "a/", "---", "bad_domain/x", "x" * 64 + "/a", "/x"])
def test_15_names_without_a_legal_form_are_left_out(name: str) -> None:
    device, adjustments = run({name: DeviceAttribute(int=1), "ok": DeviceAttribute(int=2)})
    assert set(device.attributes) == {"ok"}
    assert adjustments


def test_15_names_by_policy() -> None:
    attributes = {"a-b": DeviceAttribute(int=1)}
    assert run(attributes, Policy(name=Action.FAIL))[0] is None
    assert run(attributes, Policy(name=Action.DROP))[0].attributes == {}
    assert run(attributes, Policy(attributes={"a-b": Action.DROP}))[0].attributes == {}


def test_the_drivers_own_domain_is_left_away_and_duplicates_are_dropped() -> None:
    """Trap 11: CEL found either of them at random."""
    device, adjustments = run({f"{DRIVER}/x": DeviceAttribute(int=1), "y": DeviceAttribute(int=2)})
    assert set(device.attributes) == {"x", "y"}
    assert adjustments == []
    device, adjustments = run({"x": DeviceAttribute(int=1), f"{DRIVER}/x": DeviceAttribute(int=2)})
    assert device.attributes == {"x": DeviceAttribute(int=1)}
    assert "is the same as x" in adjustments[0]
    twice = {"x": DeviceAttribute(int=1), f"{DRIVER}/x": DeviceAttribute(int=2)}
    assert run(twice, Policy(duplicate=Action.FAIL))[0] is None


def test_a_mended_name_never_displaces_a_good_one() -> None:
    device, adjustments = run({"a-b": DeviceAttribute(int=1), "a_b": DeviceAttribute(int=2)})
    assert device.attributes == {"a_b": DeviceAttribute(int=2)}
    assert len(adjustments) == 2


def test_capacities_have_names_too() -> None:
    amount = DeviceCapacity(value=Quantity.parse("1"))
    device, adjustments = run({}, capacity={"mem-size": amount, f"{DRIVER}/lanes": amount})
    assert set(device.capacity) == {"mem_size", "lanes"}
    assert len(adjustments) == 1


def test_lists_item_by_item() -> None:
    device, adjustments = run(
        {
            "versions": DeviceAttribute(versions=("1.0.0", "v2", "none")),
            "strings": DeviceAttribute(strings=("ok", "x" * 70)),
            "gone": DeviceAttribute(versions=("none",)),
        }
    )
    assert device.attributes == {
        "versions": DeviceAttribute(versions=("1.0.0", "2.0.0")),
        "strings": DeviceAttribute(strings=("ok", "x" * 64)),
    }
    assert len(adjustments) == 4


def test_devices_that_did_not_change_are_the_same_objects_again() -> None:
    normaliser = Normaliser(DRIVER)

    def build() -> tuple[Device, ...]:
        return tuple(Device(name=f"d{n}", attributes=version("v1")) for n in range(3))

    first, warnings = normaliser.pool("p", build())
    second, again = normaliser.pool("p", build())
    assert all(a is b for a, b in zip(first, second, strict=True))
    assert warnings == again
    normaliser.forget(set())
    third, _ = normaliser.pool("p", build())
    assert third == first
    assert third[0] is not first[0]


def test_a_device_that_fails_is_left_out_alone() -> None:
    normaliser = Normaliser(DRIVER, Policy(version=Action.FAIL))
    devices = (Device(name="a", attributes=version("v1")), Device(name="b", attributes=version("1.0.0")))
    kept, warnings = normaliser.pool("p", devices)
    assert [device.name for device in kept] == ["b"]
    assert "device a" in str(warnings[0])
    assert "device left out" in str(warnings[0])


texts = st.text(max_size=80) | st.from_regex(
    r"[vV]?[0-9]{1,4}(\.[0-9]{1,4}){0,4}([-+][a-z0-9.-]{0,5})?", fullmatch=True
)
attributes = st.one_of(
    st.builds(lambda t: DeviceAttribute(version=t), texts),
    st.builds(lambda t: DeviceAttribute(string=t), texts),
    st.builds(lambda t: DeviceAttribute(strings=tuple(t)), st.lists(texts, min_size=1, max_size=3)),
    st.builds(lambda t: DeviceAttribute(versions=tuple(t)), st.lists(texts, min_size=1, max_size=3)),
    st.builds(lambda i: DeviceAttribute(int=i), st.integers(-(2**63), 2**63 - 1)),
)
names = st.text("aZ09_-./ü", max_size=40) | st.sampled_from([f"{DRIVER}/x", "x", "example.com/x"])


@quick
@given(listed=st.dictionaries(names, attributes, max_size=5))
def test_whatever_comes_in_is_accepted_by_the_api_server(listed: dict[str, DeviceAttribute]) -> None:
    from drakit.driver.publication.checking import slice_faults
    from drakit.driver.publication.layout import SliceContent
    from drakit.driver.publication.slices import Stamp

    device, _ = run(listed)
    stamp = Stamp(driver=DRIVER, node_name="n")
    assert slice_faults("p", SliceContent(devices=(device,)), stamp, (device,)) == []


def test_the_api_server_would_have_refused_them() -> None:
    device = {"name": "d", "attributes": {"a-b": {"version": "v1"}}}
    spec = {
        "driver": DRIVER,
        "allNodes": True,
        "devices": [device],
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
    }
    obj = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
    assert len(admission.validate(obj)) == 2


def test_truncation_and_versions_alone() -> None:
    assert truncate("aü", 2) == "a"
    assert truncate("aü", 3) == "aü"
    assert semver_like("1.2.3." + "4" * 80) == "1.2.3"
    assert semver_like("no") is None
