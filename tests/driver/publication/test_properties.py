"""The publisher over real HTTP under everything at once: changing inventories, failing and lost requests, edits and
deletions by others, broken watches, 410, restarts. It converges, writes nothing when nothing changed, and at every
moment the highest generation of the pool is incomplete or one desired state.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.api.resource import Device, DeviceAttribute
from drakit.driver.publication import DriverResources, Pool, PoolSlice

NODE = "node-1"

contents = st.lists(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2)), max_size=2, unique_by=lambda pair: pair[0]),
    max_size=4,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("update"), contents),
        st.tuples(st.just("devices"), st.integers(0, 200)),
        st.tuples(
            st.just("fail"),
            st.sampled_from(["create", "update", "delete", "list", "watch", "get"]),
            st.sampled_from([409, 422, 429, 500, 503]),
            st.integers(1, 3),
        ),
        st.tuples(st.just("lose"), st.sampled_from(["create", "update", "delete"]), st.booleans()),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("edit"), st.integers(0, 9)),
        st.tuples(st.just("wipe")),
        st.tuples(st.just("watches")),
        st.tuples(st.just("compact")),
        st.tuples(st.just("restart")),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 1.0, 5.0, 40.0])),
    ),
    max_size=10,
)


def resources(wanted: list[list[tuple[str, int]]]) -> DriverResources:
    parts = tuple(
        PoolSlice(
            devices=tuple(
                Device(name=f"{name}{index}", attributes={"v": DeviceAttribute(int=value)}) for name, value in part
            )
        )
        for index, part in enumerate(wanted)
    )
    return DriverResources(pools={NODE: Pool(slices=parts)})


def plain(count: int) -> DriverResources:
    return DriverResources.for_node(NODE, [Device(name=f"d{number}") for number in range(count)])


def state(objects: list[dict[str, Any]]) -> tuple[Any, ...]:
    """What a scheduler sees: devices of the highest generation by name of the slice; None when incomplete."""
    newest = max((obj["spec"]["pool"]["generation"] for obj in objects), default=0)
    current = sorted(
        (obj for obj in objects if obj["spec"]["pool"]["generation"] == newest), key=lambda o: o["metadata"]["name"]
    )
    if not any(obj["spec"]["pool"]["resourceSliceCount"] == len(current) for obj in current):
        return ()
    return tuple(
        (device["name"], device.get("attributes", {}).get("v", {}).get("int"))
        for obj in current
        for device in obj["spec"].get("devices") or ()
    )


def flat(wanted: DriverResources) -> tuple[Any, ...]:
    pool = wanted.pools[NODE]
    devices = [d for part in pool.slices for d in part.devices] if pool.slices is not None else list(pool.devices)
    return tuple((d.name, d.attributes["v"].int if "v" in d.attributes else None) for d in devices)


def check_history(lab: Any, wanted: list[tuple[Any, ...]], foreign: set[int]) -> None:
    """Replay all revisions; states in which somebody else had the last word on a slice are theirs."""
    slices: dict[str, tuple[int, dict[str, Any]]] = {}
    kind = lab.server.registry.by_plural("resourceslices")
    for change in lab.server.storage.history(kind)._changes:
        name = change.record.object["metadata"]["name"]
        if change.type == "DELETED":
            slices.pop(name, None)
        else:
            slices[name] = (change.revision, change.record.object)
        if change.revision in foreign or any(revision in foreign for revision, _ in slices.values()):
            continue
        seen = state([obj for _, obj in slices.values()])
        assert seen == () or seen in wanted, f"revision {change.revision} shows a mixed pool"


@pytest.fixture(name="labs")
def _labs(make_lab_context: Callable[[], Any]) -> Callable[[], Any]:
    return make_lab_context


CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@settings(deadline=None, max_examples=40, suppress_health_check=CHECKS)
@given(script=steps, last=st.one_of(contents.map(resources), st.integers(0, 200).map(plain)))
def test_the_pool_converges_and_is_never_seen_mixed(labs: Any, script: list[Any], last: DriverResources) -> None:
    asyncio.run(_play(labs, script, last))


@pytest.mark.soak
@pytest.mark.timeout(600)
@settings(deadline=None, max_examples=800, suppress_health_check=CHECKS)
@given(script=steps, last=st.one_of(contents.map(resources), st.integers(0, 200).map(plain)))
def test_the_same_for_long(labs: Any, script: list[Any], last: DriverResources) -> None:
    asyncio.run(_play(labs, script, last))


async def _play(labs: Any, script: list[Any], last: DriverResources) -> None:
    async with labs() as lab:
        wanted: list[tuple[Any, ...]] = []
        foreign: set[int] = set()
        current = resources([])
        running = await lab.publisher(current)
        for step in script:
            running, current = await _step(lab, running, current, step, wanted, foreign)
        lab.server.faults.clear()
        wanted.append(flat(last))
        running.publisher.update(last)
        await lab.until(lambda: running.publisher.ready and state(lab.slices()) == flat(last), within=1500, step=5)
        await lab.settle(5)  # a wipe may not have been noticed when an empty pool was wanted
        check_history(lab, wanted, foreign)
        lab.forget()
        running.publisher.update(last)
        lab.server.drop_watches()
        await lab.settle(100)
        assert lab.writes() == {}, "nothing changed, but something was written"


async def _step(  # noqa: PLR0917 - what a step may touch
    lab: Any, running: Any, current: DriverResources, step: Any, wanted: list[Any], foreign: set[int]
) -> tuple[Any, DriverResources]:
    action, *values = step
    objects = lab.slices()
    if action in {"update", "devices"}:
        current = resources(values[0]) if action == "update" else plain(values[0])
        wanted.append(flat(current))
        running.publisher.update(current)
    elif action == "fail":
        lab.server.faults.fail(values[1], times=values[2], verb=values[0], resource="resourceslices")
    elif action == "lose":
        lab.server.faults.drop(after_work=values[1], verb=values[0], resource="resourceslices")
    elif action == "wipe" or (action == "delete" and objects):
        for obj in objects if action == "wipe" else [objects[values[0] % len(objects)]]:
            lab.server.delete("resourceslices", obj["metadata"]["name"])
    elif action == "edit" and objects:
        obj = objects[values[0] % len(objects)]
        edited = lab.server.update({**obj, "spec": {**obj["spec"], "devices": [{"name": "foreign"}]}})
        foreign.add(int(edited["metadata"]["resourceVersion"]))
    elif action == "watches":
        lab.server.drop_watches()
    elif action == "compact":
        lab.server.compact()
        lab.server.drop_watches()
    elif action == "restart":
        await running.stop()
        running = await lab.publisher(current)
    elif action == "wait":
        await lab.settle(values[0])
    return running, current
