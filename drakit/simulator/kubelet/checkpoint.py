"""The kubelet's dra_manager_state file: claims survive a restart, the `prepared` flag does not (P22)."""

import json
import zlib
from collections.abc import Mapping
from typing import Any

from drakit.simulator.kubelet.state import ClaimInfo, ClaimRef, Device

__all__ = ["FILE_NAME", "CheckpointError", "decode", "encode"]

FILE_NAME = "dra_manager_state"
_KIND = "DRACheckpoint"
_API_VERSION = "checkpoint.dra.kubelet.k8s.io/v1"


class CheckpointError(ValueError):
    """The file is not a checkpoint that a kubelet would load."""


def encode(claims: Mapping[str, ClaimInfo]) -> bytes:
    """The file's content: `{"Data": JSON text, "Checksum": crc32}`."""
    data = _compact(
        {
            "kind": _KIND,
            "apiVersion": _API_VERSION,
            "ClaimInfoStateList": [_encode_claim(info) for info in claims.values()],
        }
    )
    return _compact({"Data": data, "Checksum": zlib.crc32(data.encode())}).encode()


def decode(content: bytes) -> dict[str, ClaimInfo]:
    """The claims of a checkpoint, none of them prepared.

    Raises:
        CheckpointError: wrong checksum, kind or form.
    """
    try:
        envelope = json.loads(content)
        data = envelope["Data"]
        if zlib.crc32(data.encode()) != envelope["Checksum"]:
            raise CheckpointError("checkpoint is corrupted")
        document = json.loads(data)
        if (document["kind"], document["apiVersion"]) != (_KIND, _API_VERSION):
            raise CheckpointError(f"unknown checkpoint {document['apiVersion']} {document['kind']}")
        infos = [_decode_claim(entry) for entry in document["ClaimInfoStateList"] or ()]
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"not a checkpoint: {error}") from error
    return {f"{info.ref.namespace}/{info.ref.name}": info for info in infos}


def _encode_claim(info: ClaimInfo) -> dict[str, Any]:
    return {
        "ClaimUID": info.ref.uid,
        "ClaimName": info.ref.name,
        "Namespace": info.ref.namespace,
        "PodUIDs": {pod: {} for pod in info.pods},
        "DriverState": {
            driver: {"Devices": [_encode_device(device) for device in devices] or None}
            for driver, devices in info.devices.items()
        },
    }


def _encode_device(device: Device) -> dict[str, Any]:
    return {
        "PoolName": device.pool,
        "DeviceName": device.device,
        "ShareID": device.share_id,
        "RequestNames": list(device.request_names),
        "CDIDeviceIDs": list(device.cdi_device_ids),
    }


def _decode_claim(entry: Mapping[str, Any]) -> ClaimInfo:
    return ClaimInfo(
        ClaimRef(entry["Namespace"], entry["ClaimName"], entry["ClaimUID"]),
        tuple(entry["PodUIDs"]),
        {
            driver: tuple(_decode_device(device) for device in state["Devices"] or ())
            for driver, state in entry["DriverState"].items()
        },
    )


def _decode_device(entry: Mapping[str, Any]) -> Device:
    return Device(
        entry["PoolName"],
        entry["DeviceName"],
        tuple(entry["RequestNames"] or ()),
        tuple(entry["CDIDeviceIDs"] or ()),
        entry["ShareID"],
    )


def _compact(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))
