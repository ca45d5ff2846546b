"""Objects, revisions and history: what etcd and the watch cache are to a real API server.

One revision counts all writes. Stored objects are never changed in place, so that lists at an older revision and
watches can share them.
"""

import asyncio
from bisect import bisect_right
from typing import Any, Literal

import msgspec

from drakit.simulator.apiserver.resources import Kind

__all__ = ["Change", "Compacted", "History", "Key", "Record", "Storage"]

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for cluster-scoped objects."""

HISTORY_LIMIT = 20_000
"""Changes kept per kind; the older half is compacted when it is exceeded."""


class Record(msgspec.Struct, eq=False):
    """One stored object at one revision. `encoded` caches its JSON per API version (without kind and apiVersion)."""

    key: Key
    revision: int
    object: dict[str, Any]
    encoded: dict[str, bytes] = msgspec.field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, Any]:
        """The object's metadata."""
        metadata: dict[str, Any] = self.object["metadata"]
        return metadata


class Change(msgspec.Struct, frozen=True, eq=False):
    """One write: the new record (or the last one, at the revision of its deletion) and what was there before."""

    revision: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    record: Record
    previous: Record | None


class Compacted(Exception):  # noqa: N818  (a state of the history, not a fault)
    """The history no longer reaches back to the revision that was asked for; `oldest` is the first that it holds."""

    def __init__(self, requested: int, oldest: int) -> None:
        """Keep both revisions."""
        super().__init__(f"revision {requested} is compacted, the oldest is {oldest}")
        self.requested = requested
        self.oldest = oldest


class History:
    """The changes of one kind in order, and who waits for the next one."""

    def __init__(self) -> None:
        """Start empty, reaching back to revision 0."""
        self._changes: list[Change] = []
        self._revisions: list[int] = []
        self._waiting: set[asyncio.Event] = set()
        self._trimmed = 0
        self.oldest = 0

    def append(self, change: Change) -> None:
        """Add the newest change and wake all who wait."""
        self._changes.append(change)
        self._revisions.append(change.revision)
        if len(self._revisions) > HISTORY_LIMIT:
            self._trim(HISTORY_LIMIT // 2)
        self.wake()

    def _trim(self, count: int) -> None:
        self._trimmed = self._revisions[count - 1]
        del self._changes[:count], self._revisions[:count]
        self.compact(self._trimmed)

    def wake(self) -> None:
        """Let every waiter look again."""
        for event in self._waiting:
            event.set()

    def after(self, revision: int, *, following: bool = False) -> list[Change]:
        """All changes later than `revision`.

        An open watch (`following`) is not hurt by a compaction: a real server's watch cache has told it already.

        Raises:
            Compacted: some of them are no longer held.
        """
        if revision < (self._trimmed if following else self.oldest):
            raise Compacted(revision, self.oldest)
        return self._changes[bisect_right(self._revisions, revision) :]

    def compact(self, revision: int) -> None:
        """Answer no question about the time before `revision` any more."""
        self.oldest = max(self.oldest, revision)

    def subscribe(self) -> asyncio.Event:
        """An event that is set after each change until `unsubscribe`."""
        event = asyncio.Event()
        self._waiting.add(event)
        return event

    def unsubscribe(self, event: asyncio.Event) -> None:
        """Stop waking `event`."""
        self._waiting.discard(event)

    @property
    def waiting(self) -> int:
        """How many watches are open."""
        return len(self._waiting)


class Storage:
    """All objects of the server by kind and key."""

    def __init__(self) -> None:
        """Start empty at revision 1 (0 means "any" in requests)."""
        self.revision = 1
        self._records: dict[str, dict[Key, Record]] = {}
        self._histories: dict[str, History] = {}

    def history(self, kind: Kind) -> History:
        """The changes of `kind`."""
        return self._histories.setdefault(kind.qualified, History())

    def get(self, kind: Kind, key: Key) -> Record | None:
        """The current record, or None."""
        return self._records.get(kind.qualified, {}).get(key)

    def put(self, kind: Kind, key: Key, obj: dict[str, Any]) -> Record:
        """Store `obj` (owned by the storage from now on) at the next revision."""
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        records = self._records.setdefault(kind.qualified, {})
        previous = records.get(key)
        record = Record(key, self.revision, obj)
        records[key] = record
        self.history(kind).append(
            Change(self.revision, "MODIFIED" if previous is not None else "ADDED", record, previous)
        )
        return record

    def delete(self, kind: Kind, key: Key) -> Record:
        """Remove the object; returns its last state, carrying the revision of the deletion.

        Raises:
            KeyError: there is no such object.
        """
        previous = self._records[kind.qualified].pop(key)
        self.revision += 1
        metadata = {**previous.metadata, "resourceVersion": str(self.revision)}
        record = Record(key, self.revision, {**previous.object, "metadata": metadata})
        self.history(kind).append(Change(self.revision, "DELETED", record, previous))
        return record

    def records(self, kind: Kind, namespace: str | None = None) -> list[Record]:
        """Current records in key order; `namespace` None means all."""
        return _ordered(self._records.get(kind.qualified, {}), namespace)

    def records_at(self, kind: Kind, revision: int, namespace: str | None = None) -> list[Record]:
        """The records as they were at `revision`.

        Raises:
            Compacted: the history no longer reaches back so far.
        """
        if revision >= self.revision:
            return self.records(kind, namespace)
        then = dict(self._records.get(kind.qualified, {}))
        for change in reversed(self.history(kind).after(revision)):
            if change.previous is None:
                del then[change.record.key]
            else:
                then[change.record.key] = change.previous
        return _ordered(then, namespace)

    def compact(self, revision: int | None = None) -> int:
        """Forget the history up to `revision` (now, when None) for every kind; returns the revision."""
        revision = self.revision if revision is None else revision
        for history in self._histories.values():
            history.compact(revision)
        return revision

    def is_empty(self, namespace: str) -> bool:
        """Whether no object lives in `namespace`."""
        return all(key[0] != namespace for records in self._records.values() for key in records)

    def next_revision(self, at_least: int) -> None:
        """Move the revision forward, for tests that continue recorded numbers."""
        self.revision = max(self.revision, at_least)


def _ordered(records: dict[Key, Record], namespace: str | None) -> list[Record]:
    if namespace is None:
        return [records[key] for key in sorted(records)]
    return [records[key] for key in sorted(records) if key[0] == namespace]
