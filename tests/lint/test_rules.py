"""Every warning, where it must be given and where not (issue: admission and lint, 3)."""

import textwrap
from collections.abc import Callable

import pytest

from drakit import lint

Lint = Callable[..., lint.Report]


def claim(body: str, *, name: str = "claim", kind: str = "ResourceClaim", version: str = "v1", meta: str = "") -> str:
    """A claim (or template) whose `devices` is `body`."""
    spec = textwrap.indent(f"devices:\n{textwrap.indent(textwrap.dedent(body), '  ')}", "  ")
    if kind == "ResourceClaimTemplate":
        spec = f"  spec:\n{textwrap.indent(spec, '  ')}"
    head = f"apiVersion: resource.k8s.io/{version}\nkind: {kind}\nmetadata:\n  name: {name}\n"
    return f"{head}{textwrap.indent(textwrap.dedent(meta), '  ')}spec:\n{spec}\n---\n"


def request(body: str = "", *, name: str = "gpu") -> str:
    """One exact request."""
    inner = textwrap.indent(textwrap.dedent(body), "    ")
    return f"requests:\n- name: {name}\n  exactly:\n    deviceClassName: gpu.example.com\n{inner}\n"


def selecting(expression: str) -> str:
    """A claim with one selector."""
    return claim(request(f"selectors:\n- cel:\n    expression: {expression!r}\n"))


def device_class(expression: str) -> str:
    """DeviceClass gpu.example.com."""
    return textwrap.dedent(f"""\
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata:
          name: gpu.example.com
        spec:
          selectors:
          - cel:
              expression: {expression!r}
        ---
        """)


def resource_slice(
    attributes: str, *, driver: str = "gpu.example.com", pool: str = "p", count: int = 1, name: str = "s"
) -> str:
    """A slice with one device."""
    return textwrap.dedent(f"""\
        apiVersion: resource.k8s.io/v1
        kind: ResourceSlice
        metadata:
          name: {name}
        spec:
          driver: {driver}
          nodeName: node-1
          pool: {{name: {pool}, generation: 1, resourceSliceCount: {count}}}
          devices:
          - name: gpu-0
            attributes: {attributes}
            capacity: {{memory: {{value: 80Gi}}}}
        ---
        """)


def taint_rule(selector: str, version: str = "v1") -> str:
    """A DeviceTaintRule."""
    return textwrap.dedent(f"""\
        apiVersion: resource.k8s.io/{version}
        kind: DeviceTaintRule
        metadata: {{name: rule}}
        spec:
          {selector}
          taint: {{key: a.example.com/b, effect: NoExecute}}
        ---
        """)


def pod(body: str, *, name: str = "pod", namespace: str = "default") -> str:
    """A pod with `body` in its spec."""
    inner = textwrap.indent(textwrap.dedent(body), "  ")
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n{inner}\n---\n"


def using(name: str) -> str:
    """A pod spec that uses the claim `name`."""
    return f"resourceClaims:\n- name: mine\n  resourceClaimName: {name}\n"


MODEL = 'device.attributes["gpu.example.com"].model'
IN_TEAM = "namespace: team\n"
NAMESPACE = 'apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {resource.kubernetes.io/admin-access: "true"}}\n---\n'
POD_GROUP = "scheduling.k8s.io/v1beta1\nkind: PodGroup"
FROM_TEMPLATE = pod("resourceClaims:\n- name: gpu\n  resourceClaimTemplateName: gpus\n", name="maker")
TOLERATION = "tolerations:\n- {key: a, operator: Exists%s}\n"
DERIVED = "derivedAttributes:\n- name: derived/numa\n  expression: device.attributes['gpu.example.com'].numa\n"
OPAQUE = "config:\n- opaque: {driver: gpu.example.com, parameters: {a: 1}}\n"
GENERATED_META = "ownerReferences:\n- {apiVersion: v1, kind: Pod, name: maker, uid: '1', controller: true}\n"

