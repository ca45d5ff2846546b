"""What the resourceclaim controller does: claims from templates, reservations, deallocation, deletion.

Pure decisions over plain v1 objects; the caller reads, writes and repeats. Facts: the controller's section of the
allocator specification, and a recorded control plane.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

__all__ = [
    "EXTENDED_RESOURCE_ANNOTATION",
    "FINALIZER",
    "POD_CLAIM_ANNOTATION",
    "Action",
    "CreateClaim",
    "Deallocate",
    "DeleteClaim",
    "MissingTemplateError",
    "SetClaimStatuses",
    "UpdateClaimStatus",
    "claim_names",
    "deallocated_claim",
    "generate_claims",
    "generate_name",
    "is_done",
    "pods_of_claim",
    "reserve_prescheduled",
    "sync_claim",
    "unprotected_claim",
]

Object: TypeAlias = Mapping[str, Any]

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
EXTENDED_RESOURCE_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
_BASE_BYTES = 57  # leaves room for a hyphen and five random characters in a name of 63
_TERMINAL = frozenset({"Succeeded", "Failed"})


class CreateClaim(msgspec.Struct, frozen=True):
    """Create a claim for `pod_claim`; its name comes from the server."""

    pod_claim: str
    claim: dict[str, Any]


class SetClaimStatuses(msgspec.Struct, frozen=True):
    """Write pod.status.resourceClaimStatuses."""

    statuses: list[dict[str, Any]]


class UpdateClaimStatus(msgspec.Struct, frozen=True):
    """Replace a claim's status, if nobody else was first."""

    claim: dict[str, Any]


class Deallocate(msgspec.Struct, frozen=True):
    """Replace a claim's status by one without allocation, then take FINALIZER from the result."""

    claim: dict[str, Any]


class DeleteClaim(msgspec.Struct, frozen=True):
    """Delete exactly this claim."""

    namespace: str
    name: str
    uid: str


Action: TypeAlias = CreateClaim | SetClaimStatuses | UpdateClaimStatus | Deallocate | DeleteClaim


class MissingTemplateError(Exception):
    """A pod names a template that does not exist; the pod waits for it."""

    def __init__(self, template: str) -> None:
        self.template = template
        super().__init__(
            f'resource claim template "{template}": resourceclaimtemplate.resource.k8s.io "{template}" not found'
        )


def is_done(pod: Object) -> bool:
    """Whether a pod needs its claims no more: ended, or deleted before it was scheduled."""
    if (pod.get("status") or {}).get("phase") in _TERMINAL:
        return True
    return bool(pod["metadata"].get("deletionTimestamp")) and not pod["spec"].get("nodeName")


# Generation


def generate_name(pod: str, pod_claim: str) -> str:
    """`<pod>-<pod claim>-`, both cut in proportion when that is too long, and then without the last hyphen."""
    name = f"{pod}-{pod_claim}-"
    if len(name) <= _BASE_BYTES:
        return name
    total = len(name)
    return f"{pod[: len(pod) * _BASE_BYTES // total]}-{pod_claim[: len(pod_claim) * _BASE_BYTES // total]}"


def generate_claims(pod: Object, claims: Iterable[Object], templates: Mapping[str, Object]) -> tuple[Action, ...]:
    """The claims that a pod still needs, else its statuses.

    Args:
        pod: the pod.
        claims: the claims of its namespace, with those just created.
        templates: the templates of its namespace by name.

    Returns:
        CreateClaim for each missing claim; when none is missing, SetClaimStatuses if the pod's status lacks any.

    Raises:
        MissingTemplateError: a template does not exist.
    """
    if pod["metadata"].get("deletionTimestamp") or (pod.get("status") or {}).get("phase") in _TERMINAL:
        return ()
    owned = _owned_claims(pod, claims)
    known = {entry["name"]: entry for entry in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    creations: list[Action] = []
    statuses: dict[str, dict[str, Any]] = {}
    for entry in pod["spec"].get("resourceClaims") or ():
        name, template = entry["name"], entry.get("resourceClaimTemplateName")
        if not template:
            continue
        if name in owned:
            statuses[name] = {"name": name, "resourceClaimName": owned[name]}
        elif template in templates:
            creations.append(CreateClaim(name, _generated(pod, name, templates[template])))
        else:
            raise MissingTemplateError(template)
    if creations or all(known.get(name) == status for name, status in statuses.items()):
        return tuple(creations)
    return (SetClaimStatuses(list({**known, **statuses}.values())),)


def _owned_claims(pod: Object, claims: Iterable[Object]) -> dict[str, str]:
    """Names of the live claims made for the pod, by pod claim."""
    owned: dict[str, str] = {}
    for claim in claims:
        metadata = claim["metadata"]
        pod_claim = (metadata.get("annotations") or {}).get(POD_CLAIM_ANNOTATION)
        if pod_claim and not metadata.get("deletionTimestamp") and is_owned(pod, claim):
            owned.setdefault(pod_claim, metadata["name"])
    return owned


def is_owned(pod: Object, claim: Object) -> bool:
    """Whether the pod is the claim's controller."""
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner["uid"] == pod["metadata"]["uid"] for owner in owners)


