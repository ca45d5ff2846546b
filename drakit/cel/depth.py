"""Deep nesting: a second try on a thread of its own, whose stack is empty whatever the caller's depth is."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["deeply"]

Result = TypeVar("Result")


def deeply(call: Callable[[], Result]) -> Result:
    """Call, and once more with a fresh stack when this one is too deep.

    Raises:
        RecursionError: It is too deep even so.
    """
    try:
        return call()
    except RecursionError:
        pass
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            failures.append(error)

    thread = threading.Thread(target=run, name="cel-deep", daemon=True)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]
