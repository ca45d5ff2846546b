"""How much a node is to be preferred: the ranks of the alternatives that were chosen (spec/allocator.md 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drakit.api import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drakit.api import resource

__all__ = ["normalize", "score"]


def score(claims: Sequence[resource.ResourceClaim], allocations: Sequence[resource.AllocationResult]) -> int:
    """Sum over all firstAvailable requests: 8 for the first alternative, 7 for the second, and so on.

    Raises:
        ValueError: Not one allocation per claim.
    """
    if len(claims) != len(allocations):
        raise ValueError(f"{len(claims)} claims but {len(allocations)} allocations")
    total = 0
    for claim, allocation in zip(claims, allocations, strict=True):
        chosen = {result.request for result in allocation.devices.results}
        for request in claim.spec.devices.requests:
            for rank, alternative in enumerate(request.first_available):
                if f"{request.name}/{alternative.name}" in chosen:
                    total += limits.SUBREQUESTS - rank
                    break
    return total


def normalize(scores: Sequence[int]) -> list[int]:
    """Scores from 0 to 100, the best node getting 100."""
    best = max(scores, default=0)
    return [each * 100 // best if best else 0 for each in scores]
