"""Costs at run time: what a call did cost, from its arguments and result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from drakit.cel.cost.ranges import LIST_COST, NOMINAL, REGEX_FACTOR, STRING_FACTOR
from drakit.cel.functions.formats import Format
from drakit.cel.functions.network import Address, Network
from drakit.cel.functions.urls import Url
from drakit.cel.values import NONE, Optional, Quantity, Semver, is_list, untag

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["actual_size", "pricing"]

_SIZED: Final = (str, bytes, list, dict)
_CONSTANT_EQUALITY: Final = frozenset({Quantity, Semver, Url, Format, Address, Network})


def actual_size(value: Any) -> int:
    """Code points, bytes, elements, entries; 1 for values without size."""
    if isinstance(value, _SIZED):
        return len(value)
    if value.__class__ is Address or value.__class__ is Network:
        return int(value.size)
    if value.__class__ is Optional and value is not NONE:
        return actual_size(value.value)
    return 1


def _scan(value: Any, factor: float = STRING_FACTOR) -> int:
    return math.ceil(actual_size(value) * factor)


def traversal(value: Any) -> int:
    """The cost of visiting everything in a value."""
    if value.__class__ is str:
        return int(len(value.encode("utf-8", "surrogatepass")) * STRING_FACTOR)
    if value.__class__ is bytes:
        return int(len(value) * STRING_FACTOR)
    if is_list(value):
        return sum(map(traversal, value))
    if isinstance(value, dict):
        return sum(traversal(untag(key)) + traversal(each) for key, each in value.items())
    return 1


def _regex(arguments: Sequence[Any], _: Any) -> int:
    text, pattern = arguments[0], arguments[1]
    return math.ceil((1.0 + actual_size(text)) * STRING_FACTOR) * math.ceil(actual_size(pattern) * REGEX_FACTOR)


def _selector(arguments: Sequence[Any], _: Any) -> int:
    size = actual_size(arguments[-1])
    return LIST_COST[1] + math.ceil(size * STRING_FACTOR) + math.ceil(math.ceil(size * 0.5) * 50.0)


def _contains(overload: str, extra: int) -> Callable[[Sequence[Any], Any], int]:
    def price(arguments: Sequence[Any], _: Any) -> int:
        size = actual_size(arguments[0])
        cost = math.ceil(2 * size * STRING_FACTOR)
        if extra:
            cost += math.ceil(size * STRING_FACTOR) + extra
        return cost + (_scan(arguments[1]) if overload.endswith("_string") else 0)

    return price


def _validate(arguments: Sequence[Any], _: Any) -> int:
    form = arguments[0]
    if form.__class__ is not Format:
        return 1
    text = math.ceil((1.0 + actual_size(arguments[1])) * STRING_FACTOR)
    return int(text * math.ceil(form.size * REGEX_FACTOR))


def _equal(arguments: Sequence[Any], result: Any) -> int:
    return 1 if arguments[0].__class__ in _CONSTANT_EQUALITY else _smaller(arguments, result)


def _smaller(arguments: Sequence[Any], _: Any) -> int:
    return math.ceil(min(actual_size(arguments[0]), actual_size(arguments[1])) * STRING_FACTOR)


def _allocating(factor: float, size: int) -> int:
    return int(size * factor) + 1 + LIST_COST[1]


def _self_compare(values: Any) -> int:
    size = actual_size(values)
    factor = 2.0
    if size and values[0].__class__ in (str, bytes):
        factor += STRING_FACTOR
    return _allocating(factor, size * size)


def _flatten(arguments: Sequence[Any], _: Any) -> int:
    return _allocating(float(arguments[1]) if len(arguments) == 2 else 1.0, actual_size(arguments[0]))


def _sets(factor: float) -> Callable[[Sequence[Any], Any], int]:
    return lambda arguments, _: 1 + int(actual_size(arguments[0]) * actual_size(arguments[1]) * factor)


def _first(factor: float = STRING_FACTOR) -> Callable[[Sequence[Any], Any], int]:
    return lambda arguments, _: _scan(arguments[0], factor)


def _one(_: Sequence[Any], __: Any) -> int:
    return 1


_EXTENSIONS: Final[dict[str, Callable[[Sequence[Any], Any], int]]] = {
    "list_sets_contains_list": _sets(1.0),
    "list_sets_intersects_list": _sets(1.0),
    "list_sets_equivalent_list": _sets(2.0),
}
_LISTS: Final[dict[str, Callable[[Sequence[Any], Any], int]]] = {
    **dict.fromkeys(
        ("list_slice", "lists_range", "list_reverse"), lambda _, result: _allocating(1.0, actual_size(result))
    ),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flatten),
    "list_distinct": lambda arguments, _: _self_compare(arguments[0]),
}
_FUNCTIONS: Final[dict[str, Callable[[Sequence[Any], Any], int]]] = {
    "check": lambda _, __: 350_000,
    **dict.fromkeys(NOMINAL, _one),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(
        ["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"],
        lambda arguments, _: traversal(arguments[0]),
    ),
    **dict.fromkeys(
        [
            "url",
            "lowerAscii",
            "upperAscii",
            "substring",
            "trim",
            "cidr",
            "isIP",
            "isCIDR",
            "quantity",
            "isQuantity",
            "semver",
            "isSemver",
        ],
        _first(),
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first(2 * STRING_FACTOR)),
    "join": lambda _, result: _scan(result, 2 * STRING_FACTOR),
    **dict.fromkeys(("find", "findAll"), _regex),
    "validate": _validate,
    "_==_": _equal,
}
_OVERLOADS: Final[dict[str, Callable[[Sequence[Any], Any], int]]] = {
    **dict.fromkeys(
        [
            "starts_with_string",
            "ends_with_string",
            "string_to_bytes",
            "bytes_to_string",
            "strings_quote",
            "string_format",
        ],
        _first(),
    ),
    "in_list": lambda arguments, _: actual_size(arguments[1]),
    **dict.fromkeys(
        [
            f"{name}_{kind}"
            for name in ("less", "greater", "less_equals", "greater_equals")
            for kind in ("string", "bytes")
        ]
        + ["equals", "not_equals"],
        _smaller,
    ),
    **dict.fromkeys(
        ("add_string", "add_bytes"),
        lambda arguments, _: math.ceil((actual_size(arguments[0]) + actual_size(arguments[1])) * STRING_FACTOR),
    ),
    "matches_string": _regex,
    "contains_string": lambda arguments, _: _scan(arguments[0]) * _scan(arguments[1]),
}


def pricing(function: str, overloads: tuple[str, ...], *, list_costs: bool) -> Callable[[Sequence[Any], Any], int]:
    """How a call is priced; calls with several candidate overloads only by their function's name (quirk 11)."""
    overload = overloads[0] if len(overloads) == 1 else ""
    if function in ("_==_", "_!=_"):
        overload = "equals"
    if overload in _EXTENSIONS:
        return _EXTENSIONS[overload]
    if list_costs and overload in _LISTS:
        return _LISTS[overload]
    if list_costs and overload.endswith("_sort"):
        return lambda arguments, _: _self_compare(arguments[0])
    if list_costs and overload.endswith("_sortByAssociatedKeys"):
        return lambda arguments, _: _self_compare(arguments[1])
    if function in ("containsIP", "containsCIDR"):
        return _contains(overload, int(function == "containsCIDR"))
    if overload == "dra_includes_dyn_dyn":
        return _one
    if function == "ip":
        return _one if overload == "cidr_ip" else _first()
    return _FUNCTIONS.get(function) or _OVERLOADS.get(overload) or _one
