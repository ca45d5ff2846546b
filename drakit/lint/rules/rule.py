"""What a rule is: a name, a summary for the documentation, and a function from the input to hits."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from drakit import cel
from drakit.lint.objects import Input, Object

__all__ = ["Hit", "Rule", "Target"]


class Target(NamedTuple):
    """The cluster for which the input is meant: Kubernetes minor version and feature gates that are on."""

    version: str = "1.37"
    gates: frozenset[str] = frozenset()


class Hit(NamedTuple):
    """A place where a rule has something to say; `position` is within the CEL expression at `path`."""

    object: Object
    path: str
    message: str
    position: cel.Position | None = None


class Rule(NamedTuple):
    """A warning that lint gives."""

    name: str
    summary: str
    check: Callable[[Input, Target], Iterator[Hit]]
