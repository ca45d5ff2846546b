"""The client and the reflector against the fake API server over HTTPS, with the credentials a pod has."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from drakit import kube
from drakit.simulator.apiserver import FakeAPIServer


def slice_named(name: str, **spec: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": "d.example.com", "allNodes": True, "pool": pool, **spec},
    }


@pytest.fixture(name="fake")
async def _fake() -> AsyncIterator[FakeAPIServer]:
    async with FakeAPIServer() as server:
        yield server


async def test_service_account_with_a_rotated_token(fake: FakeAPIServer, tmp_path: Path, clock: Any) -> None:
    environment = fake.service_account(tmp_path, namespace="default", name="driver")
    async with kube.Client(kube.in_cluster(tmp_path, environment), clock=clock) as client:
        assert (await client.list(kube.RESOURCE_SLICES))["items"] == []
        fake.service_account(tmp_path, namespace="default", name="driver")
        clock.time += 61
        await client.create(kube.RESOURCE_SLICES, slice_named("a"))
        assert (await client.get(kube.RESOURCE_SLICES, "a"))["spec"]["allNodes"] is True


async def test_reflector_over_broken_watches_and_compaction(fake: FakeAPIServer) -> None:
    async with (
        kube.Client(kube.from_kubeconfig(fake.kubeconfig())) as client,
        kube.Reflector(client, kube.RESOURCE_SLICES, field_selector="spec.driver=d.example.com") as reflector,
    ):
        seen: list[str] = []
        enough = asyncio.Event()

        async def follow() -> None:
            async for change in reflector.changes():
                seen.append(f"{change.type} {change.object['metadata']['name']}")
                if len(seen) == 4:
                    enough.set()

        task = asyncio.create_task(follow())
        await reflector.synced.wait()
        fake.create(slice_named("a"))
        fake.create(slice_named("other", driver="other.example.com"))
        fake.drop_watches()
        fake.create(slice_named("b"))
        fake.delete("resourceslices", "a")
        fake.compact()
        fake.create(slice_named("c"))
        fake.drop_watches()
        fake.create(slice_named("d"))
        async with asyncio.timeout(20):
            while set(name for _, name in reflector.store) != {"b", "c", "d"}:  # noqa: ASYNC110, C401
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert "other" not in " ".join(seen)


@pytest.mark.parametrize("version", ["1.32", "1.33", "1.34", "1.37"])
async def test_every_kubernetes_version(version: str, tmp_path: Path) -> None:
    async with (
        FakeAPIServer(version, tls=False) as fake,
        kube.Client(kube.from_kubeconfig(fake.kubeconfig(certificate=False))) as client,
    ):
        device = {"name": "d", "attributes": {"x": {"int": 1}}}
        body = slice_named("a", devices=[device])
        stored = await client.create(kube.RESOURCE_SLICES, body)
        assert stored["spec"]["devices"] == [device]
        assert stored["apiVersion"] == "resource.k8s.io/v1"
        patched = await client.patch(kube.RESOURCE_SLICES, "a", {"metadata": {"labels": {"a": "b"}}})
        assert patched["metadata"]["labels"] == {"a": "b"}
        listed = await client.list(kube.RESOURCE_SLICES)
        assert listed["items"] == [patched]
        with pytest.raises(kube.Conflict):
            await client.delete(kube.RESOURCE_SLICES, "a", uid="another")
        await client.delete(kube.RESOURCE_SLICES, "a", uid=stored["metadata"]["uid"])
        with pytest.raises(kube.NotFound):
            await client.get(kube.RESOURCE_SLICES, "a")


async def test_the_servers_causes_come_through(fake: FakeAPIServer) -> None:
    async with kube.Client(kube.from_kubeconfig(fake.kubeconfig())) as client:
        with pytest.raises(kube.Invalid) as caught:
            await client.create(kube.RESOURCE_SLICES, slice_named("a", devices=[{"name": "Not Legal"}]))
    assert [cause.field for cause in caught.value.causes] == ["spec.devices[0].name"]
    assert caught.value.terminal


async def test_paging_over_many_objects(fake: FakeAPIServer) -> None:
    for number in range(25):
        fake.create(slice_named(f"s{number:02}"))
    async with kube.Client(kube.from_kubeconfig(fake.kubeconfig())) as client:
        listed = await client.list(kube.RESOURCE_SLICES, page_size=10)
        assert [item["metadata"]["name"] for item in listed["items"]] == [f"s{number:02}" for number in range(25)]
        assert fake.requests.count("list", "resourceslices") == 3
