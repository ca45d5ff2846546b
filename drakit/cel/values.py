"""Values at run time: Python's own where they fit, small classes where CEL needs more.

null, bool, int, double, string, bytes are None, bool, int, float, str, bytes; uint is `Uint`; lists are lists (or
`Concatenation`), maps are dicts whose keys are tagged (`tag`) because Python takes True, 1 and 1.0 for the same key.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from drakit.cel.errors import EvaluationError, PanicError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drakit.api import Quantity as ExactQuantity
    from drakit.api import Semver as ExactSemver

__all__ = [
    "MAX_INT",
    "MAX_UINT",
    "MIN_INT",
    "MISSING",
    "NONE",
    "Collected",
    "CollectedMap",
    "Concatenation",
    "Domains",
    "Duration",
    "Map",
    "Optional",
    "Quantity",
    "Semver",
    "Timestamp",
    "Uint",
    "Value",
    "adapt",
    "compare",
    "contains",
    "equal",
    "find",
    "go_name",
    "is_list",
    "iterate",
    "iterate_pairs",
    "no_overload",
    "plain",
    "show",
    "size",
    "tag",
    "type_name",
    "untag",
]

Value: TypeAlias = Any

MAX_INT: Final = 2**63 - 1
MIN_INT: Final = -(2**63)
MAX_UINT: Final = 2**64 - 1


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


def no_overload(name: str = "") -> EvaluationError:
    """The error of an operation that these values do not have."""
    return EvaluationError(f"no such overload: {name}" if name else "no such overload")


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class Optional:
    """`optional.of(value)`, or `NONE`."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return equal(self, other)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "optional.none()" if self is NONE else f"optional({self.value!r})"


NONE: Final = Optional(MISSING)


class Concatenation(list[Value]):
    """A list made by `+`: comparing it does not overlook elements that cannot be compared."""

    __slots__ = ()


class Collected(list[Value]):
    """The list that a macro is filling."""

    __slots__ = ()


class Map(dict[Any, Value]):
    """A map made by an expression: keys that cannot be hashed are a panic, as upstream's are."""

    __slots__ = ()


class CollectedMap(Map):
    """The map that a macro is filling."""

    __slots__ = ()


class Domains(dict[str, dict[str, Value]]):
    """Attributes or capacity by domain: looking up an unknown domain gives an empty map (spec/cel.md, quirk 1)."""

    __slots__ = ()

    def __missing__(self, key: str) -> dict[str, Value]:
        return _EMPTY


_EMPTY: Final[dict[str, Value]] = {}


class Opaque:
    """A value that equals only its like; comparing it with others is an error, not False."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self})"

    def __str__(self) -> str:
        return str(getattr(self, "exact", ""))

    def __eq__(self, other: object) -> bool:
        return equal(self, other)

    __hash__ = object.__hash__


class Quantity(Opaque):
    """A capacity or a parsed quantity; `nano` is its exact amount in 10**-9, absent for astronomic exponents.

    `computed` marks results of `add` and `sub`, which upstream cannot compare from the right (quirk 3).
    """

    __slots__ = ("computed", "exact", "nano")

    def __init__(self, exact: ExactQuantity, *, computed: bool = False) -> None:
        self.exact = exact
        self.computed = computed
        if exact.scale <= _EAGER_SCALE:
            self.nano = exact.nano

    __hash__ = object.__hash__


_EAGER_SCALE: Final = 64


class Semver(Opaque):
    """A version attribute or a parsed version."""

    __slots__ = ("exact",)

    def __init__(self, exact: ExactSemver) -> None:
        self.exact = exact

    __hash__ = object.__hash__


class Duration:
    """A span of time in nanoseconds, 64 bits."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __repr__(self) -> str:
        return f"Duration({self.nanos})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


