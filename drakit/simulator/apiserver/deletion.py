"""Deletion: at once, after a grace period, or when the last finalizer goes; and namespaces with their content."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from drakit.simulator.apiserver.errors import conflict
from drakit.simulator.apiserver.options import DeleteOptions
from drakit.simulator.apiserver.outcomes import Outcome
from drakit.simulator.apiserver.paths import Target
from drakit.simulator.apiserver.resources import NAMESPACES, Kind, Registry
from drakit.simulator.apiserver.storage import Record, Storage
from drakit.simulator.apiserver.times import timestamp

__all__ = ["Deletion", "is_finished"]

_DEFAULT_GRACE = 30
"""Seconds that a pod has to end when it does not say."""


class Deletion:
    """Removes objects from `storage` by the rules of their kinds."""

    def __init__(self, storage: Storage, registry: Registry, now: Callable[[], datetime]) -> None:
        """Delete from `storage`; `registry` tells what lives in namespaces."""
        self._storage = storage
        self._registry = registry
        self._now = now

    def delete(self, target: Target, existing: Record, options: DeleteOptions) -> Outcome:
        """Delete the object, or mark it when finalizers or a grace period hold it.

        Raises:
            Refused: 409 (preconditions).
        """
        _check_preconditions(target, existing, options)
        grace = _grace_seconds(target.kind, existing, options)
        if not existing.metadata.get("finalizers") and not grace and target.kind is not NAMESPACES:
            return Outcome(existing if options.dry_run else self.remove(target.kind, existing))
        if not _shortens(existing, grace):
            return Outcome(existing)
        obj = self._marked(target.kind, existing, grace)
        if options.dry_run:
            return Outcome(Record(existing.key, existing.revision, obj))
        record = self._storage.put(target.kind, existing.key, obj)
        if target.kind is NAMESPACES:
            self._empty_namespace(existing.key[1])
        return Outcome(record)

    def remove(self, kind: Kind, existing: Record) -> Record:
        """Take the object out of the storage; returns its last state at the revision of the deletion."""
        tombstone = self._storage.delete(kind, existing.key)
        if existing.key[0]:
            self.settle_namespace(existing.key[0])
        return tombstone

    def settle_namespace(self, name: str) -> None:
        """Remove a namespace that is being deleted, once nothing holds it and nothing is left in it."""
        record = self._storage.get(NAMESPACES, ("", name))
        if record is None or not record.metadata.get("deletionTimestamp") or record.metadata.get("finalizers"):
            return
        if self._storage.is_empty(name):
            self._storage.delete(NAMESPACES, ("", name))

    def _empty_namespace(self, name: str) -> None:
        """What the namespace controller does: delete all content, then the namespace itself."""
        for kind in self._registry.kinds:
            for record in self._storage.records(kind, name) if kind.namespaced else ():
                self.delete(Target(kind, kind.storage, name, record.key[1]), record, DeleteOptions())
        self.settle_namespace(name)

    def _marked(self, kind: Kind, existing: Record, grace: int) -> dict[str, Any]:
        metadata = dict(existing.metadata)
        is_first = "deletionTimestamp" not in metadata
        metadata["deletionTimestamp"] = timestamp(self._now() + timedelta(seconds=grace))
        if kind is NAMESPACES:
            status = {**(existing.object.get("status") or {}), "phase": "Terminating"}
            return {**existing.object, "metadata": metadata, "status": status}
        metadata["deletionGracePeriodSeconds"] = grace
        if is_first and kind.has_generation:
            metadata["generation"] = metadata.get("generation", 1) + 1
        return {**existing.object, "metadata": metadata}


def is_finished(obj: dict[str, Any]) -> bool:
    """Whether an update took what held an object that is being deleted."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers") or obj["kind"] == "Namespace":
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _check_preconditions(target: Target, existing: Record, options: DeleteOptions) -> None:
    name, metadata = target.name or "", existing.metadata
    if options.uid and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(target.kind, name, why, of_kind=True)
    if options.resource_version and options.resource_version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({metadata['resourceVersion']}). The object might have been modified"
        )
        raise conflict(target.kind, name, why, of_kind=True)


def _grace_seconds(kind: Kind, existing: Record, options: DeleteOptions) -> int:
    """Pods that may be running get time to end; everything else goes at once."""
    spec, status = existing.object.get("spec") or {}, existing.object.get("status") or {}
    if not kind.graceful or not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        return 0
    if options.grace_period_seconds is not None:
        return max(options.grace_period_seconds, 0)
    wanted = spec.get("terminationGracePeriodSeconds")
    return int(wanted if wanted is not None else _DEFAULT_GRACE)


def _shortens(existing: Record, grace: int) -> bool:
    """Whether a deletion changes an object that may be in deletion already."""
    metadata = existing.metadata
    if "deletionTimestamp" not in metadata:
        return True
    return grace < int(metadata.get("deletionGracePeriodSeconds") or 0)
