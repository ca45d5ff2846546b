"""What is allocated already: per pool, which devices are held, by whom, and how much of the shared ones is consumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drakit.api import resource

__all__ = ["AllocatedState", "PoolUse", "Share"]


class Share:
    """One consumer's part of a shareable device.

    Attributes:
        holder: `namespace/name` of the claim.
        consumed: Amounts by capacity name, in units of 10**-9.
    """

    __slots__ = ("consumed", "holder")

    def __init__(self, holder: str, consumed: dict[str, int]) -> None:
        self.holder = holder
        self.consumed = consumed


_NO_SHARES: Final[dict[str, dict[str, Share]]] = {}
"""Stands in pools without shares, as most are; never filled."""


class PoolUse:
    """Allocated devices of one pool.

    Attributes:
        exclusive: Device name to the claims that hold all of it (normally one).
        shared: Device name to its shares by share ID.
        version: Grows with every change.
    """

    __slots__ = ("exclusive", "shared", "version")

    def __init__(self) -> None:
        self.exclusive: dict[str, resource.ResourceClaim | str] = {}
        self.shared: dict[str, dict[str, Share]] = _NO_SHARES
        self.version = 0

    def consumed(self, device: str) -> dict[str, int]:
        """Sum of all shares of a device, by capacity name, in units of 10**-9."""
        total: dict[str, int] = {}
        for share in self.shared.get(device, {}).values():
            for name, amount in share.consumed.items():
                total[name] = total.get(name, 0) + amount
        return total

    def holders(self, device: str) -> tuple[str, ...]:
        """The claims (`namespace/name`) that use a device."""
        names = [_holder(self.exclusive[device])] if device in self.exclusive else []
        names += [share.holder for share in self.shared.get(device, {}).values()]
        return tuple(dict.fromkeys(names))


class AllocatedState:
    """Devices in use, as the scheduler computes it from the claims (spec/allocator.md 1.1, 3.1).

    Results with adminAccess hold nothing; results with a share ID hold a part of a shareable device, all others the
    whole device. `add` and `remove` follow changes of single claims; allocators notice by `generation`.
    """

    def __init__(self) -> None:
        self.pools: dict[tuple[str, str], PoolUse] = {}
        self.generation = 0

    @classmethod
    def of(cls, claims: Iterable[resource.ResourceClaim]) -> AllocatedState:
        """The state that the allocations in `claims` make up; claims without an allocation are skipped."""
        state = cls()
        pools = state.pools
        driver = pool = ""
        use = PoolUse()
        for claim in claims:
            allocation = claim.status.allocation
            if allocation is None:
                continue
            for result in allocation.devices.results:
                if result.share_id is not None or result.admin_access:
                    state._add(claim, result)
                    continue
                if result.pool != pool or result.driver != driver:  # results of one pool mostly follow each other
                    driver, pool = result.driver, result.pool
                    found = pools.get((driver, pool))
                    if found is None:
                        found = pools[driver, pool] = PoolUse()
                    use = found
                use.exclusive[result.device] = claim
        return state

    def add(self, claim: resource.ResourceClaim) -> None:
        """Count the allocation of one more claim."""
        allocation = claim.status.allocation
        if allocation is None:
            return
        self.generation += 1
        for result in allocation.devices.results:
            self._add(claim, result)

    def remove(self, claim: resource.ResourceClaim) -> None:
        """Take back what `add` did with this very allocation."""
        allocation = claim.status.allocation
        if allocation is None:
            return
        self.generation += 1
        for result in allocation.devices.results:
            self._remove(result)

    def _add(self, claim: resource.ResourceClaim, result: resource.DeviceRequestAllocationResult) -> None:
        if result.admin_access:
            return
        key = (result.driver, result.pool)
        use = self.pools.get(key)
        if use is None:
            use = self.pools[key] = PoolUse()
        use.version += 1
        if result.share_id is None:
            use.exclusive[result.device] = claim
            return
        consumed = {name: quantity.nano for name, quantity in result.consumed_capacity.items()}
        if use.shared is _NO_SHARES:
            use.shared = {}
        use.shared.setdefault(result.device, {})[result.share_id] = Share(_holder(claim), consumed)

    def _remove(self, result: resource.DeviceRequestAllocationResult) -> None:
        use = self.pools.get((result.driver, result.pool))
        if use is None or result.admin_access:
            return
        use.version += 1
        if result.share_id is None:
            use.exclusive.pop(result.device, None)
            return
        shares = use.shared.get(result.device)
        if shares is not None:
            shares.pop(result.share_id, None)
            if not shares:
                del use.shared[result.device]


def _holder(claim: resource.ResourceClaim | str) -> str:
    if isinstance(claim, str):
        return claim
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
