"""How a pool is cut into slices: pure, and as steady as the limits allow.

A slice holds 128 devices, or 64 as soon as one of them has taints, counters or list attributes
(spec/resourceslice.md 2.1, 6.9); counter sets get slices of their own, 8 each, before the devices' slices. Devices stay
in the slice where they are published already, so that a removed or added device rewrites one slice and not all behind.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from drakit.api import limits
from drakit.api.core import NodeSelector
from drakit.api.resource import CounterSet, Device
from drakit.driver.publication.resources import Pool, PoolSlice

__all__ = ["SliceContent", "cut", "is_limited"]

_WASTE = 2  # keep the published cut while it has at most this many times the slices of a fresh one


class SliceContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a slice says, apart from its pool's generation and count."""

    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


def is_limited(device: Device) -> bool:
    """Whether the device halves the number of devices in its slice."""
    return bool(
        device.taints
        or device.consumes_counters
        or any(a.ints or a.bools or a.strings or a.versions for a in device.attributes.values())
    )


def cut(
    pool: Pool,
    published: Sequence[Sequence[str]] = (),
    limited: Callable[[Device], bool] = is_limited,
) -> tuple[SliceContent, ...]:
    """The slices of `pool`, in the order of their indices.

    Args:
        pool: what the driver wants.
        published: names of the devices in each slice as it is published now, in the order of indices.
        limited: `is_limited`, or a cache of it.
    """
    if pool.slices is not None:
        return tuple(_content(pool, part) for part in pool.slices)
    counters = [
        PoolSlice(shared_counters=pool.shared_counters[at : at + limits.COUNTER_SETS])
        for at in range(0, len(pool.shared_counters), limits.COUNTER_SETS)
    ]
    home = {name: index for index, names in enumerate(published) for name in names}
    devices = [PoolSlice(devices=part) for part in _parts(pool.devices, home, limited)]
    parts = counters + devices or [PoolSlice()]
    return tuple(_content(pool, part) for part in parts)


def _content(pool: Pool, part: PoolSlice) -> SliceContent:
    consuming = any(device.consumes_counters for device in part.devices)
    return SliceContent(
        devices=part.devices,
        shared_counters=part.shared_counters,
        node_selector=pool.node_selector,
        all_nodes=pool.all_nodes,
        per_device_node_selection=pool.per_device_node_selection or part.per_device_node_selection,
        # Only a slice with devices that consume counters may carry it (slices 2.6).
        partition_type_attribute=part.partition_type_attribute
        or (pool.partition_type_attribute if consuming else None),
        skip_node_operations=pool.skip_node_operations,
    )


Parts = list[tuple[Device, ...]]


def _parts(devices: Sequence[Device], home: Mapping[str, int], limited: Callable[[Device], bool]) -> Parts:
    flags = [limited(device) for device in devices]
    fresh = list(_fresh(devices, flags))
    kept = _kept(devices, flags, home) if home else None
    return fresh if kept is None or len(kept) > _WASTE * len(fresh) else kept


def _fresh(devices: Sequence[Device], flags: Sequence[bool]) -> Iterator[tuple[Device, ...]]:
    start, limit = 0, limits.DEVICES
    for at, flag in enumerate(flags):
        narrowed = limits.DEVICES_WITH_FEATURES if flag else limit
        if at - start + 1 > narrowed:
            yield tuple(devices[start:at])
            start, limit = at, limits.DEVICES_WITH_FEATURES if flag else limits.DEVICES
        else:
            limit = narrowed
    if start < len(devices):
        yield tuple(devices[start:])


def _kept(devices: Sequence[Device], flags: Sequence[bool], home: Mapping[str, int]) -> Parts | None:
    """Every device in the slice it is in, new ones beside their predecessor; None when that breaks order or limits."""
    bounds: list[int] = []
    current: int | None = None
    for at, device in enumerate(devices):
        index = home.get(device.name)
        if index is None:
            continue
        if current is not None and index < current:
            return None
        if current is not None and index > current:
            bounds.append(at)
        current = index
    parts: Parts = []
    for start, end in zip([0, *bounds], [*bounds, len(devices)], strict=True):
        limit = limits.DEVICES_WITH_FEATURES if any(flags[start:end]) else limits.DEVICES
        if end - start > limit:
            if end != len(devices):
                return None
            parts += _fresh(devices[start:end], flags[start:end])
        elif end > start:
            parts.append(tuple(devices[start:end]))
    return parts
