"""Costs of calls by function and overload: Kubernetes' own rules and those of the extension libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from drakit.cel.cost import ranges
from drakit.cel.cost.ranges import FREE, ONE, REGEX_FACTOR, STRING_FACTOR, TOP, Range
from drakit.cel.syntax import Literal
from drakit.cel.types import CIDR, FORMAT, IP, QUANTITY, SEMVER, URL

if TYPE_CHECKING:
    from collections.abc import Callable

    from drakit.cel.syntax import Node
    from drakit.cel.types import Type

__all__ = ["EXTENSIONS", "LISTS", "Argument", "Estimate", "kubernetes"]

_MAX_INCLUDES: Final = 48
_NAME_REGEX: Final = 128 * REGEX_FACTOR
_MAX_FORMAT: Final = 64
_CHECK: Final[Range] = (350_000, 350_000)
_ADDRESS: Final[Range] = (4, 16)


class Argument(Protocol):
    """An operand as the rules see it."""

    node: Node | None
    type: Type
    computed: Range | None

    def size(self) -> Range:
        """Its size, or the widest range."""

    def element(self) -> Argument | None:
        """The elements of a list."""


class Estimate(NamedTuple):
    """The cost of a call and, when it is known, the size of its result."""

    cost: Range
    size: Range | None = None


def _traversal(size: Range, factor: float = STRING_FACTOR) -> Range:
    return ranges.scale(size, factor)


def kubernetes(function: str, overload: str, target: Argument | None, arguments: list[Argument]) -> Estimate | None:
    """Kubernetes' own rule for a call, if there is one."""
    rule = _RULES.get(function)
    return None if rule is None else rule(function, overload, target, arguments)


# --- Kubernetes


def _nominal(*_: object) -> Estimate:
    return Estimate(ONE)


def _check(*_: object) -> Estimate:
    return Estimate(_CHECK)


