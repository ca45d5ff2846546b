"""Files that follow from a claim's record: its CDI specs and metadata.

They can always be made again, so nothing is synced, and they are written before the record that promises them.
"""

from collections.abc import Callable, Container, Sequence

import msgspec
import structlog

from drakit import cdi, metadata
from drakit.api import resource
from drakit.driver.claims import AllocatedDevice, Attribute, Claim, Preparation, Prepared
from drakit.driver.devicestatus import DeviceStatus, DeviceStatusError, verified
from drakit.driver.errors import HookError
from drakit.driver.journal import PREPARED, PreparedDevice, Record
from drakit.driver.names import base_request

__all__ = ["Artifacts", "record_of"]

NEUTRAL = "DRAKIT_DEVICE"
"""Environment variable given to containers of a device without edits: the id must name something (P31)."""

_METADATA = "metadata"

_log = structlog.stdlib.get_logger("drakit.driver")


def record_of(
    claim: Claim,
    preparation: Preparation,
    driver: str,
    boot_id: str,
    refuse: Callable[[str], None] = lambda _: None,
) -> Record:
    """The record of a prepared claim: what the kubelet will be told, and all that is needed to rebuild its files.

    `refuse` is told of each device status that the API server would not take: the claim is prepared without.

    Raises:
        HookError: the hook's answer does not fit the claim.
    """
    answers = _by_device(claim, preparation.devices)
    keyed: dict[tuple[str, ...], cdi.ContainerEdits] = {}
    for device, prepared in zip(claim.devices, answers, strict=True):
        key = _key(device)  # one device twice under one key: containers get the edits of both
        keyed[key] = cdi.merge(*([keyed[key]] if key in keyed else []), *(one.edits for one in prepared))
    neutral = {key: edits or cdi.ContainerEdits(env=(f"{NEUTRAL}={key[2]}",)) for key, edits in keyed.items()}
    spec, ids = cdi.claim_spec(driver, claim.uid, neutral, preparation.edits or None)
    return Record(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        phase=PREPARED,
        boot_id=boot_id,
        allocation=claim.allocation,
        devices=tuple(
            PreparedDevice(
                request=device.request,
                pool=device.pool,
                device=device.device,
                share_id=device.share_id,
                admin_access=device.admin_access,
                cdi_ids=ids[_key(device)],
                status=_status(device, prepared, refuse),
            )
            for device, prepared in zip(claim.devices, answers, strict=True)
        ),
        spec=spec,
        pod_claim_name=claim.pod_claim_name,
        metadata=tuple(
            _metadata(driver, device, prepared) for device, prepared in zip(claim.devices, answers, strict=True)
        ),
        state=preparation.state,
        unattended=claim.unattended,
    )


