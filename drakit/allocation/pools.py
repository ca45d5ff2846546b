"""Pools as one node sees them: gathering, generations, completeness, order (spec/allocator.md 1.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from drakit.allocation import counters
from drakit.allocation.compatibility import declares_groups
from drakit.allocation.devices import is_odd
from drakit.allocation.reasons import PoolIncomplete, PoolInvalid, PoolObsolete

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from drakit.allocation.compatibility import Groups
    from drakit.allocation.contents import Contents, PoolContent
    from drakit.allocation.state import AllocatedState, PoolUse
    from drakit.api import resource

_MAX_CONDITIONS = 50_000

__all__ = ["Condition", "Fault", "Gatherer", "Pool", "Reach", "resolve"]

Fault = PoolIncomplete | PoolInvalid | PoolObsolete


class Condition:
    """A pool's content together with what is allocated of it: all that a search needs to know about the pool.

    Equal conditions are one object per allocator, so they can be keys.

    Attributes:
        content: The pool's content.
        usable: Mask of local devices that the node reaches (perDeviceNodeSelection), after the selectors.
        failing: Local devices whose node selector cannot be parsed, with the message.
        exclusive: Mask of devices that are held wholly.
        allocated: Mask of devices that are held wholly or in part.
        consumed: Amounts consumed of shareable devices, by device index and capacity name (10**-9).
    """

    __slots__ = (
        "_groups",
        "_supply",
        "allocated",
        "consumed",
        "content",
        "exclusive",
        "failing",
        "overdrawn",
        "ready",
        "usable",
    )

    def __init__(
        self,
        content: PoolContent,
        reach: Reach,
        exclusive: int,
        allocated: int,
        consumed: dict[int, dict[str, int]],
    ) -> None:
        self.content = content
        self.usable, self.failing = reach
        self.exclusive = exclusive
        self.allocated = allocated
        self.consumed = consumed
        self.ready: dict[object, tuple[int, int]] = {}
        self.overdrawn = False
        self._supply: list[int] | None = None
        self._groups: dict[str, Groups] | None = None

    @property
    def supply(self) -> list[int]:
        """What is left of each counter; callers copy before they change it."""
        if self._supply is None:
            self._supply = counters.remaining_supply(self.content, self.allocated)
            self.overdrawn = any(left < 0 for left in self._supply)
        return self._supply

    @property
    def groups(self) -> dict[str, Groups]:
        """Compatibility groups still possible per counter set; callers copy before they change it."""
        if self._groups is None:
            self._groups = counters.remaining_groups(self.content, self.allocated)
        return self._groups


class Pool:
    """A pool with its real names and slices.

    Attributes:
        driver: First half of its identity.
        name: Second half.
        slices: Its slices on the node, in search order (also those with counter sets).
        fault: Why its devices cannot be used, or None. Invalid pools know it only once `content` has been looked at.
    """

    fault: Fault | None = None
    _reaches: Sequence[Reach | None] | None = None
    _remote: Sequence[resource.ResourceSlice] = ()
    _content: PoolContent | None = None
    _condition: Condition | None = None
    _version = -2
    _size = -1
    _odd: bool | None = None
    _device_slices: Sequence[resource.ResourceSlice] | None = None

    def __init__(
        self, slices: Sequence[resource.ResourceSlice], gatherer: Gatherer, content: PoolContent | None = None
    ) -> None:
        spec = slices[0].spec
        self.driver = spec.driver
        self.name = spec.pool.name
        self.slices = slices
        self._gatherer = gatherer
        self._edition = gatherer.contents.edition
        if content is not None:
            self._content = content
            self.fault = content.fault

    def more(
        self,
        reaches: Sequence[Reach | None] | None,
        remote: Sequence[resource.ResourceSlice],
        fault: Fault | None,
    ) -> Pool:
        """Set what is not the usual: devices that are not all reached, slices for other nodes, a fault."""
        self._reaches = reaches
        self._remote = remote
        self.fault = fault
        return self

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"

    @property
    def order(self) -> tuple[bool, bytes, bytes]:
        """Sort key: pools with binding conditions last, then byte order of driver and pool name."""
        return self.has_binding_conditions, self.driver.encode(), self.name.encode()

    @property
    def content(self) -> PoolContent:
        """The content; looking at it finds out whether the pool is valid."""
        content = self._content
        contents = self._gatherer.contents
        if content is None or self._edition != contents.edition:
            if len(self.slices) == 1 and not self._remote:
                content = contents.alone(self.slices[0].spec)
            else:
                content = contents.pool(
                    tuple([contents.slice(each.spec) for each in self.slices]),
                    tuple([contents.slice(each.spec) for each in self._remote]),
                )
            self._content = content
            self._condition = None
            self._edition = contents.edition
            if self.fault is None:
                self.fault = content.fault
        return content

    @property
    def condition(self) -> Condition:
        """Content and allocated devices as of now."""
        use = self._gatherer.state.pools.get((self.driver, self.name))
        version = use.version if use is not None else -1
        content = self._content
        if content is None or self._edition != self._gatherer.contents.edition:
            content = self.content
        condition = self._condition
        if condition is None or version != self._version:
            self._version = version
            reach = self._reach() if self._reaches is not None else None
            condition = self._condition = self._gatherer.condition(content, reach, use)
        return condition

    @property
    def is_incomplete(self) -> bool:
        """Whether slices are missing, or too many."""
        return isinstance(self.fault, PoolIncomplete)

    @property
    def size(self) -> int:
        """Number of local devices; 0 for pools that are incomplete."""
        if self._size < 0:
            counting = self._gatherer.partitionable
            self._size = 0
            if not isinstance(self.fault, PoolIncomplete):
                for each in self.slices:
                    if not (counting and each.spec.shared_counters):
                        self._size += len(each.spec.devices)
        return self._size

    @property
    def use_version(self) -> int:
        """Changes whenever the allocated devices of the pool do."""
        use = self._gatherer.state.pools.get((self.driver, self.name))
        return use.version if use is not None else -1

    def slice_of(self, index: int) -> resource.ResourceSlice:
        """The slice of a local device."""
        if self._device_slices is None:
            counting = self._gatherer.partitionable
            self._device_slices = [each for each in self.slices if not (counting and each.spec.shared_counters)]
        return self._device_slices[self.content.slice_of[index]]

    @property
    def has_binding_conditions(self) -> bool:
        """Whether any device on this node's slices has binding conditions (without building the content)."""
        if isinstance(self.fault, PoolIncomplete):
            return False
        for each in self.slices:
            for device in each.spec.devices:
                if device.binding_conditions:
                    return not self.content.invalid
        return False

    @property
    def has_odd_attributes(self) -> bool:
        """Whether an expression may fail on some device whatever it reads: no value, or a version to be parsed."""
        if self._odd is None:
            self._odd = any(is_odd(device) for each in self.slices for device in each.spec.devices)
        return self._odd

    def _reach(self) -> Reach | None:
        """Which local devices the node reaches, None for all of them."""
        if self._reaches is None:
            return None
        mask, failing, offset = 0, {}, 0
        for each, reach in zip(self.slices, self._reaches, strict=True):
            if self._gatherer.partitionable and each.spec.shared_counters:
                continue
            count = len(each.spec.devices)
            mask |= ((1 << count) - 1 if reach is None else reach.mask) << offset
            if reach is not None:
                failing.update({offset + index: message for index, message in reach.failing.items()})
            offset += count
        return Reach(mask, failing)


