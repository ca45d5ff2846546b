"""ResourcePoolStatusRequests (v1alpha3). Source: spec/resourceslice.md 2.1, spec/apiserver.md 21."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drakit.admission import semantics
from drakit.admission.validation import conditions, formats
from drakit.api import limits

if TYPE_CHECKING:
    from drakit.admission.faults import Faults

__all__ = ["request", "request_status"]

Json = dict[str, Any]


def request(faults: Faults, spec: Json, old: Json | None) -> None:
    """The spec of a request for pool status; it cannot change."""
    if old is not None:
        if not semantics.equal(spec, old, "ResourcePoolStatusRequestSpec"):
            faults.invalid("spec", spec, "field is immutable")
        return
    formats.driver_name(faults, "spec.driver", spec["driver"])
    if spec.get("poolName") is not None:
        formats.pool_name(faults, "spec.poolName", spec["poolName"])
    limit = spec.get("limit", limits.POOL_STATUS_DEFAULT_LIMIT)
    if not 1 <= limit <= limits.POOL_STATUS_LIMIT:
        bound = "greater than or equal to 1" if limit < 1 else f"less than or equal to {limits.POOL_STATUS_LIMIT}"
        faults.invalid("spec.limit", limit, f"must be {bound}")
    if spec.get("defaultPartitionTypeAttribute") is not None:
        name = spec["defaultPartitionTypeAttribute"]
        formats.fully_qualified_name(faults, "spec.defaultPartitionTypeAttribute", name, one_slash=True)


def request_status(faults: Faults, status: Json | None, old: Json | None) -> None:
    """The status; once it is set it cannot change."""
    if old is not None:
        if not semantics.equal(status, old, "ResourcePoolStatusRequestStatus"):
            faults.invalid("status", status, "field is immutable")
        return
    if status is None:
        return
    if status.get("poolCount") is None:
        faults.required("status.poolCount")
    found = status.get("conditions") or ()
    conditions.conditions(faults, "status.conditions", found)
