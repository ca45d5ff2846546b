"""What the publisher remembers about one pool between its passes."""

import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

import msgspec

from drakit.api.resource import Device
from drakit.driver.publication import checking, features, taints
from drakit.driver.publication.decision import Desired
from drakit.driver.publication.features import Fallback
from drakit.driver.publication.gates import TryOut
from drakit.driver.publication.layout import SliceContent, cut, is_limited
from drakit.driver.publication.naming import decode_index, width
from drakit.driver.publication.resources import Pool
from drakit.driver.publication.slices import ObservedSlice, Stamp, same
from drakit.kube import Backoff

__all__ = ["PoolState", "PoolStatus", "PoolWork", "Refusal"]

BURST, REFILL_SECONDS = 5, 2.0
REFUSAL_FIRST, REFUSAL_MOST = 30.0, 600.0
_EPSILON = 1e-6


class PoolState(Enum):
    """How far a pool is."""

    PENDING = "pending"
    PUBLISHED = "published"
    FAILING = "failing"
    """The last attempt failed; it is being repeated."""
    REFUSED = "refused"
    """The pool as it is wanted cannot be published: another attempt needs another inventory or another cluster."""
    STANDBY = "standby"
    """Another instance publishes."""


class PoolStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one pool.

    Attributes:
        state: see PoolState.
        generation: of the pool as published; 0 = never.
        slices: how many it has.
        devices: how many devices.
        reason: why it is not published, with field and cause; "" when it is.
    """

    state: PoolState = PoolState.PENDING
    generation: int = 0
    slices: int = 0
    devices: int = 0
    reason: str = ""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A content that the server refused for good, not to be sent again before `until` (monotonic seconds)."""

    content: SliceContent
    until: float


