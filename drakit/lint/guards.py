"""Which attributes an expression reads without making sure that the device has them.

A missing attribute is an error, and an error in a selector fails the whole pod, not just the device. Guards are
`has()`, `in`, optional access, and `device.driver == "<domain>"`. As CEL lets `false && error` be false in either
order, a guard protects all that `&&` joins it with, before and after.
"""

from collections.abc import Iterator
from typing import NamedTuple

from drakit.cel import CompileError, Environment
from drakit.cel.syntax import Call, Node, Select, children
from drakit.lint.contradictions import Path, constant, subject

__all__ = ["Read", "guards", "reads"]

_MAPS = ("attributes", "capacity")

Guards = frozenset[Path]


class Read(NamedTuple):
    """An access to `attributes` or `capacity` (`map`) that fails where the device has no `name` in `domain`."""

    map: str
    domain: str
    name: str

    def __str__(self) -> str:
        return f'device.{self.map}["{self.domain}"].{self.name}'


def guards(environment: Environment, expression: str) -> Guards:
    """What holds for a device that satisfies `expression`: paths that exist, (device, driver, name)."""
    root = _parsed(environment, expression)
    return frozenset() if root is None else _positive(root)


def reads(environment: Environment, expression: str, given: Guards = frozenset()) -> Iterator[Read]:
    """The unguarded accesses of `expression` for devices of which `given` holds, each once."""
    root = _parsed(environment, expression)
    if root is not None:
        yield from dict.fromkeys(_reads(root, given))


def _parsed(environment: Environment, expression: str) -> "Node | None":
    try:
        return environment.parse(expression)
    except CompileError:
        return None


def _reads(node: Node, given: Guards) -> Iterator[Read]:
    if isinstance(node, Call) and node.function == "_&&_":
        given |= _positive(node)
    elif isinstance(node, Call) and node.function == "_||_":
        given |= _negative(node)
    elif isinstance(node, Call) and node.function == "_?_:_":
        condition, positive, negative = node.operands
        yield from _reads(condition, given)
        yield from _reads(positive, given | _positive(condition))
        yield from _reads(negative, given | _negative(condition))
        return
    path = subject(node)
    if path is not None and len(path) == 4 and path[1] in _MAPS and not _guarded(path, given):
        yield Read(*path[1:])
    if isinstance(node, Select) and node.test:
        yield from _reads(node.operand, given)
    else:
        for child in children(node):
            yield from _reads(child, given)


def _guarded(path: Path, given: Guards) -> bool:
    return path in given or ("device", "driver", path[2]) in given


def _positive(node: Node) -> Guards:
    """What holds when `node` is true."""
    if isinstance(node, Select) and node.test:
        path = subject(node.operand)
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
    name, path = constant(element), subject(container)
    if not isinstance(name, str) or path is None:
        return frozenset()
    # "domain" in device.attributes: only devices of that driver have the domain.
    return frozenset({(*path, name)} if len(path) == 3 else {("device", "driver", name)})


def _driver(one: Node, other: Node) -> Guards:
    for left, right in ((one, other), (other, one)):
        name = constant(right)
        if subject(left) == ("device", "driver") and isinstance(name, str):
            return frozenset({("device", "driver", name)})
    return frozenset()
