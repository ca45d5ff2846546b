"""Interned contents: what devices, slices and pools look like, apart from the names of pools and nodes.

Most nodes of a cluster are alike. Equal contents become one object here, so that views, selector outcomes and masks are
computed once per content, and searches on nodes with the same contents can share their outcome. Devices of a pool are
numbered in search order; sets of devices are integers with one bit per device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from drakit import api
from drakit.allocation import capacity, compatibility, taints
from drakit.allocation.devices import DeviceContent, is_odd_attribute
from drakit.allocation.reads import identifier
from drakit.allocation.reasons import PoolInvalid
from drakit.allocation.selectors import Programs, Selectors

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from drakit.allocation.devices import CapacityRequest
    from drakit.allocation.features import Features
    from drakit.allocation.reasons import SelectorFailed
    from drakit.api import resource

__all__ = ["Contents", "Needs", "PoolContent", "SliceContent"]

_RECENT = 4
_MAX_SPECS = 32_768
_MAX_DEVICES = 100_000
_MAX_REQUESTS = 2_048
_MAX_TOKENS = 4_096
_MAX_OUTCOMES = 50_000
_MAX_EDITIONS: Final = 16
"""So often contents are recognised anew because a plan reads other attributes; from then on all attributes count."""


class SliceContent:
    """Devices and counter sets of one slice."""

    __slots__ = ("alone", "binding", "counter_sets", "devices", "grouped", "per_device", "spec")

    def __init__(self, spec: resource.ResourceSliceSpec, devices: tuple[DeviceContent, ...]) -> None:
        self.alone: PoolContent | None = None
        self.spec = spec
        self.devices = devices
        self.counter_sets = spec.shared_counters
        self.per_device = bool(spec.per_device_node_selection)
        self.binding = any(device.device.binding_conditions for device in devices)
        self.grouped = any(compatibility.declares_groups(device.device) for device in devices if device.draws_counters)


class PoolContent:
    """All devices of one pool that a node's slices hold, then those of the pool's other slices.

    Attributes:
        devices: Local devices in search order, then remote ones (they only matter for counters).
        local: Number of local devices.
        slice_of: Index of the slice, among the pool's local slices, of each local device.
        bits: Mask of the devices with a name.
        invalid: Why the pool cannot be used, empty when it can.
        counters: `(counter set, counter)` of each counter index; `supply` how much there is (10**-9).
        draws: Per device, `(counter index, amount)`.
        groups: Per device, `(counter set, compatibility groups)`.
    """

    __slots__ = (
        "_capacity",
        "_selected",
        "_tolerated",
        "binding",
        "bits",
        "counters",
        "devices",
        "drawing",
        "draws",
        "everything",
        "fault",
        "groups",
        "invalid",
        "local",
        "per_device",
        "shareable",
        "slice_of",
        "slices",
        "supply",
        "tainted",
        "unblocked",
        "visible",
    )

    def __init__(self, local: Sequence[SliceContent], remote: Sequence[SliceContent], features: Features) -> None:
        partitionable = features.partitionable_devices
        counting = [each for each in (*local, *remote) if partitionable and each.counter_sets]
        self.slices = tuple(each for each in local if not (partitionable and each.counter_sets))
        others = [each for each in remote if not (partitionable and each.counter_sets)]
        self.devices = tuple(device for each in (*self.slices, *others) for device in each.devices)
        self.slice_of = tuple(index for index, each in enumerate(self.slices) for _ in each.devices)
        self.local = len(self.slice_of)
        self.binding = any(each.binding for each in self.slices)
        self.per_device = any(each.per_device for each in self.slices)
        self.everything = (1 << self.local) - 1
        self.bits: dict[str, int] = {}
        self.invalid = self._name_devices()
        self.counters: tuple[tuple[str, str], ...] = ()
        self.supply: tuple[int, ...] = ()
        self.draws: tuple[tuple[tuple[int, int], ...], ...] = ()
        self.groups: tuple[tuple[tuple[str, frozenset[str]], ...], ...] = ()
        if partitionable and not self.invalid and (counting or any(each.draws_counters for each in self.devices)):
            self._count(counting)
        self.fault = PoolInvalid(reason=self.invalid) if self.invalid else None
        self.shareable = self.drawing = self.tainted = 0
        self.visible = self.unblocked = self.everything
        bit = 1
        for device in self.devices[: self.local]:
            if device.shareable:
                self.shareable |= bit
            if device.draws_counters:
                self.drawing |= bit
                if device.blocked:
                    self.unblocked ^= bit
            if device.blocking:
                self.tainted |= bit
            if device.hidden:
                self.visible ^= bit
            bit <<= 1
        self._selected: dict[Selectors, tuple[int, dict[int, SelectorFailed]]] = {}
        self._tolerated: dict[tuple[resource.DeviceToleration, ...], int] = {}
        self._capacity: dict[CapacityRequest, int] = {}

    def selected(self, selectors: Selectors) -> tuple[int, dict[int, SelectorFailed]]:
        """Local devices that the selectors accept, and those on which they fail (by index)."""
        found = self._selected.get(selectors)
        if found is None:
            mask, failures, bit = 0, {}, 1
            for index in range(self.local):
                if self.visible & bit:
                    outcome = selectors.outcome(self.devices[index])
                    if outcome is True:
                        mask |= bit
                    elif outcome is not False:
                        failures[index] = outcome
                bit <<= 1
            found = self._selected[selectors] = (mask, failures)
        return found

    def tolerated(self, tolerations: tuple[resource.DeviceToleration, ...]) -> int:
        """Local devices whose blocking taints are all tolerated."""
        if not self.tainted:
            return self.everything
        found = self._tolerated.get(tolerations)
        if found is None:
            found = _mask(
                taints.untolerated(device.blocking, tolerations) is None for device in self.devices[: self.local]
            )
            self._tolerated[tolerations] = found
        return found

    def capable(self, requests: CapacityRequest, *, fractional: bool) -> int:
        """Local devices that could serve the capacity request if nobody else used them."""
        found = self._capacity.get(requests)
        if found is None:
            found = _mask(_capable(device, requests, fractional=fractional) for device in self.devices[: self.local])
            self._capacity[requests] = found
        return found

    def forget_requests(self) -> None:
        """Drop what was computed for requests."""
        for several in (self._selected, self._tolerated, self._capacity):
            several.clear()

    def _name_devices(self) -> str:
        duplicate = ""
        for index, content in enumerate(self.devices):
            name = content.device.name
            if name in self.bits and index < self.local and not duplicate:
                duplicate = f"duplicate device name {name}"
            self.bits[name] = self.bits.get(name, 0) | 1 << index
        return duplicate

    def _count(self, counting: Sequence[SliceContent]) -> None:
        """Number all counters and note what each device draws; faults make the pool invalid."""
        index: dict[tuple[str, str], int] = {}
        sets: set[str] = set()
        supply: list[int] = []
        for each in counting:
            for counter_set in each.counter_sets:
                if counter_set.name in sets:
                    self.invalid = f"duplicate counter set name {counter_set.name}"
                    return
                sets.add(counter_set.name)
                for name, counter in counter_set.counters.items():
                    index[counter_set.name, name] = len(supply)
                    supply.append(counter.value.nano)
        self.counters, self.supply = tuple(index), tuple(supply)
        draws = []
        for content in self.devices:
            drawn: dict[int, int] = {}
            for entry in content.device.consumes_counters:
                if entry.counter_set not in sets:
                    self.invalid = f"counter set {entry.counter_set} not found"
                    return
                for name, counter in entry.counters.items():
                    position = index.get((entry.counter_set, name))
                    if position is None:
                        self.invalid = f"counter {name} not found in counter set {entry.counter_set}"
                        return
                    drawn[position] = drawn.get(position, 0) + counter.value.nano
            draws.append(tuple(drawn.items()))
        self.draws = tuple(draws)
        self.groups = tuple(
            tuple((each.counter_set, frozenset(each.compatibility_groups)) for each in content.device.consumes_counters)
            for content in self.devices
        )


def _capable(device: DeviceContent, requests: CapacityRequest, *, fractional: bool) -> bool:
    if device.plain and requests is None:
        return True
    found = device.consumption(requests, fractional=fractional)
    return isinstance(found, capacity.Consumption) and all(
        amount <= value for amount, value in zip(found.amounts, found.values, strict=True)
    )


def _mask(flags: Any) -> int:
    mask, bit = 0, 1
    for flag in flags:
        if flag:
            mask |= bit
        bit <<= 1
    return mask


class Needs:
    """What a request demands of each single device; interned, so that it can be a key."""

    __slots__ = ("admin", "capacity", "selectors", "tolerations")

    def __init__(
        self,
        selectors: Selectors,
        tolerations: tuple[resource.DeviceToleration, ...],
        capacity: CapacityRequest,
        *,
        admin: bool,
    ) -> None:
        self.selectors = selectors
        self.tolerations = tolerations
        self.capacity = capacity
        self.admin = admin


class Contents:
    """The store of interned contents for one set of features; may be shared by allocators.

    Contents are recognised by equality with the last few of the same driver, then by `api.shape`. Attributes count only
    when a plan reads them, or when they may make every expression fail. When the store has grown beyond its limit it
    starts anew, which costs time but never changes an answer.

    Attributes:
        reads: Identifiers of the attributes that plans read so far; None for any.
        edition: Grows with `reads`; contents of different editions are different objects.
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self.programs = Programs()
        self.reads: frozenset[str] | None = frozenset()
        self.edition = 0
        self._matters: dict[str, bool] = {}
        self._selectors: dict[Any, Selectors] = {}
        self._needs: dict[Any, Needs] = {}
        self.conditions: dict[Any, Any] = {}
        self.outcomes: dict[Any, Any] = {}
        self._known: dict[int, tuple[resource.ResourceSliceSpec, SliceContent]] = {}
        self._tokens: dict[Any, object] = {}
        self._recent: dict[Any, list[SliceContent]] = {}
        self._slices: dict[Any, SliceContent] = {}
        self._devices: dict[Any, DeviceContent] = {}
        self._pools: dict[Any, PoolContent] = {}

    def selectors(
        self,
        class_expressions: tuple[str, ...],
        request_expressions: tuple[str, ...],
        derived: tuple[tuple[str, str], ...] = (),
    ) -> Selectors:
        """The interned selectors for these expressions."""
        key = (class_expressions, request_expressions, derived)
        found = self._selectors.get(key)
        if found is None:
            if len(self._selectors) >= _MAX_REQUESTS:
                self._forget_requests()
            found = self._selectors[key] = Selectors(self.programs, *key)
        return found

    def needs(
        self,
        selectors: Selectors,
        tolerations: tuple[resource.DeviceToleration, ...],
        capacity: CapacityRequest,
        *,
        admin: bool,
    ) -> Needs:
        """The interned demands of a request."""
        key = (selectors, tolerations, capacity, admin)
        found = self._needs.get(key)
        if found is None:
            if len(self._needs) >= _MAX_REQUESTS:
                self._forget_requests()
            found = self._needs[key] = Needs(selectors, tolerations, capacity, admin=admin)
        return found

    def slice(self, spec: resource.ResourceSliceSpec) -> SliceContent:
        """The content of a slice."""
        known = self._known.get(id(spec))
        if known is not None:
            return known[1]
        if len(self._known) >= _MAX_SPECS:
            self._known.clear()
        content = self._recognise(spec)
        self._known[id(spec)] = spec, content
        return content

    def _recognise(self, spec: resource.ResourceSliceSpec) -> SliceContent:
        """The content equal to this slice, looked for among the last few of its driver first."""
        devices = spec.devices
        recent = self._recent.get(spec.driver)
        if recent is None:
            recent = self._recent[spec.driver] = []
        for content in recent:
            like = content.spec
            if (
                like.devices == devices
                and like.shared_counters == spec.shared_counters
                and bool(like.per_device_node_selection) is bool(spec.per_device_node_selection)
                and like.skip_node_operations == spec.skip_node_operations
            ):
                return content
        content = self._intern_slice(spec)
        recent = self._recent.setdefault(spec.driver, recent)
        recent.insert(0, content)
        del recent[_RECENT:]
        return content

    def forget(self, spec: resource.ResourceSliceSpec) -> None:
        """Let go of a slice that is gone; its content stays, others may have the same."""
        self._known.pop(id(spec), None)

    def widen(self, reads: frozenset[str] | None) -> None:
        """Count these attributes too (None: all of them), because a plan reads them."""
        if self.reads is None or (reads is not None and reads <= self.reads):
            return
        self.edition += 1
        self.reads = None if reads is None or self.edition >= _MAX_EDITIONS else self.reads | reads
        self._matters.clear()
        self._forget_contents()
        self.conditions.clear()
        self.outcomes.clear()

    def _forget_contents(self) -> None:
        for several in (self._slices, self._devices, self._pools, self._known, self._recent):
            several.clear()

    def _forget_requests(self) -> None:
        """Drop what was computed for requests, of which a long life sees ever new ones."""
        for several in (self._selectors, self._needs, self._tokens, self.outcomes):
            several.clear()
        self.programs = Programs()
        for device in self._devices.values():
            device.forget_requests()
        for pool in self._pools.values():
            pool.forget_requests()
        for condition in self.conditions.values():
            condition.ready.clear()

    def _intern_slice(self, spec: resource.ResourceSliceSpec) -> SliceContent:
        devices = tuple(map(self._relevant, spec.devices))
        shapes = tuple(map(api.shape, devices))
        key = (
            spec.driver,
            shapes,
            tuple(map(api.shape, spec.shared_counters)),
            bool(spec.per_device_node_selection),
            spec.skip_node_operations,
        )
        found = self._slices.get(key)
        if found is None:
            if len(self._devices) > _MAX_DEVICES:
                self._forget_contents()
            skips = bool(spec.skip_node_operations)
            contents = tuple(
                self._intern_device(spec.driver, device, shape, skips=skips)
                for device, shape in zip(devices, shapes, strict=True)
            )
            found = self._slices[key] = SliceContent(spec, contents)
        return found

    def _relevant(self, device: resource.Device) -> resource.Device:
        """The device without attributes that no plan reads."""
        if self.reads is None:
            return device
        matters = self._matters
        kept = {}
        for name, attribute in device.attributes.items():
            wanted = matters.get(name)
            if wanted is None:
                if len(matters) >= _MAX_TOKENS:
                    matters.clear()
                wanted = matters[name] = identifier(name) in self.reads
            if wanted or (attribute.string is None and is_odd_attribute(attribute)):
                kept[name] = attribute
        return device if len(kept) == len(device.attributes) else msgspec.structs.replace(device, attributes=kept)

    def _intern_device(self, driver: str, device: resource.Device, shape: bytes, *, skips: bool) -> DeviceContent:
        key = (driver, skips, shape)
        found = self._devices.get(key)
        if found is None:
            found = self._devices[key] = DeviceContent(driver, device, self.features, skips=skips)
        return found

    def alone(self, spec: resource.ResourceSliceSpec) -> PoolContent:
        """The content of a pool that is just one slice."""
        content = self.slice(spec)
        found = content.alone
        if found is None:
            found = content.alone = self.pool((content,))
        return found

    def token(self, key: Hashable) -> object:
        """An object that stands for the key, so that it need not be hashed again."""
        found = self._tokens.get(key)
        if found is None:
            if len(self._tokens) >= _MAX_TOKENS:
                self._tokens.clear()
                self.outcomes.clear()
            found = self._tokens[key] = object()
        return found

    def remember(self, key: Hashable, outcome: Any) -> None:
        """Keep the outcome of a search for nodes and claims that are alike."""
        if len(self.outcomes) >= _MAX_OUTCOMES:
            self.outcomes.clear()
        self.outcomes[key] = outcome

    def pool(self, local: tuple[SliceContent, ...], remote: tuple[SliceContent, ...] = ()) -> PoolContent:
        """The content of a pool from its slices on the node (sorted by name) and its other slices."""
        key = (local, remote)
        found = self._pools.get(key)
        if found is None:
            found = self._pools[key] = PoolContent(local, remote, self.features)
        return found
