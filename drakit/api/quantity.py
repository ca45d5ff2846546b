"""Exact quantities: parsed, compared, added and printed as the API server does it.

A quantity is `amount * 10**scale`. Numbers that Go keeps in 64 bits and those that it keeps as big decimals behave
differently in a few places (`as_int64`, overflow in `value`), so `big` remembers which one this is. Source of the
rules: the documented serialization format and recorded answers (spec/apiserver.md, Decoding; spec/cel.md, quirk 8).
"""

from __future__ import annotations

import decimal
import functools
import re
from typing import Final

__all__ = ["BINARY_SI", "DECIMAL_EXPONENT", "DECIMAL_SI", "Quantity", "QuantityError"]

BINARY_SI: Final = "BinarySI"
DECIMAL_SI: Final = "DecimalSI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

_NUMBER: Final = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIXES: Final = {suffix: (10, exponent, DECIMAL_SI) for suffix, exponent in _DECIMAL_SUFFIXES.items()} | {
    suffix: (2, exponent, BINARY_SI) for suffix, exponent in _BINARY_SUFFIXES.items()
}
_DECIMAL_NAMES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_NAMES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

_NANO: Final = -9
_MAX_INT64: Final = 2**63 - 1
_MIN_INT64: Final = -(2**63)
_FAST_DIGITS: Final = 18
_EAGER_SCALE: Final = 64
_WIDEST_GAP: Final = 100_000
_PLAIN_DIGITS: Final = 4000

_WRONG_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """The text is no quantity; the message is the API server's."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class Quantity:
    """An immutable, exact amount.

    Attributes:
        amount: The digits, as an integer.
        scale: The power of ten that they are multiplied with.
        format: How it prints: `BINARY_SI`, `DECIMAL_SI` or `DECIMAL_EXPONENT`.
        big: Whether Go keeps it as a big decimal and not in 64 bits.
    """

    __slots__ = ("_nano", "_text", "amount", "big", "format", "scale")

    amount: int
    scale: int
    format: str
    big: bool
    _nano: int | None
    _text: str

    def __init__(
        self, amount: int = 0, scale: int = 0, format: str = DECIMAL_SI, *, big: bool = False, text: str = ""
    ) -> None:
        """Make `amount * 10**scale`; prefer `Quantity.parse` for text."""
        _set_amount(self, amount)
        _set_scale(self, scale)
        _set_format(self, format)
        _set_big(self, big or not _MIN_INT64 <= amount <= _MAX_INT64)
        _set_text(self, text)
        if not amount:
            _set_nano(self, 0)
        else:
            _set_nano(self, amount * _POWERS[scale - _NANO] if _NANO <= scale <= _EAGER_SCALE else None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Quantity is immutable, cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Quantity is immutable, cannot delete {name}")

    @staticmethod
    def parse(text: str) -> Quantity:
        """Parse as the API server does; equal texts give the same object.

        Raises:
            QuantityError: The text is no quantity.
        """
        return _parse(text)

    @classmethod
    def of(cls, value: int, format: str = DECIMAL_SI) -> Quantity:
        """A whole number of units."""
        return cls(value, 0, format)

    @property
    def nano(self) -> int:
        """The exact amount in units of 10**-9.

        Raises:
            OverflowError: An absurd exponent, above 100,000.
        """
        if self._nano is not None:
            return self._nano
        if self.scale > _WIDEST_GAP:
            raise OverflowError(f"{self} is too large to be written out")
        return _scaled(self.amount, self.scale - _NANO)

    def value(self) -> int:
        """Whole units, fractions rounded away from zero; beyond 64 bits it overflows as in Go."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """Thousandths, fractions rounded away from zero; beyond 64 bits it overflows as in Go."""
        return self.scaled_value(-3)

    def scaled_value(self, scale: int) -> int:
        """Units of `10**scale`, fractions rounded away from zero; beyond 64 bits it overflows as in Go."""
        if self.scale - scale >= 64:  # also what 64 bits keep of a big decimal: 10**64 is a multiple of 2**64
            return 0
        scaled = _scaled(self.amount, self.scale - scale)
        if _MIN_INT64 <= scaled <= _MAX_INT64:
            return scaled
        return _wrap(scaled) if self.big else 0

    def as_int64(self) -> int | None:
        """The value when Go finds it without big decimals, else None (also for whole numbers such as `1.0`)."""
        if self.big or self.scale < 0:
            return None
        if self.amount and self.scale > _FAST_DIGITS + 1:
            return None
        value = self.amount * _power(self.scale) if self.amount else 0
        return value if _MIN_INT64 <= value <= _MAX_INT64 else None

    def is_zero(self) -> bool:
        """Whether the amount is zero."""
        return self.amount == 0

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.amount > 0) - (self.amount < 0)

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1; exact for every exponent."""
        if self._nano is not None and other._nano is not None:
            return (self._nano > other._nano) - (self._nano < other._nano)
        return _compare(self, other)

    def __add__(self, other: Quantity) -> Quantity:
        return _sum(self, other, other.amount, other.format if self.amount == 0 else self.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return _sum(self, other, -other.amount, other.format if self.amount == 0 else self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.amount, self.scale, self.format, big=self.big)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.amount * factor, self.scale, self.format, big=self.big)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self is other or self.compare(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        return self.compare(other) >= 0

    def __hash__(self) -> int:
        return hash(_reduced(self.amount, self.scale))

    def __bool__(self) -> bool:
        return self.amount != 0

    def __str__(self) -> str:
        if not self._text:
            _set_text(self, _canonical(self))
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.amount, self.scale, self.format, self.big, self._text)


