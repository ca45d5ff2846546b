"""The status of claims. Source: spec/resourceslice.md 4.4, spec/apiserver.md 17-19."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit.admission import semantics
from drakit.admission.validation import (
    adminaccess,
    claims,
    conditions,
    configuration,
    formats,
    nodeselectors,
    slices,
    taints,
)
from drakit.api import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drakit.admission.faults import Faults
    from drakit.admission.policy import Policy

__all__ = ["admin_access", "claim_status", "device_id", "device_report", "results"]

Json = dict[str, Any]
DeviceID = tuple[str, str, str, str]

_SOURCES: Final = ("FromClaim", "FromClass")


def device_id(entry: Json) -> DeviceID:
    """What tells allocated devices apart: driver, pool, device, share."""
    return entry["driver"], entry["pool"], entry["device"], entry.get("shareID") or ""


def claim_status(faults: Faults, claim: Json, old: Json, server: Policy) -> None:
    """A new status of a claim (`claim` and `old` are whole objects)."""
    status, before = claim["status"], old.get("status", {})
    reserved, allocation = status.get("reservedFor") or [], status.get("allocation")
    if formats.items(
        faults, "status.reservedFor", reserved, server.reserved_for, lambda path, each: _consumer(faults, path, each)
    ):
        formats.unique(faults, "status.reservedFor", (each["uid"] for each in reserved))
    _devices(faults, status)
    if reserved and allocation is None:
        faults.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif reserved and old["metadata"].get("deletionTimestamp"):
        known = before.get("reservedFor") or []
        if any(each not in known for each in reserved):
            faults.forbidden(
                "status.reservedFor",
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set",
            )
    if allocation is None:
        return
    if before.get("allocation") is not None:
        if not semantics.equal(allocation, before["allocation"], "AllocationResult"):
            faults.invalid("status.allocation", semantics.plain(allocation), "field is immutable")
    else:
        _allocation(faults, "status.allocation", allocation, claims.request_names(claim["spec"]["devices"]), server)


def _consumer(faults: Faults, path: str, consumer: Json) -> None:
    for name in ("resource", "name", "uid"):
        if not consumer[name]:
            faults.required(f"{path}.{name}")


def results(allocation: Json | None) -> list[Json]:
    """The allocated devices of an allocation, or none."""
    return (allocation or {}).get("devices", {}).get("results") or []


def _devices(faults: Faults, status: Json) -> None:
    allocated = {device_id(result) for result in results(status.get("allocation"))}
    devices = status.get("devices") or []
    for index, device in enumerate(devices):
        _device(faults, f"status.devices[{index}]", device, allocated)
    seen = set()
    for index, device in enumerate(devices):
        identity = device_id(device)
        if identity in seen:
            faults.duplicate(f"status.devices[{index}]", _shown(device))
        seen.add(identity)


def _shown(device: Json) -> Json:
    return {
        "Driver": device["driver"],
        "Pool": device["pool"],
        "Device": device["device"],
        "ShareID": device.get("shareID") or "",
    }


def _device(faults: Faults, path: str, device: Json, allocated: set[DeviceID]) -> None:
    formats.driver_name(faults, f"{path}.driver", device["driver"])
    formats.pool_name(faults, f"{path}.pool", device["pool"])
    formats.label(faults, f"{path}.device", device["device"])
    if device.get("shareID") is not None:
        formats.uuid(faults, f"{path}.shareID", device["shareID"])
    if device_id(device) not in allocated:
        faults.invalid(path, _shown(device), "must be an allocated device in the claim")
    device_report(faults, path, device)


def device_report(faults: Faults, path: str, device: Json) -> None:
    """What is said about an allocated device, apart from which one it is."""
    found = device.get("conditions") or ()
    if len(found) > limits.DEVICE_CONDITIONS:
        faults.too_many(f"{path}.conditions", len(found), limits.DEVICE_CONDITIONS)
    conditions.conditions(faults, f"{path}.conditions", found)
    if device.get("data") is not None:
        configuration.raw_object(faults, f"{path}.data", device["data"], limits.DEVICE_DATA_LENGTH)
    if device.get("networkData") is not None:
        _network(faults, f"{path}.networkData", device["networkData"])


def _network(faults: Faults, path: str, data: Json) -> None:
    for name, limit in (
        ("interfaceName", limits.INTERFACE_NAME_LENGTH),
        ("hardwareAddress", limits.HARDWARE_ADDRESS_LENGTH),
    ):
        if formats.byte_length(data.get(name, "")) > limit:
            faults.too_long(f"{path}.{name}", limit)
    addresses = data.get("ips")
    if formats.items(
        faults,
        f"{path}.ips",
        addresses,
        limits.NETWORK_IPS,
        lambda spot, address: formats.interface_address(faults, spot, address),
    ):
        formats.unique(faults, f"{path}.ips", addresses or ())


def _allocation(faults: Faults, path: str, allocation: Json, known: claims.Names, server: Policy) -> None:
    devices = allocation["devices"]
    formats.items(
        faults,
        f"{path}.devices.results",
        devices.get("results"),
        limits.ALLOCATION_RESULTS,
        lambda spot, result: _result(faults, spot, result, known, server),
    )

    def check_config(spot: str, config: Json) -> None:
        if not config["source"]:
            faults.required(f"{spot}.source")
        elif config["source"] not in _SOURCES:
            faults.unsupported(f"{spot}.source", config["source"], _SOURCES)
        claims.request_references(faults, f"{spot}.requests", config.get("requests"), known)
        configuration.opaque(faults, spot, config)

    formats.items(faults, f"{path}.devices.config", devices.get("config"), limits.ALLOCATION_CONFIGS, check_config)
    if allocation.get("nodeSelector") is not None:
        nodeselectors.selector(faults, f"{path}.nodeSelector", allocation["nodeSelector"])


def _result(faults: Faults, path: str, result: Json, known: claims.Names, server: Policy) -> None:
    claims.request_reference(faults, f"{path}.request", result["request"], known)
    formats.driver_name(faults, f"{path}.driver", result["driver"])
    formats.pool_name(faults, f"{path}.pool", result["pool"])
    formats.label(faults, f"{path}.device", result["device"])
    conditions.binding(faults, path, result)
    if server.since("1.37"):
        for index, toleration in enumerate(result.get("tolerations") or ()):
            taints.toleration(faults, f"{path}.tolerations[{index}]", toleration, server)
    if result.get("shareID") is not None:
        formats.uuid(faults, f"{path}.shareID", result["shareID"])
    slices.skip_node_operations(faults, f"{path}.skipNodeOperations", result, None)


def admin_access(faults: Faults, claim: Json, old: Json, labels: Mapping[str, str] | None, server: Policy) -> None:
    """Results with adminAccess need a labelled namespace, unless the old allocation had it."""
    label = server.admin_access_label
    granted = any(result.get("adminAccess") for result in results(old.get("status", {}).get("allocation")))
    if not label or granted:
        return
    for index, result in enumerate(results(claim["status"].get("allocation"))):
        if not result.get("adminAccess"):
            continue
        path = f"status.allocation.devices.results[{index}].adminAccess"
        if not adminaccess.namespace_allows(faults, path, labels, label):
            return
