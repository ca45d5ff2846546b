"""Why claims do not fit on a node: per device and rule, minimal conflicts, smallest changes. Reads the search's rules.

Only what turns questions into reports lives here; the rules themselves are those of `drakit.allocation`.
"""

from drakit.allocation.explain.explanation import explain
from drakit.allocation.explain.report import (
    Change,
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
    "explain",
]
