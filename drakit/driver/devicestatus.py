"""What a device driver tells about one prepared device, and whether the API server would take it (P37, slices 4.4)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from drakit import metadata
from drakit.api.meta import Condition

__all__ = ["DeviceStatus", "DeviceStatusError", "verified"]


class DeviceStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The entry of a device in `status.devices` of its claim (KEP-4817). What is left out there stays as it is.

    Attributes:
        conditions: at most 8, of different types, each with status True, False or Unknown and a reason. Without
            `last_transition_time` it is the time of writing; that of a condition whose status did not change is kept.
        data: the driver's own JSON object, at most 10 KiB.
        network_data: interface name, addresses in CIDR form (at most 16), hardware address.
    """

    conditions: tuple[Condition, ...] = ()
    data: Mapping[str, Any] | None = None
    network_data: metadata.NetworkData | None = None


class DeviceStatusError(Exception):
    """The API server would refuse the status; the text names each field and what is wrong with it."""


def verified(status: object) -> DeviceStatus:
    """The status with nothing but JSON in it. Hooks are other people's code: `status` may be anything.

    Raises:
        DeviceStatusError: it is wrong.
    """
    if not isinstance(status, DeviceStatus):
        raise DeviceStatusError(f"status is a {type(status).__name__}, not a DeviceStatus")
    try:
        plain = msgspec.json.decode(msgspec.json.encode(status), type=DeviceStatus)
        faults = _faults(plain)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise DeviceStatusError(f"status: {error}") from error
    if faults:
        raise DeviceStatusError("; ".join(faults))
    return plain


def _faults(status: DeviceStatus) -> list[str]:
    from drakit.admission.faults import Faults
    from drakit.admission.validation.status import device_report

    faults = Faults()
    entry: dict[str, Any] = {"conditions": [_shown(condition) for condition in status.conditions]}
    if status.data is not None:
        entry["data"] = status.data
    if status.network_data is not None:
        entry["networkData"] = msgspec.to_builtins(status.network_data)
    device_report(faults, "status", entry)
    times = [_time_fault(index, condition) for index, condition in enumerate(status.conditions)]
    return [f"{fault.path}: {fault.message}" for fault in faults.found] + [text for text in times if text]


def _shown(condition: Condition) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(condition)
    return {"reason": "", "message": "", "lastTransitionTime": ""} | plain


def _time_fault(index: int, condition: Condition) -> str:
    text = condition.last_transition_time
    if text is None:
        return ""
    try:
        known = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        known = False
    where = f"status.conditions[{index}].lastTransitionTime"
    return "" if known else f"{where}: Invalid value: {text!r}: must be a time like 2026-01-31T12:00:00Z"
