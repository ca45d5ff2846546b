"""Combinations within a request, and going back over them (spec/allocator.md 6.1, 1.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def scenarios(say: SimpleNamespace) -> list[Any]:
    d1, d2, d3, d4 = (say.device(f"d{index}") for index in range(1, 5))
    five = [[say.request("r0", count=5)]]
    kinds = [say.device(f"d{index}", {"kind": kind}) for index, kind in enumerate("XYY", 1)]
    last = say.device("d3", {"kind": "Y"}, conditions=["ready"])
    two_and_an_x = [[say.request("r1", count=2), say.request("r2", say.attribute("kind", "X"))]]
    return [
        say.scenario(
            213,
            "check-combinations-within-single-request-single-pool-single-slice",
            slices=[say.slice(d1, d2, d3, d4)],
            claims=five,
        ),
        say.scenario(
            214,
            "check-combinations-within-single-request-single-pool-multiple-slices",
            slices=[say.slice(d1, d2, of=2), say.slice(d3, d4, of=2)],
            claims=five,
        ),
        say.scenario(
            215,
            "check-combinations-within-single-request-multiple-pools-multiple-slices",
            slices=[say.slice(d1, of=2), say.slice(d2, of=2), say.slice(d3, d4, pool="p2")],
            claims=five,
        ),
        say.scenario(
            216,
            "check-combinations-within-single-request-many-pools",
            slices=[say.slice(each, pool=f"p{index}") for index, each in enumerate((d1, d2, d3, d4), 1)],
            claims=five,
        ),
        # The only device of kind X comes first and is taken too early.
        say.scenario(
            217,
            "check-combinations-with-backtracking",
            slices=[say.slice(*kinds)],
            claims=two_and_an_x,
            gives=[[say.result("r1", "d2"), say.result("r1", "d3"), say.result("r2", "d1")]],
        ),
        say.scenario(
            218,
            "check-combinations-with-backtracking-across-slices-and-pools",
            slices=[say.slice(kinds[0], of=2), say.slice(kinds[1], of=2), say.slice(last, pool="p2")],
            claims=two_and_an_x,
            gives=[
                [
                    say.result("r1", "d2"),
                    say.result("r1", "d3", "p2", conditions=["ready"]),
                    say.result("r2", "d1"),
                ]
            ],
        ),
        say.scenario(
            219,
            "check-combinations-with-prioritized-list",
            slices=[say.slice(*kinds)],
            claims=[
                [
                    say.first_of(
                        "r1",
                        say.subrequest("s0", say.attribute("kind", "Y"), count=3),
                        say.subrequest("s1", count=2),
                    ),
                    say.first_of(
                        "r2",
                        say.subrequest("s0", count=2),
                        say.subrequest("s1", say.attribute("kind", "X")),
                    ),
                ]
            ],
            gives=[[say.result("r1/s1", "d2"), say.result("r1/s1", "d3"), say.result("r2/s1", "d1")]],
        ),
    ]