# rule: texts that get the warning, texts that do not
CASES: dict[str, tuple[list[str], list[str]]] = {
    "unguarded-attribute": (
        [
            selecting(f'{MODEL} == "A"'),
            selecting(f'!has({MODEL}) && {MODEL} == "A"'),
            selecting(f'has({MODEL}) || {MODEL} == "A"'),
            selecting(f'has({MODEL}) ? true : {MODEL} == "A"'),
            selecting(f'has({MODEL}) && device.attributes["gpu.example.com"].other == "A"'),
            selecting('device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Gi"))'),
            selecting('device.driver == "nic.example.com" && ' + MODEL + ' == "A"'),
            selecting('device.attributes[device.driver].model == "A"'),
            selecting('device.attributes[device.driver].model == "A"') + resource_slice("{other: {string: A}}"),
            device_class(f'{MODEL} == "A"'),
            device_class('device.driver == "nic.example.com"') + selecting(f'{MODEL} == "A"'),
            device_class('device.driver == "gpu.example.com"')
            + selecting(f'{MODEL} == "A"')
            + resource_slice("{model: {string: A}}", pool="a", name="a")
            + resource_slice("{other: {string: A}}", pool="b", name="b"),
            selecting(f'{MODEL} == "A"') + resource_slice("{model: {string: A}}", driver="nic.example.com"),
            claim(request(f"selectors:\n- cel: {{expression: '{MODEL} == \"A\"'}}\n- cel: {{expression: 'has({MODEL})'}}\n")),
        ],
        [
            selecting(f'has({MODEL}) && {MODEL} == "A"'),
            selecting(f'{MODEL} == "A" && has({MODEL})'),
            selecting(f'!has({MODEL}) || {MODEL} == "A"'),
            selecting(f'!(!has({MODEL}) || {MODEL} != "A")'),
            selecting(f'has({MODEL}) ? {MODEL} == "A" : false'),
            selecting('"model" in device.attributes["gpu.example.com"] && ' + MODEL + ' == "A"'),
            selecting('"gpu.example.com" in device.attributes && ' + MODEL + ' == "A"'),
            selecting('device.attributes["gpu.example.com"].?model.orValue("") == "A"'),
            selecting('device.driver == "gpu.example.com" && ' + MODEL + ' == "A"'),
            selecting('device.driver == "nic.example.com"'),
            selecting('device.attributes[device.driver].model == "A"') + resource_slice("{model: {string: A}}"),
            selecting('device.driver == "gpu.example.com" && device.attributes[device.driver].model == "A"'),
            selecting('["a"].all(k, device.attributes["gpu.example.com"][k] == 1)'),
            device_class('device.driver == "gpu.example.com"') + selecting(f'{MODEL} == "A"'),
            device_class(f"has({MODEL})") + selecting(f'{MODEL} == "A"'),
            device_class('device.driver == "gpu.example.com" && ' + MODEL + ' == "A"'),
            selecting(f'{MODEL} == "A"') + resource_slice("{model: {string: A}}"),
            selecting(f'{MODEL} == "A"') + resource_slice("{gpu.example.com/model: {string: A}}", driver="nic.example.com"),
            device_class('device.driver == "gpu.example.com"')
            + selecting(f'{MODEL} == "A"')
            + resource_slice("{model: {string: A}}", pool="a", name="a")
            + resource_slice("{other: {string: A}}", pool="b", name="b", driver="nic.example.com"),
            claim(request(f"selectors:\n- cel: {{expression: 'has({MODEL})'}}\n- cel: {{expression: '{MODEL} == \"A\"'}}\n")),
        ],
    ),
    "never-true": (
        [
            selecting('device.driver == "a.example.com" && device.driver == "b.example.com"'),
            selecting(f'has({MODEL}) && {MODEL} == "A" && "B" == {MODEL}'),
            selecting(f'{MODEL} in ["A", "B"] && {MODEL} == "C"'),
            selecting(f'{MODEL} in ["A", "B"] && {MODEL} in ["C"]'),
            selecting(f'{MODEL} == "A" && {MODEL} != "A"'),
            selecting(f'{MODEL} == "A" && {MODEL} == 1'),
            selecting(f"{MODEL} > 5 && {MODEL} < 3"),
            selecting(f"{MODEL} > 5 && 5 >= {MODEL}"),
            selecting(f"{MODEL} == 5 && {MODEL} > 5"),
            selecting(f"{MODEL} && !{MODEL}"),
            selecting(f"{MODEL} == true && {MODEL} == false"),
            selecting("false"),
            selecting('device.driver == "gpu.example.com" && false'),
            selecting(
                'device.capacity["a.b"].m.compareTo(quantity("2Gi")) >= 0 && '
                'device.capacity["a.b"].m.compareTo(quantity("1Gi")) < 0'
            ),
            selecting(
                'device.capacity["a.b"].m.isGreaterThan(quantity("2Gi")) && '
                '0 >= device.capacity["a.b"].m.compareTo(quantity("2Gi"))'
            ),
            selecting(f'{MODEL}.isLessThan(semver("1.0.0")) && {MODEL}.compareTo(semver("1.0.0")) >= 0'),
            selecting(f'{MODEL} == semver("1.0.0") && {MODEL} == semver("2.0.0")'),
            device_class('device.driver == "gpu.example.com"') + selecting('device.driver == "nic.example.com"'),
            device_class('device.driver == "a.example.com" && device.driver == "b.example.com"'),
        ],
        [
            selecting('device.driver == "a.example.com" || device.driver == "b.example.com"'),
            selecting(f'{MODEL} == "A" && {MODEL} == "A"'),
            selecting(f'{MODEL} in ["A", "B"] && {MODEL} == "B"'),
            selecting(f'{MODEL} != "A" && {MODEL} != "B"'),
            selecting(f"{MODEL} > 3 && {MODEL} < 5"),
            selecting(f"{MODEL} >= 5 && {MODEL} <= 5"),
            selecting(f'{MODEL}.isLessThan(semver("2.0.0")) && {MODEL}.isGreaterThan(semver("1.0.0"))'),
            selecting('device.attributes[device.driver].a == 1 && device.attributes[device.driver + ""].a == 2'),
            selecting(f'{MODEL} == "A" && device.attributes["nic.example.com"].model == "B"'),
            selecting("true"),
            selecting(f"{MODEL} == device.attributes['gpu.example.com'].other"),
            device_class('device.driver == "gpu.example.com"') + selecting('device.driver == "gpu.example.com"'),
        ],
    ),
    "version-as-text": (
        [
            selecting(f'has({MODEL}) && {MODEL} == "1.2.3"'),
            selecting(f'has({MODEL}) && "v1.2" != {MODEL}'),
            selecting(f'has({MODEL}) && {MODEL} == "1.2.3"') + resource_slice("{model: {version: 1.2.3}}"),
            device_class(f'has({MODEL}) && {MODEL} == "1.2.3"'),
        ],
        [
            selecting(f'has({MODEL}) && {MODEL} == semver("1.2.3")'),
            selecting(f'has({MODEL}) && {MODEL} == "A100"'),
            selecting(f'has({MODEL}) && {MODEL} == "1.2.3"') + resource_slice("{model: {string: 1.2.3}}"),
            selecting('device.driver == "1.2.3"'),
            selecting(f'{MODEL} == "1.2.3" &&'),
        ],
    ),
    "version-in-list": (
        [
            selecting(f'has({MODEL}) && {MODEL} in ["1.2.3", "1.2.4"]'),
            selecting(f'has({MODEL}) && {MODEL} in ["1.2.3"]') + resource_slice("{other: {string: A}}"),
        ],
        [
            selecting(f'has({MODEL}) && {MODEL} in ["A100", "H100"]'),
            selecting(f'has({MODEL}) && {MODEL} in [semver("1.2.3")]'),
            selecting(f'has({MODEL}) && {MODEL} in ["1.2.3"]') + resource_slice("{model: {string: 1.2.3}}"),
        ],
    ),
    "asymmetric-equality": (
        [
            selecting(f'has({MODEL}) && semver("1.2.3") == {MODEL}'),
            selecting('quantity("1Gi") == quantity("2Gi").sub(quantity("1Gi"))'),
        ],
        [
            selecting(f'has({MODEL}) && {MODEL} == semver("1.2.3")'),
            selecting('quantity("2Gi").sub(quantity("1Gi")) == quantity("1Gi")'),
        ],
    ),
    "always-present": (
        [
            selecting("has(device.attributes.gpu)"),
            selecting('device.attributes[?"gpu.example.com"].hasValue()'),
            device_class("has(device.capacity.gpu)"),
            claim(
                request("derivedAttributes:\n- name: derived/a\n  expression: has(device.attributes.gpu)\n")
                + "constraints:\n- matchAttribute: derived/a\n"
            ),
        ],
        [selecting('"gpu.example.com" in device.attributes'), selecting(f"has({MODEL})")],
    ),
    "qualified-identifier": (
        [
            selecting('device.attributes["gpu.example.com/model"].size() == 0'),
            selecting('device.attributes["gpu.example.com/model"] == {"a": 1}'),
        ],
        [selecting(f'has({MODEL}) && {MODEL} == "a/b"')],
    ),
    "type-mismatch": (
        [
            selecting(f'{MODEL} == "1.0.0"') + resource_slice("{model: {version: 1.0.0}}"),
            selecting(f'has({MODEL}) && {MODEL} in ["1", "2"]') + resource_slice("{gpu.example.com/model: {int: 1}}"),
            selecting(f"{MODEL} == 1") + resource_slice("{model: {bool: true}}"),
            selecting(f'"A" == {MODEL}') + resource_slice("{model: {strings: [A]}}"),
            selecting(MODEL) + resource_slice("{model: {string: A}}"),
        ],
        [
            selecting(f'{MODEL} == "1.0.0"') + resource_slice("{model: {string: 1.0.0}}"),
            selecting(f'{MODEL} == semver("1.0.0")') + resource_slice("{model: {version: 1.0.0}}"),
            selecting(f'{MODEL}.includes("A")') + resource_slice("{model: {strings: [A]}}"),
            selecting(f'{MODEL} == "A"')
            + resource_slice("{model: {string: A}}", name="a", pool="a")
            + resource_slice("{model: {int: 1}}", name="b", pool="b"),
            selecting(f'{MODEL} == "A"'),
            selecting(f'{MODEL} == "A"') + resource_slice("{other: {int: 1}}"),
            selecting('device.driver == "gpu.example.com"') + resource_slice("{model: {int: 1}}"),
        ],
    ),
    "matches-nothing": (
        [
            selecting(f'{MODEL} == "B"') + resource_slice("{model: {string: A}}"),
            selecting('device.driver == "nic.example.com"') + resource_slice("{model: {string: A}}"),
            device_class('device.driver == "nic.example.com"') + resource_slice("{model: {string: A}}"),
        ],
        [
            selecting(f'{MODEL} == "A"') + resource_slice("{model: {string: A}}"),
            selecting(f'{MODEL} == "B"'),
            claim(request()) + resource_slice("{model: {string: A}}"),
            selecting("nonsense(") + resource_slice("{model: {string: A}}"),
        ],
    ),
    "claim-too-large": (
        [
            claim(request("count: 33\n")),
            claim(request("count: 33\n"), kind="ResourceClaimTemplate"),
            claim("requests:\n" + "".join(f"- {{name: r{n}, exactly: {{deviceClassName: c, count: 11}}}}\n" for n in range(3))),
            claim("requests:\n- name: a\n  firstAvailable:\n  - {name: x, deviceClassName: c, count: 40}\n"),
            claim("requests:\n- {name: a, deviceClassName: c, count: 33}\n", version="v1beta1"),
        ],
        [
            claim(request("count: 32\n")),
            claim(request("allocationMode: All\n")),
            claim(
                "requests:\n- name: a\n  firstAvailable:\n  - {name: x, deviceClassName: c, count: 40}\n"
                "  - {name: y, deviceClassName: c, count: 2}\n"
            ),
        ],
    ),
    "toleration-eviction": (
        [
            claim(request(TOLERATION % "")),
            claim(request("tolerations:\n- {operator: Exists}\n- {key: b, operator: Exists, effect: NoExecute}\n")),
            claim(request("tolerations:\n- {key: a, value: x}\n- {key: a, value: y, effect: NoExecute}\n")),
        ],
        [
            claim(request(TOLERATION % ", effect: NoExecute")),
            claim(request(TOLERATION % ", effect: NoSchedule")),
            claim(request("tolerations:\n- {key: a, operator: Exists}\n- {key: a, operator: Exists, effect: NoExecute}\n")),
            claim(request("tolerations:\n- {key: a, value: x}\n- {operator: Exists, effect: NoExecute}\n")),
            claim(request("tolerations:\n- {key: a, value: x}\n- {key: a, value: x, effect: NoExecute}\n")),
        ],
    ),
    "admin-access": (
        [claim(request("adminAccess: true\n"))],
        [claim(request("adminAccess: false\n")), claim(request("adminAccess: true\n")) + NAMESPACE],
    ),
    "unused-derived-attribute": (
        [
            claim(request(DERIVED)),
            claim(request(DERIVED) + "constraints:\n- matchAttribute: derived/other\n"),
            claim(request(DERIVED) + "constraints:\n- {requests: [nic], matchAttribute: derived/numa}\n"),
        ],
        [
            claim(request(DERIVED) + "constraints:\n- matchAttribute: derived/numa\n"),
            claim(request(DERIVED) + "constraints:\n- {requests: [gpu], distinctAttribute: derived/numa}\n"),
        ],
    ),
    "constraint-attribute": (
        [
            claim(request("count: 2\n") + "constraints:\n- matchAttribute: gpu.example.com/numa\n")
            + resource_slice("{model: {string: A}}"),
            claim(request("count: 2\n") + "constraints:\n- distinctAttribute: nic.example.com/model\n")
            + resource_slice("{model: {string: A}}"),
        ],
        [
            claim(request("count: 2\n") + "constraints:\n- matchAttribute: gpu.example.com/numa\n"),
            claim(request("count: 2\n") + "constraints:\n- matchAttribute: gpu.example.com/model\n")
            + resource_slice("{model: {string: A}}"),
            claim(request("count: 2\n") + "constraints:\n- matchAttribute: resource.kubernetes.io/pcieRoot\n")
            + resource_slice("{resource.kubernetes.io/pcieRoot: {string: A}}"),
            claim(request(DERIVED) + "constraints:\n- matchAttribute: derived/numa\n")
            + resource_slice("{model: {string: A}}"),
        ],
    ),
    "parameters-blanks": (
        [
            ('{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "a"}, "spec": {"devices": '
            '{"config": [{"opaque": {"driver": "a.b", "parameters": {"a": 1}}}]}}}'),
        ],
        [
            ('{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "a"}, "spec": {"devices": '
            '{"config": [{"opaque": {"driver": "a.b", "parameters": {"a b":"c \\" d"}}}]}}}'),
            ('{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "a", "resourceVersion": '
            '"5"}, "spec": {"devices": {"config": [{"opaque": {"driver": "a.b", "parameters": {"a": 1}}}]}}}'),
            claim(request() + OPAQUE),
        ],
    ),
    "standard-attribute": (
        [
            resource_slice("{pciRoot: {string: 'pci0000:00'}}"),
            resource_slice("{gpu.example.com/pci_bus_id: {string: '0000:01:00.0'}}"),
            resource_slice("{numaNode: {int: 0}}"),
            claim(request("count: 2\n") + "constraints:\n- matchAttribute: gpu.example.com/pcieRoot\n"),
            selecting('device.attributes["resource.kubernetes.io"].numa == 0'),
            selecting('has(device.attributes["resource.kubernetes.io"].pciRoot)'),
            selecting('device.attributes["resource.kubernetes.io"].?pci_root.orValue("") == "a"'),
        ],
        [
            resource_slice("{resource.kubernetes.io/pcieRoot: {string: 'pci0000:00'}}"),
            resource_slice("{pciRoot: {string: a}, resource.kubernetes.io/pcieRoot: {string: 'pci0000:00'}}"),
            resource_slice("{model: {string: A}}"),
            claim(request("count: 2\n") + "constraints:\n- matchAttribute: resource.kubernetes.io/pcieRoot\n"),
            claim(request(DERIVED) + "constraints:\n- matchAttribute: derived/numa\n"),
            selecting('has(device.attributes["resource.kubernetes.io"].numaNode)'),
            selecting('has(device.attributes["gpu.example.com"].numa)'),
            selecting('device.attributes["resource.kubernetes.io"].'),
        ],
    ),
    "incomplete-pool": (
        [resource_slice("{}", count=2)],
        [
            resource_slice("{}"),
            resource_slice("{}", count=2, name="a") + resource_slice("{}", count=2, name="b").replace("gpu-0", "gpu-1"),
            resource_slice("{}", name="a") + resource_slice("{}", name="b", driver="nic.example.com"),
        ],
    ),
    "taint-rule-selector": (
        [taint_rule("deviceSelector: {}"), taint_rule("deviceSelector: {driver: ''}"), taint_rule("")],
        [
            taint_rule("deviceSelector: {driver: a.example.com}"),
            taint_rule("deviceSelector: {pool: node-1}"),
            taint_rule("deviceSelector: {device: gpu-0}"),
        ],
    ),
    "taint-rule-gone-field": (
        [taint_rule("deviceSelector: {deviceClassName: a}"), taint_rule("deviceSelector: {driver: a.b, selectors: []}")],
        [taint_rule("deviceSelector: {driver: a.example.com}")],
    ),
    "node-name": (
        [
            pod("nodeName: n\nresourceClaims:\n- {name: a, resourceClaimName: b}\n"),
            ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  template:\n    spec:\n"
            "      nodeName: n\n      resourceClaims:\n      - {name: a, resourceClaimName: b}\n"),
            ("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: d}\nspec:\n  jobTemplate:\n    spec:\n      template:\n"
            "        spec:\n          nodeName: n\n          resourceClaims:\n          - {name: a, resourceClaimName: b}\n"),
        ],
        [
            pod("nodeName: n\ncontainers: []\n"),
            pod("nodeSelector: {kubernetes.io/hostname: n}\nresourceClaims:\n- {name: a, resourceClaimName: b}\n"),
            pod("nodeName: n\nresourceClaims:\n- {name: a, resourceClaimName: b}\n").replace("---", "status: {phase: Running}"),
        ],
    ),
    "other-namespace": (
        [
            claim(request(), meta=IN_TEAM) + pod(using("claim")),
            claim(request(), kind="ResourceClaimTemplate", name="gpus", meta=IN_TEAM) + FROM_TEMPLATE,
            claim(request(), meta=IN_TEAM) + pod(using("claim")).replace("v1\nkind: Pod", POD_GROUP),
        ],
        [
            claim(request()) + pod(using("claim")),
            claim(request(), meta=IN_TEAM) + pod(using("claim"), namespace="team"),
            claim(request(), meta=IN_TEAM) + claim(request()) + pod(using("claim")),
            pod(using("somewhere-else")),
            claim(request(), kind="ResourceClaimTemplate", name="gpus") + FROM_TEMPLATE,
        ],
    ),
    "generated-claim": (
        [
            claim(request(), name="maker-gpu-x7k2p", meta=GENERATED_META) + pod(using("maker-gpu-x7k2p")),
            claim(request(), name="m-gpu-x7k2p", meta="annotations: {resource.kubernetes.io/pod-claim-name: gpu}\n")
            + pod(using("m-gpu-x7k2p")),
            claim(request(), name="maker-gpu-x7k2p", meta=GENERATED_META)
            + pod(using("maker-gpu-x7k2p"), name="maker").replace("v1\nkind: Pod", POD_GROUP),
            FROM_TEMPLATE + pod(using("maker-gpu-x7k2p")),
        ],
        [
            claim(request()) + pod(using("claim")),
            claim(request(), name="maker-gpu-x7k2p", meta=GENERATED_META) + pod(using("maker-gpu-x7k2p"), name="maker"),
            claim(request(), name="m-gpu-x7k2p", meta="annotations: {resource.kubernetes.io/pod-claim-name: gpu}\n")
            + pod(using("m-gpu-x7k2p"), name="m"),
            FROM_TEMPLATE + pod(using("shared")),
            FROM_TEMPLATE + pod(using("maker-gpu-x7k2p"), namespace="team"),
        ],
    ),
    "deprecated-version": (
        [
            claim("requests:\n- {name: a, deviceClassName: c}\n", version="v1beta1"),
            claim(request(), version="v1beta2"),
            taint_rule("deviceSelector: {driver: a.b}", version="v1alpha3"),
            taint_rule("deviceSelector: {driver: a.b}", version="v1beta2"),
        ],
        [claim(request()), taint_rule("deviceSelector: {driver: a.b}")],
    ),
}  # fmt: skip

