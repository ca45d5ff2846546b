"""Builders of pods, claims and templates as plain objects."""

from typing import Any

import pytest


class Objects:
    def pod(self, name: str = "p", *, claims: list[dict[str, Any]] | None = None, **changes: Any) -> dict[str, Any]:
        spec: dict[str, Any] = {"containers": [{"name": "main"}], "resourceClaims": claims or []}
        metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
        metadata |= {key: changes.pop(key) for key in ("deletionTimestamp",) if key in changes}
        status = {key: changes.pop(key) for key in ("phase", "resourceClaimStatuses") if key in changes}
        return {"metadata": metadata, "spec": spec | changes, "status": status}

    def template(self, name: str = "t", **spec: Any) -> dict[str, Any]:
        inner = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
        return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"spec": inner} | spec}

    def claim(
        self,
        name: str = "c",
        *,
        owner: dict[str, Any] | None = None,
        pod_claim: str = "",
        reserved: tuple[dict[str, Any], ...] = (),
        allocated: bool = False,
        finalizers: tuple[str, ...] = (),
        **metadata: Any,
    ) -> dict[str, Any]:
        meta: dict[str, Any] = {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
        } | metadata
        if owner is not None:
            meta["ownerReferences"] = [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                }
            ]
        if pod_claim:
            meta["annotations"] = {"resource.kubernetes.io/pod-claim-name": pod_claim}
        if finalizers:
            meta["finalizers"] = list(finalizers)
        status: dict[str, Any] = {}
        if reserved:
            status["reservedFor"] = [
                {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in reserved
            ]
        if allocated:
            status["allocation"] = {"devices": {"results": []}}
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]}}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": meta,
            "spec": spec,
            "status": status,
        }


@pytest.fixture
def make() -> Objects:
    return Objects()
