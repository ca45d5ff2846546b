"""Binding conditions: whether the devices of a claim are attached, so that its pod may be bound to the node.

Pure; the scheduler's PreBind as far as devices with `bindingConditions` are concerned.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, TypeAlias

__all__ = ["POLL_SECONDS", "TIMEOUT_SECONDS", "Progress", "progress"]

Object: TypeAlias = Mapping[str, Any]
POLL_SECONDS = 5.0
TIMEOUT_SECONDS = 600.0


class Progress(Enum):
    """How far the devices of a claim are."""

    READY = "ready"
    PENDING = "pending"
    FAILED = "failed"
    TIMED_OUT = "timed out"


def progress(claim: Object, now: datetime, timeout: float = TIMEOUT_SECONDS) -> Progress:
    """READY when all binding conditions of all its devices are True, or when it has none.

    FAILED as soon as any binding failure condition is True; TIMED_OUT when they are still not all True `timeout`
    seconds after the allocation.
    """
    status = claim.get("status") or {}
    allocation = status.get("allocation") or {}
    found = [_device_progress(result, status.get("devices") or ()) for result in _results(allocation)]
    if Progress.FAILED in found:
        return Progress.FAILED
    if Progress.PENDING not in found:
        return Progress.READY
    made = allocation.get("allocationTimestamp")
    if made is not None and (now - datetime.fromisoformat(made)).total_seconds() > timeout:
        return Progress.TIMED_OUT
    return Progress.PENDING


def _results(allocation: Object) -> Iterable[Object]:
    return (allocation.get("devices") or {}).get("results") or ()


def _device_progress(result: Object, devices: Iterable[Object]) -> Progress:
    wanted = result.get("bindingConditions") or ()
    if not wanted:
        return Progress.READY
    names = ("driver", "pool", "device")
    identity = [result.get(name) for name in names]
    conditions = {
        condition["type"]
        for device in devices
        if [device.get(name) for name in names] == identity
        for condition in device.get("conditions") or ()
        if condition["status"] == "True"
    }
    if conditions.intersection(result.get("bindingFailureConditions") or ()):
        return Progress.FAILED
    return Progress.READY if conditions.issuperset(wanted) else Progress.PENDING
