"""What functions exist: names, overloads with their types. One module a library, no behaviour."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from drakit.cel.types import Type

__all__ = ["Function", "Overload", "functions", "member", "overload"]


class Overload:
    """One signature of a function."""

    __slots__ = ("arguments", "function", "id", "member", "parameters", "result")

    def __init__(self, function: str, id: str, arguments: tuple[Type, ...], result: Type, *, member: bool) -> None:
        self.function = function
        self.id = id
        self.arguments = arguments
        self.result = result
        self.member = member
        names: dict[str, None] = {}
        for each in (*arguments, result):
            _collect(each, names)
        self.parameters = tuple(names)


def _collect(type: Type, names: dict[str, None]) -> None:
    if type.kind == "parameter":
        names[type.name] = None
    for each in type.parameters:
        _collect(each, names)


class Function:
    """A function with its overloads in order of declaration, which is also the order of dispatch."""

    __slots__ = ("globals", "members", "name", "overloads")

    def __init__(self, name: str, overloads: tuple[Overload, ...]) -> None:
        self.name = name
        self.overloads = overloads
        self.members = tuple(each for each in overloads if each.member)
        self.globals = tuple(each for each in overloads if not each.member)


def overload(function: str, id: str, *types: Type) -> Overload:
    """A global function: argument types, then the result's."""
    return Overload(function, id, types[:-1], types[-1], member=False)


def member(function: str, id: str, *types: Type) -> Overload:
    """A method: the target's type first, the result's last."""
    return Overload(function, id, types[:-1], types[-1], member=True)


def functions(libraries: Iterable[Iterable[Overload]]) -> Mapping[str, Function]:
    """All functions that a set of libraries declares."""
    grouped: dict[str, list[Overload]] = {}
    for library in libraries:
        for each in library:
            grouped.setdefault(each.function, []).append(each)
    return {name: Function(name, tuple(overloads)) for name, overloads in grouped.items()}
