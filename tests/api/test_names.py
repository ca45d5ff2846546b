"""Name formats at their limits and one past them (spec/resourceslice.md 2.2)."""

from __future__ import annotations

import pytest

from drakit.api import QualifiedName, limits, names

LABEL = "a" * limits.LABEL_LENGTH
SUBDOMAIN = ".".join(["a" * 63] * 3 + ["a" * 61])


@pytest.mark.parametrize("value", ["a", "a-b", "0", LABEL])
def test_labels(value: str) -> None:
    assert names.dns_label(value) == []


@pytest.mark.parametrize("value", ["", "A", "-a", "a-", "a.b", "a_b", LABEL + "a", "é", "a\n"])
def test_bad_labels(value: str) -> None:
    assert names.dns_label(value)


@pytest.mark.parametrize("value", ["a", "a.b-c.d", SUBDOMAIN])
def test_subdomains(value: str) -> None:
    assert names.dns_subdomain(value) == []


@pytest.mark.parametrize("value", ["", ".", "a.", ".a", "a..b", "A.b", SUBDOMAIN + "a"])
def test_bad_subdomains(value: str) -> None:
    assert names.dns_subdomain(value)


def test_driver_names_may_be_upper_case_but_not_long() -> None:
    assert names.driver_name("GPU.example.com") == []
    assert names.driver_name(LABEL) == []
    assert names.driver_name(LABEL + "a")
    assert names.driver_name("")
    assert names.driver_name("gpu_x")


def test_pool_names_have_segments() -> None:
    assert names.pool_name("node-1/rack-2.a") == []
    assert len(names.pool_name("A/B")) == 2
    assert names.pool_name("")
    assert names.pool_name(SUBDOMAIN) == []
    assert names.pool_name(SUBDOMAIN + "/a")


@pytest.mark.parametrize("value", ["a", "A_b.c-d", "example.com/a", LABEL, f"{SUBDOMAIN}/{LABEL}"])
def test_label_keys(value: str) -> None:
    assert names.label_key(value) == []


@pytest.mark.parametrize("value", ["-a", "a/b/c", "/a", "A.com/a", LABEL + "a", f"{SUBDOMAIN}a/a"])
def test_bad_label_keys(value: str) -> None:
    assert names.label_key(value)


@pytest.mark.parametrize("value", ["", "a/"])
def test_an_empty_name_part_gives_two_complaints(value: str) -> None:
    assert len(names.label_key(value)) == 2  # spec/apiserver.md 9


def test_label_values_may_be_empty() -> None:
    assert names.label_value("") == []
    assert names.label_value(LABEL) == []
    assert names.label_value(LABEL + "a")
    assert names.label_value("a b")


def test_identifiers() -> None:
    assert names.c_identifier("_a9") == []
    assert names.c_identifier("9a")
    assert names.c_identifier("a-b")


def test_unqualified_names_belong_to_the_driver() -> None:
    assert QualifiedName.parse("model", "gpu.example.com") == QualifiedName("gpu.example.com", "model")
    assert str(QualifiedName.parse("example.org/model", "gpu.example.com")) == "example.org/model"
    assert QualifiedName.parse("a/b/c").identifier == "b/c"
