"""Lint: from the texts of files to findings."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from drakit import admission, cdi, cel
from drakit.api import fields
from drakit.lint.documents import Document, Position, ReadError, read
from drakit.lint.findings import Finding, Severity
from drakit.lint.objects import Input, Object, expand
from drakit.lint.refusals import refusals
from drakit.lint.rules import RULES, Target

__all__ = ["Report", "Source", "lint", "target"]


_CEL = re.compile(r"<input>:(\d+):(\d+): ")


class Source(NamedTuple):
    """A file: its name for findings, and its text."""

    name: str
    text: str


class Report(NamedTuple):
    """What lint found, in the order of files and lines, and in how many objects and CDI files."""

    findings: tuple[Finding, ...]
    objects: int

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.severity == Severity.ERROR for finding in self.findings)

    @property
    def warnings(self) -> int:
        """How many findings are warnings."""
        return len(self.findings) - self.errors


def target(version: str = "1.37", gates: Iterable[str] | None = None) -> Target:
    """A cluster of a minor version, with these feature gates on (default: those that are on by default).

    Raises:
        ValueError: drakit does not model that version.
    """
    return Target(version, admission.profile(version) if gates is None else frozenset(gates))


def lint(sources: Iterable[Source], cluster: Target | None = None) -> Report:
    """All that is wrong with `sources` for `cluster` (default: Kubernetes 1.37 as it comes)."""
    cluster = cluster or target()
    order: dict[str, int] = {}
    findings: list[Finding] = []
    objects: list[Object] = []
    specs = 0
    for source in sources:
        order.setdefault(source.name, len(order))
        documents = list(_documents(source, findings))
        for document in documents:
            if isinstance(document.value, dict) and "cdiVersion" in document.value:
                specs += 1
                findings += _cdi(source.name, document)
            else:
                objects += expand(source.name, document)
    data = Input(objects)
    findings += _refused(data, cluster)
    findings += _rules(data, cluster)
    unique = dict.fromkeys(findings)
    ordered = sorted(unique, key=lambda each: (order[each.file], each.line, each.column, each.rule))
    return Report(tuple(ordered), specs + sum(each.dra or each.kind == "Pod" for each in objects))


def _documents(source: Source, findings: list[Finding]) -> Iterator[Document]:
    try:
        for document in read(source.text):
            severity = Severity.ERROR if isinstance(document.value, dict) and "cdiVersion" in document.value else None
            for key, position in document.repeated:
                message = f"key {key} stands twice in one mapping; the last one counts"
                findings.append(_finding(severity or Severity.WARNING, "repeated-key", message, source.name, position))
            yield document
    except ReadError as error:
        findings.append(_finding(Severity.ERROR, "syntax", str(error), source.name, error.position))


def _cdi(file: str, document: Document) -> Iterator[Finding]:
    title = f"CDI spec {document.value.get('kind', '')}"
    value = document.value if document.is_json else cdi.as_strings(document.value)
    for fault in cdi.validate(value):
        severity = Severity.ERROR if fault.rejected else Severity.WARNING
        position = document.position(fault.path)
        yield _finding(severity, "cdi", fault.message, file, position, object=title, path=fault.path)


def _refused(data: Input, cluster: Target) -> Iterator[Finding]:
    for each in data.objects:
        if each.dra or (not each.group and each.kind in fields.KINDS):
            for refusal in refusals(each, data, cluster):
                severity = Severity.ERROR if refusal.error else Severity.WARNING
                yield _of_object(severity, refusal.rule, refusal.message, each, refusal.path)


def _rules(data: Input, cluster: Target) -> Iterator[Finding]:
    for rule in RULES:
        for hit in rule.check(data, cluster):
            yield _of_object(Severity.WARNING, rule.name, hit.message, hit.object, hit.path, within=hit.position)


def _of_object(
    severity: Severity, rule: str, message: str, each: Object, path: str, *, within: cel.Position | None = None
) -> Finding:
    found = _CEL.search(message)
    if found:
        within = cel.Position(int(found[1]), int(found[2]))
    position = each.position(path) if within is None else each.inner(path, within.line, within.column - 1)
    return _finding(severity, rule, message, each.file, position, object=each.title, path=path)


def _finding(
    severity: Severity, rule: str, message: str, file: str, position: Position, *, object: str = "", path: str = ""
) -> Finding:
    return Finding(
        severity=severity,
        rule=rule,
        message=message,
        file=file,
        line=position.line,
        column=position.column,
        object=object,
        path=path,
    )
