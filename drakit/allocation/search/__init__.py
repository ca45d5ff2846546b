"""The search: one problem (a plan on the pools of a node), solved depth first as upstream orders it, with prunings.

`reference` is the plain search. `engine` is the same search with prunings that only cut subtrees without a solution,
each in a module of its own with its proof.
"""

from drakit.allocation.search.engine import Budget, Prunings, solve
from drakit.allocation.search.problem import Choice, Failure, Problem

__all__ = ["Budget", "Choice", "Failure", "Problem", "Prunings", "solve"]
