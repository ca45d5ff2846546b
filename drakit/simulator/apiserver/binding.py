"""The binding subresource of pods."""

from typing import Any

from drakit.simulator.apiserver.errors import bad_request, conflict
from drakit.simulator.apiserver.paths import Target

__all__ = ["bound"]


def bound(target: Target, pod: dict[str, Any], binding: dict[str, Any], now: str) -> dict[str, Any]:
    """The pod with the node of `binding`.

    Raises:
        Refused: 400 without a node, 409 for a pod that is bound, going or another one of this name.
    """
    name, spec, metadata = target.name or "", pod["spec"], pod["metadata"]
    node = (binding.get("target") or {}).get("name") or ""
    if not node:
        raise bad_request("target.name: Required value")
    uid = (binding.get("metadata") or {}).get("uid")
    if uid and uid != metadata["uid"]:
        raise conflict(target.kind, name, "the UID in the binding does not match the pod")
    if metadata.get("deletionTimestamp"):
        raise conflict(target.kind, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise conflict(target.kind, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    status = pod.get("status") or {}
    others = [condition for condition in status.get("conditions") or [] if condition.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    return {
        **pod,
        "metadata": {**metadata, "generation": metadata.get("generation", 1) + 1},
        "spec": {**spec, "nodeName": node},
        "status": {**status, "conditions": [*others, scheduled]},
    }
