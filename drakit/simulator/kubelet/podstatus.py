"""The status that a kubelet reports for a pod, from what its containers are doing."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from drakit.simulator.kubelet.cri import ContainerView

__all__ = ["TERMINAL", "ContainerState", "final_phase", "phase", "status"]

TERMINAL = frozenset({"Succeeded", "Failed"})


class ContainerState(msgspec.Struct, frozen=True):
    """A container of a pod: what the runtime says of it, or why it waits."""

    name: str
    image: str
    view: ContainerView | None = None
    waiting: str = "ContainerCreating"
    message: str = ""
    restarts: int = 0
    resources: tuple[dict[str, Any], ...] = ()
    """allocatedResourcesStatus."""

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self.view is not None and self.view.exit_code is None

    @property
    def exit_code(self) -> int | None:
        """How it ended; None: it has not."""
        return None if self.view is None else self.view.exit_code


def phase(containers: Sequence[ContainerState], restart_policy: str) -> str:
    """The phase of a pod that has a sandbox (regular containers only)."""
    if not any(container.view for container in containers):
        return "Pending"
    codes = [container.exit_code for container in containers]
    if restart_policy == "Always" or None in codes:
        return "Running"
    if restart_policy == "OnFailure" and any(codes):
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def final_phase(containers: Sequence[ContainerState]) -> str:
    """The phase of a pod whose sandbox is gone: a container that never ran counts as failed."""
    return "Succeeded" if containers and all(container.exit_code == 0 for container in containers) else "Failed"


def status(
    pod: Mapping[str, Any],
    phase: str,
    containers: Sequence[ContainerState],
    init_containers: Sequence[ContainerState],
    *,
    sandbox: bool,
    now: datetime,
) -> dict[str, Any]:
    """The fields of pod.status that the kubelet owns, for a strategic merge patch."""
    finished = phase in TERMINAL
    initialized = all(container.exit_code == 0 for container in init_containers)
    ready = sandbox and bool(containers) and all(container.running for container in containers)
    flags = {
        "PodReadyToStartContainers": sandbox,
        "Initialized": initialized,
        "ContainersReady": ready,
        "Ready": ready,
    }
    reason = {"reason": "PodCompleted"} if finished else {}
    known = {entry["type"]: entry for entry in (pod.get("status") or {}).get("conditions") or ()}
    return {
        "phase": phase,
        "startTime": (pod.get("status") or {}).get("startTime") or _time(now),
        "conditions": [
            _condition(kind, value, known.get(kind), now, {} if value else reason) for kind, value in flags.items()
        ],
        "containerStatuses": [_container_status(container) for container in containers],
        **(
            {"initContainerStatuses": [_container_status(container) for container in init_containers]}
            if init_containers
            else {}
        ),
    }


def _condition(
    kind: str, value: bool, known: Mapping[str, Any] | None, now: datetime, reason: dict[str, str]
) -> dict[str, Any]:
    text = str(value)
    since = known["lastTransitionTime"] if known is not None and known["status"] == text else _time(now)
    return {"type": kind, "status": text, "lastTransitionTime": since, **reason}


def _container_status(container: ContainerState) -> dict[str, Any]:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": container.running,
        "started": container.running,
        "restartCount": container.restarts,
        "state": _state(container),
        "lastState": {},
        **({"containerID": container.view.id} if container.view else {}),
        **_resources(container),
    }


def _resources(container: ContainerState) -> dict[str, Any]:
    shown = container.running and container.resources
    return {"allocatedResourcesStatus": list(container.resources)} if shown else {}


def _state(container: ContainerState) -> dict[str, Any]:
    view = container.view
    if view is None:
        message = {"message": container.message} if container.message else {}
        return {"waiting": {"reason": container.waiting, **message}}
    if view.exit_code is None:
        return {"running": {"startedAt": _time(view.started)}}
    return {
        "terminated": {
            "exitCode": view.exit_code,
            "reason": "Error" if view.exit_code else "Completed",
            "startedAt": _time(view.started),
            "finishedAt": _time(view.finished or view.started),
            "containerID": view.id,
        }
    }


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
