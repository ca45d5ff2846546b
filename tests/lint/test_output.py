"""Findings for people, programs, and GitHub."""

import json

from drakit import lint
from drakit.lint import FORMATS, Finding, Report, Severity

FINDINGS = (
    Finding(
        severity=Severity.ERROR, rule="refused", message="Invalid value:\n  | caret", file="a,b:c.yaml", line=3, column=5,
        object="ResourceClaim default/c", path="spec.devices",
    ),
    Finding(severity=Severity.WARNING, rule="syntax", message="100% wrong", file="-"),
)  # fmt: skip


def test_text_has_a_line_for_each_finding_and_a_summary() -> None:
    assert FORMATS["text"](Report(FINDINGS, 3)) == (
        "a,b:c.yaml:3:5: error: ResourceClaim default/c: spec.devices: Invalid value: [refused]\n"
        "      | caret\n"
        "-:1:1: warning: 100% wrong [syntax]\n"
        "1 error, 1 warning in 3 objects\n"
    )
    assert FORMATS["text"](Report((), 1)) == "0 errors, 0 warnings in 1 object\n"


def test_json_has_everything() -> None:
    value = json.loads(FORMATS["json"](Report(FINDINGS, 3)))
    assert (value["errors"], value["warnings"], value["objects"]) == (1, 1, 3)
    assert value["findings"][0] == {
        "severity": "error",
        "rule": "refused",
        "message": "Invalid value:\n  | caret",
        "file": "a,b:c.yaml",
        "line": 3,
        "column": 5,
        "object": "ResourceClaim default/c",
        "path": "spec.devices",
    }


def test_github_annotations_are_escaped() -> None:
    assert FORMATS["github"](Report(FINDINGS, 3)) == (
        "::error file=a%2Cb%3Ac.yaml,line=3,col=5,title=refused::"
        "ResourceClaim default/c: spec.devices: Invalid value:%0A  | caret\n"
        "::warning file=-,line=1,col=1,title=syntax::100%25 wrong\n"
    )
    assert FORMATS["github"](Report((), 0)) == ""


def test_findings_are_in_the_order_of_files_and_lines() -> None:
    sources = [lint.Source("b", "a: 1\na: 2\na: 3\n"), lint.Source("a", "x: 1\nx: 1\n")]
    assert [(each.file, each.line) for each in lint.lint(sources).findings] == [("b", 2), ("b", 3), ("a", 2)]
