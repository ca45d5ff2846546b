"""Every recorded answer of the real evaluator: outcome, static cost, first line of the error text, run-time cost."""

from __future__ import annotations

import subprocess
import sys
import zlib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drakit import cel
from drakit.cel.device import make_view
from drakit.cel.exact import Builder
from drakit.cel.syntax import Call, walk

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

    from drakit.cel.syntax import Node

PARTS = {"cel-core": 6, "cel-libraries": 2}  # so that workers can share them
COST_EVERY = 3
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


def answer(case: dict[str, Any], environment: cel.Environment) -> tuple[dict[str, Any], list[str]]:
    """The answers for a case, and what is wrong about the way to them."""
    got: dict[str, Any] = dict.fromkeys(("compileError", "outputType", "matches", "evalError", "costEstimate"))
    try:
        program = environment.compile(case["expression"])
    except cel.CompileError as error:
        return got | {"compileError": first_line(error.message)}, []
    got |= {"outputType": program.output_type, "costEstimate": program.cost}
    view = make_view(case["device"]["driver"], case["device"])
    before = program.fallbacks
    try:
        got["matches"] = program.evaluate(view)
    except cel.EvaluationError as error:
        return got | {"evalError": first_line(error.message)}, []
    wrong = []
    if program.fallbacks != before and not fails_somewhere(program, view):
        wrong.append("fallback")
    if not program.generated and program.cost <= 500_000:
        wrong.append("not generated")
    if case["id"] not in MAP_ORDER and int(case["id"].lstrip("kflc")) % COST_EVERY == 0:
        measured = program.measure([view.as_map()])
        if measured != (got["matches"], case["expected"]["actualCost"]):
            wrong.append(f"cost {measured}")
    return got, wrong


@pytest.mark.parametrize(("name", "part"), [(name, part) for name, parts in PARTS.items() for part in range(parts)])
def test_every_answer(
    name: str,
    part: int,
    cases: Callable[[str], list[dict[str, Any]]],
    environment_of: Callable[[dict[str, Any]], cel.Environment],
) -> None:
    """Outcome, type, static cost and text; run-time cost; no fallback unless something fails inside."""
    wrong = []
    for case in cases(name):
        if zlib.crc32(case["expression"].encode()) % PARTS[name] != part:
            continue
        expected = case["expected"]
        got, faults = answer(case, environment_of(case))
        want = {key: first_line(expected[key]) if key.endswith("Error") else expected[key] for key in got}
        if got["compileError"] is not None:
            want["costEstimate"] = None
        if got != want or faults:
            wrong.append((case["id"], case["expression"], want, got, faults))
    assert wrong == []


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


@pytest.mark.parametrize(("name", "count"), [("cel-core", 6000), ("cel-libraries", 2000)])
def test_recordings_are_there(name: str, count: int, cases: Callable[[str], list[dict[str, Any]]]) -> None:
    assert len(cases(name)) == count
