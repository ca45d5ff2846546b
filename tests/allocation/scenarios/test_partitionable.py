"""Partitions that draw from shared counters (spec/allocator.md 6.1, 1.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def test_variation(variation: Any, play: Callable[[Any], None]) -> None:
    play(variation)


def scenarios(say: SimpleNamespace) -> list[Any]:
    d1 = say.device("d1")
    r0, r1 = say.request("r0"), say.request("r1")
    part = say.partition
    six_or_four = say.first_of("r1", say.subrequest("s0", say.memory("6Gi")), say.subrequest("s1", say.memory("4Gi")))
    four_six_four = [part("d1", "4Gi"), part("d2", "6Gi"), part("d3", "4Gi")]
    got_d1, got_d2 = [[say.result("r0", "d1")]], [[say.result("r0", "d2")]]
    got_d1_d3 = [[say.result("r0", "d1"), say.result("r1/s1", "d3")]]
    here = say.labelled(("region", "region-1"))
    invalid = "invalid resource pools were encountered (driver-a/p1: "

    def pool(total: Any, *devices: Any, **fields: Any) -> list[Any]:
        return [say.slice(*devices, of=2, **fields), say.counters(total, **fields)]

    def drawing(memory: str, cpus: str) -> Any:
        return {"set-1": {"memory": memory}, "set-2": {"cpus": cpus}}

    def mixed(memory: str, cpus: str, cpus_2: str, memory_2: str) -> Any:
        return {"set-1": {"memory": memory, "cpus": cpus}, "set-2": {"memory": memory_2, "cpus": cpus_2}}

    def one_set(cpus: str, memory: str) -> Any:
        return {"set-1": {"cpus": cpus, "memory": memory}}

    def core(index: int, *, special: bool) -> Any:
        draws = {"set-1": {f"cpu{index}": "1"}, "set-2": {"mem": "10Gi"}}
        return say.device(f"d{index}", {"special": special}, draws=draws)

    return [
        say.scenario(
            83,
            "partitionable-devices-single-device",
            slices=pool("8Gi", part("d1", "4Gi")),
            claims=[[r0]],
            gives=got_d1,
        ),
        say.scenario(
            84,
            "partitionable-devices-prioritized-list",
            slices=pool("8Gi", *four_six_four),
            claims=[[r0, six_or_four]],
            gives=got_d1_d3,
        ),
        say.scenario(
            85,
            "partitionable-devices-multiple-devices",
            slices=pool("8Gi", *four_six_four),
            claims=[[r0, r1]],
            gives=[[say.result("r0", "d1"), say.result("r1", "d3")]],
        ),
        # There is memory for 6Gi, but not the six processors that go with it.
        say.scenario(
            86,
            "partitionable-devices-multiple-capacity-pools",
            slices=pool(
                drawing("18Gi", "8"),
                part("d1", drawing("4Gi", "4")),
                part("d2", drawing("6Gi", "6")),
                part("d3", drawing("4Gi", "4")),
            ),
            claims=[[r0, six_or_four]],
            gives=got_d1_d3,
        ),
        say.scenario(
            87,
            "partitionable-devices-multiple-counters",
            slices=pool(
                mixed("18Gi", "8", "12", "18Gi"),
                part("d1", mixed("4Gi", "6", "4", "2Gi")),
                part("d2", mixed("6Gi", "4", "6", "6Gi")),
                part("d3", mixed("4Gi", "4", "4", "4Gi")),
            ),
            claims=[[r0, r1]],
            gives=[[say.result("r0", "d2"), say.result("r1", "d3")]],
        ),
        say.scenario(
            88,
            "partitionable-devices-multiple-pools",
            slices=[
                *pool(
                    one_set("8", "18Gi"),
                    part("d1", one_set("6", "4Gi")),
                    part("d2", one_set("4", "6Gi")),
                    part("d3", one_set("4", "4Gi")),
                ),
                *pool(
                    one_set("8", "18Gi"),
                    part("d1", one_set("6", "4Gi")),
                    part("d2", one_set("1", "7Gi")),
                    part("d3", one_set("1", "7Gi")),
                    pool="p2",
                ),
            ],
            held=["d2", "d3", "p2/d1"],
            claims=[[r0, r1]],
            gives=[[say.result("r0", "d2", "p2"), say.result("r1", "d3", "p2")]],
        ),
        say.scenario(
            89,
            "partitionable-devices-unused-counters-in-counter-set",
            slices=pool(
                {"set-1": {"memory": "8Gi", "unused": "1Gi"}},
                *(
                    say.device(name, draws={"set-1": {"memory": f"{size}Gi"}})
                    for name, size in zip(("d1", "d2", "d3"), (5, 4, 4), strict=True)
                ),
            ),
            claims=[[say.request("r0", count=2)]],
            gives=[[say.result("r0", "d2"), say.result("r0", "d3")]],
        ),
        # As written upstream these two are about a pool of two slices that announces one; the meaning is a variation below.
        say.scenario(
            90,
            "partitionable-devices-no-capacity-available",
            slices=[say.slice(part("d1", "4Gi"), part("d2", "16Gi")), say.counters("18Gi", of=1)],
            held=["d2"],
            claims=[[r0]],
        ),
        say.scenario(
            91,
            "partitionable-devices-overallocated-capacity-pool",
            slices=[say.slice(part("d1", "4Gi"), part("d2", "20Gi")), say.counters("18Gi", of=1)],
            held=["d2"],
            claims=[[r0]],
        ),
        say.scenario(
            92,
            "partitionable-devices-disabled-device-consumes-counters",
            off=["partitionable_devices"],
            slices=[say.slice(part("d1", "4Gi")), say.counters("18Gi", of=1)],
            claims=[[r0]],
        ),
        say.scenario(
            93,
            "partitionable-devices-disabled-other-device-do-not-consume-counters",
            off=["partitionable_devices"],
            slices=pool("18Gi", part("d1", "4Gi"), say.device("d2")),
            claims=[[r0]],
            gives=got_d2,
        ),
        say.scenario(
            94,
            "partitionable-devices-disabled-per-device-node-selection",
            off=["partitionable_devices"],
            slices=[say.slice(say.device("d2", node="node-1"), node=say.PER_DEVICE)],
            claims=[[r0]],
        ),
        say.scenario(
            95,
            "partitionable-devices-per-device-node-selection-nodename",
            slices=pool(
                "18Gi", part("d1", "4Gi", node="node-1"), part("d2", "6Gi", node="node-2"), node=say.PER_DEVICE
            ),
            claims=[[{**six_or_four, "name": "r0"}]],
            gives=[[say.result("r0/s1", "d1")]],
        ),
        say.scenario(
            96,
            "partitionable-devices-per-device-node-selection-node-selector",
            slices=pool("18Gi", part("d1", "4Gi", node=here), node=say.PER_DEVICE),
            claims=[[r0]],
            gives=[say.allocation(say.result("r0", "d1"), selector=here)],
        ),
        say.scenario(
            97,
            "partitionable-devices-per-device-node-selection-node-selector-multiple-devices",
            slices=[
                *pool(
                    "18Gi",
                    part("d1", "4Gi", node=here),
                    part("d2", "4Gi", node="node-1"),
                    part("d3", "4Gi", node=say.ALL_NODES),
                    node=say.PER_DEVICE,
                ),
                *pool("12Gi", *(part(f"d{index}", "4Gi") for index in (1, 2, 3)), pool="p2", driver="driver-b"),
            ],
            claims=[[say.request("r0", count=3), say.request("r1", cls="class-b", count=3)]],
            gives=[
                [
                    *(say.result("r0", f"d{index}") for index in (1, 2, 3)),
                    *(say.result("r1", f"d{index}", "p2", "driver-b") for index in (1, 2, 3)),
                ]
            ],
        ),
        # r0 must leave the special device to r1.
        say.scenario(
            117,
            "partitionable-devices-with-attribute-selector",
            slices=pool(
                {"set-1": {"cpu1": "1", "cpu2": "1", "cpu3": "1"}, "set-2": {"mem": "30Gi"}},
                *(core(1, special=True), core(2, special=False), core(3, special=False)),
            ),
            claims=[[say.request("r0", count=2), say.request("r1", say.flag("special"))]],
            gives=[[say.result("r0", "d2"), say.result("r0", "d3"), say.result("r1", "d1")]],
        ),
        say.scenario(
            202,
            "partitionable-devices-same-counter-set-name-in-different-resource-slices",
            slices=[
                say.slice(d1, of=4),
                say.counters({"set-1": {}}, of=4),
                say.slice(say.device("d2"), of=4),
                say.counters({"set-1": {}}, of=4),
            ],
            claims=[[r0]],
            fails_here=f"{invalid}duplicate counter set name set-1)",
        ),
        say.scenario(
            203,
            "partitionable-devices-device-counter-consumption-references-unknown-counter-set",
            slices=pool({"set-1": {}}, say.device("d1", draws={"set-2": {}})),
            claims=[[r0]],
            fails_here=f"{invalid}counter set set-2 not found)",
        ),
        say.scenario(
            204,
            "partitionable-devices-device-counter-consumption-references-unknown-counter-in-counter-set",
            slices=pool({"set-1": {"other-memory": "8Gi"}}, part("d1", "8Gi")),
            claims=[[r0]],
            fails_here=f"{invalid}counter memory not found in counter set set-1)",
        ),
        say.scenario(
            205,
            "partitionable-devices-device-counter-consumption-references-counter-set-in-other-pool",
            slices=[say.slice(part("d1", "8Gi")), say.counters("8Gi", of=1, pool="p2")],
            claims=[[r0]],
            fails_here=f"{invalid}counter set set-1 not found)",
        ),
        # What is allocated on another node draws from the same counters.
        say.scenario(
            206,
            "partitionable-devices-devices-on-different-nodes-consume-same-counter-set",
            slices=[
                say.counters("8Gi", of=3),
                say.slice(part("d1", "6Gi"), part("d2", "2Gi"), of=3),
                say.slice(part("d3", "6Gi"), of=3, node="node-2"),
            ],
            held=["d3"],
            claims=[
                [say.first_of("r0", say.subrequest("s0", say.memory("6Gi")), say.subrequest("s1", say.memory("2Gi")))]
            ],
            gives=[[say.result("r0/s1", "d2")]],
        ),
        say.scenario(
            207,
            "partitionable-devices-devices-consume-counter-set-in-different-nodes",
            node="node-2",
            slices=[
                say.counters("8Gi", of=3),
                say.slice(part("d1", "6Gi"), of=3),
                say.slice(part("d2", "6Gi"), part("d3", "2Gi"), of=3, node="node-2"),
            ],
            held=["d1"],
            claims=[[r0]],
            gives=[[say.result("r0", "d3")]],
        ),
        say.scenario(
            208,
            "partitionable-devices-validation-error-on-non-targeting-slice",
            slices=[
                say.counters("8Gi", of=3),
                say.slice(part("d1", "6Gi"), of=3),
                say.slice(part("d3", {"set-2": {"memory": "6Gi"}}), of=3, node="node-2"),
            ],
            claims=[[r0]],
            fails_here=f"{invalid}counter set set-2 not found)",
        ),
    ]


def variations(say: SimpleNamespace) -> list[Any]:
    """90 and 91 with pools that are complete, and what upstream added after the table."""
    part = say.partition
    r0 = say.request("r0")

    def pool(total: str, *devices: Any, **fields: Any) -> list[Any]:
        return [say.slice(*devices, of=2, **fields), say.counters(total, **fields)]

    return [
        say.scenario(
            0,
            "what-an-allocated-device-draws-is-not-available",
            slices=pool("18Gi", part("d1", "4Gi"), part("d2", "16Gi")),
            held=["d2"],
            claims=[[r0]],
        ),
        say.scenario(
            0,
            "overdrawn-counters-have-nothing-left",
            slices=pool("18Gi", part("d1", "4Gi"), part("d2", "20Gi")),
            held=["d2"],
            claims=[[r0]],
        ),
        # Defect X1, fixed: counters belong to the pool of one driver, whatever the name of the pool.
        say.scenario(
            0,
            "counters-of-pools-with-the-same-name-are-apart",
            slices=[*pool("4Gi", part("d1", "4Gi")), *pool("8Gi", part("d1", "8Gi"), driver="driver-b")],
            claims=[[r0, say.request("r1", cls="class-b")]],
            gives=[[say.result("r0", "d1"), say.result("r1", "d1", driver="driver-b")]],
        ),
        say.scenario(
            0,
            "plenty-in-another-driver-does-not-help",
            slices=[*pool("8Gi", part("d1", "8Gi")), *pool("4Gi", part("d1", "8Gi"), driver="driver-b")],
            claims=[[r0, say.request("r1", cls="class-b")]],
        ),
    ]
