"""When a taint was added: set by the server, to be kept as long as the taint stays (spec/resourceslice.md 1.5).

Upstream kept the time of one taint per device only, and lost it when a device moved to another slice; here every taint
that has the same key, value and effect as before keeps its time, wherever its device is.
"""

from collections.abc import Iterable, MutableMapping
from datetime import UTC, datetime, timedelta

import msgspec

from drakit.api.resource import Device, DeviceTaint
from drakit.driver.publication.layout import SliceContent

__all__ = ["Times", "inherit", "remember", "rounded", "same_taints"]

Key = tuple[str, str, str, str]
Times = MutableMapping[Key, str]
"""(device, key, value, effect) -> RFC 3339 time."""

_TOLERANCE = timedelta(seconds=1)


def _key(device: Device, taint: DeviceTaint) -> Key:
    return device.name, taint.key, taint.value, taint.effect


def _parse(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def rounded(text: str) -> str:
    """The time in whole seconds, rounded as upstream does, not cut; text that is no time is left to the server."""
    time = _parse(text)
    if time is None:
        return text
    whole = (time.astimezone(UTC) + timedelta(microseconds=500_000)).replace(microsecond=0)
    return whole.isoformat().replace("+00:00", "Z")


def inherit(content: SliceContent, times: Times) -> SliceContent:
    """`content` with the known time of every taint that has none of its own, and own times in whole seconds."""
    if not any(device.taints for device in content.devices):
        return content
    return msgspec.structs.replace(content, devices=tuple(_timed(device, times) for device in content.devices))


def _timed(device: Device, times: Times) -> Device:
    if not device.taints:
        return device
    timed = tuple(
        msgspec.structs.replace(
            taint, time_added=rounded(taint.time_added) if taint.time_added else times.get(_key(device, taint))
        )
        for taint in device.taints
    )
    return device if timed == device.taints else msgspec.structs.replace(device, taints=timed)


def remember(times: Times, observed: Iterable[SliceContent], desired: Iterable[SliceContent]) -> None:
    """Note the server's times of all taints in `observed`, and forget those of taints that nobody wants any more."""
    wanted = {_key(device, taint) for content in desired for device in content.devices for taint in device.taints}
    for content in observed:
        for device in content.devices:
            for taint in device.taints:
                if taint.time_added and _key(device, taint) in wanted:
                    times[_key(device, taint)] = taint.time_added
    for gone in [key for key in times if key not in wanted]:
        del times[gone]


def same_taints(wanted: tuple[DeviceTaint, ...], found: tuple[DeviceTaint, ...]) -> bool:
    """Equal but for times that one side lacks or that differ by at most a second."""
    return len(wanted) == len(found) and all(_same(a, b) for a, b in zip(wanted, found, strict=True))


def _same(a: DeviceTaint, b: DeviceTaint) -> bool:
    if (a.key, a.value, a.effect) != (b.key, b.value, b.effect):
        return False
    if not a.time_added or not b.time_added or a.time_added == b.time_added:
        return True
    left, right = _parse(a.time_added), _parse(b.time_added)
    return left is not None and right is not None and abs(left - right) <= _TOLERANCE
