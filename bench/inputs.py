"""Inputs of the allocation benchmark: scheduler_perf's shapes, searches that explode upstream, rows without symmetry.

python bench/inputs.py DIRECTORY [INPUT ...] writes one JSON line per file, in the `--nodes` format of
`python -m drakit.allocation`. The first thirteen are what the Go figures in bench/allocation.py were measured on.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["INPUTS", "write"]

DRIVER = "test-driver.cdi.k8s.io"
GPU, NIC = "gpu.example.com", "nic.example.com"

Object = dict[str, Any]


def named_class(name: str, *expressions: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": each}} for each in expressions]}}


CLASS = named_class("test-class", f'device.driver == "{DRIVER}"')
EVERYWHERE = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "node-with-dra", "operator": "In", "values": ["true"]}]}]
}


def nodes(count: int) -> list[Object]:
    names = [f"scheduler-perf-dra-{index:05d}" for index in range(count)]
    return [{"name": name, "labels": {"node-with-dra": "true", "kubernetes.io/hostname": name}} for name in names]


def perf_device(index: int) -> Object:
    """The device of scheduler_perf's createResourceDriver."""
    return {
        "name": f"instance-{index}",
        "attributes": {
            "model": {"string": "A100"},
            "family": {"string": "GPU"},
            "driverVersion": {"version": "1.2.3"},
            "dra.example.com/numa": {"int": index},
        },
        "capacity": {"memory": {"value": "1Gi"}},
    }


def node_slice(node: str, devices: list[Object], driver: str = DRIVER, generation: int = 0) -> Object:
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": node if driver == DRIVER else f"{driver}-{node}"}, "spec": spec}


def perf_slices(found: Sequence[Object]) -> list[Object]:
    return [node_slice(each["name"], [perf_device(index) for index in range(8)]) for each in found]


def claim(name: str, requests: list[Object], constraints: list[Object] | None = None) -> Object:
    devices: Object = {"requests": requests}
    if constraints:
        devices["constraints"] = constraints
    return {"metadata": {"name": name, "namespace": "test"}, "spec": {"devices": devices}}


def exact(name: str, class_name: str = "test-class", count: int = 1, **fields: Any) -> Object:
    wanted = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count, **fields}
    return {"name": name, "exactly": wanted}


