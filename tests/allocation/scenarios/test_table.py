"""The table as a whole: it is complete, and what comes out of each scenario can be explained."""

from __future__ import annotations

from typing import Any

from drakit.allocation import AllocatedState, Allocator


def test_every_scenario_is_there_once(table: list[Any]) -> None:
    assert sorted(row.number for row in table) == list(range(1, 220))


def test_names_are_unique(table: list[Any]) -> None:
    assert len({row.name for row in table}) == 219


def _explain(row: Any) -> Any:
    allocator = Allocator(row.slices, row.classes, AllocatedState.of(row.holders), row.features)
    return allocator.explain(row.node, row.claims)


def test_every_scenario_is_explained_as_it_comes_out(table: list[Any]) -> None:
    wrong = []
    for row in table:
        report = _explain(row)
        expected = "fits" if row.gives is not None else "error" if row.fails else "does not fit"
        if report.outcome != expected or row.fails not in str(report) or row.fails_here not in str(report):
            wrong.append((row.number, str(report)))
    assert not wrong


def test_explanations_tell_the_cause(table: list[Any]) -> None:
    """A scenario per kind of reason, as a person reads it."""
    by_number = {row.number: row for row in table}

    def told(number: int) -> str:
        return str(_explain(by_number[number]))

    assert "2 devices: 1 would do, but all of them are asked for; 1 in use by holder-of-d1" in told(28)
    assert "the node sees no devices; 1 slice for other nodes" in told(38)
    assert "1 without attribute driver-a/missing of constraint 0" in told(46)
    assert "1 with driver-a/x 2 unlike d1 (1)" in told(47)
    assert "drop constraint 0 (an empty constraint) of c0" in told(60)
    assert "1 unusable without DRAPartitionableDevices (consumesCounters)" in told(92)
    assert "2 devices: 1 tainted taint-key=one; 1 tainted taint-key=two" in told(98)
    assert "1 unusable without DRADeviceBindingConditions (bindingConditions)" in told(123)
    assert "1 without capacity units" in told(133)
    assert "1 with a policy that does not allow 6 of units" in told(147)
    assert "1 short of units: 0 < 2, used by holder-of-d1" in told(152)
    assert "1 short of counter set-1/units: 0 < 1, used by holder-of-d1" in told(165)
    assert "1 with an incomparable attribute driver-a/x of constraint 0" in told(184)
    assert "1 with driver-a/x a also in d1 (a)" in told(186)
    assert "pool driver-a/p1 (1 device): generation 1 is obsolete, other nodes have 2" in told(197)
    assert "2 in an invalid pool (duplicate device name d1)" in told(211)
    assert "1 in an incomplete pool (1 of 2 slices seen)" in told(212)
