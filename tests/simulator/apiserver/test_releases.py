"""One client against the servers of all modelled releases: it finds the newest version that each of them serves."""

from typing import Any

import pytest

from drakit import admission, kube
from drakit.simulator.apiserver import FakeAPIServer


@pytest.mark.parametrize(
    ("release", "served"),
    [("1.32", "v1beta1"), ("1.33", "v1beta2"), ("1.34", "v1"), ("1.35", "v1"), ("1.36", "v1"), ("1.37", "v1")],
)
async def test_slices_live_their_life_in_every_release(release: str, served: str, make_slice: Any) -> None:
    async with (
        FakeAPIServer(release) as server,
        kube.Client(kube.from_kubeconfig(server.kubeconfig())) as client,
    ):
        created = await client.create(kube.RESOURCE_SLICES, make_slice("a"))
        assert created["spec"]["devices"] == [{"name": "dev-0"}]
        changed = {**created, "spec": {**created["spec"], "devices": [{"name": "dev-1"}]}}
        updated = await client.update(kube.RESOURCE_SLICES, changed)
        assert updated["metadata"]["generation"] == 2
        listed = await client.get(kube.RESOURCE_SLICES, "a")
        assert listed["spec"]["devices"] == [{"name": "dev-1"}]
        await client.delete(kube.RESOURCE_SLICES, "a")
        assert server.list("resourceslices") == []
        assert {call.version for call in server.requests.calls if call.status < 400 and call.resource} == {served}


async def test_a_release_drops_what_its_gates_do_not_know(make_slice: Any) -> None:
    tainted = [{"name": "dev-0", "taints": [{"key": "example.com/bad", "effect": "NoExecute"}]}]
    stored = {}
    for gates in (None, admission.profile("1.35", all_gates=True)):
        async with FakeAPIServer("1.35", gates=gates) as server:
            created = server.create(make_slice("a", devices=tainted))
            stored[gates is None] = "taints" in created["spec"]["devices"][0]
    assert stored == {True: False, False: True}


def test_an_unknown_release_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"unknown Kubernetes version '1\.20'"):
        FakeAPIServer("1.20", tls=False)