def _generated(pod: Object, pod_claim: str, template: Object) -> dict[str, Any]:
    inner = template["spec"].get("metadata") or {}
    metadata: dict[str, Any] = {
        "generateName": generate_name(pod["metadata"]["name"], pod_claim),
        "namespace": pod["metadata"]["namespace"],
        "annotations": {**(inner.get("annotations") or {}), POD_CLAIM_ANNOTATION: pod_claim},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
                "controller": True,
            }
        ],
    }
    if inner.get("labels"):
        metadata["labels"] = dict(inner["labels"])
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": template["spec"]["spec"],
    }


# Use


def claim_names(pod: Object) -> dict[str, str | None]:
    """ResourceClaim name by pod claim in the pod's order; None: not created yet. Claims not needed are left out."""
    statuses = {entry["name"]: entry for entry in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    names: dict[str, str | None] = {}
    for entry in pod["spec"].get("resourceClaims") or ():
        name = entry["name"]
        if entry.get("resourceClaimName"):
            names[name] = entry["resourceClaimName"]
        elif name not in statuses:
            names[name] = None
        elif statuses[name].get("resourceClaimName"):
            names[name] = statuses[name]["resourceClaimName"]
    return names


def reserve_prescheduled(pod: Object, claims: Iterable[Object]) -> tuple[UpdateClaimStatus, ...]:
    """Reserve allocated claims for a pod that has a node without the scheduler's doing.

    Claims that are not allocated stay so: the kubelet will refuse the pod.
    """
    if not pod["spec"].get("nodeName") or is_done(pod) or pod["metadata"].get("deletionTimestamp"):
        return ()
    wanted = {name for name in claim_names(pod).values() if name}
    metadata = pod["metadata"]
    consumer = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
    updates = []
    for claim in claims:
        status = claim.get("status") or {}
        reserved = list(status.get("reservedFor") or ())
        missing = all(entry["uid"] != metadata["uid"] for entry in reserved)
        if claim["metadata"]["name"] in wanted and status.get("allocation") and missing:
            updates.append(UpdateClaimStatus({**claim, "status": {**status, "reservedFor": [*reserved, consumer]}}))
    return tuple(updates)


def pods_of_claim(claim: Object) -> tuple[str, ...]:
    """UIDs of the pods that a claim is reserved for or owned by."""
    reserved = (claim.get("status") or {}).get("reservedFor") or ()
    owners = claim["metadata"].get("ownerReferences") or ()
    uids = [entry["uid"] for entry in reserved if _is_pod(entry)]
    return tuple(dict.fromkeys([*uids, *(owner["uid"] for owner in owners if owner["kind"] == "Pod")]))


def sync_claim(claim: Object, pods: Mapping[str, Object]) -> Action | None:
    """Give back what pods that ended or vanished hold; None: all is well.

    A claim is deallocated when its last consumer leaves it, or when it is being deleted without one; an allocation
    without any consumer stays otherwise, and so does one without the finalizer.

    Args:
        claim: the claim.
        pods: all living pods by UID.
    """
    metadata, status = claim["metadata"], claim.get("status") or {}
    reserved = status.get("reservedFor") or []
    kept = [entry for entry in reserved if not _is_pod(entry) or _still_uses(pods.get(entry["uid"]), entry)]
    deleting = bool(metadata.get("deletionTimestamp"))
    if not kept and FINALIZER in (metadata.get("finalizers") or ()) and (reserved or deleting):
        return Deallocate(deallocated_claim(claim))
    if len(kept) != len(reserved):
        return UpdateClaimStatus({**claim, "status": {**status, "reservedFor": kept}})
    if not kept and not deleting and _owner_done(claim, pods):
        return DeleteClaim(metadata["namespace"], metadata["name"], metadata["uid"])
    return None


def deallocated_claim(claim: Object) -> dict[str, Any]:
    """The claim without allocation, consumers and device status."""
    status = claim.get("status") or {}
    kept = {key: value for key, value in status.items() if key not in {"allocation", "reservedFor", "devices"}}
    return {**claim, "status": kept}


def unprotected_claim(claim: Object) -> dict[str, Any]:
    """The claim without FINALIZER."""
    finalizers = claim["metadata"].get("finalizers") or ()
    left = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
    return {**claim, "metadata": {**claim["metadata"], "finalizers": left}}


def _is_pod(entry: Object) -> bool:
    return entry["resource"] == "pods" and not entry.get("apiGroup")


def _still_uses(pod: Object | None, entry: Object) -> bool:
    return pod is not None and pod["metadata"]["uid"] == entry["uid"] and not is_done(pod)


def _owner_done(claim: Object, pods: Mapping[str, Object]) -> bool:
    """Whether a generated claim's pod has ended. One whose pod is gone is the garbage collector's."""
    annotations = claim["metadata"].get("annotations") or {}
    if POD_CLAIM_ANNOTATION not in annotations and EXTENDED_RESOURCE_ANNOTATION not in annotations:
        return False
    owners = [pods[uid] for owner in claim["metadata"].get("ownerReferences") or () if (uid := owner["uid"]) in pods]
    return bool(owners) and all(is_done(pod) for pod in owners)