class PoolWork:
    """Memory of one pool: its cut, times of taints, refusals, when it is due.

    Args:
        name: the pool's name.
        jitter: source of numbers in [0, 1).
    """

    def __init__(self, name: str, jitter: Callable[[], float] = random.random) -> None:
        self.name = name
        self.pool: Pool | None = None
        self.status = PoolStatus()
        self.due: float | None = None
        self.backoff = Backoff(first=0.2, most=60.0, jitter=jitter)
        self.refusals: dict[int, Refusal] = {}
        self.refusal_backoff = Backoff(first=REFUSAL_FIRST, most=REFUSAL_MOST, jitter=jitter)
        self.taken: set[int] = set()
        """Indices whose name a stranger's slice has, or one of ours that waits for its finalizers."""
        self.floor = 0
        self._cut_of: tuple[object, ...] = ()
        self._cut: tuple[SliceContent, ...] = ()
        self._timed: tuple[SliceContent, ...] = ()
        self._times: taints.Times = {}
        self._learned: list[tuple[SliceContent, SliceContent]] = []
        self._checked: tuple[SliceContent, ...] = ()
        self._faults: list[checking.Fault] = []
        self._limited: dict[int, tuple[Device, bool]] = {}
        self._tokens, self._refilled = float(BURST), 0.0

    # When

    def schedule(self, when: float) -> None:
        """Be due at `when`, or earlier if it is already."""
        self.due = when if self.due is None else min(self.due, when)

    def spend(self, now: float) -> float:
        """Take a token for a pass that writes; the seconds to wait when there is none (slices 6.14)."""
        self._tokens = min(BURST, self._tokens + (now - self._refilled) / REFILL_SECONDS)
        self._refilled = now
        if self._tokens > 1 - _EPSILON:
            self._tokens = max(0.0, self._tokens - 1)
            return 0.0
        return (1 - self._tokens) * REFILL_SECONDS

    # What

    def want(self, pool: Pool | None) -> bool:
        """Take a new wish; whether it differs from the old one."""
        if pool == self.pool:
            return False
        self.pool = pool
        self.refusal_backoff.reset()
        self.backoff.reset()
        return True

    def contents(self, observed: Sequence[ObservedSlice], off: Mapping[str, Fallback]) -> tuple[SliceContent, ...]:
        """The slices as they should be; the same objects again as long as nothing changes."""
        key = (self.pool, tuple(off.items()))
        if not self._cut_of or self._cut_of[0] is not key[0] or self._cut_of[1] != key[1]:
            pool = None if self.pool is None else features.without(self.pool, off)
            layout = [[d.name for d in content.devices] for content in self._cut] or _published(observed)
            fresh = () if pool is None else cut(pool, layout, self._is_limited)
            self._limited = {id(d): (d, self._is_limited(d)) for content in fresh for d in content.devices}
            self._cut = _reuse(self._cut, fresh)
            self._cut_of = key
        self.note(*(each.content for each in observed if each.content is not None))
        self._timed = _reuse(self._timed, tuple(taints.inherit(content, self._times) for content in self._cut))
        return self._timed

    def _is_limited(self, device: Device) -> bool:
        known = self._limited.get(id(device))
        return known[1] if known is not None else is_limited(device)

    def note(self, *stored: SliceContent) -> None:
        """Remember the server's times of the taints that are wanted, for when their slice is lost."""
        if self._times or any(device.taints for content in self._cut for device in content.devices):
            taints.remember(self._times, stored, self._cut)

    def desired(self, contents: tuple[SliceContent, ...], stamp: Stamp) -> Desired:
        """For `decide`."""
        generation = 0 if self.pool is None else self.pool.generation
        return Desired(contents=contents, stamp=stamp, generation=generation, floor=self.floor, differs=self.differs)

    def differs(self, wanted: SliceContent, found: SliceContent | None) -> bool:
        """Neither the same nor what this server makes of it."""
        if same(wanted, found):
            return False
        return found is None or not any(
            (sent is wanted or same(wanted, sent)) and same(stored, found) for sent, stored in self._learned
        )

    def learn(self, sent: SliceContent, stored: SliceContent) -> None:
        """Remember that the server stores `sent` as `stored`."""
        self._learned = [(s, t) for s, t in self._learned if s is not sent and s in self._timed]
        self._learned.append((sent, stored))

    async def relearn(self, try_out: TryOut) -> bool:
        """Try again what the server has dropped; whether it would keep something now.

        Raises:
            ApiError: the server could not tell.
        """
        kept = []
        for sent, stored in self._learned:
            found = await try_out(sent)
            if found is None or not same(sent, found):
                kept.append((sent, stored))
        turned_on = len(kept) < len(self._learned)
        self._learned = kept
        return turned_on

    def refused(self, index: int, content: SliceContent, now: float) -> bool:
        """Whether this very content was refused and it is not time to try again."""
        refusal = self.refusals.get(index)
        if refusal is None:
            return False
        if refusal.content is content or refusal.content == content:
            return now < refusal.until
        del self.refusals[index]
        return False

    def faults(self, contents: tuple[SliceContent, ...], stamp: Stamp) -> list[checking.Fault]:
        """What is wrong with the pool; devices that were found right before are not looked at again."""
        if contents is self._checked:
            return self._faults
        local = bool(stamp.node_name)
        faults = checking.pool_faults(self.name, contents, stamp.driver, local=local) if contents else []
        if not faults:
            checked = () if self._faults else self._checked
            right = {id(device) for content in checked for device in content.devices}
            frames: list[SliceContent] = []
            for content in checked:
                if (frame := msgspec.structs.replace(content, devices=())) not in frames:
                    frames.append(frame)
            for content in contents:
                # Rules of the whole slice look at all of its devices.
                whole = content.partition_type_attribute or msgspec.structs.replace(content, devices=()) not in frames
                new = content.devices if whole else tuple(d for d in content.devices if id(d) not in right)
                if whole or new:
                    faults += checking.slice_faults(self.name, content, stamp, new)
        self._checked, self._faults = contents, faults
        return faults


def _reuse(old: tuple[SliceContent, ...], new: tuple[SliceContent, ...]) -> tuple[SliceContent, ...]:
    """`new` with the objects of `old` where they are equal, and `old` itself when all are."""
    merged = tuple(old[at] if at < len(old) and old[at] == content else content for at, content in enumerate(new))
    return old if len(old) == len(merged) and all(a is b for a, b in zip(old, merged, strict=True)) else merged


def _published(observed: Sequence[ObservedSlice]) -> list[list[str]]:
    """Device names by slice of a pool that is completely published; [] otherwise."""
    newest = max((found.generation for found in observed), default=0)
    current = [found for found in observed if found.generation == newest and found.content is not None]
    digits = width(len(current))
    by_index = {decode_index(found.name, digits): found for found in current}
    if set(by_index) != set(range(len(current))):
        return []
    contents = [by_index[index].content for index in range(len(current))]
    return [[device.name for device in content.devices] for content in contents if content is not None]
