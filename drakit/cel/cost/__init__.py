"""What an expression may cost at most, and what it did cost: upstream's units, which the API limits."""

from drakit.cel.cost.estimate import estimate

__all__ = ["MAX_COST", "estimate"]

MAX_COST = 1_000_000
