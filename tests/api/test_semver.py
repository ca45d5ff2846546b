"""Versions: strict parsing, precedence, normalisation."""

from __future__ import annotations

import itertools

import pytest

from drakit.api import Semver, SemverError
from drakit.api.semver import is_version

ORDERED = [
    "0.0.1",
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-a",
    "1.0.0-a.1",
    "1.0.0-a.b",
    "1.0.0-b",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "10.0.0",
]


def test_precedence() -> None:
    for first, second in itertools.combinations(ORDERED, 2):
        assert Semver.parse(first) < Semver.parse(second)
        assert Semver.parse(second) >= Semver.parse(first)


def test_build_metadata_does_not_count() -> None:
    assert Semver.parse("1.0.0+a") == Semver.parse("1.0.0+b")
    assert hash(Semver.parse("1.0.0+a")) == hash(Semver.parse("1.0.0"))
    assert str(Semver.parse("1.0.0-rc.1+a.b")) == "1.0.0-rc.1+a.b"
    assert Semver.parse("1.0.0") != "1.0.0"
    assert repr(Semver.parse("1.0.0")) == "Semver('1.0.0')"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch"),
        ("v1.2.3", "Invalid character"),
        ("1.x.3", "Invalid character"),
        ("01.2.3", "Major number must not contain leading zeroes"),
        ("1.2.03", "Patch number must not contain leading zeroes"),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-01", "Numeric PreRelease version must not contain leading zeroes"),
        ("1.2.3-a!", "Invalid character"),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+a!", "build meta data"),
        ("1.2.18446744073709551616", "value out of range"),
        ("18446744073709551616.x.1", 'parsing "18446744073709551616": value out of range'),
        ("1.2.3-18446744073709551616+", "value out of range"),
        ("..", '^strconv.ParseUint: parsing "": invalid syntax$'),
        (".2.3", '^strconv.ParseUint: parsing "": invalid syntax$'),
        ("1..3", '^strconv.ParseUint: parsing "": invalid syntax$'),
        ("1.2.", '^strconv.ParseUint: parsing "": invalid syntax$'),
        ("1.2.-a", '^strconv.ParseUint: parsing "": invalid syntax$'),
        ("1..x", '^strconv.ParseUint: parsing "": invalid syntax$'),
        ("1.2.3\n", "Invalid"),
    ],
)
def test_refuses(text: str, complaint: str) -> None:
    with pytest.raises(SemverError, match=complaint):
        Semver.parse(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [("v1", "1.0.0"), ("01.02", "1.2.0"), ("v1.2.3-a", "1.2.3-a"), ("00.0.00", "0.0.0"), ("1.2.003+b", "1.2.3+b")],
)
def test_normalises(text: str, normal: str) -> None:
    assert str(Semver.normalise(text)) == normal


def test_short_versions_have_no_suffix() -> None:
    with pytest.raises(SemverError, match="short version"):
        Semver.normalise("1.2-a")


def test_validation_knows_no_largest_number() -> None:
    assert is_version("1.2.99999999999999999999999999")
    assert not is_version("1.2")


def test_values_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Semver.parse("1.2.3").major = 2
