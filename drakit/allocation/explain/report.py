"""What `explain` answers: frozen values with typed reasons; `lines()` says the same to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from drakit.allocation.reasons import Reason
    from drakit.cel.why import Fact

__all__ = [
    "Change",
    "Chosen",
    "ClaimReport",
    "Conflict",
    "ConstraintRef",
    "DeviceReport",
    "DropConstraint",
    "DropSelector",
    "Edit",
    "FreeDevice",
    "LowerCapacity",
    "LowerCount",
    "Outcome",
    "PoolReport",
    "Report",
    "RequestRef",
    "RequestReport",
    "SliceReport",
    "Tolerate",
]

Outcome: TypeAlias = Literal["fits", "does not fit", "error", "unknown"]
"""`error` is what `allocate` raises as `AllocationError`; `unknown` means that the search used up its budget."""


class RequestRef(msgspec.Struct, frozen=True, order=True):
    """A request of a claim (`namespace/name`)."""

    claim: str
    request: str

    def __str__(self) -> str:
        return f"{self.claim} {self.request}"


class ConstraintRef(msgspec.Struct, frozen=True, order=True):
    """A constraint of a claim, by its position in `spec.devices.constraints`."""

    claim: str
    index: int
    attribute: str
    distinct: bool

    def __str__(self) -> str:
        if not self.attribute:
            return "an empty constraint"
        return f"{'distinctAttribute' if self.distinct else 'matchAttribute'} {self.attribute}"


class DeviceReport(msgspec.Struct, frozen=True):
    """One device of one pool, for one request.

    Attributes:
        usable: It could serve the request (one device of it) if nothing else were asked for.
        reasons: Why it does not help: all of them for devices that are not usable; for usable ones, why they cannot be
            combined with the rest, where that is known.
    """

    driver: str
    pool: str
    device: str
    usable: bool
    reasons: tuple[Reason, ...] = ()

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class RequestReport(msgspec.Struct, frozen=True, kw_only=True):
    """One request, or one alternative of a firstAvailable request.

    Attributes:
        request: `request` or `request/subrequest`.
        class_name: The device class.
        count: How many devices it wants, None for `allocationMode: All`.
        fits_alone: Whether its request could be allocated if it were the only one; None when not known.
        error: Why it is refused before any device is looked at, such as a class that does not exist.
        devices: Every device that the node sees, in search order.
    """

    request: str
    class_name: str
    count: int | None
    fits_alone: bool | None
    error: str = ""
    devices: tuple[DeviceReport, ...] = ()

    @property
    def usable(self) -> int:
        """Number of devices that could serve it."""
        return sum(each.usable for each in self.devices)


class ClaimReport(msgspec.Struct, frozen=True, kw_only=True):
    """One claim; `error` says what is wrong with the claim as a whole, such as too many devices."""

    claim: str
    requests: tuple[RequestReport, ...]
    error: str = ""


class PoolReport(msgspec.Struct, frozen=True, kw_only=True):
    """A pool whose devices cannot be used at all; `devices` counts those that the node would reach."""

    driver: str
    pool: str
    devices: int
    reason: Reason


class SliceReport(msgspec.Struct, frozen=True, kw_only=True):
    """A slice that cannot be read, or that a gate hides. `device` is set when only that device is concerned."""

    slice: str
    message: str
    device: str = ""
    path: str = ""


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Requests and constraints that cannot be satisfied together, although they can without any one of them.

    Attributes:
        minimal: Every member was proved to be needed; False when the budget did not suffice for that.
    """

    requests: tuple[RequestRef, ...]
    constraints: tuple[ConstraintRef, ...]
    minimal: bool = True

    def __str__(self) -> str:
        claims = {each.claim for each in self.requests}
        if len(claims) == 1:
            names = f"{', '.join(each.request for each in self.requests)} of {next(iter(claims))}"
        else:
            names = ", ".join(map(str, self.requests))
        rules = "".join(f" with {each}" for each in self.constraints[:1])
        rules += "".join(f", {each}" for each in self.constraints[1:])
        return names + rules


class FreeDevice(msgspec.Struct, frozen=True, order=True):
    """Nobody holds the device any more."""

    driver: str
    pool: str
    device: str
    holders: tuple[str, ...]

    def __str__(self) -> str:
        holders = f", held by {', '.join(self.holders)}" if self.holders else ""
        return f"free {self.driver}/{self.pool}/{self.device}{holders}"


