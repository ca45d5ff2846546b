"""Operators, conversions and functions of CEL's standard library."""

from __future__ import annotations

from typing import Final

from drakit.cel.declarations import Overload, member, overload
from drakit.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    map_of,
    parameter,
    type_of,
)

__all__ = ["LIBRARY", "SINGLETONS"]

_A: Final = parameter("A")
_B: Final = parameter("B")
_LIST: Final = list_of(_A)
_MAP: Final = map_of(_A, _B)
_SHORT: Final = {
    "int64": INT,
    "uint64": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "bool": BOOL,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
}
_COMPARISONS: Final = {"_<_": "less", "_<=_": "less_equals", "_>_": "greater", "_>=_": "greater_equals"}
_COMPARED: Final = [
    "bool",
    "int64",
    "int64_double",
    "int64_uint64",
    "uint64",
    "uint64_double",
    "uint64_int64",
    "double",
    "double_int64",
    "double_uint64",
    "string",
    "bytes",
    "timestamp",
    "duration",
]


def _comparisons() -> list[Overload]:
    found = []
    for function, name in _COMPARISONS.items():
        for pair in _COMPARED:
            left, _, right = pair.partition("_")
            found.append(overload(function, f"{name}_{pair}", _SHORT[left], _SHORT[right or left], BOOL))
    return found


def _same(function: str, name: str, *kinds: str) -> list[Overload]:
    return [overload(function, f"{name}_{kind}", _SHORT[kind], _SHORT[kind], _SHORT[kind]) for kind in kinds]


def _arithmetic() -> list[Overload]:
    return [
        *_same("_+_", "add", "bytes", "double"),
        overload("_+_", "add_duration_duration", DURATION, DURATION, DURATION),
        overload("_+_", "add_duration_timestamp", DURATION, TIMESTAMP, TIMESTAMP),
        overload("_+_", "add_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
        *_same("_+_", "add", "int64"),
        overload("_+_", "add_list", _LIST, _LIST, _LIST),
        *_same("_+_", "add", "string", "uint64"),
        *_same("_/_", "divide", "double", "int64", "uint64"),
        *_same("_%_", "modulo", "int64", "uint64"),
        *_same("_*_", "multiply", "double", "int64", "uint64"),
        overload("-_", "negate_double", DOUBLE, DOUBLE),
        overload("-_", "negate_int64", INT, INT),
        *_same("_-_", "subtract", "double"),
        overload("_-_", "subtract_duration_duration", DURATION, DURATION, DURATION),
        *_same("_-_", "subtract", "int64"),
        overload("_-_", "subtract_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
        overload("_-_", "subtract_timestamp_timestamp", TIMESTAMP, TIMESTAMP, DURATION),
        *_same("_-_", "subtract", "uint64"),
    ]


def _sizes() -> list[Overload]:
    found = []
    for kind, sized in (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING)):
        found += [overload("size", f"size_{kind}", sized, INT), member("size", f"{kind}_size", sized, INT)]
    return found


_CONVERSIONS: Final = {
    "bool": "bool string",
    "bytes": "bytes string",
    "double": "double int64 string uint64",
    "duration": "duration string",
    "int": "int64 double duration string timestamp uint64",
    "string": "string bool bytes double duration int64 timestamp uint64",
    "timestamp": "timestamp int64 string",
    "uint": "uint64 double int64 string",
}


def _conversions() -> list[Overload]:
    long = {"int": "int64", "uint": "uint64"}
    found = []
    for function, sources in _CONVERSIONS.items():
        target = long.get(function, function)
        found += [
            overload(function, f"{source}_to_{target}", _SHORT[source], _SHORT[target]) for source in sources.split()
        ]
    return found


_ACCESSORS: Final = {
    "getFullYear": "year",
    "getMonth": "month",
    "getDayOfYear": "day_of_year",
    "getDayOfMonth": "day_of_month",
    "getDate": "day_of_month_1_based",
    "getDayOfWeek": "day_of_week",
    "getHours": "hours",
    "getMinutes": "minutes",
    "getSeconds": "seconds",
    "getMilliseconds": "milliseconds",
}


def _times() -> list[Overload]:
    found = []
    for function, part in _ACCESSORS.items():
        zoned = "timestamp_to_seconds_tz" if part == "seconds" else f"timestamp_to_{part}_with_tz"
        found.append(member(function, f"timestamp_to_{part}", TIMESTAMP, INT))
        found.append(member(function, zoned, TIMESTAMP, STRING, INT))
        if part in ("hours", "minutes", "seconds", "milliseconds"):
            found.append(member(function, f"duration_to_{part}", DURATION, INT))
    return found


def _texts() -> list[Overload]:
    return [
        member("contains", "contains_string", STRING, STRING, BOOL),
        member("endsWith", "ends_with_string", STRING, STRING, BOOL),
        member("startsWith", "starts_with_string", STRING, STRING, BOOL),
        overload("matches", "matches", STRING, STRING, BOOL),
        member("matches", "matches_string", STRING, STRING, BOOL),
    ]


LIBRARY: Final[tuple[Overload, ...]] = (
    overload("_?_:_", "conditional", BOOL, _A, _A, _A),
    overload("_&&_", "logical_and", BOOL, BOOL, BOOL),
    overload("_||_", "logical_or", BOOL, BOOL, BOOL),
    overload("!_", "logical_not", BOOL, BOOL),
    overload("@not_strictly_false", "not_strictly_false", BOOL, BOOL),
    overload("_==_", "equals", _A, _A, BOOL),
    overload("_!=_", "not_equals", _A, _A, BOOL),
    *_arithmetic(),
    *_comparisons(),
    overload("_[_]", "index_list", _LIST, INT, _A),
    overload("_[_]", "index_map", _MAP, _A, _B),
    overload("@in", "in_list", _A, _LIST, BOOL),
    overload("@in", "in_map", _A, _MAP, BOOL),
    *_sizes(),
    overload("type", "type", _A, type_of(_A)),
    overload("dyn", "to_dyn", _A, DYN),
    *_conversions(),
    *_texts(),
    *_times(),
)
SINGLETONS: Final = frozenset(
    {*_COMPARISONS, "_+_", "_-_", "_*_", "_/_", "_%_", "-_", "!_", "@in", "size", "type", "dyn", "matches"}
)