def _selector(_: str, __: str, ___: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if len(arguments) != 1:
        return None
    size = arguments[0].size()
    requirements = ranges.scale(ranges.scale(size, 0.5), 50.0)
    return Estimate(ranges.add(ranges.add(ranges.LIST_COST, _traversal(size)), requirements))


def _elements(function: str, overload: str, target: Argument | None, _: list[Argument]) -> Estimate | None:
    if target is None:
        return None
    if overload == "dra_includes_dyn_dyn":
        return Estimate((0, _MAX_INCLUDES))
    element = target.element()
    if element is not None:
        cost = ONE
        if element.type.kind in ("string", "bytes"):
            cost = ranges.add(cost, _traversal(element.size()))
        return Estimate(ranges.multiply(target.size(), cost))
    if function == "includes":
        return Estimate(ranges.multiply(target.size(), ONE))
    return Estimate(_traversal(target.size()))


def _url(_: str, __: str, ___: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if len(arguments) != 1:
        return None
    size = arguments[0].size()
    return Estimate(_traversal(size), size)


def _transform(_: str, __: str, target: Argument | None, ___: list[Argument]) -> Estimate | None:
    if target is None:
        return None
    size = target.size()
    return Estimate(_traversal(size), size)


def _ceil_divide(one: int, other: int) -> int:
    import math

    return min(math.ceil(float(one) / float(other)), TOP)


def _replace(_: str, __: str, target: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if target is None or len(arguments) < 2:
        return None
    size, old, new = target.size(), arguments[0].size(), arguments[1].size()
    most = least = kept_most = kept_least = 0
    if old[0] == 0:
        most, kept_most = min(size[1] + 1, TOP), size[1]
    elif new[1] <= old[0]:
        kept_most = size[1]
    else:
        most = _ceil_divide(size[1], old[0])
    if old[1] == 0:
        least, kept_least = min(size[0] + 1, TOP), size[0]
    elif old[1] <= new[0]:
        kept_least = size[0]
    else:
        least = _ceil_divide(size[0], old[1])
    result = ranges.add(ranges.multiply((least, most), new), (kept_least, kept_most))
    return Estimate(_traversal(size, 2 * STRING_FACTOR), result)


def _split(_: str, __: str, target: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if target is None:
        return None
    size = target.size()
    most = size[1]
    if len(arguments) > 1:
        limit = arguments[1].node
        if isinstance(limit, Literal) and limit.value.__class__ is int:
            most = limit.value & TOP
    return Estimate(_traversal(size, 2 * STRING_FACTOR), (0, most))


def _join(_: str, __: str, target: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if target is None:
        return None
    count, size = target.size(), FREE
    element = target.element()
    if element is not None:
        size = ranges.multiply(count, element.size())
    if arguments:
        separators = max(count[0] - 1, 0), max(count[1] - 1, 0)
        size = ranges.add(size, ranges.multiply(arguments[0].size(), separators))
    return Estimate(_traversal(size), size)


def regex_cost(text: Range, pattern: Range) -> Range:
    """Matching a text against a pattern."""
    return ranges.multiply(_traversal(ranges.add(text, ONE)), ranges.scale(pattern, REGEX_FACTOR))


def _find(_: str, __: str, target: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if target is None or not arguments:
        return None
    size = target.size()
    return Estimate(regex_cost(size, arguments[0].size()), (0, size[1]))


def _parse(_: str, overload: str, __: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if overload == "cidr_ip":
        return Estimate(ONE)
    return Estimate(_traversal(arguments[0].size())) if arguments else None


def _canonical(_: str, __: str, ___: Argument | None, arguments: list[Argument]) -> Estimate | None:
    return Estimate(_traversal(arguments[0].size(), 2 * STRING_FACTOR)) if arguments else None


def _contains(function: str, overload: str, _: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if not arguments:
        return None
    cost = _traversal(ranges.add(_ADDRESS, _ADDRESS))
    if function == "containsCIDR":
        cost = ranges.add(ranges.add(cost, _traversal(_ADDRESS)), ONE)
    if overload.endswith("_string"):
        cost = ranges.add(cost, _traversal(arguments[0].size()))
    return Estimate(cost)


def _validate(_: str, __: str, ___: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if not arguments:
        return None
    return Estimate(ranges.scale(_traversal(arguments[0].size()), _NAME_REGEX))


_CONSTANT_EQUALITY: Final = frozenset(
    {
        QUANTITY,
        SEMVER,
        *(
            f"kubernetes.authorization.{name}"
            for name in ["Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision"]
        ),
    }
)


def _equal(_: str, __: str, ___: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if len(arguments) != 2:
        return None
    found, other = arguments[0].type, arguments[1].type
    if found.name != other.name:
        return None
    if found.kind == "opaque" and found in (IP, CIDR):
        return Estimate(ONE)
    if found.kind != "struct":
        return None
    if found in _CONSTANT_EQUALITY or found.name in _CONSTANT_EQUALITY:
        return Estimate(ONE)
    if found == FORMAT:
        return Estimate(_traversal((1, _MAX_FORMAT)))
    if found == URL:
        size = arguments[1].computed or ONE
        return Estimate(_traversal((1, size[1])))
    return None


_RULES: Final[dict[str, Callable[[str, str, Argument | None, list[Argument]], Estimate | None]]] = {
    "check": _check,
    **dict.fromkeys(ranges.NOMINAL, _nominal),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"], _elements),
    "url": _url,
    **dict.fromkeys(["lowerAscii", "upperAscii", "substring", "trim"], _transform),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(["cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"], _parse),
    "ip.isCanonical": _canonical,
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains),
    "validate": _validate,
    "_==_": _equal,
}


# --- extension libraries, by overload


def _sets(factor: float) -> Callable[[Argument | None, list[Argument]], Estimate | None]:
    def rule(_: Argument | None, arguments: list[Argument]) -> Estimate | None:
        if len(arguments) != 2:
            return None
        pairs = ranges.multiply(arguments[0].size(), arguments[1].size())
        return Estimate(ranges.add(ranges.scale(pairs, factor), ONE))

    return rule


EXTENSIONS: Final[dict[str, Callable[[Argument | None, list[Argument]], Estimate | None]]] = {
    "list_sets_contains_list": _sets(1.0),
    "list_sets_intersects_list": _sets(1.0),
    "list_sets_equivalent_list": _sets(2.0),
}


def _allocating(factor: float, size: Range) -> Estimate:
    return Estimate(ranges.add(ranges.add(ranges.scale(size, factor), ONE), ranges.LIST_COST), size)


def _literal(argument: Argument, default: int) -> int:
    node = argument.node
    if isinstance(node, Literal) and node.value.__class__ is int:
        return max(node.value, 0)
    return default


def _slice(target: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if target is None or len(arguments) != 2:
        return None
    start, end = _literal(arguments[0], 0), _literal(arguments[1], target.size()[1])
    return _allocating(1.0, ranges.fixed((end - start) & TOP))


def _range(target: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if target is not None or len(arguments) != 1:
        return None
    return _allocating(1.0, ranges.fixed(_literal(arguments[0], TOP)))


def _reverse(target: Argument | None, arguments: list[Argument]) -> Estimate | None:
    return None if target is None or arguments else _allocating(1.0, target.size())


def _flatten(target: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if target is None or len(arguments) > 1:
        return None
    depth = _literal(arguments[0], TOP) if arguments else 1
    return _allocating(float(depth), target.size())


def _distinct(target: Argument | None, arguments: list[Argument]) -> Estimate | None:
    if target is None or arguments:
        return None
    size = target.size()
    return _allocating(2.0, ranges.multiply(size, size))


def _sorted(kind: str, *, by_keys: bool) -> Callable[[Argument | None, list[Argument]], Estimate | None]:
    factor = 2.0 + STRING_FACTOR if kind in ("string", "bytes") else 2.0

    def rule(target: Argument | None, arguments: list[Argument]) -> Estimate | None:
        if target is None or len(arguments) != int(by_keys):
            return None
        size = (arguments[0] if by_keys else target).size()
        return _allocating(factor, ranges.multiply(size, size))

    return rule


_SORTABLE: Final = [
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
]
LISTS: Final[dict[str, Callable[[Argument | None, list[Argument]], Estimate | None]]] = {
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _distinct,
    **{f"list_{kind}_sort": _sorted(kind, by_keys=False) for kind in _SORTABLE},
    **{f"list_{kind}_sortByAssociatedKeys": _sorted(kind, by_keys=True) for kind in _SORTABLE},
}
