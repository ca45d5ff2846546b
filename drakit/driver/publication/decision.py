"""What to do about one pool: pure. `decide(desired, observed) -> Actions`.

The scheduler looks at the slices of a pool's highest generation and takes the pool when there are as many as they say
(spec/resourceslice.md 1.13). So at every moment between two writes the highest generation must either be incomplete or
show one desired state. With M the highest generation, three ways keep to that:

A. All slices are there at M and one at most differs: rewrite it in place. Either side of that write is a desired state.
B. Every slice that is there at M is right, others are missing or older: write those at M. M stays incomplete until the
   last of them. (So a deleted slice comes back with one write, and an interrupted pass is finished, not started again.)
C. Otherwise write everything at M + 1, which is incomplete until the last write.

What does not belong goes first, the oldest generation first, lest an older complete generation come to the surface.
"""

from collections.abc import Callable, Sequence

import msgspec

from drakit.driver.publication import naming
from drakit.driver.publication.layout import SliceContent
from drakit.driver.publication.slices import ObservedSlice, Stamp, same

__all__ = ["Actions", "Desired", "Write", "decide"]


class Desired(msgspec.Struct, frozen=True, kw_only=True):
    """One pool as it should be.

    Attributes:
        contents: of its slices, in the order of indices; () = the pool is not to exist.
        stamp: driver, node, owner and labels.
        generation: at least this one, by the driver's wish; 0 = automatic.
        floor: the highest generation this publisher knows of, so that a wiped pool comes back as it was.
        differs: compares a wanted content with an observed one: not `same`, and not what the server is known to make of
            it.
    """

    contents: tuple[SliceContent, ...]
    stamp: Stamp
    generation: int = 0
    floor: int = 0
    differs: Callable[[SliceContent, SliceContent | None], bool] = lambda wanted, found: not same(wanted, found)


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """Create a slice (`observed` None) or replace one."""

    index: int
    content: SliceContent
    observed: ObservedSlice | None = None


class Actions(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, in this order: all deletes, then all writes with `generation` and `count`."""

    generation: int = 0
    count: int = 0
    deletes: tuple[ObservedSlice, ...] = ()
    writes: tuple[Write, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.deletes or self.writes)


def decide(desired: Desired, observed: Sequence[ObservedSlice]) -> Actions:
    """The actions that bring one pool from `observed` to `desired`; none when it is there already."""
    matched, obsolete = _match(desired, observed)
    deletes = tuple(
        sorted((s for s in obsolete if not s.terminating), key=lambda found: (found.generation, found.name))
    )
    if not desired.contents:
        return Actions(deletes=deletes)
    generation = _generation(desired, matched, obsolete)
    return Actions(
        generation=generation,
        count=len(desired.contents),
        deletes=deletes,
        writes=_writes(desired, matched, generation),
    )


def _match(desired: Desired, observed: Sequence[ObservedSlice]) -> tuple[dict[int, ObservedSlice], list[ObservedSlice]]:
    """Slices by index; names decide, not contents. Of several claimants the newest generation's, then the right one."""
    count = len(desired.contents)
    digits = naming.width(count)
    claims: dict[int, list[ObservedSlice]] = {}
    obsolete: list[ObservedSlice] = []
    for found in observed:
        index = naming.decode_index(found.name, digits)
        if index is None or index >= count or found.terminating:
            obsolete.append(found)
        else:
            claims.setdefault(index, []).append(found)
    matched: dict[int, ObservedSlice] = {}
    for index, claimants in claims.items():
        if len(claimants) > 1:
            claimants.sort(key=lambda s: (-s.generation, desired.differs(desired.contents[index], s.content), s.name))
        matched[index] = claimants[0]
        obsolete += claimants[1:]
    return matched, obsolete


def _generation(desired: Desired, matched: dict[int, ObservedSlice], obsolete: Sequence[ObservedSlice]) -> int:
    everything = [*matched.values(), *obsolete]
    highest = max((found.generation for found in everything), default=0)
    if desired.generation > highest:
        return desired.generation
    newest = max(highest, desired.floor)
    dirty = sum(found.generation == newest and _is_wrong(desired, index, found) for index, found in matched.items())
    there = sum(found.generation == newest for found in matched.values())
    strangers = [found for found in obsolete if found.generation == newest]
    if any(found.terminating for found in strangers):
        return newest + 1  # it cannot be removed now, and would be counted
    if there == len(desired.contents) and dirty <= 1:
        return newest
    if not dirty and not strangers:
        return max(newest, 1)
    return newest + 1


def _is_wrong(desired: Desired, index: int, found: ObservedSlice) -> bool:
    return found.count != len(desired.contents) or desired.differs(desired.contents[index], found.content)


def _writes(desired: Desired, matched: dict[int, ObservedSlice], generation: int) -> tuple[Write, ...]:
    changed, missing, carried = [], [], []
    for index, content in enumerate(desired.contents):
        found = matched.get(index)
        write = Write(index=index, content=content, observed=found)
        if found is None:
            missing.append(write)
        elif desired.differs(content, found.content):
            changed.append(write)
        elif (
            found.generation != generation
            or found.count != len(desired.contents)
            or not found.metadata_is(desired.stamp)
        ):
            carried.append(write)
    # What the server may refuse goes first: then the old generation is still whole.
    return (*changed, *missing, *carried)
