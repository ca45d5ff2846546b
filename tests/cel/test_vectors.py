"""Every recorded answer of the real evaluator: outcome, static cost, first line of the error text, run-time cost."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drakit import cel
from drakit.cel.device import make_view
from drakit.cel.exact import Builder
from drakit.cel.syntax import Call, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from drakit.cel.syntax import Node

VECTORS = pathlib.Path(__file__).parent.parent / "vectors"
# The recorded cost depends on the order in which Go walks a map.
MAP_ORDER = {"lc393", "lc410", "lc768", "lc1148", "lc1210", "lc1391"}


def first_line(text: str | None) -> str | None:
    return None if text is None else text.split("\n")[0]


class Watching(Builder):
    """Notes whether any sub-expression failed, absorbed or not."""

    failed = False
    terms: frozenset[Node] = frozenset()

    def observed(self, node: Node, closure: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        def run(slots: list[Any]) -> Any:
            try:
                value = closure(slots)
            except cel.EvaluationError:
                self.failed = True
                raise
            self.failed = self.failed or (node in self.terms and value.__class__ is not bool)
            return value

        return run


def fails_somewhere(program: cel.Program, view: cel.DeviceView) -> bool:
    builder = Watching(program._functions, program._constants, program._variables)
    builder.terms = frozenset(
        term
        for node in walk(program._root)
        if isinstance(node, Call) and node.function in ("_&&_", "_||_")
        for term in node.arguments
    )
    closure = builder.build(program._root)
    closure([view.as_map(), *[None] * builder.slots])
    return builder.failed


def test_every_answer(cases: list[dict[str, Any]], environment_of: Callable[[dict[str, Any]], cel.Environment]) -> None:
    wrong = []
    for case in cases:
        expected = case["expected"]
        got: dict[str, Any] = dict.fromkeys(("compileError", "outputType", "matches", "evalError", "costEstimate"))
        try:
            program = environment_of(case).compile(case["expression"])
            got["outputType"], got["costEstimate"] = program.output_type, program.cost
            got["matches"] = program.evaluate(make_view(case["device"]["driver"], case["device"]))
        except cel.CompileError as error:
            got["compileError"] = error.message
        except cel.EvaluationError as error:
            got["evalError"] = error.message
        for key, value in got.items():
            want = expected[key]
            if key == "costEstimate" and expected["compileError"] is not None:
                continue
            if key.endswith("Error"):
                value, want = first_line(value), first_line(want)
            if value != want:
                wrong.append((case["id"], case["expression"], key, want, value))
    assert wrong == []


def test_no_fallback_without_errors_and_the_cost_that_was_measured(
    cases: list[dict[str, Any]], environment_of: Callable[[dict[str, Any]], cel.Environment]
) -> None:
    fallbacks, costs = [], []
    for case in cases:
        expected = case["expected"]
        if expected["matches"] is None:
            continue
        view = make_view(case["device"]["driver"], case["device"])
        program = environment_of(case).compile(case["expression"])
        if case["id"] not in MAP_ORDER and program.measure([view.as_map()]) != (
            expected["matches"],
            expected["actualCost"],
        ):
            costs.append((case["id"], case["expression"]))
        before = program.fallbacks
        program.evaluate(view)
        if program.fallbacks != before and not fails_somewhere(program, view):
            fallbacks.append((case["id"], case["expression"]))
        if not program.generated and program.cost <= 500_000:
            fallbacks.append((case["id"], case["expression"]))
    assert fallbacks == []
    assert costs == []


def test_replay_as_a_module(tmp_path: pathlib.Path) -> None:
    case = {
        "id": "one",
        "expression": 'device.driver == "d"',
        "device": {"driver": "d"},
        "features": {},
        "envType": "stored",
    }
    broken = case | {"id": "two", "expression": "nope"}
    failing = case | {"id": "three", "expression": 'device.attributes["d"].x == 1'}
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\n".join(msgspec.json.encode(each) for each in (case, broken, failing)) + b"\n")
    result = subprocess.run([sys.executable, "-m", "drakit.cel", str(path)], capture_output=True, check=True)
    answers = [msgspec.json.decode(line) for line in result.stdout.splitlines()]
    assert answers[0] == {
        "id": "one",
        "compileError": None,
        "outputType": "bool",
        "matches": True,
        "evalError": None,
        "costEstimate": 3,
    }
    assert answers[1]["compileError"].startswith(
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope'"
    )
    assert answers[2]["evalError"] == "no such key: x"
    usage = subprocess.run([sys.executable, "-m", "drakit.cel"], capture_output=True, check=False)
    assert usage.returncode == 2


@pytest.mark.parametrize("name", ["cel-core", "cel-libraries"])
def test_recordings_are_there(name: str) -> None:
    assert (VECTORS / f"{name}.jsonl.gz").stat().st_size > 50_000
