"""What a driver wants published: pools of devices, and who owns the slices."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from drakit import api
from drakit.api.core import NodeSelector
from drakit.api.resource import CounterSet, Device

__all__ = ["DriverResources", "Owner", "Pool", "PoolSlice"]


class PoolSlice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One slice as the driver wants to cut its pool itself; see `Pool.slices`."""

    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    per_device_node_selection: bool = False
    partition_type_attribute: str | None = None


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One pool; the order of devices is the order in which the scheduler tries them.

    A pool of a node's publisher is node-local unless it says otherwise; a cluster-wide pool sets exactly one of
    node_selector, all_nodes and per_device_node_selection.

    Attributes:
        devices: any number; cut into slices by the API's limits.
        shared_counters: counter sets; they get slices of their own.
        slices: the driver's own cut, in place of devices and shared_counters. () deletes the pool; one empty slice
            says "the driver is alive and has no devices".
        node_selector: nodes that can use the devices, exactly one term.
        all_nodes: every node can.
        per_device_node_selection: each device says where it can be used.
        partition_type_attribute: qualified name of the attribute that tells partitions apart (1.37 alpha).
        skip_node_operations: NodePrepareResources, NodeUnprepareResources or "*" (1.37 alpha).
        generation: at least this pool generation; 0 = automatic.
    """

    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    slices: tuple[PoolSlice, ...] | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()
    generation: int = 0


class DriverResources(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Everything a driver publishes; pools that are not in it are deleted."""

    pools: dict[str, Pool] = {}

    @staticmethod
    def for_node(node: str, devices: Iterable[Device]) -> "DriverResources":
        """The usual case: one pool, named like the node."""
        return DriverResources(pools={node: Pool(devices=tuple(devices))})

    @staticmethod
    def parse(value: Mapping[str, Any]) -> "DriverResources":
        """From JSON or YAML: {"pools": {name: {"allNodes": true, "devices": [...]}}}, fields as in a ResourceSlice.

        Raises:
            ValueError: an unknown field of a pool, or a wrong type; the message names the JSON path.
        """
        return msgspec.convert(value, DriverResources, dec_hook=_quantity)


def _quantity(wanted: type, value: Any) -> Any:
    if wanted is not api.Quantity:
        raise TypeError(f"cannot decode {wanted.__name__}")
    return api.Quantity.parse(str(value))


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The object that the slices go with; must be cluster-scoped. A Node's uid may be left to be looked up."""

    api_version: str
    kind: str
    name: str
    uid: str = ""

    @staticmethod
    def node(name: str, uid: str = "") -> "Owner":
        """The owner of node-local slices."""
        return Owner(api_version="v1", kind="Node", name=name, uid=uid)

    @property
    def is_node(self) -> bool:
        """Whether the uid can be looked up."""
        return (self.api_version, self.kind) == ("v1", "Node")
