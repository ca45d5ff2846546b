"""The shared state of a node's claims: who holds which device, in files that two processes may use at once.

Every change goes through one batch at a time: all changes that arrive while a batch runs form the next one, which takes
the state lock once, raises the counter, writes and syncs all records, renames them, and syncs each directory once. The
other process sees from the counter that its cache is stale. A change that fails leaves the others of its batch alone.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from drakit import files
from drakit.clock import Clock
from drakit.driver import journal
from drakit.driver.errors import StateError
from drakit.driver.executors import FileExecutor
from drakit.driver.journal import Identity, Record
from drakit.files import Filesystem, LockFile

__all__ = ["Broken", "Change", "Ledger", "View"]

T = TypeVar("T")

STATE_OFFSET = 1 << 20  # below the offsets of claims, above the counter
LOCK_WAIT_SECONDS = 20.0
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1
_DIRECTORY_MODE = 0o700


@dataclass(frozen=True, slots=True)
class Broken:
    """A record that could not be read, and where its bytes were kept."""

    identity: Identity
    reason: str
    kept: Path | None


@dataclass(slots=True)
class View:
    """What the records said when the state lock was taken. Changes see it before, and never after, the batch."""

    records: dict[str, Record] = field(default_factory=dict)
    unpreparing: set[str] = field(default_factory=set)

    def of(self, identity: Identity) -> Record | None:
        """The record of exactly this claim."""
        record = self.records.get(identity.uid)
        return record if record is not None and record.identity == identity else None


@dataclass(slots=True)
class Change(Generic[T]):
    """What one decision does to the disk, in this order; `answer` is what the caller gets.

    `store` and `remove` are durable, `mark` and `unmark` only need to outlive the process. `before` runs first; a
    record that it returns takes the place of `store` and is the answer.
    """

    answer: T
    store: Record | None = None
    remove: Identity | None = None
    mark: Identity | None = None
    unmark: Identity | None = None
    before: Callable[[], Record | None] | None = None


@dataclass(slots=True)
class _Pending:
    decide: Callable[[View], Change[Any]]
    future: asyncio.Future[Any]
    error: BaseException | None = None
    change: Change[Any] | None = None
    directories: set[Path] = field(default_factory=set)


class Ledger:
    """Records below `directory`, guarded by the lock file beside it.

    Args:
        fs: file operations.
        directory: the driver's plugin directory.
        executor: where they run.
        clock: for waiting until another process releases the state lock.
        on_broken: told of each record that had to be quarantined; called from the executor.
    """

    def __init__(
        self,
        fs: Filesystem,
        directory: Path,
        executor: FileExecutor,
        clock: Clock,
        on_broken: Callable[[Broken], None] = lambda _: None,
    ) -> None:
        self.root = directory / "claims"
        self._fs = fs
        self._quarantine = directory / "quarantine"
        self._lock_path = directory / "state.lock"
        self._executor = executor
        self._clock = clock
        self._on_broken = on_broken
        self._lock: LockFile | None = None
        self._counter = -1
        self._view = View()
        self._durable: set[Path] = set()  # directories whose own names are known to be synced
        self._swept = False
        self._waiting: list[_Pending] = []
        self._worker: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Read all records, quarantine broken ones, and sweep up what a killed process left.

        Raises:
            NewerFormatError: a later release wrote one of them.
            OSError: the directory cannot be used.
        """
        await self._executor.run(self._prepare_directories)
        await self.apply(lambda _: Change(None, before=self._sweep))

    def close(self) -> None:
        """Let go of the lock file."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def open_lock(self) -> LockFile:
        """The lock file as another owner: claims lock their own bytes of it."""
        return self._fs.open_lock(self._lock_path)

    @property
    def _state(self) -> LockFile:
        if self._lock is None:
            self._lock = self._fs.open_lock(self._lock_path)
        return self._lock

    @property
    def records(self) -> Mapping[str, Record]:
        """The records as last seen, by UID: a copy, as another thread changes them. May be behind another process."""
        return self._view.records.copy()

    async def read(self) -> View:
        """The records as they are now."""
        return await self.apply(lambda view: Change(View(dict(view.records), set(view.unpreparing))))

    async def apply(self, decide: Callable[[View], Change[T]]) -> T:
        """Run `decide` on the records under the state lock and carry out what it says.

        `decide` runs in another thread, must not block, and may raise to change nothing.

        Raises:
            StateError: the disk refused; nothing or all of the change may be on it.
        """
        pending = _Pending(decide, asyncio.get_running_loop().create_future())
        self._waiting.append(pending)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(), name="ledger")
        result: T = await pending.future
        return result

    async def _work(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await self._lock_state()
                try:
                    await self._executor.run(self._run, batch)
                finally:
                    self._unlock_state()
            except BaseException as error:
                for pending in batch:
                    pending.error = pending.error or error
                if not isinstance(error, Exception):  # the end of this task, but nobody must wait for ever
                    raise
            finally:
                for pending in batch:
                    self._resolve(pending)

    @staticmethod
    def _resolve(pending: _Pending) -> None:
        if pending.future.done():
            return
        if isinstance(pending.error, OSError):
            state_error = StateError(f"cannot keep the claim's state: {pending.error}")
            state_error.__cause__ = pending.error
            pending.future.set_exception(state_error)
        elif pending.error is not None:
            pending.future.set_exception(pending.error)
        else:
            assert pending.change is not None
            pending.future.set_result(pending.change.answer)

    async def _lock_state(self) -> None:
        deadline = self._clock.monotonic() + LOCK_WAIT_SECONDS
        pause = _FIRST_PAUSE_SECONDS
        while not self._state.acquire(STATE_OFFSET, 1, blocking=False):
            if self._clock.monotonic() > deadline:
                raise StateError(f"another process has held {self._lock_path} for {LOCK_WAIT_SECONDS:.0f} s")
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        if not self._state.is_current():  # somebody replaced the file: the other process locks the new one
            self.close()
            await self._lock_state()

    def _unlock_state(self) -> None:
        if self._lock is not None:
            self._lock.release(STATE_OFFSET, 1)

    # From here on: in the executor, under the state lock.

    def _prepare_directories(self) -> None:
        """Synced even when they exist: whoever made them may have died before it synced them."""
        files.make_directories(self._fs, self.root.parent, 0o750)
        files.make_directories(self._fs, self.root, _DIRECTORY_MODE)
        self._fs.sync_directory(self.root.parent.parent)
        self._fs.sync_directory(self.root.parent)

    def _run(self, batch: list[_Pending]) -> None:
        counter = self._state.read_counter()
        if counter != self._counter:
            self._counter = -1
            self._view, whole = self._load()
            counter = self._state.read_counter()  # quarantine raises it
            if whole:
                self._counter = counter
        self._decide(batch)
        changing = [pending for pending in batch if pending.error is None and _changes(pending)]
        if not changing:
            return
        trusted = self._counter == counter
        self._counter = -1  # until all went well, the next batch reads the disk again
        self._state.write_counter(counter + 1)
        temporaries = self._write(changing)
        self._rename(changing, temporaries)
        self._sync_directories(changing)
        for pending in changing:
            if pending.error is None:
                self._tidy(pending)
            if pending.error is None:
                self._remember(pending)
        if trusted and all(pending.error is None for pending in changing):
            self._counter = counter + 1

    def _decide(self, batch: list[_Pending]) -> None:
        """A decision sees what earlier ones of its batch take, but not what they give back: that may yet fail."""
        draft = View(dict(self._view.records), set(self._view.unpreparing))
        for pending in batch:
            try:
                pending.change = pending.decide(draft)
            except Exception as error:  # noqa: BLE001 - the caller learns it
                pending.error = error
            else:
                _hold(pending.change, draft)

    def _write(self, changing: list[_Pending]) -> list[Path | None]:
        temporaries: list[Path | None] = []
        for pending in changing:
            temporaries.append(None)
            try:
                change = pending.change
                assert change is not None
                if change.before is not None and (record := change.before()) is not None:
                    change.store = change.answer = record
                if change.mark is not None:
                    self._mark(change.mark)
                if change.store is not None:
                    temporaries[-1] = self._create(change.store)
            except Exception as error:  # noqa: BLE001 - the caller learns it, the rest of the batch goes on
                pending.error = error
        self._sync(changing, temporaries)
        return temporaries

    def _create(self, record: Record) -> Path:
        path = journal.record_path(self.root, record.identity)
        temporary = path.with_name(f".{path.stem}.tmp")
        data = journal.encode(record)
        try:
            self._fs.create(temporary, data)
        except FileNotFoundError:
            self._make_directories(path.parent)
            self._fs.create(temporary, data)
        except FileExistsError:  # left by a process that died; the state lock says that nobody is using it
            self._fs.unlink(temporary)
            self._fs.create(temporary, data)
        return temporary

    def _make_directories(self, directory: Path) -> None:
        for path in (directory.parent, directory):
            with contextlib.suppress(FileExistsError):
                self._fs.mkdir(path, _DIRECTORY_MODE)
                self._durable.discard(path)

    def _sync(self, changing: list[_Pending], temporaries: list[Path | None]) -> None:
        work = [(p, path) for p, path in zip(changing, temporaries, strict=True) if path is not None]
        for pending, error in self._executor.spread(lambda item: self._fs.sync(item[1]), work):
            if error is not None:
                pending[0].error = error

    def _rename(self, changing: list[_Pending], temporaries: list[Path | None]) -> None:
        for pending, temporary in zip(changing, temporaries, strict=True):
            change = pending.change
            assert change is not None
            try:
                if pending.error is not None:
                    if temporary is not None:
                        self._fs.unlink(temporary)
                    continue
                if temporary is not None and change.store is not None:
                    target = journal.record_path(self.root, change.store.identity)
                    self._fs.rename(temporary, target)
                    pending.directories.update(self._uncertain(target))
                if change.remove is not None:
                    self._remove(pending, change.remove)
            except OSError as error:
                pending.error = pending.error or error

    def _uncertain(self, record: Path) -> set[Path]:
        """What to sync after renaming a record: its directory, and those above that somebody made and did not sync."""
        above = {path.parent for path in (record.parent, record.parent.parent) if path not in self._durable}
        return {record.parent, *above}

    def _remove(self, pending: _Pending, identity: Identity) -> None:
        path = journal.record_path(self.root, identity)
        if self._fs.unlink(path):
            pending.directories.add(path.parent)

    def _sync_directories(self, changing: list[_Pending]) -> None:
        failed = self._sync_all({path for pending in changing if pending.error is None for path in pending.directories})
        for pending in changing:
            for path in pending.directories & failed.keys():
                pending.error = pending.error or failed[path]
            if pending.error is None:
                self._durable.update(path for path in pending.directories if path.parent in pending.directories)

    def _sync_all(self, directories: set[Path]) -> dict[Path, Exception]:
        """The errors by directory. One that is gone needs no sync."""
        results = self._executor.spread(self._fs.sync_directory, sorted(directories))
        gone = (FileNotFoundError, NotADirectoryError)
        return {path: error for path, error in results if error is not None and not isinstance(error, gone)}

    def _tidy(self, pending: _Pending) -> None:
        """Markers and directories of claims that are gone. Only a marker beside a record may not stay: it counts."""
        change = pending.change
        assert change is not None
        try:
            if change.unmark is not None:
                self._fs.unlink(journal.marker_path(self.root, change.unmark))
            if change.remove is not None:
                self._remove_directory(change.remove)
        except OSError as error:
            pending.error = error if change.store is not None else None

    def _remove_directory(self, identity: Identity) -> None:
        """Ends with an error at the first directory that others still use."""
        directory = self.root / identity.namespace / identity.name
        for path in (directory, directory.parent):
            self._fs.rmdir(path)
            self._durable.discard(path)

    def _sweep(self) -> None:
        """Remove temporaries, markers without a record, and empty directories. Nobody else writes: we hold the lock.

        All directories are synced first: who changed them last may have died before it did.
        """
        directories = self._directories()
        for error in self._sync_all({self.root, *directories}).values():
            raise error
        self._durable, self._swept = set(directories), True
        for namespace in self._fs.list(self.root):
            for name in journal.children(self._fs, self.root / namespace):
                directory = self.root / namespace / name
                for file in journal.children(self._fs, directory):
                    if self._is_left_over(file):
                        self._fs.unlink(directory / file)
                self._remove_empty(directory)
            self._remove_empty(self.root / namespace)

    def _directories(self) -> list[Path]:
        namespaces = [self.root / name for name in self._fs.list(self.root)]
        return namespaces + [path / name for path in namespaces for name in journal.children(self._fs, path)]

    def _is_left_over(self, file: str) -> bool:
        if file.startswith(".") and file.endswith(".tmp"):
            return True
        return file.endswith(journal.MARKER) and file.removesuffix(journal.MARKER) not in self._view.records

    def _remove_empty(self, directory: Path) -> None:
        with contextlib.suppress(OSError):  # not empty, or not a directory
            self._fs.rmdir(directory)
            self._durable.discard(directory)

    def _remember(self, pending: _Pending) -> None:
        assert pending.change is not None
        _apply(pending.change, self._view)

    def _mark(self, identity: Identity) -> None:
        try:
            self._fs.create(journal.marker_path(self.root, identity), b"")
        except FileExistsError:
            return

    # Reading

    def _load(self) -> tuple[View, bool]:
        """All records, and whether each one could be read or was set aside: otherwise it is tried again."""
        view, whole = View(), True
        for identity in journal.identities(self._fs, self.root):
            path = journal.record_path(self.root, identity)
            try:
                view.records[identity.uid] = journal.decode(self._fs.read(path), path)
            except (journal.BrokenRecordError, OSError) as error:
                view.records[identity.uid] = _unknown(identity)
                broken = self._set_aside(identity, path, str(error))
                whole = whole and broken.kept is not None
                self._on_broken(broken)
            if self._fs.stat(journal.marker_path(self.root, identity)) is not None:
                view.unpreparing.add(identity.uid)
        return view, self._confirm(view) and whole

    def _confirm(self, view: View) -> bool:
        """Sync what another process changed, as it may have died before it did; whether that worked.

        Until then a claim counts as not prepared: an answer from its record might not outlive a power loss.
        """
        self._durable.clear()
        if not self._swept:  # the sweep will sync everything
            return True
        known = self._view.records
        changed = {uid for uid in known.keys() | view.records.keys() if known.get(uid) != view.records.get(uid)}
        places = {uid: self._places(view.records.get(uid) or known[uid]) for uid in changed}
        failed = self._sync_all(set().union(*places.values()))
        for uid in changed & view.records.keys():
            if places[uid] & failed.keys():
                view.records[uid] = msgspec.structs.replace(view.records[uid], phase=journal.PREPARING)
        return not failed

    def _places(self, record: Record) -> set[Path]:
        return set(journal.record_path(self.root, record.identity).parents[:3])

    def _set_aside(self, identity: Identity, path: Path, reason: str) -> Broken:
        try:
            return self._isolate(identity, path, reason)
        except OSError as error:  # a bad sector, a full disk: other claims must go on
            return Broken(identity, f"{reason}; setting it aside failed: {error}", None)

    def _isolate(self, identity: Identity, path: Path, reason: str) -> Broken:
        """Keep the bytes for people, and leave a record that says: something of this claim may be here."""
        files.make_directories(self._fs, self._quarantine, _DIRECTORY_MODE)
        kept = self._quarantine / f"{identity.uid}.{len(self._fs.list(self._quarantine))}"
        files.replace(self._fs, kept, self._fs.read(path))
        self._state.write_counter(self._state.read_counter() + 1)
        files.replace(self._fs, path, journal.encode(_unknown(identity)), durable=True)
        self._fs.sync_directory(path.parent)
        return Broken(identity, reason, kept)


def _unknown(identity: Identity) -> Record:
    return Record(
        namespace=identity.namespace, name=identity.name, uid=identity.uid, phase=journal.PREPARING, broken=True
    )


def _changes(pending: _Pending) -> bool:
    change = pending.change
    if change is None:
        return False
    parts: Iterable[object] = (change.store, change.remove, change.mark, change.unmark, change.before)
    return any(part is not None for part in parts)


def _hold(change: Change[Any], view: View) -> None:
    if change.store is not None:
        view.records[change.store.uid] = change.store
    if change.mark is not None:
        view.unpreparing.add(change.mark.uid)


def _apply(change: Change[Any], view: View) -> None:
    _hold(change, view)
    if change.unmark is not None:
        view.unpreparing.discard(change.unmark.uid)
    if change.remove is not None:
        view.records.pop(change.remove.uid, None)
