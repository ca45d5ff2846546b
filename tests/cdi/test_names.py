"""CDI names for every driver and device (P31, P33, trap 16, pain 56)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit import cdi

_labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
drivers = st.lists(_labels, min_size=1, max_size=4).map(".".join)
parts = st.lists(st.text(max_size=6), min_size=1, max_size=4)


@given(drivers)
def test_every_driver_has_a_valid_vendor_that_tells_it(driver: str) -> None:
    vendor = cdi.vendor_of_driver(driver)
    assert cdi.is_vendor(vendor)
    assert cdi.driver_of_vendor(vendor) == driver
    assert driver[0].isdigit() or vendor == driver


def test_drivers_that_begin_with_a_digit_collide_with_nobody() -> None:
    assert cdi.vendor_of_driver("1x.example.com") == "n_1x.example.com"
    assert cdi.vendor_of_driver("n-1x.example.com") == "n-1x.example.com"


@pytest.mark.parametrize("driver", ["", "-a", "a_b", "a/b", "a-", ".a", "ä.com", "n_1x", "a b"])
def test_what_is_no_driver_name_is_refused(driver: str) -> None:
    with pytest.raises(ValueError, match="DNS subdomain"):
        cdi.vendor_of_driver(driver)


@given(parts)
def test_every_identity_has_a_valid_name_that_tells_it(identity: list[str]) -> None:
    name = cdi.device_name(*identity)
    assert cdi.is_device_name(name)
    assert cdi.device_parts(name) == tuple(identity)


@given(parts, parts)
def test_different_identities_have_different_names(one: list[str], other: list[str]) -> None:
    assert (cdi.device_name(*one) == cdi.device_name(*other)) == (one == other)


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        (("4f2c-11", "gpu"), "4f2c-11_gpu"),
        (("uid", "pool/a.b", "gpu-0"), "uid_pool:2f:a.b_gpu-0"),
        (("-uid", "gpu"), "x::-uid_gpu"),
        (("uid", "gpu-"), "uid_gpu-::x"),
        (("",), "x::::x"),
        (("a_b",), "a:5f:b"),
        (("x", "/"), "x_:2f:::x"),
    ],
)
def test_names_are_readable_and_stable(identity: tuple[str, ...], name: str) -> None:
    assert cdi.device_name(*identity) == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vendor.com/class=name", ("vendor.com", "class", "name")),
        ("v/c=0:1", ("v", "c", "0:1")),
        ("V_1-a/c.d=n", ("V_1-a", "c.d", "n")),
    ],
)
def test_qualified_names_come_apart(text: str, expected: tuple[str, str, str]) -> None:
    assert cdi.parse_qualified_name(text) == expected
    assert cdi.qualified_name(*expected) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "name", "/dev/kvm", "vendor=name", "/class=name", "vendor/=name", "vendor/class=", "1v/class=name",
        "v/1c=name", "v./c=n", "v/c-=n", "v/c=-n", "v/c=n:", "v/c=n n", "v/c/d=n", "v/c=ä", "ä/c=n", "v/c=n\n",
    ],
)  # fmt: skip
def test_other_texts_are_not_qualified_names(text: str) -> None:
    with pytest.raises(ValueError, match="CDI"):
        cdi.parse_qualified_name(text)


@pytest.mark.parametrize(("vendor", "cls", "name"), [("1", "c", "n"), ("v", "", "n"), ("v", "c", "_")])
def test_qualified_name_says_which_part_is_wrong(vendor: str, cls: str, name: str) -> None:
    with pytest.raises(ValueError, match=r"CDI (vendor|class|device) '[1_]?'"):
        cdi.qualified_name(vendor, cls, name)
