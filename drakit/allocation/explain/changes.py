"""The smallest changes that would help, each proved by allocating with it.

Every device that does not help has reasons, and most reasons can be edited away: somebody could give the device back,
the request could tolerate the taint, and so on. Single edits are tried first, one kind after the other; when none
suffices, edits are added until everything fits, and those that turn out to be superfluous are left out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from drakit.allocation import counters
from drakit.allocation.explain.parts import edited
from drakit.allocation.explain.reasons import SelectorUnmet
from drakit.allocation.explain.report import (
    Change,
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
from drakit.allocation.explain.text import quantity
from drakit.allocation.reasons import (
    AttributeConflict,
    AttributeMissing,
    AttributeTypeUnknown,
    CapacityShort,
    CountersShort,
    GroupsIncompatible,
    HeldExclusively,
    Reason,
    TaintNotTolerated,
)
from drakit.allocation.selectors import REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from drakit.allocation.explain.report import DeviceReport, RequestReport
    from drakit.allocation.explain.world import World
    from drakit.allocation.pools import Pool
    from drakit.api import resource

__all__ = ["Blocked", "find_changes"]

_KINDS: Final[tuple[type[Edit], ...]] = (
    FreeDevice,
    Tolerate,
    LowerCapacity,
    LowerCount,
    DropConstraint,
    DropSelector,
)
_TRIES: Final = 16
"""Single edits of one kind that are tried."""

_MOST: Final = 48
"""Edits that are combined at most."""

_DEVICES: Final = 2000
"""Devices per request that edits are derived from."""

_Bundle: TypeAlias = "tuple[Edit, ...]"


class Blocked(msgspec.Struct, frozen=True):
    """A request, or an alternative of one, that is part of a conflict.

    Attributes:
        reference: The claim and `request` or `request/subrequest`.
        report: Its devices.
        constraints: The constraints of its claim, by position.
        asked: The capacities that it asks for by name.
    """

    reference: RequestRef
    report: RequestReport
    constraints: tuple[ConstraintRef, ...]
    asked: frozenset[str]


def find_changes(
    world: World,
    claims: Sequence[resource.ResourceClaim],
    blocked: Sequence[Blocked],
    constraints: Iterable[ConstraintRef],
) -> tuple[Change, ...]:
    """Changes that make everything fit: one per kind of edit if single edits suffice, else a combination.

    Args:
        world: The node.
        claims: What was asked for.
        blocked: The requests in conflicts.
        constraints: The constraints in conflicts.
    """
    finder = _Finder(world, claims, blocked, constraints)
    return tuple(finder.singles()) or tuple(finder.combinations())


class _Finder:
    def __init__(
        self,
        world: World,
        claims: Sequence[resource.ResourceClaim],
        blocked: Sequence[Blocked],
        constraints: Iterable[ConstraintRef],
    ) -> None:
        self._world = world
        self._claims = claims
        self._blocked = blocked
        self._pools = {(pool.driver, pool.name): pool for pool in world.pools}
        self._bundles = self._all_bundles()
        for each in constraints:
            self._bundles.setdefault((DropConstraint(each.claim, each),), 1)

    def singles(self) -> Iterator[Change]:
        """Single edits that suffice, at most one of each kind."""
        single = [bundle[0] for bundle in self._bundles if len(bundle) == 1]
        for kind in _KINDS:
            found: Edit | None
            if kind is LowerCount:
                found = self._lowered()
            else:
                of_kind = [edit for edit in single if isinstance(edit, kind)][:_TRIES]
                found = next((edit for edit in of_kind if self._helps((edit,))), None)
            if found is not None:
                yield Change((found,))

    def combinations(self) -> Iterator[Change]:
        """Several edits that suffice together, of one kind or mixed; the fewest first."""
        edits = self._ordered()
        tried: list[list[Edit]] = [
            [edit for edit in edits if isinstance(edit, kind)] for kind in (FreeDevice, Tolerate)
        ]
        tried.append(edits)
        found = [change for several in tried if (change := self._reduced(several)) is not None]
        yield from sorted(dict.fromkeys(found), key=lambda change: len(change.edits))

    def _ordered(self) -> list[Edit]:
        """All edits: those that make many devices usable first, then those of harmless kinds."""
        uses: dict[Edit, int] = {}
        for bundle, devices in self._bundles.items():
            for edit in bundle:
                uses[edit] = uses.get(edit, 0) + devices
        for each in self._blocked:
            count, usable = each.report.count, each.report.usable
            if count is not None and 0 < usable < count:
                uses[LowerCount(each.reference.claim, each.reference.request, usable)] = 0
        return sorted(uses, key=lambda edit: (-uses[edit], _kind(edit)))[:_MOST]

    def _reduced(self, edits: list[Edit]) -> Change | None:
        """The shortest prefix of the edits that suffices, without those that are superfluous in it.

        More edits may fit less (a device more for an All request, an error met earlier), so leaving out is repeated
        until nothing can be left out.
        """
        if len(edits) < 2 or not self._helps(edits):
            return None
        low, high = 1, len(edits)
        while low < high:
            middle = (low + high) // 2
            if self._helps(edits[:middle]):
                high = middle
            else:
                low = middle + 1
        kept = edits[:high]
        if not self._helps(kept):
            kept = edits
        shrinking = True
        while shrinking:
            shrinking = False
            for edit in reversed(kept):
                rest = [each for each in kept if each != edit]
                if rest and self._helps(rest):
                    kept, shrinking = rest, True
        return Change(tuple(kept))

    def _helps(self, edits: Iterable[Edit]) -> bool:
        edits = list(edits)
        freed = [edit for edit in edits if isinstance(edit, FreeDevice)]
        return self._world.attempt(edited(self._claims, edits), freed).fits

    def _lowered(self) -> LowerCount | None:
        """The highest lower count of one request with which everything fits."""
        for each in self._blocked:
            count = each.report.count
            if count is None or count < 2:
                continue
            best = None
            low, high = 1, count - 1
            while low <= high:
                middle = (low + high + 1) // 2
                edit = LowerCount(each.reference.claim, each.reference.request, middle)
                if self._helps((edit,)):
                    best, low = edit, middle + 1
                else:
                    high = middle - 1
            if best is not None:
                return best
        return None

    # --- what it takes to make single devices usable

    def _all_bundles(self) -> dict[_Bundle, int]:
        """What makes devices usable, with the number of devices."""
        found: dict[_Bundle, int] = {}
        for blocked in self._blocked:
            for device in blocked.report.devices[:_DEVICES]:
                bundle = self._bundle(blocked, device)
                if bundle:
                    found[bundle] = found.get(bundle, 0) + 1
        return found

    def _bundle(self, blocked: Blocked, device: DeviceReport) -> _Bundle | None:
        """The edits that remove all reasons of a device; None when there are none for one of them."""
        edits: dict[Edit, None] = {}
        for reason in device.reasons:
            several = self._edits(blocked, device, reason)
            if several is None:
                return None
            edits.update(dict.fromkeys(several))
        return tuple(edits)

    def _edits(self, blocked: Blocked, device: DeviceReport, reason: Reason) -> Sequence[Edit] | None:
        """The edits that remove one reason; those of usable devices are only known for constraints and counters."""
        claim, request = blocked.reference.claim, blocked.reference.request
        match reason:
            case HeldExclusively():
                return (FreeDevice(device.driver, device.pool, device.device, reason.holders),)
            case TaintNotTolerated():
                return (Tolerate(claim, request, reason.key, reason.value, reason.effect),)
            case CapacityShort():
                return self._more_room(blocked, device, reason)
            case CountersShort():
                return self._more_counters(device, reason)
            case GroupsIncompatible():
                return self._drawing(device, reason.counter_set) or None
            case SelectorUnmet() if reason.source == REQUEST:
                return (DropSelector(claim, request, reason.index, reason.facts),)
            case AttributeMissing() | AttributeTypeUnknown() | AttributeConflict():
                return (DropConstraint(claim, blocked.constraints[reason.constraint]),)
            case _:
                return None

    def _more_room(self, blocked: Blocked, device: DeviceReport, reason: CapacityShort) -> Sequence[Edit] | None:
        holders = self._holders(device, device.device)
        if holders and (not device.usable) and reason.holders:
            return (FreeDevice(device.driver, device.pool, device.device, holders),)
        if reason.name in blocked.asked and reason.have > 0:
            amount = quantity(reason.have)
            return (LowerCapacity(blocked.reference.claim, blocked.reference.request, reason.name, amount),)
        return None

    def _more_counters(self, device: DeviceReport, reason: CountersShort) -> Sequence[Edit] | None:
        """Free the devices that draw most of a counter until enough of it is left."""
        pool = self._pools[device.driver, device.pool]
        content = pool.condition.content
        counter = content.counters.index((reason.counter_set, reason.counter))
        missing = max(reason.need, 0) - reason.have
        edits: list[Edit] = []
        amounts = [
            (dict(content.draws[index]).get(counter, 0), index) for index in counters.bits(pool.condition.allocated)
        ]
        for amount, index in sorted(amounts, key=lambda pair: (-pair[0], pair[1])):
            if missing <= 0:
                break
            if amount:
                edits.append(self._free(pool, content.devices[index].device.name))
                missing -= amount
        return edits if missing <= 0 else None

    def _drawing(self, device: DeviceReport, counter_set: str) -> Sequence[Edit]:
        """Free all devices that draw from a counter set."""
        pool = self._pools[device.driver, device.pool]
        content = pool.condition.content
        return [
            self._free(pool, content.devices[index].device.name)
            for index in counters.bits(pool.condition.allocated)
            if any(name == counter_set for name, _ in content.groups[index])
        ]

    def _free(self, pool: Pool, name: str) -> FreeDevice:
        use = self._world.state.pools.get((pool.driver, pool.name))
        return FreeDevice(pool.driver, pool.name, name, use.holders(name) if use is not None else ())

    def _holders(self, device: DeviceReport, name: str) -> tuple[str, ...]:
        use = self._world.state.pools.get((device.driver, device.pool))
        return use.holders(name) if use is not None else ()


def _kind(edit: Edit) -> int:
    return _KINDS.index(type(edit))
