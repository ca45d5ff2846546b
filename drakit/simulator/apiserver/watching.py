"""Watches: the events that one request sees, as JSON lines."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Literal

import msgspec

from drakit.clock import Clock
from drakit.simulator.apiserver.errors import Refused, expired, internal
from drakit.simulator.apiserver.options import ListOptions
from drakit.simulator.apiserver.paths import Target
from drakit.simulator.apiserver.selectors import Selector
from drakit.simulator.apiserver.storage import Change, Compacted, Record, Storage

__all__ = ["BOOKMARK_INTERVAL", "Watch"]

BOOKMARK_INTERVAL = 60.0
"""Seconds between bookmarks of a watch that sees no events; near its timeout they come every second."""
_LAST_BOOKMARKS = 2.0
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_EMPTY: dict[str, dict[str, Any]] = {
    "ResourceSlice": {"spec": {"driver": "", "pool": {"name": "", "generation": 0, "resourceSliceCount": 0}}},
    "ResourceClaim": {"spec": {"devices": {}}, "status": {}},
    "ResourceClaimTemplate": {"spec": {"metadata": {}, "spec": {"devices": {}}}},
    "DeviceClass": {"spec": {}},
    "DeviceTaintRule": {"spec": {"taint": {"key": "", "effect": ""}}, "status": {}},
    "Pod": {"spec": {"containers": None}, "status": {}},
    "Node": {"spec": {}, "status": {}},
    "Namespace": {"spec": {}, "status": {}},
}
"""What an object without content carries, because those fields are always written."""

Show = Callable[[Record], bytes]
"""A record as the JSON object of an event."""


class Watch:
    """One open watch."""

    def __init__(
        self, storage: Storage, target: Target, options: ListOptions, *, select: Selector, show: Show, clock: Clock
    ) -> None:
        """Prepare the watch; `lines` runs it."""
        self._storage = storage
        self._history = storage.history(target.kind)
        self._target = target
        self._options = options
        self._select = select
        self._show = show
        self._clock = clock
        self._dropped = False
        self._event: asyncio.Event | None = None
        self._alarm: asyncio.Future[None] | None = None
        self._waiting = False
        self._told = -1

    def drop(self) -> None:
        """End the stream as a broken connection would."""
        self._dropped = True
        if self._event is not None:
            self._event.set()

    @property
    def is_idle(self) -> bool:
        """Whether every change so far has been looked at and sent."""
        return self._waiting and (self._event is None or not self._event.is_set())

    @property
    def dropped(self) -> bool:
        """Whether `drop` was called."""
        return self._dropped

    def start(self) -> int:
        """Where the watch begins.

        Raises:
            Refused: 500 for an unparsable resourceVersion.
        """
        text = self._options.resource_version
        if text and not text.isdecimal():
            raise internal(
                f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
            )
        return int(text or 0)

    async def lines(self, deadline: float) -> AsyncGenerator[bytes, None]:
        """The events until `deadline` (monotonic), until it is dropped or its history is gone."""
        self._event = self._history.subscribe()
        try:
            async for line in self._lines(deadline):
                yield line
        finally:
            self._history.unsubscribe(self._event)
            if self._alarm is not None:
                self._alarm.cancel()

    async def _lines(self, deadline: float) -> AsyncIterator[bytes]:
        cursor = self.start()
        wants_initial = self._options.send_initial_events
        if wants_initial or (cursor == 0 and wants_initial is None):
            cursor = self._storage.revision
            for record in self._initial():
                yield _line("ADDED", self._show(record))
            if wants_initial and self._options.allow_bookmarks:
                yield self._bookmark(cursor, {_INITIAL_EVENTS_END: "true"})
        elif cursor < self._history.oldest:
            yield _gone(cursor, self._history.oldest)
            return
        async for line in self._changes(cursor, deadline):
            yield line

    def _initial(self) -> list[Record]:
        records = self._storage.records(self._target.kind, self._target.namespace)
        return [record for record in records if self._select(record.object)]

    async def _changes(self, cursor: int, deadline: float) -> AsyncIterator[bytes]:
        assert self._event is not None
        self._told = cursor
        mark = self._next_bookmark(deadline)
        while not self._dropped:
            self._event.clear()
            try:
                changes = self._history.after(cursor, following=True)
            except Compacted as gone:
                yield _gone(gone.requested, gone.oldest)
                return
            for change in changes:
                cursor = change.revision
                line = self._event_line(change)
                if line is not None:
                    self._told = cursor
                    yield line
                if self._dropped:
                    return
            now = self._clock.monotonic()
            if now >= deadline:
                return
            # A bookmark must not overtake a change that came while the lines above were sent.
            if now >= mark and not self._event.is_set():
                mark = self._next_bookmark(deadline)
                if self._options.allow_bookmarks and self._storage.revision > self._told:
                    yield self._bookmark(self._storage.revision)
            await self._wait(min(deadline, mark) - now)

    async def _wait(self, seconds: float) -> None:
        """Until the next change, or until `seconds` are over."""
        assert self._event is not None
        if self._alarm is None or self._alarm.done():
            self._alarm = asyncio.ensure_future(self._ring(seconds))
        self._waiting = True
        try:
            await self._event.wait()
        finally:
            self._waiting = False

    async def _ring(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        if self._event is not None:
            self._event.set()

    def _next_bookmark(self, deadline: float) -> float:
        now = self._clock.monotonic()
        return min(now + BOOKMARK_INTERVAL, max(deadline - _LAST_BOOKMARKS, now + 1.0))

    def _event_line(self, change: Change) -> bytes | None:
        """The event as this watch sees it: an object that leaves its selection is deleted for it."""
        if self._target.namespace is not None and change.record.key[0] != self._target.namespace:
            return None
        before = change.previous is not None and self._select(change.previous.object)
        if change.type == "DELETED":
            return _line("DELETED", self._show(change.record)) if before else None
        now = self._select(change.record.object)
        if now:
            return _line("MODIFIED" if before else "ADDED", self._show(change.record))
        if before and change.previous is not None:
            return _line("DELETED", self._show(_at(change.previous, change.revision)))
        return None

    def _bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        self._told = revision
        kind = self._target.kind
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        obj = {"kind": kind.kind, "apiVersion": self._target.api_version, "metadata": metadata}
        return _line("BOOKMARK", msgspec.json.encode({**obj, **_EMPTY.get(kind.kind, {})}))


def _at(record: Record, revision: int) -> Record:
    metadata = {**record.metadata, "resourceVersion": str(revision)}
    return Record(record.key, revision, {**record.object, "metadata": metadata})


def _line(type_: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"], obj: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + obj + b"}\n"


def _gone(requested: int, oldest: int) -> bytes:
    status: Refused = expired(f"too old resource version: {requested} ({oldest})")
    return _line("ERROR", msgspec.json.encode(status.body()))
