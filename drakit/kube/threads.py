"""Blocking calls (name resolution, files, exec plugins) in daemon threads.

Neither the event loop's default executor nor one of our own: their threads are joined when the process ends, and a name
server that does not answer would hold it.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(name: str, function: Callable[..., T], *args: object) -> T:
    """Call `function(*args)` in a thread of its own; a cancelled caller leaves it behind.

    Args:
        name: of the thread.
        function: may block, and raise.
        args: its arguments.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # T may be None

    def body() -> None:
        result, error = None, None
        try:
            result = function(*args)
        except BaseException as caught:  # noqa: BLE001 - it belongs to the caller
            error = caught
        try:
            loop.call_soon_threadsafe(finish, result, error)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    threading.Thread(target=body, name=name, daemon=True).start()
    return await future
