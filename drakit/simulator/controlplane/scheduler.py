"""The scheduler loop: pods one at a time, claims written and read back before the pod is bound."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from drakit import kube
from drakit.allocation import AllocatedState, AllocationError, Allocator, Contents, Features
from drakit.api import core, resource
from drakit.clock import Clock
from drakit.simulator.controlplane import binding, scheduling
from drakit.simulator.controlplane import claims as claim_decisions
from drakit.simulator.controlplane.caches import Caches, record_event
from drakit.simulator.controlplane.queue import WorkQueue
from drakit.simulator.controlplane.scheduling import Bind, NotReadyError, Snapshot, UnschedulableError

__all__ = ["SCHEDULER_NAME", "Scheduler"]

Object: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str]
SCHEDULER_NAME = "default-scheduler"


class RetryError(Exception):
    """Try this pod again later."""


class Scheduler:
    """Places pods whose claims can be allocated; the others wait until something changes that may help."""

    def __init__(self, client: kube.Client, caches: Caches, clock: Clock, features: Features) -> None:
        self._client, self._caches, self._clock, self._features = client, caches, clock, features
        self._unschedulable: dict[Key, str] = {}
        self._bound: set[str] = set()
        self._awaiting: set[str] = set()
        self._contents = Contents(features)
        self.attempts = 0
        self.queue: WorkQueue[Key] = WorkQueue(self._work, retried=RetryError, clock=clock)

    def saw_pod(self, change: kube.Change) -> None:
        """A pod changed: it may be waiting for a node, or leave one."""
        pod = change.object
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if change.type == "DELETED":
            self._unschedulable.pop(key, None)
            self._bound.discard(pod["metadata"]["uid"])
            self._awaiting.discard(pod["metadata"]["uid"])
        elif _waits(pod) and pod["metadata"]["uid"] not in self._bound and _matters(change):
            self.queue.add(key)

    def saw_other(self, _change: kube.Change) -> None:
        """A claim, class, slice or node changed: unschedulable pods get another chance."""
        for key in self._unschedulable:
            self.queue.add(key)

    async def _work(self, key: Key) -> None:
        pod = self._caches.pods.get(key[1], key[0])
        if pod is None or not _waits(pod) or pod["metadata"]["uid"] in self._bound:
            self._unschedulable.pop(key, None)
            return
        self.attempts += 1
        try:
            decision = scheduling.schedule(pod, self._snapshot(key[0]))
        except NotReadyError as error:
            self._unschedulable[key] = str(error)
        except UnschedulableError as error:
            await self._wait(key, pod, error)
        except AllocationError as error:
            await self._wait(key, pod, UnschedulableError(str(error)))
        else:
            self._unschedulable.pop(key, None)
            await self._bind(pod, decision)

    def _snapshot(self, namespace: str) -> Snapshot:
        caches = self._caches
        claims = list(caches.current_claims)
        nodes = {node["metadata"]["name"]: caches.decode(node) for node in caches.nodes if _is_ready(node)}
        return Snapshot(
            nodes=nodes,
            claims={item["metadata"]["name"]: item for item in claims if item["metadata"]["namespace"] == namespace},
            classes={item["metadata"]["name"]: caches.decode(item) for item in caches.classes},
            allocate=self._allocator(claims),
            now=self._clock.now(),
        )

    def _allocator(
        self, claims: Sequence[Object]
    ) -> Callable[[core.Node, Sequence[resource.ResourceClaim]], Sequence[resource.AllocationResult] | None]:
        """The allocator of one attempt, made when it is first asked."""
        made: list[Allocator] = []

        def allocate(
            node: core.Node, wanted: Sequence[resource.ResourceClaim]
        ) -> Sequence[resource.AllocationResult] | None:
            if not made:
                held = [item for item in claims if (item.get("status") or {}).get("allocation")]
                made.append(
                    Allocator(
                        [self._caches.decode(item) for item in self._caches.slices],
                        [self._caches.decode(item) for item in self._caches.classes],
                        allocated=AllocatedState.of([self._caches.decode(item) for item in held]),
                        features=self._features,
                        rules=[self._caches.decode(item) for item in self._caches.rules],
                        contents=self._contents,
                    )
                )
            return made[0].allocate(node, wanted)

        return allocate

    async def _wait(self, key: Key, pod: Object, error: UnschedulableError) -> None:
        message = str(error)
        told = self._unschedulable.get(key)
        self._unschedulable[key] = message
        try:
            if told != message:
                await self._tell(pod, message)
            if error.deallocate is not None:
                freed = claim_decisions.deallocated_claim(error.deallocate)
                written = await self._client.update(kube.RESOURCE_CLAIMS, freed, subresource="status")
                self._caches.current_claims.remember(written)
                self.queue.add(key)
        except kube.NotFound:
            return
        except kube.ApiError as fault:
            raise RetryError(str(fault)) from fault

    async def _tell(self, pod: Object, message: str) -> None:
        """Condition PodScheduled=False and an event."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": self._timestamp(),
        }
        await self._patch_condition(pod, condition)
        await self._record(pod, "Warning", "FailedScheduling", message)

    async def _patch_condition(self, pod: Object, condition: Object) -> None:
        await self._client.patch(
            kube.PODS,
            pod["metadata"]["name"],
            {"status": {"conditions": [condition]}},
            namespace=pod["metadata"]["namespace"],
            subresource="status",
            content_type=kube.STRATEGIC_MERGE_PATCH,
        )

    async def _record(self, pod: Object, type: str, reason: str, message: str) -> None:
        await record_event(
            self._client,
            pod,
            type=type,
            reason=reason,
            message=message,
            component=SCHEDULER_NAME,
            now=self._clock.now(),
        )

    def _timestamp(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    # Binding

    async def _bind(self, pod: Object, decision: Bind) -> None:
        """Write the claims, then bind (PreBind and Bind); what fails is undone and the pod tried again."""
        try:
            claims = [await self._bind_claim(pod, name, found) for name, found in decision.allocations.items()]
            if await self._wait_for_devices(pod, claims):
                return
            await self._bind_pod(pod, decision.node)
        except kube.ApiError as error:
            await self._unreserve(pod, decision)
            raise RetryError(str(error)) from error
        self._bound.add(pod["metadata"]["uid"])
        where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        await self._record(pod, "Normal", "Scheduled", f"Successfully assigned {where} to {decision.node}")

    async def _wait_for_devices(self, pod: Object, claims: Sequence[Object]) -> bool:
        """Whether the pod has to wait for binding conditions; it is looked at again when a claim changes, and soon."""
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        states = {binding.progress(claim, self._clock.now()) for claim in claims}
        if states <= {binding.Progress.READY}:
            return False
        self._unschedulable[key] = ""
        self.queue.add_later(key, binding.POLL_SECONDS)
        if pod["metadata"]["uid"] not in self._awaiting:
            self._awaiting.add(pod["metadata"]["uid"])
            await self._record(pod, "Normal", "BindingConditionsPending", "Waiting for binding conditions of devices")
        return True

    async def _bind_claim(self, pod: Object, name: str, allocation: resource.AllocationResult | None) -> Object:
        current = self._caches.current_claims
        claim = current.get(name, pod["metadata"]["namespace"])
        if claim is None:
            raise RetryError(f"claim {name} got deleted in the meantime")
        protected = scheduling.protected_claim(claim) if allocation is not None else None
        if protected is not None:
            claim = current.remember(await self._client.update(kube.RESOURCE_CLAIMS, protected))
        allocated = scheduling.allocated_claim(claim, allocation, self._timestamp())
        reserved = scheduling.reserved_claim(allocated, pod)
        if reserved.get("status") != claim.get("status"):
            claim = current.remember(await self._client.update(kube.RESOURCE_CLAIMS, reserved, subresource="status"))
        return claim

    async def _bind_pod(self, pod: Object, node: str) -> None:
        metadata = pod["metadata"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = kube.PODS.path("v1", metadata["namespace"], metadata["name"], "binding")
        await self._client.request("POST", path, body=body)

    async def _unreserve(self, pod: Object, decision: Bind) -> None:
        current = self._caches.current_claims
        for name in decision.allocations:
            claim = current.get(name, pod["metadata"]["namespace"])
            freed = claim and scheduling.unreserved_claim(claim, pod)
            if claim and freed and freed["status"] != claim.get("status"):
                with contextlib.suppress(kube.ApiError):
                    current.remember(await self._client.update(kube.RESOURCE_CLAIMS, freed, subresource="status"))


def _waits(pod: Object) -> bool:
    """Whether a pod is for this scheduler to place."""
    spec, metadata = pod["spec"], pod["metadata"]
    ours = spec.get("schedulerName", SCHEDULER_NAME) == SCHEDULER_NAME
    return (
        ours and not spec.get("nodeName") and not metadata.get("deletionTimestamp") and not spec.get("schedulingGates")
    )


def _matters(change: kube.Change) -> bool:
    """Whether a change of a pod may help it: not its own conditions."""
    old = change.old
    if old is None:
        return True
    statuses = [(pod.get("status") or {}).get("resourceClaimStatuses") for pod in (old, change.object)]
    return old["spec"] != change.object["spec"] or statuses[0] != statuses[1]


def _is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
