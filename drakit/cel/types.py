"""Types of the checker: immutable, compared by their text, with upstream's assignability rules."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ANY", "BOOL", "BYTES", "CIDR", "DOUBLE", "DURATION", "DYN", "ERROR", "FORMAT", "INT", "IP", "NULL", "QUANTITY",
    "SEMVER", "STRING", "TIMESTAMP", "TYPE", "UINT", "URL", "Substitution", "Type",
    "list_of", "map_of", "nullable", "opaque", "optional_of", "parameter", "struct", "type_of",
]  # fmt: skip


class Type:
    """A type: `kind` (bool, int, list, struct, ...), the name it has at run time, and parameters.

    `str()` is how results are described, `text` how the checker's messages spell it.
    """

    __slots__ = ("free", "hash", "kind", "name", "parameters", "text")

    text: str
    free: bool

    def __init__(self, kind: str, name: str, parameters: tuple[Type, ...] = (), text: str = "") -> None:
        self.kind = kind
        self.name = name
        self.parameters = parameters
        inner = ", ".join(each.text for each in parameters)
        self.text = text or (f"{name}({inner})" if parameters else name)
        self.free = kind == "parameter" or any(each.free for each in parameters)
        self.hash = hash((kind, self.text))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Type) and self.kind == other.kind and self.text == other.text

    def __hash__(self) -> int:
        return self.hash

    def __str__(self) -> str:
        if self.kind == "parameter":
            return f"<{self.name}>"
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def __repr__(self) -> str:
        return f"Type({self.text})"


BOOL: Final = Type("bool", "bool")
BYTES: Final = Type("bytes", "bytes")
DOUBLE: Final = Type("double", "double")
INT: Final = Type("int", "int")
STRING: Final = Type("string", "string")
UINT: Final = Type("uint", "uint")
NULL: Final = Type("null", "null_type", text="null")
DYN: Final = Type("dyn", "dyn")
ANY: Final = Type("any", "google.protobuf.Any", text="any")
ERROR: Final = Type("error", "error", text="!error!")
DURATION: Final = Type("duration", "google.protobuf.Duration", text="duration")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp", text="timestamp")
TYPE: Final = Type("type", "type")


def list_of(element: Type) -> Type:
    """`list(element)`."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """`map(key, value)`."""
    return Type("map", "map", (key, value))


def opaque(name: str, *parameters: Type) -> Type:
    """A type without structure, such as `optional_type(T)`."""
    return Type("opaque", name, parameters)


def optional_of(value: Type) -> Type:
    """`optional_type(value)`."""
    return opaque("optional_type", value)


def struct(name: str) -> Type:
    """A type with fields or methods only."""
    return Type("struct", name)


def parameter(name: str) -> Type:
    """A type variable."""
    return Type("parameter", name)


def nullable(value: Type) -> Type:
    """The type of a wrapper message: the value or null."""
    return Type(value.kind, value.name, text=f"wrapper({value.text})")


def type_of(value: Type) -> Type:
    """The type of an expression that denotes a type."""
    return Type("type", "type", (value,))


QUANTITY: Final = struct("kubernetes.Quantity")
SEMVER: Final = struct("kubernetes.Semver")
URL: Final = struct("kubernetes.URL")
FORMAT: Final = struct("kubernetes.NamedFormat")
IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")

_FLEXIBLE: Final = frozenset({"dyn", "any", "error"})
_NULLABLE: Final = frozenset({"opaque", "struct", "any", "duration", "timestamp", "dyn", "null"})
_NESTED: Final = frozenset({"opaque", "list", "map"})


def is_dyn(type: Type) -> bool:
    """Whether anything may stand there at run time."""
    return type.kind in ("dyn", "any")


class Substitution:
    """What type variables stand for; failed attempts are rolled back by a journal instead of copies."""

    __slots__ = ("_bound", "_journal", "count")

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._journal: list[tuple[str, Type | None]] = []
        self.count = 0

    def fresh(self) -> Type:
        """A variable that occurs nowhere else."""
        self.count += 1
        return parameter(f"_var{self.count - 1}")

    def assignable(self, first: Type, second: Type) -> bool:
        """Whether `first` can stand where `second` is expected; binds variables when it can."""
        return self.all_assignable((first,), (second,))

    def all_assignable(self, first: tuple[Type, ...] | list[Type], second: tuple[Type, ...] | list[Type]) -> bool:
        """`assignable` for lists of the same length, all or nothing."""
        if len(first) != len(second):
            return False
        mark = len(self._journal)
        for one, other in zip(first, second, strict=True):
            if not self._assignable(one, other):
                self._undo(mark)
                return False
        return True

    def _undo(self, mark: int) -> None:
        while len(self._journal) > mark:
            name, before = self._journal.pop()
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before

    def _bind(self, variable: Type, value: Type) -> None:
        self._journal.append((variable.name, self._bound.get(variable.name)))
        self._bound[variable.name] = value

    def _assignable(self, one: Type, other: Type) -> bool:
        if one is other and not one.free:
            return True
        kind, other_kind = one.kind, other.kind
        if other_kind == "parameter":
            valid, bound = self._substitutable(one, other)
            if valid or bound:
                return valid
        if kind == "parameter":
            return self._substitutable(other, one)[0]
        if kind in _FLEXIBLE or other_kind in _FLEXIBLE:
            return True
        if kind == "null":
            return other_kind in _NULLABLE or other.text.startswith("wrapper(")
        if other_kind == "null":
            return kind in _NULLABLE or one.text.startswith("wrapper(")
        if kind == "type":
            return other_kind == "type"
        if kind in _NESTED:
            return (
                kind == other_kind
                and one.name == other.name
                and len(one.parameters) == len(other.parameters)
                and all(map(self._assignable, one.parameters, other.parameters))
            )
        return kind == other_kind and one.name == other.name

    def _substitutable(self, value: Type, variable: Type) -> tuple[bool, bool]:
        """Whether the variable can stand for the value, and whether it already stands for something."""
        if value == variable:
            return True, True
        current = self._bound.get(variable.name)
        if current is not None:
            if value == current:
                return True, True
            if self._assignable(value, current):
                general = most_general(value, current)
                if self._absent(variable, general):
                    self._bind(variable, general)
                return True, True
            return False, True
        if self._absent(variable, value):
            self._bind(variable, value)
            return True, False
        return False, False

    def _absent(self, variable: Type, within: Type) -> bool:
        """The occurs check."""
        if variable == within:
            return False
        if not within.free:
            return True
        if within.kind == "parameter":
            bound = self._bound.get(within.name)
            return bound is None or self._absent(variable, bound)
        return all(self._absent(variable, each) for each in within.parameters)

    def apply(self, type: Type, *, close: bool = False) -> Type:
        """Replace bound variables; with `close`, unbound ones become dyn."""
        if not type.free:
            return type
        if type.kind == "parameter":
            bound = self._bound.get(type.name)
            if bound is not None:
                return self.apply(bound, close=close)
            return DYN if close else type
        return Type(type.kind, type.name, tuple(self.apply(each, close=close) for each in type.parameters))


def rename(type: Type, names: dict[str, Type]) -> Type:
    """Replace an overload's own type parameters by fresh variables."""
    if not type.free:
        return type
    if type.kind == "parameter":
        return names.get(type.name, type)
    return Type(type.kind, type.name, tuple(rename(each, names) for each in type.parameters))


def most_general(one: Type, other: Type) -> Type:
    """Of two types that unify the more general one."""
    return one if _less_specific(one, other) else other


def _less_specific(one: Type, other: Type) -> bool:
    if is_dyn(one) or one.kind == "parameter":
        return True
    if is_dyn(other) or other.kind == "parameter" or one.kind != other.kind:
        return False
    if one.kind in _NESTED:
        return (
            one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(map(_less_specific, one.parameters, other.parameters))
        )
    return one.kind == "type" or one == other


def equivalent(one: Type, other: Type) -> bool:
    """Equal up to the names of type variables."""
    if one == other:
        return True
    if one.kind != other.kind or len(one.parameters) != len(other.parameters):
        return False
    if one.kind != "parameter" and one.name != other.name:
        return False
    return all(map(equivalent, one.parameters, other.parameters))
