"""Publication of ResourceSlices: what should be there (pure), what is there, and the task that brings them together.

`decision`, `layout`, `naming`, `taints`, `features`, `normalise` and `checking` are pure functions of values;
`observation` and `work` remember; `publisher` decides when, `writing` talks to the API server. Around it: `cluster`,
`inventory_file` and `guard` for cluster-wide pools, `cleanup` for their end.
"""

from drakit.driver.publication.decision import Actions, Desired, Write, decide
from drakit.driver.publication.features import DEFAULT_FALLBACKS, Fallback
from drakit.driver.publication.layout import SliceContent, cut
from drakit.driver.publication.metrics import Metrics
from drakit.driver.publication.normalise import Action, Adjustment, Normaliser, Policy
from drakit.driver.publication.publisher import Publisher
from drakit.driver.publication.resources import DriverResources, Owner, Pool, PoolSlice
from drakit.driver.publication.slices import ObservedSlice, Stamp
from drakit.driver.publication.work import PoolState, PoolStatus
from drakit.driver.publication.writing import Dropped

__all__ = [
    "DEFAULT_FALLBACKS",
    "Action",
    "Actions",
    "Adjustment",
    "Desired",
    "DriverResources",
    "Dropped",
    "Fallback",
    "Metrics",
    "Normaliser",
    "ObservedSlice",
    "Owner",
    "Policy",
    "Pool",
    "PoolSlice",
    "PoolState",
    "PoolStatus",
    "Publisher",
    "SliceContent",
    "Stamp",
    "Write",
    "cut",
    "decide",
]
