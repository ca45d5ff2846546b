"""What a write came to."""

import msgspec

from drakit.simulator.apiserver.storage import Record

__all__ = ["Outcome"]


class Outcome(msgspec.Struct, frozen=True):
    """A write that took place (or would have, in a dry run)."""

    record: Record
    status: int = 200
    warnings: tuple[str, ...] = ()