_POWERS: Final = tuple(10**exponent for exponent in range(_EAGER_SCALE - _NANO + 1))


# The only ways to write to a quantity, as object.__setattr__ takes twice as long.
_set_amount, _set_scale, _set_format, _set_big, _set_text, _set_nano = (
    vars(Quantity)[name].__set__ for name in ("amount", "scale", "format", "big", "_text", "_nano")
)


def _restore(amount: int, scale: int, format: str, big: bool, text: str) -> Quantity:
    return Quantity(amount, scale, format, big=big, text=text)


@functools.lru_cache(maxsize=1 << 16)
def _parse(text: str) -> Quantity:
    match = _NUMBER.fullmatch(text)
    if match is None or not text:
        raise QuantityError(_WRONG_FORMAT, text)
    sign, whole, fraction, suffix = match.groups()
    base, exponent, style = _SUFFIXES.get(suffix) or _exponent(suffix, text)
    digits = (whole or "0") + (fraction or "")
    places = len(fraction) if fraction else 0
    amount = _small_amount(digits, base, exponent, places)
    if amount is None:
        return _parse_big(text, match, base, exponent, style)
    if base == 2:
        scale, canonical = 0, int(digits) & 7 != 0
    else:
        scale = exponent - places
        canonical = scale % 3 == 0 and digits[0] != "0" and not digits.endswith("000")
    return Quantity(-amount if sign == "-" else amount, scale, style, text=text if canonical else "")


def _small_amount(digits: str, base: int, exponent: int, places: int) -> int | None:
    """The amount, when Go keeps it in 64 bits."""
    if base == 2:
        if places or len(digits) + exponent * 3 // 10 > 14:
            return None
        amount = int(digits) << exponent
        return amount if amount <= _MAX_INT64 else None
    if len(digits) > _FAST_DIGITS or exponent - places < _NANO:
        return None
    return int(digits)


def _exponent(suffix: str, text: str) -> tuple[int, int, str]:
    """`e3` and the like; exponents wrap at 32 bits as in Go."""
    if suffix[:1] in ("e", "E") and re.fullmatch(r"[+-]?[0-9]{1,19}", suffix[1:]):
        exponent = int(suffix[1:])
        if _MIN_INT64 <= exponent <= _MAX_INT64:
            return 10, (exponent + 2**31) % 2**32 - 2**31, DECIMAL_EXPONENT
    raise QuantityError(_WRONG_SUFFIX, text)


