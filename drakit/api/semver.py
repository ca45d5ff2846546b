"""Semantic versions 2.0.0, strict as in device attributes, or normalised as CEL's `semver(text, true)` does.

Precedence ignores build metadata, and so do equality and hash: `1.0.0+a` equals `1.0.0+b`, as for the API server.
"""

from __future__ import annotations

import functools
import re
from typing import Final, NamedTuple

__all__ = ["Semver", "SemverError", "is_version"]

_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_PRERELEASE: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PRERELEASE}(?:\.{_PRERELEASE})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_MAX_UINT64: Final = 2**64 - 1


class SemverError(ValueError):
    """The text is no version."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class _Key(NamedTuple):
    major: int
    minor: int
    patch: int
    final: bool
    prerelease: tuple[tuple[bool, int, str], ...]


@functools.total_ordering
class Semver:
    """One version; immutable, ordered by precedence.

    Attributes:
        major: First number.
        minor: Second number.
        patch: Third number.
        prerelease: Identifiers after `-`, as text.
        build: Identifiers after `+`, as text; without influence on order and equality.
    """

    __slots__ = ("_key", "build", "major", "minor", "patch", "prerelease")

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...]
    build: tuple[str, ...]
    _key: _Key

    def __init__(
        self, major: int, minor: int, patch: int, prerelease: tuple[str, ...] = (), build: tuple[str, ...] = ()
    ) -> None:
        """Make a version from its parts, which are not checked."""
        set_slot = object.__setattr__
        set_slot(self, "major", major)
        set_slot(self, "minor", minor)
        set_slot(self, "patch", patch)
        set_slot(self, "prerelease", prerelease)
        set_slot(self, "build", build)
        order = tuple((not each.isdigit(), int(each) if each.isdigit() else 0, each) for each in prerelease)
        set_slot(self, "_key", _Key(major, minor, patch, not prerelease, order))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Semver is immutable, cannot set {name}")

    @staticmethod
    def parse(text: str) -> Semver:
        """Parse strictly: `x.y.z`, no leading zeros, no `v`, numbers of at most 64 bits; cached by text.

        Raises:
            SemverError: The text is no version.
        """
        return _parse(text)

    @staticmethod
    def normalise(text: str) -> Semver:
        """Parse leniently: one leading `v` is dropped, missing parts are 0, leading zeros are stripped.

        Raises:
            SemverError: The text is no version even so.
        """
        parts = text.removeprefix("v").split(".", 2)
        parts = [_strip_zeros(part) for part in parts]
        if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
            raise SemverError("short version cannot contain PreRelease/Build meta data", text)
        return _parse(".".join(parts + ["0"] * (3 - len(parts))))

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Semver) else NotImplemented

    def __lt__(self, other: Semver) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(self.prerelease)
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def __repr__(self) -> str:
        return f"Semver({str(self)!r})"


def is_version(text: str) -> bool:
    """Whether API validation accepts it as a version: strict semver with numbers of any size."""
    return _VERSION.fullmatch(text) is not None


def _strip_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1].isascii() and stripped[:1].isdigit() else "0" + stripped


@functools.lru_cache(maxsize=1 << 14)
def _parse(text: str) -> Semver:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise SemverError(_complaint(text), text)
    major, minor, patch, prerelease, build = match.groups()
    numbers = [major, minor, patch, *(each for each in (prerelease or "").split(".") if each.isdigit())]
    for number in numbers:
        if _too_large(number):
            raise SemverError(_out_of_range(number), text)
    return Semver(
        int(major),
        int(minor),
        int(patch),
        tuple(prerelease.split(".")) if prerelease else (),
        tuple(build.split(".")) if build else (),
    )


def _too_large(number: str) -> bool:
    return len(number) > 20 or int(number) > _MAX_UINT64


def _out_of_range(number: str) -> str:
    return f'strconv.ParseUint: parsing "{number}": value out of range'


def _complaint(text: str) -> str:
    """Why the text is no version, in the words of the API server's library."""
    if not text:
        return "Version string empty"
    parts = text.split(".", 2)
    if len(parts) != 3:
        return "No Major.Minor.Patch elements found"
    patch = re.split(r"[-+]", parts[2], maxsplit=1)[0]
    for name, number in (("Major", parts[0]), ("Minor", parts[1]), ("Patch", patch)):
        if not re.fullmatch(r"[0-9]*", number):
            return f'Invalid character(s) found in {name.lower()} number "{number}"'
        if len(number) > 1 and number[0] == "0":
            return f'{name} number must not contain leading zeroes "{number}"'
        if not number:
            return 'strconv.ParseUint: parsing "": invalid syntax'
        if _too_large(number):
            return _out_of_range(number)
    return _suffix_complaint(parts[2])


def _suffix_complaint(rest: str) -> str:
    rest, plus, build = rest.partition("+")
    _, _, prerelease = rest.partition("-")
    for identifier in prerelease.split(".") if "-" in rest else ():
        if not identifier:
            return "Prerelease is empty"
        if not re.fullmatch(r"[0-9A-Za-z-]+", identifier):
            return f'Invalid character(s) found in prerelease "{identifier}"'
        if identifier.isdigit() and len(identifier) > 1 and identifier[0] == "0":
            return f'Numeric PreRelease version must not contain leading zeroes "{identifier}"'
        if identifier.isdigit() and _too_large(identifier):
            return _out_of_range(identifier)
    for identifier in build.split(".") if plus else ():
        if not identifier:
            return "Build meta data is empty"
        if not re.fullmatch(r"[0-9A-Za-z-]+", identifier):
            return f'Invalid character(s) found in build meta data "{identifier}"'
    return "Invalid version"
