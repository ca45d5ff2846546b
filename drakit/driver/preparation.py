"""Preparing and unpreparing one claim: reserve, hook, files, commit; and the way back.

Every step can be the last one of this process. What is on disk then says what may have been done:

    prepare    [record: preparing]  hook  CDI + metadata files  [record: prepared]  reply
    unprepare  marker  hook  files removed  [record removed]  marker removed  reply

[...] is durable. A retry repeats the hook unless the record says `prepared`, without a marker, in this boot.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, TypeVar

import msgspec
import structlog

from drakit import cdi, metadata
from drakit.clock import Clock
from drakit.driver import journal
from drakit.driver.artifacts import Artifacts, record_of
from drakit.driver.claims import Claim, ClaimRef, Preparation
from drakit.driver.errors import ClaimError, DeviceHeldError, HookError, HookTimeoutError, StateError, TooManyHooksError
from drakit.driver.executors import HookThreads
from drakit.driver.journal import Identity, PreparedDevice, Record
from drakit.driver.ledger import Change, Ledger, View
from drakit.driver.plugin import Driver
from drakit.driver.tasks import ClaimTasks
from drakit.files import LockFile, lock_offset

__all__ = ["Preparer", "holder", "reserve", "reserved"]

T = TypeVar("T")
CLAIM_LOCK_SECONDS = 40.0
_FIRST_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 0.5

_log = structlog.stdlib.get_logger("drakit.driver")


def holder(view: View, record: Record) -> tuple[Record, PreparedDevice] | None:
    """Who else holds one of the record's devices exclusively (P12): admin access and distinct shares may overlap."""
    for other in view.records.values():
        if other.uid != record.uid and (held := _shared(other, record)) is not None:
            return other, held
    return None


def _shared(other: Record, record: Record) -> PreparedDevice | None:
    for held in other.devices:
        if any(_excludes(held, device) for device in record.devices):
            return held
    return None


def _excludes(held: PreparedDevice, wanted: PreparedDevice) -> bool:
    if (held.pool, held.device) != (wanted.pool, wanted.device) or held.admin_access or wanted.admin_access:
        return False
    return held.share_id is None or wanted.share_id is None or held.share_id == wanted.share_id


def reserved(claim: Claim, boot_id: str) -> Record:
    """The record that says: prepare has begun."""
    devices = tuple(
        PreparedDevice(
            request=device.request,
            pool=device.pool,
            device=device.device,
            share_id=device.share_id,
            admin_access=device.admin_access,
        )
        for device in claim.devices
    )
    return Record(
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        phase=journal.PREPARING,
        boot_id=boot_id,
        allocation=claim.allocation,
        devices=devices,
        unattended=claim.unattended,
    )


def reserve(view: View, wanted: Record, restore: Callable[[Record], None]) -> Change[Record]:
    """Decide about a claim that is to be prepared: answer from its record, or reserve its devices.

    Raises:
        DeviceHeldError: another claim has one of them.
    """
    known = view.of(wanted.identity)
    if known is not None and known.uid not in view.unpreparing and _same(known, wanted):
        return Change(known, before=lambda: restore(known))
    other = holder(view, wanted)
    if other is not None:
        record, device = other
        if record.uid in view.unpreparing:
            raise DeviceHeldError(
                f"device {device.pool}/{device.device} is still being released by claim {record.identity}: try again"
            )
        raise DeviceHeldError(f"device {device.pool}/{device.device} is in use by claim {record.identity}")
    if known is not None:
        wanted = msgspec.structs.replace(wanted, state=known.state, retry=True, broken=known.broken)
    # A marker may be there even without a record: of a process that died between removing the two.
    return Change(wanted, store=wanted, unmark=wanted.identity)


def _same(known: Record, wanted: Record) -> bool:
    prepared = known.phase == journal.PREPARED and known.boot_id == wanted.boot_id
    return prepared and known.allocation == wanted.allocation


def outdated(view: View, wanted: Record) -> tuple[Record, ...]:
    """Records that must be undone first.

    Those of an earlier claim of the same name: the kubelet holds at most one claim per name (P21), so it has given up
    that one. Of another allocation of this claim. And of claims that nobody unprepares (P36) whose device is given to
    this one.
    """
    return tuple(record for record in view.records.values() if _gives_way(record, wanted))


def _gives_way(record: Record, wanted: Record) -> bool:
    if record.uid == wanted.uid:
        return record.allocation not in {"", wanted.allocation}
    same_name = (record.namespace, record.name) == (wanted.namespace, wanted.name)
    return same_name or (record.unattended and _shared(record, wanted) is not None)


