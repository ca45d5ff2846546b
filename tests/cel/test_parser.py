"""Syntax: limits as upstream, error texts with positions, literals, precedence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drakit import cel
from drakit.cel.libraries import dialect
from drakit.cel.parser import parse
from drakit.cel.syntax import Literal
from drakit.cel.unparse import unparse
from drakit.cel.values import Uint

if TYPE_CHECKING:
    from collections.abc import Callable

MACROS = dialect(37, frozenset(), stored=True, device=True).macros
STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
TOO_DEEP = "expression recursion limit exceeded: 250"
TOO_LONG = "max recursion depth exceeded"


def complaint(text: str) -> tuple[str, Any]:
    with pytest.raises(cel.CompileError) as caught:
        parse(text, MACROS)
    first = caught.value.message.split("\n")[0]
    return first.removeprefix("compilation failed: ERROR: <input>:"), caught.value.position


class TestLimits:
    """Quirk 12."""

    @pytest.mark.parametrize(
        ("fits", "too_much", "message"),
        [
            ("(" * 249 + "1" + ")" * 249, "(" * 250 + "1" + ")" * 250, TOO_DEEP),
            ("[" * 249 + "]" * 249, "[" * 251 + "]" * 251, TOO_DEEP),
            ("+".join(["1"] * 251), "+".join(["1"] * 261), TOO_LONG),
            ("a" + ".a" * 250, "a" + ".a" * 260, TOO_LONG),
            ("a" + "[0]" * 249, "a" + "[0]" * 260, TOO_LONG),
            ("a?b:" * 249 + "c", "a?b:" * 260 + "c", TOO_DEEP),
            ("1+(" * 124 + "1" + ")" * 124, "1+(" * 130 + "1" + ")" * 130, TOO_DEEP),
            ("!" * 300 + "a", "f(" * 260 + ")" * 260, TOO_DEEP),
        ],
    )
    def test_nesting(self, fits: str, too_much: str, message: str) -> None:
        parse(fits, MACROS)
        assert complaint(too_much) == (f"-1:0: {message}", None)

    def test_chains_of_logic_are_not_limited(self) -> None:
        parse(" || ".join(["a"] * 1500), MACROS)

    def test_length(self) -> None:
        assert (
            complaint("1" * 100_001)[0] == "-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
        )


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("", f"1:1: Syntax error: mismatched input '<EOF>' expecting {STARTS}", (1, 1)),
        ("1 +", f"1:4: Syntax error: mismatched input '<EOF>' expecting {STARTS}", (1, 4)),
        ("in", f"1:1: Syntax error: mismatched input 'in' expecting {STARTS}", (1, 1)),
        ("true /* x */", f"1:7: Syntax error: extraneous input '*' expecting {STARTS}", (1, 7)),
        ("true x", "1:6: Syntax error: extraneous input 'x' expecting <EOF>", (1, 6)),
        ("0X1F == 31", "1:2: Syntax error: mismatched input 'X1F' expecting <EOF>", (1, 2)),
        ("a | b", "1:3: Syntax error: token recognition error at: '| '", (1, 3)),
        ("'unterminated", "1:1: Syntax error: token recognition error at: ''unterminated'", (1, 1)),
        ('"\\x"', "1:1: Syntax error: token recognition error at: '\"\\x\"'", (1, 1)),
        ("a.true", "1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER", (1, 3)),
        ("(1", "1:3: Syntax error: missing ')' at '<EOF>'", (1, 3)),
        ("[1, 2", "1:6: Syntax error: mismatched input '<EOF>' expecting {']', ','}", (1, 6)),
        ("- *", "1:3: Syntax error: no viable alternative at input '- *'", (1, 3)),
        ("--", "1:3: Syntax error: no viable alternative at input '-'", (1, 3)),
        ("!-x", "1:3: Syntax error: no viable alternative at input '-x'", (1, 3)),
        ("!*", f"1:2: Syntax error: mismatched input '*' expecting {STARTS}", (1, 2)),
        ("{a}", "1:3: Syntax error: mismatched input '}' expecting ':'", (1, 3)),
        ("a ? b", "1:6: Syntax error: mismatched input '<EOF>' expecting ':'", (1, 6)),
        ("as == 1", "1:1: reserved identifier: as", (1, 1)),
        ("a && for(1)", "1:6: reserved identifier: for", (1, 6)),
        ("9223372036854775808", "1:1: invalid int literal", (1, 1)),
        ("18446744073709551616u", "1:1: invalid uint literal", (1, 1)),
        ("1e999", "1:1: invalid double literal", (1, 1)),
        ('"\\ud800"', "1:1: invalid unicode code point", (1, 1)),
        ("\n\n  $", "3:3: Syntax error: token recognition error at: '$'", (3, 3)),
        ("has(a)", "1:5: invalid argument to has() macro", (1, 5)),
        ("a.map(1, 2)", "1:7: argument is not an identifier", (1, 7)),
        ("a.all(x.y, true)", "1:8: argument must be a simple name", (1, 8)),
        ("a.all(x, x, true)", "1:10: duplicate variable name: x", (1, 10)),
        ("a.all(__result__, true)", "1:7: iteration variable overwrites accumulator variable", (1, 7)),
        ("cel.bind(1, 2, 3)", "1:10: cel.bind() variable names must be simple identifiers", (1, 10)),
        ("a.optMap(1, 2)", "1:10: optMap() variable name must be a simple identifier", (1, 10)),
        ("1.sortBy(x, x)", "1:1: sortBy can only be applied to a list, identifier, comprehension, call or select expression", (1, 1)),
        ("a.`b-c`", "1:3: unsupported syntax: '`'", (1, 3)),
    ],
)  # fmt: skip
def test_refused(text: str, message: str, position: tuple[int, int]) -> None:
    assert complaint(text) == (message, position)


def test_the_caret_and_wide_characters() -> None:
    with pytest.raises(cel.CompileError) as caught:
        parse('"é" + \t$', MACROS)
    assert caught.value.message.split("\n")[1:3] == [' | "é" +  $', " | .\uff0e.....^"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-9223372036854775808", -(2**63)),
        ("0x7fffffffffffffff", 2**63 - 1),
        ("0xFFu", Uint(255)),
        ("18446744073709551615u", Uint(2**64 - 1)),
        (".5e1", 5.0),
        ("-1.5", -1.5),
        ('"a\\n\\x41\\u00e9\\U0001F600\\101\\`\\?"', "a\nAé😀A`?"),
        ("r'\\d'", "\\d"),
        ('"""a"\nb"""', 'a"\nb'),
        ("'''a\r\nb'''", "a\nb"),
        ('b"\\xff\\377é"', b"\xff\xff\xc3\xa9"),
        ("b'a'", b"a"),
        ("null", None),
        ("--1", 1),
        ("// comment\n true", True),
    ],
)
def test_literals(text: str, value: Any) -> None:
    node = parse(text, MACROS)
    assert isinstance(node, Literal)
    assert (node.value, type(node.value)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1+2*3-4%5", "1 + 2 * 3 - 4 % 5"),
        ("(1+2)*3", "(1 + 2) * 3"),
        ("a==b==c", "a == b == c"),
        ("a?b:c?d:e", "a ? b : c ? d : e"),
        ("!a.b&&-c[0]>1||d in e", "!a.b && -c[0] > 1 || d in e"),
        ("[1,2,][?0]", "[1, 2][?0]"),
        ("{1:2,}.?a", "{1: 2}.?a"),
        ("!!a", "a"),
        ("!!!a", "!a"),
    ],
)
def test_precedence(text: str, printed: str) -> None:
    assert unparse(parse(text, MACROS)) == printed


def test_positions_are_of_the_operator(environment_of: Callable[[dict[str, Any]], cel.Environment]) -> None:
    environment = environment_of({"features": {}, "envType": "stored"})
    with pytest.raises(cel.CompileError) as caught:
        environment.compile("true &&\n  device.driver == 1 && device.nope")
    error = caught.value
    assert error.position == (2, 17)
    assert [issue.message for issue in error.issues] == [
        "found no matching overload for '_==_' applied to '(string, int)'",
        "undefined field 'nope'",
    ]
