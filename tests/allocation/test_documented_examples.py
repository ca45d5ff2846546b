"""The examples and remaining bullets of the documentation pages on allocation (1.37), beside test_documentation.py.

What the pages promise about the API server is tested in tests/admission: limits, names, derived attributes that no
constraint uses, their cost, combinations of skipped operations, and the label for admin access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drakit import api
from drakit.allocation import AllocatedState, AllocationError, Allocator, Features

if TYPE_CHECKING:
    from types import SimpleNamespace

EVERYTHING = Features.everything()
A = 'device.attributes["driver-a"]'


def _without(*gates: str) -> Features:
    return msgspec.structs.replace(EVERYTHING, **dict.fromkeys(gates, False))


# Slices for all nodes


@pytest.mark.parametrize("name", ["node-1", "node-2"])
def test_devices_of_all_nodes_are_allocated_anywhere_and_bind_to_no_node(build: SimpleNamespace, name: str) -> None:
    cat = build.device("large-black-cat", attributes={"color": "black", "size": "large", "cat": True})
    slices = [build.slice("cat-slice", cat, pool="black-cat-pool", allNodes=True)]
    claim = build.claim("c", build.exactly("req-0", "class-a", f'{A}.color == "black" && {A}.cat'))
    [result] = build.allocate(slices, [claim], at=build.node(name))
    assert build.chosen([result]) == [["req-0=large-black-cat"]]
    assert result.node_selector is None


# List attributes


@pytest.mark.parametrize("attribute", ["model", "supported"])
@pytest.mark.parametrize(("wanted", "fits"), [("model-a", True), ("model-c", False)])
def test_includes_works_on_one_value_and_on_several(
    build: SimpleNamespace, attribute: str, wanted: str, fits: bool
) -> None:
    device = build.device("d", attributes={"model": "model-a", "supported": ["model-a", "model-b"]})
    claims = [build.claim("c", build.exactly("r", "class-a", f'{A}.{attribute}.includes("{wanted}")'))]
    assert (build.allocate([build.slice("s", device)], claims) is not None) is fits


def test_selectors_read_lists_even_when_constraints_may_not(build: SimpleNamespace) -> None:
    """Stored expressions are evaluated with all libraries, whatever the gate."""
    slices = [build.slice("s", build.device("d", attributes={"roots": ["a", "b"]}))]
    claims = [build.claim("c", build.exactly("r", "class-a", f'{A}.roots.includes("b")'))]
    assert build.allocate(slices, claims, features=_without("list_type_attributes")) is not None


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ({"int": 1}, {"ints": [0, 1]}),
        ({"bool": True}, {"bools": [True, False]}),
        ({"string": "a"}, {"strings": ["a", "b"]}),
        ({"version": "1.0.0"}, {"versions": ["1.0.0", "2.0.0"]}),
    ],
)
def test_all_kinds_of_lists_can_be_matched(build: SimpleNamespace, one: dict[str, Any], several: Any) -> None:
    devices = [build.device("one", attributes={"x": one}), build.device("several", attributes={"x": several})]
    slices = [build.slice("s", *devices)]
    match = build.claim("c", build.exactly("r", count=2), constraints=[{"matchAttribute": "driver-a/x"}])
    differ = build.claim("c", build.exactly("r", count=2), constraints=[{"distinctAttribute": "driver-a/x"}])
    assert build.chosen(build.allocate(slices, [match])) == [["r=one", "r=several"]]
    assert build.allocate(slices, [differ]) is None


def test_without_the_gate_lists_are_said_to_be_incomparable(build: SimpleNamespace) -> None:
    devices = [build.device(f"d{index}", attributes={"roots": ["a", f"b{index}"]}) for index in range(2)]
    features = _without("list_type_attributes")
    allocator = Allocator([build.slice("s", *devices)], build.default_classes(), features=features)
    for constraint in ("matchAttribute", "distinctAttribute"):
        claim = build.claim("c", build.exactly("r", count=2), constraints=[{constraint: "driver-a/roots"}])
        text = str(allocator.explain(build.node(), [claim]))
        assert "1 with an incomparable attribute driver-a/roots of constraint 0" in text


# Derived attributes


def _derived(name: str, expression: str) -> dict[str, Any]:
    return {"derivedAttributes": [{"name": name, "expression": expression}]}


def test_a_careful_expression_survives_devices_without_the_attribute(build: SimpleNamespace) -> None:
    devices = [build.device("bare"), build.device("d0", attributes={"numa": 0}), build.device("d1")]
    careful = f"{A}.?numa.orValue(-1)"
    guarded = f"has({A}.numa) ? {A}.numa : -1"
    for expression in (careful, guarded):
        claim = build.claim(
            "c",
            build.exactly("r", count=2, **_derived("derived/numa", expression)),
            constraints=[{"matchAttribute": "derived/numa"}],
        )
        assert build.chosen(build.allocate([build.slice("s", *devices)], [claim])) == [["r=bare", "r=d1"]]


def test_a_value_hidden_in_a_text_can_be_taken_out(build: SimpleNamespace) -> None:
    gpus = [build.device(f"gpu-{index}", attributes={"pcie_locality": f"pci{index}"}) for index in range(2)]
    nic = build.device("nic", attributes={"pcie_root": "numa0-pci1"})
    slices = [build.slice("a", *gpus), build.slice("b", nic, driver="driver-b")]
    root = 'device.attributes["driver-b"].pcie_root.split("-")[1]'
    claim = build.claim(
        "c",
        build.exactly("gpu", **_derived("derived/root", f"{A}.pcie_locality")),
        build.exactly("nic", "class-b", **_derived("derived/root", root)),
        constraints=[{"requests": ["gpu", "nic"], "matchAttribute": "derived/root"}],
    )
    assert build.chosen(build.allocate(slices, [claim])) == [["gpu=gpu-1", "nic=nic"]]


def test_shadowing_is_a_matter_of_the_request_that_derives(build: SimpleNamespace) -> None:
    """r0 says 1 for every device, r1 sees what the driver published."""
    devices = [build.device(f"d{index}", attributes={"numa": index}) for index in (0, 2, 1)]
    claim = build.claim(
        "c",
        build.exactly("r0", **_derived("driver-a/numa", "1")),
        build.exactly("r1"),
        constraints=[{"matchAttribute": "driver-a/numa"}],
    )
    assert build.chosen(build.allocate([build.slice("s", *devices)], [claim])) == [["r0=d0", "r1=d1"]]


@pytest.mark.parametrize("expression", ["1.5", '{"a": 1}', 'quantity("1Gi")'])
def test_derived_attributes_of_other_types_end_the_attempt(build: SimpleNamespace, expression: str) -> None:
    claim = build.claim(
        "c", build.exactly("r", **_derived("derived/x", expression)), constraints=[{"matchAttribute": "derived/x"}]
    )
    with pytest.raises(AllocationError) as raised:
        build.allocate([build.slice("s", build.device("d"))], [claim])
    assert raised.value.path == "spec.devices.requests[0].exactly.derivedAttributes[0]"


def test_an_error_in_a_derived_attribute_stays_latent_behind_the_chosen_device(build: SimpleNamespace) -> None:
    devices = [build.device("good", attributes={"numa": 0}), build.device("bare")]
    claim = build.claim(
        "c", build.exactly("r", **_derived("derived/x", f"{A}.numa")), constraints=[{"matchAttribute": "derived/x"}]
    )
    assert build.chosen(build.allocate([build.slice("s", *devices)], [claim])) == [["r=good"]]


# Extended resources


def test_a_claim_for_an_extended_resource_asks_for_so_many_devices_of_the_class(build: SimpleNamespace) -> None:
    """What the scheduler makes of `example.com/gpu: 2`; it fits where the class finds two devices or more."""
    body = {
        "metadata": {"name": "gpu.example.com"},
        "spec": {
            "selectors": [{"cel": {"expression": f'device.driver == "driver-a" && {A}.type == "gpu"'}}],
            "extendedResourceName": "example.com/gpu",
        },
    }
    classes = [api.decode(body, "DeviceClass")]
    claims = [build.claim("pod-extended-resources", build.exactly("container-0-request-0", "gpu.example.com", count=2))]
    gpus = [build.device(f"gpu-{index}", attributes={"type": "gpu"}) for index in range(2)]
    other = build.device("vpu-0", attributes={"type": "vpu"})
    assert build.allocate([build.slice("s", gpus[0], other)], claims, classes=classes) is None
    assert build.chosen(build.allocate([build.slice("s", other, *gpus)], claims, classes=classes)) == [
        ["container-0-request-0=gpu-0", "container-0-request-0=gpu-1"]
    ]


# Compatibility groups


def _gpu(build: SimpleNamespace, *devices: Any) -> list[Any]:
    counters = [build.counter_set("gpu-0-memory", memory="8Gi")]
    return [
        build.slice("gpu-counters", count=2, sharedCounters=counters, pool="gpu-pool"),
        build.slice("gpu-devices", *devices, count=2, pool="gpu-pool"),
    ]


def _mode(build: SimpleNamespace, name: str, *groups: str, memory: str = "4Gi", **fields: Any) -> Any:
    return build.device(name, consumesCounters=[build.draws("gpu-0-memory", list(groups), memory=memory)], **fields)


def test_memory_for_two_does_not_help_devices_of_different_modes(build: SimpleNamespace) -> None:
    slices = _gpu(build, _mode(build, "gpu-0-mig", "mig"), _mode(build, "gpu-0-vgpu", "vgpu"))
    two = [build.claim("c", build.exactly("r", count=2))]
    assert build.allocate(slices, two) is None
    assert build.allocate(slices, two, features=_without("device_compatibility_groups")) is None
    for name in ("gpu-0-mig", "gpu-0-vgpu"):
        slices = _gpu(
            build, *(_mode(build, f"{name}-{index}", name.removeprefix("gpu-0-"), memory="4Gi") for index in range(2))
        )
        assert build.chosen(build.allocate(slices, two)) == [[f"r={name}-0", f"r={name}-1"]]


def test_groups_need_partitionable_devices_as_well(build: SimpleNamespace) -> None:
    slices = _gpu(build, _mode(build, "gpu-0-mig", "mig"), build.device("whole"))
    claims = [build.claim("c", build.exactly("r"))]
    features = _without("partitionable_devices")
    assert build.chosen(build.allocate(slices, claims)) == [["r=gpu-0-mig"]]
    assert build.chosen(build.allocate(slices, claims, features=features)) == [["r=whole"]]


def test_allocated_devices_and_those_of_this_call_count_together(build: SimpleNamespace) -> None:
    """Held `ab` and chosen `bc` leave only b, which `ac` does not have, though it goes with each of them alone."""
    devices = [_mode(build, name, *name, memory="1Gi") for name in ("ab", "bc", "ac")]
    held = [build.holding("h", {"device": "ab", "pool": "gpu-pool"})]
    one, two = (build.claim("c", build.exactly("r", count=count)) for count in (1, 2))
    assert build.chosen(build.allocate(_gpu(build, *devices), [one], allocated=held)) == [["r=bc"]]
    assert build.allocate(_gpu(build, *devices), [two], allocated=held) is None
    assert build.chosen(build.allocate(_gpu(build, *devices[1:]), [two])) == [["r=bc", "r=ac"]]


def test_a_shared_partition_keeps_its_mode(build: SimpleNamespace) -> None:
    shared = _mode(build, "mig", "mig", allowMultipleAllocations=True, capacity={"memory": "4Gi"})
    held = [
        build.holding("h", {"device": "mig", "pool": "gpu-pool", "shareID": "s", "consumedCapacity": {"memory": "1Gi"}})
    ]
    slices = _gpu(build, shared, _mode(build, "vgpu", "vgpu"))
    wanted = build.exactly("r", "class-a", "device.allowMultipleAllocations == false")
    assert build.chosen(build.allocate(slices, [build.claim("c", wanted)])) == [["r=vgpu"]]
    assert build.allocate(slices, [build.claim("c", wanted)], allocated=held) is None
    more = build.exactly("r", capacity={"requests": {"memory": "1Gi"}})
    assert build.chosen(build.allocate(slices, [build.claim("c", more)], allocated=held)) == [["r=mig"]]


# Consumable capacity


def test_without_the_gate_a_shareable_device_has_one_user(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("eth1", allowMultipleAllocations=True, capacity={"bandwidth": "10G"}))]
    features = _without("consumable_capacity", "fractional_capacity_range")
    [result] = build.allocate(slices, [build.claim("c", build.exactly("r"))], features=features)
    [device] = result.devices.results
    assert (device.share_id, device.consumed_capacity) == (None, {})
    claims = [build.claim(name, build.exactly("r")) for name in ("c0", "c1")]
    assert build.allocate(slices, claims, features=features) is None
    held = [build.holding("h", {"device": "eth1", "shareID": "s", "consumedCapacity": {"bandwidth": "1G"}})]
    assert build.allocate(slices, claims[:1], allocated=held, features=features) is None


def test_the_capacity_to_request_is_named_as_the_driver_names_it(build: SimpleNamespace) -> None:
    """Names with a domain, as in the example of a driver for processors, are no short form of anything."""
    sockets = [
        build.device(
            f"socket{index}cpus",
            allowMultipleAllocations=True,
            capacity={
                "cpu.example.com/cpu": {
                    "value": "128",
                    "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "1"}},
                }
            },
        )
        for index in range(2)
    ]
    slices = [build.slice("s", *sockets, driver="driver-a", pool="socket-cpus")]

    def claims(name: str, *amounts: str) -> list[Any]:
        return [
            build.claim(f"c{index}", build.exactly("r", capacity={"requests": {name: amount}}))
            for index, amount in enumerate(amounts)
        ]

    results = build.allocate(slices, claims("cpu.example.com/cpu", "100", "28", "64"))
    assert build.chosen(results) == [["r=socket0cpus"], ["r=socket0cpus"], ["r=socket1cpus"]]
    consumed = [str(result.devices.results[0].consumed_capacity["cpu.example.com/cpu"]) for result in results]
    assert consumed == ["100", "28", "64"]
    assert build.allocate(slices, claims("cpu", "1")) is None


def test_distinct_spreads_shares_over_numa_nodes(build: SimpleNamespace) -> None:
    devices = [
        build.device(name, attributes={"numa": numa}, allowMultipleAllocations=True, capacity={"bandwidth": "10G"})
        for name, numa in (("eth0", 0), ("eth1", 0), ("eth2", 1))
    ]
    bandwidth = {"capacity": {"requests": {"bandwidth": "1G"}}}
    requests = [build.exactly(name, **bandwidth) for name in ("r0", "r1")]
    spread = build.claim("c", *requests, constraints=[{"distinctAttribute": "driver-a/numa"}])
    assert build.chosen(build.allocate([build.slice("s", *devices)], [build.claim("c", *requests)])) == [
        ["r0=eth0", "r1=eth0"]
    ]
    assert build.chosen(build.allocate([build.slice("s", *devices)], [spread])) == [["r0=eth0", "r1=eth2"]]


# Optional node operations


@pytest.mark.parametrize(
    "skipped", [["*"], ["NodeUnprepareResources"], ["NodePrepareResources", "NodeUnprepareResources"]]
)
def test_what_is_skipped_is_copied_as_written_for_each_driver(build: SimpleNamespace, skipped: list[str]) -> None:
    virtual = build.slice("s", build.device("virtual-device-1"), pool="central-pool", skipNodeOperations=skipped)
    real = build.slice("t", build.device("gpu"), driver="driver-b")
    node = build.node()
    status = msgspec.structs.replace(node.status, declared_features=("DRAOptionalNodeOperations",))
    able = msgspec.structs.replace(node, status=status)
    claim = build.claim("c", build.exactly("r0"), build.exactly("r1", "class-b"))
    [result] = build.allocate([virtual, real], [claim], at=able)
    assert [each.skip_node_operations for each in result.devices.results] == [tuple(skipped), ()]


# Taints


def _rule(effect: str, **selector: str) -> Any:
    taint = {"key": "dra.example.com/unhealthy", "value": "Broken", "effect": effect}
    spec = {"taint": taint, "deviceSelector": selector}
    return api.decode({"metadata": {"name": "example"}, "spec": spec}, "DeviceTaintRule")


def test_a_dry_run_taints_nothing_until_its_effect_is_changed(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d")), build.slice("t", build.device("e"), driver="driver-b")]
    allocator = Allocator(slices, build.default_classes(), AllocatedState(), rules=[_rule("None", driver="driver-a")])
    claims = [build.claim("c", build.exactly("r", "any"))]
    assert build.chosen(allocator.allocate(build.node(), claims)) == [["r=d"]]
    allocator.update_rule(_rule("NoExecute", driver="driver-a"))
    assert build.chosen(allocator.allocate(build.node(), claims)) == [["r=e"]]
    allocator.remove_rule("example")
    assert build.chosen(allocator.allocate(build.node(), claims)) == [["r=d"]]


def test_taints_of_the_driver_and_of_rules_must_all_be_tolerated(build: SimpleNamespace) -> None:
    slices = [build.slice("s", build.device("d", taints=[{"key": "hot", "effect": "NoSchedule"}]))]
    rules = [_rule("NoExecute", driver="driver-a", pool="pool", device="d")]
    hot = {"key": "hot", "operator": "Exists"}
    broken = {"key": "dra.example.com/unhealthy", "value": "Broken", "effect": "NoExecute"}

    def fits(*tolerations: Any) -> bool:
        claim = build.claim("c", build.exactly("r", tolerations=list(tolerations)))
        return build.allocate(slices, [claim], rules=rules) is not None

    assert not fits()
    assert not fits(hot)
    assert not fits(broken)
    assert fits(hot, broken)
    assert fits({"operator": "Exists"})


def test_a_pool_named_like_its_node_is_tainted_with_one_rule(build: SimpleNamespace) -> None:
    slices = [
        build.slice(f"{driver}-{node}", build.device("d"), driver=driver, pool=node, nodeName=node)
        for driver in ("driver-a", "driver-b")
        for node in ("node-1", "node-2")
    ]
    claims = [build.claim("c", build.exactly("r0"), build.exactly("r1", "class-b"))]
    rules = [_rule("NoSchedule", pool="node-1")]
    assert build.allocate(slices, claims, rules=rules, at=build.node("node-1")) is None
    assert build.allocate(slices, claims, rules=rules, at=build.node("node-2")) is not None
