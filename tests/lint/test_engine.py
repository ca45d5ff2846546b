"""What servers and runtimes refuse, with lines; objects in lists; input of any shape."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit import lint
from drakit.lint import Severity

Lint = Callable[..., lint.Report]

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: s
spec:
  driver: gpu.example.com
  nodeName: n
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: c
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
"""


def found(report: lint.Report) -> list[tuple[str, str, int, str]]:
    return [(finding.severity.value, finding.rule, finding.line, finding.path) for finding in report.findings]


def test_nothing_to_say(lint_text: Lint) -> None:
    report = lint_text(SLICE, CLAIM)
    assert report == lint.Report((), 2)
    assert report.errors == report.warnings == 0


def test_refusals_have_the_servers_words_and_our_lines(lint_text: Lint) -> None:
    report = lint_text(CLAIM.replace("gpu.example.com", "Not_A_Name") + "        count: -1\n")
    assert found(report) == [
        ("error", "refused", 10, "spec.devices.requests[0].exactly.deviceClassName"),
        ("error", "refused", 11, "spec.devices.requests[0].exactly.count"),
    ]
    assert report.findings[1].object == "ResourceClaim c"
    assert report.findings[1].message.startswith("Invalid value: -1: ")
    assert report.errors == 2


def test_unknown_fields_and_repeated_keys(lint_text: Lint) -> None:
    report = lint_text(CLAIM + "        cuont: 2\n        deviceClassName: gpu.example.com\n")
    assert found(report) == [
        ("error", "unknown-field", 11, "spec.devices.requests[0].exactly.cuont"),
        ("warning", "repeated-key", 12, ""),
    ]


def test_dropped_fields_name_the_gate(lint_text: Lint) -> None:
    text = CLAIM + (
        "        derivedAttributes:\n        - {name: derived/x, expression: \"device.attributes['a.b'].x\"}\n"
        "    constraints:\n    - matchAttribute: derived/x\n"
    )
    [finding] = lint_text(text).findings
    assert (finding.rule, finding.severity, finding.line) == ("dropped-field", Severity.WARNING, 11)
    assert "DRADerivedAttributes is off" in finding.message
    assert lint_text(text, all_gates=True).findings == ()
    [older] = [finding for finding in lint_text(text, version="1.36").findings if finding.line == 11]
    assert older.rule == "unknown-field"


def test_fields_kept_in_another_form_are_not_dropped(lint_text: Lint) -> None:
    text = SLICE + "    capacity: {memory: {value: 1024Mi}}\n    attributes: {}\n"
    assert lint_text(text).findings == ()
    v1beta1 = text.replace("resource.k8s.io/v1", "resource.k8s.io/v1beta1").replace(
        "    capacity", "    basic:\n      capacity"
    )
    assert lint_text(v1beta1.replace("    attributes: {}\n", ""), version="1.34").findings == ()


@pytest.mark.parametrize(
    ("version", "api_version", "kind", "rule"),
    [
        ("1.33", "v1", "ResourceClaim", "not-served"),
        ("1.37", "v1alpha2", "ResourceClaim", "not-served"),
        ("1.37", "v2", "ResourceClaim", "not-served"),
        ("1.37", "v1", "ResourceClass", "unknown-kind"),
    ],
)
def test_what_is_not_served(lint_text: Lint, version: str, api_version: str, kind: str, rule: str) -> None:
    text = CLAIM.replace("ResourceClaim", kind).replace("resource.k8s.io/v1", f"resource.k8s.io/{api_version}")
    assert rule in {finding.rule for finding in lint_text(text, version=version).findings}


@pytest.mark.parametrize("api_version", ["v1", "''"])
def test_kinds_without_their_group(lint_text: Lint, api_version: str) -> None:
    [finding] = lint_text(CLAIM.replace("resource.k8s.io/v1", api_version)).findings
    assert (finding.rule, finding.line, finding.path) == ("unknown-kind", 1, "apiVersion")
    assert lint_text(CLAIM.replace("resource.k8s.io/v1", "example.com/v1")).findings == ()


