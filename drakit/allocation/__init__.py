"""Scheduler-side allocation: pools, selectors, constraints, counters, capacity, search, explain, verify. Pure."""

from drakit.allocation.allocator import Allocator
from drakit.allocation.contents import Contents
from drakit.allocation.errors import AllocationError, AllocationTooDeep, NodeError
from drakit.allocation.explain import Report
from drakit.allocation.features import Features
from drakit.allocation.score import normalize, score
from drakit.allocation.search import Budget, Prunings
from drakit.allocation.state import AllocatedState
from drakit.allocation.verify import Inputs, Violation, verify

__all__ = [
    "AllocatedState",
    "AllocationError",
    "AllocationTooDeep",
    "Allocator",
    "Budget",
    "Contents",
    "Features",
    "Inputs",
    "NodeError",
    "Prunings",
    "Report",
    "Violation",
    "normalize",
    "score",
    "verify",
]