class Timestamp:
    """An instant: seconds since 1970, nanoseconds, and the zone that it prints in (seconds east of UTC)."""

    __slots__ = ("nanos", "offset", "seconds")

    def __init__(self, seconds: int, nanos: int = 0, offset: int = 0) -> None:
        self.seconds = seconds
        self.nanos = nanos
        self.offset = offset

    def __repr__(self) -> str:
        return f"Timestamp({self.seconds}, {self.nanos}, {self.offset})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and (self.seconds, self.nanos) == (other.seconds, other.nanos)

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanos))


class TypeValue:
    """A type as a value, compared by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"TypeValue({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


# The names of a value's type: in CEL, and in the messages that quote upstream's Go type. Libraries add theirs.
TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    Concatenation: "list",
    Collected: "list",
    dict: "map",
    Map: "map",
    CollectedMap: "map",
    Domains: "map",
    Optional: "optional_type",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
}
GO_NAMES: Final[dict[type, str]] = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    list: "*types.baseList",
    Concatenation: "*types.concatList",
    Collected: "*types.mutableList",
    dict: "*types.baseMap",
    Map: "*types.baseMap",
    CollectedMap: "*types.mutableMap",
    Domains: "cel.mapper",
    Optional: "*types.Optional",
    Quantity: "cel.Quantity",
    Semver: "cel.Semver",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    TypeValue: "*types.Type",
}


def type_name(value: Value) -> str:
    """The name of a value's type in CEL."""
    return TYPE_NAMES[value.__class__]


def go_name(value: Value) -> str:
    """The name of upstream's Go type, which some messages quote."""
    if value.__class__ is Quantity and value.computed:
        return "*cel.Quantity"
    return GO_NAMES[value.__class__]


def is_list(value: Value) -> bool:
    """Whether the value is a list."""
    return value.__class__ in _LISTS


_LISTS: Final = frozenset({list, Concatenation, Collected})


def plain(value: Value) -> Value:
    """A macro's result: what it collected becomes an ordinary list or map."""
    kind = value.__class__
    if kind is Collected:
        return list(value)
    return Map(value) if kind is CollectedMap else value


# --- map keys

_TAGGED: Final = frozenset({bool, int, Uint, float, type(None), Timestamp, Duration, TypeValue})
_UNHASHABLE: Final = frozenset({"types.Bytes", "cel.Semver", "cel.Format"})


