"""What the control plane knows of the cluster: reflectors, and own writes that they have not seen yet."""

import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Self

from drakit import api, kube
from drakit.clock import Clock

__all__ = ["Caches", "Overlay", "record_event"]

Object = dict[str, Any]


class Overlay:
    """A reflector's store under the results of own writes, each until the reflector has caught up with it."""

    def __init__(self, reflector: kube.Reflector) -> None:
        self._reflector = reflector
        self._written: dict[tuple[str, str], Object] = {}

    def remember(self, obj: Object) -> Object:
        """Keep the result of a write."""
        metadata = obj["metadata"]
        self._written[metadata.get("namespace", ""), metadata["name"]] = obj
        return obj

    def seen(self, change: kube.Change) -> None:
        """Forget own writes that `change` makes old."""
        metadata = change.object["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        written = self._written.get(key)
        if written is not None and (change.type == "DELETED" or _revision(change.object) >= _revision(written)):
            del self._written[key]

    def get(self, name: str, namespace: str = "") -> Object | None:
        """The newest known state of one object."""
        stored = self._reflector.get(name, namespace)
        written = self._written.get((namespace, name))
        if written is None or (stored is not None and _revision(stored) >= _revision(written)):
            return stored
        return written

    def __iter__(self) -> Iterator[Object]:
        keys = dict.fromkeys([*self._reflector.store, *self._written])
        return (obj for namespace, name in keys if (obj := self.get(name, namespace)) is not None)


class Caches:
    """Reflectors of everything the control plane looks at; an async context manager that waits until all are synced."""

    def __init__(self, client: kube.Client, clock: Clock) -> None:
        def reflector(resource: kube.Resource) -> kube.Reflector:
            return kube.Reflector(client, resource, clock=clock)

        self.pods = reflector(kube.PODS)
        self.claims = reflector(kube.RESOURCE_CLAIMS)
        self.templates = reflector(kube.RESOURCE_CLAIM_TEMPLATES)
        self.classes = reflector(kube.DEVICE_CLASSES)
        self.slices = reflector(kube.RESOURCE_SLICES)
        self.nodes = reflector(kube.NODES)
        self.rules = reflector(kube.DEVICE_TAINT_RULES)
        self._client = client
        self.current_claims = Overlay(self.claims)
        self._decoded: dict[tuple[str, str], Any] = {}
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        reflectors = [self.pods, self.claims, self.templates, self.classes, self.slices, self.nodes]
        if await self._serves_rules():
            reflectors.append(self.rules)
        for reflector in reflectors:
            await self._stack.enter_async_context(reflector)
        for reflector in reflectors:
            await reflector.synced.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def by_resource(self) -> dict[str, kube.Reflector]:
        """All reflectors that run, by plural resource name."""
        return {
            "pods": self.pods,
            "resourceclaims": self.claims,
            "resourceclaimtemplates": self.templates,
            "deviceclasses": self.classes,
            "resourceslices": self.slices,
            "nodes": self.nodes,
            **({"devicetaintrules": self.rules} if self.rules.lists else {}),
        }

    async def _serves_rules(self) -> bool:
        """Whether the server has DeviceTaintRules; without them the cache stays empty."""
        try:
            await self._client.list(kube.DEVICE_TAINT_RULES)
        except kube.NotServed:
            return False
        return True

    def decode(self, obj: Object) -> Any:
        """The value of an object, decoded once per state of it."""
        metadata = obj["metadata"]
        uid, version = metadata["uid"], metadata["resourceVersion"]
        known = self._decoded.get((obj["kind"], uid))
        if known is None or known[0] != version:
            known = self._decoded[obj["kind"], uid] = (version, api.decode(obj))
        return known[1]

    def forget(self, obj: Object) -> None:
        """Drop the value of a deleted object."""
        self._decoded.pop((obj["kind"], obj["metadata"]["uid"]), None)


def _revision(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


async def record_event(
    client: kube.Client,
    about: Object,
    *,
    type: str,
    reason: str,
    message: str,
    component: str,
    now: datetime,
) -> None:
    """Create an Event about an object; that nobody wants it is no error."""
    metadata = about["metadata"]
    time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
        "type": type,
        "reason": reason,
        "message": message,
        "source": {"component": component},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
    with contextlib.suppress(kube.ApiError):
        await client.create(kube.EVENTS, event)