def selecting(expression: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": expression}}]}


def allocated(number: int, results: list[Object]) -> Object:
    return {
        "metadata": {"name": f"init-{number}", "namespace": "init"},
        "spec": {"devices": {"requests": [exact("req-0", count=len(results))]}},
        "status": {"allocation": {"devices": {"results": [{"request": "req-0", **each} for each in results]}}},
    }


def half_in_use(found: Sequence[Object], seed: int) -> list[Object]:
    chance = random.Random(seed)
    held: list[Object] = []
    for node in found:
        for device in chance.sample(range(8), 4):
            result = {"driver": DRIVER, "pool": node["name"], "device": f"instance-{device}"}
            held.append(allocated(len(held), [result]))
    return held


def steady_state(count: int) -> Object:
    """SteadyStateClusterResourceClaimTemplate, half of the devices in use."""
    found = nodes(count)
    return {
        "nodes": found,
        "slices": perf_slices(found),
        "classes": [CLASS],
        "allocatedClaims": half_in_use(found, count),
        "claims": [claim("test-claim", [exact("req-0")])],
    }


_RICH = (
    f'device.attributes["{DRIVER}"].model in ["A100", "H100"]'
    f' && device.attributes["{DRIVER}"].driverVersion.isGreaterThan(semver("1.0.0"))'
    f' && device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
)


def cel_constraint() -> Object:
    """Four of eight devices on one of two NUMA nodes, with several conditions."""
    found = nodes(1000)
    slices = perf_slices(found)
    for each in slices:
        for index, device in enumerate(each["spec"]["devices"]):
            device["attributes"]["dra.example.com/numa"] = {"int": index % 2}
            device["attributes"]["model"] = {"string": "H100" if index % 4 else "A100"}
            device["capacity"]["memory"] = {"value": "80Gi"}
    request = exact("req-0", count=4, **selecting(_RICH))
    wanted = claim("test-claim", [request], [{"matchAttribute": "dra.example.com/numa"}])
    return {"nodes": found, "slices": slices, "classes": [CLASS], "claims": [wanted]}


def _shared_pool(number: int) -> list[Object]:
    pool = {"name": f"resourceslice-{number}", "generation": 1, "resourceSliceCount": 2}
    common = {"driver": DRIVER, "pool": pool, "nodeSelector": EVERYWHERE}
    counters = {f"counter{index}": {"value": "1"} for index in (1, 2, 3, 4)}

    def device(name: str, drawn: list[int], *, preallocate: bool = False) -> Object:
        drawing = {"counterSet": "counter-set", "counters": {f"counter{index}": {"value": "1"} for index in drawn}}
        return {
            "name": name,
            "attributes": {"preallocate": {"bool": preallocate}, "dra.example.com/slice": {"int": number}},
            "capacity": {"counters": {"value": str(len(drawn))}},
            "consumesCounters": [drawing],
        }

    devices = [device("device-2-counters-1", [1, 2], preallocate=True), device("device-2-counters-2", [3, 4])]
    devices += [device(f"device-1-counter-{index}", [index]) for index in (1, 2, 3, 4)]
    return [
        {
            "metadata": {"name": f"resourceslice-countersets-{number}"},
            "spec": {**common, "sharedCounters": [{"name": "counter-set", "counters": counters}]},
        },
        {"metadata": {"name": f"resourceslice-devices-{number}"}, "spec": {**common, "devices": devices}},
    ]


def partitionable_pools() -> Object:
    """Partitionable/2000pods_100nodes: 2,000 pools that every node reaches through a selector, half in use."""
    held = [
        {"driver": DRIVER, "pool": f"resourceslice-{each}", "device": "device-2-counters-1"} for each in range(2000)
    ]
    constraint = {"matchAttribute": "dra.example.com/slice", "requests": ["req-0"]}
    return {
        "nodes": nodes(100),
        "slices": [each for number in range(2000) for each in _shared_pool(number)],
        "classes": [CLASS],
        "allocatedClaims": [allocated(number, [each]) for number, each in enumerate(held)],
        "claims": [claim("test-claim", [exact("req-0", count=2)], [constraint])],
    }


def _mig_devices(gpu: int) -> list[Object]:
    def device(name: str, profile: str, memory: str, slots: Sequence[int]) -> Object:
        counters = {"memory": {"value": memory}, **{f"slice-{slot}": {"value": "1"} for slot in slots}}
        return {
            "name": name,
            "attributes": {"profile": {"string": profile}, "parent": {"int": gpu}},
            "capacity": {"memory": {"value": memory}},
            "consumesCounters": [{"counterSet": f"gpu-{gpu}", "counters": counters}],
        }

    return [
        device(f"gpu-{gpu}", "full", "80Gi", range(7)),
        *(device(f"gpu-{gpu}-2g-{slot}", "2g.20gb", "20Gi", range(slot, slot + 2)) for slot in (0, 2, 4)),
        *(device(f"gpu-{gpu}-1g-{slot}", "1g.10gb", "10Gi", [slot]) for slot in range(7)),
    ]


def partitionable_mig() -> Object:
    """Eight GPUs per node, each whole or in MIG-like parts: one medium and two small parts of the same GPU."""
    found, slices = nodes(500), []
    held: list[Object] = []
    chance = random.Random(6)
    slots = {f"slice-{slot}": {"value": "1"} for slot in range(7)}
    for node in found:
        name = node["name"]
        common = {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 3},
        }
        sets = [{"name": f"gpu-{gpu}", "counters": {"memory": {"value": "80Gi"}, **slots}} for gpu in range(8)]
        devices = []
        for gpu in range(8):
            devices += _mig_devices(gpu)
            if chance.random() < 0.6:
                device = f"gpu-{gpu}" if chance.random() < 0.5 else f"gpu-{gpu}-2g-0"
                held.append(allocated(len(held), [{"driver": DRIVER, "pool": name, "device": device}]))
        slices.append({"metadata": {"name": f"{name}-counters"}, "spec": {**common, "sharedCounters": sets}})
        for half in (0, 1):  # a slice holds at most 64 such devices
            part = devices[half * 44 : half * 44 + 44]
            slices.append({"metadata": {"name": f"{name}-devices-{half}"}, "spec": {**common, "devices": part}})
    profile = f'device.attributes["{DRIVER}"].profile'
    requests = [
        exact("medium", **selecting(f'{profile} == "2g.20gb"')),
        exact("small", count=2, **selecting(f'{profile} == "1g.10gb"')),
    ]
    wanted = claim("test-claim", requests, [{"matchAttribute": f"{DRIVER}/parent"}])
    return {"nodes": found, "slices": slices, "classes": [CLASS], "allocatedClaims": held, "claims": [wanted]}


