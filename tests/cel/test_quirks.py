"""Upstream's quirks (spec/cel.md 3, numbered), which selectors in the field rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drakit import cel
from drakit.cel.device import make_view

if TYPE_CHECKING:
    from collections.abc import Callable

A = 'device.attributes["gpu.example.com"]'
C = 'device.capacity["gpu.example.com"]'
NO_OVERLOAD = "no such overload"
PANIC = "internal error: runtime error: hash of unhashable type cel.Semver"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # 1: an unknown domain is an empty map for lookups only
        ("has(device.attributes.nodomain)", True),
        ('device.attributes[?"nodomain"].hasValue()', True),
        ('"nodomain" in device.attributes', False),
        ('device.attributes["nodomain"].size() == 0', True),
        ("device.attributes.size() == 2", True),
        ("device.attributes.exists(d, d == 'nodomain')", False),
        (f"{A}.nope == 1", "no such key: nope"),
        # 2: equality is asymmetric
        (f'{A}.version == "1.0.0"', NO_OVERLOAD),
        (f'"1.0.0" == {A}.version', False),
        (f'{A}.version != "1.0.0"', True),
        (f"dyn({C}.memory) == 1", NO_OVERLOAD),
        (f'{A}.version.includes("1.0.0")', False),
        (f"{A}.version in [{A}.model]", False),
        # 3: results of add and sub cannot stand on the right
        (f'{C}.memory == quantity("160Gi").sub({C}.memory)', NO_OVERLOAD),
        (f'quantity("160Gi").sub({C}.memory) == {C}.memory', True),
        (f'quantity("160Gi").sub({C}.memory).compareTo({C}.memory) == 0', True),
        # 4: a version in a list of constants is a panic that nothing absorbs
        (f'{A}.version in ["1.0.0"]', PANIC),
        (f"true && ({A}.version in [1, 2] || true)", PANIC),
        (f"[1].exists(x, {A}.version in [1] || true)", PANIC),
        # 5: bind is lazy
        (f'cel.bind(w, {A}.nope, true || w == "1")', True),
        (f"cel.bind(w, {A}.nope, w == 1 || w == 2)", "no such key: nope"),
        # 6: constant conversions are computed when the program is planned
        ('int("x") == 1', "compile: program instantiation failed: type conversion error from 'string' to 'int'"),
        ("int(1e19) == 1", "compile: program instantiation failed: integer overflow"),
        (
            'string(b"\\xff") == ""',
            "compile: program instantiation failed: invalid UTF-8 in bytes, cannot convert to string",
        ),
        (
            'matches("a", "*")',
            "compile: program instantiation failed: error parsing regexp: missing argument to repetition operator: `*`",
        ),
        ('"a".matches("[")', "compile: ERROR: <input>:1:13: invalid matches argument"),
        ('quantity("bad") == quantity("1")', "quantities must match the regular expression"),
        ('semver("bad") == semver("1.0.0")', "No Major.Minor.Patch elements found"),
        # 7: literals of mixed declared types
        (
            f'{{"a": {A}.index, "b": 2}}.size() == 2',
            "compile: ERROR: <input>:1:56: expected type 'dyn' but found 'int'",
        ),
        (f"[?{A}.?ok, true].all(x, x)", "compile: ERROR: <input>:1:45: expected type 'dyn' but found 'bool'"),
        ("'%s %d'.format(['a', 1]) == 'a 1'", True),
        # 8: whole numbers by representation
        ('quantity("1.5Gi").isInteger()', False),
        ('quantity("1.0").isInteger()', False),
        ('quantity("1Gi").isInteger()', True),
        ('isQuantity("200K")', False),
        ('isQuantity("1.G")', True),
        ('semver("1.0.0+a") == semver("1.0.0+b")', True),
        ('semver("v1.2", true).compareTo(semver("1.2.0")) == 0', True),
        # 9: absorption, and the first error from the left
        (f"{A}.nope || true", True),
        (f"true || {A}.nope", True),
        (f"{A}.nope && false", False),
        (f"{A}.nope && true", "no such key: nope"),
        (f"{A}.nope == 1 || {A}.nada == 1", "no such key: nope"),
        ("[1, 0].exists(x, 1 / x == 1)", True),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[0, 1].exists_one(x, 1 / x == 1)", "division by zero"),
        ("[0, 1].map(x, 1 / x).size() == 2", "division by zero"),
        (f"{A}.index.exists(x, true)", "got 'types.Int', expected iterable type"),
        (f"{A}.version.all(i, v, true)", "unsupported comprehension range type: cel.Semver"),
        # 13, 14, 15
        ('sign(quantity("-1Gi")) == -1', True),
        (f"{C}.memory.sign() == 1", "compile: ERROR: <input>:1:47: found no matching overload for 'sign' applied to"),
        ("1 == 1.0", "compile: ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, double)'"),
        ("dyn(1) == 1.0", True),
        ("1 < 1.5 && 2u > 1", True),
        ("true || 1", "compile: ERROR: <input>:1:9: expected type 'bool' but found 'int'"),
        ('isQuantity("+") && isQuantity("1E") && !isQuantity("1e")', True),
        (f"{A}.index.x == 1", "no such key: x"),
        (f"has({A}.index.x)", False),
        (f"{A}.index.?x.hasValue()", False),
        ('"a".matches("a{1001}")', "compile: ERROR: <input>:1:13: invalid matches argument"),
        # the result
        (f"{A}.index", "CEL result of type int could not be converted to bool: unsupported type conversion from 'int'"),
        (f"{A}.ok", True),
        ("1 + 1", "compile: must evaluate to bool or the unknown type, not int"),
    ],
)
def test_quirk(evaluate: Callable[[str], Any], expression: str, expected: Any) -> None:
    got = evaluate(expression)
    if isinstance(expected, str):
        assert isinstance(got, str)
        assert got.startswith(expected)
    else:
        assert got is expected


def test_an_invalid_version_fails_every_expression_on_the_device(environment: cel.Environment) -> None:
    """Quirk 10."""
    view = make_view("d", {"attributes": {"v": {"version": "1.x"}, "w": {"int": 1}}})
    for expression in ("true", 'device.attributes["d"].w == 1'):
        with pytest.raises(cel.EvaluationError, match=r"^attribute v: parse semantic version: No Major.Minor.Patch"):
            environment.compile(expression).evaluate(view)


def test_1500_terms_compile(evaluate: Callable[[str], Any]) -> None:
    """Quirk 12: chains are balanced trees."""
    assert evaluate(" && ".join(["true"] * 1500)) is True
    assert evaluate(" || ".join([f"{A}.index == 1"] * 150)) is False


def test_the_hint_for_missing_keys(environment: cel.Environment, gpu: cel.DeviceView) -> None:
    with pytest.raises(cel.EvaluationError) as caught:
        environment.compile(f"{A}.nope").evaluate(gpu)
    assert caught.value.message == "no such key: nope"
    assert caught.value.enhanced().endswith("guarding the check with has() for optional fields")
    assert cel.EvaluationError("other").enhanced() == "other"
