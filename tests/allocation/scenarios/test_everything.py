"""Requests for all devices (spec/allocator.md 6.1, 1.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def scenarios(say: SimpleNamespace) -> list[Any]:
    d1, d2 = say.device("d1"), say.device("d2")
    every = [say.every("r0")]
    one_b = [say.request("r0", cls="class-b")]
    both_drivers = [say.slice(d1), say.slice(d1, driver="driver-b")]
    more_drivers = [say.slice(d1, d2), say.slice(d1, driver="driver-b")]
    got_d1, got_both = [say.result("r0", "d1")], [say.result("r0", "d1"), say.result("r0", "d2")]
    got_b = [say.result("r0", "d1", driver="driver-b")]
    return [
        say.scenario(16, "all-devices-single", slices=[say.slice(d1)], claims=[every], gives=[got_d1]),
        say.scenario(
            17,
            "all-devices-with-consumed-counters",
            slices=[say.slice(say.partition("d1", "4Gi"), of=2), say.counters("8Gi")],
            claims=[every],
            gives=[got_d1],
        ),
        say.scenario(
            18,
            "all-devices-many",
            slices=[say.slice(d1), say.slice(d1, pool="p2")],
            claims=[every],
            gives=[[say.result("r0", "d1"), say.result("r0", "d1", "p2")]],
        ),
        say.scenario(
            19,
            "all-devices-of-the-incomplete-pool",
            slices=[say.slice(d1, of=2)],
            claims=[every],
            fails="claim c0, request r0: asks for all devices, but resource pool driver-a/p1 is currently being updated",
        ),
        say.scenario(20, "all-devices-plus-another", slices=both_drivers, claims=[every, one_b], gives=[got_d1, got_b]),
        say.scenario(
            21, "all-devices-plus-another-reversed", slices=both_drivers, claims=[one_b, every], gives=[got_b, got_d1]
        ),
        say.scenario(
            22, "all-devices-many-plus-another", slices=more_drivers, claims=[every, one_b], gives=[got_both, got_b]
        ),
        say.scenario(
            23,
            "all-devices-many-plus-another-reversed",
            slices=more_drivers,
            claims=[one_b, every],
            gives=[got_b, got_both],
        ),
        say.scenario(
            24, "all-devices-no-solution", slices=[say.slice(d1)], claims=[[say.request("r0")], [say.every("r0")]]
        ),
        say.scenario(
            25, "all-devices-no-solution-reversed", slices=[say.slice(d1)], claims=[every, [say.request("r0")]]
        ),
        say.scenario(26, "all-devices-slice-without-devices", slices=[say.slice()], claims=[every]),
        say.scenario(27, "all-devices-no-slices", claims=[every]),
        say.scenario(28, "all-devices-some-allocated", slices=[say.slice(d1, d2)], held=["d1"], claims=[every]),
        say.scenario(
            196,
            "allocation-mode-all-with-multi-host-resource-pool",
            slices=[say.slice(d1, of=2), say.slice(d2, of=2, node="node-2")],
            claims=[every],
            gives=[got_d1],
        ),
    ]
