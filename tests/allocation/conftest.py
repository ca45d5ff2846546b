"""Builders of slices, classes and claims, and the recorded cases."""

from __future__ import annotations

import gzip
import itertools
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drakit import api
from drakit.allocation import AllocatedState, Allocator, Features

VECTORS = Path(__file__).parent.parent / "vectors" / "allocation.jsonl.gz"


@pytest.fixture(scope="session")
def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(VECTORS.read_bytes()).splitlines()]


def device(name: str, **fields: Any) -> dict[str, Any]:
    """A device; attributes may be plain ints, strings, bools, lists; capacity plain quantities."""
    attributes = {key: _attribute(value) for key, value in fields.pop("attributes", {}).items()}
    capacity = {
        key: value if isinstance(value, dict) else {"value": value} for key, value in fields.pop("capacity", {}).items()
    }
    return {"name": name, "attributes": attributes, "capacity": capacity, **fields}


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {_kind(value[0]) + "s": value}
    return {_kind(value): value}


def _kind(value: Any) -> str:
    return "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"


def slice_(
    name: str = "slice",
    *devices: dict[str, Any],
    driver: str = "driver-a",
    pool: str = "pool",
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> api.resource.ResourceSlice:
    """A slice on node-1 unless the spec says where it is."""
    places = {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"}
    if not places & spec.keys():
        spec["nodeName"] = "node-1"
    body = {
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            "devices": list(devices),
            **{key: value for key, value in spec.items() if value is not None},
        },
    }
    return api.decode(body, "ResourceSlice")  # type: ignore[no-any-return]


def counter_set(name: str, **counters: str) -> dict[str, Any]:
    return {"name": name, "counters": {key: {"value": value} for key, value in counters.items()}}


def draws(counter_set: str, groups: list[str] | None = None, **counters: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "counterSet": counter_set,
        "counters": {key: {"value": value} for key, value in counters.items()},
    }
    if groups is not None:
        entry["compatibilityGroups"] = groups
    return entry


def class_(name: str, *expressions: str, config: list[Any] | None = None) -> api.resource.DeviceClass:
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": each}} for each in expressions]}
    if config:
        spec["config"] = config
    return api.decode({"metadata": {"name": name}, "spec": spec}, "DeviceClass")  # type: ignore[no-any-return]


def exactly(name: str, cls: str = "class-a", *expressions: str, count: int = 1, **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": wants(cls, *expressions, count=count, **fields)}


def everything(name: str, cls: str = "class-a", *expressions: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": wants(cls, *expressions, mode="All", **fields)}


def alternative(name: str, cls: str = "class-a", *expressions: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **wants(cls, *expressions, **fields)}


def first_available(name: str, *alternatives: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "firstAvailable": list(alternatives)}


def wants(cls: str, *expressions: str, count: int = 1, mode: str = "ExactCount", **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"deviceClassName": cls, "allocationMode": mode, **fields}
    if mode != "All":
        body["count"] = count
    if expressions:
        body["selectors"] = [{"cel": {"expression": each}} for each in expressions]
    return body


def claim(
    name: str, *requests: dict[str, Any], constraints: list[Any] | None = None, config: list[Any] | None = None
) -> api.resource.ResourceClaim:
    body = {"requests": list(requests), "constraints": constraints or [], "config": config or []}
    return api.decode(  # type: ignore[no-any-return]
        {"metadata": {"name": name, "namespace": "ns"}, "spec": {"devices": body}}, "ResourceClaim"
    )


def holding(name: str, *results: dict[str, Any]) -> api.resource.ResourceClaim:
    """An allocated claim; results default to driver-a, pool, and request r."""
    filled = [{"request": "r", "driver": "driver-a", "pool": "pool", **each} for each in results]
    body = {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": {"devices": {"results": filled}}},
    }
    return api.decode(body, "ResourceClaim")  # type: ignore[no-any-return]


def node(name: str = "node-1", **labels: str) -> api.core.Node:
    return api.decode({"metadata": {"name": name, "labels": labels}}, "Node")  # type: ignore[no-any-return]


def allocate(
    slices: list[api.resource.ResourceSlice],
    claims: list[api.resource.ResourceClaim],
    *,
    classes: list[api.resource.DeviceClass] | None = None,
    allocated: list[api.resource.ResourceClaim] | None = None,
    features: Features | None = None,
    at: api.core.Node | None = None,
    **options: Any,
) -> list[api.resource.AllocationResult] | None:
    """One call on node-1, everything on; class-a selects driver-a, class-b driver-b, any everything."""
    numbers = itertools.count()
    options.setdefault("share_id", lambda: f"share-{next(numbers)}")
    allocator = Allocator(
        slices,
        classes if classes is not None else default_classes(),
        AllocatedState.of(allocated or []),
        features or Features.everything(),
        **options,
    )
    return allocator.allocate(at or node(), claims)


def default_classes() -> list[api.resource.DeviceClass]:
    return [
        class_("class-a", 'device.driver == "driver-a"'),
        class_("class-b", 'device.driver == "driver-b"'),
        class_("any"),
    ]


def chosen(results: list[api.resource.AllocationResult] | None) -> list[list[str]] | None:
    """Per claim `request=device` in order."""
    if results is None:
        return None
    return [[f"{each.request}={each.device}" for each in result.devices.results] for result in results]


def world(seed: int, *, errors: bool = True, size: int = 6) -> SimpleNamespace:
    """A small random cluster with claims: slices, classes, claims, allocated claims, features.

    With `errors`, some selectors fail on some devices and some claims break rules at run time.
    """
    chance = random.Random(seed)
    everything_on = chance.random() < 0.7
    features = Features(
        **{
            name: everything_on or chance.random() < 0.7
            for name in Features.__struct_fields__
            if name != "derived_attributes"
        },
        derived_attributes=True,
    )
    slices = []
    names: list[tuple[str, str, str, bool]] = []
    for number in range(chance.choice((1, 1, 2, 3))):
        slices += _pool(chance, number, max(1, size // (number + 1)), names)
    classes = [
        class_("class-a", 'device.driver == "driver-a"'),
        class_("class-b", 'device.driver == "driver-b"'),
        class_("any"),
    ]
    claims = [
        claim(f"c{index}", *_requests(chance, errors=errors), constraints=_constraints(chance))
        for index in range(chance.choice((1, 1, 2)))
    ]
    allocated = []
    for index, (driver, pool, name, shareable) in enumerate(names):
        if chance.random() < 0.15:
            share = {"shareID": f"s{index}", "consumedCapacity": {"memory": "1"}} if shareable else {}
            allocated.append(holding(f"h{index}", {"driver": driver, "pool": pool, "device": name, **share}))
    return SimpleNamespace(slices=slices, classes=classes, claims=claims, allocated=allocated, features=features)


def _pool(
    chance: random.Random, number: int, most: int, names: list[tuple[str, str, str, bool]]
) -> list[api.resource.ResourceSlice]:
    driver = chance.choice(("driver-a", "driver-a", "driver-b"))
    pool = f"pool-{number}"
    counted = chance.random() < 0.35
    grouped = counted and chance.random() < 0.4
    sharing = chance.random() < 0.3
    devices = []
    for index in range(chance.randint(1, most)):
        fields: dict[str, Any] = {"attributes": {"kind": chance.choice("xxy"), "index": index % 3}}
        if chance.random() < 0.8:
            fields["attributes"]["numa"] = chance.choice((0, 0, 1))
        if chance.random() < 0.2:
            fields["attributes"]["roots"] = chance.choice((["p"], ["p", "q"], ["q", "r"]))
        elif chance.random() < 0.8:
            fields["attributes"]["roots"] = chance.choice("ppqr")
        shareable = sharing and chance.random() < 0.7
        if shareable or chance.random() < 0.3:
            policy = {"default": "1", "validRange": {"min": "1", "step": "1"}} if chance.random() < 0.5 else None
            fields["capacity"] = {
                "memory": {"value": chance.choice("234"), **({"requestPolicy": policy} if policy else {})}
            }
        if shareable:
            fields["allowMultipleAllocations"] = True
        if chance.random() < 0.15:
            fields["taints"] = [{"key": "t", "effect": chance.choice(("NoSchedule", "NoExecute", "None"))}]
        if chance.random() < 0.1:
            fields["bindingConditions"] = ["ready"]
        if counted and chance.random() < 0.9:
            groups = [[g] for g in "mv"] + [["m", "v"], []]
            fields["consumesCounters"] = [
                draws(
                    "set", chance.choice(groups) if grouped else None, a=chance.choice("1112"), **{f"own{index}": "1"}
                )
            ]
        devices.append(device(f"d{number}{index}", **fields))
        names.append((driver, pool, f"d{number}{index}", shareable))
    found = [slice_(f"s{number}", *devices, driver=driver, pool=pool, count=1 + counted)]
    if counted:
        counters = {"a": chance.choice("234"), **{f"own{index}": "1" for index in range(len(devices))}}
        found.append(
            slice_(f"n{number}", driver=driver, pool=pool, count=2, sharedCounters=[counter_set("set", **counters)])
        )
    return found


def _requests(chance: random.Random, *, errors: bool) -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = []
    for index in range(chance.choice((1, 1, 2, 2, 3))):
        if chance.random() < 0.3:
            several = [
                alternative(f"s{rank}", *_wanted(chance, errors=errors), **_fields(chance, sub=True))
                for rank in range(chance.choice((2, 2, 3)))
            ]
            requests.append(first_available(f"r{index}", *several))
        else:
            requests.append({"name": f"r{index}", "exactly": wants(*_wanted(chance, errors=errors), **_fields(chance))})
    return requests


def _wanted(chance: random.Random, *, errors: bool) -> list[str]:
    expressions = []
    if chance.random() < 0.4:
        expressions.append(
            chance.choice(
                (
                    'device.attributes[device.driver].kind == "x"',
                    'device.attributes[device.driver].kind == "y"',
                    "device.attributes[device.driver].index != 1",
                )
            )
        )
    if errors and chance.random() < 0.15:
        expressions.append("device.attributes[device.driver].numa == 0")
    return [chance.choice(("class-a", "class-a", "class-b", "any", "any")), *expressions]


def _fields(chance: random.Random, *, sub: bool = False) -> dict[str, Any]:
    fields: dict[str, Any] = {"count": chance.choice((1, 1, 1, 2, 3))}
    if chance.random() < 0.1:
        fields["mode"] = "All"
    if chance.random() < 0.3:
        fields["tolerations"] = [{"operator": "Exists"}]
    if chance.random() < 0.2:
        fields["capacity"] = {"requests": {"memory": chance.choice("123")}}
    if not sub and chance.random() < 0.12:
        fields["adminAccess"] = True
    if chance.random() < 0.15:
        fields["derivedAttributes"] = [
            {"name": "derived/parity", "expression": "device.attributes[device.driver].index % 2"}
        ]
    return fields


def _constraints(chance: random.Random) -> list[dict[str, Any]]:
    constraints = []
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        attribute = chance.choice(
            ("driver-a/numa", "driver-a/roots", "driver-a/roots", "driver-a/index", "driver-a/kind", "derived/parity")
        )
        constraint: dict[str, Any] = {
            chance.choice(("matchAttribute", "matchAttribute", "distinctAttribute")): attribute
        }
        if chance.random() < 0.5:
            constraint["requests"] = chance.sample(("r0", "r1", "r0/s0", "r2"), 2)
        constraints.append(constraint)
    return constraints


@pytest.fixture(scope="session")
def make_world() -> Any:
    return world


@pytest.fixture(scope="session")
def build() -> SimpleNamespace:
    """All builders by name."""
    return SimpleNamespace(
        device=device,
        slice=slice_,
        counter_set=counter_set,
        draws=draws,
        class_=class_,
        exactly=exactly,
        everything=everything,
        alternative=alternative,
        first_available=first_available,
        claim=claim,
        holding=holding,
        node=node,
        allocate=allocate,
        chosen=chosen,
        default_classes=default_classes,
    )
