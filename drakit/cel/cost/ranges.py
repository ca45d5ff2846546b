"""Ranges of sizes and costs: pairs (least, most) of unsigned 64-bit numbers that saturate instead of overflowing."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

__all__ = ["FREE", "LIST_COST", "MAP_COST", "NOMINAL", "ONE", "STRING_FACTOR", "STRUCT_COST", "TOP", "UNKNOWN", "Range"]

Range: TypeAlias = tuple[int, int]

TOP: Final = 2**64 - 1
UNKNOWN: Final[Range] = (0, TOP)
FREE: Final[Range] = (0, 0)
ONE: Final[Range] = (1, 1)
STRING_FACTOR: Final = 0.1
REGEX_FACTOR: Final = 0.25
LIST_COST: Final[Range] = (10, 10)
MAP_COST: Final[Range] = (30, 30)
STRUCT_COST: Final[Range] = (40, 40)
_TOP_DOUBLE: Final = float(TOP)
NOMINAL: Final = (
    "serviceAccount",
    "path",
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "allowed",
    "reason",
    "error",
    "errored",
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "format.named",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "getScheme",
    "getHostname",
    "getHost",
    "getPort",
    "getEscapedPath",
    "getQuery",
)
"""Functions of Kubernetes' libraries that count one, before and during evaluation alike."""


def fixed(value: int) -> Range:
    """Exactly this much."""
    return value, value


def add(one: Range, other: Range) -> Range:
    """The sum."""
    return min(one[0] + other[0], TOP), min(one[1] + other[1], TOP)


def multiply(one: Range, other: Range) -> Range:
    """The product."""
    return min(one[0] * other[0], TOP), min(one[1] * other[1], TOP)


def union(one: Range, other: Range) -> Range:
    """The smallest range around both."""
    return min(one[0], other[0]), max(one[1], other[1])


def scale(value: Range, factor: float) -> Range:
    """Both ends times a factor, rounded up, in double precision as upstream computes it."""
    return _scaled(value[0], factor), _scaled(value[1], factor)


def _scaled(value: int, factor: float) -> int:
    double = float(value)
    if double > 0 and factor > 0 and double > _TOP_DOUBLE / factor:
        return TOP
    result = math.ceil(double * factor)
    return min(result, TOP)