class Artifacts:
    """Writes and removes the files of claims. Calls for one claim must not overlap.

    Args:
        store: the driver's CDI files.
        writer: its metadata files; None = the driver keeps none.
    """

    def __init__(self, store: cdi.Store, writer: metadata.Writer | None) -> None:
        self._store = store
        self._writer = writer

    def write(self, record: Record) -> Record:
        """Write all files of `record`, replacing what is there; the record with the ids of what was written.

        A claim whose metadata cannot be written starts without (M17).

        Raises:
            SpecError: a runtime would refuse the hook's edits.
            StoreError: the CDI directory cannot be used.
        """
        if record.spec is not None:
            self._store.write(cdi.claim_file(record.uid), record.spec)
        bare = msgspec.structs.replace(record, metadata=())
        if self._writer is None or not record.metadata:
            return bare
        try:
            extra = self._writer.write(_claim(record), record.metadata)
        except metadata.MetadataError as error:
            _log.warning("metadata not written, the claim starts without", err=str(error))
            return bare
        devices = tuple(
            msgspec.structs.replace(device, cdi_ids=(*device.cdi_ids, *ids))
            for device, ids in zip(record.devices, extra, strict=True)
        )
        return msgspec.structs.replace(record, devices=devices)

    def missing(self, record: Record, present: Container[cdi.SpecFile]) -> int:
        """How many of the record's files are not there: their loss keeps containers from starting.

        Args:
            record: of a prepared claim.
            present: the CDI files that are there.
        """
        wanted = [cdi.claim_file(record.uid)] if record.spec is not None else []
        unmounted = 0
        if record.metadata and self._writer is not None:
            requests = _requests(record)
            wanted.extend(cdi.SpecFile(_METADATA, record.uid, request) for request in requests)
            unmounted = self._writer.missing(_claim(record), requests)
        return sum(file not in present for file in wanted) + unmounted

    def restore(self, record: Record) -> int:
        """Write those files of `record` that are missing; how many that were."""
        present = self.present()
        missing = self.missing(record, present)
        if record.spec is not None and cdi.claim_file(record.uid) not in present:
            self._store.write(cdi.claim_file(record.uid), record.spec)
        if self._writer is not None and record.metadata:
            self._writer.write(_claim(record), record.metadata, generations=record.generations, only_missing=True)
        return missing

    def present(self) -> Sequence[cdi.SpecFile]:
        """What the CDI directory holds of this driver's."""
        return self._store.list()

    def remove(self, record: Record) -> None:
        """Remove all files of `record`.

        Raises:
            MetadataError, OSError: something could not be removed: repeat.
        """
        if self._writer is not None:
            self._writer.remove(_claim(record))
        self._store.remove_claim(record.uid)

    def sweep(self, live: Container[str]) -> int:
        """Remove files of claims that are not in `live`, and what killed processes left; how many that were."""
        metadata_left = self._writer.clean(live) if self._writer is not None else ()
        return len(self._store.clean(live)) + len(metadata_left)


def _key(device: AllocatedDevice) -> tuple[str, ...]:
    share = (device.share_id,) if device.share_id else ()
    return (base_request(device.request), device.pool, device.device, *share)


def _by_device(claim: Claim, prepared: Sequence[Prepared]) -> list[list[Prepared]]:
    answers: list[list[Prepared]] = [[] for _ in claim.devices]
    for one in prepared:
        if one.device not in claim.devices:
            raise HookError(f"prepare answered for device {one.device.device}, which this claim does not have")
        answers[claim.devices.index(one.device)].append(one)
    return answers


def _status(
    device: AllocatedDevice, prepared: Sequence[Prepared], refuse: Callable[[str], None]
) -> DeviceStatus | None:
    status = next((one.status for one in reversed(prepared) if one.status is not None), None)
    if status is None:
        return None
    try:
        return verified(status)
    except DeviceStatusError as error:
        refuse(f"device {device.pool}/{device.device}: {error}")
        return None


def _metadata(driver: str, device: AllocatedDevice, prepared: Sequence[Prepared]) -> metadata.PreparedDevice:
    attributes = {name: _attribute(name, value) for one in prepared for name, value in one.attributes.items()}
    network = next((one.network_data for one in reversed(prepared) if one.network_data is not None), None)
    facts = metadata.Device(driver, device.pool, device.device, attributes, network)
    return metadata.PreparedDevice((device.request,), facts)


def _attribute(name: str, value: Attribute) -> metadata.Attribute:
    if isinstance(value, metadata.Attribute):
        return value
    if isinstance(value, resource.DeviceAttribute):
        return msgspec.convert(msgspec.to_builtins(value), metadata.Attribute)
    if isinstance(value, bool):
        return metadata.Attribute(bool=value)
    if isinstance(value, int):
        return metadata.Attribute(int=value)
    if isinstance(value, str):
        return metadata.Attribute(string=value)
    kinds = {type(item) for item in value}
    field = _LISTS.get(kinds.pop()) if len(kinds) == 1 else None
    if field is None:
        raise HookError(f"metadata attribute {name}: a list must have strings, integers or booleans, all alike")
    return msgspec.convert({field: list(value)}, metadata.Attribute)


_LISTS: dict[type, str] = {str: "strings", int: "ints", bool: "bools"}


def _claim(record: Record) -> metadata.Claim:
    return metadata.Claim(record.namespace, record.name, record.uid, record.pod_claim_name)


def _requests(record: Record) -> list[str]:
    return sorted({base_request(device.request) for device in record.devices})
