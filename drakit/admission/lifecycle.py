"""What happens to an object around validation: who owns which part, generated names, generation, status, pruning.

Source: spec/resourceslice.md 2.9 and 4.4, spec/apiserver.md 18, 19, 24, Decoding (last items).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from drakit.admission import pruning, semantics
from drakit.admission.validation import status as status_rules

if TYPE_CHECKING:
    from drakit.admission.policy import Policy
    from drakit.admission.request import Request

__all__ = ["prepare_create", "prepare_status_update", "prepare_update"]

Json = dict[str, Any]

_LONGEST_PREFIX: Final = 63 - 5
_COUNTS_GENERATIONS: Final = frozenset({"ResourceSlice", "DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest"})
_SERVER_MADE: Final = (
    "selfLink",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_KEPT: Final = (
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_CHECKED: Final = frozenset({"deletionTimestamp", "deletionGracePeriodSeconds"})
"""Setting these where they are absent is an error and not ignored."""


def prepare_create(obj: Json, kind: str, request: Request, policy: Policy, *, namespaced: bool) -> None:
    """Make a new object the server's own: names, no status, generation 1, no disabled fields."""
    meta = obj["metadata"]
    for name in _SERVER_MADE:
        meta.pop(name, None)
    meta.pop("namespace", None)
    if namespaced and request.namespace:
        meta["namespace"] = request.namespace
    if kind in _COUNTS_GENERATIONS:
        meta["generation"] = 1
    if meta.get("generateName") and not meta.get("name"):
        meta["name"] = meta["generateName"][:_LONGEST_PREFIX] + request.suffix
    if kind in {"ResourceClaim", "DeviceTaintRule"}:
        obj["status"] = {}
    elif kind == "ResourcePoolStatusRequest":
        obj.pop("status", None)
    pruning.prune(obj, None, kind, policy)


def prepare_update(obj: Json, old: Json, kind: str, policy: Policy, now: str) -> None:
    """Merge a new spec and metadata with what an update cannot touch."""
    _keep_metadata(obj["metadata"], old["metadata"])
    if "status" in old:
        obj["status"] = old["status"]
    else:
        obj.pop("status", None)
    if kind == "DeviceTaintRule":
        _renew_time(obj["spec"]["taint"], old["spec"]["taint"], now)
    if kind == "DeviceClass":  # the only kind that compares after dropping fields
        pruning.prune(obj, old, kind, policy)
    if kind in _COUNTS_GENERATIONS and not semantics.equal(obj["spec"], old["spec"], f"{kind}Spec"):
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    pruning.prune(obj, old, kind, policy)


def _renew_time(taint: Json, old: Json, now: str) -> None:
    """A changed effect with an unchanged time starts a new time."""
    if taint["effect"] != old["effect"] and taint.get("timeAdded") == old.get("timeAdded"):
        taint["timeAdded"] = now


def prepare_status_update(obj: Json, old: Json, kind: str, policy: Policy) -> None:
    """Take only the status; devices that were deallocated with this update leave it silently."""
    for name in ("metadata", "spec"):
        kept = copy.deepcopy(old[name])
        if name == "metadata":
            _keep_sent_metadata(obj["metadata"], kept)
        obj[name] = kept
    if kind == "ResourceClaim":
        pruning.prune(obj, old, kind, policy)
        _drop_deallocated(obj["status"], old.get("status", {}))


def _keep_sent_metadata(sent: Json, kept: Json) -> None:
    """The managed fields are the one part of the metadata that a status update may bring."""
    if sent.get("managedFields"):
        kept["managedFields"] = sent["managedFields"]


def _keep_metadata(meta: Json, old: Json) -> None:
    meta.pop("selfLink", None)
    for name in _KEPT:
        if name in old:
            meta[name] = old[name]
        elif name not in _CHECKED:
            meta.pop(name, None)


def _drop_deallocated(status: Json, old: Json) -> None:
    """Entries of devices that the old allocation had and the new one has not."""
    devices = status.get("devices")
    if not devices:
        return
    before = {status_rules.device_id(each) for each in status_rules.results(old.get("allocation"))}
    after = {status_rules.device_id(each) for each in status_rules.results(status.get("allocation"))}
    status["devices"] = [each for each in devices if status_rules.device_id(each) not in before - after]
