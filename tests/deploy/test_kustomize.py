"""The kustomize base fits the code: flags, environment, paths, probes, verbs, names."""

import argparse
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from drakit.cli import options, run

BASE = Path(__file__).parents[2] / "deploy/base"
Manifest = dict[str, Any]


@pytest.fixture(name="manifests", scope="module")
def _manifests() -> list[Manifest]:
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    texts = [(BASE / name).read_text() for name in kustomization["resources"]]
    return [manifest for text in texts for manifest in yaml.safe_load_all(text)]


def of_kind(manifests: list[Manifest], kind: str) -> Manifest:
    (found,) = [manifest for manifest in manifests if manifest["kind"] == kind]
    return found


@pytest.fixture(name="pod")
def _pod(manifests: list[Manifest]) -> Manifest:
    spec: Manifest = of_kind(manifests, "DaemonSet")["spec"]["template"]["spec"]
    return spec


@pytest.fixture(name="container")
def _container(pod: Manifest) -> Manifest:
    (container,) = pod["containers"]
    assert isinstance(container, dict)
    return container


@pytest.fixture(name="arguments")
def _arguments(container: Manifest) -> argparse.Namespace:
    """What `drakit run` makes of the DaemonSet's arguments and environment."""
    command, *words = container["args"]
    assert command == "run"
    parser = options.Parser(prog="drakit run")
    run.add_arguments(parser)
    arguments = parser.parse_args(words)
    options.resolve(arguments, {"NODE_NAME": "node-a", "POD_UID": "0f8fad5b-d9cb-469f-a165-70867728950e"})
    assert isinstance(arguments, argparse.Namespace)
    return arguments


def test_the_flags_are_known_and_the_environment_reaches_them(
    container: Manifest, arguments: argparse.Namespace
) -> None:
    fields = {entry["name"]: entry["valueFrom"]["fieldRef"]["fieldPath"] for entry in container["env"]}
    assert fields == {"NODE_NAME": "spec.nodeName", "POD_UID": "metadata.uid"}
    assert arguments.node_name == "node-a"
    assert arguments.pod_uid.startswith("0f8fad5b")


def test_every_host_path_has_the_same_path_inside_r3(
    pod: Manifest, container: Manifest, arguments: argparse.Namespace
) -> None:
    host = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    inside = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert host == inside
    assert set(host.values()) == {
        arguments.kubelet_registrar_directory_path,
        arguments.kubelet_plugins_directory_path,
        arguments.cdi_root,
    }


def test_probes_ask_the_ports_that_the_flags_open(container: Manifest, arguments: argparse.Namespace) -> None:
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"health": arguments.healthcheck_port, "metrics": arguments.metrics_port}
    assert container["startupProbe"]["grpc"]["port"] == arguments.healthcheck_port
    assert container["livenessProbe"]["grpc"] == {"port": arguments.healthcheck_port, "service": "liveness"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}


def test_the_pod_has_time_to_drain(pod: Manifest, arguments: argparse.Namespace) -> None:
    assert pod["terminationGracePeriodSeconds"] > arguments.drain_timeout


def test_nothing_is_granted_beyond_root_in_kubelets_directories(pod: Manifest, container: Manifest) -> None:
    context = container["securityContext"]
    assert not context["privileged"]
    assert not context["allowPrivilegeEscalation"]
    assert context["readOnlyRootFilesystem"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


def test_surge_updates_need_sockets_with_the_pods_uid_r34(manifests: list[Manifest]) -> None:
    rolling = of_kind(manifests, "DaemonSet")["spec"]["updateStrategy"]["rollingUpdate"]
    assert rolling == {"maxSurge": 1, "maxUnavailable": 0}


def test_names_fit_each_other(manifests: list[Manifest], pod: Manifest, arguments: argparse.Namespace) -> None:
    account = of_kind(manifests, "ServiceAccount")["metadata"]["name"]
    binding = of_kind(manifests, "ClusterRoleBinding")
    assert pod["serviceAccountName"] == account
    assert [subject["name"] for subject in binding["subjects"]] == [account]
    assert binding["roleRef"]["name"] == of_kind(manifests, "ClusterRole")["metadata"]["name"]
    device_class = of_kind(manifests, "DeviceClass")
    assert device_class["metadata"]["name"] == arguments.driver_name
    (selector,) = device_class["spec"]["selectors"]
    assert selector["cel"]["expression"] == f'device.driver == "{arguments.driver_name}"'


def test_kustomize_renders_it_with_one_version_and_the_recommended_labels() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not on the PATH")
    rendered = subprocess.run([kubectl, "kustomize", str(BASE)], check=True, capture_output=True, text=True).stdout
    manifests = list(yaml.safe_load_all(rendered))
    pod = of_kind(manifests, "DaemonSet")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "drakit:0.1.0"
    assert all(manifest["metadata"]["labels"]["app.kubernetes.io/name"] == "drakit" for manifest in manifests)
    selector = of_kind(manifests, "DaemonSet")["spec"]["selector"]["matchLabels"]
    assert selector.items() <= pod["metadata"]["labels"].items()
