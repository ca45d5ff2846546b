"""What `allocate` raises. Each error says whose objects are at fault; the texts are upstream's.

`AllocationError` ends the attempt for the pod on every node; `NodeError` only says that this node cannot be used.
"""

from __future__ import annotations

__all__ = ["AllocationError", "AllocationTooDeep", "NodeError"]


class AllocationError(Exception):
    """Fatal: the claims, a class, or a slice is wrong, whatever node is tried.

    Attributes:
        claim: `namespace/name` of the claim that cannot be allocated, empty when a slice is at fault.
        request: The request or subrequest, empty when it is not about one.
        path: Where the fault is inside the object, such as `spec.devices.requests[0].exactly.selectors[1]`.
        kind: `allocate` for the replay and the scheduler's error class.
    """

    kind = "allocate"

    def __init__(self, message: str, *, claim: str = "", request: str = "", path: str = "") -> None:
        super().__init__(message)
        self.claim = claim
        self.request = request
        self.path = path


class NodeError(Exception):
    """Nothing fits on this node and some of its pools are invalid; other nodes may still do.

    Attributes:
        pools: `(driver, pool, reason)` of each invalid pool, in search order.
    """

    kind = "node"

    def __init__(self, pools: tuple[tuple[str, str, str], ...]) -> None:
        listed = ", ".join(f"{driver}/{pool}: {reason}" for driver, pool, reason in pools)
        super().__init__(f"invalid resource pools were encountered ({listed})")
        self.pools = pools


class AllocationTooDeep(AllocationError):  # noqa: N818 - what happened, not whose fault it is
    """The search used up its budget; nothing is known about this node.

    Attributes:
        steps: Devices that were tried.
        seconds: Time that was spent.
    """

    def __init__(self, claim: str, steps: int, seconds: float) -> None:
        super().__init__(
            f"claim {claim}: gave up after {steps} steps in {seconds:.1f} s; "
            "ask for fewer alternatives or raise the budget",
            claim=claim,
        )
        self.steps = steps
        self.seconds = seconds
