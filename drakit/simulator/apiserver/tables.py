"""Lists as kubectl prints them: columns and cells per kind, computed by the server."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec

from drakit.simulator.apiserver.resources import Kind

__all__ = ["Column", "age", "columns", "duration", "table"]

Cells = Callable[[dict[str, Any], datetime], list[Any]]


class Column(msgspec.Struct, frozen=True):
    """One column definition; a priority above 0 shows only with `-o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


_NAME = Column("Name", format="name", description="The name of the object.")
_AGE = Column("Age", description="Time since the object was created.")


def duration(seconds: float) -> str:
    """A span as kubectl shows ages: two units where they still tell something, one where not."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age(text: str | None, now: datetime) -> str:
    """The time since a timestamp of the API."""
    if not text:
        return "<unknown>"
    return duration((now - datetime.fromisoformat(text)).total_seconds())


def _created(obj: dict[str, Any], now: datetime) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _plain(obj: dict[str, Any], now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], _created(obj, now)]


def _slice(obj: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj["spec"]
    pool = spec.get("pool") or {}
    return [
        obj["metadata"]["name"],
        spec.get("nodeName") or "",
        spec.get("driver") or "",
        pool.get("name") or "",
        _created(obj, now),
    ]


def _claim(obj: dict[str, Any], now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    states = ["deleted"] if obj["metadata"].get("deletionTimestamp") else []
    if status.get("allocation"):
        states.append("allocated")
    elif not states:
        states.append("pending")
    if status.get("reservedFor"):
        states.append("reserved")
    return [obj["metadata"]["name"], ",".join(states), _created(obj, now)]


def _rule(obj: dict[str, Any], now: datetime) -> list[Any]:
    taint = obj["spec"].get("taint") or {}
    added = taint.get("timeAdded")
    shown = [taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""]
    return [obj["metadata"]["name"], *shown, age(added, now) if added else "", _created(obj, now)]


def _pod(obj: dict[str, Any], now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(1 for container in containers if container.get("ready"))
    restarts = sum(container.get("restartCount") or 0 for container in containers)
    address = (status.get("podIPs") or [{}])[0].get("ip") or status.get("podIP") or "<none>"
    return [
        obj["metadata"]["name"],
        f"{ready}/{len(spec.get('containers') or [])}",
        _pod_state(obj),
        str(restarts),
        _created(obj, now),
        address,
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        "<none>",
    ]


def _pod_state(obj: dict[str, Any]) -> str:
    status = obj.get("status") or {}
    state = str(status.get("reason") or status.get("phase") or "Unknown")
    for container in status.get("containerStatuses") or []:
        current = container.get("state") or {}
        for name in ("waiting", "terminated"):
            reason = (current.get(name) or {}).get("reason")
            if reason:
                state = str(reason)
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            state = "SchedulingGated"
    if obj["metadata"].get("deletionTimestamp") and status.get("phase") not in {"Succeeded", "Failed"}:
        return "Terminating"
    return state


def _node(obj: dict[str, Any], now: datetime) -> list[Any]:
    spec, status, labels = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"].get("labels") or {}
    conditions = {condition.get("type"): condition.get("status") for condition in status.get("conditions") or []}
    state = {"True": "Ready", None: "Unknown"}.get(conditions.get("Ready"), "NotReady")
    if spec.get("unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(label.removeprefix(prefix) for label in labels if label.startswith(prefix))
    info = status.get("nodeInfo") or {}
    addresses = {address.get("type"): address.get("address") for address in status.get("addresses") or []}
    return [
        obj["metadata"]["name"],
        state,
        ",".join(roles) or "<none>",
        _created(obj, now),
        info.get("kubeletVersion") or "",
        addresses.get("InternalIP") or "<none>",
        addresses.get("ExternalIP") or "<none>",
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _namespace(obj: dict[str, Any], now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], (obj.get("status") or {}).get("phase") or "", _created(obj, now)]


def _event(obj: dict[str, Any], now: datetime) -> list[Any]:
    regarding = obj.get("involvedObject") or {}
    seen = obj.get("lastTimestamp") or obj.get("eventTime") or obj["metadata"].get("creationTimestamp")
    subject = f"{(regarding.get('kind') or '').lower()}/{regarding.get('name') or ''}"
    return [age(seen, now), obj.get("type") or "", obj.get("reason") or "", subject, (obj.get("message") or "").strip()]


def _config_map(obj: dict[str, Any], now: datetime) -> list[Any]:
    count = len(obj.get("data") or {}) + len(obj.get("binaryData") or {})
    return [obj["metadata"]["name"], count, _created(obj, now)]


def _secret(obj: dict[str, Any], now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], obj.get("type") or "", len(obj.get("data") or {}), _created(obj, now)]


def _service_account(obj: dict[str, Any], now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], len(obj.get("secrets") or []), _created(obj, now)]


def _lease(obj: dict[str, Any], now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], (obj.get("spec") or {}).get("holderIdentity") or "", _created(obj, now)]


def _priority_class(obj: dict[str, Any], now: datetime) -> list[Any]:
    default = bool(obj.get("globalDefault"))
    policy = obj.get("preemptionPolicy") or "PreemptLowerPriority"
    return [obj["metadata"]["name"], obj.get("value") or 0, default, _created(obj, now), policy]


_TABLES: dict[str, tuple[list[Column], Cells]] = {
    "ResourceSlice": (
        [
            _NAME,
            Column("Node", description="The node that the devices of the slice belong to."),
            Column("Driver", description="The driver that published the slice."),
            Column("Pool", description="The pool that the slice is a part of."),
            _AGE,
        ],
        _slice,
    ),
    "ResourceClaim": (
        [_NAME, Column("State", description="pending, allocated, reserved, deleted: what holds of the claim."), _AGE],
        _claim,
    ),
    "DeviceTaintRule": (
        [
            _NAME,
            Column("Key", description="The key of the taint."),
            Column("Value", description="The value of the taint."),
            Column("Effect", description="The effect of the taint."),
            Column("TimeAdded", description="Time since the taint was added or its effect changed."),
            _AGE,
        ],
        _rule,
    ),
    "Pod": (
        [
            _NAME,
            Column("Ready", description="Ready containers of all."),
            Column("Status", description="What the pod is about."),
            Column("Restarts", description="Restarts of all containers."),
            _AGE,
            Column("IP", description="The first address of the pod.", priority=1),
            Column("Node", description="The node of the pod.", priority=1),
            Column("Nominated Node", description="The node that the scheduler makes room on.", priority=1),
            Column("Readiness Gates", description="Further conditions of readiness.", priority=1),
        ],
        _pod,
    ),
    "Node": (
        [
            _NAME,
            Column("Status", description="Whether the node is ready."),
            Column("Roles", description="The roles among its labels."),
            _AGE,
            Column("Version", description="The version of its kubelet."),
            Column("Internal-IP", description="Its address inside the cluster.", priority=1),
            Column("External-IP", description="Its address outside.", priority=1),
            Column("OS-Image", description="Its operating system.", priority=1),
            Column("Kernel-Version", description="Its kernel.", priority=1),
            Column("Container-Runtime", description="Its container runtime.", priority=1),
        ],
        _node,
    ),
    "Namespace": ([_NAME, Column("Status", description="Active or Terminating."), _AGE], _namespace),
    "Event": (
        [
            Column("Last Seen", description="Time since the event was seen last."),
            Column("Type", description="Normal or Warning."),
            Column("Reason", description="Why, in one word."),
            Column("Object", description="What the event is about."),
            Column("Message", description="What happened."),
        ],
        _event,
    ),
    "ConfigMap": ([_NAME, Column("Data", type="integer", description="Entries."), _AGE], _config_map),
    "Secret": (
        [
            _NAME,
            Column("Type", description="What the secret is for."),
            Column("Data", type="integer", description="Entries."),
            _AGE,
        ],
        _secret,
    ),
    "ServiceAccount": (
        [_NAME, Column("Secrets", type="integer", description="Secrets of the account."), _AGE],
        _service_account,
    ),
    "Lease": ([_NAME, Column("Holder", description="Who holds the lease."), _AGE], _lease),
    "PriorityClass": (
        [
            _NAME,
            Column("Value", type="integer", description="The priority."),
            Column("Global-Default", type="boolean", description="Whether pods without a class get this one."),
            _AGE,
            Column("PreemptionPolicy", description="Whether such pods preempt others."),
        ],
        _priority_class,
    ),
}


def columns(kind: Kind) -> list[Column]:
    """The columns of a kind."""
    return _TABLES.get(kind.kind, ([_NAME, _AGE], _plain))[0]


def table(
    kind: Kind,
    rows: Iterable[tuple[dict[str, Any], Any]],
    metadata: dict[str, Any],
    now: datetime,
    *,
    with_columns: bool = True,
) -> dict[str, Any]:
    """A Table of `rows`: each the stored object and what its row carries as `object`."""
    cells = _TABLES.get(kind.kind, ([], _plain))[1]
    shown = []
    for obj, carried in rows:
        shown.append({"cells": cells(obj, now), "object": carried})
    document: dict[str, Any] = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    definitions = [msgspec.to_builtins(column) for column in columns(kind)] if with_columns else []
    return {**document, "columnDefinitions": definitions, "rows": shown}
