"""The resourceclaim controller and the garbage collector against an API server."""

import contextlib
from typing import Any, TypeAlias

from drakit import kube
from drakit.clock import Clock
from drakit.simulator.controlplane import claims as decisions
from drakit.simulator.controlplane.caches import Caches, record_event
from drakit.simulator.controlplane.claims import (
    Action,
    CreateClaim,
    Deallocate,
    DeleteClaim,
    MissingTemplateError,
    SetClaimStatuses,
    UpdateClaimStatus,
)
from drakit.simulator.controlplane.garbage import is_garbage
from drakit.simulator.controlplane.queue import WorkQueue

__all__ = ["ClaimController", "GarbageCollector"]

Object: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str, str]
"""pod or claim, namespace, name."""


class RetryError(Exception):
    """Try this key again later."""


class ClaimController:
    """Makes claims for pods, and gives back what pods no longer use."""

    def __init__(self, client: kube.Client, caches: Caches, clock: Clock) -> None:
        self._client, self._caches, self._clock = client, caches, clock
        self.queue: WorkQueue[Key] = WorkQueue(self._work, retried=RetryError, clock=clock)

    def saw_pod(self, change: kube.Change) -> None:
        """A pod changed: it may need claims, or free some."""
        pod = change.object
        self.queue.add(("pod", *_key(pod)))
        if change.type == "DELETED" or decisions.is_done(pod):
            uid = pod["metadata"]["uid"]
            for claim in self._caches.current_claims:
                if uid in decisions.pods_of_claim(claim):
                    self.queue.add(("claim", *_key(claim)))

    def saw_claim(self, change: kube.Change) -> None:
        """A claim changed: it may be unused now; a lost one is made again."""
        self.queue.add(("claim", *_key(change.object)))
        for pod in self._owners(change.object):
            self.queue.add(("pod", *_key(pod)))

    def saw_template(self, change: kube.Change) -> None:
        """A template appeared: pods may wait for it."""
        namespace, name = _key(change.object)
        for pod in self._caches.pods:
            entries = pod["spec"].get("resourceClaims") or ()
            if pod["metadata"]["namespace"] == namespace and any(
                entry.get("resourceClaimTemplateName") == name for entry in entries
            ):
                self.queue.add(("pod", *_key(pod)))

    def _owners(self, claim: Object) -> list[Object]:
        uids = set(decisions.pods_of_claim(claim))
        return [pod for pod in self._caches.pods if pod["metadata"]["uid"] in uids]

    async def _work(self, key: Key) -> None:
        kind, namespace, name = key
        try:
            if kind == "pod":
                await self._sync_pod(namespace, name)
            else:
                await self._sync_claim(namespace, name)
        except kube.NotFound:
            return
        except kube.ApiError as error:
            raise RetryError(str(error)) from error

    async def _sync_pod(self, namespace: str, name: str) -> None:
        pod = self._caches.pods.get(name, namespace)
        if pod is None:
            return
        claims = [claim for claim in self._caches.current_claims if claim["metadata"]["namespace"] == namespace]
        templates = {
            item["metadata"]["name"]: item
            for item in self._caches.templates
            if item["metadata"]["namespace"] == namespace
        }
        try:
            actions = decisions.generate_claims(pod, claims, templates)
        except MissingTemplateError as error:
            await self._complain(pod, str(error))
            return
        for action in (*actions, *decisions.reserve_prescheduled(pod, claims)):
            await self._perform(action, pod)
        if any(isinstance(action, CreateClaim) for action in actions):
            self.queue.add(("pod", namespace, name))

    async def _complain(self, pod: Object, message: str) -> None:
        await record_event(
            self._client,
            pod,
            type="Warning",
            reason="FailedResourceClaimCreation",
            message=message,
            component="resource-claim-controller",
            now=self._clock.now(),
        )

    async def _sync_claim(self, namespace: str, name: str) -> None:
        claim = self._caches.current_claims.get(name, namespace)
        if claim is None:
            return
        action = decisions.sync_claim(claim, await self._pods_by_uid(claim))
        if action is not None:
            await self._perform(action, claim)
            if not isinstance(action, DeleteClaim):
                self.queue.add(("claim", namespace, name))

    async def _pods_by_uid(self, claim: Object) -> dict[str, Object]:
        """The pods of a claim; one that the cache does not know is looked up (it may be newer than the cache)."""
        pods = {pod["metadata"]["uid"]: pod for pod in self._owners(claim)}
        for entry in (claim.get("status") or {}).get("reservedFor") or ():
            if entry["uid"] not in pods:
                with contextlib.suppress(kube.NotFound):
                    pod = await self._client.get(kube.PODS, entry["name"], namespace=claim["metadata"]["namespace"])
                    pods[pod["metadata"]["uid"]] = pod
        return pods

    async def _perform(self, action: Action, about: Object) -> None:
        current = self._caches.current_claims
        match action:
            case CreateClaim(_, claim):
                current.remember(await self._client.create(kube.RESOURCE_CLAIMS, claim))
            case SetClaimStatuses(statuses):
                await self._client.patch(
                    kube.PODS,
                    about["metadata"]["name"],
                    {"status": {"resourceClaimStatuses": statuses}},
                    namespace=about["metadata"]["namespace"],
                    subresource="status",
                    content_type=kube.STRATEGIC_MERGE_PATCH,
                )
            case UpdateClaimStatus(claim):
                current.remember(await self._client.update(kube.RESOURCE_CLAIMS, claim, subresource="status"))
            case Deallocate(claim):
                freed = current.remember(await self._client.update(kube.RESOURCE_CLAIMS, claim, subresource="status"))
                unprotected = decisions.unprotected_claim(freed)
                updated = await self._client.update(kube.RESOURCE_CLAIMS, unprotected)
                if not updated["metadata"].get("deletionTimestamp"):
                    current.remember(updated)
            case DeleteClaim(namespace, name, uid):
                await self._client.delete(kube.RESOURCE_CLAIMS, name, namespace=namespace, uid=uid)


