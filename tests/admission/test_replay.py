"""drakit answers every recorded case as the recorded API server of 1.36 did."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from drakit.admission import User, replay

VECTORS = Path(__file__).parent.parent / "vectors"
FILES = {"validation": (4, 2321), "pruning": (2, 740)}  # parts, so that workers can share them; cases
MAP_KEY = re.compile(r"\[[^\]]*[A-Za-z][^\]]*\]")


def mismatches(case: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """What differs: status, causes, stored object; warnings; the order of causes."""
    expected = {(cause["reason"], cause["field"]) for cause in case["causes"]}
    given = {(cause["reason"], cause["field"]) for cause in answer["causes"]}
    if case["status"] == 0:  # the recorded server panicked; ours answers 422 with causes of its own
        return [] if answer["status"] == 422 and given else [f"{case['id']}: {answer['status']} {given}"]
    found = []
    if (answer["status"], given, answer["stored"]) != (case["status"], expected, case["stored"]):
        found.append(f"{case['id']} {case['rule']}: {case['status']} {expected} but {answer['status']} {given}")
    if sorted(answer["warnings"]) != sorted(case["warnings"]):
        found.append(f"{case['id']}: warnings {case['warnings']} but {answer['warnings']}")
    if in_order(answer) != in_order(case):
        found.append(f"{case['id']}: {in_order(case)} but {in_order(answer)}")
    return found


def in_order(answer: dict[str, Any]) -> list[str]:
    """The causes; Go iterates over maps in random order, so those below map keys may be swapped."""
    return [MAP_KEY.sub("[]", f"{cause['reason']} {cause['field']}") for cause in answer["causes"]]


@pytest.mark.parametrize(
    ("name", "part"), [(name, part) for name, (parts, _) in FILES.items() for part in range(parts)]
)
def test_same_answer(name: str, part: int, recorded: Any) -> None:
    parts, count = FILES[name]
    cases = [case for case in recorded(name) if not case.get("user")]
    assert len(cases) == count
    assert [each for case in cases[part::parts] for each in mismatches(case, replay.answer_line(case))] == []


DIFFERENT = re.compile(r"Invalid value: [{\[]|compilation failed|Invalid value: \"[^\"]*-[a-z0-9]{5}\"")
"""Values that Go prints as structs, CEL's syntax errors, generated names."""


def test_same_messages(recorded: Any) -> None:
    for case in recorded("validation"):
        if case.get("user") or case["status"] != 422:
            continue
        expected = sorted(cause["message"] for cause in case["causes"] if not DIFFERENT.search(cause["message"]))
        given = sorted(cause.message for cause in replay.answer(case).causes if not DIFFERENT.search(cause.message))
        assert given == expected, case["id"]


USERS = {
    "none": User(name="rec-user-none", allows=lambda *_: False),
    "binding": User(name="rec-user-binding", allows=lambda _verb, resource, _: resource.endswith("/binding")),
    "driver": User(
        name="driver", allows=lambda verb, _, name: (verb, name) == ("arbitrary-node:update", "rec.example.com")
    ),
    "driver-other": User(
        name="rec-user-driver-other",
        allows=lambda verb, _, name: (verb, name) == ("arbitrary-node:update", "other.example.com"),
    ),
    "both": User(name="both", allows=lambda _verb, _, name: name in {"", "rec.example.com"}),
    "wild": User(name="wild", allows=lambda *_: True),
    "node-sa": User(
        name="system:serviceaccount:rec:drv", allows=lambda verb, *_: verb == "associated-node:update", node="rec-node"
    ),
    "node-sa-wrong": User(
        name="system:serviceaccount:rec:drv", allows=lambda verb, *_: verb == "associated-node:update", node="other"
    ),
}


def test_same_refusals_of_users_without_permission(recorded: Any) -> None:
    seen = set()
    for case in recorded("validation"):
        if not case.get("user"):
            continue
        seen.add(case["user"])
        answer = replay.answer(case, USERS[case["user"]])
        assert answer.status == case["status"], case["id"]
        given = [(cause.reason, cause.field) for cause in answer.causes]
        assert given == [(cause["reason"], cause["field"]) for cause in case["causes"]], case["id"]
        messages = [cause["message"] for cause in case["causes"] if cause["reason"] == "FieldValueForbidden"]
        assert [cause.message for cause in answer.causes if cause.reason == "FieldValueForbidden"] == messages
    assert seen == set(USERS)


def test_the_command_answers_line_by_line(tmp_path: Path, recorded: Any) -> None:
    cases = [case for case in recorded("validation") if case.get("user")][:2] + recorded("validation")[:3]
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(map(json.dumps, cases)) + "\n\n")
    command = [sys.executable, "-m", "drakit.admission", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["id"] for line in lines] == [case["id"] for case in cases[2:]]
    assert "skipped 2 cases" in done.stderr
    wrong = subprocess.run(command[:-1], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
