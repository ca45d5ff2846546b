"""Reasons that only an explanation knows: those of `drakit.allocation.reasons` with more detail, and combinations."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from drakit.allocation.reasons import (
    AdminTwice,
    AllImpossible,
    AttributeConflict,
    AttributeMissing,
    AttributeTypeUnknown,
    CapacityPolicyViolated,
    CapacityShort,
    CapacityUnknown,
    CountersShort,
    FeatureOff,
    GroupsIncompatible,
    HeldExclusively,
    NotForNode,
    PoolIncomplete,
    PoolInvalid,
    PoolObsolete,
    Reason,
    SelectorFailed,
    SelectorFalse,
    TaintNotTolerated,
    TakenInThisCall,
    UsedInThisRequest,
)

if TYPE_CHECKING:
    from drakit.cel.why import Fact

__all__ = [
    "AllOrNothing",
    "LimitReached",
    "NodeSelectorBroken",
    "NotTogether",
    "SearchEnded",
    "SelectorUnmet",
    "TooFew",
    "rank",
]


class SelectorUnmet(SelectorFalse, frozen=True, kw_only=True):
    """A selector that is false, and the comparisons that make it so.

    Attributes:
        owner: Name of the class, empty for selectors of the request.
        facts: What is true of the device instead; empty when it cannot be told.
    """

    owner: str = ""
    facts: tuple[Fact, ...] = ()


class NodeSelectorBroken(Reason, frozen=True, kw_only=True):
    """The device's own node selector cannot be parsed."""

    rule = 4
    message: str


class TooFew(Reason, frozen=True, kw_only=True):
    """The device would do, but the request needs more devices than can be had together."""

    rule = 0
    need: int
    have: int


class AllOrNothing(Reason, frozen=True, kw_only=True):
    """The device would do, but `allocationMode: All` also needs devices that cannot be had."""

    rule = 19


class LimitReached(Reason, frozen=True, kw_only=True):
    """The claim would get more results than it can hold."""

    rule = 20
    limit: int


class NotTogether(Reason, frozen=True, kw_only=True):
    """The device would do alone, but no choice of devices serves all of these requests."""

    rule = 0
    requests: tuple[str, ...]


class SearchEnded(Reason, frozen=True, kw_only=True):
    """The device would do, but an error on another device ends the search, on every node (rules 9 and 19)."""

    rule = 0
    error: str


_RANKS: Final[tuple[type[Reason], ...]] = (
    TooFew,
    AllOrNothing,
    LimitReached,
    NotTogether,
    SearchEnded,
    UsedInThisRequest,
    TakenInThisCall,
    AdminTwice,
    HeldExclusively,
    TaintNotTolerated,
    CountersShort,
    GroupsIncompatible,
    CapacityShort,
    AttributeConflict,
    CapacityPolicyViolated,
    CapacityUnknown,
    AttributeMissing,
    AttributeTypeUnknown,
    AllImpossible,
    SelectorFalse,
    SelectorFailed,
    FeatureOff,
    NotForNode,
    NodeSelectorBroken,
    PoolObsolete,
    PoolIncomplete,
    PoolInvalid,
)
_CLASS: Final = "class"


def rank(reason: Reason) -> float:
    """How far a device with this reason is from being usable; of several reasons the highest counts.

    Being in use passes by itself, a taint can be tolerated, a selector of the request relaxed; a class says that the
    device is of another kind, and a broken pool says nothing about its devices.
    """
    place = _place(type(reason))
    return place + 0.5 if isinstance(reason, SelectorFalse) and reason.source == _CLASS else place


@functools.cache
def _place(type_: type[Reason]) -> int:
    return next(index for index, kind in enumerate(_RANKS) if issubclass(type_, kind))
