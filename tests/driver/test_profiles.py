"""Every profile that `drakit run --device-profile` offers: its pools are published, its devices can be prepared."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drakit import admission
from drakit.cli import options, run
from drakit.devices.simulated import PROFILES, SimulatedDriver
from drakit.devices.simulated.pools import POOL_PROFILES
from drakit.driver.publication import DriverResources
from drakit.simulator.apiserver import FakeAPIServer

NODE = "node-a"


@pytest.fixture(name="generous")
async def _generous(node: Any) -> AsyncIterator[None]:
    """An API server with every feature that a profile needs."""
    gates = {gate for profile in POOL_PROFILES.values() for gate in profile.gates}
    async with FakeAPIServer(tls=False, authenticate=False, gates=admission.profile("1.37") | gates) as server:
        node.server = server
        server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        yield
        await node.close()
        node.applications.clear()
        node.kubelets.clear()


def test_the_choices_are_the_default_and_the_pools_of_a_node() -> None:
    local = sorted(name for name, profile in POOL_PROFILES.items() if profile.local)
    assert (*PROFILES, *local) == run.DEVICE_PROFILES


@pytest.mark.parametrize("name", sorted(name for name, profile in POOL_PROFILES.items() if not profile.local))
def test_a_cluster_wide_profile_is_not_for_a_node(name: str) -> None:
    with pytest.raises(KeyError, match="drakit publish"):
        SimulatedDriver(NODE, profile=name)


def test_flag_and_environment_variable() -> None:
    def chosen(*words: str, **environment: str) -> str:
        parser = options.Parser()
        run.add_arguments(parser)
        arguments = parser.parse_args(["--node-name", NODE, *words])
        options.resolve(arguments, environment)
        return str(arguments.device_profile)

    assert chosen() == "gpu"
    assert chosen(DEVICE_PROFILE="many") == "many"
    assert chosen("--device-profile=taints", DEVICE_PROFILE="many") == "taints"
    with pytest.raises(options.UsageError, match="DEVICE_PROFILE: 'zone' is not one of gpu, "):
        chosen(DEVICE_PROFILE="zone")


@pytest.mark.parametrize("name", run.DEVICE_PROFILES)
@pytest.mark.usefixtures("generous")
async def test_a_profile_is_published_and_prepared(node: Any, eventually: Any, name: str) -> None:
    driver = SimulatedDriver(NODE, profile=name)
    application, kubelet = await node.start(driver)
    found = driver.devices()
    resources = found if isinstance(found, DriverResources) else DriverResources.for_node(NODE, found)
    (pool,) = resources.pools
    names = [device.name for device in resources.pools[pool].devices]

    def published() -> list[str]:
        specs = [item["spec"] for item in node.server.list("resourceslices")]
        assert all((spec["nodeName"], spec["pool"]["name"]) == (NODE, pool) for spec in specs)
        return [device["name"] for spec in specs for device in spec.get("devices", ())]

    await eventually(lambda: sorted(published()) == sorted(names) and not application.publishing.unready())
    claim = node.claim("c", {"pool": pool, "device": names[-1]})
    (device,) = (await kubelet.prepare(claim))[claim.uid].devices
    assert (device.pool_name, device.device_name) == (pool, names[-1])
    assert await kubelet.unprepare(claim) == {claim.uid: ""}
    assert node.files() == []
