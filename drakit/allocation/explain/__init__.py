"""Why claims do not fit on a node: per device and rule, minimal conflicts, smallest changes. Reads the search's rules.

Only what turns questions into reports lives here; the rules themselves are those of `drakit.allocation`. The entry is
`Allocator.explain`; this module names the parts of its answer and loads nothing of what makes them.
"""

from drakit.allocation.explain.report import (
    Change,
    Chosen,
    ClaimReport,
    Conflict,
    ConstraintRef,
    DeviceReport,
    DropConstraint,
    DropSelector,
    FreeDevice,
    LowerCapacity,
    LowerCount,
    PoolReport,
    Report,
    RequestRef,
    RequestReport,
    SliceReport,
    Tolerate,
)

__all__ = [
    "Change",
    "Chosen",
    "ClaimReport",
    "Conflict",
    "ConstraintRef",
    "DeviceReport",
    "DropConstraint",
    "DropSelector",
    "FreeDevice",
    "LowerCapacity",
    "LowerCount",
    "PoolReport",
    "Report",
    "RequestRef",
    "RequestReport",
    "SliceReport",
    "Tolerate",
]
