"""What simulated nodes have, as data: a profile makes the devices of one node."""

import uuid
from collections.abc import Callable, Mapping
from types import MappingProxyType

from drakit.api import Quantity, resource

__all__ = ["DEFAULT", "PROFILES", "Profile", "gpus"]

Profile = Callable[[str], tuple[resource.Device, ...]]
"""From the node's name to its devices."""

_NAMESPACE = uuid.UUID("6f0a4c4e-5d0f-5c0e-9a57-0d1f3f6f7a11")  # any fixed one: makes UUIDs stable per node and index
_GPUS = 8


def gpus(node: str) -> tuple[resource.Device, ...]:
    """Eight GPUs as the Kubernetes documentation shows them, the same after every restart."""
    return tuple(_gpu(node, index) for index in range(_GPUS))


def _gpu(node: str, index: int) -> resource.Device:
    attribute = resource.DeviceAttribute
    return resource.Device(
        name=f"gpu-{index}",
        attributes={
            "index": attribute(int=index),
            "uuid": attribute(string=f"gpu-{uuid.uuid5(_NAMESPACE, f'{node},{index}')}"),
            "model": attribute(string="LATEST-GPU-MODEL"),
            "driverVersion": attribute(version="1.0.0"),
        },
        capacity={"memory": resource.DeviceCapacity(value=Quantity.parse("80Gi"))},
    )


DEFAULT = "gpu"

PROFILES: Mapping[str, Profile] = MappingProxyType({DEFAULT: gpus})
