"""The plain search: what upstream does, step by step, as a few recursive functions. It defines the right answer.

Requests in order; devices of a request in order, combinations and not permutations; full chronological backtracking
over devices, alternatives, requests and claims; the first complete allocation wins (spec/allocator.md 1.4, 1.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drakit.allocation.search.problem import Choice, Failure
from drakit.allocation.search.state import CONSTRAINT, State
from drakit.api import limits

if TYPE_CHECKING:
    from drakit.allocation.requests import Variant
    from drakit.allocation.search.problem import Problem

__all__ = ["solve"]


class _Failed(Exception):  # noqa: N818
    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


class _LimitExceeded(Exception):  # noqa: N818
    """The claim would get more results than it can hold; handled by the nearest enclosing firstAvailable."""


def solve(problem: Problem) -> list[Choice] | Failure | None:
    """The first allocation in search order, the first fatal error if it comes before, or None."""
    state = State(problem)
    try:
        return list(state.chosen) if _slot(problem, state, 0) else None
    except _Failed as failed:
        return failed.failure
    except _LimitExceeded:
        return None


def _slot(problem: Problem, state: State, number: int) -> bool:
    slots = problem.plan.slots
    if number == len(slots):
        return True
    slot = slots[number]
    if number and slots[number - 1].claim != slot.claim:
        try:
            return _alternatives(problem, state, number)
        except _LimitExceeded:
            return False
    return _alternatives(problem, state, number)


def _alternatives(problem: Problem, state: State, number: int) -> bool:
    slot = problem.plan.slots[number]
    if not slot.prioritized:
        return _devices(problem, state, slot.variants[0], 0, 0)
    exceeded = True
    for variant in slot.variants:
        try:
            if _devices(problem, state, variant, 0, 0):
                return True
            exceeded = False
        except _LimitExceeded:
            continue
    if exceeded:
        raise _LimitExceeded
    return False


def _devices(problem: Problem, state: State, variant: Variant, picked: int, start: int) -> bool:
    """Choose the devices of a variant from the `picked`-th on, then go on with the next slot."""
    count = problem.count(variant)
    if variant.every and not count:
        return False
    if picked >= count:
        return _slot(problem, state, variant.slot + 1)
    if state.results[variant.claim] + count - picked > limits.ALLOCATION_RESULTS:
        raise _LimitExceeded
    if variant.every:
        member = problem.members[variant.number][picked]
        return problem.is_ready(variant, member) and _take(problem, state, variant, picked, member)
    for device, failing in problem.candidates(variant, start):
        if state.used & 1 << device and not variant.admin:
            continue
        if variant.admin and state.used_by[variant.claim] & 1 << device:
            continue
        if failing:
            raise _Failed(problem.failure(variant, device))
        if _take(problem, state, variant, picked, device):
            return True
    return False


def _take(problem: Problem, state: State, variant: Variant, picked: int, device: int) -> bool:
    undo = state.take(variant, device)
    if isinstance(undo, str):
        if variant.every and undo == CONSTRAINT:
            raise _Failed(Failure(variant, device))
        return False
    try:
        if _devices(problem, state, variant, picked + 1, device + 1):
            return True
    except BaseException:
        state.undo(undo)
        raise
    state.undo(undo)
    return False
