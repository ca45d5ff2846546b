"""Scheduler and controllers against the fake API server, on a cluster whose devices are only on paper."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drakit import kube
from drakit.simulator.cluster import Cluster

DRIVER = "paper.example.com"


class Paper:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.server = cluster, cluster.server

    def slice(self, *names: str, **fields: Any) -> None:
        self.server.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": "paper"},
                "spec": {
                    "driver": DRIVER,
                    "nodeName": "n1",
                    "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": name} | fields for name in names],
                },
            }
        )

    async def pod(self, name: str = "p") -> None:
        await self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "containers": [{"name": "main", "resources": {"claims": [{"name": "x"}]}}],
                    "resourceClaims": [{"name": "x", "resourceClaimName": "c"}],
                },
            }
        )

    async def claim(self) -> None:
        requests = [{"name": "r", "exactly": {"deviceClassName": "paper"}}]
        await self.cluster.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "paper"},
                "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
            }
        )
        await self.cluster.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "namespace": "default"},
                "spec": {"devices": {"requests": requests}},
            }
        )

    async def allocated(self, device: str) -> dict[str, Any]:
        def is_so(claims: list[dict[str, Any]]) -> bool:
            return [self.device(claim) for claim in claims] == [device]

        return (await self.cluster.until(kube.RESOURCE_CLAIMS, is_so))[0]

    def device(self, claim: dict[str, Any]) -> str | None:
        allocation = (claim.get("status") or {}).get("allocation")
        return None if allocation is None else allocation["devices"]["results"][0]["device"]

    async def condition(self, device: str, kind: str) -> None:
        """What a controller of fabric devices reports."""
        claim = self.server.get("resourceclaims", "c", "default")
        assert claim is not None
        condition = {
            "type": kind,
            "status": "True",
            "reason": "Test",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        claim["status"]["devices"] = [{"driver": DRIVER, "pool": "n1", "device": device, "conditions": [condition]}]
        self.server.update(claim, subresource="status")

    async def placed(self) -> None:
        await self.cluster.until(kube.PODS, lambda pods: all(pod["spec"].get("nodeName") for pod in pods))

    def node_of(self, name: str = "p") -> str | None:
        pod = self.server.get("pods", name, "default")
        assert pod is not None
        node: str | None = pod["spec"].get("nodeName")
        return node


@pytest.fixture
async def paper(cluster: Cluster) -> AsyncIterator[Paper]:
    async with asyncio.timeout(20):
        yield Paper(cluster)


async def test_binding_conditions_hold_the_pod_back_3_4(paper: Paper) -> None:
    paper.slice("d0", bindingConditions=["Attached"], bindingFailureConditions=["Broken"], bindsToNode=True)
    await paper.claim()
    await paper.pod()
    await paper.allocated("d0")
    await paper.cluster.until(
        kube.EVENTS, lambda events: any(event["reason"] == "BindingConditionsPending" for event in events)
    )
    assert paper.node_of() is None
    await paper.condition("d0", "Attached")
    await paper.placed()


async def test_a_device_that_fails_to_bind_is_given_back_3_4(paper: Paper) -> None:
    paper.slice("d0", bindingConditions=["Attached"], bindingFailureConditions=["Broken"], bindsToNode=True)
    await paper.claim()
    await paper.pod()
    first = await paper.allocated("d0")
    await paper.condition("d0", "Broken")
    # Deallocated by PostFilter and allocated again: another time, no device status.
    again = await paper.cluster.until(
        kube.RESOURCE_CLAIMS,
        lambda claims: (
            claims[0]["status"].get("allocation")
            and not claims[0]["status"].get("devices")
            and claims[0]["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
        ),
    )
    assert paper.device(again[0]) == "d0"
    assert paper.node_of() is None


async def test_a_taint_rule_keeps_pods_away(paper: Paper) -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "device": "d0"},
            "taint": {"key": "example.com/broken", "effect": "NoSchedule"},
        },
    }
    await paper.cluster.apply(rule)
    paper.slice("d0")
    await paper.claim()
    await paper.pod()
    await paper.cluster.until(
        kube.EVENTS, lambda events: any("cannot allocate all claims" in event["message"] for event in events)
    )
    await paper.cluster.delete(kube.DEVICE_TAINT_RULES, "broken")
    await paper.allocated("d0")
    await paper.placed()


async def test_a_pod_with_a_node_of_its_own_gets_its_reservation(paper: Paper) -> None:
    paper.slice("d0")
    await paper.claim()
    await paper.pod()
    await paper.placed()
    await paper.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "static", "namespace": "default"},
            "spec": {
                "nodeName": "n1",
                "containers": [{"name": "main"}],
                "resourceClaims": [{"name": "x", "resourceClaimName": "c"}],
            },
        }
    )
    await paper.cluster.until(kube.RESOURCE_CLAIMS, lambda claims: len(claims[0]["status"]["reservedFor"]) == 2)


async def test_lost_writes_are_tried_again(paper: Paper) -> None:
    """Conflicts and failures of the API server do not lose a pod or a device."""
    paper.slice("d0")
    await paper.claim()
    paper.server.faults.fail(500, times=2, verb="update", resource="resourceclaims")
    paper.server.faults.fail(409, times=1, verb="update", resource="resourceclaims")
    await paper.pod()
    await paper.placed()
    claim = await paper.allocated("d0")
    assert [entry["name"] for entry in claim["status"]["reservedFor"]] == ["p"]


async def test_a_pod_is_written_with_few_requests(paper: Paper) -> None:
    paper.slice("d0")
    await paper.claim()
    before = {kind: paper.server.requests.writes(kind) for kind in ("resourceclaims", "pods")}
    await paper.pod()
    await paper.placed()
    # Finalizer and status of the claim; creation, binding, and the kubelet's reports of the pod.
    assert paper.server.requests.writes("resourceclaims") - before["resourceclaims"] == 2
    assert paper.server.requests.writes("pods") - before["pods"] <= 4
