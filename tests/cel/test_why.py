"""Which comparison makes a selector false, and with which values."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit import api, cel
from drakit.api.quantity import Quantity
from drakit.cel.why import Fact, why_false

D = 'device.attributes["gpu.example.com"]'
MEMORY = 'device.capacity["gpu.example.com"].memory'
ENVIRONMENT = cel.Environment()
VIEW = cel.device_view(
    "gpu.example.com",
    api.resource.Device(
        name="gpu-0",
        attributes={
            "model": api.resource.DeviceAttribute(string="a100"),
            "label": api.resource.DeviceAttribute(string="two words"),
            "numa": api.resource.DeviceAttribute(int=1),
            "ecc": api.resource.DeviceAttribute(bool=False),
            "driver": api.resource.DeviceAttribute(version="1.0.0"),
            "links": api.resource.DeviceAttribute(ints=(1, 2)),
        },
        capacity={"memory": api.resource.DeviceCapacity(value=Quantity.parse("40Gi"))},
    ),
)


def why(expression: str) -> list[str]:
    return [str(each) for each in why_false(ENVIRONMENT, expression, VIEW)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'{MEMORY}.compareTo(quantity("80Gi")) >= 0', "memory 40Gi < 80Gi"),
        (f'0 <= {MEMORY}.compareTo(quantity("80Gi"))', "memory 40Gi < 80Gi"),
        (f'{MEMORY}.isGreaterThan(quantity("80Gi"))', "memory 40Gi <= 80Gi"),
        (f'quantity("80Gi").isLessThan({MEMORY})', "memory 40Gi <= 80Gi"),
        (f'{D}.model == "h100"', "model a100 != h100"),
        (f'"h100" == {D}.model', "model a100 != h100"),
        (f'{D}.model != "a100"', "model a100 == a100"),
        (f'{D}.label == "one"', 'label "two words" != one'),
        (f'{D}["model"] in ["h100", "b200"]', "model a100 not in [h100, b200]"),
        (f'!({D}.model in ["a100", "b200"])', "model a100 in [a100, b200]"),
        (f"{D}.numa > 1", "numa 1 <= 1"),
        (f"2 <= {D}.numa", "numa 1 < 2"),
        (f'{D}.driver.isGreaterThan(semver("2.0.0"))', "driver 1.0.0 <= 2.0.0"),
        (f'{D}.?model.orValue("") == "x"', "model a100 != x"),
        (f"{D}.ecc", "ecc is false"),
        (f"has({D}.color)", "color is missing"),
        (f"!has({D}.model)", "model is present"),
        (f'"color" in {D}', "color is missing"),
        ('"nic.example.com" in device.attributes', "nic.example.com is missing"),
        (f"3 in {D}.links", "3 not in links [1, 2]"),
        (f"{D}.numa % 2 == 0", "numa % 2 == 0 is false (numa 1)"),
        (f"size({D}.links) > 2", "size(links) > 2 is false (links [1, 2])"),
        (f"{D}.links.exists(x, x > 2)", "links.exists(x, x > 2) is false (links [1, 2])"),
        (f'{D}.model.startsWith("h")', 'model.startsWith("h") is false (model a100)'),
        ("device.allowMultipleAllocations", "allowMultipleAllocations is false"),
        ('device.driver == "nic.example.com"', "driver gpu.example.com != nic.example.com"),
    ],
)
def test_one_comparison(expression: str, expected: str) -> None:
    assert why(expression) == [expected]


def test_only_the_terms_of_a_conjunction_that_fail_are_told() -> None:
    assert why(f'{D}.numa == 1 && {D}.model == "h100" && {MEMORY}.compareTo(quantity("80Gi")) >= 0') == [
        "model a100 != h100",
        "memory 40Gi < 80Gi",
    ]


def test_all_terms_of_a_disjunction_are_told() -> None:
    assert why(f'{D}.model == "h100" || {D}.numa == 0') == ["model a100 != h100", "numa 1 != 0"]


def test_a_negated_disjunction_tells_the_terms_that_hold() -> None:
    assert why(f'!({D}.model == "a100" || {D}.numa == 0)') == ["model a100 == a100"]


def test_a_choice_tells_the_branch_that_was_taken() -> None:
    assert why(f'{D}.ecc ? true : {D}.model == "h100"') == ["model a100 != h100"]


def test_a_term_that_fails_by_itself_is_left_out() -> None:
    assert why(f'{D}.color == "red" && {D}.numa == 0') == ["numa 1 != 0"]


def test_nothing_is_told_of_what_holds_fails_or_does_not_compile() -> None:
    assert why("true") == []
    assert why(f'{D}.color == "red"') == []
    assert why("device.") == []


def test_a_fact_has_its_parts() -> None:
    (fact,) = why_false(ENVIRONMENT, f'{D}.model == "h100"', VIEW)
    assert fact == Fact(expression=f'{D}.model == "h100"', name="model", actual="a100", relation="!=", wanted="h100")


def test_long_values_are_cut_and_many_facts_too() -> None:
    assert len(why(f'{D}.model == "{"x" * 500}"')[0]) < 400
    assert len(why(" || ".join(f"{D}.numa == {number}" for number in range(2, 30)))) == 8


TERMS = st.sampled_from(
    [f"{D}.numa == 1", f"{D}.numa == 2", f"{D}.ecc", f"has({D}.color)", f'{D}.color == "red"', f'{D}.model in ["a100"]']
)
LOGIC = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda text: f"!({text})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(expression=LOGIC)
def test_there_is_a_fact_exactly_when_a_selector_is_false(expression: str) -> None:
    try:
        answer = ENVIRONMENT.compile(expression).evaluate(VIEW)
    except cel.EvaluationError:
        answer = None
    facts = why_false(ENVIRONMENT, expression, VIEW)
    assert bool(facts) == (answer is False)
    for fact in facts:
        assert isinstance(ENVIRONMENT.compile(fact.expression).evaluate(VIEW), bool)
