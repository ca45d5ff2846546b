"""Why a pool, a device or a claim is out of the question: one frozen type per rule of spec/allocator.md 1.17.

The pure rules (`capacity.consume`, `taints.untolerated`, ...) return these; `explain` collects and condenses them.
`rule` is the number in that list.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

__all__ = [
    "AdminTwice",
    "AllImpossible",
    "AttributeConflict",
    "AttributeMissing",
    "AttributeTypeUnknown",
    "CapacityPolicyViolated",
    "CapacityShort",
    "CapacityUnknown",
    "CountersShort",
    "FeatureOff",
    "GroupsIncompatible",
    "HeldExclusively",
    "NotForNode",
    "PoolIncomplete",
    "PoolInvalid",
    "PoolObsolete",
    "Reason",
    "SelectorFailed",
    "SelectorFalse",
    "TaintNotTolerated",
    "TakenInThisCall",
    "UsedInThisRequest",
]


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all reasons; they compare by value."""

    rule: ClassVar[int] = 0


class PoolObsolete(Reason, frozen=True, kw_only=True):
    """A newer generation of the pool exists on other nodes."""

    rule = 1
    generation: int
    newest: int


class PoolIncomplete(Reason, frozen=True, kw_only=True):
    """Not as many slices of the newest generation as the pool announces."""

    rule = 2
    seen: int
    announced: int


class PoolInvalid(Reason, frozen=True, kw_only=True):
    """Slices of the pool contradict each other."""

    rule = 3
    reason: str


class NotForNode(Reason, frozen=True, kw_only=True):
    """The slice, or the device, is for other nodes."""

    rule = 4


class FeatureOff(Reason, frozen=True, kw_only=True):
    """The device needs a feature that is off; `number` is that of its rule: 6, 13 or 21."""

    number: int
    gate: str
    needed_for: str


class SelectorFalse(Reason, frozen=True, kw_only=True):
    """A class selector (rule 7) or request selector (rule 8) is false."""

    source: str
    index: int
    expression: str


class SelectorFailed(Reason, frozen=True, kw_only=True):
    """A selector or derived attribute cannot be compiled or evaluated on this device: fatal for the pod."""

    rule = 9
    source: str
    index: int
    expression: str
    compiling: bool
    message: str
    name: str = ""


class HeldExclusively(Reason, frozen=True, kw_only=True):
    """An allocated claim holds the whole device."""

    rule = 10
    holders: tuple[str, ...]


class TakenInThisCall(Reason, frozen=True, kw_only=True):
    """An earlier request, of this claim or of one before it, took the device."""

    rule = 11
    claim: str
    request: str


class AdminTwice(Reason, frozen=True, kw_only=True):
    """A request with adminAccess wants a device that its own claim took already."""

    rule = 12
    request: str


class CountersShort(Reason, frozen=True, kw_only=True):
    """A shared counter has less left than the device draws, or was overdrawn before (then `need` is 0)."""

    rule = 14
    counter_set: str
    counter: str
    need: int
    have: int
    holders: tuple[str, ...] = ()


class TaintNotTolerated(Reason, frozen=True, kw_only=True):
    """A NoSchedule or NoExecute taint that no toleration of the request matches."""

    rule = 15
    key: str
    value: str
    effect: str


class AttributeMissing(Reason, frozen=True, kw_only=True):
    """A constraint needs an attribute that the device does not have."""

    rule = 16
    constraint: int
    attribute: str


class AttributeTypeUnknown(Reason, frozen=True, kw_only=True):
    """A constraint needs an attribute whose type it cannot compare."""

    rule = 16
    constraint: int
    attribute: str


class AttributeConflict(Reason, frozen=True, kw_only=True):
    """The attribute does not go with the devices chosen before."""

    rule = 16
    constraint: int
    attribute: str
    distinct: bool
    values: tuple[str, ...]
    others: tuple[str, ...]


class CapacityUnknown(Reason, frozen=True, kw_only=True):
    """The request asks for a capacity that the device does not declare."""

    rule = 17
    name: str


class CapacityPolicyViolated(Reason, frozen=True, kw_only=True):
    """The amount, rounded by the policy, is not one that the policy allows."""

    rule = 17
    name: str
    amount: str


class CapacityShort(Reason, frozen=True, kw_only=True):
    """Less is left than needed (units of 10**-9)."""

    rule = 17
    name: str
    need: int
    have: int
    holders: tuple[str, ...] = ()


class GroupsIncompatible(Reason, frozen=True, kw_only=True):
    """Devices in use on the counter set share no compatibility group with this one."""

    rule = 18
    counter_set: str
    groups: tuple[str, ...]
    others: tuple[str, ...]


class AllImpossible(Reason, frozen=True, kw_only=True):
    """`allocationMode: All` matches no device at all."""

    rule = 19


class UsedInThisRequest(Reason, frozen=True, kw_only=True):
    """A shareable device serves one request only once."""

    rule = 22
    request: str