class Preparer:
    """Prepares, unprepares and restores claims: one task per claim, which callers join.

    Args:
        driver: the device driver.
        tasks: what runs and waits for each claim.
        ledger: records of this node.
        artifacts: CDI and metadata files.
        hooks: threads for the device driver's plain functions.
        clock: for waiting.
        boot_id: of this boot of the machine; what was prepared in another one is prepared again.
        hook_seconds: how long a coroutine hook may take.
        record: writes an Event: type, reason, message.
        on_prepared: told of each record that a prepare was answered from.
    """

    def __init__(
        self,
        *,
        driver: Driver,
        tasks: ClaimTasks,
        ledger: Ledger,
        artifacts: Artifacts,
        hooks: HookThreads,
        clock: Clock,
        boot_id: str,
        hook_seconds: float,
        record: Callable[[str, str, str], None] = lambda _type, _reason, _message: None,
        on_prepared: Callable[[Record], None] = lambda _: None,
    ) -> None:
        self.tasks = tasks
        self._driver = driver
        self._ledger = ledger
        self._artifacts = artifacts
        self._hooks = hooks
        self._clock = clock
        self._boot_id = boot_id
        self._hook_seconds = hook_seconds
        self._record = record
        self._on_prepared = on_prepared
        self._claim_locks: LockFile | None = None

    def close(self) -> None:
        """Release the locks of all claims."""
        if self._claim_locks is not None:
            self._claim_locks.close()
            self._claim_locks = None

    def prepare(self, identity: Identity, claim: Callable[[bool], Awaitable[Claim]]) -> asyncio.Future[Record]:
        """Prepare a claim, or answer from its record. `claim` is asked for it, and told whether time has passed.

        The future fails with a ClaimError: the claim is not prepared, and nothing of it is left unless that failed too.
        """

        async def work(waited: bool) -> Record:
            with _named(identity):
                answer = await self._prepare(await claim(waited))
                self._on_prepared(answer)
                return answer

        return self.tasks.submit(identity.uid, "prepare", work)

    def unprepare(self, identity: Identity) -> asyncio.Future[None]:
        """Take back what prepare did; a claim without a record is fine (P13).

        The future fails with a ClaimError: the claim may be half undone, its devices stay reserved until a retry
        succeeds.
        """

        async def work(_: bool) -> None:
            with _named(identity):
                async with self._lock(identity.uid):
                    await self._unprepare(identity)

        return self.tasks.submit(identity.uid, "unprepare", work)

    def restore(self, identity: Identity) -> asyncio.Future[int]:
        """Write the missing files of a claim if it is prepared; the future tells how many there were."""

        async def work(_: bool) -> int:
            with _named(identity):
                async with self._lock(identity.uid):
                    return await self._apply(lambda view: self._restoring(view, identity))

        return self.tasks.submit(identity.uid, "restore", work)

    # Steps

    async def _prepare(self, claim: Claim) -> Record:
        wanted = reserved(claim, self._boot_id)
        async with self._lock(claim.uid):
            answer = await self._reserve(wanted)
            if answer.phase == journal.PREPARED:
                return answer
            try:
                return await self._run_hook(claim)
            except TooManyHooksError:
                await self._forget(answer)
                raise
            except ClaimError:
                if not answer.broken:  # else it may have been prepared before its record was lost, and be in use
                    await self._roll_back(wanted)
                raise

    async def _reserve(self, wanted: Record) -> Record:
        stale: tuple[Record, ...] = ()

        def decide(view: View) -> Change[Record]:
            nonlocal stale
            stale = outdated(view, wanted)
            return Change(wanted) if stale else reserve(view, wanted, self._restore)

        answer = await self._apply(decide)
        if not stale:
            return answer
        for record in stale:
            await self._replace(record, wanted)
        return await self._apply(lambda view: reserve(view, wanted, self._restore))

    async def _replace(self, record: Record, wanted: Record) -> None:
        _log.info("unpreparing what the claim replaces", claim_uid=record.uid, devices=len(record.devices))
        if record.uid == wanted.uid:
            await self._unprepare(record.identity)
        else:  # a task of its own: a call for it may be at work
            await self.unprepare(record.identity)

    async def _run_hook(self, claim: Claim) -> Record:
        answer = await self._call("prepare", self._driver.prepare, claim, _materialised)
        record = _recorded(
            claim, answer, self._driver.name, self._boot_id, lambda text: self._complain(claim.identity, text)
        )
        return await self._apply(lambda _: Change(record, store=record, before=lambda: self._artifacts.write(record)))

    async def _unprepare(self, identity: Identity) -> None:
        record = await self._apply(lambda view: _begin_unprepare(view, identity))
        if record is None:
            return
        await self._call("unprepare", self._driver.unprepare, _ref(record), _ignored)
        await self._apply(
            lambda _: Change(None, remove=identity, unmark=identity, before=lambda: self._artifacts.remove(record))
        )

    async def _roll_back(self, wanted: Record) -> None:
        """A claim that could not be prepared leaves nothing; if even that fails, its devices stay reserved."""
        try:
            await self._unprepare(wanted.identity)
        except ClaimError as error:
            _log.warning("rolling back failed, the claim stays reserved until it is unprepared", err=str(error))

    async def _forget(self, record: Record) -> None:
        """No hook ran now. If none ran before either, there is nothing to undo."""
        if not record.retry:
            await self._apply(lambda _: Change(None, remove=record.identity))

    async def _apply(self, decide: Callable[[View], Change[T]]) -> T:
        try:
            return await self._ledger.apply(decide)
        except cdi.SpecError as error:
            raise HookError(f"prepare answered edits that no runtime accepts: {error}") from error
        except (cdi.StoreError, metadata.MetadataError, journal.NewerFormatError) as error:
            raise StateError(str(error)) from error

    def _complain(self, identity: Identity, text: str) -> None:
        """What is not worth failing a claim for."""
        _log.error("device status refused", err=text)
        self._record("Warning", "DeviceStatusRefused", f"device status of claim {identity}: {text}")

    def _restoring(self, view: View, identity: Identity) -> Change[int]:
        record = view.of(identity)
        if record is None or record.phase != journal.PREPARED or identity.uid in view.unpreparing:
            return Change(0)
        change = Change(0)

        def write() -> None:
            change.answer = self._artifacts.restore(record)

        change.before = write
        return change

    def _restore(self, record: Record) -> None:
        self._artifacts.restore(record)

    # Hooks and locks

    async def _call(self, name: str, hook: Callable[[Any], Any], argument: Any, finish: Callable[[Any], Any]) -> Any:
        """Call a hook; `finish` makes of its answer what outlives the call, where the hook runs."""

        def call() -> Any:
            answer = hook(argument)
            return answer if inspect.isawaitable(answer) else finish(answer)

        try:
            answer = call() if inspect.iscoroutinefunction(hook) else await self._hooks.run(call)
            return finish(await self._in_time(name, answer)) if inspect.isawaitable(answer) else answer
        except ClaimError:
            raise
        except Exception as error:
            _log.exception("hook failed", hook=name)
            raise HookError(f"{name} of the device driver failed: {_text(error)}") from error

    async def _in_time(self, name: str, work: Awaitable[Any]) -> Any:
        try:
            answer, error = await self._clock.timeout(_outcome(work), self._hook_seconds)
        except TimeoutError as late:
            raise HookTimeoutError(f"{name} of the device driver took more than {self._hook_seconds:.0f} s") from late
        if error is not None:
            raise error
        return answer

    @asynccontextmanager
    async def _lock(self, uid: str) -> AsyncIterator[None]:
        """Exclude the other process of an upgrade, for as long as the hook runs."""
        if self._claim_locks is None:
            self._claim_locks = self._ledger.open_lock()
        locks, offset = self._claim_locks, lock_offset(uid)
        deadline = self._clock.monotonic() + CLAIM_LOCK_SECONDS
        pause = _FIRST_PAUSE_SECONDS
        while not locks.acquire(offset, 1, blocking=False):
            if self._clock.monotonic() > deadline:
                raise StateError("another instance of the driver is still at work on this claim")
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        try:
            yield
        finally:
            locks.release(offset, 1)