def _parse_big(text: str, match: re.Match[str], base: int, exponent: int, style: str) -> Quantity:
    """All others: rounded up to nano, binary ones capped at 2**63 - 1."""
    sign, whole, fraction = match.group(1), match.group(2), match.group(3) or ""
    if not whole and not fraction and text[len(sign) : len(sign) + 1] != "0":
        raise QuantityError(_WRONG_NUMBER, text)
    amount, scale = _integer((whole or "0") + fraction), -len(fraction)
    if base == 2:
        amount <<= exponent
    else:
        scale += exponent
    if scale < _NANO:
        amount, scale = _scaled(amount, scale - _NANO), _NANO
    if base == 2:
        if amount > _scaled(_MAX_INT64, -scale):
            amount, scale = _MAX_INT64, 0
        if 0 < amount < _scaled(1, -scale):
            style = DECIMAL_SI
    return Quantity(-amount if sign == "-" else amount, scale, style, big=True)


def _integer(digits: str) -> int:
    """`int(digits)` without Python's limit on the number of digits."""
    return int(digits) if len(digits) < _PLAIN_DIGITS else int(decimal.Decimal(digits))


def _digits(number: int) -> str:
    """`str(number)` without Python's limit on the number of digits."""
    return str(number) if number.bit_length() < 3 * _PLAIN_DIGITS else f"{decimal.Decimal(number):f}"


def _scaled(amount: int, scale: int) -> int:
    """`amount * 10**scale`, rounded away from zero."""
    if not amount:
        return 0
    if scale >= 0:
        return amount * _power(scale)
    if -scale > amount.bit_length():
        return 1 if amount > 0 else -1
    quotient, rest = divmod(abs(amount), _power(-scale))
    rounded = quotient + (rest != 0)
    return rounded if amount > 0 else -rounded


def _power(exponent: int) -> int:
    power: int = pow(10, exponent)
    return power


def _wrap(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _reduced(amount: int, scale: int) -> tuple[int, int]:
    """Move all factors of ten into the scale."""
    if not amount:
        return 0, 0
    while amount % 1000 == 0:
        amount, scale = amount // 1000, scale + 3
    while amount % 10 == 0:
        amount, scale = amount // 10, scale + 1
    return amount, scale


def _compare(left: Quantity, right: Quantity) -> int:
    """Compare without writing out huge powers of ten."""
    if left.sign() != right.sign():
        return 1 if left.sign() > right.sign() else -1
    sign = left.sign()
    if sign == 0:
        return 0
    order = [len(_digits(abs(each.amount))) + each.scale for each in (left, right)]
    if order[0] != order[1]:
        return sign if order[0] > order[1] else -sign
    scale = min(left.scale, right.scale)
    first = left.amount * _power(left.scale - scale)
    second = right.amount * _power(right.scale - scale)
    return (first > second) - (first < second)


def _sum(left: Quantity, right: Quantity, amount: int, style: str) -> Quantity:
    """Add `amount * 10**right.scale`; the style is the caller's choice, as zero takes the other side's."""
    big = left.big or right.big
    if not amount:
        return Quantity(left.amount, left.scale, style, big=big)
    if not left.amount:
        return Quantity(amount, right.scale, style, big=big)
    scale = min(left.scale, right.scale)
    if max(left.scale, right.scale) - scale > _WIDEST_GAP:
        raise OverflowError(f"{left} and {right} are too far apart to be added")
    total = left.amount * 10 ** (left.scale - scale) + amount * 10 ** (right.scale - scale)
    return Quantity(total, scale, style, big=big)


def _canonical(quantity: Quantity) -> str:
    """No fraction, the largest suffix; binary ones below 1024 or with a fraction print as decimals."""
    if not quantity.amount:
        return "0"
    style = quantity.format
    if style == BINARY_SI:
        whole = _whole(quantity.amount, quantity.scale)
        if whole is not None and abs(whole) >= 1024:
            return _binary(whole)
        style = DECIMAL_SI
    amount, scale = _reduced(quantity.amount, quantity.scale)
    amount, scale = amount * 10 ** (scale % 3), scale - scale % 3
    if style == DECIMAL_SI and scale in _DECIMAL_NAMES:
        return f"{_digits(amount)}{_DECIMAL_NAMES[scale]}"
    return f"{_digits(amount)}e{scale}" if scale else _digits(amount)


def _whole(amount: int, scale: int) -> int | None:
    if scale >= 0:
        return amount * _power(scale)
    quotient, rest = divmod(amount, _power(-scale))
    return None if rest else quotient


def _binary(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < len(_BINARY_NAMES) - 1:
        whole, power = whole // 1024, power + 1
    return f"{_digits(whole)}{_BINARY_NAMES[power]}"