class _Identity:
    """A key that upstream hashes by its address."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def hashable(value: Value) -> None:
    """Panic as upstream does when the value cannot be a key (quirk 4)."""
    name = go_name(value)
    if name in _UNHASHABLE:
        raise PanicError(f"internal error: runtime error: hash of unhashable type {name}")


def tag(key: Value) -> Any:
    """The dictionary key for a CEL value: strings stand for themselves, others carry their class."""
    kind = key.__class__
    if kind is str:
        return key
    if kind in _TAGGED:
        return kind, key
    hashable(key)
    return kind, _Identity(key)


def untag(key: Any) -> Value:
    """The CEL value of a dictionary key."""
    if key.__class__ is str:
        return key
    value = key[1]
    return value.value if value.__class__ is _Identity else value


def find(mapping: dict[Any, Value], key: Value) -> Value:
    """The value for a key, or MISSING; numbers of other kinds find their equals."""
    kind = key.__class__
    if kind is str:
        found = mapping.get(key, MISSING)
    elif not mapping or (not isinstance(mapping, Map) and kind not in _TAGGED):
        found = MISSING
    else:
        found = _find_tagged(mapping, key)
    if found is MISSING and mapping.__class__ is Domains:
        return _EMPTY
    return found


def _find_tagged(mapping: dict[Any, Value], key: Value) -> Value:
    found = mapping.get(tag(key), MISSING)
    if found is not MISSING:
        return found
    kind = key.__class__
    if kind is float and not math.isnan(key) and abs(key) < 2.0**65 and key == int(key):
        found = mapping.get((int, int(key)), MISSING)
        return mapping.get((Uint, int(key)), MISSING) if found is MISSING else found
    if kind is int:
        return mapping.get((Uint, key), MISSING)
    if kind is Uint:
        return mapping.get((int, int(key)), MISSING)
    return MISSING


def contains(container: Value, item: Value) -> bool:
    """`item in container`."""
    if is_list(container):
        return any(_same(item, each) for each in container)
    if isinstance(container, dict):
        if container.__class__ is Domains:
            return item.__class__ is str and item in container
        return find(container, item) is not MISSING
    raise no_overload()


def _same(item: Value, each: Value) -> bool:
    try:
        return equal_by(item, each)
    except PanicError:
        raise
    except EvaluationError:
        return False


# --- equality and order


def equal(left: Value, right: Value) -> bool:
    """`left == right`, in upstream's asymmetry: values of Kubernetes' types on the left refuse foreign ones."""
    if left is None or right is None:
        return left is right
    return equal_by(left, right)


def equal_by(left: Value, right: Value) -> bool:
    """Equality as the left value defines it."""
    compare_with = _EQUALITY.get(left.__class__)
    if compare_with is not None:
        return bool(compare_with(left, right))
    return left.__class__ is right.__class__ and bool(left == right)


def _equal_exactly(left: Value, right: Value) -> bool:
    return left.__class__ is right.__class__ and bool(left == right)


def _equal_int(left: Value, right: Value) -> bool:
    kind = right.__class__
    if kind is int or kind is Uint:
        return bool(left == right)
    return kind is float and not math.isnan(right) and _order_mixed(right, left) == 0


def _equal_double(left: Value, right: Value) -> bool:
    kind = right.__class__
    if math.isnan(left):
        return False
    if kind is float:
        return bool(left == right)
    return (kind is int or kind is Uint) and _order_mixed(left, right) == 0


def _equal_list(left: Value, right: Value) -> bool:
    """Elements that cannot be compared count as equal: upstream overlooks those errors."""
    if not is_list(right) or len(left) != len(right):
        return False
    for one, other in zip(left, right, strict=True):
        try:
            if not equal(one, other):
                return False
        except PanicError:
            raise
        except EvaluationError:
            continue
    return True


def _equal_concatenation(left: Value, right: Value) -> bool:
    if not is_list(right) or len(left) != len(right):
        return False
    failure: EvaluationError | None = None
    for one, other in zip(left, right, strict=True):
        try:
            if not equal(one, other):
                return False
        except PanicError:
            raise
        except EvaluationError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return True


def _equal_map(left: Value, right: Value) -> bool:
    if not isinstance(right, dict) or len(left) != len(right):
        return False
    for key, value in left.items():
        other = find(right, untag(key))
        if other is MISSING:
            return False
        try:
            if not equal(value, other):
                return False
        except PanicError:
            raise
        except EvaluationError:
            continue
    return True


def _equal_optional(left: Value, right: Value) -> bool:
    if right.__class__ is not Optional:
        return False
    if left is NONE or right is NONE:
        return left is right
    return equal_by(left.value, right.value)


def _equal_quantity(left: Value, right: Value) -> bool:
    if right.__class__ is not Quantity or right.computed:
        raise no_overload()
    return bool(left.exact.compare(right.exact) == 0)


def _equal_semver(left: Value, right: Value) -> bool:
    if right.__class__ is not Semver:
        raise no_overload()
    return bool(left.exact == right.exact)


_EQUALITY: Final[dict[type, Any]] = {
    str: _equal_exactly,
    bool: _equal_exactly,
    bytes: _equal_exactly,
    int: _equal_int,
    Uint: _equal_int,
    float: _equal_double,
    list: _equal_list,
    Concatenation: _equal_concatenation,
    Collected: _equal_list,
    dict: _equal_map,
    Map: _equal_map,
    CollectedMap: _equal_map,
    Domains: _equal_map,
    Optional: _equal_optional,
    Quantity: _equal_quantity,
    Semver: _equal_semver,
    type(None): lambda left, right: left is right,
}
EQUALITY: Final = _EQUALITY


def _order(left: Value, right: Value) -> int:
    return int(left > right) - int(left < right)


def _order_mixed(double: float, whole: int) -> int:
    """A double against an int or uint; whole numbers lose precision as in Go."""
    low, high = (0.0, float(MAX_UINT)) if whole.__class__ is Uint else (float(MIN_INT), float(MAX_INT))
    if double < low:
        return -1
    if double > high:
        return 1
    return _order(double, float(whole))


_NUMBERS: Final = frozenset({int, Uint, float})
_ORDERED: Final = frozenset({bool, str, bytes, int, Uint, float, Duration, Timestamp})


def compare(left: Value, right: Value, operator: str) -> int:
    """-1, 0 or 1, or an error when the values have no order."""
    kind, other = left.__class__, right.__class__
    if kind not in _ORDERED:
        raise no_overload(operator)
    if kind is float and math.isnan(left):
        raise EvaluationError("NaN values cannot be ordered")
    if kind in _NUMBERS:
        if other not in _NUMBERS:
            raise no_overload()
        if other is float and math.isnan(right):
            raise EvaluationError("NaN values cannot be ordered")
        if kind is float and other is not float:
            return _order_mixed(left, right)
        if other is float and kind is not float:
            return -_order_mixed(right, left)
        return _order(left, right)
    if kind is not other:
        raise no_overload()
    if kind is Duration:
        return _order(left.nanos, right.nanos)
    if kind is Timestamp:
        return _order((left.seconds, left.nanos), (right.seconds, right.nanos))
    return _order(left, right)


# --- iteration, size, text


def iterate(value: Value) -> Iterable[Value]:
    """The elements of a list, the keys of a map."""
    if is_list(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, dict):
        return [untag(key) for key in value]
    raise EvaluationError(f"got '{go_name(value)}', expected iterable type")


def iterate_pairs(value: Value) -> Iterable[tuple[Value, Value]]:
    """Index and element of a list, key and value of a map."""
    if is_list(value):
        return enumerate(value)
    if isinstance(value, dict):
        return [(untag(key), each) for key, each in value.items()]
    raise EvaluationError(f"unsupported comprehension range type: {go_name(value)}")


def size(value: Value) -> int:
    """`size(value)`: code points, bytes, elements or entries."""
    kind = value.__class__
    if kind is str or kind is bytes or is_list(value) or isinstance(value, dict):
        return len(value)
    if kind is Duration or kind is Timestamp:
        raise no_overload()
    raise no_overload("size")


def show(value: Value) -> str:
    """A value as messages print it."""
    kind = value.__class__
    if kind is bool:
        return "true" if value else "false"
    if kind is str:
        return str(value)
    if kind is float:
        from drakit.cel.functions.numbers import general

        return general(value)
    if is_list(value):
        return "[" + ", ".join(map(show, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{show(untag(key))}: {show(each)}" for key, each in value.items()) + "}"
    if value is None:
        return "NULL_VALUE"
    if kind is Optional:
        return "optional.none()" if value is NONE else f"optional({show(value.value)})"
    if kind is TypeValue:
        return str(value.name)
    if kind is Quantity or kind is Semver:
        return str(value.exact)
    return str(int(value)) if isinstance(value, int) else repr(value)


def adapt(value: Any) -> Value:
    """A CEL value for decoded JSON (or api values): numbers beyond 64 bits become doubles.

    Raises:
        EvaluationError: There is no CEL value for it.
    """
    kind = value.__class__
    if value is None or kind in (str, bool, float, bytes, Uint):
        return value
    if kind is int:
        return value if MIN_INT <= value <= MAX_INT else float(value)
    if kind is list or kind is tuple:
        return [adapt(each) for each in value]
    if isinstance(value, dict):
        return {str(key): adapt(each) for key, each in value.items()}
    wrapper = _wrappers().get(kind)
    if wrapper is None:
        raise EvaluationError(f"unsupported conversion to ref.Val: ({kind.__name__}){value}")
    return wrapper(value)


def _wrappers() -> dict[type, Any]:
    from drakit import api

    return {api.Quantity: Quantity, api.Semver: Semver}
