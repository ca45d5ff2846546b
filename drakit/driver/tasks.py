"""One task per claim: calls of the same kind join it, calls of the opposite kind queue behind it.

The kubelet cancels a call at 45 s, or when it restarts, and calls again while the old handler still runs (recorded 07b,
10, 12, 27): so no call owns work. The task does, and goes on without its callers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

__all__ = ["ClaimTasks", "Kind"]

T = TypeVar("T")
Kind: TypeAlias = Literal["prepare", "unprepare", "restore"]


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: Kind
    task: asyncio.Task[Any]


class ClaimTasks:
    """Running and queued work by claim UID."""

    def __init__(self) -> None:
        self._last: dict[str, _Entry] = {}
        self._all: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._all)

    def submit(self, uid: str, kind: Kind, work: Callable[[bool], Awaitable[T]]) -> asyncio.Future[T]:
        """Join the last queued work on `uid` if it is of this `kind`, else queue `work` behind it.

        `work` is called with whether it had to wait. The future may be cancelled: that does not reach the task.
        """
        last = self._last.get(uid)
        if last is None or last.kind != kind or last.task.done():
            behind = None if last is None or last.task.done() else last.task
            task = asyncio.create_task(_after(behind, work), name=f"{kind} {uid}")
            last = self._last[uid] = _Entry(kind, task)
            self._all.add(task)
            task.add_done_callback(lambda done: self._forget(uid, done))
        return asyncio.shield(last.task)

    def kind(self, uid: str) -> Kind | None:
        """What the last queued work on `uid` is; None when there is none."""
        entry = self._last.get(uid)
        return None if entry is None or entry.task.done() else entry.kind

    def all(self) -> tuple[asyncio.Task[Any], ...]:
        """All tasks that are not done."""
        return tuple(self._all)

    async def drain(self) -> None:
        """Wait until nothing is left to do."""
        while self._all:
            await asyncio.wait(self._all)

    def _forget(self, uid: str, task: asyncio.Task[Any]) -> None:
        self._all.discard(task)
        if (entry := self._last.get(uid)) is not None and entry.task is task:
            del self._last[uid]
        if not task.cancelled():
            task.exception()  # every caller may have gone: not an error of the event loop


async def _after(behind: asyncio.Task[Any] | None, work: Callable[[bool], Awaitable[T]]) -> T:
    if behind is not None:
        await asyncio.wait([behind])
    return await work(behind is not None)
