"""`python -m drakit.cel CASES.jsonl[.gz]`: answer recorded cases, one JSON object a line (vectors/README.md)."""

from __future__ import annotations

import gzip
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from drakit.cel.device import make_view
from drakit.cel.environment import Environment
from drakit.cel.errors import CompileError, EvaluationError
from drakit.cel.libraries import CONSUMABLE_CAPACITY, LIST_TYPE_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Iterator

_GATES = {"ConsumableCapacity": CONSUMABLE_CAPACITY, "ListTypeAttributes": LIST_TYPE_ATTRIBUTES}
_environments: dict[tuple[frozenset[str], bool], Environment] = {}


def _environment(case: dict[str, Any]) -> Environment:
    features = case.get("features") or {}
    gates = frozenset(gate for name, gate in _GATES.items() if features.get(name, True))
    key = gates, case.get("envType", "stored") == "stored"
    if key not in _environments:
        _environments[key] = Environment(features=gates, stored=key[1])
    return _environments[key]


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """What the recorded evaluator was asked."""
    result: dict[str, Any] = {
        "id": case["id"],
        "compileError": None,
        "outputType": None,
        "matches": None,
        "evalError": None,
        "costEstimate": None,
    }
    try:
        program = _environment(case).compile(case["expression"])
    except CompileError as error:
        return result | {"compileError": error.message}
    result |= {"outputType": program.output_type, "costEstimate": program.cost}
    device = case.get("device") or {}
    try:
        return result | {"matches": program.evaluate(make_view(device.get("driver", ""), device))}
    except EvaluationError as error:
        return result | {"evalError": error.message}


def _lines(path: str) -> Iterator[bytes]:
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:  # noqa: PTH123
        yield from file


def main(arguments: list[str]) -> int:
    """Answer every case of the files."""
    if not arguments:
        print("usage: python -m drakit.cel CASES.jsonl[.gz] ...", file=sys.stderr)
        return 2
    for path in arguments:
        for line in _lines(path):
            if line.strip():
                sys.stdout.buffer.write(msgspec.json.encode(answer(msgspec.json.decode(line))) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