PARAMETERS = [
    pytest.param(rule, given, text, id=f"{rule}-{'given' if given else 'not-given'}-{number}")
    for rule, cases in CASES.items()
    for given, texts in zip((True, False), cases, strict=True)
    for number, text in enumerate(texts)
]


def names(report: lint.Report) -> set[str]:
    return {finding.rule for finding in report.findings if finding.severity == lint.Severity.WARNING}


@pytest.mark.parametrize(("rule", "given", "text"), PARAMETERS)
def test_warnings(lint_text: Lint, rule: str, given: bool, text: str) -> None:
    assert (rule in names(lint_text(text, all_gates=True))) == given


def test_every_rule_has_both_kinds_of_cases() -> None:
    assert {rule.name for rule in lint.RULES} == set(CASES)
    assert all(positive and negative for positive, negative in CASES.values())


@pytest.mark.parametrize(
    ("version", "text", "expected"),
    [
        ("1.34", claim("requests:\n- {name: a, deviceClassName: c}\n", version="v1beta1"), False),
        ("1.35", claim("requests:\n- {name: a, deviceClassName: c}\n", version="v1beta1"), True),
        ("1.35", claim(request(), version="v1beta2"), False),
        ("1.36", taint_rule("deviceSelector: {driver: a.b}", version="v1beta2"), False),
        ("1.35", taint_rule("deviceSelector: {driver: a.b}", version="v1alpha3"), False),
        ("1.36", taint_rule("deviceSelector: {driver: a.b}", version="v1alpha3"), True),
    ],
)
def test_deprecation_depends_on_the_version(lint_text: Lint, version: str, text: str, expected: bool) -> None:
    assert ("deprecated-version" in names(lint_text(text, version=version))) == expected