class Reach(NamedTuple):
    """Which devices of a slice with perDeviceNodeSelection a node reaches, and which selectors are broken."""

    mask: int
    failing: dict[int, str]


class Gatherer:
    """What pools need of their allocator: contents, allocated state, and all slices by pool."""

    __slots__ = ("_by_pool", "_conditions", "contents", "groups_off", "partitionable", "sharing", "slices", "state")

    def __init__(self, contents: Contents, state: AllocatedState) -> None:
        features = contents.features
        self.contents = contents
        self.state = state
        self.partitionable = features.partitionable_devices
        self.sharing = features.consumable_capacity
        self.groups_off = not features.device_compatibility_groups
        self.slices: Callable[[], Iterable[resource.ResourceSlice]] = tuple
        self._by_pool: dict[tuple[str, str], list[resource.ResourceSlice]] | None = None
        self._conditions: dict[object, Condition] = contents.conditions

    def condition(self, content: PoolContent, reach: Reach | None, use: PoolUse | None) -> Condition:
        """The interned condition of a pool."""
        exclusive, allocated = 0, 0
        consumed: dict[int, dict[str, int]] = {}
        if use is not None:
            bits = content.bits
            for device in use.exclusive:
                exclusive |= bits.get(device, 0)
            allocated = exclusive
            if use.shared:
                exclusive, allocated, consumed = self._shared(content, use, exclusive)
        usable, failing = reach if reach is not None else (content.everything, {})
        key: object = (content, usable, exclusive, allocated)
        if consumed or failing:
            amounts = tuple((index, tuple(sorted(each.items()))) for index, each in sorted(consumed.items()))
            key = (key, amounts, tuple(failing.items()))
        found = self._conditions.get(key)
        if found is None:
            if len(self._conditions) > _MAX_CONDITIONS:
                self._conditions.clear()
            found = self._conditions[key] = Condition(content, Reach(usable, failing), exclusive, allocated, consumed)
        return found

    @property
    def by_pool(self) -> dict[tuple[str, str], list[resource.ResourceSlice]]:
        """All slices by pool; most nodes never need it, so it is made when first asked for and then kept up to date."""
        if self._by_pool is None:
            self._by_pool = {}
            for each in self.slices():
                self._by_pool.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
        return self._by_pool

    def single(self, slice_: resource.ResourceSlice) -> Pool | None:
        """The pool that is just this slice; None when there is more to look at. A short cut for the usual case."""
        spec = slice_.spec
        if spec.pool.resource_slice_count != 1 or spec.shared_counters or spec.per_device_node_selection is not None:
            return None
        content = self.contents.slice(spec)
        if self.groups_off and content.grouped:
            return None
        return Pool((slice_,), self, content.alone or self.contents.alone(spec))

    def grouped(self, *slices: Sequence[resource.ResourceSlice]) -> bool:
        """Whether any device declares compatibility groups."""
        for several in slices:
            for each in several:
                for device in each.spec.devices:
                    if device.consumes_counters and declares_groups(device):
                        return True
        return False

    def _shared(self, content: PoolContent, use: PoolUse, exclusive: int) -> tuple[int, int, dict[int, dict[str, int]]]:
        allocated, consumed = exclusive, {}
        for device in use.shared:
            mask = content.bits.get(device, 0)
            allocated |= mask
            if not self.sharing:
                exclusive |= mask
                continue
            amounts = use.consumed(device)
            if amounts:
                for index in counters.bits(mask):
                    consumed[index] = amounts
        return exclusive, allocated, consumed


