"""Scheduler and controllers as pure decisions over drakit.allocation.

`claims`, `garbage` and `scheduling` decide over plain objects and need neither aiohttp nor grpc; `loop` reads from and
writes to an API server and is imported on its own.
"""

from drakit.simulator.controlplane.claims import (
    FINALIZER,
    POD_CLAIM_ANNOTATION,
    MissingTemplateError,
    generate_claims,
    generate_name,
    sync_claim,
)
from drakit.simulator.controlplane.garbage import is_garbage
from drakit.simulator.controlplane.scheduling import Bind, Snapshot, UnschedulableError, schedule

__all__ = [
    "FINALIZER",
    "POD_CLAIM_ANNOTATION",
    "Bind",
    "MissingTemplateError",
    "Snapshot",
    "UnschedulableError",
    "generate_claims",
    "generate_name",
    "is_garbage",
    "schedule",
    "sync_claim",
]
