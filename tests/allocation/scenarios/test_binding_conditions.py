"""Devices that must become ready before a pod is bound (spec/allocator.md 6.1, 1.13)."""

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
    def until(name: str) -> dict[str, Any]:
        return {"conditions": [f"{name}-ready"], "failures": [f"{name}-failed"]}

    part = say.partition
    two = [say.request("r0", count=2)]
    taint = {"key": "key1", "value": "value1", "effect": "NoSchedule"}
    tolerations = [{"key": "key1", "operator": "Exists", "effect": "NoSchedule"}]
    got_d1, got_d2 = say.result("r0", "d1", **until("one")), say.result("r0", "d2", **until("two"))
    waiting, second = say.device("d1", **until("one")), say.device("d2", **until("two"))
    tainted = [part("d1", "4Gi", taints=[taint], **until("one")), part("d2", "4Gi")]
    return [
        say.scenario(
            120,
            "device-binding-conditions",
            slices=[say.slice(waiting)],
            claims=[[say.request("r0")]],
            gives=[[got_d1]],
        ),
        say.scenario(
            121,
            "binding-conditions-multiple-devices",
            slices=[say.slice(waiting, second, say.device("d3", **until("three")))],
            claims=[[*two, say.request("r1")]],
            gives=[[got_d1, got_d2, say.result("r1", "d3", **until("three"))]],
        ),
        say.scenario(
            122,
            "binding-conditions-with-and-without",
            slices=[say.slice(say.device("d1"), second)],
            claims=[[say.request("r0"), say.request("r1")]],
            gives=[[say.result("r0", "d1"), say.result("r1", "d2", **until("two"))]],
        ),
        say.scenario(
            123,
            "binding-conditions-without-feature-gate",
            off=["device_binding_and_status"],
            slices=[say.slice(waiting)],
            claims=[[say.request("r0")]],
        ),
        say.scenario(
            125,
            "partitionable-devices-with-binding-conditions",
            slices=[say.slice(part("d1", "4Gi", **until("one")), of=2), say.counters("8Gi")],
            claims=[[say.request("r0")]],
            gives=[[got_d1]],
        ),
        say.scenario(
            126,
            "partitionable-devices-with-binding-conditions-multiple",
            slices=[
                say.slice(part("d1", "4Gi", **until("one")), part("d2", "4Gi", **until("two")), of=2),
                say.counters("8Gi"),
            ],
            claims=[two],
            gives=[[got_d1, got_d2]],
        ),
        say.scenario(
            127,
            "partitionable-devices-with-binding-conditions-some-devices-no-conditions",
            slices=[
                say.slice(
                    part("d1", "2Gi", **until("one")), part("d2", "2Gi"), part("d3", "4Gi", **until("three")), of=2
                ),
                say.counters("8Gi"),
            ],
            claims=[[say.request("r0", count=3)]],
            gives=[[got_d1, say.result("r0", "d2"), say.result("r0", "d3", **until("three"))]],
        ),
        # Slices go by name: that of d2 comes first, wherever it was listed.
        say.scenario(
            128,
            "partitionable-devices-with-binding-conditions-multi-slices",
            slices=[
                say.slice(part("d1", "4Gi", **until("one")), of=4, name="s4"),
                say.counters("8Gi", of=4, name="s3"),
                say.slice(part("d2", {"set-2": {"memory": "4Gi"}}), of=4, name="s2"),
                say.counters({"set-2": {"memory": "8Gi"}}, of=4, name="s1"),
            ],
            claims=[two],
            gives=[[say.result("r0", "d2"), got_d1]],
        ),
        # As written upstream the pool announces one slice and has two; the meaning is a variation below.
        say.scenario(
            129,
            "partitionable-devices-with-binding-conditions-and-taints",
            slices=[say.slice(*tainted), say.counters("8Gi", of=1)],
            claims=[two],
        ),
        say.scenario(
            130,
            "partitionable-devices-with-binding-conditions-and-taints-tolerated",
            slices=[say.slice(*tainted, of=2), say.counters("8Gi")],
            claims=[[say.request("r0", count=2, tolerations=tolerations)]],
            gives=[[{**got_d1, "tolerations": tolerations}, say.result("r0", "d2", tolerations=tolerations)]],
        ),
    ]


def variations(say: SimpleNamespace) -> list[Any]:
    """129 with a pool that is complete."""
    taint = {"key": "key1", "effect": "NoSchedule"}
    waiting = say.partition("d1", "4Gi", taints=[taint], conditions=["ready"])
    slices = [say.slice(waiting, say.partition("d2", "4Gi"), of=2), say.counters("8Gi")]
    return [
        say.scenario(0, "a-taint-keeps-a-waiting-device-away", slices=slices, claims=[[say.request("r0", count=2)]]),
        # Defect A, fixed: the tainted device leaves its counters alone.
        say.scenario(
            0,
            "and-leaves-the-counters-to-the-other",
            slices=slices,
            claims=[[say.request("r0")]],
            gives=[[say.result("r0", "d2")]],
        ),
    ]
