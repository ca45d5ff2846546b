"""The examples of the Kubernetes documentation: corrected they are admitted without warnings, uncorrected they are found.

documentation/ has the examples of the pages on dynamic resource allocation (1.37) and of a tutorial; placeholders are
filled in. documentation/uncorrected/ has those that are invalid as they are printed there.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit import admission, lint

Lint = Callable[..., lint.Report]

DIRECTORY = Path(__file__).parent / "documentation"
LABELS = {"resource.kubernetes.io/admin-access": "true"}
# file: what lint must say of it as it is printed
UNCORRECTED = {
    "list-attributes": [("refused", "spec.devices[0].attributes")],
    "list-attribute-selector": [("refused", "spec.devices.requests[0].exactly.selectors[0].cel.expression")],
    "node-allocatable-mapping": [("refused", "spec.devices[0].capacity.cpu.example.com/cpu")],
    "node-allocatable-overhead": [
        ("refused", "spec.devices[0].nodeAllocatableResources[overhead]"),
        ("refused", "spec.devices[0].nodeAllocatableResources[overhead]"),
        ("unknown-field", "spec.devices[0].nodeAllocatableResources.overhead.memory"),
    ],
    "tutorial-v1beta1": [("deprecated-version", "apiVersion")],
}


def files(directory: Path) -> list[str]:
    return sorted(path.stem for path in directory.glob("*.yaml"))


@pytest.mark.parametrize("name", files(DIRECTORY))
def test_corrected_examples_are_admitted_without_warnings(lint_text: Lint, name: str) -> None:
    text = (DIRECTORY / f"{name}.yaml").read_text()
    from drakit.api import fields
    from drakit.lint.documents import read
    from drakit.lint.objects import expand

    for document in read(text):
        for each in expand(name, document):
            if each.dra:
                kind = fields.KINDS[each.kind]
                request = admission.Request(
                    verb="create",
                    resource=kind.plural,
                    version=each.version,
                    body=each.value,
                    namespace="default" if kind.namespaced else "",
                    field_validation="Strict",
                    namespace_labels=LABELS,
                )
                answer = admission.admit(request, "1.37", admission.profile("1.37", all_gates=True))
                assert (answer.status, answer.causes, answer.warnings) == (201, (), ())
    report = lint_text(text, all_gates=True)
    assert report.errors == 0
    # What lint has to say of good examples: guards and a label that the pages explain in words.
    assert {finding.rule for finding in report.findings} <= {"unguarded-attribute", "admin-access"}


@pytest.mark.parametrize("name", files(DIRECTORY / "uncorrected"))
def test_uncorrected_examples_are_found(lint_text: Lint, name: str) -> None:
    report = lint_text((DIRECTORY / "uncorrected" / f"{name}.yaml").read_text(), all_gates=True)
    findings = [(each.rule, each.path) for each in report.findings if each.rule != "unguarded-attribute"]
    assert findings == UNCORRECTED[name]


def test_alpha_examples_need_their_gates(lint_text: Lint) -> None:
    expected = {
        "derived-attributes": "DRADerivedAttributes",
        "compatibility-groups": "DRADeviceCompatibilityGroups",
        "optional-node-operations": "DRAOptionalNodeOperations",
        "node-allocatable-overhead": "DRANodeAllocatableResources",
    }
    for name, gate in expected.items():
        report = lint_text((DIRECTORY / f"{name}.yaml").read_text())
        dropped = [finding for finding in report.findings if finding.rule == "dropped-field"]
        assert dropped
        assert all(gate in finding.message for finding in dropped), name


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(files(DIRECTORY)),
    st.lists(st.tuples(st.integers(0, 2000), st.text("{}[]:-&*!|>'\"%@`#, \n0aé", max_size=2)), min_size=1, max_size=4),
)
def test_no_change_of_an_example_crashes_lint(name: str, changes: list[tuple[int, str]]) -> None:
    text = (DIRECTORY / f"{name}.yaml").read_text()
    for place, change in changes:
        place %= len(text)
        text = text[:place] + change + text[place + 1 :]
    report = lint.lint([lint.Source(name, text)])
    assert all(finding.line >= 1 and finding.message for finding in report.findings)
