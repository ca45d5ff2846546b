"""The pools of a node in search order, found incrementally.

Slices are indexed once, and nodes with the same answers of all node selectors share their common part.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Literal

from drakit.allocation import nodes
from drakit.allocation.errors import AllocationError
from drakit.allocation.features import OPTIONAL_NODE_OPERATIONS
from drakit.allocation.pools import Pool, Reach, resolve

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from drakit.allocation.pools import Gatherer
    from drakit.api import core, resource

__all__ = ["Space", "Spaces"]

_PoolID = tuple[str, str]


class Space:
    """The pools that one node sees, in search order.

    Attributes:
        key: Equal keys mean equal contents, so that outcomes of searches can be shared.
    """

    __slots__ = ("_common", "_edition", "_generation", "_local", "_merged", "key")

    def __init__(self, common: Common | None, local: Sequence[Pool]) -> None:
        self._common = common
        self._local = local
        self._merged: list[Pool] | None = None
        self._generation = -1
        self._edition = -1
        self.key: Hashable = None

    @property
    def pools(self) -> Sequence[Pool]:
        """All pools in search order."""
        if self._common is None:
            return self._local
        if self._merged is None:
            merged = [*self._common.pools, *self._local]
            if self._local:
                merged.sort(key=lambda pool: pool.order)
            self._merged = merged
        return self._merged

    def refresh(self, generation: int, edition: int) -> None:
        """Bring `key` up to date with the allocated state of this generation and the contents of this edition."""
        if self._generation == generation and self._edition == edition:
            return
        self.key = self._find_key(generation)
        self._generation = generation
        self._edition = edition

    def _find_key(self, generation: int) -> Hashable:
        if self._common is None and len(self._local) == 1:
            only = self._local[0]
            condition = only.condition
            return condition if only.fault is None else (condition, only.fault)
        local = tuple([pool.condition for pool in self._local])
        if self._common is None:
            faults = tuple([pool.fault for pool in self._local])
            return (local, faults) if any(faults) else local
        self._common.refresh(generation)
        places = tuple([self._common.place(pool) for pool in self._local])
        return self._common.token, places, local, tuple([pool.fault for pool in self._local])


class Common:
    """Pools that do not belong to single nodes, as all nodes see them whose node selectors answer alike."""

    __slots__ = ("_generation", "_orders", "_versions", "ids", "pools", "token")

    def __init__(self, pools: list[Pool], ids: set[_PoolID]) -> None:
        self.pools = pools
        self.ids = ids
        self._orders: list[tuple[bool, bytes, bytes]] | None = None
        self._generation = -1
        self._versions: tuple[int, ...] | None = None
        self.token = object()

    def place(self, pool: Pool) -> int:
        """Where a local pool stands among these."""
        if self._orders is None:
            self._orders = [each.order for each in self.pools]
        return bisect.bisect(self._orders, pool.order)

    def refresh(self, generation: int) -> None:
        """Renew `token` when the allocated state of any of the pools has changed."""
        if self._generation == generation:
            return
        versions = tuple([pool.use_version for pool in self.pools])
        if versions != self._versions:
            self._versions = versions
            self.token = object()
        self._generation = generation


class Spaces:
    """All slices, indexed by node and pool."""

    def __init__(self, gatherer: Gatherer, slices: Iterable[resource.ResourceSlice]) -> None:
        self._gatherer = gatherer
        self._partitionable = gatherer.partitionable
        self._slices: dict[str, resource.ResourceSlice] = {}
        self._on_node: dict[str, list[resource.ResourceSlice]] = {}
        self._shared: list[resource.ResourceSlice] = []
        self._groups: list[_Group] | None = None
        self._commons: dict[Hashable, Common] = {}
        self._found: dict[str, tuple[Mapping[str, str], bool, Space]] = {}
        self._skipping = False
        gatherer.slices = self.slices
        on_nodes = self._on_node
        for each in slices:
            spec = each.spec
            if spec.node_name:
                on_node = on_nodes.get(spec.node_name)
                if on_node is None:
                    on_nodes[spec.node_name] = [each]
                else:
                    on_node.append(each)
            else:
                self._shared.append(each)
            if spec.skip_node_operations:
                self._skipping = True

    def slices(self) -> list[resource.ResourceSlice]:
        """All slices."""
        return [each for several in (*self._on_node.values(), self._shared) for each in several]

    def on_node(self, name: str) -> Sequence[resource.ResourceSlice]:
        """Slices of one node by name, whatever gates say."""
        return self._on_node.get(name, ())

    @property
    def shared(self) -> Sequence[resource.ResourceSlice]:
        """Slices that belong to no single node by name, whatever gates say."""
        return self._shared

    @property
    def count(self) -> int:
        """Number of all slices."""
        return len(self._shared) + sum(map(len, self._on_node.values()))

    def same_pool(self, slice_: resource.ResourceSlice) -> Sequence[resource.ResourceSlice]:
        """All slices of the slice's pool, of all generations and nodes."""
        return self._gatherer.by_pool[slice_.spec.driver, slice_.spec.pool.name]

    def reached(self, node: core.Node) -> list[resource.ResourceSlice]:
        """The slices that are for a node, of all generations.

        Raises:
            AllocationError: The node selector of a slice cannot be parsed.
        """
        name, labels = node.metadata.name, node.metadata.labels
        own = [each for each in self.on_node(name) if self._supported(each)]
        return own + [each for each, _ in _pairs(self._matching(name, labels))]

    def add(self, slice_: resource.ResourceSlice) -> None:
        """Take in one more slice."""
        spec = slice_.spec
        by_pool = self._gatherer.by_pool
        self._skipping = self._skipping or bool(spec.skip_node_operations)
        (self._on_node.setdefault(spec.node_name, []) if spec.node_name else self._shared).append(slice_)
        by_pool.setdefault((spec.driver, spec.pool.name), []).append(slice_)
        self._forget(slice_)

    def remove(self, slice_: resource.ResourceSlice) -> None:
        """Forget a slice that was added before (this very object)."""
        spec = slice_.spec
        by_pool = self._gatherer.by_pool
        self._gatherer.contents.forget(spec)
        _discard(self._on_node.get(spec.node_name, []) if spec.node_name else self._shared, slice_)
        _discard(by_pool.get((spec.driver, spec.pool.name), []), slice_)
        self._forget(slice_)

    def _forget(self, slice_: resource.ResourceSlice) -> None:
        """Drop what was found for the nodes that see any slice of the pool."""
        spec = slice_.spec
        siblings = self._gatherer.by_pool.get((spec.driver, spec.pool.name), [])
        if not spec.node_name or not all(each.spec.node_name for each in siblings):
            self._groups = None
            self._commons.clear()
            self._found.clear()
            return
        for each in (slice_, *siblings):
            self._found.pop(each.spec.node_name or "", None)

    def of(self, node: core.Node) -> Space:
        """What a node sees; its key is as of the last `refresh`.

        Raises:
            AllocationError: The node selector of a slice cannot be parsed.
        """
        name, labels = node.metadata.name, node.metadata.labels
        skips = not self._skipping or OPTIONAL_NODE_OPERATIONS in node.status.declared_features
        found = self._found.get(name)
        if found is not None and found[1] is skips and (found[0] is labels or found[0] == labels):
            space = found[2]
        else:
            space = self._gather(name, labels, skips=skips)
            self._found[name] = (labels, skips, space)
        return space

    def _gather(self, name: str, labels: Mapping[str, str], *, skips: bool) -> Space:
        local = self._on_node.get(name, ())
        if not skips:
            return self._gather_without_skipping(name, labels)
        if not self._shared:
            if len(local) == 1 and (pool := self._gatherer.single(local[0])) is not None:
                return Space(None, (pool,))
            return Space(None, self._pools([(each, None) for each in local if self._supported(each)]))
        found = self._matching(name, labels)
        key = tuple([(id(each), reach and (reach.mask, tuple(reach.failing.items()))) for each, reach in found])
        common = self._commons.get(key)
        if common is None:
            pairs = _pairs(found)
            ids = {(each.spec.driver, each.spec.pool.name) for each, _ in pairs}
            common = self._commons[key] = Common(self._pools(pairs), ids)
        own = [(each, None) for each in local if self._supported(each)]
        if any((each.spec.driver, each.spec.pool.name) in common.ids for each, _ in own):
            return Space(None, self._pools([*own, *_pairs(found)]))
        return Space(common, self._pools(own))

    def _gather_without_skipping(self, name: str, labels: Mapping[str, str]) -> Space:
        """As `_gather` for a node whose kubelet cannot skip operations: devices that need it are out of reach."""
        own: list[tuple[resource.ResourceSlice, Reach | None]]
        own = [(each, None) for each in self._on_node.get(name, ()) if self._supported(each)]
        pairs = [*own, *_pairs(self._matching(name, labels))]
        return Space(
            None,
            self._pools([(each, Reach(0, {}) if each.spec.skip_node_operations else reach) for each, reach in pairs]),
        )

    def _supported(self, each: resource.ResourceSlice) -> bool:
        return self._partitionable or not (each.spec.per_device_node_selection is not None or each.spec.shared_counters)

    def _matching(self, name: str, labels: Mapping[str, str]) -> list[tuple[_Group, Reach | None]]:
        """The groups of shared slices that the node reaches; the first broken selector in slice order is raised."""
        if self._groups is None:
            self._groups = _group(each for each in self._shared if self._supported(each))
        found: list[tuple[_Group, Reach | None]] = []
        failed: tuple[int, AllocationError] | None = None
        for group in self._groups:
            try:
                reach = group.reach(name, labels)
            except nodes.NodeSelectorError as error:
                if failed is None or group.first < failed[0]:
                    failed = group.first, _selection_failed(group.slices[0], error)
                continue
            if reach is not False:
                found.append((group, reach))
        if failed is not None:
            raise failed[1]
        return found

    def _pools(self, found: Sequence[tuple[resource.ResourceSlice, Reach | None]]) -> list[Pool]:
        if len(found) == 1:
            pool = resolve(found, self._gatherer)
            return [] if pool is None else [pool]
        by_pool: dict[_PoolID, list[tuple[resource.ResourceSlice, Reach | None]]] = {}
        for pair in found:
            spec = pair[0].spec
            by_pool.setdefault((spec.driver, spec.pool.name), []).append(pair)
        resolved = [resolve(pairs, self._gatherer) for pairs in by_pool.values()]
        pools = [pool for pool in resolved if pool is not None]
        if len(pools) > 1:
            pools.sort(key=lambda pool: pool.order)
        return pools


