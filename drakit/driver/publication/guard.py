"""Whose claims a change would touch: before node operations are turned on or off, and before slices are removed.

A claim is prepared or not by what its allocation says (spec/kubeletplugin.md 2.7); allocations made before and after a
change of skipNodeOperations are treated differently on the same device, so the change waits until no claim is live.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from drakit.driver.publication.resources import DriverResources

__all__ = ["live_claims", "skip_changes"]

Object = dict[str, Any]


def skip_changes(resources: DriverResources, stored: Iterable[Object]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Pools whose published skipNodeOperations differ from the wanted: {pool: (published, wanted)}."""
    changes: dict[str, tuple[tuple[str, ...], ...]] = {}
    for obj in stored:
        spec = obj["spec"]
        pool = resources.pools.get(spec["pool"]["name"])
        published = tuple(spec.get("skipNodeOperations") or ())
        if pool is not None and set(published) != set(pool.skip_node_operations):
            changes[spec["pool"]["name"]] = (published, pool.skip_node_operations)
    return changes


def live_claims(claims: Iterable[Object], driver: str, pools: Mapping[str, Any] | None = None) -> list[str]:
    """namespace/name of claims with an allocated device of the driver (and of these pools)."""
    return [
        f"{claim['metadata'].get('namespace', 'default')}/{claim['metadata']['name']}"
        for claim in claims
        if any(
            result.get("driver") == driver and (pools is None or result.get("pool") in pools)
            for result in _results(claim)
        )
    ]


def _results(claim: Object) -> list[Object]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results: list[Object] = (allocation.get("devices") or {}).get("results") or []
    return results
