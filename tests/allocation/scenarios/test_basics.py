"""Counts, generations, and claims that are refused before any search (spec/allocator.md 6.1, 1.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def scenarios(say: SimpleNamespace) -> list[Any]:
    d1, d2 = say.device("d1"), say.device("d2")
    small = say.device("small", capacity={"memory": "1Gi"})
    large = say.device("large", capacity={"memory": "2Gi"})
    any_memory, much_memory = say.request("r0", say.memory("1Gi")), say.request("r1", say.memory("2Gi"))
    r0 = [say.request("r0")]
    one = [say.slice(d1)]
    got_one = [[say.result("r0", "d1")]]
    return [
        say.scenario(1, "empty", classes=[], gives=[]),
        say.scenario(2, "simple", slices=one, claims=[r0], gives=got_one),
        say.scenario(
            3,
            "other-node",
            node="node-2",
            slices=[say.slice(d1, driver="driver-b"), say.slice(d1, pool="p2", node="node-2")],
            claims=[r0],
            gives=[[say.result("r0", "d1", "p2")]],
        ),
        say.scenario(
            4,
            "small-and-large",
            slices=[say.slice(small, large)],
            claims=[[any_memory, much_memory]],
            gives=[[say.result("r0", "small"), say.result("r1", "large")]],
        ),
        # The large device is listed first and taken for the small request, until that turns out to be a mistake.
        say.scenario(
            5,
            "small-and-large-backtrack-requests",
            slices=[say.slice(large, small)],
            claims=[[any_memory, much_memory]],
            gives=[[say.result("r0", "small"), say.result("r1", "large")]],
        ),
        say.scenario(
            6,
            "small-and-large-backtrack-claims",
            slices=[say.slice(large, small)],
            claims=[[any_memory], [much_memory]],
            gives=[[say.result("r0", "small")], [say.result("r1", "large")]],
        ),
        say.scenario(
            7,
            "devices-split-across-different-slices",
            slices=[say.slice(d1), say.slice(d1, pool="p2")],
            claims=[[say.request("r0", count=2)]],
            gives=[[say.result("r0", "d1"), say.result("r0", "d1", "p2")]],
        ),
        # Both generations lack a slice.
        say.scenario(8, "obsolete-slice", slices=[say.slice(d1, of=2), say.slice(d2, of=2, generation=2)], claims=[r0]),
        say.scenario(
            9,
            "duplicate-slice",
            slices=[say.slice(d1, of=2), say.slice(d1, of=2)],
            claims=[r0],
            fails_here="invalid resource pools were encountered (driver-a/p1: duplicate device name d1)",
        ),
        say.scenario(10, "no-slices", claims=[r0]),
        say.scenario(11, "not-enough-suitable-devices", slices=one, claims=[r0, [say.request("r1")]]),
        say.scenario(
            12,
            "no-classes",
            classes=[],
            slices=one,
            claims=[r0],
            fails="claim c0, request r0: could not retrieve device class class-a",
        ),
        say.scenario(
            13,
            "unknown-class",
            slices=one,
            claims=[[say.request("r0", cls="nobody-knows")]],
            fails="could not retrieve device class nobody-knows",
        ),
        say.scenario(
            14,
            "empty-class",
            slices=one,
            claims=[[say.request("r0", cls="")]],
            fails="claim c0, request r0: missing device class name (unsupported request type?)",
        ),
        say.scenario(15, "no-claims-to-allocate", slices=one, gives=[]),
        say.scenario(
            41,
            "several-different-drivers",
            slices=[say.slice(d1, d2), say.slice(d1, driver="driver-b")],
            claims=[r0, [say.request("r0", cls="class-b")]],
            gives=[[say.result("r0", "d1")], [say.result("r0", "d1", driver="driver-b")]],
        ),
        say.scenario(42, "already-allocated-devices", slices=one, held=["d1", "d2"], claims=[r0]),
        say.scenario(
            58,
            "unknown-selector",
            slices=one,
            claims=[[say.request("r0", {})]],
            fails="selector #0: CEL expression empty (unsupported selector type?)",
        ),
        say.scenario(
            59,
            "unknown-allocation-mode",
            slices=one,
            claims=[[say.request("r0", mode="future-mode")]],
            fails="unsupported count mode future-mode",
        ),
        say.scenario(
            60,
            "unknown-constraint",
            slices=one,
            claims=[say.claim(say.request("r0"), constraints=[{}])],
            fails="constraint #0: empty constraint (unsupported constraint type?)",
        ),
        say.scenario(
            61,
            "invalid-CEL-one-device",
            slices=one,
            claims=[[say.request("r0", "noSuchVar")]],
            fails="claim c0: selector #0: CEL compile error: compilation failed: ERROR: <input>:1:1: undeclared reference",
        ),
        say.scenario(
            62,
            "invalid-CEL-one-device-class",
            slices=one,
            classes=[say.class_("class-a", "noSuchVar")],
            claims=[r0],
            fails="class class-a: selector #0: CEL compile error: compilation failed: ERROR: <input>:1:1: undeclared reference",
        ),
        say.scenario(
            63,
            "invalid-CEL-all-devices",
            slices=one,
            claims=[[say.every("r0", "noSuchVar")]],
            fails="undeclared reference",
        ),
        say.scenario(
            64,
            "too-many-devices-single-request",
            claims=[[say.request("r0", count=500)]],
            fails="claim c0: number of requested devices 500 exceeds the claim limit of 32",
        ),
        say.scenario(65, "many-devices-okay", claims=[[say.request("r0", count=32)]]),
        say.scenario(
            66,
            "too-many-devices-total",
            slices=[say.slice(*say.devices(33))],
            claims=[[say.request("r0", count=32), say.request("r1")]],
            fails="number of requested devices 33 exceeds the claim limit of 32",
        ),
        # The name promises more than the case does.
        say.scenario(
            67,
            "all-devices-invalid-CEL",
            claims=[[say.request("r0", count=500)]],
            fails="exceeds the claim limit",
        ),
        say.scenario(
            116,
            "max-number-devices",
            slices=[say.slice(*say.devices(32))],
            claims=[[say.request("r0", count=32)]],
            gives=[[say.result("r0", f"d{index}") for index in range(32)]],
        ),
    ]
