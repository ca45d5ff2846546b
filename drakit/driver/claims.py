"""What a device driver sees of a claim: its own allocated devices, with their configuration decoded.

Pure: a ResourceClaim as the API server has it goes in, a Claim or an error comes out (spec/kubeletplugin.md P6, P7).
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from drakit import cdi, metadata
from drakit.api import resource
from drakit.api.quantity import Quantity
from drakit.driver import configuration
from drakit.driver.configuration import Configuration
from drakit.driver.devicestatus import DeviceStatus
from drakit.driver.errors import LookupFailedError, NoResultsError
from drakit.driver.journal import Identity, PreparedDevice

__all__ = ["AllocatedDevice", "Attribute", "Claim", "ClaimRef", "Preparation", "Prepared", "claim_of", "verify"]

Attribute: TypeAlias = (
    str | int | bool | Sequence[str] | Sequence[int] | Sequence[bool] | resource.DeviceAttribute | metadata.Attribute
)

_SKIPS_UNPREPARE = frozenset({"NodeUnprepareResources", "*"})

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


class AllocatedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device of this driver that a claim got.

    Attributes:
        request: the request, `name` or `name/subrequest`.
        pool: where the device was published.
        device: its name in the pool.
        share_id: which share, of a device that allows multiple allocations.
        admin_access: the claim only looks: do not reset or reconfigure the device, its owner may be at work.
        consumed_capacity: what the claim was granted, of a device that allows multiple allocations.
        configurations: decoded parameters that apply, the most specific one last.
    """

    request: str
    pool: str
    device: str
    share_id: str | None = None
    admin_access: bool = False
    consumed_capacity: Mapping[str, Quantity] = {}
    configurations: tuple[Configuration, ...] = ()

    def configuration(self, cls: type[Any]) -> Any:
        """The most specific configuration of class `cls`, or one with all its defaults."""
        return next((found for found in reversed(self.configurations) if isinstance(found, cls)), None) or cls()


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim to prepare.

    Attributes:
        namespace, name, uid: which claim.
        devices: this driver's devices in the order of allocation.
        pod_claim_name: the pod's name for a claim made from a template, else None.
        object: the whole claim, other drivers' devices included.
        unattended: the kubelet will not unprepare it: all its devices say so in skipNodeOperations (P36).
    """

    namespace: str
    name: str
    uid: str
    devices: tuple[AllocatedDevice, ...]
    pod_claim_name: str | None
    object: resource.ResourceClaim
    allocation: str
    unattended: bool = False

    @property
    def identity(self) -> Identity:
        """Namespace, name and UID."""
        return Identity(self.namespace, self.name, self.uid)


class ClaimRef(msgspec.Struct, frozen=True, kw_only=True):
    """A claim to unprepare: it may be gone from the API, so only what was recorded is known.

    `devices` and `state` are empty when the record was lost or prepare did not get that far.
    """

    namespace: str
    name: str
    uid: str
    devices: tuple[PreparedDevice, ...] = ()
    state: Any = None


class Prepared(msgspec.Struct, frozen=True):
    """What prepare did for one device.

    Attributes:
        device: one of the claim's devices.
        edits: what the runtime changes in containers that use it.
        attributes: facts for the workload's metadata file (KEP-5304), by attribute name; plain values or lists of one
            type, or the structs of the API.
        network_data: network facts for the metadata file.
        status: what the claim's own status shall say about the device, for everybody who reads claims (KEP-4817). It is
            written in the background; needs two more rights.
    """

    device: AllocatedDevice
    edits: cdi.ContainerEdits = cdi.ContainerEdits()
    attributes: Mapping[str, Attribute] = {}
    network_data: metadata.NetworkData | None = None
    status: DeviceStatus | None = None


class Preparation(msgspec.Struct, frozen=True):
    """What prepare did for a claim, when there is more to say than a list of `Prepared`.

    Attributes:
        devices: one entry per device; those left out get neutral edits.
        edits: changes for every container that uses any device of the claim, made once.
        state: a JSON value that `unprepare` gets back.
    """

    devices: Sequence[Prepared] = ()
    edits: cdi.ContainerEdits = cdi.ContainerEdits()
    state: Any = None


def verify(found: resource.ResourceClaim, wanted: Identity) -> resource.AllocationResult:
    """The allocation of the claim that the kubelet asked for.

    Raises:
        LookupFailedError: not allocated, or another claim of that name by now; in this order (P6).
    """
    where = f"{wanted.namespace}/{wanted.name}"
    allocation = found.status.allocation
    if allocation is None:
        raise LookupFailedError(f"claim {where} not allocated")
    if found.metadata.uid != wanted.uid:
        raise LookupFailedError(f"claim {where} got replaced")
    return allocation


def claim_of(found: resource.ResourceClaim, driver: str, classes: Sequence[type[Configuration]]) -> Claim:
    """The claim as `driver` sees it.

    Raises:
        NoResultsError: nothing was allocated from this driver.
        ConfigurationError: its parameters are wrong.
    """
    assert found.status.allocation is not None
    allocated = found.status.allocation.devices
    results = [result for result in allocated.results if result.driver == driver]
    if not results:
        raise NoResultsError(f"nothing is allocated from driver {driver}")
    meta = found.metadata
    return Claim(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        devices=tuple(_device(result, allocated.config, classes) for result in results),
        pod_claim_name=meta.annotations.get(POD_CLAIM_NAME) or None,
        object=found,
        allocation=_identity_of(results, allocated.config, driver),
        unattended=all(_SKIPS_UNPREPARE.intersection(result.skip_node_operations) for result in results),
    )


def _device(
    result: resource.DeviceRequestAllocationResult,
    config: Sequence[resource.DeviceAllocationConfiguration],
    classes: Sequence[type[Configuration]],
) -> AllocatedDevice:
    entries = configuration.applicable(config, result.driver, result.request)
    where = f"request {result.request}"
    return AllocatedDevice(
        request=result.request,
        pool=result.pool,
        device=result.device,
        share_id=result.share_id,
        admin_access=bool(result.admin_access),
        consumed_capacity=result.consumed_capacity,
        configurations=tuple(configuration.decode(entry.parameters, classes, where) for entry in entries),
    )


def _identity_of(
    results: Sequence[resource.DeviceRequestAllocationResult],
    config: Sequence[resource.DeviceAllocationConfiguration],
    driver: str,
) -> str:
    """Changes when the same claim is allocated anew with other devices or parameters."""
    own = [entry for entry in config if entry.opaque is not None and entry.opaque.driver == driver]
    facts = [[r.request, r.pool, r.device, r.share_id, bool(r.admin_access)] for r in results]
    parameters = [
        [entry.source, entry.requests, bytes(entry.opaque.parameters).decode()] for entry in own if entry.opaque
    ]
    return hashlib.sha256(msgspec.json.encode([facts, parameters])).hexdigest()[:32]
