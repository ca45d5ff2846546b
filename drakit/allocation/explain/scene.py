"""What one node sees, faults included: the slices that matter for it, and those that cannot be read.

A slice whose node selector is broken ends every `allocate` call; here it is put aside, so that the rest can be
explained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from drakit.allocation import nodes
from drakit.allocation.errors import AllocationError
from drakit.allocation.explain.report import PoolReport, SliceReport
from drakit.allocation.reasons import PoolObsolete

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from drakit.allocation.allocator import Allocator
    from drakit.allocation.pools import Pool
    from drakit.api import core, resource

__all__ = ["Scene", "broken_pools", "look"]


class Scene(msgspec.Struct, frozen=True):
    """The surroundings of one node.

    Attributes:
        slices: All slices of all pools that the node sees, without those that cannot be read.
        reached: Those of them that are for the node.
        unreadable: Slices and devices that were put aside, and slices that a gate hides.
        error: The error of the first slice that was put aside; it ends `allocate` on every node.
        elsewhere: Number of slices that are for other nodes.
    """

    slices: tuple[resource.ResourceSlice, ...]
    reached: tuple[resource.ResourceSlice, ...]
    unreadable: tuple[SliceReport, ...]
    error: str
    elsewhere: int


def look(allocator: Allocator, node: core.Node) -> Scene:
    """The surroundings of a node."""
    spaces = allocator.spaces
    error = ""
    put_aside: list[SliceReport] = []
    replaced: dict[str, resource.ResourceSlice | None] = {}
    try:
        reached = spaces.reached(node)
    except AllocationError as raised:
        error = str(raised)
        replaced = dict(_sound(spaces.shared, put_aside))
        shared = [each for each in spaces.shared if replaced.get(each.metadata.name, each) is not None]
        reached = [*spaces.on_node(node.metadata.name), *(each for each in shared if _is_for(each, node))]
    hidden = list(_hidden(allocator, node))
    names = {each.metadata.name for each in reached}
    pools: dict[tuple[str, str], Sequence[resource.ResourceSlice]] = {}
    for each in reached:
        key = (each.spec.driver, each.spec.pool.name)
        if key not in pools:
            pools[key] = spaces.same_pool(each)
    slices = [
        sound
        for several in pools.values()
        for each in several
        if (sound := replaced.get(each.metadata.name, each)) is not None
    ]
    return Scene(
        slices=tuple(slices),
        reached=tuple(reached),
        unreadable=tuple(put_aside + hidden),
        error=error,
        elsewhere=max(0, spaces.count - len(names) - len(hidden) - len(put_aside)),
    )


def _sound(
    slices: Sequence[resource.ResourceSlice], put_aside: list[SliceReport]
) -> Iterator[tuple[str, resource.ResourceSlice | None]]:
    """For slices that cannot be read: what is left of them, None for nothing."""
    for each in slices:
        spec, name = each.spec, each.metadata.name
        if spec.all_nodes or (spec.node_selector is None and not spec.per_device_node_selection):
            continue
        if spec.node_selector is not None:
            broken = _fault(spec)
            if broken is not None:
                put_aside.append(SliceReport(slice=name, message=str(broken), path=f"spec.nodeSelector.{broken.path}"))
                yield name, None
            continue
        kept = []
        for device in spec.devices:
            broken = _fault(device)
            if broken is None:
                kept.append(device)
                continue
            path = f"spec.devices[{device.name}].nodeSelector.{broken.path}"
            put_aside.append(SliceReport(slice=name, device=device.name, message=str(broken), path=path))
        if len(kept) < len(spec.devices):
            yield name, msgspec.structs.replace(each, spec=msgspec.structs.replace(spec, devices=tuple(kept)))


def _fault(placed: nodes.Placed) -> nodes.NodeSelectorError | None:
    try:
        nodes.matches(placed, "", {})
    except nodes.NodeSelectorError as error:
        return error
    return None


def _is_for(each: resource.ResourceSlice, node: core.Node) -> bool:
    """Whether a slice, or any of its devices, is for the node; broken selectors of devices are for none."""
    name, labels = node.metadata.name, node.metadata.labels
    spec = each.spec
    if not spec.all_nodes and spec.node_selector is None and spec.per_device_node_selection:
        return any(_fault(device) is None and nodes.matches(device, name, labels) for device in spec.devices)
    return nodes.matches(spec, name, labels)


def _hidden(allocator: Allocator, node: core.Node) -> Iterator[SliceReport]:
    """Slices that need DRAPartitionableDevices while it is off (rule 5)."""
    if allocator.features.partitionable_devices:
        return
    spaces = allocator.spaces
    for each in (*spaces.on_node(node.metadata.name), *spaces.shared):
        spec = each.spec
        if spec.per_device_node_selection is not None or spec.shared_counters:
            uses = "sharedCounters" if spec.shared_counters else "perDeviceNodeSelection"
            text = f"uses {uses}, but the DRAPartitionableDevices feature is off"
            yield SliceReport(slice=each.metadata.name, message=text)


def broken_pools(scene: Scene, pools: Sequence[Pool]) -> Iterator[PoolReport]:
    """Pools that cannot be used: obsolete ones, which `pools` does not even list, then incomplete and invalid ones."""
    found = {(pool.driver, pool.name) for pool in pools}
    obsolete: dict[tuple[str, str], list[resource.ResourceSlice]] = {}
    for each in scene.reached:
        key = (each.spec.driver, each.spec.pool.name)
        if key not in found:
            obsolete.setdefault(key, []).append(each)
    for (driver, name), slices in obsolete.items():
        generation = max(each.spec.pool.generation for each in slices)
        everything = [each for each in scene.slices if (each.spec.driver, each.spec.pool.name) == (driver, name)]
        newest = max((each.spec.pool.generation for each in everything), default=generation)
        if newest == generation:
            continue
        devices = sum(len(each.spec.devices) for each in slices if each.spec.pool.generation == generation)
        reason = PoolObsolete(generation=generation, newest=newest)
        yield PoolReport(driver=driver, pool=name, devices=devices, reason=reason)
    for pool in pools:
        if pool.is_incomplete or pool.content.invalid:
            assert pool.fault is not None
            devices = sum(len(each.spec.devices) for each in pool.slices)
            yield PoolReport(driver=pool.driver, pool=pool.name, devices=devices, reason=pool.fault)
