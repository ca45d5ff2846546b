"""Quantities parse, print, compare and calculate as the API server's do (spec/apiserver.md Decoding, spec/cel.md quirk 8)."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.api import Quantity, QuantityError
from drakit.api.quantity import BINARY_SI, DECIMAL_EXPONENT, DECIMAL_SI

CANONICAL = [
    ("0", "0"),
    ("5", "5"),
    ("1.5", "1500m"),
    ("1000.0", "1k"),
    ("Gi", "0"),
    ("+1", "+1"),
    ("5.", "5."),
    ("00010", "00010"),
    ("0Gi", "0"),
    ("1024Mi", "1Gi"),
    ("1e100", "10e99"),
    ("0.1n", "1n"),
    ("1.23456789123", "1234567892n"),
    ("1.5Gi", "1536Mi"),
    ("8Ei", "9223372036854775807"),
    ("-8Ei", "-9223372036854775807"),
    ("1500m", "1500m"),
    ("1.500", "1.500"),
    ("0.5", "500m"),
    ("1000m", "1"),
    ("12e6", "12e6"),
    ("12E6", "12E6"),
    ("1E", "1E"),
    ("0.5Ki", "512"),
    ("1.1Ki", "1126400m"),
    ("0.5Gi", "512Mi"),
    ("1023", "1023"),
    ("-1Ki", "-1Ki"),
    ("-0.1n", "-1n"),
    ("+", "0"),
    (".", "0"),
    ("1000E", "1e21"),
    ("123456789012345678901234567890k", "123456789012345678901234567890k"),
    ("1e-5", "10e-6"),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_prints_as_the_server_does(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


@pytest.mark.parametrize(
    "text", ["", "200K", "1e", "a", "1 ", " 1", "1.2.3", "Ei", "1m5", "1eE3", "1Zi", "--1", "1\n", "٣"]
)
def test_refuses(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        Quantity.parse(text)
    assert caught.value.text == text


@pytest.mark.parametrize(
    ("text", "value", "milli", "int64"),
    [
        ("1.5", 2, 1500, None),
        ("-1.5", -2, -1500, None),
        ("1.0", 1, 1000, None),
        ("1k", 1000, 1_000_000, 1000),
        ("1.5Gi", 1610612736, 1610612736000, None),
        ("18446744073709551616", 0, 0, None),
        ("1e30", 0, 0, None),
        ("1e2000000000", 0, 0, None),
        ("9223372036854775807", 2**63 - 1, -1000, None),
        ("900000000000000000", 900000000000000000, 0, 900000000000000000),
    ],
)
def test_integers_overflow_as_in_go(text: str, value: int, milli: int, int64: int | None) -> None:
    quantity = Quantity.parse(text)
    assert (quantity.value(), quantity.milli_value(), quantity.as_int64()) == (value, milli, int64)


def test_equal_amounts_are_equal_however_they_are_written() -> None:
    assert Quantity.parse("1Gi") == Quantity.parse("1024Mi") == Quantity.parse("1073741824")
    assert len({Quantity.parse(text) for text in ("1k", "1000", "1e3", "1000.0")}) == 1
    assert Quantity.parse("1") != 1


def test_huge_exponents_compare_without_being_written_out() -> None:
    huge, huger = Quantity.parse("1e2000000000"), Quantity.parse("1e2000000001")
    assert huge < huger
    assert Quantity.parse("-1e2000000001") < Quantity.parse("-1e2000000000") < Quantity.parse("0") < huge
    assert Quantity.parse("10e1999999999") == huge
    assert str(huger) == "100e1999999999" or str(huger).endswith("e2000000001")


def test_thousands_of_digits() -> None:
    text = "1" * 6000
    assert str(Quantity.parse(text)) == text
    assert str(Quantity.parse("0." + "1" * 6000)) == "111111112n"


def test_sums_take_the_format_of_the_first_that_is_not_zero() -> None:
    assert str(Quantity.parse("0") + Quantity.parse("1Gi")) == "1Gi"
    assert str(Quantity.parse("1Gi") + Quantity.parse("1")) == "1073741825"
    assert str(Quantity.parse("1Gi") - Quantity.parse("1Gi")) == "0"
    assert str(Quantity.parse("1500m") + Quantity.parse("500m")) == "2"
    assert str(-Quantity.parse("1Ki") * 3) == "-3Ki"


def test_values_cannot_be_changed() -> None:
    quantity = Quantity.parse("1Gi")
    with pytest.raises(AttributeError):
        quantity.amount = 2
    with pytest.raises(AttributeError):
        del quantity.scale
    assert copy.deepcopy(quantity) == pickle.loads(pickle.dumps(quantity)) == quantity
    assert repr(quantity) == "Quantity('1Gi')"


def test_signs_and_truth() -> None:
    assert [Quantity.parse(text).sign() for text in ("-1", "0", "1")] == [-1, 0, 1]
    assert Quantity.parse("0").is_zero()
    assert not Quantity.parse("0")
    assert Quantity.of(3, BINARY_SI).format == BINARY_SI


TEXTS = st.from_regex(
    r"[+-]?[0-9]{0,22}(\.[0-9]{0,12})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2})?", fullmatch=True
)


def amount(quantity: Quantity) -> Fraction:
    return Fraction(quantity.amount) * Fraction(10) ** quantity.scale


@given(TEXTS)
def test_canonical_form_keeps_the_amount_and_is_stable(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert hash(again) == hash(quantity)
    assert str(again) == str(quantity)
    assert quantity.format in {BINARY_SI, DECIMAL_SI, DECIMAL_EXPONENT}


@given(TEXTS, TEXTS)
def test_order_and_sums_are_exact(left_text: str, right_text: str) -> None:
    try:
        left, right = Quantity.parse(left_text), Quantity.parse(right_text)
    except QuantityError:
        return
    assert (left < right, left == right, left >= right) == (
        amount(left) < amount(right),
        amount(left) == amount(right),
        amount(left) >= amount(right),
    )
    assert amount(left + right) == amount(left) + amount(right)
    assert amount(left - right) == amount(left) - amount(right)
    assert left.nano == amount(left) * 10**9
    assert (left <= right, left > right) == (amount(left) <= amount(right), amount(left) > amount(right))