def consumable() -> Object:
    """ConsumableCapacity/2000pods_100nodes, half consumed."""
    memory = {"value": "80Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi"}}}
    device = {"name": "shareable-device", "allowMultipleAllocations": True, "capacity": {"memory": memory}}
    slices = []
    for number in range(2000):
        name = f"resourceslice-{number}"
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeSelector": EVERYWHERE, "devices": [device]}
        slices.append({"metadata": {"name": name}, "spec": spec})
    held = []
    for number in range(1000):
        common = {"driver": DRIVER, "pool": f"resourceslice-{number}", "device": "shareable-device"}
        shares = [f"00000000-0000-4000-8000-{2 * number + half:012d}" for half in (0, 1)]
        results = [{**common, "shareID": share, "consumedCapacity": {"memory": "40Gi"}} for share in shares]
        held.append(allocated(number, results))
    expression = f'device.driver == "{DRIVER}" &&\ndevice.allowMultipleAllocations == true'
    capacity: Object = {"capacity": {"requests": {"memory": "40Gi"}}}
    return {
        "nodes": nodes(100),
        "slices": slices,
        "allocatedClaims": held,
        "classes": [named_class("test-class", expression)],
        "claims": [claim("test-claim", [exact(f"req-{number}", **capacity) for number in (0, 1)])],
    }


def prioritized() -> Object:
    """FirstAvailable: the first two of three alternatives never fit."""
    found = nodes(1000)

    def alternative(rank: int, class_name: str, count: int) -> Object:
        return {"name": f"sub-{rank}", **exact("", class_name, count)["exactly"]}

    alternatives = [
        alternative(0, "no-devices-class", 1),
        alternative(1, "test-class", 9),
        alternative(2, "test-class", 2),
    ]
    return {
        "nodes": found,
        "slices": perf_slices(found),
        "classes": [CLASS, named_class("no-devices-class", 'device.driver == "no-driver"')],
        "claims": [claim("test-claim", [{"name": "req-0", "firstAvailable": alternatives}, exact("req-1")])],
    }


ONE_NODE = [{"name": "node-1", "labels": {}}]
_PCI_CLASSES = [named_class("gpu", f'device.driver == "{GPU}"'), named_class("nic", f'device.driver == "{NIC}"')]
_ROOT = "resource.kubernetes.io/pcieRoot"


