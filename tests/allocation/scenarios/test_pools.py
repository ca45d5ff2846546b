"""Pools that are incomplete, invalid, or move between nodes (spec/allocator.md 6.1, 1.2)."""

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
    d1, d2 = say.device("d1"), say.device("d2")
    r0 = [say.request("r0")]
    got_d1 = [[say.result("r0", "d1")]]

    def moved(*, old: str, new: str, arrived: int = 2) -> list[Any]:
        """Generation 1 on one node, `arrived` of two slices of generation 2 on another."""
        before = [say.slice(each, of=2, node=old) for each in (d1, d2)]
        after = [say.slice(each, of=2, node=new, generation=2) for each in (d1, d2)]
        return before + after[:arrived]

    twice = [say.slice(d1, of=2), say.slice(d1, of=2)]
    return [
        say.scenario(
            197,
            "multi-host-resource-pool-with-stale-slice-for-current-node",
            slices=[say.slice(d1, of=2), say.slice(d2, of=2, generation=2, node="node-2")],
            claims=[r0],
        ),
        # What is complete here is used, though newer slices elsewhere make it obsolete.
        say.scenario(
            198,
            "multi-host-resource-pool-complete-update-from-node-1-to-node-2",
            slices=moved(old="node-1", new="node-2"),
            claims=[r0],
            gives=got_d1,
        ),
        say.scenario(
            199,
            "multi-host-resource-pool-complete-update-from-node-2-to-node-1",
            slices=moved(old="node-2", new="node-1"),
            claims=[r0],
            gives=got_d1,
        ),
        say.scenario(
            200,
            "multi-host-resource-pool-incomplete-update-from-node-1-to-node-2",
            slices=moved(old="node-1", new="node-2", arrived=1),
            claims=[r0],
            gives=got_d1,
        ),
        say.scenario(
            201,
            "multi-host-resource-pool-incomplete-update-from-node-2-to-node-1",
            slices=moved(old="node-2", new="node-1", arrived=1),
            claims=[r0],
        ),
        say.scenario(
            210,
            "invalid-pool-is-ok-if-devices-can-be-allocated-from-other",
            slices=[*twice, say.slice(d2, pool="p2")],
            claims=[r0],
            gives=[[say.result("r0", "d2", "p2")]],
        ),
        say.scenario(
            211,
            "invalid-pool-is-error-if-no-other-device-can-be-allocated",
            slices=[*twice, say.slice(d2, pool="p2")],
            held=["p2/d2"],
            claims=[r0],
            fails_here="invalid resource pools were encountered (driver-a/p1: duplicate device name d1)",
        ),
        say.scenario(212, "no-allocation-from-incomplete-pools", slices=[say.slice(d1, of=2)], claims=[r0]),
    ]


def variations(say: SimpleNamespace) -> list[Any]:
    """In which order pools and slices are tried: by name, byte by byte; pools with binding conditions last."""
    d1, waiting = say.device("d1"), say.device("w1", conditions=["ready"])

    def pools(*names: str, device: Any = d1, driver: str = "driver-a") -> list[Any]:
        return [say.slice(device, pool=name, driver=driver) for name in names]

    def got(*pools: str, device: str = "d1", **fields: Any) -> list[Any]:
        return [say.result("r0", device, pool, **fields) for pool in pools]

    anything = [say.class_("class-a", "true")]
    late: dict[str, Any] = {"device": "w1", "conditions": ["ready"]}
    return [
        say.scenario(
            0,
            "pools-go-by-name",
            slices=pools("p2", "p10", "a", "Z"),
            claims=[[say.request("r0", count=4)]],
            gives=[got("Z", "a", "p10", "p2")],
        ),
        say.scenario(
            0,
            "drivers-go-before-pools",
            classes=anything,
            slices=[*pools("a", driver="driver-b"), *pools("z")],
            claims=[[say.request("r0", count=2)]],
            gives=[[*got("z"), *got("a", driver="driver-b")]],
        ),
        say.scenario(
            0,
            "pools-with-binding-conditions-go-last",
            slices=[*pools("a", "c", device=waiting), *pools("b", "d")],
            claims=[[say.request("r0", count=4)]],
            gives=[[*got("b", "d"), *got("a", "c", **late)]],
        ),
        # One device with conditions is enough; the gate does not matter.
        say.scenario(
            0,
            "even-without-the-gate",
            off=["device_binding_and_status"],
            slices=[say.slice(d1, waiting, pool="a"), *pools("b")],
            claims=[[say.request("r0", count=2)]],
            gives=[got("b", "a")],
        ),
        say.scenario(
            0,
            "slices-go-by-name",
            slices=[
                say.slice(say.device("last"), of=3, name="b"),
                say.slice(say.device("second"), of=3, name="a2"),
                say.slice(say.device("first"), of=3, name="a10"),
            ],
            claims=[[say.request("r0", count=3)]],
            gives=[[say.result("r0", name) for name in ("first", "second", "last")]],
        ),
        say.scenario(
            0,
            "slices-with-binding-conditions-go-by-name",
            slices=[say.slice(d1, of=2, name="b"), say.slice(waiting, of=2, name="a")],
            claims=[[say.request("r0", count=2)]],
            gives=[[*got("p1", **late), *got("p1")]],
        ),
    ]
