"""Every field of a ResourceSlice up to 1.37 can be published: the simulated pools do so, and nothing is dropped."""

from typing import Any

import pytest

from drakit import admission
from drakit.api import resource
from drakit.devices.simulated.pools import POOL_PROFILES
from drakit.driver.publication.layout import cut
from drakit.driver.publication.slices import Stamp, body


@pytest.mark.parametrize("name", sorted(POOL_PROFILES))
async def test_a_profile_is_published_whole(make_lab: Any, name: str) -> None:
    profile = POOL_PROFILES[name]
    lab = await make_lab(gates=admission.profile("1.37") | set(profile.gates))
    resources = profile.build("node-1")
    running = await lab.publisher(resources, node="node-1" if profile.local else None)
    await lab.ready(running)
    assert running.publisher.dropped == {}
    assert running.publisher.warnings == ()
    writes = lab.writes()
    await lab.settle(120)
    assert lab.writes() == writes


@pytest.mark.parametrize("name", sorted(name for name, profile in POOL_PROFILES.items() if profile.gates))
async def test_without_its_gates_a_profile_is_reported_by_name(make_lab: Any, name: str) -> None:
    profile = POOL_PROFILES[name]
    lab = await make_lab(gates=frozenset({"DRAPartitionableDevices", "DRADeviceTaints"} - set(profile.gates)))
    running = await lab.publisher(profile.build("node-1"), node="node-1" if profile.local else None)
    await lab.settle(60)
    assert any(profile.gates[0] in words for words in running.publisher.warnings)
    assert running.publisher.ready, running.publisher.reasons
    writes = lab.writes()
    await lab.settle(600)
    assert lab.writes() == writes


def _used(value: Any, path: str = "") -> set[str]:
    if isinstance(value, dict):
        return {path} | {found for key, item in value.items() for found in _used(item, f"{path}.{key}")}
    if isinstance(value, list):
        return {found for item in value for found in _used(item, path)}
    return {path}


def test_together_the_profiles_use_every_field() -> None:
    used: set[str] = set()
    for profile in POOL_PROFILES.values():
        for name, pool in profile.build("n").pools.items():
            for content in cut(pool):
                stamp = Stamp(driver="d.example.com", node_name="n" if profile.local else "")
                sent = body(content, stamp, pool=name, generation=1, count=1, metadata={"name": "x"})
                used |= {path.rpartition(".")[2] for path in _used(sent["spec"])}
    structs = (
        resource.ResourceSliceSpec, resource.Device, resource.DeviceAttribute, resource.DeviceCapacity,
        resource.CapacityRequestPolicy, resource.CapacityRequestPolicyRange, resource.CounterSet,
        resource.DeviceCounterConsumption, resource.DeviceTaint, resource.NodeAllocatableResource,
        resource.NodeAllocatableMapping, resource.NodeAllocatableOverhead,
    )  # fmt: skip
    wanted = {name for struct in structs for name in struct.__struct_encode_fields__}
    # The 1.36 form of nodeAllocatableResources does not exist in 1.37.
    assert wanted - used == {"nodeAllocatableResourceMappings"}