class GarbageCollector:
    """Deletes claims whose pod is gone and slices whose node is gone."""

    def __init__(self, client: kube.Client, caches: Caches, clock: Clock) -> None:
        self._client, self._caches = client, caches
        self._resources = {"ResourceClaim": kube.RESOURCE_CLAIMS, "ResourceSlice": kube.RESOURCE_SLICES}
        self.queue: WorkQueue[Key] = WorkQueue(self._work, retried=RetryError, clock=clock)

    def saw_owner(self, change: kube.Change) -> None:
        """A pod or node changed; when it is gone, what it owned is looked at."""
        if change.type != "DELETED":
            return
        uid = change.object["metadata"]["uid"]
        for obj in (*self._caches.claims, *self._caches.slices):
            if any(owner["uid"] == uid for owner in obj["metadata"].get("ownerReferences") or ()):
                self.queue.add((obj["kind"], *_key(obj)))

    def saw_dependent(self, change: kube.Change) -> None:
        """A claim or slice appeared: its owner may be gone already."""
        if change.type == "ADDED" and change.object["metadata"].get("ownerReferences"):
            self.queue.add((change.object["kind"], *_key(change.object)))

    async def _work(self, key: Key) -> None:
        kind, namespace, name = key
        cache = self._caches.claims if kind == "ResourceClaim" else self._caches.slices
        obj = cache.get(name, namespace)
        if obj is None or not is_garbage(obj, await self._living(obj)):
            return
        try:
            await self._client.delete(
                self._resources[kind], name, namespace=namespace or None, uid=obj["metadata"]["uid"]
            )
        except (kube.NotFound, kube.Conflict):
            return
        except kube.ApiError as error:
            raise RetryError(str(error)) from error

    async def _living(self, obj: Object) -> dict[str, set[str]]:
        """UIDs of the owners that are there, asked of the server: a cache may be older than the object."""
        living: dict[str, set[str]] = {"Pod": set(), "Node": set()}
        for owner in obj["metadata"].get("ownerReferences") or ():
            resource = {"Pod": kube.PODS, "Node": kube.NODES}.get(owner["kind"])
            if resource is None:
                continue
            namespace = obj["metadata"].get("namespace") if resource.namespaced else None
            with contextlib.suppress(kube.NotFound):
                found = await self._client.get(resource, owner["name"], namespace=namespace)
                living[owner["kind"]].add(found["metadata"]["uid"])
        return living


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
