"""A local copy of a collection, kept by list and watch, and the changes that happen to it."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any, Self

from drakit.clock import SYSTEM, Clock
from drakit.kube import errors
from drakit.kube.backoff import Backoff
from drakit.kube.client import Client, Event
from drakit.kube.resources import Resource

__all__ = ["Change", "Key", "Reflector", "key"]

Object = dict[str, Any]
Key = tuple[str, str]
"""Namespace ("" for cluster-scoped objects) and name."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one object: type ADDED, MODIFIED or DELETED, the object, and what it was before.

    For DELETED, `object` is the last state the server told, or the last known one when a list found the deletion.
    """

    type: str
    object: Object
    old: Object | None


def key(obj: Object) -> Key:
    """The identity of an object in its collection."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class Reflector:
    """Lists and watches one collection for ever; an async context manager that runs in a task of its own.

    The store is replaced by lists (at start, and after 410) and updated by events; both appear as `Change`s, so a
    consumer sees no difference. An object that is deleted and created again between two lists shows up as DELETED and
    ADDED, told apart by its UID. Failures are retried for ever with jittered backoff and Retry-After.

    Args:
        client: an open client.
        resource: the collection.
        namespace: None = all.
        field_selector: as the API server understands it.
        label_selector: likewise.
        clock: time for backoff.
        jitter: source of numbers in [0, 1).

    Attributes:
        listeners: called in the reflector's task with each Change, and with None after each list and bookmark; they
            must not block. For consumers that look at the store and only want to know when.
        version: resource version up to which the store is known to be complete; "" before the first list.
        synced: set once the first list is in the store.
        lists: lists done; the first one included.
        failure: the last error while the reflector cannot list or watch; None when all is well.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        namespace: str | None = None,
        field_selector: str | None = None,
        label_selector: str | None = None,
        clock: Clock = SYSTEM,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.synced = asyncio.Event()
        self.listeners: list[Callable[[Change | None], None]] = []
        self.version = ""
        self.lists = 0
        self.failure: Exception | None = None
        self._client, self._resource, self._clock = client, resource, clock
        self._namespace, self._field_selector, self._label_selector = namespace, field_selector, label_selector
        self._backoff = Backoff(jitter=jitter)
        self._store: dict[Key, Object] = {}
        self._subscribers: list[asyncio.Queue[Change]] = []
        self._current = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run(), name=f"reflector {self._resource.plural}")
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @property
    def store(self) -> Mapping[Key, Object]:
        """The objects by namespace and name; read-only, always the newest state known."""
        return MappingProxyType(self._store)

    def __iter__(self) -> Iterator[Object]:
        return iter(list(self._store.values()))

    def get(self, name: str, namespace: str = "") -> Object | None:
        """One object of the store."""
        return self._store.get((namespace, name))

    def changes(self) -> AsyncGenerator[Change, None]:
        """Everything in the store as ADDED, then every change, for ever. Any number of consumers may iterate.

        It begins with this call, not with the first step: nothing that happens in between is missed.
        """
        queue: asyncio.Queue[Change] = asyncio.Queue()
        for obj in self._store.values():
            queue.put_nowait(Change("ADDED", obj, None))
        self._subscribers.append(queue)
        return self._follow(queue)

    async def _follow(self, queue: asyncio.Queue[Change]) -> AsyncGenerator[Change, None]:
        try:
            while True:
                yield await queue.get()
        finally:
            self._subscribers.remove(queue)

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if not self._current:
                    await self._list()
                await self._watch()
                self.failure = None
            except errors.Gone:
                # History is gone: the list brings what the watch could not. Without a delay, but for repeated ones.
                self._current = False
                if self._backoff.failures:
                    await self._pause(None)
                else:
                    self._backoff.failures = 1
            except (errors.ApiError, errors.CredentialsError) as error:
                if isinstance(error, errors.NotServed):
                    self._current = False  # the cluster stopped serving this version: the list finds another
                await self._pause(error)

    async def _pause(self, error: errors.ApiError | errors.CredentialsError | None) -> None:
        if error is not None:
            self.failure = error
            _log.warning("cannot list or watch %s: %s", self._resource.plural, error)
        await self._clock.sleep(self._backoff.delay(getattr(error, "retry_after", None)))

    async def _list(self) -> None:
        found = await self._client.list(
            self._resource,
            namespace=self._namespace,
            field_selector=self._field_selector,
            label_selector=self._label_selector,
        )
        fresh = {key(item): item for item in found["items"]}
        for gone in [k for k, old in self._store.items() if k not in fresh or _uid(fresh[k]) != _uid(old)]:
            old = self._store.pop(gone)
            self._tell(Change("DELETED", old, old))
        for k, item in fresh.items():
            self._put(k, item)
        self.version = found["metadata"].get("resourceVersion", "")
        self._current = True
        self.lists += 1
        self.failure = None
        self.synced.set()
        self._tell(None)

    async def _watch(self) -> None:
        started = self._clock.monotonic()
        heard = False
        async for event in self._client.watch(
            self._resource,
            namespace=self._namespace,
            field_selector=self._field_selector,
            label_selector=self._label_selector,
            resource_version=self.version,
        ):
            heard = True
            self._backoff.reset()
            self.failure = None
            self._apply(event)
        if not heard and self._clock.monotonic() - started < 1.0:
            # A proxy that ends every watch at once must not make us spin.
            await self._pause(None)

    def _apply(self, event: Event) -> None:
        self.version = event.object.get("metadata", {}).get("resourceVersion") or self.version
        if event.type == "BOOKMARK":
            self._tell(None)
            return
        k = key(event.object)
        old = self._store.get(k)
        if event.type == "DELETED":
            self._store.pop(k, None)
            if old is not None:
                self._tell(Change("DELETED", event.object, old))
            return
        if old is not None and _uid(old) != _uid(event.object):
            del self._store[k]
            self._tell(Change("DELETED", old, old))
        self._put(k, event.object)

    def _put(self, k: Key, obj: Object) -> None:
        old = self._store.get(k)
        if old is not None and _version(old) == _version(obj) is not None:
            return
        self._store[k] = obj
        self._tell(Change("ADDED" if old is None else "MODIFIED", obj, old))

    def _tell(self, change: Change | None) -> None:
        for listener in self.listeners:
            listener(change)
        if change is not None:
            for queue in self._subscribers:
                queue.put_nowait(change)


def _uid(obj: Object) -> str:
    uid: str = obj["metadata"].get("uid", "")
    return uid


def _version(obj: Object) -> str | None:
    version: str | None = obj["metadata"].get("resourceVersion")
    return version or None
