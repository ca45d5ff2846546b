"""drakit lint as users run it."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from drakit.cli import main

GOOD = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: [{name: a, exactly: {deviceClassName: b}}]}}\n"
WARN = GOOD.replace("deviceClassName: b", "deviceClassName: b, adminAccess: true")
BAD = GOOD.replace("name: a", "name: A")


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LINT_OUTPUT", "LINT_STRICT", "KUBERNETES_VERSION", "FEATURE_GATES"):
        monkeypatch.delenv(name, raising=False)


def put(directory: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(text)
    return [str(directory / f"{name}.yaml") for name in texts]


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, warn, bad = put(tmp_path, good=GOOD, warn=WARN, bad=BAD)
    assert main(["lint", good]) == 0
    assert main(["lint", warn]) == 0
    assert main(["lint", "--strict", warn]) == 1
    assert main(["lint", good, bad]) == 1
    assert f"{bad}:4:30: error: ResourceClaim c: spec.devices.requests[0].name: " in capsys.readouterr().out


def test_directories_are_searched_and_hidden_files_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub" / ".git").mkdir(parents=True)
    put(tmp_path / "sub", bad=BAD)
    put(tmp_path / "sub" / ".git", hidden=BAD)
    (tmp_path / "sub" / "notes.txt").write_text(BAD)
    (tmp_path / "sub" / "more.yml").write_text(GOOD)
    (tmp_path / "sub" / "more.json").write_text(json.dumps({"cdiVersion": "0.3.0"}))
    assert main(["lint", str(tmp_path)]) == 1
    assert "in 3 objects" in capsys.readouterr().out


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert main(["lint", "-"]) == 1
    assert capsys.readouterr().out.startswith("-:4:30: error:")


def test_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [bad] = put(tmp_path, bad=BAD)
    assert main(["lint", "--output", "json", bad]) == 1
    assert json.loads(capsys.readouterr().out)["errors"] == 1
    assert main(["lint", "--output=github", bad]) == 1
    assert capsys.readouterr().out.startswith("::error file=")


def test_version_and_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alpha = GOOD.replace("ResourceClaim", "ResourceSlice").replace(
        "spec: {devices: {requests: [{name: a, exactly: {deviceClassName: b}}]}}",
        "spec: {driver: a.b, nodeName: n, pool: {name: p, generation: 1, resourceSliceCount: 1}, "
        "devices: [{name: d, attributes: {x: {strings: [y]}}}]}",
    )
    file, good = put(tmp_path, alpha=alpha, good=GOOD)
    assert main(["lint", file]) == 1
    assert main(["lint", "--feature-gates=DRAListTypeAttributes=true", file]) == 0
    assert main(["lint", "--feature-gates=AllAlpha=true,DRAListTypeAttributes=false", file]) == 1
    assert main(["lint", "--kubernetes-version", "v1.34", "--strict", good]) == 0
    assert main(["lint", "--kubernetes-version", "1.33", good]) == 1
    assert "does not serve ResourceClaim in 'v1'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lint"], "FILE"),
        (["lint", "/does/not/exist.yaml"], "cannot read /does/not/exist.yaml: No such file"),
        (["lint", "--kubernetes-version=1.20", "x"], "unknown Kubernetes version '1.20'"),
        (["lint", "--output=xml", "x"], "'xml' is not one of text, json, github"),
        (["lint", "--feature-gates=DRADerivedAttribute=true", "x"], "did you mean DRADerivedAttributes?"),
        (["lint", "--feature-gates=DRADerivedAttributes", "x"], "neither true nor false"),
        (["lint", "--strickt", "x"], "did you mean --strict?"),
    ],
)
def test_wrong_use_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def test_an_empty_directory_and_binary_files_are_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(tmp_path)]) == 2
    assert "no file that ends in .yaml" in capsys.readouterr().err
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe")
    assert main(["lint", str(tmp_path)]) == 2
    assert "is not UTF-8" in capsys.readouterr().err


def test_lint_needs_no_extra(tmp_path: Path) -> None:
    [good] = put(tmp_path, good=GOOD)
    blocked = ("aiohttp", "grpc", "kubernetes", "structlog", "prometheus_client", "google.protobuf")
    script = f"import sys\nfor name in {blocked!r}: sys.modules[name] = None\nfrom drakit.cli import main\nsys.exit(main({['lint', good]!r}))"
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ, capture_output=True)
