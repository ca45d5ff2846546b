"""Indices and names (scenarios 39-41 of spec/resourceslice.md 5.1, and 1.4)."""

import pytest

from drakit.api.names import dns_subdomain
from drakit.driver.publication import naming


@pytest.mark.parametrize(
    ("count", "digits"),
    [(-1, 5), (0, 5), (1, 5), (16, 5), (0x10000, 5), (0x100000, 5), (0x100001, 6), (0x1000000, 6)],
)
def test_39_width(count: int, digits: int) -> None:
    assert naming.width(count) == digits


INDICES = [
    (0, "00000"), (1, "00001"), (9, "00009"), (10, "0000a"), (26, "0001a"), (27, "0001b"), (35, "00023"), (36, "00024"),
    (100000, "186a0"),
]  # fmt: skip


@pytest.mark.parametrize(("index", "text"), INDICES)
def test_40_encoding(index: int, text: str) -> None:
    assert naming.encode_index(index, 5) == text
    assert naming.encode_index(0, 6) == "000000"
    assert naming.encode_index(1048576, 6) == "100000"


@pytest.mark.parametrize(("index", "text"), INDICES)
def test_41_decoding(index: int, text: str) -> None:
    assert naming.decode_index(f"{text}-", 5) == index
    assert naming.decode_index(f"{text}-gpu.example.com-node-x", 5) == index


@pytest.mark.parametrize(
    "name", ["00000", "0000g-x", "-00000-x", "0000-x", "000000-x", "ffffffffffffffff-x", "", "node-gpu"]
)
def test_41_what_is_no_index(name: str) -> None:
    assert naming.decode_index(name, 5) is None


def test_41_large_indices_do_not_depend_on_the_platform() -> None:
    assert naming.decode_index("80000000-x", 8) == 0x80000000


def test_names_sort_in_the_drivers_order() -> None:
    names = [naming.slice_name(index, 5, "d.example.com", "n", "p") for index in range(300)]
    assert sorted(names) == names


def test_names_are_legal_and_differ_by_pool() -> None:
    long = "n" * 63 + ("." + "x" * 61) * 3
    for driver, owner in (("GPU.Example.com", "node-1"), ("d" * 63, long), ("d", "")):
        name = naming.slice_name(7, 5, driver, owner, "p")
        assert not dns_subdomain(name), name
        assert naming.decode_index(name, 5) == 7
        assert naming.generate_name(7, 5, driver, owner).startswith("00007-")
        assert naming.generate_name(7, 5, driver, owner).endswith("-")
    assert naming.slice_name(0, 5, "d", "n", "p") != naming.slice_name(0, 5, "d", "n", "q")
    assert naming.slice_name(0, 5, "d", "n", "p") == naming.slice_name(0, 5, "d", "n", "p")
