"""The gates that change what the allocator does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["OPTIONAL_NODE_OPERATIONS", "Features"]

OPTIONAL_NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"
"""What a node lists in status.declaredFeatures when its kubelet can skip operations."""


_GATES: Final = {
    "admin_access": ("DRAAdminAccess",),
    "prioritized_list": ("DRAPrioritizedList",),
    "partitionable_devices": ("DRAPartitionableDevices",),
    "device_taints": ("DRADeviceTaints",),
    "device_binding_and_status": ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    "consumable_capacity": ("DRAConsumableCapacity",),
    "fractional_capacity_range": ("DRAConsumableCapacity", "DRAFractionalCapacityRange"),
    "list_type_attributes": ("DRAListTypeAttributes",),
    "derived_attributes": ("DRADerivedAttributes",),
    "device_compatibility_groups": ("DRAPartitionableDevices", "DRADeviceCompatibilityGroups"),
    "optional_node_operations": ("DRAOptionalNodeOperations",),
}


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """One switch per feature; the defaults are those of Kubernetes 1.37.

    `device_binding_and_status` stands for DRADeviceBindingConditions together with DRAResourceClaimDeviceStatus, the
    others for the gate of their name (spec/allocator.md 0).
    """

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_binding_and_status: bool = True
    consumable_capacity: bool = True
    fractional_capacity_range: bool = True
    list_type_attributes: bool = False
    derived_attributes: bool = False
    device_compatibility_groups: bool = False
    optional_node_operations: bool = False

    @classmethod
    def of_gates(cls, gates: Collection[str]) -> Features:
        """The features that a set of enabled gates means, such as `admission.profile("1.37")`."""
        return cls(**{name: all(gate in gates for gate in needed) for name, needed in _GATES.items()})

    @staticmethod
    def gates() -> frozenset[str]:
        """All gates that matter here."""
        return frozenset(gate for needed in _GATES.values() for gate in needed)

    @classmethod
    def everything(cls) -> Features:
        """All gates on, alpha ones too."""
        return cls(**dict.fromkeys(cls.__struct_fields__, True))
