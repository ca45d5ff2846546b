"""A driver without hardware: containers see environment variables."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from drakit import cdi
from drakit.devices.simulated.profiles import DEFAULT, PROFILES
from drakit.driver import AllocatedDevice, Claim, Configuration, Device, Driver, Prepared

if TYPE_CHECKING:
    from drakit.driver.publication import DriverResources

__all__ = ["GpuConfig", "SimulatedDriver", "TimeSlicing"]


class TimeSlicing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How long one container's turn is."""

    interval: Literal["Default", "Short", "Medium", "Long"] = "Default"


class GpuConfig(Configuration, frozen=True):
    """Opaque parameters for simulated GPUs, in the form that DRA tutorials use.

    `sharing` decides what containers are told; nothing is really shared.
    """

    api_version: ClassVar[str] = "gpu.resource.example.com/v1alpha1"

    sharing: Literal["Exclusive", "TimeSlicing"] = "Exclusive"
    time_slicing: TimeSlicing = TimeSlicing()

    def validate(self) -> Iterable[str]:
        """Time slices need time slicing."""
        if self.sharing != "TimeSlicing" and self.time_slicing != TimeSlicing():
            yield "$.timeSlicing needs sharing: TimeSlicing"


class SimulatedDriver(Driver):
    """Simulated devices of one node.

    Args:
        node: the node's name; identities of devices derive from it.
        name: the driver's name.
        profile: what the node has: of PROFILES, or a node's one of pools.POOL_PROFILES.

    Raises:
        KeyError: no such profile.
    """

    configurations = (GpuConfig,)

    def __init__(self, node: str, name: str = "gpu.example.com", profile: str = DEFAULT) -> None:
        self.name = name
        self._inventory = _inventory(node, profile)
        self._devices = {device.name: device for device in _devices(self._inventory)}

    def devices(self) -> "Iterable[Device] | DriverResources":
        """The profile's devices or pools; they never change."""
        return self._inventory

    def prepare(self, claim: Claim) -> Iterable[Prepared]:
        """One set of variables per device, so that `env` in the container shows what it got."""
        return [self._prepared(device) for device in claim.devices]

    def _prepared(self, device: AllocatedDevice) -> Prepared:
        config: GpuConfig = device.configuration(GpuConfig)
        variable = f"GPU_DEVICE_{device.device.removeprefix('gpu-').replace('-', '_').upper()}"
        env = [f"{variable}={device.device}", f"{variable}_SHARING_STRATEGY={config.sharing}"]
        if config.sharing == "TimeSlicing":
            env.append(f"{variable}_TIMESLICE_INTERVAL={config.time_slicing.interval}")
        if device.share_id:
            env.append(f"{variable}_SHARE_ID={device.share_id}")
        env.extend(
            f"{variable}_CONSUMED_{name.upper().replace('-', '_')}={amount}"
            for name, amount in device.consumed_capacity.items()
        )
        known = self._devices.get(device.device)
        return Prepared(device, cdi.ContainerEdits(env=tuple(env)), known.attributes if known else {})


def _inventory(node: str, profile: str) -> "tuple[Device, ...] | DriverResources":
    if profile in PROFILES:
        return PROFILES[profile](node)
    # Only here: most nodes have the default, and the pools bring what publication needs.
    from drakit.devices.simulated.pools import POOL_PROFILES

    chosen = POOL_PROFILES[profile]
    if not chosen.local:
        raise KeyError(f"{profile} is cluster-wide: drakit publish is for such pools")
    return chosen.build(node)


def _devices(inventory: "tuple[Device, ...] | DriverResources") -> Iterable[Device]:
    if isinstance(inventory, tuple):
        return inventory
    return [device for pool in inventory.pools.values() for device in pool.devices]
