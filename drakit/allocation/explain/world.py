"""Questions to the allocator within a budget: would these claims fit, as things are or with some edits?"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import msgspec

from drakit.allocation.allocator import Allocator
from drakit.allocation.errors import AllocationError, AllocationTooDeep, NodeError
from drakit.allocation.search import Budget
from drakit.allocation.state import AllocatedState, PoolUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from drakit.allocation.explain.report import FreeDevice
    from drakit.allocation.pools import Pool
    from drakit.api import core, resource

__all__ = ["Answer", "Effort", "World"]

Results = list["resource.AllocationResult"]


class Answer(msgspec.Struct, frozen=True):
    """What the allocator said: results, or nothing and perhaps an error; `known` is False when the budget ended."""

    results: Results | None
    error: AllocationError | NodeError | None = None
    known: bool = True

    @property
    def fits(self) -> bool:
        """Whether there is an allocation."""
        return self.results is not None


class Effort:
    """How much one explanation may search.

    The question itself has the allocator's budget. After it come at most `SEARCHES` trials of at most `TRIAL.steps`
    steps each, and none after `DEEP` trials that used up their steps: an explanation costs what `allocate` costs and
    some 60,000 steps of hard trials, or 400 trials that end by themselves.
    """

    TRIAL: Final = Budget(steps=20_000, seconds=0.5)
    SEARCHES: Final = 400
    DEEP: Final = 3

    def __init__(self) -> None:
        self.searches = self.SEARCHES
        self.deep = self.DEEP

    @property
    def is_left(self) -> bool:
        """Whether another trial is allowed."""
        return self.searches > 0 and self.deep > 0

    def spend(self, *, deep: bool) -> None:
        """Count one trial."""
        self.searches -= 1
        self.deep -= deep


_UNKNOWN: Final = Answer(None, known=False)


class World:
    """One node with the slices that it sees, and what is allocated."""

    def __init__(
        self, source: Allocator, node: core.Node, slices: Sequence[resource.ResourceSlice], effort: Effort
    ) -> None:
        self._source = source
        self._node = node
        self._slices = slices
        self._effort = effort
        self.state = source.allocated
        self.allocator = self._allocator(self.state)
        self._freed: dict[frozenset[FreeDevice], Allocator] = {}

    @property
    def pools(self) -> Sequence[Pool]:
        """The pools of the node in search order."""
        return self.allocator.pools(self._node)

    def ask(self, claims: Sequence[resource.ResourceClaim]) -> Answer:
        """The question itself."""
        return self._ask(self.allocator, claims, self._source.budget)

    def attempt(self, claims: Sequence[resource.ResourceClaim], freed: Iterable[FreeDevice] = ()) -> Answer:
        """One trial, with some devices freed."""
        if not self._effort.is_left:
            return _UNKNOWN
        answer = self._ask(self._without(frozenset(freed)), claims, Effort.TRIAL)
        self._effort.spend(deep=not answer.known)
        return answer

    def _ask(self, allocator: Allocator, claims: Sequence[resource.ResourceClaim], budget: Budget) -> Answer:
        allocator.budget = budget
        try:
            return Answer(allocator.allocate(self._node, claims))
        except AllocationTooDeep as error:
            return Answer(None, error, known=False)
        except (AllocationError, NodeError) as error:
            return Answer(None, error.with_traceback(None))

    def _without(self, freed: frozenset[FreeDevice]) -> Allocator:
        if not freed:
            return self.allocator
        found = self._freed.get(freed)
        if found is None:
            found = self._freed[freed] = self._allocator(_release(self.state, freed))
        return found

    def _allocator(self, state: AllocatedState) -> Allocator:
        source = self._source
        return Allocator(
            self._slices,
            source.classes.values(),
            state,
            source.features,
            contents=source.contents,
            prunings=source.prunings,
            share_id=map(str, itertools.count()).__next__,
        )


def _release(state: AllocatedState, freed: Iterable[FreeDevice]) -> AllocatedState:
    """The state as it would be if nobody held these devices; the given state is left alone."""
    by_pool: dict[tuple[str, str], set[str]] = {}
    for each in freed:
        by_pool.setdefault((each.driver, each.pool), set()).add(each.device)
    changed = AllocatedState()
    changed.pools = dict(state.pools)
    for key, names in by_pool.items():
        before, after = state.pools.get(key), PoolUse()
        if before is not None:
            after.exclusive = {name: holder for name, holder in before.exclusive.items() if name not in names}
            after.shared = {name: shares for name, shares in before.shared.items() if name not in names}
        changed.pools[key] = after
    return changed