class Tolerate(msgspec.Struct, frozen=True, order=True):
    """The request (or `request/subrequest`) tolerates a taint; taking the taint away does the same."""

    claim: str
    request: str
    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"tolerate {self.key}{value}:{self.effect} in request {self.request} of {self.claim}"


class LowerCount(msgspec.Struct, frozen=True, order=True):
    """The request asks for fewer devices."""

    claim: str
    request: str
    count: int

    def __str__(self) -> str:
        return f"ask for {self.count} in request {self.request} of {self.claim}"


class LowerCapacity(msgspec.Struct, frozen=True, order=True):
    """The request asks for less of a capacity; `amount` is a quantity."""

    claim: str
    request: str
    name: str
    amount: str

    def __str__(self) -> str:
        return f"ask for {self.amount} of {self.name} in request {self.request} of {self.claim}"


class DropConstraint(msgspec.Struct, frozen=True, order=True):
    """The claim does without a constraint."""

    claim: str
    constraint: ConstraintRef

    def __str__(self) -> str:
        return f"drop constraint {self.constraint.index} ({self.constraint}) of {self.claim}"


class DropSelector(msgspec.Struct, frozen=True):
    """The request does without a selector, or has it relaxed so far that it admits the device with these facts."""

    claim: str
    request: str
    index: int
    facts: tuple[Fact, ...] = ()

    def __str__(self) -> str:
        facts = f" to admit {', '.join(map(str, self.facts))}" if self.facts else ""
        return f"relax selector {self.index} of request {self.request} of {self.claim}{facts}"


Edit: TypeAlias = FreeDevice | Tolerate | LowerCount | LowerCapacity | DropConstraint | DropSelector


class Change(msgspec.Struct, frozen=True):
    """Edits that together make everything fit, none of them superfluous; proved by allocating with them."""

    edits: tuple[Edit, ...]

    def __str__(self) -> str:
        freed: dict[tuple[str, str], list[FreeDevice]] = {}
        for each in self.edits:
            if isinstance(each, FreeDevice):
                freed.setdefault((each.driver, each.pool), []).append(each)
        texts = [_freed(several) for several in freed.values()]
        texts += [str(each) for each in self.edits if not isinstance(each, FreeDevice)]
        return " and ".join(texts)


def _freed(several: list[FreeDevice]) -> str:
    """Devices of one pool in one phrase."""
    first = several[0]
    if len(several) == 1:
        return str(first)
    names = ", ".join(each.device for each in several)
    holders = ", ".join(dict.fromkeys(name for each in several for name in each.holders))
    return f"free {first.driver}/{first.pool}/{{{names}}}" + (f", held by {holders}" if holders else "")


class Chosen(msgspec.Struct, frozen=True):
    """A device that would be allocated."""

    claim: str
    request: str
    driver: str
    pool: str
    device: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one node and some claims.

    Attributes:
        outcome: What `allocate` says.
        error: Its message, when it raises.
        chosen: What would be allocated, when it fits.
        claims: Per claim and request what is the matter; empty when it fits.
        pools: Pools that cannot be used; `slices` slices that cannot be read.
        elsewhere: Number of slices that are for other nodes.
        conflicts: Minimal sets of requests and constraints that cannot be satisfied together: one per request that
            does not even fit alone, else one.
        changes: Changes that would make everything fit, smallest first, one per kind.
    """

    node: str
    outcome: Outcome
    error: str = ""
    chosen: tuple[Chosen, ...] = ()
    claims: tuple[ClaimReport, ...] = ()
    pools: tuple[PoolReport, ...] = ()
    slices: tuple[SliceReport, ...] = ()
    elsewhere: int = 0
    conflicts: tuple[Conflict, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether `allocate` finds an allocation."""
        return self.outcome == "fits"

    def lines(self) -> tuple[str, ...]:
        """What a person needs to know, one fact a line, indented by two blanks per level."""
        from drakit.allocation.explain import text

        return tuple(text.lines(self))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def plain(self) -> dict[str, Any]:
        """JSON values: camelCase names, reasons with type and rule, edits with type."""
        from drakit.allocation.explain.plain import plain

        return {**plain(self), "fits": self.fits}