def _pci(driver: str, roots: Sequence[int]) -> Object:
    devices = [
        {
            "name": f"dev-{index}",
            "attributes": {
                _ROOT: {"string": f"pci{root:02d}"},
                "numa": {"int": root // (len(roots) // 2)},
                "index": {"int": index},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for index, root in enumerate(roots)
    ]
    return node_slice("node-1", devices, driver, generation=1)


def gpu_nic_pairs() -> Object:
    """Four pairs of GPU and NIC, each on one PCIe root, all on different roots."""
    requests, constraints = [], []
    for number in range(4):
        requests += [exact(f"gpu-{number}", "gpu"), exact(f"nic-{number}", "nic")]
        constraints.append({"matchAttribute": _ROOT, "requests": [f"gpu-{number}", f"nic-{number}"]})
    constraints.append({"distinctAttribute": _ROOT, "requests": [f"gpu-{number}" for number in range(4)]})
    slices = [_pci(GPU, list(range(8))), _pci(NIC, list(range(7, -1, -1)))]
    return {"nodes": ONE_NODE, "slices": slices, "classes": _PCI_CLASSES, "claims": [claim("c", requests, constraints)]}


def gpu_nic_unsolvable() -> Object:
    """All GPUs first, then all NICs, and only four roots with both for five pairs."""
    requests = [exact(f"gpu-{number}", "gpu") for number in range(5)]
    requests += [exact(f"nic-{number}", "nic") for number in range(5)]
    constraints = [{"matchAttribute": _ROOT, "requests": [f"gpu-{number}", f"nic-{number}"]} for number in range(5)]
    slices = [_pci(GPU, list(range(8))), _pci(NIC, [0, 1, 2, 3, 8, 9, 10, 11])]
    return {"nodes": ONE_NODE, "slices": slices, "classes": _PCI_CLASSES, "claims": [claim("c", requests, constraints)]}


def partitionable_backtracking() -> Object:
    """As PartitionableBacktracking of scheduler_perf: the first device is too big, so it has to be given up."""
    count = 23
    pool = {"name": "resourceslice-0", "generation": 1, "resourceSliceCount": 2}
    common = {"driver": DRIVER, "pool": pool, "nodeName": "node-1"}
    cpus = {f"cpu{index}": {"value": "1"} for index in range(count)}
    sets = [
        {"name": "counter-set-for-cpu", "counters": cpus},
        {"name": "counter-set-for-mem", "counters": {"mem": {"value": "110Gi"}}},
    ]
    devices = []
    for index in range(count):
        memory = {"value": "10Gi" if index else "20Gi"}
        drawn = [
            {"counterSet": "counter-set-for-cpu", "counters": {f"cpu{index}": {"value": "1"}}},
            {"counterSet": "counter-set-for-mem", "counters": {"mem": memory}},
        ]
        devices.append({"name": f"device-{index}", "consumesCounters": drawn})
    slices = [
        {"metadata": {"name": "resourceslice-countersets-0"}, "spec": {**common, "sharedCounters": sets}},
        {"metadata": {"name": "resourceslice-devices-0"}, "spec": {**common, "devices": devices}},
    ]
    wanted = claim("c", [exact("req-0", count=11)])
    return {"nodes": ONE_NODE, "slices": slices, "classes": [CLASS], "claims": [wanted]}


def _typed(types: str) -> Object:
    devices = [{"name": f"dev-{at:02d}", "attributes": {"type": {"string": each}}} for at, each in enumerate(types)]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": "s"},
        "spec": {"driver": DRIVER, "nodeName": "node-1", "pool": pool, "devices": devices},
    }


_IS_X = selecting(f'device.attributes["{DRIVER}"].type == "X"')


def backtrack_exhaustive() -> Object:
    """Ten of 22 identical devices, then a request that nothing satisfies (kubernetes issue 131730)."""
    wanted = claim("c", [exact("req-0", count=10), exact("req-1", **_IS_X)])
    return {"nodes": ONE_NODE, "slices": [_typed("Y" * 22)], "classes": [CLASS], "claims": [wanted]}


def backtrack_late() -> Object:
    """Any seven of 20 devices, but the next request needs the first seven."""
    wanted = claim("c0", [exact("req-0", count=7), exact("req-1", count=7, **_IS_X)])
    return {"nodes": ONE_NODE, "slices": [_typed("X" * 7 + "Y" * 13)], "classes": [CLASS], "claims": [wanted]}


# Rows without easy symmetry; no Go figures


def distinct_devices() -> Object:
    """1,000 nodes whose devices all have a UUID of their own: nothing is equal to anything."""
    case = cel_constraint()
    chance = random.Random(1)
    for each in case["slices"]:
        for device in each["spec"]["devices"]:
            device["attributes"]["uuid"] = {"string": f"GPU-{chance.getrandbits(64):016x}"}
    return case


def mixed_models() -> Object:
    """1,000 nodes with random models, NUMA nodes and holders: few nodes are alike."""
    chance = random.Random(2)
    case = cel_constraint()
    for each in case["slices"]:
        for device in each["spec"]["devices"]:
            device["attributes"]["model"] = {"string": chance.choice(("A100", "H100", "L4"))}
            device["attributes"]["dra.example.com/numa"] = {"int": chance.randrange(2)}
    case["allocatedClaims"] = [each for each in half_in_use(case["nodes"], 3) if chance.random() < 0.4]
    case["claims"][0]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    return case


def random_shapes() -> Object:
    """400 nodes, each a random member of families that explode upstream: counts, alternatives, constraints."""
    chance = random.Random(5)
    found, slices = nodes(400), []
    for node in found:
        size = chance.randrange(10, 24)
        devices = []
        for index in range(size):
            attributes = {
                "type": {"string": chance.choice("XYYY")},
                "dra.example.com/numa": {"int": chance.randrange(3)},
                "uuid": {"string": f"{chance.getrandbits(64):016x}"},
            }
            devices.append({"name": f"dev-{index:02d}", "attributes": attributes})
        slices.append(node_slice(node["name"], devices))
    choices: list[tuple[int, Object]] = [(6, _IS_X), (5, _IS_X), (4, {}), (3, {})]
    alternatives = [
        {"name": f"sub-{rank}", **exact("", count=count, **fields)["exactly"]}
        for rank, (count, fields) in enumerate(choices)
    ]
    requests = [
        exact("any", count=5),
        {"name": "some", "firstAvailable": alternatives},
        exact("special", count=3, **_IS_X),
    ]
    constraints = [{"matchAttribute": "dra.example.com/numa", "requests": ["some", "special"]}]
    return {"nodes": found, "slices": slices, "classes": [CLASS], "claims": [claim("c", requests, constraints)]}


INPUTS: dict[str, Callable[[], Object]] = {
    "nodes100x8": lambda: steady_state(100),
    "nodes1000x8": lambda: steady_state(1000),
    "nodes5000x8": lambda: steady_state(5000),
    "nodes1000x8_cel_constraint": cel_constraint,
    "partitionable_100nodes_2000pools": partitionable_pools,
    "partitionable_mig_500nodes": partitionable_mig,
    "consumable_100nodes_2000slices": consumable,
    "prioritized_1000nodes": prioritized,
    "gpu_nic_8x8_pairs": gpu_nic_pairs,
    "gpu_nic_8x8_unsolvable": gpu_nic_unsolvable,
    "partitionable_backtracking": partitionable_backtracking,
    "backtrack_exhaustive_22c10": backtrack_exhaustive,
    "backtrack_late_solution": backtrack_late,
    "distinct_devices_1000nodes": distinct_devices,
    "mixed_models_1000nodes": mixed_models,
    "random_shapes_400nodes": random_shapes,
}


def write(directory: Path, names: Sequence[str] = ()) -> list[Path]:
    """Write the named inputs (all by default)."""
    written = []
    for name in names or INPUTS:
        path = directory / f"{name}.json"
        case = {"id": name, "features": {}, **INPUTS[name]()}
        path.write_text(json.dumps(case, separators=(",", ":")) + "\n")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]), sys.argv[2:]):
        print(path, path.stat().st_size // 1024, "KiB")
