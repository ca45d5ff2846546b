"""Lists (extension, version 3), Kubernetes' lists with `includes`, sets, and the inserts of `transformMap`."""

from __future__ import annotations

import functools
from typing import Any, Final

from drakit.cel.errors import EvaluationError, PanicError
from drakit.cel.functions.operators import add
from drakit.cel.values import (
    MISSING,
    CollectedMap,
    Duration,
    Map,
    Timestamp,
    Uint,
    compare,
    contains,
    equal_by,
    find,
    is_list,
    no_overload,
    show,
    tag,
    type_name,
)

__all__ = ["MAX_INCLUDES", "OVERLOADS", "SINGLETONS", "insert"]

MAX_INCLUDES: Final = 48
_COMPARERS: Final = frozenset({bool, str, bytes, int, Uint, float, Duration, Timestamp})
_NAMES: Final = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]
_MAX_RANGE: Final = 1_000_000


def _is(one: Any, other: Any) -> bool:
    """Whether `one.Equal(other)` is true; errors are not."""
    try:
        return equal_by(one, other)
    except PanicError:
        raise
    except EvaluationError:
        return False


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return list(values[start:end])


def _flatten(values: Any, depth: Any = 1) -> list[Any]:
    if not is_list(values) or depth.__class__ is not int:
        inner = "" if depth == 1 else type_name(depth)
        raise EvaluationError(f"no such overload: {type_name(values)}.flatten({inner})")
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    current = list(values)
    while depth and any(map(is_list, current)):
        current = [inner for each in current for inner in (each if is_list(each) else (each,))]
        depth -= 1
    return current


def _sort(values: Any) -> Any:
    return _sort_by_keys(values, values)


def _sort_by_keys(values: Any, keys: Any) -> Any:
    if not is_list(values):
        terse = values.__class__ in (str, Duration, Timestamp)
        raise no_overload("" if terse else "sort" if values is keys else "@sortByAssociatedKeys")
    if len(values) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    kind = keys[0].__class__
    if kind not in _COMPARERS:
        raise EvaluationError("list elements must be comparable")
    if len(keys) > 1 and any(each.__class__ is not kind for each in keys):
        raise EvaluationError("list elements must have the same type")
    order = sorted(range(len(keys)), key=functools.cmp_to_key(lambda one, other: _before(keys[one], keys[other])))
    return [values[index] for index in order]


def _before(one: Any, other: Any) -> int:
    try:
        return compare(one, other, "_<_")
    except EvaluationError:
        return 0


def _range(count: int) -> list[int]:
    if count > _MAX_RANGE:
        raise PanicError("operation cancelled: actual cost limit exceeded")
    return list(range(max(count, 0)))


def _distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(_is(value, each) for each in found):
            found.append(value)
    return found


def _comparable(value: Any) -> None:
    if value.__class__ not in _COMPARERS:
        raise no_overload()


def _is_sorted(values: Any) -> bool:
    previous = MISSING
    for value in _iterable(values):
        _comparable(value)
        if previous is not MISSING and _compared(previous, value) == 1:
            return False
        previous = value
    return True


def _compared(one: Any, other: Any) -> int | None:
    try:
        return compare(one, other, "_<_")
    except EvaluationError:
        return None


def _iterable(values: Any) -> Any:
    if is_list(values):
        return values
    raise no_overload()


def _sum(zero: Any) -> Any:
    def call(values: Any) -> Any:
        total = zero
        for value in _iterable(values):
            total = add(total, value)
        return total

    return call


def _extreme(name: str, replace: int) -> Any:
    def call(values: Any) -> Any:
        best: Any = MISSING
        for value in _iterable(values):
            _comparable(value)
            if best is MISSING or _compared(best, value) == replace:
                best = value
        if best is MISSING:
            raise EvaluationError(f"{name} called on empty list")
        return best

    return call


def _index_of(values: Any, item: Any) -> int:
    for index, value in enumerate(values):
        if _is(value, item):
            return index
    return -1


def _last_index_of(values: Any, item: Any) -> int:
    for index in range(len(values) - 1, -1, -1):
        if _is(values[index], item):
            return index
    return -1


def _includes(target: Any, item: Any) -> bool:
    if is_list(target):
        return any(_is(each, item) for each in target)
    return _is(target, item)


def _includes_limited(target: Any, item: Any) -> bool:
    """DRA's own `includes`: lists longer than an attribute may be are refused."""
    if not is_list(target):
        return _is(target, item)
    for index, each in enumerate(target):
        if index >= MAX_INCLUDES:
            raise EvaluationError(f"'includes' function cannot be applied to lists longer than {MAX_INCLUDES} values")
        if _is(each, item):
            return True
    return False


def _sets_contains(values: Any, part: Any) -> bool:
    return all(contains(values, each) for each in part)


def _sets_equivalent(one: Any, other: Any) -> bool:
    return _sets_contains(one, other) and _sets_contains(other, one)


def _sets_intersects(one: Any, other: Any) -> bool:
    return any(contains(other, each) for each in one)


def insert(mapping: Any, key: Any, value: Any) -> Any:
    """A map with one more entry."""
    if find(mapping, key) is not MISSING:
        raise EvaluationError(f"insert failed: key {show(key)} already exists")
    if mapping.__class__ is CollectedMap:
        mapping[tag(key)] = value
        return mapping
    return Map({**mapping, tag(key): value})


def insert_all(mapping: Any, more: Any) -> Any:
    """A map with another map's entries added."""
    result = mapping if mapping.__class__ is CollectedMap else Map(mapping)
    for key, value in more.items():
        if key in result:
            raise EvaluationError(f"insert failed: key {show(key if key.__class__ is str else key[1])} already exists")
        result[key] = value
    return result


_ZEROS: Final = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}
SINGLETONS: Final[dict[str, Any]] = {
    "flatten": _flatten,
    "sort": _sort,
    "@sortByAssociatedKeys": _sort_by_keys,
}
OVERLOADS: Final[dict[str, Any]] = {
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": lambda values: list(reversed(values)),
    "list_distinct": _distinct,
    **{f"list_{name}_is_sorted_bool": _is_sorted for name in _NAMES},
    **{f"list_{name}_sum_{name}": _sum(zero) for name, zero in _ZEROS.items()},
    **{f"list_{name}_max_{name}": _extreme("max", -1) for name in _NAMES},
    **{f"list_{name}_min_{name}": _extreme("min", 1) for name in _NAMES},
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_includes_dyn_dyn": _includes,
    "dra_includes_dyn_dyn": _includes_limited,
    "list_sets_contains_list": _sets_contains,
    "list_sets_equivalent_list": _sets_equivalent,
    "list_sets_intersects_list": _sets_intersects,
    "@mapInsert_map_key_value": insert,
    "@mapInsert_map_map": insert_all,
}
