"""Findings as text with line numbers, as JSON, and as annotations of GitHub workflows."""

import msgspec

from drakit.lint.engine import Report
from drakit.lint.findings import Finding

__all__ = ["FORMATS", "github", "json", "text"]


def text(report: Report) -> str:
    """One line a finding, in the form that editors and terminals make links of; a summary last."""
    lines = [_line(finding) for finding in report.findings]
    return "\n".join([*lines, _summary(report)]) + "\n"


def json(report: Report) -> str:
    """One JSON object: findings, and their numbers."""
    value = {
        "findings": report.findings,
        "errors": report.errors,
        "warnings": report.warnings,
        "objects": report.objects,
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def github(report: Report) -> str:
    """Workflow commands: GitHub shows each finding at its line of a pull request."""
    return "".join(
        f"::{finding.severity} file={_property(finding.file)},line={finding.line},col={finding.column},"
        f"title={_property(finding.rule)}::{_data(_message(finding))}\n"
        for finding in report.findings
    )


FORMATS = {"text": text, "json": json, "github": github}


def _line(finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}:{finding.column}"
    first, *more = _message(finding).split("\n")
    return "\n    ".join([f"{place}: {finding.severity}: {first} [{finding.rule}]", *more])


def _message(finding: Finding) -> str:
    parts = [finding.object, finding.path, finding.message]
    return ": ".join(part for part in parts if part)


def _summary(report: Report) -> str:
    counts = (report.errors, "error"), (report.warnings, "warning"), (report.objects, "object")
    errors, warnings, objects = (f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts)
    return f"{errors}, {warnings} in {objects}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
