"""Which attributes an expression reads without making sure that the device has them.

A missing attribute is an error, and an error in a selector fails the whole pod, not just the device. Guards are
`has()`, `in`, optional access and, for those who know what a driver publishes, `device.driver == "<domain>"`. As CEL
lets `false && error` be false in either order, a guard protects all that `&&` joins it with, before and after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from drakit.cel.paths import Path, constant, is_computed, key_of, path_of
from drakit.cel.syntax import Call, Node, Select, children, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DRIVER", "Guards", "Read", "guards", "mentioned", "reads"]

DRIVER: Final[Path] = ("device", "driver")
_MAPS: Final = ("attributes", "capacity")
_OPTIONAL: Final = ("_?._", "_[?_]")

Guards: TypeAlias = frozenset[Path]
"""Paths that exist; DRIVER and a name: the device is of that driver."""


class Read(NamedTuple):
    """An access to `attributes` or `capacity` (`map`) that fails where the device has no `name` in `domain`."""

    map: str
    domain: str
    name: str
    offset: int

    def __str__(self) -> str:
        return f"device.{self.map}[{_quoted(self.domain)}]" + (
            f".{self.name}" if self.name.isidentifier() else f"[{_quoted(self.name)}]"
        )


def guards(root: Node) -> Guards:
    """What holds for a device that satisfies an expression."""
    return _positive(root)


def reads(root: Node, given: Guards = frozenset(), *, trust_drivers: bool = True) -> Iterator[Read]:
    """The unguarded accesses of an expression, in the order of evaluation.

    Args:
        root: The tree, typed or not.
        given: What holds for the devices, such as what other selectors demand.
        trust_drivers: Whether devices of a driver have all attributes of its domain that an expression reads.
    """
    if isinstance(root, Call) and root.function == "_&&_":
        given |= _positive(root)
    elif isinstance(root, Call) and root.function == "_||_":
        given |= _negative(root)
    elif isinstance(root, Call) and root.function == "_?_:_":
        condition, positive, negative = root.operands
        yield from reads(condition, given, trust_drivers=trust_drivers)
        yield from reads(positive, given | _positive(condition), trust_drivers=trust_drivers)
        yield from reads(negative, given | _negative(condition), trust_drivers=trust_drivers)
        return
    path = path_of(root)
    if path is not None and len(path) == 4 and path[1] in _MAPS:
        of_driver = trust_drivers and (*DRIVER, path[2]) in given
        if not of_driver and path not in given:
            yield Read(*path[1:], root.offset)
    for child in children(root):
        yield from reads(child, given, trust_drivers=trust_drivers)


def mentioned(root: Node) -> Iterator[Read]:
    """All attributes and capacities that an expression names: read, tested or read if present; some more than once."""
    for node in walk(root):
        path = path_of(node)
        if isinstance(node, Select) and node.test:
            below = path_of(node.operand)
            path = None if below is None else (*below, node.field)
        elif isinstance(node, Call) and node.function in _OPTIONAL:
            below = path_of(node.arguments[0])
            path = None if below is None else (*below, key_of(node.arguments[1]))
        if path is not None and len(path) == 4 and path[1] in _MAPS:
            yield Read(*path[1:], node.offset)


def _quoted(key: str) -> str:
    return key[1:-1] if is_computed(key) else f'"{key}"'


def _positive(node: Node) -> Guards:
    """What holds when `node` is true."""
    if isinstance(node, Select) and node.test:
        path = path_of(node.operand)
        return frozenset() if path is None else frozenset({(*path, node.field)})
    if not isinstance(node, Call):
        return frozenset()
    if node.function == "_&&_":
        return frozenset().union(*map(_positive, node.operands))
    if node.function == "!_":
        return _negative(node.operands[0])
    if node.function == "@in":
        return _membership(*node.operands)
    return _driver(*node.operands) if node.function == "_==_" else frozenset()


def _negative(node: Node) -> Guards:
    """What holds when `node` is false."""
    if isinstance(node, Call) and node.function == "_||_":
        return frozenset().union(*map(_negative, node.operands))
    if isinstance(node, Call) and node.function == "!_":
        return _positive(node.operands[0])
    return frozenset()


def _membership(element: Node, container: Node) -> Guards:
    path = path_of(container)
    if path is None or path[1:2] not in {(each,) for each in _MAPS}:
        return frozenset()
    if len(path) == 3:
        return frozenset({(*path, key_of(element))})
    # "domain" in device.attributes: only devices of that driver have the domain.
    name = constant(element)
    return frozenset({(*DRIVER, name)}) if isinstance(name, str) else frozenset()


def _driver(one: Node, other: Node) -> Guards:
    for left, right in ((one, other), (other, one)):
        name = constant(right)
        if path_of(left) == DRIVER and isinstance(name, str):
            return frozenset({(*DRIVER, name)})
    return frozenset()
