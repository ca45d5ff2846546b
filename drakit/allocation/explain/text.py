"""Reports for people: devices with like reasons become one phrase, conflicts and changes one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from drakit.allocation.explain.reasons import (
    AllOrNothing,
    LimitReached,
    NodeSelectorBroken,
    NotTogether,
    SearchEnded,
    SelectorUnmet,
    TooFew,
    rank,
)
from drakit.allocation.reasons import (
    AdminTwice,
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
    TaintNotTolerated,
    TakenInThisCall,
)
from drakit.allocation.selectors import CLASS, DERIVED
from drakit.api.quantity import BINARY_SI, DECIMAL_SI, Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from drakit.allocation.explain.report import ClaimReport, DeviceReport, Report, RequestReport

__all__ = ["lines", "phrase", "quantity", "summary"]

_NAMES: Final = 4
"""Holders, devices and values that are named before the rest is only counted."""

_PHRASES: Final = 8
"""Phrases of one line; the rest is only counted."""

_LENGTH: Final = 1000
"""Characters of a message that are shown."""

_NANO: Final = 10**9


def lines(report: Report) -> Iterator[str]:
    """All lines of a report."""
    if report.outcome == "fits":
        yield f"{report.node}: fits"
        for each in report.chosen:
            yield f"  {each.claim} {each.request}: {each.driver}/{each.pool}/{each.device}"
        return
    yield f"{report.node}: {_OUTCOMES[report.outcome]}" + (f": {_one_line(report.error)}" if report.error else "")
    for slice_ in report.slices:
        device = f", device {slice_.device}" if slice_.device else ""
        yield f"  slice {slice_.slice}{device}: {_one_line(slice_.message)}"
    for pool in report.pools:
        yield f"  pool {pool.driver}/{pool.pool} ({_counted(pool.devices, 'device')}): {phrase(pool.reason)}"
    for claim in report.claims:
        yield from _claim(report, claim)
    for conflict in report.conflicts:
        if len(conflict.requests) + len(conflict.constraints) > 1:
            verb = "cannot be satisfied together" if conflict.minimal else "probably cannot be satisfied together"
            yield f"  conflict: {conflict} {verb}"
    for number, change in enumerate(report.changes):
        yield f"  {'would fit' if not number else 'or'}: {change}"


_OUTCOMES: Final = {
    "does not fit": "does not fit",
    "error": "cannot be allocated on any node",
    "unknown": "not known, the search took too long",
}


def _claim(report: Report, claim: ClaimReport) -> Iterator[str]:
    """The requests of a claim; those that are no part of any conflict share a line."""
    yield f"  claim {claim.claim}" + (f": {claim.error}" if claim.error else "")
    blocked = {each.request for conflict in report.conflicts for each in conflict.requests if each.claim == claim.claim}
    innocent: dict[str, None] = {}
    for request in claim.requests:
        name = request.request.partition("/")[0]
        if request.fits_alone and report.conflicts and name not in blocked:
            innocent[name] = None
            continue
        count = "all devices" if request.count is None else _counted(request.count, "device")
        yield f"    request {request.request} ({count} of class {request.class_name}): {_request(report, request)}"
    if innocent:
        noun, verb = ("request", "fits") if len(innocent) == 1 else ("requests", "fit")
        yield f"    {noun} {_listed(innocent)}: {verb} alone"


def _request(report: Report, request: RequestReport) -> str:
    if request.error:
        error = _one_line(request.error)
        return error.partition(": ")[2] if error.startswith("claim ") else error
    if not request.devices:
        elsewhere = f"; {_counted(report.elsewhere, 'slice')} for other nodes" if report.elsewhere else ""
        return f"the node sees no devices{elsewhere}"
    return summary(request.devices)


def summary(devices: Sequence[DeviceReport]) -> str:
    """Like `8 devices: 5 in use by ml/a, ml/b; 2 tainted dra.example.com/unhealthy; 1 fails selector 1: ...`.

    Each device counts once, with that of its reasons which is hardest to overcome: a device that is in use and fails a
    selector fails the selector, because it would not help if it were free.
    """
    groups: dict[tuple[float, str], list[Reason | None]] = {}
    for device in devices:
        worst = max(device.reasons, key=rank) if device.reasons else None
        key = (-1.0, "") if worst is None else (rank(worst), _key(worst))
        groups.setdefault(key, []).append(worst)
    ordered = sorted(groups.items(), key=lambda group: group[0][0])
    phrases = [_group(reasons) for _, reasons in ordered[:_PHRASES]]
    rest = sum(len(reasons) for _, reasons in ordered[_PHRASES:])
    if rest:
        phrases.append(f"{rest} for other reasons")
    return f"{_counted(len(devices), 'device')}: {'; '.join(phrases)}"


def _group(reasons: Sequence[Reason | None]) -> str:
    """One phrase for devices with like reasons."""
    number, first = len(reasons), reasons[0]
    if first is None:
        return f"{number} would do"
    if isinstance(first, HeldExclusively):
        holders = dict.fromkeys(name for each in reasons if isinstance(each, HeldExclusively) for name in each.holders)
        return f"{number} in use by {_listed(holders)}"
    if isinstance(first, SelectorUnmet):
        facts = dict.fromkeys(
            " and ".join(map(str, each.facts)) for each in reasons if isinstance(each, SelectorUnmet) and each.facts
        )
        verb = "fails" if number == 1 else "fail"
        which = f"selector {first.index}" + (f" of class {first.owner}" if first.source == CLASS else "")
        return f"{number} {verb} {which}" + (f": {_listed(facts, ' or ')}" if facts else f": {first.expression}")
    if isinstance(first, TakenInThisCall):
        takers = dict.fromkeys(each.request for each in reasons if isinstance(each, TakenInThisCall))
        return f"{number} wanted by {'request' if len(takers) == 1 else 'requests'} {_listed(takers)} of {first.claim}"
    if isinstance(first, AttributeConflict):
        clashes = [each for each in reasons if isinstance(each, AttributeConflict)]
        values = dict.fromkeys(value for each in clashes for value in each.values)
        others = dict.fromkeys(other for each in clashes for other in each.others)
        relation = "also in" if first.distinct else "unlike"
        return f"{number} with {first.attribute} {_listed(values)} {relation} {_listed(others)}"
    if isinstance(first, CountersShort | CapacityShort):
        shortages = [each for each in reasons if isinstance(each, CountersShort | CapacityShort)]
        held = dict.fromkeys(name for each in shortages for name in each.holders)
        distinct = dict.fromkeys(phrase(msgspec.structs.replace(each, holders=())) for each in shortages)
        return f"{number} {_listed(distinct, ' or ')}" + (f", used by {_listed(held)}" if held else "")
    return f"{number} {_listed(dict.fromkeys(phrase(each) for each in reasons if each is not None), ' or ')}"


def _key(reason: Reason) -> str:
    """What makes reasons of one type alike enough for one phrase."""
    match reason:
        case HeldExclusively():
            return ""
        case SelectorUnmet():
            return f"{reason.source} {reason.index}"
        case TakenInThisCall():
            return reason.claim
        case CountersShort():
            return f"{reason.counter_set} {reason.counter} {reason.need > 0}"
        case CapacityShort():
            return reason.name
        case AttributeConflict():
            return f"{reason.constraint} {reason.attribute}"
        case _:
            return phrase(reason)


def phrase(reason: Reason) -> str:
    """One reason, as it reads after `1 device:` or a number of devices."""
    match reason:
        case PoolObsolete():
            return f"generation {reason.generation} is obsolete, other nodes have {reason.newest}"
        case PoolIncomplete():
            return f"in an incomplete pool ({reason.seen} of {_counted(reason.announced, 'slice')} seen)"
        case PoolInvalid():
            return f"in an invalid pool ({reason.reason})"
        case NotForNode():
            return "for other nodes"
        case NodeSelectorBroken():
            return f"with a broken node selector: {_one_line(reason.message)}"
        case FeatureOff():
            return f"unusable without {reason.gate} ({reason.needed_for})"
        case SelectorUnmet():
            facts = " and ".join(map(str, reason.facts)) or reason.expression
            return f"fails selector {reason.index}: {facts}"
        case SelectorFailed():
            return _failed(reason)
        case HeldExclusively():
            return f"in use by {_listed(dict.fromkeys(reason.holders))}"
        case TakenInThisCall():
            return f"wanted by request {reason.request} of {reason.claim}"
        case AdminTwice():
            return f"already used by request {reason.request} of the same claim"
        case TaintNotTolerated():
            value = f"={reason.value}" if reason.value else ""
            return f"tainted {reason.key}{value}"
        case _:
            return _amounts(reason)


def _amounts(reason: Reason) -> str:
    """Reasons that compare amounts, values or counts."""
    match reason:
        case CountersShort():
            holders = f", used by {_listed(dict.fromkeys(reason.holders))}" if reason.holders else ""
            have = quantity(reason.have)
            if not reason.need:
                return f"blocked by overdrawn counter {reason.counter_set}/{reason.counter} ({have}{holders})"
            return f"short of counter {reason.counter_set}/{reason.counter}: {have} < {quantity(reason.need)}{holders}"
        case CapacityShort():
            holders = f", used by {_listed(dict.fromkeys(reason.holders))}" if reason.holders else ""
            return f"short of {reason.name}: {quantity(reason.have)} < {quantity(reason.need)}{holders}"
        case CapacityUnknown():
            return f"without capacity {reason.name}"
        case CapacityPolicyViolated():
            return f"with a policy that does not allow {reason.amount} of {reason.name}"
        case AttributeMissing():
            return f"without attribute {reason.attribute} of constraint {reason.constraint}"
        case AttributeTypeUnknown():
            return f"with an incomparable attribute {reason.attribute} of constraint {reason.constraint}"
        case AttributeConflict():
            relation = "also in" if reason.distinct else "unlike"
            others = _listed(dict.fromkeys(reason.others))
            return f"with {reason.attribute} {', '.join(reason.values)} {relation} {others}"
        case GroupsIncompatible():
            others = f" ({', '.join(reason.others)})" if reason.others else ""
            groups = ", ".join(reason.groups) or "none"
            return f"with compatibility groups {groups} unlike those in use on {reason.counter_set}{others}"
        case TooFew():
            return f"would do, but only {reason.have} of {reason.need} can be had"
        case AllOrNothing():
            return "would do, but all of them are asked for"
        case LimitReached():
            return f"would do, but a claim holds at most {_counted(reason.limit, 'device')}"
        case SearchEnded():
            return "would do, but an error ends the search first"
        case NotTogether():
            return f"would do alone, but not for {_listed(dict.fromkeys(reason.requests))} together"
        case _:
            return type(reason).__name__


def _failed(reason: SelectorFailed) -> str:
    what = (
        "derived attribute" if reason.source == DERIVED else "class selector" if reason.source == CLASS else "selector"
    )
    verb = "does not compile" if reason.compiling else "fails"
    return f"on which {what} {reason.index} {verb}: {_one_line(reason.message)}"


def quantity(nano: int) -> str:
    """An amount in 10**-9, in binary units when it is a round number of them."""
    if nano % (1024 * _NANO) == 0 and nano:
        return str(Quantity(nano // _NANO, 0, BINARY_SI))
    return str(Quantity(nano, -9, DECIMAL_SI))


def _one_line(text: str) -> str:
    """The first line of a message: compilers draw the place below it."""
    first = text.strip().partition("\n")[0].rstrip()
    return "".join(each if each.isprintable() else "?" for each in first)[:_LENGTH]


def _listed(names: dict[str, None], separator: str = ", ") -> str:
    several = list(names)
    if len(several) <= _NAMES:
        return separator.join(several)
    return f"{separator.join(several[:_NAMES])} and {len(several) - _NAMES} more"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
