"""The search as it runs: the reference's order on an explicit stack, with a budget and prunings.

Most searches end within a few steps, so it starts lazily: devices are looked at when the search gets to them and
nothing is pruned. Only after `patience` steps all selectors are evaluated and the prunings that are switched on begin
to work.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from drakit.allocation.errors import AllocationTooDeep
from drakit.allocation.search.bounds import Bounds
from drakit.allocation.search.interchange import Interchange
from drakit.allocation.search.memo import Memo
from drakit.allocation.search.overview import Overview
from drakit.allocation.search.problem import Failure
from drakit.allocation.search.state import CONSTRAINT, State
from drakit.api import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drakit.allocation.requests import Slot, Variant
    from drakit.allocation.search.problem import Choice, Problem

__all__ = ["Budget", "Prunings", "solve"]

_CLOCK_STEPS: Final = 1024


class Prunings(msgspec.Struct, frozen=True, kw_only=True):
    """Switches of the prunings; none changes an answer.

    Attributes:
        bounds: Give up when what is left cannot suffice.
        interchange: Skip devices that are equivalent to one that failed in the same place.
        memo: Give up in states that are equivalent to one that failed.
        patience: Steps of plain search before the prunings are prepared.
    """

    bounds: bool = True
    interchange: bool = True
    memo: bool = True
    patience: int = 16


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """When to give up: devices tried, and seconds (as the scheduler's filter timeout)."""

    steps: int = 5_000_000
    seconds: float = 10.0


_PRUNINGS: Final = Prunings()
_BUDGET: Final = Budget()


class _Pick:
    """A place in the search where one device of a variant is chosen."""

    __slots__ = ("candidates", "key", "picked", "skipped", "undo", "variant")

    def __init__(self, variant: Variant, picked: int, candidates: Iterator[tuple[int, bool]]) -> None:
        self.variant = variant
        self.picked = picked
        self.candidates = candidates
        self.undo: tuple[object, ...] | None = None
        self.skipped: set[object] | None = None
        self.key: object = None


class _Branch:
    """A place in the search where one variant of a slot is chosen."""

    __slots__ = ("exceeded", "slot", "tried")

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.tried = 0
        self.exceeded = True


_FAILED: Final = False
_EXCEEDED: Final = None
"""Results of a subtree: no allocation, or none because the claim would get more results than it can hold."""


def solve(problem: Problem, prunings: Prunings = _PRUNINGS, budget: Budget = _BUDGET) -> list[Choice] | Failure | None:
    """The first allocation in search order, the first fatal error if it comes before, or None.

    Raises:
        AllocationTooDeep: The budget is used up.
    """
    return _Search(problem, prunings, budget).run()


class _Search:
    def __init__(self, problem: Problem, prunings: Prunings, budget: Budget) -> None:
        self.problem = problem
        self.state = State(problem)
        self.slots = problem.plan.slots
        self.stack: list[_Pick | _Branch] = []
        self.steps = 0
        self.deepest = 0
        self._prunings = prunings
        self._budget = budget
        self._started = 0.0
        self._patience = prunings.patience if prunings.bounds or prunings.interchange or prunings.memo else -1
        self._overview: Overview | None = None
        self._bounds: Bounds | None = None
        self._interchange: Interchange | None = None
        self._memo: Memo | None = None

    def run(self) -> list[Choice] | Failure | None:
        """Search until the first allocation or error, or to the end."""
        if not self.slots:
            return []
        found: object = _TIRED
        if self._patience:
            found = self._explore()
        if found is _TIRED:
            self._patience = -1
            self._tighten()
            self.state = State(self.problem)
            self.stack.clear()
            found = self._explore()
        return found  # type: ignore[return-value]

    def _explore(self) -> object:
        """The result, or `_TIRED` when the patience is at its end."""
        stack = self.stack
        stack.append(_Branch(self.slots[0]))
        result: bool | None = _FAILED
        fresh = True
        while stack:
            top = stack[-1]
            if type(top) is _Branch:
                outcome = self._branch(top, result, fresh)
            else:
                assert isinstance(top, _Pick)
                outcome = self._pick(top, result, fresh)
            if outcome is True:
                return list(self.state.chosen)
            if isinstance(outcome, Failure) or outcome is _TIRED:
                return outcome
            fresh = outcome is _DEEPER
            if not fresh:
                result = _EXCEEDED if outcome is _EXCEEDED else _FAILED
        return None

    def _branch(self, branch: _Branch, result: bool | None, fresh: bool) -> object:
        """Go on with the next variant of a slot, or leave the slot."""
        slot = branch.slot
        if not fresh and result is not _EXCEEDED:
            branch.exceeded = False
        while branch.tried < len(slot.variants):
            variant = slot.variants[branch.tried]
            branch.tried += 1
            begun = self._begin(variant)
            if begun is _DEEPER or begun is True:
                return begun
            if begun is not _EXCEEDED:
                branch.exceeded = False
        self.stack.pop()
        if not branch.exceeded:
            return _FAILED
        first_of_claim = slot.number == 0 or self.slots[slot.number - 1].claim != slot.claim
        return _FAILED if first_of_claim else _EXCEEDED

    def _begin(self, variant: Variant) -> object:
        """Start with the first device of a variant."""
        count = self.problem.count(variant)
        if count <= 0:
            return _FAILED if variant.every else self._next_slot(variant)
        if self.state.results[variant.claim] + count > limits.ALLOCATION_RESULTS:
            return _EXCEEDED
        return self._push(variant, 0, 0)

    def _next_slot(self, variant: Variant) -> object:
        number = variant.slot + 1
        if number == len(self.slots):
            return True
        self.deepest = max(self.deepest, number)
        self.stack.append(_Branch(self.slots[number]))
        return _DEEPER

    def _push(self, variant: Variant, picked: int, start: int) -> object:
        """Add a place for the next device, unless a pruning knows that it leads nowhere."""
        if variant.every:
            member = self.problem.members[variant.number][picked]
            pick = _Pick(variant, picked, iter(((member, False),)))
        else:
            pick = _Pick(variant, picked, self.problem.candidates(variant, start, self.state.values))
        if self._overview is not None:
            if self._bounds is not None and self._bounds.hopeless(self.state, variant, picked, start):
                return _FAILED
            if self._memo is not None:
                pick.key = self._memo.key(self.state, variant, picked, start)
                if self._memo.has_failed(pick.key):
                    return _FAILED
            if self._interchange is not None:
                pick.skipped = set()
        self.stack.append(pick)
        return _DEEPER

    def _pick(self, pick: _Pick, result: bool | None, fresh: bool) -> object:
        """Go on with the next device, or leave the place."""
        state, variant = self.state, pick.variant
        if not fresh and pick.undo is not None:
            state.undo(pick.undo)
            pick.undo = None
            if result is _EXCEEDED:
                self.stack.pop()
                return _EXCEEDED
        count = self.problem.count(variant)
        admin, every, skipped = variant.admin, variant.every, pick.skipped
        for device, failing in pick.candidates:
            if (state.used_by[variant.claim] if admin else state.used) >> device & 1:
                continue
            if every and not self.problem.is_ready(variant, device):
                break
            if failing:
                return self.problem.failure(variant, device)
            if skipped is not None and not every:
                assert self._interchange is not None
                kind = self._interchange.kind(state, device)
                if kind in skipped:
                    continue
                skipped.add(kind)
            if self.steps == self._patience:
                return _TIRED
            self._step()
            undo = state.take(variant, device)
            if isinstance(undo, str):
                if every and undo == CONSTRAINT:
                    return Failure(variant, device)
                continue
            pick.undo = undo
            if pick.picked + 1 == count:
                deeper = self._next_slot(variant)
            else:
                deeper = self._push(variant, pick.picked + 1, device + 1)
            if deeper is _DEEPER or deeper is True:
                return deeper
            state.undo(undo)
            pick.undo = None
        self.stack.pop()
        if pick.key is not None:
            assert self._memo is not None
            self._memo.fail(pick.key)
        return _FAILED

    def _step(self) -> None:
        self.steps += 1
        if self.steps % _CLOCK_STEPS == 0 or self.steps > self._budget.steps:
            now = time.monotonic()
            self._started = self._started or now
            if self.steps > self._budget.steps or now - self._started > self._budget.seconds:
                claim = self.problem.plan.claims[self.slots[self.deepest].claim].name
                raise AllocationTooDeep(claim, self.steps, now - self._started)

    def _tighten(self) -> None:
        """Evaluate everything that was left for later, and switch the prunings on."""
        wanted = self._prunings
        self._overview = Overview(self.problem)
        self._bounds = Bounds(self._overview) if wanted.bounds else None
        self._interchange = Interchange(self._overview) if wanted.interchange else None
        self._memo = Memo(self._overview) if wanted.memo else None


_DEEPER: Final = object()
_TIRED: Final = object()
