"""Prioritized lists of alternatives (spec/allocator.md 6.1, 1.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def scenarios(say: SimpleNamespace) -> list[Any]:
    d1, d2 = say.device("d1"), say.device("d2")
    both = say.slice(d1, d2)
    one_b = say.slice(d1, pool="p2", driver="driver-b")
    all_or_b = [say.first_of("r0", say.every_sub("s0"), say.subrequest("s1", cls="class-b"))]
    all_or_one = say.first_of("r0", say.every_sub("s0"), say.subrequest("s1"))
    b_or_a = [say.first_of("r0", say.subrequest("s0", cls="class-b"), say.subrequest("s1"))]
    got_b = [[say.result("r0/s1", "d1", "p2", "driver-b")]]
    got_d1, got_d2 = [[say.result("r0/s1", "d1")]], [[say.result("r0/s1", "d2")]]

    def sized(name: str, memory: str, release: str = "1.0.0") -> Any:
        return say.device(name, {"release": say.version(release)}, capacity={"memory": memory})

    def prefers(name: str, *amounts: str) -> Any:
        return say.first_of(name, *(say.subrequest(f"s{rank}", say.memory(each)) for rank, each in enumerate(amounts)))

    eight = [say.slice(sized("d1", "8Gi"))]
    v6 = say.every_sub("s0", say.attribute("generation", "v6"))
    v5 = say.every_sub("s1", say.attribute("generation", "v5"))
    all_v6_or_v5 = [say.first_of("r0", v6, v5)]

    def built(name: str, generation: str, **more: Any) -> Any:
        return say.device(name, {"generation": generation, **more})

    def half_of_claim(name: str) -> Any:
        return say.first_of(name, say.subrequest("s0", count=32), say.subrequest("s1", count=16))

    return [
        say.scenario(
            34,
            "all-devices-slice-without-devices-prioritized-list",
            slices=[say.slice(), one_b],
            claims=[all_or_b],
            gives=got_b,
        ),
        say.scenario(35, "all-devices-no-slices-prioritized-list", slices=[one_b], claims=[all_or_b], gives=got_b),
        say.scenario(
            36,
            "all-devices-some-allocated-prioritized-list",
            slices=[both, one_b],
            held=["d1"],
            claims=[all_or_b],
            gives=got_b,
        ),
        say.scenario(68, "prioritized-list-first-unavailable", slices=[say.slice(d1)], claims=[b_or_a], gives=got_d1),
        say.scenario(
            69,
            "prioritized-list-non-available",
            slices=[say.slice(d1), one_b],
            claims=[[say.first_of("r0", say.subrequest("s0", cls="class-b", count=2), say.subrequest("s1", count=2))]],
        ),
        # Two of 2Gi are only left when r0 makes do with the smallest device.
        say.scenario(
            74,
            "prioritized-list-subrequests-with-expressions",
            slices=[say.slice(sized("d1", "2Gi"), sized("d2", "2Gi"), sized("d3", "1Gi"))],
            claims=[
                [
                    say.request("r0", say.memory("1Gi")),
                    say.first_of(
                        "r1",
                        say.subrequest("s0", say.memory("4Gi")),
                        say.subrequest("s1", say.memory("2Gi"), count=2),
                    ),
                ]
            ],
            gives=[[say.result("r0", "d3"), say.result("r1/s1", "d1"), say.result("r1/s1", "d2")]],
        ),
        say.scenario(
            75,
            "prioritized-list-subrequests-with-constraints-ref-parent-request",
            slices=[*eight, say.slice(sized("d2", "2Gi", "2.0.0"), sized("d3", "1Gi", "1.0.0"), pool="p2")],
            claims=[
                say.claim(
                    say.request("r0", say.memory("8Gi")),
                    prefers("r1", "2Gi", "1Gi"),
                    constraints=[say.match("release", "r0", "r1")],
                )
            ],
            gives=[[say.result("r0", "d1"), say.result("r1/s1", "d3", "p2")]],
        ),
        # The constraint names the first alternative only, so that the second takes what the first could not.
        say.scenario(
            76,
            "prioritized-list-subrequests-with-constraints-ref-sub-request",
            slices=[*eight, say.slice(sized("d2", "2Gi", "2.0.0"), pool="p2")],
            claims=[
                say.claim(
                    say.request("r0", say.memory("8Gi")),
                    prefers("r1", "2Gi", "1Gi"),
                    constraints=[say.match("release", "r0", "r1/s0")],
                )
            ],
            gives=[[say.result("r0", "d1"), say.result("r1/s1", "d2", "p2")]],
        ),
        say.scenario(
            77,
            "prioritized-list-subrequests-with-allocation-mode-all",
            slices=[both],
            held=["d1"],
            claims=[[all_or_one]],
            gives=got_d2,
        ),
        say.scenario(
            78,
            "prioritized-list-allocation-mode-all-multiple-requests",
            slices=[both],
            claims=[[say.request("r0"), {**all_or_one, "name": "r1"}]],
            gives=[[say.result("r0", "d1"), say.result("r1/s1", "d2")]],
        ),
        say.scenario(
            79,
            "prioritized-list-disabled",
            off=["prioritized_list"],
            slices=[both],
            claims=[[say.first_of("r0", say.subrequest("s0"))]],
            fails="claim c0, request r0: has subrequests, but the DRAPrioritizedList feature is disabled",
        ),
        say.scenario(
            80,
            "prioritized-list-multi-request",
            slices=[*eight, say.slice(sized("d2", "4Gi"), pool="p2")],
            claims=[[say.request("r1", say.memory("8Gi")), prefers("r0", "8Gi", "4Gi")]],
            gives=[[say.result("r1", "d1"), say.result("r0/s1", "d2", "p2")]],
        ),
        # The first choice of r0 would leave nothing for r1.
        say.scenario(
            81,
            "prioritized-list-with-backtracking",
            slices=[*eight, say.slice(sized("d2", "4Gi"), pool="p2")],
            claims=[[prefers("r0", "8Gi", "4Gi"), say.request("r1", say.memory("8Gi"))]],
            gives=[[say.result("r0/s1", "d2", "p2"), say.result("r1", "d1")]],
        ),
        say.scenario(
            82,
            "prioritized-list-too-many-in-first-subrequest",
            slices=[say.slice(d1)],
            claims=[[say.first_of("r0", say.subrequest("s0", cls="class-b", count=500), say.subrequest("s1"))]],
            gives=got_d1,
        ),
        say.scenario(
            111,
            "prioritized-list-allocation-mode-all",
            slices=[both],
            held=["d2"],
            claims=[[all_or_one]],
            gives=got_d1,
        ),
        say.scenario(
            112,
            "prioritized-list-allocation-mode-all-with-selectors",
            slices=[say.slice(built("d1", "v5"))],
            claims=[all_v6_or_v5],
            gives=got_d1,
        ),
        say.scenario(
            113,
            "prioritized-list-allocation-mode-all-with-selectors-multiple-pools",
            slices=[say.slice(built("d1", "v5")), say.slice(built("d1", "v5"), pool="p2")],
            claims=[all_v6_or_v5],
            gives=[[say.result("r0/s1", "d1"), say.result("r0/s1", "d1", "p2")]],
        ),
        say.scenario(
            114,
            "prioritized-list-allocation-mode-all-with-selectors-multiple-pools-across-nodes",
            slices=[
                say.slice(built("d1", "v5")),
                say.slice(built("d1", "v5"), built("d2", "v6"), pool="p2", node="node-2"),
            ],
            claims=[all_v6_or_v5],
            gives=got_d1,
        ),
        say.scenario(
            115,
            "prioritized-list-allocation-mode-all-with-selectors-deviceclass-subset",
            classes=[say.class_a(say.flag("selected"))],
            slices=[
                say.slice(
                    built("d1", "v6", selected=False),
                    built("d2", "v5", selected=False),
                    built("d3", "v5", selected=True),
                )
            ],
            claims=[all_v6_or_v5],
            gives=[[say.result("r0/s1", "d3")]],
        ),
        # 32 and another 16 would be too many for one claim, whichever devices are taken.
        say.scenario(
            118,
            "prioritized-list-max-allocation-limit-request",
            slices=[say.slice(*say.devices(64))],
            claims=[[half_of_claim("r0"), half_of_claim("r1")]],
            gives=[
                [
                    *(say.result("r0/s1", f"d{index}") for index in range(16)),
                    *(say.result("r1/s1", f"d{index}") for index in range(16, 32)),
                ]
            ],
        ),
        say.scenario(
            119,
            "prioritized-list-max-allocation-allocation-mode-all",
            slices=[say.slice(*say.devices(31)), say.slice(*say.devices(2), pool="p2", driver="driver-b")],
            claims=[
                [
                    say.first_of("r0", say.every_sub("s0"), say.subrequest("s1", count=2)),
                    say.request("r1", cls="class-b", count=2),
                ]
            ],
            gives=[
                [
                    *(say.result("r0/s1", f"d{index}") for index in range(2)),
                    *(say.result("r1", f"d{index}", "p2", "driver-b") for index in range(2)),
                ]
            ],
        ),
    ]
