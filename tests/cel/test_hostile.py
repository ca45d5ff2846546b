"""Input made to hang, to exhaust memory, or to slip through: errors, soon."""

from __future__ import annotations

from typing import Any

import pytest

from drakit import cel

LIMIT = "operation cancelled: actual cost limit exceeded"


def outcome(expression: str, gpu: cel.DeviceView) -> Any:
    try:
        return cel.Environment().compile(expression).evaluate(gpu)
    except (cel.CompileError, cel.EvaluationError) as error:
        return error.message


def nested(depth: int) -> str:
    text = "x0 > 0"
    for level in range(depth):
        text = f"[1,2,3,4,5,6,7,8,9,10].all(x{level}, {text})"
    return text


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (nested(7), LIMIT),
        (f"{nested(7)} || true", LIMIT),
        ("lists.range(1000000000).size() == 1", LIMIT),
        ("lists.range(999999).map(x, x).size() == 1", LIMIT),
        ("'a'.replace('', 'bbbbbbbbbb')" + ".replace('b', 'bbbbbbbbbbbbbbbbbbbb')" * 7 + " == ''", None),
        ("cel.bind(a, ['x'], " + "".join(f"cel.bind(a{i}, {f'a{i - 1}' if i else 'a'} + {f'a{i - 1}' if i else 'a'}, " for i in range(30)) + "a29.size() > 0" + ")" * 31, "list is too long to be concatenated"),
        ("quantity('1e99999999').add(quantity('1')).isInteger()", "quantities are too far apart to be added"),
        ("quantity('1e99999999').isGreaterThan(quantity('1e99999998')) && quantity('1e-99999999').isLessThan(quantity('1'))", True),
        ("'" + "(" * 900 + "'.matches('^(((((.*)*)*)*)*)*x$')", False),
        ("'%.9999999999f'.format([1.0]).size() > 0", True),
        ("int('" + "9" * 5000 + "') == 1", "program instantiation failed: type conversion error from 'string' to 'int'"),
        ("9" * 5000 + " == 1", "compilation failed: ERROR: <input>:1:1: invalid int literal"),
        ("timestamp('9999-12-31T23:59:59Z').getFullYear('+23:59') == 10000", True),
        ("duration('999999999999h') == duration('1h')", "compilation failed: ERROR: <input>:1:10: invalid duration argument"),
        ("ip('" + ":" * 1000 + "').family() == 4", None),
        ("url('" + "%" * 1000 + "').getHost() == ''", None),
        ("semver('" + "1" * 1000 + ".0.0').major() == 1", None),
        ("'\ud800' == ''", False),
        ("'\x00' == device.driver", False),
        ("device.attributes['\x00'].x == 1", "no such key: x"),
    ],
    ids=str,
)  # fmt: skip
def test_answers_soon(gpu: cel.DeviceView, expression: str, message: Any) -> None:
    got = outcome(expression, gpu)
    if message is None:
        assert isinstance(got, str)
    elif isinstance(message, str):
        assert isinstance(got, str)
        assert got.startswith(message)
    else:
        assert got is message


def test_policies_with_deep_and_large_objects() -> None:
    environment = cel.Environment(variables=("object",))
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(cel.EvaluationError, match="nests too deeply"):
        environment.compile("object == object").evaluate({"object": deep})
    large = {"n": 2**70, "items": list(range(100_000))}
    assert environment.compile("object.n > 1e20 && object.items.size() == 100000").evaluate({"object": large}) is True


def test_runaway_policies_are_stopped() -> None:
    environment = cel.Environment(variables=("object",))
    program = environment.compile("object.exists(a, object.exists(b, object.exists(c, a + b + c < 0)))")
    with pytest.raises(cel.EvaluationError, match=LIMIT):
        program.evaluate({"object": list(range(300))})
