"""What `Environment.check` says about expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drakit.cel.guards import mentioned

if TYPE_CHECKING:
    from drakit import cel

A = 'device.attributes["d"]'


def codes(environment: cel.Environment, expression: str) -> list[str]:
    found = environment.check(expression)
    assert found.error is None
    return [each.code for each in found.warnings]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"{A}.x == 1", ["unguarded-attribute"]),
        (f'{A}["x"] == 1', ["unguarded-attribute"]),
        (f"has({A}.x) && {A}.x == 1", []),
        (f"{A}.x == 1 && has({A}.x)", []),
        (f'"x" in {A} && {A}["x"] == 1', []),
        (f"has({A}.y) && {A}.x == 1", ["unguarded-attribute"]),
        (f"!has({A}.x) || {A}.x == 1", []),
        (f"has({A}.x) ? {A}.x == 1 : true", []),
        (f"has({A}.x) ? true : {A}.x == 1", ["unguarded-attribute"]),
        (f"!has({A}.x) ? true : {A}.x == 1", []),
        (f"has({A}.x) || {A}.x == 1", ["unguarded-attribute"]),
        (f"{A}.?x.orValue(1) == 1", []),
        ('device.capacity["d"].m.isGreaterThan(quantity("1"))', ["unguarded-attribute"]),
        (f'["a"].exists(x, {A}.x == x)', ["unguarded-attribute"]),
        (f"!(!has({A}.x) || {A}.x != 1)", []),
        (f"!has({A}.x) && {A}.x == 1", ["unguarded-attribute"]),
        (f"has({A}.x) && {A}.x == 1 ? {A}.x == 2 : false", []),
        (f'"d" in device.attributes && {A}.x == 1', ["unguarded-attribute"]),
        (f'device.driver == "d" && {A}.x == 1', ["unguarded-attribute"]),
        (f"{A}.x.?y.hasValue()", ["unguarded-attribute"]),
        (f"has({A}.x.y)", ["unguarded-attribute"]),
        ("has(device.attributes[device.driver].x) && device.attributes[device.driver].x == 1", []),
        (f"has({A}.x) && device.attributes[device.driver].x == 1", ["unguarded-attribute"]),
        ("has(device.attributes.d)", ["always-present"]),
        ('device.attributes[?"d"].hasValue()', ["always-present"]),
        (f'has({A}.v) && {A}.v == "1.2.3"', ["version-as-text"]),
        (f'has({A}.v) && "v1.2.3" == {A}.v', ["version-as-text"]),
        (f'has({A}.v) && {A}.v in ["1.2.3"]', ["version-in-list"]),
        ('quantity("1") == quantity("2").sub(1)', ["asymmetric-equality"]),
        (f'has({A}.v) && semver("1.0.0") == {A}.v', ["asymmetric-equality"]),
        ('device.attributes["d/x"].size() == 0', ["qualified-identifier"]),
        (" || ".join(["device.driver == 'a'"] * 700), ["length"]),
        ("lists.range(2000000).size() == 1", ["cost"]),
    ],
)
def test_warnings(environment: cel.Environment, expression: str, expected: list[str]) -> None:
    assert codes(environment, expression) == expected


def test_type_cost_and_position(environment: cel.Environment) -> None:
    found = environment.check(f"device.driver == 'd' &&\n  {A}.x == 1")
    assert (found.type, found.cost, found.error) == ("bool", 8, None)
    assert [(each.code, each.position) for each in found.warnings] == [("unguarded-attribute", (2, 25))]
    assert "attributes[d][x]" in found.warnings[0].message


def test_errors_are_answers(environment: cel.Environment) -> None:
    found = environment.check("device.nope")
    assert found.error is not None
    assert (found.error.position, found.type, found.cost, found.warnings) == ((1, 7), None, None, ())


def test_every_attribute_that_is_named_counts_as_mentioned(environment: cel.Environment) -> None:
    expression = f'has({A}.a) && {A}.b == 1 || {A}.?c.orValue(1) == 1 || device.capacity["d"][device.driver] == 1'
    found = [each[:3] for each in mentioned(environment.parse(expression))]
    assert found == [
        ("attributes", "d", "a"),
        ("attributes", "d", "b"),
        ("attributes", "d", "c"),
        ("capacity", "d", "(device.driver)"),
    ]
