"""Values of attributes as constraints compare them (spec/allocator.md 1.8).

The values of one device are a set of `(type, value)`; a scalar is a set of one. Two rules differ with the gate
ListTypeAttributes: without it a list (or an unknown type) is accepted as the first device of a constraint and goes with
no other device under matchAttribute; under distinctAttribute nothing clashes with it, but it must be the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drakit.allocation.requests import Constraint
    from drakit.api import resource

__all__ = ["FIRST_ONLY", "attribute_values", "lookup", "lookup_values"]

FIRST_ONLY: Final = frozenset({("?", "?")})
"""The values of an attribute that can only be the first of its constraint."""

Values = frozenset[tuple[str, Any]]


def lookup(device: resource.Device, driver: str, constraint: Constraint) -> resource.DeviceAttribute | None:
    """The attribute of a device: its qualified name first, then, in the driver's own domain, the bare identifier."""
    found = device.attributes.get(constraint.attribute)
    if found is None and constraint.identifier and constraint.domain == driver:
        found = device.attributes.get(constraint.identifier)
    return found


def attribute_values(attribute: resource.DeviceAttribute, *, lists: bool) -> Values:
    """The values of an attribute; empty when its type is unknown, `FIRST_ONLY` without the list gate."""
    if lists and (attribute.ints or attribute.bools or attribute.strings or attribute.versions):
        for type_, several in (
            ("int", attribute.ints),
            ("bool", attribute.bools),
            ("string", attribute.strings),
            ("version", attribute.versions),
        ):
            if several:
                return frozenset([(type_, each) for each in several])
    if attribute.string is not None:
        return frozenset((("string", attribute.string),))
    if attribute.int is not None:
        return frozenset((("int", attribute.int),))
    if attribute.bool is not None:
        return frozenset((("bool", attribute.bool),))
    if attribute.version is not None:
        return frozenset((("version", attribute.version),))
    return frozenset() if lists else FIRST_ONLY


def lookup_values(
    device: resource.Device, driver: str, constraint: Constraint, bits: Mapping[tuple[str, Any], int], *, lists: bool
) -> int:
    """The values of a device as far as they are numbered in `bits`, 0 when there are none."""
    attribute = lookup(device, driver, constraint)
    if attribute is None:
        return 0
    if attribute.string is not None:
        found = bits.get(("string", attribute.string), 0)
    elif attribute.int is not None:
        found = bits.get(("int", attribute.int), 0)
    else:
        found = 0
        for value in attribute_values(attribute, lists=lists):
            found |= bits.get(value, 0)
    return found
