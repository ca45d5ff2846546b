"""What is wrong with a pool, found before anything is written: the rules of one slice and those across slices.

The API server checks one slice at a time; that names are unique in the pool and that counters exist is only noticed by
the scheduler, which then ignores the whole pool (spec/resourceslice.md 1.8, 1.13).
"""

from collections.abc import Iterable, Sequence

import msgspec

from drakit import admission
from drakit.api.names import QualifiedName, driver_name, pool_name
from drakit.api.resource import Device
from drakit.driver.publication.layout import SliceContent
from drakit.driver.publication.slices import Stamp, body

__all__ = ["Checks", "Fault", "pool_faults", "slice_faults"]

_ALL_GATES = admission.profile("1.37", all_gates=True)
"""A gate that is off on the server drops fields; whether it does is found out by writing (see features)."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong.

    Attributes:
        pool: name of the pool.
        field: JSON path in the slice, or "" for a rule across slices.
        message: what is wrong.
        device: name of the device, or "".
    """

    pool: str
    message: str
    field: str = ""
    device: str = ""

    def __str__(self) -> str:
        where = f"pool {self.pool}" + (f", device {self.device}" if self.device else "")
        return f"{where}: {self.field}: {self.message}" if self.field else f"{where}: {self.message}"


class Checks:
    """The faults of one pool, asked again and again; what was found right before is not looked at again.

    Args:
        pool: its name.
    """

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self._contents: tuple[SliceContent, ...] = ()
        self._faults: list[Fault] = []

    def faults(self, contents: tuple[SliceContent, ...], stamp: Stamp) -> list[Fault]:
        """What is wrong with `contents`; the rules of single slices only when those of the pool hold."""
        if contents is self._contents:
            return self._faults
        known = () if self._faults else self._contents
        faults: list[Fault] = []
        if contents and not _same_names(known, contents):
            faults = pool_faults(self._pool, contents, stamp.driver, local=bool(stamp.node_name))
        if not faults:
            before = (*known, *([None] * len(contents)))
            for old, content in zip(before, contents, strict=False):
                if old is not content:
                    faults += self._slice_faults(old, content, stamp)
        self._contents, self._faults = contents, faults
        return faults

    def _slice_faults(self, old: SliceContent | None, content: SliceContent, stamp: Stamp) -> list[Fault]:
        devices = content.devices
        frames = [None if each is None else msgspec.structs.replace(each, devices=()) for each in (old, content)]
        # Rules of the whole slice look at all of its devices.
        if old is not None and frames[0] == frames[1] and not content.partition_type_attribute:
            right = set(map(id, old.devices))
            devices = tuple(device for device in devices if id(device) not in right)
            if not devices:
                return []
        return slice_faults(self._pool, content, stamp, devices)


def _same_names(known: Sequence[SliceContent], contents: Sequence[SliceContent]) -> bool:
    """Whether `known` (right) differs from `contents` in nothing that the rules across slices look at."""
    return len(known) == len(contents) and all(
        old is new
        or (
            msgspec.structs.replace(old, devices=()) == msgspec.structs.replace(new, devices=())
            and [device.name for device in old.devices] == [device.name for device in new.devices]
            and [d.consumes_counters for d in old.devices] == [d.consumes_counters for d in new.devices]
        )
        for old, new in zip(known, contents, strict=True)
    )


def pool_faults(pool: str, contents: Sequence[SliceContent], driver: str, *, local: bool) -> list[Fault]:
    """Violations of the rules across the slices of one pool, and of names that all slices share.

    Args:
        pool: its name.
        contents: its slices.
        driver: the driver's name.
        local: the publisher is a node's: its slices belong to that node.
    """
    faults = [Fault(pool=pool, message=f"driver name {driver!r}: {words}") for words in driver_name(driver)]
    faults += [Fault(pool=pool, message=f"pool name: {words}") for words in pool_name(pool)]
    faults += _selection(pool, contents, local=local)
    counters: dict[str, frozenset[str]] = {}
    for content in contents:
        for counter_set in content.shared_counters:
            if counter_set.name in counters:
                faults.append(Fault(pool=pool, message=f"counter set {counter_set.name} appears twice"))
            counters[counter_set.name] = frozenset(counter_set.counters)
    seen: set[str] = set()
    for device in _devices(contents):
        if device.name in seen:
            faults.append(Fault(pool=pool, device=device.name, message="the name appears twice in the pool"))
        seen.add(device.name)
        if device.consumes_counters:
            faults += _consumption(pool, device, counters)
    return faults


