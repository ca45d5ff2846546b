"""Generated code is made of a white-list, holds no user text, and gives way to the closures."""

from __future__ import annotations

import ast
import threading
from typing import Any

import pytest

from drakit import cel
from drakit.cel.folding import fold
from drakit.cel.generate import _Generator
from drakit.cel.libraries import dialect
from drakit.cel.whitelist import assert_allowed

DIALECT = dialect(37, frozenset({"DRAListTypeAttributes"}), stored=True, device=True)
X = (
    'device.attributes["gpu.example.com"].model == "LATEST" && '
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'
)


def source(environment: cel.Environment, expression: str) -> tuple[str, dict[str, Any]]:
    root = environment.checked(expression)
    generator = _Generator(DIALECT.functions, fold(root, DIALECT.functions), ("device",), device=True)
    tree = generator.program(root)
    assert_allowed(tree)
    return ast.unparse(tree), generator.names


def test_the_selector_of_the_benchmark(environment: cel.Environment) -> None:
    text, names = source(environment, X)
    assert text == "lambda d: d.attributes[K2][K1] == K3 and d.capacity[K5][K4].nano >= K6.nano"
    assert names["__builtins__"] == {}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('has(device.attributes["d"].x)', "lambda d: K2 in d.attributes[K1]"),
        ('device.attributes["d"].?x.orValue(1) == 1', None),
        ('device.attributes[?"d"].hasValue()', None),
        ("!device.allowMultipleAllocations", "lambda d: not d.multi"),
        (
            'device.driver.startsWith("a") || device.driver in ["b", "c"]',
            "lambda d: K2(d.driver, K1) or d.driver in K3",
        ),
        (
            'cel.bind(a, device.attributes["d"], has(a.x) && has(a.y))',
            "lambda d: K2 in d.attributes[K1] and K3 in d.attributes[K1]",
        ),
    ],
)
def test_forms(environment: cel.Environment, expression: str, expected: str | None) -> None:
    text, _ = source(environment, expression)
    assert expected is None or text == expected


@pytest.mark.parametrize(
    "hostile",
    [
        "\"__import__('os').system('x')\" == device.driver",
        'device.attributes["__class__"].__globals__ == "__builtins__"',
        "cel.bind(__builtins__, 1, __builtins__ == 1)",
        '["\\"); raise SystemExit #"].exists(K1, K1 == device.driver)',
        'device.attributes["d"].lambda == 1 || device.attributes["d"].d == 1',
    ],
)
def test_user_text_occurs_only_as_constants(environment: cel.Environment, hostile: str) -> None:
    text, _ = source(environment, hostile)
    for word in ("import", "system", "globals", "builtins", "raise"):
        assert word not in text


@pytest.mark.parametrize(
    "code",
    [
        "x",
        "d.__globals__",
        "(yield)",
        "{1: 2}",
        "f'{d}'",
        "d[0:1]",
        "'text'",
        "d + d",
        "K1.__class__.__mro__",
        "d if d else 1.5",
    ],
)
def test_what_is_not_on_the_list_is_refused(code: str) -> None:
    with pytest.raises(ValueError, match="generated code"):
        assert_allowed(ast.parse(code, mode="eval"))


def test_deep_expressions_are_left_to_the_closures(environment: cel.Environment, gpu: cel.DeviceView) -> None:
    program = environment.compile("(" * 20 + "+".join(["1"] * 200) + ")" * 20 + " == 200")
    assert not program.generated
    assert program.evaluate(gpu) is True
    nested = environment.compile("[" * 200 + "1" + "]" * 200 + ".size() == 1")
    assert nested.evaluate(gpu) is True


def test_fallbacks_are_counted(environment: cel.Environment, gpu: cel.DeviceView) -> None:
    program = environment.compile('device.attributes["gpu.example.com"].nope == 1 || true')
    assert program.evaluate(gpu) is True
    assert program.evaluate(gpu) is True
    assert program.fallbacks == 2


def test_programs_are_kept(environment: cel.Environment) -> None:
    assert environment.compile(X) is environment.compile(X)
    small = cel.Environment()
    first = small.compile("true")
    for index in range(1024):
        small.compile(f"{index} == 0")
    assert small.compile("true") is not first


def test_threads_share_environment_and_programs(gpu: cel.DeviceView) -> None:
    environment = cel.Environment()
    expressions = [f'{X} && device.attributes["gpu.example.com"].index == {index % 7}' for index in range(60)]
    wrong: list[str] = []

    def work() -> None:
        for expression in expressions:
            got = environment.compile(expression).evaluate(gpu)
            if got is not expression.endswith("== 3"):
                wrong.append(expression)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
