"""kubectl drives the fake API server: the commands of the documentation's tutorials."""

import asyncio
from typing import Any

import pytest

pytestmark = pytest.mark.kubectl


async def test_it_discovers_what_is_served(kubectl: Any) -> None:
    listed = await kubectl("api-resources", "--api-group=resource.k8s.io", "-o", "name")
    names = {line.partition(".")[0] for line in listed.out.splitlines()}
    assert names == {"deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices"}
    versions = (await kubectl("api-versions")).out.split()
    assert {"v1", "resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1"} <= set(versions)
    assert "v1.37" in (await kubectl("version")).out


async def test_create_get_describe_delete(kubectl: Any, claim: Any, resource_slice: Any) -> None:
    created = await kubectl("create", "-f", kubectl.file(claim(), resource_slice()))
    assert created.out.splitlines() == [
        "resourceclaim.resource.k8s.io/gpu created",
        "resourceslice.resource.k8s.io/node-a-gpu created",
    ]
    claims = (await kubectl("get", "resourceclaims")).rows
    assert claims[0] == ["NAME", "STATE", "AGE"]
    assert claims[1][:2] == ["gpu", "pending"]
    slices = (await kubectl("get", "resourceslices", "--field-selector=spec.driver=gpu.example.com")).rows
    assert slices[0] == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert slices[1][:4] == ["node-a-gpu", "node-a", "gpu.example.com", "node-a"]
    assert (await kubectl("get", "resourceslices", "--field-selector=spec.pool.name=other")).out == ""
    described = (await kubectl("describe", "resourceclaim", "gpu")).out
    assert "Allocation Mode:    ExactCount" in described
    assert "Events:" in described
    deleted = await kubectl("delete", "resourceclaim/gpu", "resourceslice/node-a-gpu")
    assert deleted.out.count("deleted") == 2
    gone = await kubectl.run("get", "resourceclaim", "gpu")
    assert (gone.code, gone.err) == (
        1,
        'Error from server (NotFound): resourceclaims.resource.k8s.io "gpu" not found\n',
    )


async def test_states_of_a_claim(kubectl: Any, claim: Any) -> None:
    await kubectl("create", "-f", kubectl.file(claim()))
    device = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"}
    stored = kubectl.server.get("resourceclaims", "gpu", "default")
    stored["status"] = {
        "allocation": {"devices": {"results": [device]}},
        "reservedFor": [{"resource": "pods", "name": "pod", "uid": "1"}],
    }
    kubectl.server.update(stored, subresource="status")
    assert (await kubectl("get", "resourceclaims", "--no-headers")).rows[0][1] == "allocated,reserved"


async def test_older_versions_are_shown_on_request(kubectl: Any, resource_slice: Any) -> None:
    await kubectl("create", "-f", kubectl.file(resource_slice()))
    shown = await kubectl("get", "resourceslices.v1beta1.resource.k8s.io", "node-a-gpu", "-o", "json")
    assert '"basic"' in shown.out
    assert "resource.k8s.io/v1beta1 ResourceSlice is deprecated in v1.35+" in shown.err


async def test_explain_knows_the_fields(kubectl: Any) -> None:
    explained = (await kubectl("explain", "resourceclaim.spec.devices.requests.exactly")).out
    assert "deviceClassName" in explained
    assert "ExactDeviceRequest" in explained
    assert "devices\t<[]Device>" in (await kubectl("explain", "resourceslices.spec")).out
    old = await kubectl("explain", "resourceslice.spec.devices", "--api-version=resource.k8s.io/v1beta1")
    assert "basic\t<BasicDevice>" in old.out
    assert "resourceClaims\t<[]PodResourceClaim>" in (await kubectl("explain", "pod.spec")).out


async def test_client_side_apply_creates_changes_and_prunes(kubectl: Any, claim: Any, resource_slice: Any) -> None:
    assert "created" in (await kubectl("apply", "-f", kubectl.file(claim(a="1", b="2"), resource_slice()))).out
    assert "configured" in (await kubectl("apply", "-f", kubectl.file(claim(b="3")))).out
    labels = kubectl.server.get("resourceclaims", "gpu", "default")["metadata"]["labels"]
    assert labels == {"b": "3"}
    changed = resource_slice(pool={"name": "node-a", "generation": 2, "resourceSliceCount": 1})
    assert "configured" in (await kubectl("apply", "-f", kubectl.file(changed))).out
    assert kubectl.server.get("resourceslices", "node-a-gpu")["spec"]["pool"]["generation"] == 2
    assert "unchanged" in (await kubectl("apply", "-f", kubectl.file(changed))).out


