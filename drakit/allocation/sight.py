"""The pools and devices that one node sees, found from plain slices alone: what verification looks at."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from drakit.allocation import compatibility, nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from drakit.allocation.features import Features
    from drakit.api import meta, resource

__all__ = ["Identity", "SeenDevice", "SeenPool", "see_devices", "see_pools"]

Identity: TypeAlias = tuple[str, str, str]
"""Driver, pool and device."""


class SeenDevice(msgspec.Struct, frozen=True):
    """A device that the node sees, in its slice."""

    device: resource.Device
    slice: resource.ResourceSlice


class SeenPool:
    """A pool as the node sees it.

    Of slices that announce different numbers the first counts: those of the node by name come before all others, as
    upstream gathers them (spec/allocator.md 1.2).

    Attributes:
        here: The slices that the node reaches, of their newest generation.
        slices: All slices of that generation.
        obsolete: A newer generation exists elsewhere.
        broken: It is incomplete or invalid.
    """

    def __init__(
        self, here: list[resource.ResourceSlice], everything: list[resource.ResourceSlice], features: Features
    ) -> None:
        generation = max(each.spec.pool.generation for each in here)
        self.here = [each for each in here if each.spec.pool.generation == generation]
        first = next((each for each in self.here if each.spec.node_name), self.here[0])
        announced = first.spec.pool.resource_slice_count
        self.obsolete = False
        self.slices = self.here
        if len(self.here) != announced:
            self.obsolete = any(each.spec.pool.generation > generation for each in everything)
            self.slices = [each for each in everything if each.spec.pool.generation == generation]
        self.broken = len(self.slices) != announced or self._is_invalid(features)

    def _is_invalid(self, features: Features) -> bool:
        """Whether names clash, counters are missing, or a feature that is off is used."""
        names = [device.name for each in self.here if not each.spec.shared_counters for device in each.spec.devices]
        if len(names) != len(set(names)):
            return True
        devices = [device for each in self.slices for device in each.spec.devices]
        if not features.device_compatibility_groups and any(map(compatibility.declares_groups, devices)):
            return True
        return features.partitionable_devices and self._miscounts(devices)

    def _miscounts(self, devices: list[resource.Device]) -> bool:
        sets = [each for slice_ in self.slices for each in slice_.spec.shared_counters]
        known = {each.name: each.counters for each in sets}
        return len(known) != len(sets) or any(
            entry.counter_set not in known or not entry.counters.keys() <= known[entry.counter_set].keys()
            for device in devices
            for entry in device.consumes_counters
        )


def see_pools(
    slices: Iterable[resource.ResourceSlice], node: meta.ObjectMeta, features: Features
) -> dict[tuple[str, str], SeenPool]:
    """The pools of which the node reaches at least one slice, by driver and name."""
    everything: dict[tuple[str, str], list[resource.ResourceSlice]] = collections.defaultdict(list)
    here: dict[tuple[str, str], list[resource.ResourceSlice]] = collections.defaultdict(list)
    for each in slices:
        key = (each.spec.driver, each.spec.pool.name)
        everything[key].append(each)
        if _slice_reaches(each.spec, node, features):
            here[key].append(each)
    return {key: SeenPool(reached, everything[key], features) for key, reached in here.items()}


def see_devices(pools: Mapping[tuple[str, str], SeenPool], node: meta.ObjectMeta) -> dict[Identity, SeenDevice]:
    """The devices that the node reaches in pools that can be used."""
    found: dict[Identity, SeenDevice] = {}
    for (driver, name), pool in pools.items():
        if pool.obsolete or pool.broken:
            continue
        for each in pool.here:
            if each.spec.shared_counters:
                continue
            for device in each.spec.devices:
                if not each.spec.per_device_node_selection or _reaches(device, node):
                    found[driver, name, device.name] = SeenDevice(device, each)
    return found


def _slice_reaches(spec: resource.ResourceSliceSpec, node: meta.ObjectMeta, features: Features) -> bool:
    if not features.partitionable_devices and (spec.per_device_node_selection is not None or spec.shared_counters):
        return False
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return _reaches(spec, node)
    return bool(spec.per_device_node_selection) and any(_reaches(device, node) for device in spec.devices)


def _reaches(placed: nodes.Placed, node: meta.ObjectMeta) -> bool:
    return nodes.matches(placed, node.name, node.labels)
