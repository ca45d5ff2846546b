"""The rules that differ between minors and gates, in one value that validation is given.

Source: spec/resourceslice.md 2.1, 2.3, 3, 4.
"""

from __future__ import annotations

import functools
from typing import Final

import msgspec

from drakit.admission.profiles import LOCKED, VERSIONS, profile
from drakit.api import limits

__all__ = ["Policy", "policy"]

_UNLIMITED: Final = 1 << 30


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What one server does: its minor version, its gates and the numbers that follow from them."""

    minor: str
    gates: frozenset[str]

    def on(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        return gate in self.gates

    def since(self, minor: str) -> bool:
        """Whether the server is of that minor or newer."""
        return self.minor >= minor

    @property
    def devices_with_features(self) -> int:
        """Most devices in a slice with taints, counters or lists."""
        return limits.DEVICES_WITH_FEATURES if self.since("1.35") else limits.DEVICES

    @property
    def attribute_values(self) -> int:
        """Most attribute values of a device, items of lists included."""
        return limits.ATTRIBUTE_VALUES if self.since("1.36") else _UNLIMITED

    @property
    def taints(self) -> int:
        """Most taints of a device."""
        return limits.TAINTS if self.since("1.35") else 4

    @property
    def reserved_for(self) -> int:
        """Most consumers of a claim."""
        return limits.RESERVED_FOR if self.since("1.33") else 32

    @property
    def taint_effects(self) -> tuple[str, ...]:
        """The effects of device taints, in the order of messages."""
        return ("NoExecute", "NoSchedule", "None") if self.since("1.35") else ("NoExecute", "NoSchedule")

    @property
    def admin_access_label(self) -> str:
        """The namespace label that permits adminAccess; empty where any namespace may."""
        if self.since("1.34"):
            return "resource.kubernetes.io/admin-access"
        return "resource.k8s.io/admin-access" if self.since("1.33") else ""


def policy(minor: str, gates: frozenset[str] | None = None) -> Policy:
    """The policy of a server.

    Raises:
        ValueError: drakit does not model that minor version.
    """
    return _policy(minor, profile(minor) if gates is None else gates)


@functools.lru_cache(maxsize=256)
def _policy(minor: str, gates: frozenset[str]) -> Policy:
    if minor not in VERSIONS:
        raise ValueError(f"unknown Kubernetes version {minor!r}, expected one of {', '.join(VERSIONS)}")
    locked = frozenset(gate for gate, since in LOCKED.items() if since <= minor)
    return Policy(minor=minor, gates=(gates | locked) & profile(minor, all_gates=True))
