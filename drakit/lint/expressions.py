"""The CEL expressions of the input, and the environment that they are read in."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from drakit import cel
from drakit.lint.objects import Input, Object, items, mapping, requests, selectors, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drakit.cel.syntax import Node

__all__ = ["Expression", "Selection", "compiled", "derived", "environment", "parsed", "selections"]


class Expression(NamedTuple):
    """A CEL expression and where it stands."""

    object: Object
    path: str
    text: str


class Selection(NamedTuple):
    """A request's own selectors, and those of its DeviceClass; `known` is whether the class is in the input."""

    own: list[Expression]
    given: list[Expression]
    known: bool


def selections(data: Input) -> Iterator[Selection]:
    """All classes (as requests of themselves) and all requests that have selectors."""
    of_class = {
        name: [Expression(each, *found) for found in selectors("spec", mapping(each.value, "spec"))]
        for name, each in data.classes.items()
    }
    for own in of_class.values():
        yield Selection(own, [], known=True)
    for claim in data.claims:
        for request in requests(claim):
            name = text(request.body, "deviceClassName")
            own = [Expression(claim, *found) for found in selectors(request.path, request.body)]
            yield Selection(own, of_class.get(name, []), name in of_class)


def derived(data: Input) -> Iterator[Expression]:
    """The expressions of all derived attributes."""
    for claim in data.claims:
        for request in requests(claim):
            for index, each in enumerate(items(request.body, "derivedAttributes")):
                expression = text(each, "expression")
                if expression:
                    yield Expression(claim, f"{request.path}.derivedAttributes[{index}].expression", expression)


@functools.lru_cache(maxsize=8)
def environment(version: str) -> cel.Environment:
    """The environment of a Kubernetes version; one for all rules, as it remembers programs."""
    return cel.Environment(version)


def parsed(version: str, expression: str) -> Node | None:
    """The tree of an expression, None when it does not parse (which is refused, and said elsewhere)."""
    try:
        return environment(version).parse(expression)
    except cel.CompileError:
        return None


def compiled(version: str, expression: str) -> cel.Program | None:
    """The program of a selector, None when it does not compile."""
    try:
        return environment(version).compile(expression)
    except cel.CompileError:
        return None
