"""Devices that several claims share, and how much each consumes (spec/allocator.md 6.1, 1.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def scenarios(say: SimpleNamespace) -> list[Any]:
    prefix = "consumable-capacity-multi-allocatable-device"
    shareables = {"classes": [say.class_a("device.allowMultipleAllocations == true"), say.class_b()]}
    dedicated = {"classes": [say.class_a("device.allowMultipleAllocations == false"), say.class_b()]}
    off = ["consumable_capacity"]

    def shared(name: str, units: Any, attributes: Any = None, **fields: Any) -> Any:
        return say.device(name, attributes, shareable=True, capacity={"units": units}, **fields)

    def whole(name: str, units: Any) -> Any:
        return say.device(name, capacity={"units": units})

    def part(name: str, draws: Any, attributes: Any = None, **fields: Any) -> Any:
        return say.partition(name, draws, attributes, shareable=True, **fields)

    def wants(needs: str, name: str = "r0") -> list[Any]:
        return [say.request(name, needs=needs)]

    def got(device: str, units: str, name: str = "r0", **more: str) -> list[Any]:
        return [say.result(name, device, consumed={"units": units, **more})]

    r0, one_of_all = [say.request("r0")], say.every("r0", needs="1")
    bare = say.device("d1", shareable=True)
    two_steps, four_steps = say.ranged("2"), say.ranged("4")
    slice_ = say.slice
    four_or_two = say.first_of(
        "r0", say.subrequest("s0", needs="4"), say.subrequest("s1", needs="2"), say.subrequest("s2")
    )
    six_or_four = say.first_of("r1", say.subrequest("s0", say.memory("6Gi")), say.subrequest("s1", say.memory("4Gi")))
    mode_b = say.attribute("mode", "b")

    def stepped(name: str, units: str) -> Any:
        """Draws `units` and four `lanes`, and gives lanes away in steps of two."""
        draws = {"set-1": {"units": units}, "set-2": {"lanes": "4"}}
        return part(name, draws, capacity={"lanes": four_steps})

    return [
        say.scenario(
            131,
            "consumable-capacity-disabled-feature",
            off=off,
            slices=[slice_(bare)],
            claims=[wants("1")],
            fails="claim c0, request r0: has capacity requests, but the DRAConsumableCapacity feature is disabled",
        ),
        say.scenario(
            132,
            "consumable-capacity-disabled-feature-with-prioritized-list",
            off=off,
            slices=[slice_(bare)],
            claims=[[say.first_of("r0", say.subrequest("s0", needs="1"), say.subrequest("s1", needs="1"))]],
            fails="claim c0, subrequest s0: has capacity requests, but the DRAConsumableCapacity feature is disabled",
        ),
        say.scenario(
            133,
            f"{prefix}-with-missing-capacity-request",
            slices=[slice_(say.device("d1", shareable=True, capacity={"other": "1"}))],
            claims=[wants("1")],
        ),
        say.scenario(
            134,
            f"{prefix}-allocation-mode-all-with-missing-capacity-request",
            **shareables,
            slices=[slice_(say.device("d1", shareable=True, capacity={"other": "1"}))],
            claims=[[one_of_all]],
        ),
        # Without capacity there is nothing to run out of.
        say.scenario(
            135,
            f"{prefix}-without-capacity-without-capacity-request",
            **shareables,
            slices=[slice_(bare)],
            claims=[r0, r0],
            gives=[[say.result("r0", "d1", consumed={})], [say.result("r0", "d1", consumed={})]],
        ),
        # Who does not say how much takes all of it.
        say.scenario(
            136,
            f"{prefix}-without-policy-without-capacity-request",
            **shareables,
            slices=[slice_(shared("d1", "1"), shared("d2", "1"))],
            claims=[r0, r0],
            gives=[got("d1", "1"), got("d2", "1")],
        ),
        say.scenario(
            137,
            f"{prefix}-without-policy-without-capacity-request-block",
            **shareables,
            slices=[slice_(shared("d1", "2"))],
            claims=[r0, r0],
        ),
        say.scenario(
            138,
            f"{prefix}-without-policy-with-capacity-request",
            **shareables,
            slices=[slice_(shared("d1", "2"))],
            claims=[wants("1"), wants("1")],
            gives=[got("d1", "1"), got("d1", "1")],
        ),
        say.scenario(
            139,
            f"{prefix}-with-policy-without-capacity-request",
            **shareables,
            slices=[slice_(shared("d1", four_steps))],
            claims=[r0, r0],
            gives=[got("d1", "2"), got("d1", "2")],
        ),
        say.scenario(
            140,
            f"{prefix}-with-zero-request-policy",
            **shareables,
            slices=[slice_(shared("d1", say.listed("1", "0")))],
            claims=[r0, r0],
            gives=[got("d1", "0"), got("d1", "0")],
        ),
        say.scenario(
            141,
            f"{prefix}-violates-zero-request-policy",
            **shareables,
            slices=[slice_(shared("d1", say.listed("1", "0")))],
            claims=[wants("1")],
        ),
        say.scenario(
            142,
            f"{prefix}-with-range-policy-with-capacity-request",
            **shareables,
            slices=[slice_(shared("d1", four_steps))],
            claims=[wants("1"), wants("1")],
            gives=[got("d1", "2"), got("d1", "2")],
        ),
        say.scenario(
            143,
            f"{prefix}-with-range-policy-step",
            **shareables,
            slices=[slice_(shared("d1", four_steps))],
            claims=[wants("3")],
            gives=[got("d1", "4")],
        ),
        say.scenario(
            144,
            f"{prefix}-with-valid-values-policy",
            **shareables,
            slices=[slice_(shared("d1", say.listed("4", "1", "2")))],
            claims=[wants("2")],
            gives=[got("d1", "2")],
        ),
        say.scenario(
            145,
            f"{prefix}-with-valid-values-policy-round-up",
            **shareables,
            slices=[slice_(shared("d1", say.listed("3", "1", "3")))],
            claims=[wants("2")],
            gives=[got("d1", "3")],
        ),
        say.scenario(
            146,
            f"{prefix}-with-exceeded-consumable-capacity-request",
            **shareables,
            slices=[slice_(shared("d1", two_steps))],
            claims=[wants("1"), wants("2")],
        ),
        # There are ten, but nobody gets more than four at once.
        say.scenario(
            147,
            f"{prefix}-with-request-over-max-sharing-policy",
            **shareables,
            slices=[slice_(shared("d1", say.ranged("10")))],
            claims=[wants("6")],
        ),
        say.scenario(
            148,
            f"{prefix}-with-allocated-capacity-use-remaining",
            **shareables,
            slices=[slice_(shared("d1", four_steps))],
            shares={"d1": {"units": "2"}},
            claims=[wants("2")],
            gives=[got("d1", "2")],
        ),
        say.scenario(
            149,
            f"{prefix}-with-allocated-capacity-next-device",
            **shareables,
            slices=[slice_(shared("d1", two_steps), shared("d2", two_steps))],
            shares={"d1": {"units": "2"}},
            claims=[wants("2")],
            gives=[got("d2", "2")],
        ),
        # r1 finds no room next to r0 on d2 and must match it: both move to d1, and d2 is left for the other claim.
        say.scenario(
            150,
            "consumable-capacity-with-multi-allocatable-device-backtrack",
            slices=[slice_(shared("d2", two_steps, {"kind": "2"}), shared("d1", four_steps, {"kind": "1"}))],
            claims=[say.claim(*wants("2"), *wants("2", "r1"), constraints=[say.match("kind")]), wants("2")],
            gives=[[*got("d1", "2"), *got("d1", "2", "r1")], got("d2", "2")],
        ),
        say.scenario(
            151,
            f"{prefix}-with-subrequest",
            **shareables,
            slices=[slice_(shared("d1", two_steps))],
            claims=[[four_or_two]],
            gives=[got("d1", "2", "r0/s1")],
        ),
        say.scenario(
            152,
            f"{prefix}-with-no-available-consumable-capacity",
            **shareables,
            slices=[slice_(shared("d1", two_steps))],
            shares={"d1": {"units": "2"}},
            claims=[wants("2")],
        ),
        # All devices are all those that have room for the request.
        say.scenario(
            153,
            f"{prefix}-allocation-mode-all-filter-out-no-capacity",
            **shareables,
            slices=[slice_(shared("d1", "2"), say.device("d2", shareable=True))],
            claims=[[say.every("r0", needs="2")]],
            gives=[got("d1", "2")],
        ),
        say.scenario(
            154,
            f"{prefix}-allocation-mode-all-filter-out-insufficient-capacity",
            **shareables,
            slices=[slice_(shared("d1", "2"), shared("d2", "1"))],
            claims=[[say.every("r0", needs="2")]],
            gives=[got("d1", "2")],
        ),
        say.scenario(
            155,
            f"{prefix}-allocation-mode-all-allocating-sufficient",
            slices=[slice_(shared("d1", "2"), shared("d2", "1"))],
            claims=[[*wants("1"), say.every("r1", needs="1")]],
            gives=[[*got("d1", "1"), *got("d1", "1", "r1"), *got("d2", "1", "r1")]],
        ),
        say.scenario(
            156,
            f"{prefix}-allocation-mode-all-in-use-sufficient",
            slices=[slice_(shared("d1", "2"), shared("d2", "1"))],
            shares={"d1": {"units": "1"}},
            claims=[[one_of_all]],
            gives=[[*got("d1", "1"), *got("d2", "1")]],
        ),
        # What this claim takes is not known yet when the list is made; what others hold is.
        say.scenario(
            157,
            f"{prefix}-allocation-mode-all-allocating-insufficient",
            slices=[slice_(shared("d1", "1"), shared("d2", "1"))],
            claims=[[*wants("1"), say.every("r1", needs="1")]],
        ),
        say.scenario(
            158,
            f"{prefix}-allocation-mode-all-in-use-insufficient",
            slices=[slice_(shared("d1", "1"), shared("d2", "1"))],
            shares={"d1": {"units": "1"}},
            claims=[[one_of_all]],
            gives=[got("d2", "1")],
        ),
        say.scenario(
            159,
            "consumable-capacity-dedicated-device-with-consumable-capacity-request",
            **dedicated,
            slices=[slice_(whole("d1", "1"))],
            claims=[wants("1")],
            gives=[[say.result("r0", "d1")]],
        ),
        say.scenario(
            160,
            "consumable-capacity-dedicated-device-with-multiple-consumable-capacity-request",
            **dedicated,
            slices=[slice_(whole("d1", two_steps))],
            claims=[wants("1"), wants("1")],
        ),
        say.scenario(
            161,
            "allow-multiple-allocations-exclude-multi-allocatable-device-by-class-selector",
            **dedicated,
            slices=[slice_(shared("d1", "1"))],
            claims=[wants("1")],
        ),
        say.scenario(
            162,
            "allow-multiple-allocations-not-allocate-multi-allocatable-device-which-already-dedicated",
            **shareables,
            slices=[slice_(shared("d1", two_steps))],
            held=["d1"],
            claims=[wants("1")],
        ),
        # Only the selector of the class refuses it; without, it would be allocated: defect X7, kept.
        say.scenario(
            163,
            "allow-multiple-allocations-not-allocate-dedicated-device-which-change-from-multi-allocatable",
            **shareables,
            slices=[slice_(whole("d1", two_steps))],
            shares={"d1": {"units": "1"}},
            claims=[wants("1")],
        ),
        say.scenario(
            164,
            "allow-multiple-allocations-with-partitionable-device",
            **shareables,
            slices=[slice_(part("d1", "4Gi"), part("d2", "6Gi"), part("d3", "4Gi"), of=2), say.counters("8Gi")],
            claims=[[*r0, six_or_four]],
            gives=[
                [
                    say.result("r0", "d1", consumed={"memory": "4Gi"}),
                    say.result("r1/s1", "d3", consumed={"memory": "4Gi"}),
                ]
            ],
        ),
        # d1 is shared by others and still holds the only unit that both draw.
        say.scenario(
            165,
            "allow-multiple-allocations-with-shared-device-counter-cross-cycle",
            **shareables,
            slices=[
                slice_(
                    *(
                        part(name, {"set-1": {"units": "1"}}, {"mode": mode})
                        for name, mode in (("d1", "a"), ("d2", "b"))
                    ),
                    of=2,
                ),
                say.counters({"set-1": {"units": "1"}}),
            ],
            shares={"d1": {"units": "1"}},
            claims=[[say.request("r0", mode_b, needs="1")]],
        ),
        # r2 finds one unit left on d1, and d2 would overdraw the counters; r1 shares d1 and draws nothing again.
        say.scenario(
            166,
            "consumable-capacity-with-partitionable-device-multiple-capacity-pools",
            slices=[
                slice_(stepped("d1", "2"), stepped("d2", "4"), stepped("d3", "2"), of=2),
                say.counters({"set-1": {"units": "4"}, "set-2": {"lanes": "8"}}),
            ],
            claims=[
                [
                    *wants("1"),
                    *wants("2", "r2"),
                    say.first_of(
                        "r1",
                        say.subrequest("s0", say.units("4"), needs="1"),
                        say.subrequest("s1", say.units("2"), needs="1"),
                    ),
                ]
            ],
            gives=[
                [
                    *got("d1", "1", lanes="2"),
                    *got("d3", "2", "r2", lanes="2"),
                    *got("d1", "1", "r1/s1", lanes="2"),
                ]
            ],
        ),
    ]
