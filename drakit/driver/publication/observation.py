"""What the API server has, as far as we know: the reflector's store under our own newer writes.

Upstream's cache of own writes hid slices that were deleted soon after (spec/resourceslice.md 1.6). Here a write of ours
counts only until the reflector has seen everything up to it; from then on the store alone is right, whatever happened
in between. Resource versions are compared as numbers, which Kubernetes guarantees since 1.35 and has always held.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from drakit import kube
from drakit.driver.publication.layout import SliceContent
from drakit.driver.publication.slices import ObservedSlice, observe

__all__ = ["Observation"]

Object = dict[str, Any]


class Observation:
    """The publisher's slices by pool.

    Args:
        reflector: lists and watches them.
        belongs: tells the publisher's slices from others that the selector matches as well.
    """

    def __init__(self, reflector: kube.Reflector, belongs: Callable[[Object], bool]) -> None:
        self._reflector, self._belongs = reflector, belongs
        self._own: dict[str, Object] = {}
        self._gone: set[str] = set()
        self._read: dict[str, ObservedSlice] = {}

    def pools(self) -> set[str]:
        """Names of all pools of which there are slices."""
        return {found.pool for found in self._all()}

    def pool(self, name: str) -> list[ObservedSlice]:
        """The slices of one pool."""
        return [found for found in self._all() if found.pool == name]

    def raw(self, name: str) -> Object | None:
        """The newest state of a slice as JSON."""
        return self._own.get(name) or self._reflector.get(name)

    def written(self, obj: Object, content: SliceContent | None = None) -> ObservedSlice:
        """Note a state of a slice that is newer than the store; `content` when it is known to mean the same."""
        name = obj["metadata"]["name"]
        self._own[name] = obj
        self._gone.discard(obj["metadata"].get("uid", ""))
        if content is None:
            return self._slice(obj)
        found = observe({**obj, "spec": {"pool": obj["spec"]["pool"]}})
        self._read[name] = msgspec.structs.replace(found, content=content)
        return self._read[name]

    def deleted(self, name: str, uid: str) -> None:
        """Note that the slice with this UID does not exist any more."""
        self._own.pop(name, None)
        self._gone.add(uid)

    def read_back(self, items: list[Object]) -> None:
        """Take a fresh list as the truth."""
        names = {item["metadata"]["name"] for item in items}
        for found in self._all():
            if found.name not in names:
                self.deleted(found.name, found.uid)
        for item in items:
            self.written(item)

    def is_known(self, change: kube.Change) -> bool:
        """Whether a change only tells what we wrote ourselves."""
        own = self._read.get(change.object["metadata"]["name"])
        if change.type == "DELETED":
            return change.object["metadata"].get("uid", "") in self._gone
        return own is not None and own.resource_version == change.object["metadata"].get("resourceVersion")

    def unconfirmed(self) -> set[str]:
        """Pools with writes of ours that the reflector has not caught up with."""
        return {obj["spec"]["pool"]["name"] for obj in self._own.values()}

    def _all(self) -> Iterator[ObservedSlice]:
        progress = _number(self._reflector.version)
        for name in [name for name, obj in self._own.items() if _version(obj) <= progress]:
            del self._own[name]
        store = {obj["metadata"]["name"]: obj for obj in self._reflector.store.values() if self._belongs(obj)}
        if self._gone:
            self._gone &= {obj["metadata"].get("uid", "") for obj in store.values()}
        newest = {**store, **self._own}
        for name in [name for name in self._read if name not in newest]:
            del self._read[name]
        for obj in newest.values():
            if obj["metadata"].get("uid", "") not in self._gone:
                yield self._slice(obj)

    def _slice(self, obj: Object) -> ObservedSlice:
        name = obj["metadata"]["name"]
        known = self._read.get(name)
        if known is None or known.resource_version != obj["metadata"].get("resourceVersion", ""):
            known = self._read[name] = observe(obj)
        return known


def _version(obj: Object) -> int:
    return _number(obj["metadata"].get("resourceVersion", ""))


def _number(version: str) -> int:
    return int(version) if version.isdigit() else 0