def resolve(found: Sequence[tuple[resource.ResourceSlice, Reach | None]], gatherer: Gatherer) -> Pool | None:
    """One pool from those of its slices that the node reaches.

    When the reached slices already are as many as announced they are accepted without looking at other nodes; so an old
    generation that is wholly on this node wins over a newer one elsewhere (spec/allocator.md 1.2).

    Returns:
        The pool, perhaps with a fault; None when a newer generation exists elsewhere.
    """
    if len(found) == 1:
        only, reach = found[0]
        if only.spec.pool.resource_slice_count == 1 and not (gatherer.groups_off and gatherer.grouped((only,))):
            return Pool((only,), gatherer).more(None if reach is None else (reach,), (), None)
        kept = list(found)
    else:
        generation = max(each.spec.pool.generation for each, _ in found)
        kept = [pair for pair in found if pair[0].spec.pool.generation == generation]
        kept.sort(key=_by_name)
    slices = [each for each, _ in kept]
    reaches = [reach for _, reach in kept]
    pool = slices[0].spec.pool
    remote: list[resource.ResourceSlice] = []
    fault: Fault | None = None
    if len(slices) != _announced(found, pool.generation):
        everything = gatherer.by_pool[slices[0].spec.driver, pool.name]
        if any(each.spec.pool.generation > pool.generation for each in everything):
            return None
        same = [each for each in everything if each.spec.pool.generation == pool.generation]
        if len(same) != _announced(found, pool.generation):
            fault = PoolIncomplete(seen=len(same), announced=_announced(found, pool.generation))
        elif len(slices) < len(same):
            names = {each.metadata.name for each in slices}
            remote = [each for each in same if each.metadata.name not in names]
    if fault is None and gatherer.groups_off and gatherer.grouped(slices, remote):
        fault = PoolIncomplete(seen=len(slices) + len(remote), announced=pool.resource_slice_count)
    return Pool(slices, gatherer).more(reaches if any(reaches) else None, remote, fault)


def _by_name(pair: tuple[resource.ResourceSlice, Reach | None]) -> bytes:
    return pair[0].metadata.name.encode()


def _announced(found: Sequence[tuple[resource.ResourceSlice, Reach | None]], generation: int) -> int:
    """What the first slice that was met announces, as upstream takes it."""
    return next(each.spec.pool.resource_slice_count for each, _ in found if each.spec.pool.generation == generation)
