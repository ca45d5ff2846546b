"""Parts that run for ever beside the calls: sockets kept in place, files restored, claims compared with the API."""

from collections.abc import Awaitable, Sequence

import structlog

from drakit.clock import Clock
from drakit.driver.artifacts import Artifacts
from drakit.driver.claims import Claim
from drakit.driver.errors import ClaimError, LookupFailedError
from drakit.driver.executors import FileExecutor
from drakit.driver.journal import PREPARED, Identity, Record
from drakit.driver.ledger import Ledger
from drakit.driver.listener import Listener
from drakit.driver.lookup import ClaimLookup
from drakit.driver.metrics import Metrics
from drakit.driver.preparation import Preparer
from drakit.driver.sockets import AddressInUseError

__all__ = ["Reconciler", "Restorer", "SocketKeeper"]

SOCKETS_SECONDS = 1.0
RESTORE_SECONDS = 5.0
RECONCILE_SECONDS = 60.0

_log = structlog.stdlib.get_logger("drakit.driver")


class SocketKeeper:
    """Looks after own sockets each second."""

    def __init__(self, listeners: Sequence[Listener], clock: Clock) -> None:
        self._listeners = listeners
        self._clock = clock
        self._lost: set[str] = set()

    @property
    def lost(self) -> bool:
        """Whether a path belongs to another process, or cannot be listened at."""
        return bool(self._lost)

    async def run(self) -> None:
        """Check for ever."""
        while True:
            await self._clock.sleep(SOCKETS_SECONDS)
            await self.check()

    async def check(self) -> None:
        """Put vanished sockets back."""
        for listener in self._listeners:
            path = str(listener.path)
            try:
                own, reason = await listener.check(), "another process took the path"
            except (OSError, AddressInUseError) as error:
                own, reason = False, str(error)
            if own:
                self._lost.discard(path)
            elif path not in self._lost:
                self._lost.add(path)
                _log.error("socket lost", path=path, err=reason)


class Restorer:
    """Brings back CDI and metadata files that vanished.

    The kubelet never prepares a running pod again (recorded 15), but its containers may restart and need them.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        artifacts: Artifacts,
        preparer: Preparer,
        executor: FileExecutor,
        clock: Clock,
        metrics: Metrics,
        boot_id: str,
    ) -> None:
        self._ledger = ledger
        self._artifacts = artifacts
        self._preparer = preparer
        self._executor = executor
        self._clock = clock
        self._metrics = metrics
        self._boot_id = boot_id
        self._failed: dict[str, str] = {}

    async def run(self) -> None:
        """Compare for ever."""
        while True:
            await self.check()
            await self._clock.sleep(RESTORE_SECONDS)

    async def check(self) -> int:
        """Compare the records with what is there and restore what is missing; how many files."""
        known = self._ledger.records
        records = [record for record in known.values() if self._restorable(record)]
        self._failed = {uid: text for uid, text in self._failed.items() if uid in known}
        self._metrics.prepared_claims.set(len(records))
        self._metrics.prepared_devices.set(sum(len(record.devices) for record in records))
        if not records:
            return 0
        restored = 0
        for record in await self._executor.run(self._lacking, records):
            if self._preparer.tasks.kind(record.uid) is None:
                restored += await self._restore(record)
        return restored

    def _lacking(self, records: Sequence[Record]) -> list[Record]:
        present = frozenset(self._artifacts.present())
        return [record for record in records if self._artifacts.missing(record, present)]

    def _restorable(self, record: Record) -> bool:
        # After a reboot every pod is prepared anew (P28), and only then are its devices usable.
        return record.phase == PREPARED and record.boot_id == self._boot_id

    async def _restore(self, record: Record) -> int:
        try:
            count = await self._preparer.restore(record.identity)
        except ClaimError as error:
            if self._failed.get(record.uid) != str(error):  # once, not every 5 s
                _log.error("files of a prepared claim cannot be restored", claim_uid=record.uid, err=str(error))
            self._failed[record.uid] = str(error)
            return 0
        self._failed.pop(record.uid, None)
        if count:
            self._metrics.restored.inc(count)
            _log.warning("restored files of a prepared claim", claim_uid=record.uid, files=count)
        return count


class Reconciler:
    """Unprepares claims that were deleted or replaced while nobody told us, and rebuilds broken records.

    Only the API server's word counts: while it cannot be reached, nothing happens and no time passes. A claim must be
    gone for the whole grace period, as the kubelet may still be about to unprepare it itself.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        lookup: ClaimLookup,
        preparer: Preparer,
        clock: Clock,
        metrics: Metrics,
        grace: float,
    ) -> None:
        self._ledger = ledger
        self._lookup = lookup
        self._preparer = preparer
        self._clock = clock
        self._metrics = metrics
        self._grace = grace
        self._gone_since: dict[str, float] = {}

    async def run(self) -> None:
        """Compare for ever."""
        while True:
            await self.check()
            await self._clock.sleep(RECONCILE_SECONDS)

    async def check(self) -> None:
        """Compare every record once.

        Raises:
            ApiError: the API server does not answer; the supervisor tries again.
        """
        view = await self._ledger.read()
        for gone in self._gone_since.keys() - view.records.keys():
            del self._gone_since[gone]
        for record in view.records.values():
            if await self._lookup.is_gone(record.identity):
                # Of an unattended claim there will be no call that we could be in the way of.
                await self._retire(record.identity, 0 if record.unattended else self._grace)
            else:
                self._gone_since.pop(record.uid, None)
                if record.broken:
                    await self._rebuild(record.identity)

    async def _retire(self, identity: Identity, grace: float) -> None:
        since = self._gone_since.setdefault(identity.uid, self._clock.monotonic())
        if self._clock.monotonic() - since < grace or self._preparer.tasks.kind(identity.uid) is not None:
            return
        _log.warning("claim is gone from the API, unpreparing it", claim_uid=identity.uid)
        if await _succeeds(self._preparer.unprepare(identity), identity):
            self._metrics.reconciled.inc()

    async def _rebuild(self, identity: Identity) -> None:
        """Prepare the claim again from what the API server knows: the reply and the files are the same as before."""

        async def claim(_: bool) -> Claim:
            try:
                return (await self._lookup.fetch(identity))()
            except LookupFailedError as error:
                raise ClaimError(str(error)) from error

        if await _succeeds(self._preparer.prepare(identity, claim), identity):
            _log.warning("rebuilt the record of a claim", claim_uid=identity.uid)


async def _succeeds(work: Awaitable[object], identity: Identity) -> bool:
    try:
        await work
    except ClaimError as error:
        _log.error("reconciling a claim failed", claim_uid=identity.uid, err=str(error))
        return False
    return True
