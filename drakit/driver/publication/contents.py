"""The slices a pool should have, remembered so that an unchanged part costs nothing the next time.

Drivers describe all their devices again for every change. What is equal to before goes on as the very same objects, so
that everything behind this compares by identity; ten thousand devices of which one changed cost a few milliseconds.
"""

from collections.abc import Mapping, Sequence

import msgspec

from drakit.driver.publication import features, taints
from drakit.driver.publication.features import Fallback
from drakit.driver.publication.layout import SliceContent, cut, is_limited
from drakit.driver.publication.naming import decode_index, width
from drakit.driver.publication.resources import Pool
from drakit.driver.publication.slices import ObservedSlice

__all__ = ["Contents"]


class Contents:
    """Cuts one pool again and again."""

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._off: tuple[object, ...] = ()
        self._published: Pool | None = None
        self._cut: tuple[SliceContent, ...] = ()
        self._timed: tuple[SliceContent, ...] = ()
        self._tainted: dict[int, bool] = {}
        self._times: taints.Times = {}

    def of(
        self, pool: Pool | None, observed: Sequence[ObservedSlice], off: Mapping[str, Fallback]
    ) -> tuple[SliceContent, ...]:
        """The slices of `pool` on a server without the gates `off`; () for no pool."""
        gates = tuple(off.items())
        if pool is not self._pool or gates != self._off:
            fit = None if pool is None else features.without(pool, off)
            fresh = self._again(fit) or self._anew(fit, observed)
            self._cut = _reuse(self._cut, fresh)
            self._pool, self._off, self._published = pool, gates, fit
            known = self._tainted
            self._tainted = {id(c): known[id(c)] if id(c) in known else _is_tainted(c) for c in self._cut}
        self.note(*(each.content for each in observed if each.content is not None))
        timed = (taints.inherit(c, self._times) if self._tainted[id(c)] else c for c in self._cut)
        self._timed = _reuse(self._timed, tuple(timed))
        return self._timed

    def note(self, *stored: SliceContent) -> None:
        """Remember the server's times of the taints that are wanted, for when their slice is lost."""
        if self._times or any(self._tainted.values()):
            taints.remember(self._times, stored, self._cut)

    def _anew(self, pool: Pool | None, observed: Sequence[ObservedSlice]) -> tuple[SliceContent, ...]:
        layout = [[device.name for device in content.devices] for content in self._cut] or _layout(observed)
        return () if pool is None else cut(pool, layout)

    def _again(self, pool: Pool | None) -> tuple[SliceContent, ...] | None:
        """The last cut with changed devices in their places; None when names, limits or anything else changed."""
        before = self._published
        if pool is None or before is None or pool.slices is not None or before.slices is not None:
            return None
        if msgspec.structs.replace(pool, devices=()) != msgspec.structs.replace(before, devices=()):
            return None
        fresh, at = [], 0
        for content in self._cut:
            part = pool.devices[at : at + len(content.devices)]
            at += len(content.devices)
            if part == content.devices:
                fresh.append(content)
                continue
            for new, old in zip(part, content.devices, strict=False):
                if new is not old and (
                    new.name != old.name
                    or is_limited(new) != is_limited(old)
                    or bool(new.consumes_counters) != bool(old.consumes_counters)
                ):
                    return None
            fresh.append(msgspec.structs.replace(content, devices=part))
        return tuple(fresh) if at == len(pool.devices) == len(before.devices) else None


def _is_tainted(content: SliceContent) -> bool:
    return any(device.taints for device in content.devices)


def _reuse(old: tuple[SliceContent, ...], new: tuple[SliceContent, ...]) -> tuple[SliceContent, ...]:
    """`new` with the objects of `old` where they are equal, and `old` itself when all are."""
    merged = tuple(old[at] if at < len(old) and old[at] == content else content for at, content in enumerate(new))
    return old if len(old) == len(merged) and all(a is b for a, b in zip(old, merged, strict=True)) else merged


def _layout(observed: Sequence[ObservedSlice]) -> list[list[str]]:
    """Device names by slice of a pool that is completely published; [] otherwise."""
    newest = max((found.generation for found in observed), default=0)
    current = [found for found in observed if found.generation == newest and found.content is not None]
    digits = width(len(current))
    by_index = {decode_index(found.name, digits): found for found in current}
    if set(by_index) != set(range(len(current))):
        return []
    contents = [by_index[index].content for index in range(len(current))]
    return [[device.name for device in content.devices] for content in contents if content is not None]