def test_what_the_server_warns_of(lint_text: Lint) -> None:
    [finding] = lint_text(SLICE.replace("gpu.example.com", "GPU.example.com")).findings
    assert (finding.rule, finding.severity, finding.line) == ("server-warning", Severity.WARNING, 6)
    assert finding.path == "spec.driver"
    assert finding.message.startswith("driver names should be lowercase")


def test_cel_errors_stand_where_the_expression_is_wrong(lint_text: Lint) -> None:
    text = (
        CLAIM
        + "        selectors:\n        - cel:\n            expression: |\n              true\n                && nothing\n"
    )
    [finding] = lint_text(text).findings
    assert (finding.rule, finding.line) == ("refused", 15)


def test_admin_access_without_the_label_is_refused_where_the_namespace_is_known(lint_text: Lint) -> None:
    namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n"
    report = lint_text(CLAIM + "        adminAccess: true\n" + namespace)
    assert found(report) == [("error", "refused", 11, "spec.devices.requests[0].adminAccess")]


def test_what_does_not_decode_has_a_place(lint_text: Lint) -> None:
    [finding] = lint_text(SLICE + "    capacity:\n      memory: 80Gi\n").findings
    assert (finding.rule, finding.line) == ("refused", 12)


def test_lists_and_what_kubectl_prints(lint_text: Lint) -> None:
    item = json.loads(json.dumps(_claim()))
    item["metadata"] |= {"uid": "1", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    item["status"] = {}
    bad = _claim()
    bad["spec"]["devices"]["requests"][0]["name"] = "A"
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [item, bad, "nonsense"]}, indent=1)
    report = lint_text(text)
    assert report.objects == 2
    [finding] = report.findings
    assert finding.path == "spec.devices.requests[0].name"
    assert '"name": "A"' in text.splitlines()[finding.line - 1]


def _claim() -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [request]}},
    }


def test_cdi_files(lint_text: Lint) -> None:
    report = lint_text(
        "cdiVersion: 0.3.0\nkind: a/b\ndevices:\n- name: d\n  containerEdits:\n    mounts:\n"
        "    - hostPath: /a\n      containerPath: a\n      type: bind\nkind: a/b\n"
    )
    assert found(report) == [
        ("error", "cdi", 1, "cdiVersion"),
        ("warning", "cdi", 8, "devices[0].containerEdits.mounts[0].containerPath"),
        ("error", "repeated-key", 10, ""),
    ]
    assert report.objects == 1


def test_what_is_not_yaml_does_not_hide_other_files(lint_text: Lint) -> None:
    report = lint_text("a: [\n", CLAIM.replace("gpu.example.com", "A_"))
    assert [(finding.rule, finding.file) for finding in report.findings] == [
        ("syntax", "file-0.yaml"),
        ("refused", "file-1.yaml"),
    ]


def test_other_kinds_are_left_alone(lint_text: Lint) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: y}\n---\n- 1\n---\ntext\n---\napiVersion: a/b\n"
    assert lint_text(text) == lint.Report((), 0)


def test_unknown_version() -> None:
    with pytest.raises(ValueError, match=r"1\.31"):
        lint.target("1.31")


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "v1", "device.driver == 'x'", "a/b", "1"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["name", "spec", "devices", "requests", "exactly", "firstAvailable", "selectors", "cel", "expression", "count",
             "tolerations", "config", "opaque", "parameters", "constraints", "matchAttribute", "attributes", "basic", "pool",
             "generation", "deviceSelector", "derivedAttributes", "resourceClaims", "resourceClaimName", "nodeName",
             "metadata", "ownerReferences", "annotations", "driver", "items"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=14,
)  # fmt: skip
_KINDS = ["ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "DeviceTaintRule", "Pod", "List"]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(_KINDS), st.sampled_from(["v1", "v1beta1", "v1beta2"]), _json, _json)
def test_no_input_crashes(kind: str, version: str, spec: Any, metadata: Any) -> None:
    group = "" if kind in {"Pod", "List"} else "resource.k8s.io/"
    value = {"apiVersion": f"{group}{version}", "kind": kind, "metadata": metadata, "spec": spec, "items": [spec]}
    report = lint.lint([lint.Source("-", json.dumps([value] if spec is None else value))])
    assert report.errors + report.warnings == len(report.findings)