def test_rules_lost_their_fields_in_1_35_and_numa_became_standard_in_1_37(lint_text: Lint) -> None:
    gone = taint_rule("deviceSelector: {deviceClassName: a}", version="v1alpha3")
    assert "taint-rule-gone-field" not in names(lint_text(gone, version="1.34"))
    assert "taint-rule-gone-field" in names(lint_text(gone, version="1.35"))
    assert "standard-attribute" not in names(lint_text(resource_slice("{numaNode: {int: 0}}"), version="1.36"))


def test_warnings_on_expressions_point_into_them(lint_text: Lint) -> None:
    text = selecting(f'device.driver == "nic.example.com" && {MODEL} == "1.2.3"')
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "nic.example.com" in each)
    column = text.splitlines()[line - 1].index(".model") + 1
    places = {each.rule: (each.line, each.column) for each in lint_text(text).findings}
    assert places == {"unguarded-attribute": (line, column), "version-as-text": (line, column + len(".model "))}


def test_the_lists_of_rules_see_across_files(lint_text: Lint) -> None:
    report = lint_text(claim(request(), meta=IN_TEAM), pod(using("claim")))
    [finding] = [finding for finding in report.findings if finding.rule == "other-namespace"]
    assert (finding.file, finding.line) == ("file-1.yaml", 7)
    assert finding.path == "spec.resourceClaims[0].resourceClaimName"
