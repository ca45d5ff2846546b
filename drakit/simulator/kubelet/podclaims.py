"""What a pod's spec and status say about its claims, and which CDI devices a container of it gets."""

import random
from collections.abc import Mapping
from typing import Any

from drakit.simulator.kubelet.state import Claim, ClaimInfo, ClaimRef

__all__ = ["ClaimError", "cdi_devices", "claim_keys", "claim_names", "read_claim"]

Pod = Mapping[str, Any]


class ClaimError(Exception):
    """A claim of a pod cannot be used; the text is the kubelet's."""


def claim_names(pod: Pod) -> dict[str, str]:
    """ResourceClaim name by pod claim name, in pod.spec.resourceClaims order; claims that are not needed are left out.

    Raises:
        ClaimError: a claim has not been generated yet.
    """
    statuses = {entry["name"]: entry for entry in pod.get("status", {}).get("resourceClaimStatuses") or ()}
    names: dict[str, str] = {}
    for entry in pod["spec"].get("resourceClaims") or ():
        name = entry["name"]
        if entry.get("resourceClaimName"):
            names[name] = entry["resourceClaimName"]
        elif name not in statuses:
            raise ClaimError(f'pod "{_namespace(pod)}/{pod["metadata"]["name"]}": ResourceClaim not created yet')
        elif statuses[name].get("resourceClaimName"):
            names[name] = statuses[name]["resourceClaimName"]
    return names


def extended_claim(pod: Pod) -> str | None:
    """The claim that the scheduler made for extended resources (P27)."""
    status = pod.get("status", {}).get("extendedResourceClaimStatus")
    return status["resourceClaimName"] if status else None


def claim_keys(pod: Pod) -> tuple[str, ...]:
    """Cache keys of all claims of the pod that have a name."""
    statuses = pod.get("status", {}).get("resourceClaimStatuses") or ()
    names = [entry.get("resourceClaimName") for entry in (*(pod["spec"].get("resourceClaims") or ()), *statuses)]
    return tuple(f"{_namespace(pod)}/{name}" for name in dict.fromkeys([*names, extended_claim(pod)]) if name)


def read_claim(pod: Pod, claim: Mapping[str, Any], *, generated: bool) -> Claim:
    """The kubelet's view of a claim object.

    Raises:
        ClaimError: a claim from a template that belongs to another pod (P18).
    """
    metadata = claim["metadata"]
    if generated and not _owned(pod, metadata):
        name, namespace = metadata["name"], metadata["namespace"]
        raise ClaimError(
            f"ResourceClaim {namespace}/{name} was not created for Pod {_namespace(pod)}/{pod['metadata']['name']} "
            "(Pod is not owner)"
        )
    status = claim.get("status") or {}
    allocation = status.get("allocation")
    results = (allocation or {}).get("devices", {}).get("results") or ()
    return Claim(
        ref=ClaimRef(metadata["namespace"], metadata["name"], metadata["uid"]),
        drivers=None if allocation is None else tuple(dict.fromkeys(result["driver"] for result in results)),
        reserved_for=tuple(consumer["uid"] for consumer in status.get("reservedFor") or ()),
    )


def _owned(pod: Pod, metadata: Mapping[str, Any]) -> bool:
    owners = metadata.get("ownerReferences") or ()
    return any(owner.get("controller") and owner["uid"] == pod["metadata"]["uid"] for owner in owners)


def cdi_devices(
    pod: Pod, container: Mapping[str, Any], claims: Mapping[str, ClaimInfo], rng: random.Random
) -> tuple[str, ...]:
    """CDI devices of a container, in the order of injection.

    Devices come in reply order; requests in the order of the container's entries; the order among several pod claims,
    and among the drivers of a claim, is random, as in the kubelet (P26, recorded section 21).

    Raises:
        ClaimError: a claim is no longer in the cache (recorded section 27).
    """
    ids: list[str] = []
    for name, requests in _shuffled(_wanted(pod, container), rng):
        info = claims.get(f"{_namespace(pod)}/{name}")
        if info is None:
            raise ClaimError(
                f"internal error: unable to get claim info for ResourceClaim {name} in namespace {_namespace(pod)}"
            )
        for request in requests:
            ids += _claim_devices(info, request, rng)
    return tuple(ids)


def _wanted(pod: Pod, container: Mapping[str, Any]) -> dict[str, list[str | None]]:
    """Requests by claim name; None: the whole claim."""
    names = claim_names(pod)
    wanted: dict[str, list[str | None]] = {}
    for entry in (container.get("resources") or {}).get("claims") or ():
        if entry["name"] in names:
            wanted.setdefault(names[entry["name"]], []).append(entry.get("request"))
    status = pod.get("status", {}).get("extendedResourceClaimStatus") or {}
    for mapping in status.get("requestMappings") or ():
        if mapping["containerName"] == container["name"]:
            wanted.setdefault(status["resourceClaimName"], []).append(mapping["requestName"])
    return wanted


def _claim_devices(info: ClaimInfo, request: str | None, rng: random.Random) -> list[str]:
    return [
        cdi_id
        for _, devices in _shuffled(info.devices, rng)
        for device in devices
        if not request or not device.request_names or request in device.request_names
        for cdi_id in device.cdi_device_ids
    ]


def _shuffled(mapping: Mapping[str, Any], rng: random.Random) -> list[tuple[str, Any]]:
    items = list(mapping.items())
    rng.shuffle(items)
    return items


def _namespace(pod: Pod) -> str:
    return str(pod["metadata"]["namespace"])
