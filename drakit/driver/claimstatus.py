"""Device statuses in the status of their claims (P37): what to write, and a part that writes it in its own time.

The journal says what is wanted, so the work survives the process, and ends with the record. It never delays a call of
the kubelet: a claim whose status cannot be written stays prepared.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import structlog

from drakit.clock import Clock
from drakit.driver.devicestatus import DeviceStatus
from drakit.driver.errors import StateError
from drakit.driver.journal import PREPARED, Identity, Record
from drakit.driver.ledger import Ledger

if TYPE_CHECKING:
    from drakit import kube

__all__ = ["StatusWriter", "decide"]

Json: TypeAlias = dict[str, Any]
_Key: TypeAlias = tuple[str, str, str, str]

FIRST_SECONDS = 0.2
LONGEST_SECONDS = 60.0

_log = structlog.stdlib.get_logger("drakit.driver")


def decide(claim: Json, record: Record, driver: str, now: datetime) -> Json | None:
    """The claim to write, or None when there is nothing to change.

    Only entries of `driver` for devices that are still allocated, and of them only what the record's statuses name, so
    that binding conditions and what other writers said remain.

    Args:
        claim: as the API server has it.
        record: what was prepared, with the wanted statuses.
        driver: its name.
        now: for conditions whose status changes.
    """
    if claim["metadata"].get("uid") != record.uid:
        return None
    status = claim.get("status") or {}
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    allocated = {_key(result) for result in results}
    entries = {_key(entry): entry for entry in status.get("devices") or ()}
    changed = False
    for key, wanted in _wanted(record, driver).items():
        if key not in allocated:
            continue
        entry = _merged(entries.get(key) or _bare(key), wanted, now)
        changed = changed or _normal(entry) != _normal(entries.get(key))
        entries[key] = entry
    return {**claim, "status": {**status, "devices": [*entries.values()]}} if changed else None


def _wanted(record: Record, driver: str) -> dict[_Key, DeviceStatus]:
    """By device: two requests may have got the same one, with admin access, and the last word counts."""
    return {
        (driver, device.pool, device.device, device.share_id or ""): device.status
        for device in record.devices
        if device.status is not None
    }


def _key(entry: Json) -> _Key:
    return entry["driver"], entry["pool"], entry["device"], entry.get("shareID") or ""


def _bare(key: _Key) -> Json:
    driver, pool, device, share = key
    return {"driver": driver, "pool": pool, "device": device, **({"shareID": share} if share else {})}


def _merged(entry: Json, wanted: DeviceStatus, now: datetime) -> Json:
    merged = dict(entry)
    if wanted.conditions:
        known = {condition["type"]: condition for condition in entry.get("conditions") or ()}
        for condition in wanted.conditions:
            new = {"reason": "", "message": "", **_plain(condition)}
            old = known.get(condition.type)
            if old is not None and old.get("status") == condition.status and old.get("lastTransitionTime"):
                new["lastTransitionTime"] = old["lastTransitionTime"]
            new.setdefault("lastTransitionTime", now.strftime("%Y-%m-%dT%H:%M:%SZ"))
            known[condition.type] = new
        merged["conditions"] = [*known.values()]
    if wanted.data is not None:
        merged["data"] = _plain(wanted.data)
    if wanted.network_data is not None:
        merged["networkData"] = _plain(wanted.network_data)
    return merged


def _plain(value: object) -> Json:
    """As JSON brings it back: tuples are lists."""
    plain: Json = msgspec.json.decode(msgspec.json.encode(value))
    return plain


def _normal(entry: Json | None) -> Json | None:
    """Without the differences that the API server does not keep."""
    if entry is None:
        return None
    conditions = [
        {"reason": "", "message": "", "observedGeneration": 0, **condition}
        for condition in entry.get("conditions") or ()
    ]
    return {**entry, "conditions": conditions, "networkData": entry.get("networkData") or {}}


@dataclass(slots=True)
class _Pending:
    """A claim whose status is to be looked at, when, and what the failures so far come to."""

    backoff: "kube.Backoff"
    due: float


class StatusWriter:
    """Brings the wanted device statuses to the API server, one claim after the other.

    Args:
        driver: its name.
        ledger: what is prepared, with the statuses.
        boot_id: of this boot; what was prepared in another one is not in use (P28).
        clock: time.
        record: writes an Event: type, reason, message.
        jitter: numbers in [0, 1).
    """

    def __init__(
        self,
        *,
        driver: str,
        ledger: Ledger,
        boot_id: str,
        clock: Clock,
        record: Callable[[str, str, str], None],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._driver = driver
        self._ledger = ledger
        self._boot_id = boot_id
        self._clock = clock
        self._record = record
        self._jitter = jitter
        self._pending: dict[Identity, _Pending] = {}
        self._news = asyncio.Event()
        self._told: set[str] = set()

    @property
    def pending(self) -> tuple[Identity, ...]:
        """Claims whose status may have to be written yet."""
        return tuple(self._pending)

    def submit(self, record: Record) -> None:
        """Write the record's statuses soon; returns at once."""
        if not self._wants(record):
            return
        from drakit import kube

        backoff = kube.Backoff(FIRST_SECONDS, LONGEST_SECONDS, self._jitter)
        self._pending[record.identity] = _Pending(backoff, self._clock.monotonic())
        self._news.set()

    async def run(self, client: "kube.Client") -> None:
        """Write for ever, beginning with what the journal holds."""
        for record in self._ledger.records.values():
            self.submit(record)
        while True:
            self._news.clear()
            now = self._clock.monotonic()
            for identity in [identity for identity, pending in self._pending.items() if pending.due <= now]:
                await self._attempt(client, identity)
            await self._wait()

    async def _wait(self) -> None:
        if not self._pending:
            await self._news.wait()
            return
        pause = min(pending.due for pending in self._pending.values()) - self._clock.monotonic()
        if pause > 0:
            with contextlib.suppress(TimeoutError):
                await self._clock.timeout(self._news.wait(), pause)

    def _wants(self, record: Record) -> bool:
        current = record.phase == PREPARED and record.boot_id == self._boot_id
        return current and any(device.status is not None for device in record.devices)

    async def _attempt(self, client: "kube.Client", identity: Identity) -> None:
        from drakit import kube

        pending = self._pending[identity]
        try:
            await self._write(client, identity)
        except kube.NotFound:
            pass
        except (kube.ApiError, kube.CredentialsError, StateError) as error:
            api_error = error if isinstance(error, kube.ApiError) else None
            if api_error is None or not api_error.terminal or isinstance(error, kube.NotServed):
                self._postpone(identity, pending, error)
                return
            self._refused(identity, api_error)
        except Exception as error:  # noqa: BLE001 - an odd claim must not keep the others from being written
            _log.exception("device status not written", claim_uid=identity.uid, err=str(error))
        if self._pending.get(identity) is pending:  # else it was prepared again meanwhile
            del self._pending[identity]

    async def _write(self, client: "kube.Client", identity: Identity) -> None:
        from drakit import kube

        claim = await client.get(kube.RESOURCE_CLAIMS, identity.name, namespace=identity.namespace)
        view = await self._ledger.read()  # after the claim: another process may have unprepared it by now
        record = view.of(identity)
        if record is None or identity.uid in view.unpreparing or not self._wants(record):
            return
        body = decide(claim, record, self._driver, self._clock.now())
        if body is None:
            return
        stored = await client.update(kube.RESOURCE_CLAIMS, body, subresource="status")
        if decide(stored, record, self._driver, self._clock.now()) is None:
            _log.info("device status written", claim_uid=identity.uid)
        else:
            text = "the API server does not keep device statuses (feature gate DRAResourceClaimDeviceStatus)"
            self._tell("DeviceStatusNotKept", text)

    def _postpone(self, identity: Identity, pending: _Pending, error: Exception) -> None:
        """A conflict is nothing odd, nor is a single failure."""
        from drakit import kube

        if pending.backoff.failures == 1 and not isinstance(error, kube.Conflict):
            _log.warning("device status not written yet", claim_uid=identity.uid, err=str(error))
        retry_after = error.retry_after if isinstance(error, kube.ApiError) else None
        pending.due = self._clock.monotonic() + pending.backoff.delay(retry_after)

    def _refused(self, identity: Identity, error: "kube.ApiError") -> None:
        """Asking again cannot help, until the claim is prepared again or the process starts anew."""
        from drakit import kube

        rights = isinstance(error, kube.Forbidden) or any(
            (cause.reason, cause.field) == ("FieldValueForbidden", "status.devices") for cause in error.causes
        )
        if rights:
            self._tell(
                "DeviceStatusForbidden",
                "device statuses cannot be written: grant update on resourceclaims/status and, from Kubernetes "
                f"1.36 on, associated-node:update on resourceclaims/driver for {self._driver}: {error}",
            )
            return
        _log.error("device status refused", claim_uid=identity.uid, err=str(error))
        self._record("Warning", "DeviceStatusRefused", f"device status of claim {identity}: {error}")

    def _tell(self, reason: str, text: str) -> None:
        """What holds for all claims is one record in the log, not one for each."""
        if reason not in self._told:
            self._told.add(reason)
            _log.error(text, reason=reason)
            self._record("Warning", reason, text)
