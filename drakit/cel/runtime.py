"""What generated code calls: the exact rules for single steps, raising where the closures must decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drakit.cel.access import present, qualify
from drakit.cel.errors import EvaluationError, PanicError
from drakit.cel.functions.lists import insert_all
from drakit.cel.messages import make
from drakit.cel.values import (
    MISSING,
    NONE,
    Map,
    Optional,
    equal,
    iterate,
    iterate_pairs,
    no_overload,
    tag,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "boolean",
    "collect_map",
    "defined",
    "equal",
    "every",
    "exactly_one",
    "has",
    "item",
    "iterate",
    "iterate_pairs",
    "make_map",
    "merge_maps",
    "message",
    "not_equal",
    "optional_list",
    "or_optional",
    "or_value",
    "soft_item",
    "some",
    "tag",
]

every = all
some = any


def boolean(value: Any) -> bool:
    """The value when it is a boolean."""
    if value is True or value is False:
        return bool(value)
    raise no_overload()


def defined(value: Any) -> Any:
    """A variable's value when it was given one."""
    if value is MISSING:
        raise EvaluationError("no such attribute(s)")
    return value


def not_equal(left: Any, right: Any) -> bool:
    """`left != right`; values that cannot be compared differ."""
    try:
        return not equal(left, right)
    except PanicError:
        raise
    except EvaluationError:
        return True


def message(name: str, fields: list[tuple[str, Any, bool]]) -> Any:
    """A message literal."""
    return make(name, fields)


def item(value: Any, key: Any) -> Any:
    """`value[key]`, on optionals as optional selection."""
    return soft_item(value, key) if value.__class__ is Optional else qualify(value, key)


def soft_item(value: Any, key: Any) -> Any:
    """`value[?key]`."""
    if value.__class__ is Optional:
        if value is NONE:
            return NONE
        value = value.value
    found = present(value, key)
    return NONE if found is MISSING else Optional(found)


def has(value: Any, key: Any) -> bool:
    """`has(value.key)`."""
    if value.__class__ is Optional:
        return value is not NONE and present(value.value, key) is not MISSING
    return present(value, key) is not MISSING


def or_value(optional: Any, other: Callable[[], Any]) -> Any:
    """`optional.orValue(other)`."""
    if optional.__class__ is not Optional:
        raise no_overload()
    return other() if optional is NONE else optional.value


def or_optional(optional: Any, other: Callable[[], Any]) -> Any:
    """`optional.or(other)`."""
    if optional.__class__ is not Optional:
        raise no_overload()
    return other() if optional is NONE else optional


def exactly_one(found: Iterable[Any]) -> bool:
    """Whether there is one element."""
    return sum(1 for _ in found) == 1


def optional_list(values: list[Any], optionals: frozenset[int]) -> list[Any]:
    """A list literal with optional elements."""
    found = []
    for position, value in enumerate(values):
        if position not in optionals:
            found.append(value)
        elif value.__class__ is not Optional:
            raise no_overload()
        elif value is not NONE:
            found.append(value.value)
    return found


def make_map(entries: list[tuple[Any, Any, bool]]) -> Map:
    """A map literal."""
    found = Map()
    for key, value, optional in entries:
        if optional:
            if value.__class__ is not Optional:
                raise no_overload()
            if value is NONE:
                found.pop(tag(key), None)
                continue
            value = value.value
        found[tag(key)] = value
    return found


def collect_map(pairs: Iterable[tuple[Any, Any]]) -> Map:
    """What `transformMap` collects; keys are unique because they come from one map or are indices."""
    found = Map()
    for key, value in pairs:
        tagged = tag(key)
        if tagged in found:
            raise no_overload()
        found[tagged] = value
    return found


def merge_maps(maps: Iterable[Any]) -> Map:
    """What `transformMapEntry` collects."""
    found = Map()
    for each in maps:
        if not isinstance(each, dict):
            raise no_overload()
        found = insert_all(found, each)
    return found