async def test_immutable_specs_are_refused(kubectl: Any, claim: Any) -> None:
    await kubectl("apply", "-f", kubectl.file(claim()))
    other = claim()
    other["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    refused = await kubectl.run("apply", "-f", kubectl.file(other))
    assert refused.code == 1
    assert "spec: Invalid value" in refused.err
    assert "field is immutable" in refused.err


async def test_server_side_apply_and_its_conflicts(kubectl: Any, resource_slice: Any) -> None:
    first = kubectl.file(resource_slice())
    assert "serverside-applied" in (await kubectl("apply", "--server-side", "-f", first)).out
    assert "serverside-applied" in (await kubectl("apply", "--server-side", "-f", first)).out
    assert kubectl.server.get("resourceslices", "node-a-gpu")["metadata"]["generation"] == 1
    changed = kubectl.file(resource_slice(pool={"name": "node-a", "generation": 2, "resourceSliceCount": 1}))
    refused = await kubectl.run("apply", "--server-side", "--field-manager=other", "-f", changed)
    assert refused.code == 1
    assert 'conflict with "kubectl": .spec.pool.generation' in refused.err
    await kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", changed)
    managers = kubectl.server.get("resourceslices", "node-a-gpu")["metadata"]["managedFields"]
    assert [entry["manager"] for entry in managers] == ["kubectl", "other"]


async def test_server_side_apply_after_client_side_apply(kubectl: Any, resource_slice: Any) -> None:
    first, second = resource_slice(), resource_slice()
    first["metadata"]["labels"], second["metadata"]["labels"] = {"a": "1"}, {"b": "2"}
    await kubectl("apply", "-f", kubectl.file(first))
    await kubectl("apply", "--server-side", "-f", kubectl.file(second))
    assert kubectl.server.get("resourceslices", "node-a-gpu")["metadata"]["labels"] == {"b": "2"}


async def test_patch_label_annotate(kubectl: Any, resource_slice: Any) -> None:
    await kubectl("create", "-f", kubectl.file(resource_slice()))
    slice_ = "resourceslice/node-a-gpu"
    await kubectl("patch", slice_, "--type=merge", "-p", '{"spec":{"pool":{"generation":5}}}')
    await kubectl("patch", slice_, "--type=json", "-p", '[{"op":"remove","path":"/spec/devices/0/attributes"}]')
    await kubectl("label", slice_, "a=b")
    await kubectl("annotate", slice_, "c=d")
    stored = kubectl.server.get("resourceslices", "node-a-gpu")
    assert stored["spec"]["pool"]["generation"] == 5
    assert stored["spec"]["devices"] == [{"name": "gpu-0"}]
    assert (stored["metadata"]["labels"], stored["metadata"]["annotations"]) == ({"a": "b"}, {"c": "d"})


async def test_diff_and_dry_run_change_nothing(kubectl: Any, resource_slice: Any) -> None:
    await kubectl("apply", "-f", kubectl.file(resource_slice()))
    changed = kubectl.file(resource_slice(pool={"name": "node-a", "generation": 2, "resourceSliceCount": 1}))
    difference = await kubectl.run("diff", "-f", changed)
    assert difference.code == 1
    assert "+    generation: 2" in difference.out
    await kubectl("apply", "--dry-run=server", "-f", changed)
    await kubectl("delete", "resourceslices", "--all", "--dry-run=server")
    assert kubectl.server.get("resourceslices", "node-a-gpu")["spec"]["pool"]["generation"] == 1


async def test_watch_prints_each_change(kubectl: Any, claim: Any) -> None:
    process = await kubectl.start("get", "resourceclaims", "--watch", "--no-headers", "-o", "name")
    async with asyncio.timeout(20):
        while not kubectl.server.watching("resourceclaims"):  # noqa: ASYNC110  (another process opens it)
            await asyncio.sleep(0.01)
        kubectl.server.create(claim("one"))
        kubectl.server.create(claim("two"))
        lines = [await process.stdout.readline() for _ in range(2)]
    process.terminate()
    await process.communicate()
    assert lines == [b"resourceclaim.resource.k8s.io/one\n", b"resourceclaim.resource.k8s.io/two\n"]


async def test_watch_shows_the_states_of_a_claim(kubectl: Any, claim: Any) -> None:
    process = await kubectl.start("get", "resourceclaims", "--watch")

    async def state() -> list[str]:
        line: bytes = await process.stdout.readline()
        return line.decode().split()[:2]

    async with asyncio.timeout(20):
        while not kubectl.server.watching("resourceclaims"):  # noqa: ASYNC110  (another process opens it)
            await asyncio.sleep(0.01)
        stored = kubectl.server.create(claim())
        assert await state() == ["NAME", "STATE"]
        assert await state() == ["gpu", "pending"]
        device = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"}
        stored["status"] = {
            "allocation": {"devices": {"results": [device]}},
            "reservedFor": [{"resource": "pods", "name": "pod", "uid": "1"}],
        }
        kubectl.server.update(stored, subresource="status")
        assert await state() == ["gpu", "allocated,reserved"]
        kubectl.server.delete("resourceclaims", "gpu", "default")
        assert await state() == ["gpu", "allocated,reserved"]
    process.terminate()
    await process.communicate()


async def test_wait_sees_a_condition_and_a_deletion(kubectl: Any, claim: Any) -> None:
    kubectl.server.create(claim())
    waiting = await kubectl.start(
        "wait", "resourceclaim/gpu", "--for=jsonpath={.metadata.labels.ready}=yes", "--timeout=20s"
    )
    deleted = await kubectl.start("wait", "resourceclaim/gpu", "--for=delete", "--timeout=20s")
    await kubectl("label", "resourceclaim", "gpu", "ready=yes")
    out, err = await waiting.communicate()
    assert (waiting.returncode, out) == (0, b"resourceclaim.resource.k8s.io/gpu condition met\n"), err
    await kubectl("delete", "resourceclaim", "gpu")
    await deleted.communicate()
    assert deleted.returncode == 0


async def test_strict_validation_finds_unknown_fields(kubectl: Any, claim: Any) -> None:
    wrong = claim()
    wrong["spec"]["devices"]["request"] = []
    refused = await kubectl.run("create", "-f", kubectl.file(wrong))
    assert refused.code == 1
    assert 'unknown field "spec.devices.request"' in refused.err
    warned = await kubectl("create", "--validate=warn", "-f", kubectl.file(wrong))
    assert 'Warning: unknown field "spec.devices.request"' in warned.err


async def test_pods_namespaces_and_events(kubectl: Any) -> None:
    await kubectl("create", "namespace", "team")
    await kubectl("create", "configmap", "settings", "-n", "team", "--from-literal=a=b")
    await kubectl("create", "secret", "generic", "key", "-n", "team", "--from-literal=c=d")
    await kubectl("create", "serviceaccount", "driver", "-n", "team")
    assert kubectl.server.get("configmaps", "settings", "team")["data"] == {"a": "b"}
    assert kubectl.server.get("secrets", "key", "team")["data"] == {"c": "ZA=="}
    assert len((await kubectl("create", "token", "driver", "-n", "team")).out.strip()) > 20
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "team"},
        "spec": {
            "containers": [{"name": "c", "image": "i:1", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu-template"}],
        },
    }
    await kubectl("apply", "-f", kubectl.file(pod))
    rows = (await kubectl("get", "pods", "-n", "team", "-o", "wide")).rows
    assert rows[1][:4] == ["pod", "0/1", "Pending", "0"]
    kubectl.server.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "team"},
            "involvedObject": {
                "kind": "Pod",
                "name": "pod",
                "namespace": "team",
                "uid": kubectl.server.get("pods", "pod", "team")["metadata"]["uid"],
            },
            "reason": "FailedScheduling",
            "message": "no devices",
            "type": "Warning",
            "count": 1,
        }
    )
    described = (await kubectl("describe", "pod", "pod", "-n", "team")).out
    assert "no devices" in described
    assert "FailedScheduling" in (await kubectl("get", "events", "-n", "team")).out
    await kubectl("delete", "namespace", "team")
    assert kubectl.server.get("namespaces", "team") is None


