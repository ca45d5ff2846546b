"""The scheduler's decisions over a snapshot, with a scripted allocator."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from drakit.allocation.errors import NodeError
from drakit.api import core, meta, resource
from drakit.simulator.controlplane import Snapshot, UnschedulableError, schedule
from drakit.simulator.controlplane.binding import Progress, progress
from drakit.simulator.controlplane.claims import FINALIZER
from drakit.simulator.controlplane.scheduling import allocated_claim, protected_claim, reserved_claim, unreserved_claim

CLASSES = {"gpu": resource.DeviceClass(metadata=meta.ObjectMeta(name="gpu"))}
NOW = datetime(2026, 1, 1, 0, 20, tzinfo=UTC)
DIRECT = [{"name": "x", "resourceClaimName": "c"}]


def node(name: str, **labels: str) -> core.Node:
    return core.Node(metadata=meta.ObjectMeta(name=name, labels=labels))


def result(device: str = "d0", request: str = "r") -> resource.AllocationResult:
    chosen = resource.DeviceRequestAllocationResult(request=request, driver="gpu.example.com", pool="p", device=device)
    return resource.AllocationResult(devices=resource.DeviceAllocationResult(results=(chosen,)))


def everywhere(_node: core.Node, claims: Sequence[resource.ResourceClaim]) -> list[resource.AllocationResult]:
    return [result() for _ in claims]


def nowhere(_node: core.Node, _claims: Sequence[resource.ResourceClaim]) -> None:
    return None


def snapshot(
    *claims: dict[str, Any],
    nodes: Sequence[core.Node] = (node("n1"), node("n2")),
    allocate: Callable[..., Any] = everywhere,
    classes: dict[str, resource.DeviceClass] = CLASSES,
) -> Snapshot:
    return Snapshot(
        nodes={entry.metadata.name: entry for entry in nodes},
        claims={claim["metadata"]["name"]: claim for claim in claims},
        classes=classes,
        allocate=allocate,
        now=NOW,
    )


def reason(pod: dict[str, Any], state: Snapshot) -> str:
    with pytest.raises(UnschedulableError) as raised:
        schedule(pod, state)
    return str(raised.value)


def test_a_pod_without_claims_goes_to_the_first_node(make: Any) -> None:
    assert schedule(make.pod(), snapshot()).node == "n1"


def test_claims_are_allocated_on_the_chosen_node(make: Any) -> None:
    bind = schedule(make.pod(claims=DIRECT), snapshot(make.claim()))
    assert (bind.node, bind.allocations) == ("n1", {"c": result()})


def test_an_allocated_claim_is_only_reserved(make: Any) -> None:
    bind = schedule(make.pod(claims=DIRECT), snapshot(make.claim(allocated=True), allocate=nowhere))
    assert bind.allocations == {"c": None}


def test_texts_of_prefilter_3_1(make: Any) -> None:
    pod = make.pod(claims=DIRECT)
    template = make.pod(claims=[{"name": "x", "resourceClaimTemplateName": "t"}])
    assert reason(template, snapshot()) == 'pod "ns/p": ResourceClaim not created yet'
    assert reason(pod, snapshot()) == 'resourceclaim.resource.k8s.io "c" not found'
    assert reason(pod, snapshot(make.claim(deletionTimestamp="now"))) == 'resourceclaim "c" is being deleted'
    generated = make.pod(
        claims=[{"name": "x", "resourceClaimTemplateName": "t"}],
        resourceClaimStatuses=[{"name": "x", "resourceClaimName": "c"}],
    )
    assert (
        reason(generated, snapshot(make.claim()))
        == "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)"
    )
    assert reason(pod, snapshot(make.claim(), classes={})) == "request r: device class gpu does not exist"
    full = make.claim(allocated=True, reserved=tuple(make.pod(f"q{i}") for i in range(256)))
    assert reason(pod, snapshot(full)) == "resourceclaim in use"


def test_nodes_are_counted_by_reason(make: Any) -> None:
    nodes = (
        node("n1"),
        node("n2"),
        core.Node(metadata=meta.ObjectMeta(name="n3"), spec=core.NodeSpec(unschedulable=True)),
    )
    pod = make.pod(claims=DIRECT)
    assert reason(pod, snapshot(make.claim(), nodes=nodes, allocate=nowhere)) == (
        "0/3 nodes are available: 2 cannot allocate all claims, 1 node(s) were unschedulable."
    )
    assert reason(pod, snapshot(make.claim(), nodes=())) == "no nodes available to schedule pods"


def test_node_selector_and_broken_pools(make: Any) -> None:
    nodes = (node("n1"), node("n2", zone="a"), node("n3", zone="a"))

    def broken_on_n2(on: core.Node, claims: Sequence[resource.ResourceClaim]) -> list[resource.AllocationResult]:
        if on.metadata.name == "n2":
            raise NodeError((("gpu.example.com", "p", "duplicate device name d0"),))
        return everywhere(on, claims)

    pod = make.pod(claims=DIRECT, nodeSelector={"zone": "a"})
    assert schedule(pod, snapshot(make.claim(), nodes=nodes, allocate=broken_on_n2)).node == "n3"


def test_an_allocation_for_another_node_may_be_freed_3_3(make: Any) -> None:
    pod = make.pod(claims=DIRECT, nodeSelector={"zone": "a"})
    claim: dict[str, Any] = make.claim(allocated=True)
    claim["status"]["allocation"]["nodeSelector"] = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    }
    state = snapshot(claim, nodes=(node("n1"), node("n2", zone="a")))
    with pytest.raises(UnschedulableError, match="1 resourceclaim not available on the node") as raised:
        schedule(pod, state)
    assert raised.value.deallocate == claim
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": "q", "uid": "uid-q"}]
    with pytest.raises(UnschedulableError) as raised:
        schedule(pod, state)
    assert raised.value.deallocate is None


def test_preferred_subrequests_decide_between_nodes_3_3(make: Any) -> None:
    claim = make.claim()
    claim["spec"]["devices"]["requests"] = [
        {"name": "r", "firstAvailable": [{"name": n, "deviceClassName": "gpu"} for n in ("big", "small")]}
    ]

    def by_node(on: core.Node, _claims: Sequence[resource.ResourceClaim]) -> list[resource.AllocationResult]:
        return [result(request="r/big" if on.metadata.name == "n2" else "r/small")]

    assert schedule(make.pod(claims=DIRECT), snapshot(claim, allocate=by_node)).node == "n2"


def test_what_is_written_before_binding_3_4(make: Any) -> None:
    pod, claim = make.pod(), make.claim()
    protected = protected_claim(claim)
    assert protected is not None
    assert protected["metadata"]["finalizers"] == [FINALIZER]
    assert protected_claim(protected) is None
    written = reserved_claim(allocated_claim(claim, result(), "2026-01-01T00:00:00Z"), pod)
    assert written["status"] == {
        "allocation": {
            "devices": {"results": [{"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d0"}]},
            "allocationTimestamp": "2026-01-01T00:00:00Z",
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}],
    }
    assert reserved_claim(written, pod) == written
    assert unreserved_claim(written, pod)["status"]["reservedFor"] == []


class TestBindingConditions:
    """3.4: devices that have to be attached before the pod may go to its node."""

    def claim(self, make: Any, *conditions: tuple[str, str], made: str = "2026-01-01T00:15:00Z") -> dict[str, Any]:
        claim: dict[str, Any] = make.claim(allocated=True, reserved=(make.pod(),))
        device = {"driver": "gpu.example.com", "pool": "p", "device": "d0"}
        claim["status"]["allocation"] = {
            "allocationTimestamp": made,
            "devices": {
                "results": [
                    device | {"request": "r", "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
                ]
            },
        }
        if conditions:
            listed = [{"type": name, "status": status} for name, status in conditions]
            claim["status"]["devices"] = [device | {"conditions": listed}]
        return claim

    def test_progress(self, make: Any) -> None:
        assert progress(make.claim(allocated=True), NOW) is Progress.READY
        assert progress(self.claim(make), NOW) is Progress.PENDING
        assert progress(self.claim(make, ("Attached", "False")), NOW) is Progress.PENDING
        assert progress(self.claim(make, ("Attached", "True")), NOW) is Progress.READY
        assert progress(self.claim(make, ("Attached", "True"), ("Broken", "True")), NOW) is Progress.FAILED
        assert progress(self.claim(make, made="2026-01-01T00:05:00Z"), NOW) is Progress.TIMED_OUT
        assert progress(self.claim(make, ("Attached", "True"), made="2026-01-01T00:05:00Z"), NOW) is Progress.READY

    def test_claims_that_failed_to_bind_are_freed(self, make: Any) -> None:
        for claim in (self.claim(make, ("Broken", "True")), self.claim(make, made="2026-01-01T00:00:00Z")):
            with pytest.raises(UnschedulableError, match="2 resourceclaim not available on the node") as raised:
                schedule(make.pod(claims=DIRECT), snapshot(claim))
            assert raised.value.deallocate == claim

    def test_pending_ones_keep_their_node(self, make: Any) -> None:
        assert schedule(make.pod(claims=DIRECT), snapshot(self.claim(make))).allocations == {"c": None}
