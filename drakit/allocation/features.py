"""The gates that change what the allocator does."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["OPTIONAL_NODE_OPERATIONS", "Features"]

OPTIONAL_NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"
"""What a node lists in status.declaredFeatures when its kubelet can skip operations."""


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
    def everything(cls) -> Features:
        """All gates on, alpha ones too."""
        return cls(**dict.fromkeys(cls.__struct_fields__, True))
