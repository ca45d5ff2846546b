"""The three evaluators agree, printing and parsing are inverse, and no text makes the front end crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit import cel
from drakit.cel import macros
from drakit.cel.errors import EvaluationError
from drakit.cel.libraries import dialect
from drakit.cel.parser import parse
from drakit.cel.syntax import walk
from drakit.cel.unparse import unparse

if TYPE_CHECKING:
    from collections.abc import Callable

MACROS = dialect(37, frozenset(), stored=True, device=True).macros
QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=400)


def outcome(call: Callable[[], Any]) -> tuple[str, Any]:
    try:
        value = call()
    except EvaluationError as error:
        return "error", error.message
    return "value", repr(value)


def refusal(call: Callable[[], Any]) -> cel.CompileError | None:
    try:
        call()
    except cel.CompileError as error:
        return error
    return None


def shape(text: str) -> list[str]:
    return [
        f"{type(node).__name__}:{getattr(node, 'value', getattr(node, 'function', ''))!r}"
        for node in walk(parse(text, MACROS))
    ]


class TestEvaluatorsAgree:
    def test_generated_exact_and_metered(
        self, environment: cel.Environment, gpu: cel.DeviceView, random_expressions: st.SearchStrategy[str]
    ) -> None:
        compiled = 0

        @QUICK
        @given(random_expressions)
        def agree(expression: str) -> None:
            nonlocal compiled
            if refusal(lambda: environment.compile(expression, "any")) is not None:
                return
            program = environment.compile(expression, "any")
            compiled += 1
            exact = outcome(lambda: program.exact([gpu.as_map()]))
            metered = outcome(lambda: program.measure([gpu.as_map()], 10**9)[0])
            assert exact == metered
            if program.generated:
                assert program._run is not None
                try:
                    value = program._run(gpu)
                except Exception:  # noqa: BLE001 - generated code may raise anything, the closures decide then
                    return
                assert ("value", repr(value)) == exact

        agree()
        assert compiled > 20


class TestParser:
    @QUICK
    @given(st.text(max_size=60))
    def test_any_text_parses_or_is_refused_with_a_position(self, text: str) -> None:
        error = refusal(lambda: parse(text, macros.STANDARD))
        if error is not None:
            assert error.message.startswith("compilation failed: ERROR: <input>:")
            assert error.position is not None or ":-1:0:" in error.message

    @QUICK
    @given(
        st.lists(
            st.sampled_from(
                [
                    *list("()[]{}.,?:!-+*/%<>=&|\"'`\\ \n"),
                    "a",
                    "1",
                    "in",
                    "has(",
                    "map(",
                    "true",
                    "0x",
                    "1u",
                    "1.5",
                    "b'",
                ]
            ),
            max_size=25,
        )
    )
    def test_token_soup(self, parts: list[str]) -> None:
        error = refusal(lambda: parse("".join(parts), MACROS))
        assert error is None or error.issues

    def test_printing_is_the_inverse_of_parsing(self, random_expressions: st.SearchStrategy[str]) -> None:
        @QUICK
        @given(random_expressions)
        def round_trip(expression: str) -> None:
            if refusal(lambda: parse(expression, MACROS)) is not None:
                return
            tree = parse(expression, MACROS)
            printed = unparse(tree)
            assert shape(printed) == shape(expression)
            assert unparse(parse(printed, MACROS)) == printed

        round_trip()


@pytest.mark.parametrize(
    "text",
    [
        'device.attributes["a"].b == "c" && has(device.attributes["a"].d)',
        "a || b && c || (d || e) && f",
        "a - (b - c) - d * (e + f) % -g",
        "(a ? b : c) ? d : e ? f : g",
        "-(-1) + - -1 - -a.b",
        "!(!a) || !a.b[0]",
        '[1, ?a.?b, 2u, 1.0, 1e+40, b"\\x00\\xff"]',
        '{"a": 1, ?"b": c[?0]}',
        "a.map(x, x > 1, x * 2).exists(y, y == 1)",
        "cel.bind(x, a, x.transformMap(k, v, v))",
        'r"\\d" + "\\u00e9\\n\\"" + \'it\\\'s\'',
        "google.protobuf.Int64Value{value: 1} == 1",
        "f(a, b).g(c)[d]",
        "-1.size() == (-1).size()",
        ".a.b == .c(.d)",
    ],
)
def test_known_texts_round_trip(text: str) -> None:
    printed = unparse(parse(text, MACROS))
    assert shape(printed) == shape(text)
    assert unparse(parse(printed, MACROS)) == printed