class _Group:
    """Shared slices that reach the same nodes: all nodes, one node selector, or a slice with selection per device."""

    __slots__ = ("_per_device", "_selector", "first", "positions", "slices")

    def __init__(self, first: int, selector: core.NodeSelector | None, per_device: _PerDevice | None) -> None:
        self.first = first
        self.slices: list[resource.ResourceSlice] = []
        self.positions: list[int] = []
        self._selector = selector
        self._per_device = per_device

    def reach(self, name: str, labels: Mapping[str, str]) -> Reach | Literal[False] | None:
        """False when the node does not reach the slices, else which devices it reaches (None for all)."""
        if self._per_device is not None:
            return self._per_device.reach(name, labels)
        if self._selector is None or nodes.selector_matches(self._selector, name, labels):
            return None
        return False


def _group(slices: Iterable[resource.ResourceSlice]) -> list[_Group]:
    groups: dict[Hashable, _Group] = {}
    for position, each in enumerate(slices):
        spec = each.spec
        if spec.all_nodes:
            key: Hashable = "all nodes"
        elif spec.node_selector is not None:
            key = spec.node_selector
        elif spec.per_device_node_selection:
            key = position
        else:
            continue
        group = groups.get(key)
        if group is None:
            per_device = _PerDevice(spec.devices) if key == position else None
            group = groups[key] = _Group(position, spec.node_selector if not spec.all_nodes else None, per_device)
        group.slices.append(each)
        group.positions.append(position)
    return list(groups.values())


