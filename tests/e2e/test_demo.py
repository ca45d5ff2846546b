"""drakit demo as its users start it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "drakit.cli", "demo"]


def test_every_step_is_as_it_should_be() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=40, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"All 13 steps are as they should be \((\d+\.\d) s\)\.", done.stdout)
    for word in (
        "00000-gpu.example.com-n1",
        "allocated,reserved",
        "exactly:",
        "v1beta1",
        "GPU_DEVICE_0: gpu-0",
        "uuid",
    ):
        assert word in done.stdout
    assert done.stderr == ""
    assert "\033[" not in done.stdout  # no colours when it is no terminal


def test_a_step_that_fails_ends_with_1(tmp_path: Path) -> None:
    # A driver that cannot start: its kubelet directory's path is too long for a socket.
    long = tmp_path / ("d" * 90)
    long.mkdir()
    done = subprocess.run(
        COMMAND, capture_output=True, text=True, timeout=40, check=False, env={**os.environ, "TMPDIR": str(long)}
    )
    assert done.returncode == 1
    assert "FAILED at step 1" in done.stdout
    assert "107" in done.stdout  # the driver's own words


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose sockets fit into 107 bytes, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="dk") as path:
        yield Path(path)


def test_a_signal_leaves_nothing_behind(short_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(short_path)}
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        pid = next(int(match[1]) for line in process.stdout if (match := re.search(r"ok pid (\d+)", line)))
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(20) == 130
    assert list(short_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_wrong_use() -> None:
    done = subprocess.run([*COMMAND, "--form", "v2"], capture_output=True, text=True, timeout=40, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "drakit: --form: 'v2' is not one of v1, v1beta1, both\n"


@pytest.fixture
def kept() -> Iterator[dict[str, str]]:
    """The environment for kubectl of a demo that was told to stay, and its example manifest."""
    process = subprocess.Popen([*COMMAND, "--keep", "--form", "v1"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found: dict[str, str] = {}
    try:
        for line in process.stdout:
            if match := re.search(r"export KUBECONFIG=(\S+)", line):
                found["KUBECONFIG"] = match[1]
            if match := re.search(r"kubectl delete -f (\S+)", line):
                found["MANIFEST"] = match[1]
                break
        yield found
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert not Path(found["KUBECONFIG"]).exists()
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


MARKER = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: marker}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.example.com}}]}}
"""


class Kubectl:
    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment}

    def __call__(self, *words: str, text: str | None = None) -> str:
        done = subprocess.run(
            ["kubectl", *words],
            input=text,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env=self.environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def watch(self, resource: str) -> "subprocess.Popen[str]":
        """A watch that is surely open: it has shown an object that was made after its start."""
        watch = subprocess.Popen(
            ["kubectl", "get", resource, "--watch"], stdout=subprocess.PIPE, text=True, env=self.environment
        )
        self("create", "-f", "-", text=MARKER)
        assert watch.stdout is not None
        next(line for line in watch.stdout if line.startswith("marker"))
        self("delete", resource, "marker")
        return watch


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on the PATH")
def test_kept_for_kubectl(kept: dict[str, str]) -> None:
    kubectl = Kubectl({"KUBECONFIG": kept["KUBECONFIG"]})
    assert "gpu.example.com" in kubectl("get", "resourceslices,deviceclasses")
    watch = kubectl.watch("resourceclaims")
    try:
        for manifest in (kept["MANIFEST"], kept["MANIFEST"].replace("-v1.", "-v1beta1.")):
            assert "pod/example-claim created" in kubectl("apply", "-f", manifest)
            kubectl("wait", "pod/example-claim", "--for=condition=Ready", "--timeout=20s")
            assert "allocated,reserved" in kubectl("get", "resourceclaims")
            assert "deleted" in kubectl("delete", "-f", manifest)
            kubectl("wait", "resourceclaims", "--all", "--for=delete", "--timeout=20s")
        assert kubectl("get", "resourceclaims") == ""
    finally:
        watch.terminate()
        output = watch.communicate(timeout=10)[0]
    states = [line.split()[1] for line in output.splitlines() if line.startswith("example-claim-")]
    assert states[0] == "pending"
    assert "allocated,reserved" in states
    assert states[-1] == "pending"
