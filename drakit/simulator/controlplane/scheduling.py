"""What the scheduler decides for a pod with claims: which node, which devices, or why it has to wait.

Pure decisions over a snapshot. Only devices, node selectors, names and `unschedulable` count here: processor and memory
of a simulated node are without bound.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from drakit import api
from drakit.allocation.errors import NodeError
from drakit.allocation.nodes import selector_matches
from drakit.api import core, resource
from drakit.simulator.controlplane.binding import Progress, progress
from drakit.simulator.controlplane.claims import FINALIZER, claim_names, is_owned

__all__ = [
    "RESERVED_FOR_LIMIT",
    "Allocate",
    "Bind",
    "NotReadyError",
    "Snapshot",
    "UnschedulableError",
    "allocated_claim",
    "protected_claim",
    "reserved_claim",
    "schedule",
    "unreserved_claim",
]

Object: TypeAlias = Mapping[str, Any]
Allocate: TypeAlias = Callable[
    [core.Node, Sequence[resource.ResourceClaim]], Sequence[resource.AllocationResult] | None
]
RESERVED_FOR_LIMIT = 256
_SCORE_MAX = 8  # subrequests of a request
_UNAVAILABLE = "resourceclaim not available on the node"


class UnschedulableError(Exception):
    """No node fits now; the text is the scheduler's.

    Attributes:
        deallocate: a claim that is allocated for a node the pod cannot use and that nobody else uses: freeing it may
            help (PostFilter).
    """

    def __init__(self, message: str, deallocate: Object | None = None) -> None:
        self.deallocate = deallocate
        super().__init__(message)


class NotReadyError(UnschedulableError):
    """The pod's claims are not there yet (PreEnqueue): it is not tried, and nobody is told."""


class Bind(msgspec.Struct, frozen=True):
    """The pod goes to `node`; new allocations by claim name, None for claims that have one already."""

    node: str
    allocations: dict[str, resource.AllocationResult | None]


class Snapshot(msgspec.Struct, frozen=True):
    """What one scheduling attempt looks at."""

    nodes: Mapping[str, core.Node]
    claims: Mapping[str, Object]
    """Claims of the pod's namespace by name."""
    classes: Mapping[str, resource.DeviceClass]
    allocate: Allocate
    """The allocator over all slices and all allocated claims."""
    now: datetime


def schedule(pod: Object, snapshot: Snapshot) -> Bind:
    """The best node for a pod: most preferred subrequests first, then by name.

    Raises:
        UnschedulableError: it has to wait.
    """
    claims = _claims(pod, snapshot)
    waiting = [claim for claim in claims if not _allocation(claim)]
    wanted = [_decode(claim) for claim in waiting]
    for decoded in wanted:
        _check_classes(decoded, snapshot)
    best: tuple[int, str, Sequence[resource.AllocationResult]] | None = None
    reasons: dict[str, int] = {}
    for name in sorted(snapshot.nodes):
        node = snapshot.nodes[name]
        reason = _node_fault(pod, node, claims, snapshot.now)
        results: Sequence[resource.AllocationResult] | None = ()
        if reason is None and wanted:
            try:
                results = snapshot.allocate(node, wanted)
            except NodeError as error:
                reason = str(error)
        if reason is None and results is not None:
            score = _score(wanted, results)
            best = (score, name, results) if best is None or score > best[0] else best
            continue
        reason = reason or "cannot allocate all claims"
        reasons[reason] = reasons.get(reason, 0) + 1
    if best is None:
        stuck = _UNAVAILABLE in reasons
        raise UnschedulableError(
            _no_node(len(snapshot.nodes), reasons), _to_deallocate(pod, claims, snapshot.now) if stuck else None
        )
    allocations: dict[str, resource.AllocationResult | None] = {claim["metadata"]["name"]: None for claim in claims}
    for claim, result in zip(waiting, best[2], strict=True):
        allocations[claim["metadata"]["name"]] = result
    return Bind(best[1], allocations)


def _to_deallocate(pod: Object, claims: Sequence[Object], now: datetime) -> Object | None:
    """A claim whose devices are of no use to the pod; those that failed to bind come first."""
    candidates = [claim for claim in claims if _allocation(claim) and _only_for(claim, pod)]
    broken = [claim for claim in candidates if progress(claim, now) in {Progress.FAILED, Progress.TIMED_OUT}]
    return next(iter(broken or candidates), None)


def _no_node(total: int, reasons: Mapping[str, int]) -> str:
    told = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items(), key=lambda item: item[0]))
    return f"0/{total} nodes are available: {told}." if told else "no nodes available to schedule pods"


