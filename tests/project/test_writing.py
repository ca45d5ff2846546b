"""Only drakit.files writes, renames, syncs and locks; the simulator and the demo may write what a test throws away."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "drakit"
THROWAWAY = {"simulator", "cli"}
CALLS = {"write_text", "write_bytes", "fsync", "fdatasync", "mkstemp", "NamedTemporaryFile", "lockf", "flock"}
OPENERS = {"open", "fdopen"}


def writes(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        place = 0 if isinstance(node.func, ast.Attribute) and name == "open" else 1
        given = [*node.args[place : place + 1], *(word.value for word in node.keywords if word.arg == "mode")]
        modes = [mode.value for mode in given if isinstance(mode, ast.Constant) and isinstance(mode.value, str)]
        if name in CALLS or (name in OPENERS and any(set(mode) & set("wax+") for mode in modes)):
            yield node.lineno


def test_nothing_but_files_writes() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != PACKAGE / "files.py" and path.relative_to(PACKAGE).parts[0] not in THROWAWAY
        for line in writes(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize("code", ['open("x", "w")', 'Path("x").open(mode="ab")', 'p.write_text("")', "os.fsync(3)"])
def test_the_rule_finds_writing(code: str) -> None:
    assert list(writes(ast.parse(code))) == [1]


@pytest.mark.parametrize("code", ['open("x")', 'open("x", "rb")', "fs.read(p)"])
def test_the_rule_lets_reading_pass(code: str) -> None:
    assert list(writes(ast.parse(code))) == []
