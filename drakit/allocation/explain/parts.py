"""Claims taken apart: the same claims with some of their requests and constraints only, or with edits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from drakit.allocation.explain.report import (
    ConstraintRef,
    DropConstraint,
    DropSelector,
    Edit,
    FreeDevice,
    LowerCapacity,
    LowerCount,
    RequestRef,
    Tolerate,
)
from drakit.allocation.requests import claim_name
from drakit.api import resource
from drakit.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Part", "Parts", "Rule", "Subset", "edited"]

Part: TypeAlias = tuple[int, int]
"""A request: index of the claim, index in it."""

Rule: TypeAlias = tuple[int, int]
"""A constraint: index of the claim, index in it."""

_Request: TypeAlias = resource.ExactDeviceRequest | resource.DeviceSubRequest


class Subset(msgspec.Struct, frozen=True):
    """Reduced claims, with the place that each claim and each constraint had before."""

    claims: tuple[resource.ResourceClaim, ...]
    places: tuple[int, ...]
    rules: tuple[tuple[int, ...], ...]


class Parts:
    """The requests and constraints of some claims."""

    def __init__(self, claims: Sequence[resource.ResourceClaim]) -> None:
        self.claims = claims
        self.requests: list[Part] = [
            (place, index) for place, claim in enumerate(claims) for index in range(len(claim.spec.devices.requests))
        ]
        self.rules: list[Rule] = [
            (place, index) for place, claim in enumerate(claims) for index in range(len(claim.spec.devices.constraints))
        ]
        self._subsets: dict[tuple[frozenset[Part], frozenset[Rule]], Subset] = {}

    def request(self, part: Part) -> resource.DeviceRequest:
        """The request of a part."""
        return self.claims[part[0]].spec.devices.requests[part[1]]

    def reference(self, part: Part) -> RequestRef:
        """The names of a request."""
        return RequestRef(claim_name(self.claims[part[0]]), self.request(part).name)

    def constraint(self, rule: Rule) -> ConstraintRef:
        """The names of a constraint."""
        claim = self.claims[rule[0]]
        found = claim.spec.devices.constraints[rule[1]]
        distinct = found.match_attribute is None and found.distinct_attribute is not None
        attribute = found.match_attribute or found.distinct_attribute or ""
        return ConstraintRef(claim_name(claim), rule[1], attribute, distinct)

    def is_empty(self, rule: Rule) -> bool:
        """Whether a constraint names no attribute, which makes its claim invalid."""
        found = self.claims[rule[0]].spec.devices.constraints[rule[1]]
        return found.match_attribute is None and found.distinct_attribute is None

    def sound_rules(self, place: int) -> list[Rule]:
        """The constraints of a claim that name an attribute."""
        return [rule for rule in self.rules if rule[0] == place and not self.is_empty(rule)]

    def subset(self, requests: Iterable[Part], rules: Iterable[Rule]) -> Subset:
        """The claims with these requests and constraints only; claims without requests are left out."""
        key = frozenset(requests), frozenset(rules)
        found = self._subsets.get(key)
        if found is None:
            found = self._subsets[key] = self._subset(*key)
        return found

    def _subset(self, requests: frozenset[Part], rules: frozenset[Rule]) -> Subset:
        claims, places, kept_rules = [], [], []
        for place, claim in enumerate(self.claims):
            devices = claim.spec.devices
            wanted = tuple(each for index, each in enumerate(devices.requests) if (place, index) in requests)
            if not wanted:
                continue
            kept = tuple(index for index in range(len(devices.constraints)) if (place, index) in rules)
            constraints = tuple(devices.constraints[index] for index in kept)
            claims.append(_with_devices(claim, requests=wanted, constraints=constraints))
            places.append(place)
            kept_rules.append(kept)
        return Subset(tuple(claims), tuple(places), tuple(kept_rules))


def single(subset: Subset) -> Subset:
    """The same with all counts lowered to 1, so that single devices can be judged whatever is asked for."""
    claims = tuple(
        _with_devices(claim, requests=tuple(_each(request, _one) for request in claim.spec.devices.requests))
        for claim in subset.claims
    )
    return Subset(claims, subset.places, subset.rules)


def _one(request: _Request) -> _Request:
    return request if request.count <= 1 else msgspec.structs.replace(request, count=1)


def _with_devices(claim: resource.ResourceClaim, **changes: object) -> resource.ResourceClaim:
    devices = msgspec.structs.replace(claim.spec.devices, **changes)
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))


def edited(claims: Sequence[resource.ResourceClaim], edits: Iterable[Edit]) -> tuple[resource.ResourceClaim, ...]:
    """The claims after the edits that concern claims; `FreeDevice` does not.

    Edits that remove something by its index (constraints, selectors) must come last to first within one object; they
    are sorted here.
    """
    changed = list(claims)
    ordered = sorted(edits, key=lambda edit: -(_index(edit)))
    for edit in ordered:
        if isinstance(edit, FreeDevice):
            continue
        for place, claim in enumerate(changed):
            if claim_name(claim) == edit.claim:
                changed[place] = _edit(claim, edit)
    return tuple(changed)


def _index(edit: Edit) -> int:
    if isinstance(edit, DropConstraint):
        return edit.constraint.index
    return edit.index if isinstance(edit, DropSelector) else -1


def _edit(claim: resource.ResourceClaim, edit: Edit) -> resource.ResourceClaim:
    devices = claim.spec.devices
    if isinstance(edit, DropConstraint):
        dropped = edit.constraint.index
        return _with_devices(claim, constraints=devices.constraints[:dropped] + devices.constraints[dropped + 1 :])
    assert not isinstance(edit, FreeDevice)
    parent, _, alternative = edit.request.partition("/")
    requests = tuple(
        _each(request, lambda each: _edit_request(each, edit), alternative) if request.name == parent else request
        for request in devices.requests
    )
    return _with_devices(claim, requests=requests)


def _edit_request(request: _Request, edit: Edit) -> _Request:
    match edit:
        case Tolerate():
            toleration = resource.DeviceToleration(key=edit.key, operator="Equal", value=edit.value, effect=edit.effect)
            return msgspec.structs.replace(request, tolerations=(*request.tolerations, toleration))
        case LowerCount():
            return msgspec.structs.replace(request, count=edit.count)
        case LowerCapacity():
            before = request.capacity.requests if request.capacity is not None else {}
            amounts = {**before, edit.name: Quantity.parse(edit.amount)}
            return msgspec.structs.replace(request, capacity=resource.CapacityRequirements(requests=amounts))
        case DropSelector():
            kept = request.selectors[: edit.index] + request.selectors[edit.index + 1 :]
            return msgspec.structs.replace(request, selectors=kept)
        case _:
            return request


def _each(
    request: resource.DeviceRequest, change: Callable[[Any], Any], alternative: str = ""
) -> resource.DeviceRequest:
    """Change the request, or its alternatives (only one of them when it is named)."""
    exactly = request.exactly
    if exactly is not None:
        changed = change(exactly)
        return request if changed is exactly else msgspec.structs.replace(request, exactly=changed)
    several = tuple(
        change(each) if not alternative or each.name == alternative else each for each in request.first_available
    )
    return msgspec.structs.replace(request, first_available=several) if several else request
