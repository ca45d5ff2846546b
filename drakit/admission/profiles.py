"""The feature gates of resource.k8s.io with their defaults in Kubernetes 1.32 to 1.37.

Source: spec/resourceslice.md 2.9, spec/allocator.md 0.
"""

from __future__ import annotations

from typing import Final

__all__ = ["GATES", "LOCKED", "VERSIONS", "profile"]

VERSIONS: Final = ("1.32", "1.33", "1.34", "1.35", "1.36", "1.37")

_NEVER: Final = "9.99"

# gate: (minor that has the code, minor from which it is on by default)
GATES: Final[dict[str, tuple[str, str]]] = {
    "DRAAdminAccess": ("1.32", "1.34"),
    "DRAResourceClaimDeviceStatus": ("1.32", "1.33"),
    "DRAPrioritizedList": ("1.33", "1.34"),
    "DRAPartitionableDevices": ("1.33", "1.36"),
    "DRADeviceTaints": ("1.33", "1.36"),
    "DRADeviceTaintRules": ("1.35", "1.37"),
    "DRAConsumableCapacity": ("1.34", "1.36"),
    "DRADeviceBindingConditions": ("1.34", "1.36"),
    "DRAExtendedResource": ("1.34", "1.36"),
    "DRAResourceClaimGranularStatusAuthorization": ("1.36", "1.36"),
    "DRAListTypeAttributes": ("1.36", _NEVER),
    "DRANodeAllocatableResources": ("1.36", _NEVER),
    "DRAResourcePoolStatus": ("1.36", _NEVER),
    "DRAWorkloadResourceClaims": ("1.36", _NEVER),
    "DRAFractionalCapacityRange": ("1.37", "1.37"),
    "DRADerivedAttributes": ("1.37", _NEVER),
    "DRADeviceCompatibilityGroups": ("1.37", _NEVER),
    "DRAOptionalNodeOperations": ("1.37", _NEVER),
    "DRAPartitionableDevicesType": ("1.37", _NEVER),
}


LOCKED: Final[dict[str, str]] = {
    "DRAAdminAccess": "1.36",
    "DRAPrioritizedList": "1.37",
    "DRAExtendedResource": "1.37",
}
"""Gates that cannot be switched off any more, with the minor since when."""


def profile(version: str = "1.37", *, all_gates: bool = False) -> frozenset[str]:
    """The gates that are on by default in a minor version, or all that exist there.

    Raises:
        ValueError: drakit does not model that version.
    """
    if version not in VERSIONS:
        raise ValueError(f"unknown Kubernetes version {version!r}, expected one of {', '.join(VERSIONS)}")
    return frozenset(gate for gate, (since, on) in GATES.items() if (since if all_gates else on) <= version)