def _claims(pod: Object, snapshot: Snapshot) -> list[Object]:
    """The pod's claims in its order, checked as PreEnqueue and PreFilter do."""
    namespace, pod_name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    generated = {
        entry["name"] for entry in pod["spec"].get("resourceClaims") or () if not entry.get("resourceClaimName")
    }
    found: list[Object] = []
    for pod_claim, name in claim_names(pod).items():
        if name is None:
            raise NotReadyError(f'pod "{namespace}/{pod_name}": ResourceClaim not created yet')
        claim = snapshot.claims.get(name)
        if claim is None:
            raise NotReadyError(f'resourceclaim.resource.k8s.io "{name}" not found')
        if claim["metadata"].get("deletionTimestamp"):
            raise NotReadyError(f'resourceclaim "{name}" is being deleted')
        if pod_claim in generated and not is_owned(pod, claim):
            raise NotReadyError(
                f"ResourceClaim {namespace}/{name} was not created for Pod {namespace}/{pod_name} (Pod is not owner)"
            )
        reserved = _reserved(claim)
        uid = pod["metadata"]["uid"]
        if _allocation(claim) and len(reserved) >= RESERVED_FOR_LIMIT and uid not in reserved:
            raise UnschedulableError("resourceclaim in use")
        found.append(claim)
    return found


def _check_classes(claim: resource.ResourceClaim, snapshot: Snapshot) -> None:
    for request in claim.spec.devices.requests:
        wanted = [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available]
        if request.exactly is not None:
            wanted.append((request.name, request.exactly.device_class_name))
        for name, class_name in wanted:
            if class_name not in snapshot.classes:
                raise UnschedulableError(f"request {name}: device class {class_name} does not exist")


def _node_fault(pod: Object, node: core.Node, claims: Sequence[Object], now: datetime) -> str | None:
    labels = node.metadata.labels or {}
    selector: Mapping[str, str] = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return "node(s) didn't match Pod's node affinity/selector"
    if node.spec.unschedulable:
        return "node(s) were unschedulable"
    for claim in claims:
        allocation = _allocation(claim)
        chosen = allocation.get("nodeSelector") if allocation else None
        if chosen and not selector_matches(msgspec.convert(chosen, core.NodeSelector), node.metadata.name, labels):
            return _UNAVAILABLE
        if allocation and progress(claim, now) in {Progress.FAILED, Progress.TIMED_OUT}:
            return _UNAVAILABLE
    return None


def _score(claims: Sequence[resource.ResourceClaim], results: Sequence[resource.AllocationResult]) -> int:
    """Sum over prioritized requests of 8 minus the index of the chosen subrequest."""
    score = 0
    for claim, result in zip(claims, results, strict=True):
        chosen = {entry.request for entry in result.devices.results}
        for request in claim.spec.devices.requests:
            for index, sub in enumerate(request.first_available):
                if f"{request.name}/{sub.name}" in chosen:
                    score += _SCORE_MAX - index
    return score


def _decode(claim: Object) -> resource.ResourceClaim:
    decoded = api.decode(dict(claim))
    assert isinstance(decoded, resource.ResourceClaim)
    return decoded


def _allocation(claim: Object) -> Object | None:
    return (claim.get("status") or {}).get("allocation")


def _only_for(claim: Object, pod: Object) -> bool:
    return set(_reserved(claim)) <= {pod["metadata"]["uid"]}


def _reserved(claim: Object) -> list[str]:
    return [entry["uid"] for entry in (claim.get("status") or {}).get("reservedFor") or ()]


# What is written before the pod is bound


def protected_claim(claim: Object) -> dict[str, Any] | None:
    """The claim with the finalizer that protects an allocation; None: it has it."""
    finalizers = claim["metadata"].get("finalizers") or []
    if FINALIZER in finalizers:
        return None
    return {**claim, "metadata": {**claim["metadata"], "finalizers": [*finalizers, FINALIZER]}}


def allocated_claim(claim: Object, allocation: resource.AllocationResult | None, now: str) -> dict[str, Any]:
    """The claim with a new allocation (None: it keeps its own), made at `now`."""
    if allocation is None:
        return dict(claim)
    carrier = resource.ResourceClaim(status=resource.ResourceClaimStatus(allocation=allocation))
    content = api.encode(carrier)["status"]["allocation"]
    status = {**(claim.get("status") or {}), "allocation": {**content, "allocationTimestamp": now}}
    return {**claim, "status": status}


def reserved_claim(claim: Object, pod: Object) -> dict[str, Any]:
    """The claim with the pod among its consumers."""
    metadata = pod["metadata"]
    status = claim.get("status") or {}
    reserved = list(status.get("reservedFor") or [])
    if metadata["uid"] not in _reserved(claim):
        reserved.append({"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]})
    return {**claim, "status": {**status, "reservedFor": reserved}}


def unreserved_claim(claim: Object, pod: Object) -> dict[str, Any]:
    """The claim without the pod among its consumers."""
    status = claim.get("status") or {}
    kept = [entry for entry in status.get("reservedFor") or () if entry["uid"] != pod["metadata"]["uid"]]
    return {**claim, "status": {**status, "reservedFor": kept}}