async def test_cordon_and_drain(kubectl: Any) -> None:
    kubectl.server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}})
    pod = {"nodeName": "node-a", "containers": [{"name": "c", "image": "i"}]}
    kubectl.server.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": pod})
    await kubectl("cordon", "node-a")
    assert "SchedulingDisabled" in (await kubectl("get", "nodes")).out
    await kubectl("drain", "node-a", "--force", "--grace-period=0", "--timeout=20s")
    assert kubectl.server.list("pods") == []


async def test_edit_and_replace(kubectl: Any, resource_slice: Any) -> None:
    await kubectl("create", "-f", kubectl.file(resource_slice()))
    shown = await kubectl.json("get", "resourceslice", "node-a-gpu")
    shown["spec"]["pool"]["generation"] = 9
    assert "replaced" in (await kubectl("replace", "-f", kubectl.file(shown))).out
    stale = await kubectl.run("replace", "-f", kubectl.file(shown))
    assert "the object has been modified" in stale.err


async def test_auth(kubectl: Any) -> None:
    assert (await kubectl("auth", "can-i", "list", "resourceslices")).out == "yes\n"
    assert "kubernetes-admin" in (await kubectl("auth", "whoami")).out


async def test_a_user_without_permission(kubectl: Any) -> None:
    kubectl.server.faults.fail(
        403, reason="Forbidden", message="resourceslices is forbidden", resource="resourceslices"
    )
    refused = await kubectl.run("get", "resourceslices")
    assert "Error from server (Forbidden)" in refused.err