def _begin_unprepare(view: View, identity: Identity) -> Change[Record | None]:
    record = view.of(identity)
    if record is None:
        return Change(None)
    return Change(record, mark=None if identity.uid in view.unpreparing else identity)


def _ref(record: Record) -> ClaimRef:
    return ClaimRef(
        namespace=record.namespace,
        name=record.name,
        uid=record.uid,
        devices=record.devices,
        state=record.state,
    )


def _materialised(answer: Any) -> Any:
    """Run generators of a hook in its thread, not on the event loop."""
    if answer is None or isinstance(answer, Preparation):
        return answer
    return tuple(answer)


async def _outcome(work: Awaitable[Any]) -> tuple[Any, Exception | None]:
    """Kept apart from the end of the time: a hook's own work may raise TimeoutError as well."""
    try:
        return await work, None
    except Exception as error:  # noqa: BLE001 - raised again by the caller
        return None, error


def _ignored(_: Any) -> None:
    """Whatever unprepare answers: a claim must not stay for what is no error."""


def _named(identity: Identity) -> AbstractContextManager[object]:
    """Whose work it is, in every log record below: a task outlives the call that began it."""
    where = f"{identity.namespace}/{identity.name}"
    return structlog.contextvars.bound_contextvars(claim=where, claim_uid=identity.uid)


def _recorded(claim: Claim, answer: Any, driver: str, boot_id: str, refuse: Callable[[str], None]) -> Record:
    """The record of what a hook answered. Hooks are other people's code: their answer may be anything."""
    try:
        preparation = answer if isinstance(answer, Preparation) else Preparation(tuple(answer))
        record = record_of(claim, preparation, driver, boot_id, refuse)
        journal.encode(record)
    except HookError:
        raise
    except Exception as error:
        raise HookError(f"prepare of the device driver answered nonsense: {_text(error)}") from error
    return record


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
