"""The table as a whole."""

from __future__ import annotations

from typing import Any


def test_every_scenario_is_there_once(table: list[Any]) -> None:
    assert sorted(row.number for row in table) == list(range(1, 220))


def test_names_are_unique(table: list[Any]) -> None:
    assert len({row.name for row in table}) == 219