def _devices(contents: Sequence[SliceContent]) -> Iterable[Device]:
    return (device for content in contents for device in content.devices)


def _selection(pool: str, contents: Sequence[SliceContent], *, local: bool) -> list[Fault]:
    faults = []
    for content in contents[:1]:
        chosen = [
            name
            for name, value in (
                ("nodeSelector", content.node_selector),
                ("allNodes", content.all_nodes),
                ("perDeviceNodeSelection", content.per_device_node_selection),
            )
            if value
        ]
        if local and chosen:
            words = f"{chosen[0]} makes the pool cluster-wide, but this publisher is a node's: use `drakit publish`"
            faults.append(Fault(pool=pool, message=words))
        elif not local and len(chosen) != 1:
            words = "exactly one of nodeSelector, allNodes and perDeviceNodeSelection is needed"
            faults.append(Fault(pool=pool, message=f"{words}, got {' and '.join(chosen) or 'none'}"))
    return faults


def _consumption(pool: str, device: Device, counters: dict[str, frozenset[str]]) -> list[Fault]:
    faults = []
    for consumed in device.consumes_counters:
        known = counters.get(consumed.counter_set)
        if known is None:
            words = f"consumes counter set {consumed.counter_set}, which the pool does not have"
            faults.append(Fault(pool=pool, device=device.name, message=words))
            continue
        faults += [
            Fault(
                pool=pool,
                device=device.name,
                message=f"consumes counter {name}, which counter set {consumed.counter_set} does not have",
            )
            for name in consumed.counters
            if name not in known
        ]
    return faults


def slice_faults(pool: str, content: SliceContent, stamp: Stamp, devices: tuple[Device, ...]) -> list[Fault]:
    """What the API server would refuse in a slice of these devices (those of `content` that are new).

    Names qualified with the driver's own domain are refused too, as newer upstream clients do (1.8).
    """
    sent = body(
        msgspec.structs.replace(content, devices=devices),
        stamp,
        pool=pool,
        generation=1,
        count=1,
        metadata={"name": "check"},
    )
    wire = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", **sent}
    found = [
        _fault(pool, fault, devices, content)
        for fault in admission.validate(wire, "1.37", _ALL_GATES)
        if not fault.path.startswith("metadata")
    ]
    return found + [fault for device in devices for fault in _own_domain(pool, device, stamp.driver)]


def _own_domain(pool: str, device: Device, driver: str) -> list[Fault]:
    words = "is qualified with the driver's own domain: write it without"
    return [
        Fault(pool=pool, device=device.name, message=f"{kind} {name} {words}")
        for kind, names in (("attribute", device.attributes), ("capacity", device.capacity))
        for name in names
        if "/" in name and QualifiedName.parse(name).domain == driver
    ]


def _fault(pool: str, fault: admission.Fault, devices: Sequence[Device], content: SliceContent) -> Fault:
    """With the device's name, and its place in the whole slice."""
    head, found, rest = fault.path.partition("spec.devices[")
    number, _, tail = rest.partition("]")
    if head or not found or not number.isdigit() or int(number) >= len(devices):
        return Fault(pool=pool, field=fault.path, message=fault.message)
    device = devices[int(number)]
    place = next(at for at, each in enumerate(content.devices) if each is device)
    return Fault(pool=pool, field=f"spec.devices[{place}]{tail}", device=device.name, message=fault.message)
