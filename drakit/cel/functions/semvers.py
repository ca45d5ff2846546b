"""Semantic versions."""

from __future__ import annotations

from typing import Any, Final

from drakit.api import Semver as ExactSemver
from drakit.api import SemverError
from drakit.cel.errors import EvaluationError
from drakit.cel.values import Semver

__all__ = ["OVERLOADS", "parse"]


def parse(text: str, normalise: bool = False) -> Semver:
    """A version from its text, strict unless `normalise`."""
    try:
        return Semver(ExactSemver.normalise(text) if normalise else ExactSemver.parse(text))
    except SemverError as error:
        raise EvaluationError(str(error)) from None


def _is_semver(text: str, normalise: bool = False) -> bool:
    try:
        parse(text, normalise)
    except EvaluationError:
        return False
    return True


def _signed(value: int) -> int:
    """64 bits, as Go converts an unsigned number."""
    return value - 2**64 if value > 2**63 - 1 else value


def _compare(value: Semver, other: Semver) -> int:
    return (value.exact > other.exact) - (value.exact < other.exact)


OVERLOADS: Final[dict[str, Any]] = {
    "string_to_semver": parse,
    "string_bool_to_semver": parse,
    "is_semver_string": _is_semver,
    "is_semver_string_bool": _is_semver,
    "semver_is_greater_than": lambda value, other: value.exact > other.exact,
    "semver_is_less_than": lambda value, other: value.exact < other.exact,
    "semver_compare_to": _compare,
    "semver_major": lambda value: _signed(value.exact.major),
    "semver_minor": lambda value: _signed(value.exact.minor),
    "semver_patch": lambda value: _signed(value.exact.patch),
}
