"""The words in which the 219 scenarios of spec/allocator.md 6.1 are told, and how one is played.

A scenario only says what is unusual. Usual is: node-1 (region-1, on earth), the gates of Kubernetes 1.37, class-a selecting
driver-a and class-b driver-b, slices of pool p1 of driver-a on node-1, requests for one device of class-a, claims called
c0, c1 ... without namespace, and allocations that bind a claim to node-1. Every table hands out its rows by a function
`scenarios(say)`, where `say` has all the builders of this module; `variations(say)` adds rows of number 0.
"""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drakit import api
from drakit.allocation import (
    AllocatedState,
    AllocationError,
    Allocator,
    Features,
    Inputs,
    NodeError,
    Prunings,
    verify,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ALL_NODES = "*"
PER_DEVICE = "per device"
NO_VALUE: dict[str, Any] = {}
"""An attribute whose value is of a type that this release does not know."""

NO_EFFECT = {"key": "taint-key", "value": "one", "effect": "None"}
NO_SCHEDULE = {"key": "taint-key", "value": "one", "effect": "NoSchedule"}
NO_EXECUTE = {"key": "taint-key", "value": "two", "effect": "NoExecute"}
TOLERATE_NO_SCHEDULE = {"key": "taint-key", "operator": "Exists", "effect": "NoSchedule"}
TOLERATE_NO_EXECUTE = {"key": "taint-key", "operator": "Equal", "value": "two", "effect": "NoExecute"}

REFERENCE = Prunings(bounds=False, interchange=False, memo=False)
SEARCHES = {"default": Prunings(), "pruned at once": Prunings(patience=0), "reference": REFERENCE}


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One row: what is there, what is asked for, and what must come out of it."""

    number: int
    name: str
    slices: tuple[api.resource.ResourceSlice, ...]
    claims: tuple[api.resource.ResourceClaim, ...]
    classes: tuple[api.resource.DeviceClass, ...]
    holders: tuple[api.resource.ResourceClaim, ...]
    node: api.core.Node
    features: Features
    gives: tuple[api.resource.AllocationResult, ...] | None
    fails: str
    fails_here: str


# What there is


def device(
    name: str, attributes: dict[str, Any] | None = None, *, node: Any = None, shareable: bool = False, **fields: Any
) -> dict[str, Any]:
    """A device; attributes and capacities may be plain values, `draws` maps counter sets to counters."""
    drawn = fields.pop("draws", {})
    body = {
        "name": name,
        "attributes": {key: _attribute(value) for key, value in (attributes or {}).items()},
        "capacity": {key: _capacity(value) for key, value in fields.pop("capacity", {}).items()},
        "consumesCounters": [{"counterSet": key, "counters": _values(counters)} for key, counters in drawn.items()],
        "taints": fields.pop("taints", []),
        "bindingConditions": fields.pop("conditions", []),
        "bindingFailureConditions": fields.pop("failures", []),
        **(_place(node) if node else {}),
        **fields,
    }
    if shareable:
        body["allowMultipleAllocations"] = True
    return {key: value for key, value in body.items() if value != []}


def partition(
    name: str, draws: str | dict[str, dict[str, str]], attributes: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """A device whose capacities are the counters that it draws; a plain amount is memory of counter set `set-1`."""
    drawn = {"set-1": {"memory": draws}} if isinstance(draws, str) else draws
    capacity = {key: value for counters in drawn.values() for key, value in counters.items()}
    return device(name, attributes, draws=drawn, capacity=capacity | fields.pop("capacity", {}), **fields)


def devices(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [device(f"d{index}") for index in range(first, first + count)]


def version(text: str) -> dict[str, Any]:
    return {"version": text}


def versions(*texts: str) -> dict[str, Any]:
    return {"versions": list(texts)}


def ranged(value: str, *, least: str = "2", step: str = "2", most: str = "4", default: str = "2") -> dict[str, Any]:
    """A capacity to be had in steps."""
    return {
        "value": value,
        "requestPolicy": {"default": default, "validRange": {"min": least, "step": step, "max": most}},
    }


def listed(value: str, *valid: str) -> dict[str, Any]:
    """A capacity to be had in some amounts only, the first by default."""
    return {"value": value, "requestPolicy": {"default": valid[0], "validValues": list(valid)}}


def slice_(
    *members: dict[str, Any],
    pool: str = "p1",
    driver: str = "driver-a",
    node: Any = "node-1",
    of: int = 1,
    generation: int = 1,
    **fields: Any,
) -> dict[str, Any]:
    """A slice, one `of` so many in its pool."""
    spec = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": of},
        "devices": list(members),
        **_place(node),
    }
    return {"metadata": {"name": fields.pop("name", "")}, "spec": spec | fields}


def counters(sets: str | dict[str, dict[str, str]], *, of: int = 2, **fields: Any) -> dict[str, Any]:
    """A slice with counter sets; a plain amount is the memory of `set-1`."""
    known = {"set-1": {"memory": sets}} if isinstance(sets, str) else sets
    shared = [{"name": name, "counters": _values(values)} for name, values in known.items()]
    return slice_(of=of, sharedCounters=shared, **fields)


def named(name: str) -> dict[str, Any]:
    """Nodes of this name."""
    return _node_selector(matchFields=[{"key": "metadata.name", "operator": "In", "values": [name]}])


def labelled(*labels: tuple[str, str]) -> dict[str, Any]:
    """Nodes with all of these labels."""
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in labels]
    return _node_selector(matchExpressions=requirements)


def class_(name: str, expression: str, config: dict[str, Any] | None = None) -> api.resource.DeviceClass:
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": expression}}]}
    if config:
        spec["config"] = [{"opaque": config["opaque"]}]
    return api.decode({"metadata": {"name": name}, "spec": spec}, "DeviceClass")  # type: ignore[no-any-return]


def class_a(extra: str = "true", **fields: Any) -> api.resource.DeviceClass:
    return class_("class-a", f'device.driver == "driver-a" && {extra}', **fields)


def class_b(**fields: Any) -> api.resource.DeviceClass:
    return class_("class-b", 'device.driver == "driver-b"', **fields)


# What is asked for


def request(name: str, *selectors: str | dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": _wanted(*selectors, **fields)}


def every(name: str, *selectors: str, **fields: Any) -> dict[str, Any]:
    """A request for all devices that fit."""
    return request(name, *selectors, mode="All", count=None, **fields)


def first_of(name: str, *subrequests: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "firstAvailable": list(subrequests)}


def subrequest(name: str, *selectors: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **_wanted(*selectors, **fields)}


def every_sub(name: str, *selectors: str, **fields: Any) -> dict[str, Any]:
    return subrequest(name, *selectors, mode="All", count=None, **fields)


def claim(*requests: dict[str, Any], constraints: Sequence[Any] = (), config: Sequence[Any] = ()) -> dict[str, Any]:
    return {"requests": list(requests), "constraints": list(constraints), "config": list(config)}


def match(attribute: str, *requests: str) -> dict[str, Any]:
    return {"matchAttribute": f"driver-a/{attribute}", "requests": list(requests)}


def distinct(attribute: str, *requests: str) -> dict[str, Any]:
    return {"distinctAttribute": f"driver-a/{attribute}", "requests": list(requests)}


def config(value: str, *requests: str, driver: str = "driver-a", source: str = "") -> dict[str, Any]:
    """Opaque parameters, of a class, of a claim for some requests, or of a result with their source."""
    body: dict[str, Any] = {"opaque": {"driver": driver, "parameters": {"value": value}}}
    if requests:
        body["requests"] = list(requests)
    return body | ({"source": source} if source else {})


def memory(least: str) -> str:
    return f'device.capacity["driver-a"].memory.compareTo(quantity("{least}")) >= 0'


def units(least: str) -> str:
    return f'device.capacity["driver-a"].units.compareTo(quantity("{least}")) >= 0'


def attribute(name: str, value: str) -> str:
    return f'device.attributes["driver-a"].{name} == "{value}"'


def flag(name: str) -> str:
    return f'device.attributes["driver-a"].{name}'


# What comes out


def result(request_name: str, device_name: str, pool: str = "p1", driver: str = "driver-a", **fields: Any) -> Any:
    """One device; with `consumed` (empty when it has no capacity) a share of it, with `admin` no more than access."""
    body: dict[str, Any] = {"request": request_name, "driver": driver, "pool": pool, "device": device_name}
    if fields.pop("admin", False):
        body["adminAccess"] = True
    if "consumed" in fields:  # the shares of a scenario are counted
        body["consumedCapacity"] = fields.pop("consumed")
    conditions = {
        "bindingConditions": fields.pop("conditions", []),
        "bindingFailureConditions": fields.pop("failures", []),
    }
    return body | conditions | fields


def allocation(*results: Any, selector: dict[str, Any] | None, config: Sequence[Any] = ()) -> dict[str, Any]:
    """An allocation with configuration, or whose claim is not bound to node-1."""
    found: dict[str, Any] = {"devices": {"results": list(results), "config": list(config)}}
    return found | ({"nodeSelector": selector} if selector else {})


def scenario(
    number: int,
    name: str,
    *,
    slices: Sequence[dict[str, Any]] = (),
    claims: Sequence[Any] = (),
    gives: Sequence[Any] | None = None,
    fails: str = "",
    fails_here: str = "",
    node: str = "node-1",
    **setting: Any,
) -> Scenario:
    """A row.

    Args:
        number: Its position in spec/allocator.md 6.1.
        name: Its name there.
        slices: In the order of their names unless they have names of their own.
        claims: Claims, or just their requests.
        gives: Allocations, or just their results, one per claim; None when nothing fits.
        fails: Part of the error that ends the attempt for the pod.
        fails_here: Part of the error that only rules out this node.
        node: The node to allocate on; node-1 is in region-1, node-2 in region-2.
        setting: `held` (device or pool/device), `shares` (device to consumed capacity), `classes`, and gates `on`, `off`.
    """
    share_ids = _share_ids()
    gates = dict.fromkeys(setting.get("on", ()), True) | dict.fromkeys(setting.get("off", ()), False)
    labels = {"region": node.replace("node", "region"), "planet": "earth"}
    return Scenario(
        number=number,
        name=name,
        slices=tuple(_slice(each, position) for position, each in enumerate(slices, 1)),
        claims=tuple(_claim(each, position) for position, each in enumerate(claims)),
        classes=tuple(setting.get("classes", (class_a(), class_b()))),
        holders=tuple(_holders(setting.get("held", ()), setting.get("shares", {}))),
        node=api.decode({"metadata": {"name": node, "labels": labels}}, "Node"),
        features=msgspec.structs.replace(Features(), **gates),
        gives=None if gives is None else tuple(_allocation(each, node, share_ids) for each in gives),
        fails=fails,
        fails_here=fails_here,
    )


def _slice(body: dict[str, Any], position: int) -> api.resource.ResourceSlice:
    name = body["metadata"]["name"] or f"s{position}"
    return api.decode(body | {"metadata": {"name": name}}, "ResourceSlice")  # type: ignore[no-any-return]


def _claim(body: Any, position: int) -> api.resource.ResourceClaim:
    spec = {"devices": body if isinstance(body, dict) else claim(*body)}
    return api.decode({"metadata": {"name": f"c{position}"}, "spec": spec}, "ResourceClaim")  # type: ignore[no-any-return]


def _allocation(body: Any, node: str, share_ids: Iterator[str]) -> api.resource.AllocationResult:
    found = body if isinstance(body, dict) else allocation(*body, selector=named(node))
    results = [
        each | {"shareID": next(share_ids)} if "consumedCapacity" in each else each
        for each in found["devices"]["results"]
    ]
    found = found | {"devices": found["devices"] | {"results": results}}
    return api.decode({"status": {"allocation": found}}, "ResourceClaim").status.allocation  # type: ignore[no-any-return]


def _share_ids() -> Iterator[str]:
    return (f"share-{number}" for number in itertools.count())


def _holders(held: Sequence[str], shares: dict[str, Any]) -> Iterator[api.resource.ResourceClaim]:
    for name in (*held, *shares):
        pool, _, device_name = name.rpartition("/")
        taken = {"request": "r", "driver": "driver-a", "pool": pool or "p1", "device": device_name}
        if name in shares:
            taken |= {"shareID": f"{name}-share", "consumedCapacity": shares[name]}
        status = {"allocation": {"devices": {"results": [taken]}}}
        yield api.decode({"metadata": {"name": f"holder-of-{device_name}"}, "status": status}, "ResourceClaim")


def _wanted(
    *selectors: str | dict[str, Any], cls: str = "class-a", count: int | None = 1, mode: str = "ExactCount", **more: Any
) -> dict[str, Any]:
    body: dict[str, Any] = {"deviceClassName": cls, "allocationMode": mode}
    if count is not None:
        body["count"] = count
    if selectors:
        body["selectors"] = [{"cel": {"expression": each}} if isinstance(each, str) else each for each in selectors]
    if "needs" in more:
        body["capacity"] = {"requests": {"units": more["needs"]}}
    if "tolerations" in more:
        body["tolerations"] = more["tolerations"]
    if more.get("admin"):
        body["adminAccess"] = True
    return body


def _place(node: Any) -> dict[str, Any]:
    if isinstance(node, dict):
        return {"nodeSelector": node}
    if node == PER_DEVICE:
        return {"perDeviceNodeSelection": True}
    return {"allNodes": True} if node == ALL_NODES else {"nodeName": node}


def _node_selector(**term: Any) -> dict[str, Any]:
    return {"nodeSelectorTerms": [term]}


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    one = value[0] if isinstance(value, list) and value else value
    kind = "bool" if isinstance(one, bool) else "int" if isinstance(one, int) else "string"
    return {kind + "s" if isinstance(value, list) else kind: value}


def _capacity(value: str | dict[str, Any]) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}


def _values(amounts: dict[str, str]) -> dict[str, Any]:
    return {name: {"value": value} for name, value in amounts.items()}


WORDS = SimpleNamespace(
    ALL_NODES=ALL_NODES,
    NO_EFFECT=NO_EFFECT,
    NO_EXECUTE=NO_EXECUTE,
    NO_SCHEDULE=NO_SCHEDULE,
    NO_VALUE=NO_VALUE,
    PER_DEVICE=PER_DEVICE,
    TOLERATE_NO_EXECUTE=TOLERATE_NO_EXECUTE,
    TOLERATE_NO_SCHEDULE=TOLERATE_NO_SCHEDULE,
    allocation=allocation,
    attribute=attribute,
    claim=claim,
    class_=class_,
    class_a=class_a,
    class_b=class_b,
    config=config,
    counters=counters,
    device=device,
    devices=devices,
    distinct=distinct,
    every=every,
    every_sub=every_sub,
    first_of=first_of,
    flag=flag,
    labelled=labelled,
    listed=listed,
    match=match,
    memory=memory,
    named=named,
    partition=partition,
    ranged=ranged,
    request=request,
    result=result,
    scenario=scenario,
    slice=slice_,
    subrequest=subrequest,
    units=units,
    version=version,
    versions=versions,
)


def play(row: Scenario) -> None:
    """Allocate as told, in every way of searching, whatever the order in which the slices were listed."""
    for slices in (row.slices, row.slices[::-1]):
        for searching, prunings in SEARCHES.items():
            allocator = Allocator(
                slices,
                row.classes,
                AllocatedState.of(row.holders),
                row.features,
                prunings=prunings,
                share_id=_share_ids().__next__,
            )
            if row.fails or row.fails_here:
                with pytest.raises(AllocationError if row.fails else NodeError) as raised:
                    allocator.allocate(row.node, row.claims)
                assert (row.fails or row.fails_here) in str(raised.value), searching
                continue
            found = allocator.allocate(row.node, row.claims)
            assert (None if found is None else tuple(found)) == row.gives, searching
    if row.gives is not None:
        assert verify(row.gives, _inputs(row)) == []


def _inputs(row: Scenario) -> Inputs:
    return Inputs(
        node=row.node,
        claims=row.claims,
        slices=row.slices,
        classes=row.classes,
        allocated=AllocatedState.of(row.holders),
        features=row.features,
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "row" in metafunc.fixturenames:
        rows = metafunc.module.scenarios(WORDS)
        metafunc.parametrize("row", rows, ids=[f"{row.number}-{row.name}" for row in rows])
    if "variation" in metafunc.fixturenames:
        rows = metafunc.module.variations(WORDS)
        metafunc.parametrize("variation", rows, ids=[row.name for row in rows])


@pytest.fixture(name="play")
def _play() -> Callable[[Scenario], None]:
    return play


@pytest.fixture(scope="session")
def table() -> list[Scenario]:
    """The rows of all tables of this directory."""
    rows: list[Scenario] = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"table_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if hasattr(module, "scenarios"):
            rows += module.scenarios(WORDS)
    return rows
