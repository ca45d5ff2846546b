"""What the publisher remembers about one pool between its passes."""

import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

import msgspec

from drakit.driver.publication import checking
from drakit.driver.publication.contents import Contents
from drakit.driver.publication.decision import Desired
from drakit.driver.publication.features import Fallback
from drakit.driver.publication.gates import TryOut
from drakit.driver.publication.layout import SliceContent
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
        self._contents, self._checks = Contents(), checking.Checks(name)
        self._timed: tuple[SliceContent, ...] = ()
        self._learned: list[tuple[SliceContent, SliceContent]] = []
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
        self._timed = self._contents.of(self.pool, observed, off)
        return self._timed

    def note(self, stored: SliceContent) -> None:
        """Remember what the server has made of a slice."""
        self._contents.note(stored)

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
        """What is wrong with the pool."""
        return self._checks.faults(contents, stamp)
