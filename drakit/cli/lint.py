"""drakit lint: what an API server or runtime would refuse in files, and what it accepts and costs days."""

import argparse
import difflib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from drakit.cli import options

if TYPE_CHECKING:
    from drakit.lint import Source

__all__ = ["HELP", "add_arguments", "execute"]

HELP = "check manifests and CDI files: what the API server would refuse, and what costs days"

_ENDINGS = {".yaml", ".yml", ".json"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="file, directory (searched for YAML and JSON), or -")
    options.add(
        parser,
        "--output",
        help="text, json, or github (annotations)",
        default="text",
        choices=("text", "json", "github"),
        env="LINT_OUTPUT",
    )
    options.add(
        parser, "--strict", help="exit 1 on warnings too", type=options.boolean, default=False, env="LINT_STRICT"
    )
    options.add(parser, "--kubernetes-version", help="minor version of the cluster", default="1.37")
    options.add(
        parser,
        "--feature-gates",
        help="gates that differ from the version's defaults, as NAME=true,NAME=false; AllAlpha and AllBeta as well",
        default="",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Lint the files; 0 when there is nothing to say, 1 when there is."""
    from drakit import lint

    version = arguments.kubernetes_version.removeprefix("v")
    try:
        cluster = lint.target(version)
    except ValueError as error:
        raise options.UsageError(f"--kubernetes-version: {error}") from error
    cluster = cluster._replace(gates=_gates(version, cluster.gates, arguments.feature_gates))
    report = lint.lint(_sources(arguments.files), cluster)
    print(lint.FORMATS[arguments.output](report), end="")
    return 1 if report.errors or (arguments.strict and report.warnings) else 0


def _gates(version: str, default: frozenset[str], text: str) -> frozenset[str]:
    from drakit import admission

    known = admission.profile(version, all_gates=True)
    gates = set(default)
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = word.partition("=")
        try:
            on = options.boolean(value)
        except ValueError as error:
            raise options.UsageError(f"--feature-gates: {word}: {error}") from error
        if name in {"AllAlpha", "AllBeta"}:
            named = known - default if name == "AllAlpha" else default
        elif name in known:
            named = frozenset({name})
        else:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f": did you mean {near[0]}?" if near else ""
            raise options.UsageError(f"--feature-gates: Kubernetes {version} has no DRA gate {name}{hint}")
        gates = gates | named if on else gates - named
    return frozenset(gates)


def _sources(names: Iterable[str]) -> "Iterator[Source]":
    from drakit.lint import Source

    for name in names:
        if name == "-":
            yield Source("-", _decoded("-", sys.stdin.buffer.read()))
            continue
        for path in _files(Path(name)):
            try:
                yield Source(str(path), _decoded(str(path), path.read_bytes()))
            except OSError as error:
                raise options.UsageError(f"cannot read {path}: {error.strerror or error}") from error


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(
        each
        for each in path.rglob("*")
        if each.suffix in _ENDINGS
        and each.is_file()
        and not any(part.startswith(".") for part in each.relative_to(path).parts)
    )
    if not found:
        raise options.UsageError(f"{path} has no file that ends in .yaml, .yml or .json")
    return found


def _decoded(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise options.UsageError(f"{name} is not UTF-8 text: byte {error.start}") from error
