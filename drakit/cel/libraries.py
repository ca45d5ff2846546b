"""Which libraries, macros and types a Kubernetes version has: the dialect's table (spec/cel.md, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from drakit.cel import macros as macro_tables
from drakit.cel.declarations import Overload, extensions, functions, kubernetes, standard
from drakit.cel.types import (
    ANY,
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    NULL,
    QUANTITY,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    opaque,
    struct,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drakit.cel.declarations import Function
    from drakit.cel.macros import Macros

__all__ = ["CONSUMABLE_CAPACITY", "DEVICE", "LIST_TYPE_ATTRIBUTES", "Dialect", "dialect"]

CONSUMABLE_CAPACITY: Final = "DRAConsumableCapacity"
LIST_TYPE_ATTRIBUTES: Final = "DRAListTypeAttributes"
DEVICE: Final = struct("kubernetes.DRADevice")
_NEWEST: Final = 10_000


class Dialect(NamedTuple):
    """What one kind of environment offers."""

    functions: Mapping[str, Function]
    macros: Macros
    types: Mapping[str, Type]
    attribute: Type
    device_fields: Mapping[str, Type]
    cross_type: bool
    validators: bool
    list_costs: bool


class _Library(NamedTuple):
    since: int
    overloads: tuple[Overload, ...] = ()
    macros: Macros = {}  # noqa: RUF012 - a NamedTuple's default, never changed
    until: int = _NEWEST


_LIBRARIES: Final = (
    _Library(0, standard.LIBRARY, macro_tables.STANDARD),
    _Library(0, kubernetes.URLS),
    _Library(0, kubernetes.REGEX),
    _Library(0, kubernetes.LISTS),
    _Library(27, kubernetes.AUTHORIZATION),
    _Library(28, extensions.OPTIONALS, macro_tables.OPTIONALS),
    _Library(28, kubernetes.QUANTITIES),
    _Library(0, extensions.STRINGS_0, until=29),
    _Library(29, extensions.STRINGS),
    _Library(29, extensions.SETS),
    _Library(30, kubernetes.IPS),
    _Library(30, kubernetes.CIDRS),
    _Library(31, kubernetes.FORMATS),
    _Library(31, kubernetes.AUTHORIZATION_SELECTORS),
    _Library(32, extensions.COMPREHENSIONS, macro_tables.TWO_VARIABLES),
    _Library(33, kubernetes.SEMVERS_1),
    _Library(34, extensions.LISTS, macro_tables.LISTS),
)
_DEVICE_LIBRARIES: Final = (
    _Library(31, (), macro_tables.BIND),
    _Library(31, kubernetes.SEMVERS_0, until=33),
)
_TYPES: Final[Mapping[str, Type]] = {
    each.name: each
    for each in (
        BOOL,
        BYTES,
        DOUBLE,
        DURATION,
        INT,
        list_of(DYN),
        map_of(DYN, DYN),
        NULL,
        STRING,
        TIMESTAMP,
        TYPE,
        UINT,
    )
}


def dialect(minor: int, features: frozenset[str], *, stored: bool, device: bool) -> Dialect:
    """The libraries of Kubernetes 1.`minor`.

    Stored expressions see everything that this version has, new ones what the version before had and what a gate
    turns on.
    """
    level = minor if stored else minor - 1
    chosen = [each for each in _LIBRARIES if each.since <= level < each.until]
    consumable = minor >= 34 and (stored or (CONSUMABLE_CAPACITY in features))
    gated = LIST_TYPE_ATTRIBUTES in features
    lists = minor >= 36 and (gated or (stored and minor >= 37))
    if device:
        chosen += [each for each in _DEVICE_LIBRARIES if each.since <= level < each.until]
        if lists:
            chosen.append(_Library(36, kubernetes.DRA_INCLUDES))
    elif level >= 37:
        chosen.append(_Library(37, kubernetes.LIST_INCLUDES))
    attribute = DYN if lists else ANY
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    if consumable:
        fields["allowMultipleAllocations"] = BOOL
    types = dict(_TYPES)
    if level >= 28:
        types["optional_type"] = opaque("optional_type", DYN)
    if level >= 30:
        types |= {IP.name: IP, CIDR.name: CIDR}
    if device:
        types[DEVICE.name] = DEVICE
    table: dict[tuple[str, int, bool], object] = {}
    for each in chosen:
        table.update(each.macros)
    return Dialect(
        functions(each.overloads for each in chosen),
        table,  # type: ignore[arg-type]
        types,
        attribute,
        fields,
        level >= 28,
        level >= 29,
        level >= 34,
    )
