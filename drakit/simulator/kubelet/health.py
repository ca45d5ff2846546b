"""Device health as a kubelet keeps and shows it: which stream it opens, what it remembers, what a pod's status says.

Pure; facts H1 to H11 and recorded sections 17 and 28. A cache maps drivers to devices (`pool/device`) to their health.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from drakit.simulator.kubelet.state import ClaimInfo

__all__ = [
    "HEALTHY",
    "UNHEALTHY",
    "UNKNOWN",
    "Cache",
    "Health",
    "choose_stream",
    "clear",
    "minor",
    "read",
    "report",
    "resources",
    "truncated",
]

UNKNOWN, HEALTHY, UNHEALTHY = "Unknown", "Healthy", "Unhealthy"
DEFAULT_TIMEOUT = 30.0
_MESSAGE_BYTES = 1024
_ON_SINCE = 36
_V1, _V1ALPHA1 = "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"


class Health(msgspec.Struct, frozen=True):
    """One device's health: when the kubelet heard of it counts, not what the plugin says of the time (H8)."""

    status: str
    message: str = ""
    received: float = 0
    timeout: float = DEFAULT_TIMEOUT


Cache: TypeAlias = Mapping[str, Mapping[str, Health]]


def choose_stream(advertised: Iterable[str], version: str) -> str | None:
    """The health service to call; None: no stream.

    1.36 opens v1alpha1 on every plugin whatever it advertises; from 1.37 on the newest common one (H7). Before, the
    feature was off.
    """
    if minor(version) < _ON_SINCE:
        return None
    if minor(version) == _ON_SINCE:
        return _V1ALPHA1
    known = set(advertised)
    return next((service for service in (_V1, _V1ALPHA1) if service in known), None)


def minor(version: str) -> int:
    """36 of "1.36"."""
    return int(version.partition(".")[2])


def report(cache: Cache, driver: str, entries: Mapping[str, Health], now: float) -> tuple[Cache, frozenset[str]]:
    """The cache after a report, and the devices whose health, message or timeout is another now.

    A device that is not in the report keeps its state until its timeout, and is then found to be Unknown.
    """
    known = cache.get(driver, {})
    after = dict(known)
    for key, entry in entries.items():
        timeout = entry.timeout if entry.timeout > 0 else DEFAULT_TIMEOUT
        after[key] = Health(entry.status, truncated(entry.message), now, timeout)
    for key, old in known.items():
        if key not in entries and _is_stale(old, now):
            after[key] = Health(UNKNOWN, "", old.received, old.timeout)
    changed = frozenset(key for key, entry in after.items() if key not in known or _differs(known[key], entry))
    return {**cache, driver: after}, changed


def clear(cache: Cache, driver: str) -> Cache:
    """The cache after a stream of the driver ended: all of its devices, also those of other instances (H10)."""
    return {name: devices for name, devices in cache.items() if name != driver}


def read(cache: Cache, driver: str, key: str, now: float) -> tuple[str, str]:
    """Health and message of a device as they are shown now."""
    entry = cache.get(driver, {}).get(key)
    if entry is None or _is_stale(entry, now):
        return UNKNOWN, ""
    return entry.status, entry.message


def truncated(message: str) -> str:
    """Cut to 1024 bytes, in the middle of a character if need be: what is left of it is no letter any more [17]."""
    data = message.encode()
    if len(data) <= _MESSAGE_BYTES:
        return message
    return data[: _MESSAGE_BYTES - 3].decode(errors="replace") + "..."


def _is_stale(entry: Health, now: float) -> bool:
    return entry.status != UNKNOWN and now - entry.received > entry.timeout


def _differs(old: Health, new: Health) -> bool:
    return (old.status, old.message, old.timeout) != (new.status, new.message, new.timeout)


def resources(
    container: Mapping[str, Any],
    names: Mapping[str, str],
    claims: Mapping[str, ClaimInfo],
    cache: Cache,
    now: float,
) -> list[dict[str, Any]]:
    """containerStatuses[].allocatedResourcesStatus of a container (H11).

    Args:
        container: of the pod's spec.
        names: `namespace/name` of a claim by pod claim name.
        claims: the kubelet's cache.
        cache: health.
        now: the time.
    """
    shown = []
    for entry in (container.get("resources") or {}).get("claims") or ():
        info = claims.get(names.get(entry["name"], ""))
        if info is None:
            continue
        request = entry.get("request")
        found = _devices(info, request, cache, now)
        name = f"claim:{entry['name']}/{request}" if request else f"claim:{entry['name']}"
        shown.append({"name": name, "resources": [_shown(resource_id, *state) for resource_id, state in found.items()]})
    return shown


def _devices(info: ClaimInfo, request: str | None, cache: Cache, now: float) -> dict[str, tuple[str, str]]:
    """Health and message by resource ID: the first CDI ID, else `driver/pool/device`."""
    found: dict[str, tuple[str, str]] = {}
    for driver, devices in info.devices.items():
        for device in devices:
            if request and device.request_names and request not in device.request_names:
                continue
            fallback = f"{driver}/{device.pool}/{device.device}"
            resource_id = device.cdi_device_ids[0] if device.cdi_device_ids else fallback
            found.setdefault(resource_id, read(cache, driver, f"{device.pool}/{device.device}", now))
    return found


def _shown(resource_id: str, health: str, message: str) -> dict[str, Any]:
    return {"resourceID": resource_id, "health": health, **({"message": message} if message else {})}
