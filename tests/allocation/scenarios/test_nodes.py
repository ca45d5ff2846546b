"""Which nodes reach a device, and which ones an allocated claim is good for (spec/allocator.md 6.1, 1.2, 1.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def scenarios(say: SimpleNamespace) -> list[Any]:
    d1, d2 = say.device("d1"), say.device("d2")
    here, earth = ("region", "region-1"), ("planet", "earth")
    in_region = say.slice(d1, node=say.labelled(here))
    r0 = [say.request("r0")]
    merged = {
        "nodeSelectorTerms": [
            {
                "matchExpressions": say.labelled(here, earth)["nodeSelectorTerms"][0]["matchExpressions"],
                "matchFields": say.named("node-1")["nodeSelectorTerms"][0]["matchFields"],
            }
        ]
    }
    return [
        say.scenario(
            37,
            "network-attached-device",
            slices=[in_region],
            claims=[r0],
            gives=[say.allocation(say.result("r0", "d1"), selector=say.labelled(here))],
        ),
        say.scenario(
            38, "unsuccessful-allocation-network-attached-device", node="node-2", slices=[in_region], claims=[r0]
        ),
        # A selector for a node's name is merged like any other, it does not make the slice local.
        say.scenario(
            39,
            "many-network-attached-devices",
            slices=[
                in_region,
                say.slice(d1, pool="p2", node=say.ALL_NODES),
                say.slice(d1, pool="p3", node=say.labelled(earth)),
                say.slice(d1, pool="p4", node=say.named("node-1")),
            ],
            claims=[[say.request("r0", count=4)]],
            gives=[say.allocation(*(say.result("r0", "d1", f"p{index}") for index in range(1, 5)), selector=merged)],
        ),
        say.scenario(
            40,
            "local-and-network-attached-devices",
            slices=[in_region, say.slice(d1, pool="p2")],
            claims=[[say.request("r0", count=2)]],
            gives=[[say.result("r0", "d1"), say.result("r0", "d1", "p2")]],
        ),
        say.scenario(
            124,
            "node-restriction",
            slices=[say.slice(say.device("d1", bindsToNode=True), node=say.labelled(earth))],
            claims=[r0],
            gives=[[say.result("r0", "d1")]],
        ),
        say.scenario(
            209,
            "different-resourceslices-in-pool-can-target-different-nodes",
            slices=[say.slice(d1, of=2, node="node-2"), say.slice(d2, of=2)],
            claims=[r0],
            gives=[[say.result("r0", "d2")]],
        ),
    ]
