"""The driver gets along with what the deployment's ClusterRole grants, and nothing more."""

from pathlib import Path
from typing import Any

import yaml

from drakit import kube
from drakit.simulator.apiserver import Call
from drakit.simulator.kubelet.decisions import pick

RBAC = Path(__file__).parents[2] / "deploy" / "base" / "rbac.yaml"
DRIVER = "gpu.example.com"
USER = "system:serviceaccount:kube-system:drakit-"


def rules() -> list[dict[str, Any]]:
    role = next(document for document in yaml.safe_load_all(RBAC.read_text()) if document["kind"] == "ClusterRole")
    found: list[dict[str, Any]] = role["rules"]
    return found


def granted(call: Call) -> bool:
    resource = f"{call.resource}/{call.subresource}" if call.subresource else call.resource
    return any(
        call.group in rule["apiGroups"] and resource in rule["resources"] and call.verb in rule["verbs"]
        for rule in rules()
    )


async def test_the_role_is_enough(make_site: Any) -> None:
    def authorizer(call: Call) -> bool:
        return granted(call) if call.user.startswith(USER) else True

    async with make_site(authorizer=authorizer) as site:
        cluster = site.cluster
        await site.claim("c")
        await site.pod("p", "c")
        await cluster.pod("p")
        # Slices that others change or delete are put back: update, delete, create.
        (published,) = cluster.server.list("resourceslices")
        changed = published | {"spec": published["spec"] | {"devices": published["spec"]["devices"][:3]}}
        await cluster.api.update(kube.RESOURCE_SLICES, changed)
        await site.delete_pod("p")
        await site.node.kubelet.restart()
        await cluster.until(
            kube.RESOURCE_SLICES,
            lambda found: found and found[0]["metadata"]["uid"] != published["metadata"]["uid"],
        )
        assert await site.driver.stop() == 0
        await site.node.kubelet.plugins.until(lambda state: pick(state, DRIVER) is None)
        calls = [call for call in cluster.server.requests.calls if call.user.startswith(USER)]
        assert calls
        assert [call for call in calls if call.status == 403] == []
