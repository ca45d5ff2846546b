"""`python -m drakit.allocation`, and what importing the package costs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def _run(*arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "drakit.allocation", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_answers_are_lines_of_json(cases: list[dict[str, Any]], tmp_path: Path) -> None:
    some = cases[:5]
    (tmp_path / "cases.jsonl").write_text("\n".join(json.dumps(case) for case in some) + "\n")
    answers = _run(str(tmp_path / "cases.jsonl"))
    assert [each["id"] for each in answers] == [case["id"] for case in some]
    assert all(each.keys() == {"id", "ok", "results", "error", "errorKind"} for each in answers)


def test_nodes_are_counted_and_timed(cases: list[dict[str, Any]], tmp_path: Path) -> None:
    case = next(case for case in cases if case["expected"]["ok"])
    case = {**case, "nodes": [case["node"], {"name": "nowhere", "labels": {}}]}
    del case["node"]
    (tmp_path / "nodes.jsonl").write_text(json.dumps(case))
    [answer] = _run("--nodes", str(tmp_path / "nodes.jsonl"))
    assert answer["okNodes"] >= 1
    assert answer["okNodes"] + answer["noFitNodes"] + answer["errorNodes"] == 2
    assert answer["totalNs"] > 0
    assert answer["peakRssKiB"] > 1000


def test_importing_brings_no_event_loop_and_no_client() -> None:
    script = "import sys, drakit.allocation; print(sorted({'asyncio', 'grpc', 'kubernetes', 'aiohttp', 'structlog'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