def _pairs(found: Sequence[tuple[_Group, Reach | None]]) -> list[tuple[resource.ResourceSlice, Reach | None]]:
    """The slices of these groups with the reach, in the order in which they were given."""
    if len(found) == 1:
        group, reach = found[0]
        return [(each, reach) for each in group.slices]
    placed = [
        (position, each, reach)
        for group, reach in found
        for position, each in zip(group.positions, group.slices, strict=True)
    ]
    placed.sort(key=lambda entry: entry[0])
    return [(each, reach) for _, each, reach in placed]


class _PerDevice:
    """Reach of a slice whose devices select their nodes one by one."""

    def __init__(self, devices: Sequence[resource.Device]) -> None:
        self._everywhere = 0
        self._by_name: dict[str, int] = {}
        self._selecting: list[tuple[int, resource.Device]] = []
        for index, device in enumerate(devices):
            if device.node_name:
                self._by_name[device.node_name] = self._by_name.get(device.node_name, 0) | 1 << index
            elif device.all_nodes:
                self._everywhere |= 1 << index
            elif device.node_selector is not None:
                self._selecting.append((index, device))

    def reach(self, name: str, labels: Mapping[str, str]) -> Reach | Literal[False]:
        mask = self._everywhere | self._by_name.get(name, 0)
        failing: dict[int, str] = {}
        for index, device in self._selecting:
            try:
                if nodes.matches(device, name, labels):
                    mask |= 1 << index
            except nodes.NodeSelectorError as error:
                if not mask & ((1 << index) - 1):
                    raise _DeviceSelectorError(error, device.name) from error
                failing[index] = str(error)
        return Reach(mask, failing) if mask else False


class _DeviceSelectorError(nodes.NodeSelectorError):
    """As its base, for one device of a slice."""

    def __init__(self, error: nodes.NodeSelectorError, device: str) -> None:
        ValueError.__init__(self, str(error))
        self.path = error.path
        self.device = device


def _selection_failed(slice_: resource.ResourceSlice, error: nodes.NodeSelectorError) -> AllocationError:
    where = f"slice {slice_.metadata.name}"
    path = "spec.nodeSelector"
    if isinstance(error, _DeviceSelectorError):
        where = f"device {error.device} in slice {slice_.metadata.name}"
        path = f"spec.devices[{error.device}].nodeSelector"
    return AllocationError(
        f"gather pool information: failed to perform node selection for {where}: {error}", path=f"{path}.{error.path}"
    )


def _discard(slices: list[resource.ResourceSlice], slice_: resource.ResourceSlice) -> None:
    for index, each in enumerate(slices):
        if each is slice_:
            del slices[index]
            return
