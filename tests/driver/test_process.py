"""drakit run as a real process: bad input, signals, kills (issue 2 'Bad input' and 'Done when'; pains 36)."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from drakit.simulator.apiserver import FakeAPIServer

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: secret}}]
"""


class Process:
    """One `drakit run`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self._log = log

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    async def wait(self, seconds: float = 15.0) -> int:
        return await asyncio.wait_for(self.process.wait(), seconds)

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]

    @property
    def log(self) -> str:
        return self._log.read_text()


@pytest.fixture(name="secure")
async def _secure() -> AsyncIterator[FakeAPIServer]:
    async with FakeAPIServer() as server:
        server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}})
        yield server


@pytest.fixture(name="launch")
async def _launch(node: Any, root: Path, secure: FakeAPIServer) -> AsyncIterator[Any]:
    """Starts processes with in-cluster style credentials; kills what is left."""
    node.server = secure
    environment = {**os.environ, **secure.service_account(root / "sa"), "NODE_NAME": "node-a"}
    started: list[Process] = []

    async def launch(*flags: str, **variables: str) -> Process:
        settings = node.settings()
        log = root / f"log-{len(started)}"
        with log.open("w") as stream:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "drakit.cli",
                "run",
                f"--service-account-directory={root / 'sa'}",
                f"--cdi-root={settings.cdi_root}",
                f"--kubelet-registrar-directory-path={settings.kubelet_registrar_directory_path}",
                f"--kubelet-plugins-directory-path={settings.kubelet_plugins_directory_path}",
                "--log-format=json",
                *flags,
                env={**environment, **variables},
                stdout=stream,
                stderr=stream,
            )
        started.append(Process(process, log))
        return started[-1]

    yield launch
    for process in started:
        if process.process.returncode is None:
            process.kill()
        with contextlib.suppress(TimeoutError):
            await process.wait()


@pytest.fixture(name="listening")
def _listening(node: Any, eventually: Any) -> Any:
    async def wait(process: Process) -> Any:
        """Until the process says that it listens; a kubelet for it."""
        await eventually(
            lambda: any(r["msg"] == "listening" for r in process.records) or process.process.returncode is not None, 20
        )
        assert process.process.returncode is None, process.log
        return node.kubelet(node.application())

    return wait


async def test_sigkill_between_prepare_and_unprepare_leaves_nothing(
    node: Any, launch: Any, listening: Any, eventually: Any
) -> None:
    process = await launch()
    kubelet = await listening(process)
    await eventually(lambda: node.server.list("resourceslices"))
    claim = node.claim("c", "gpu-0")
    first = await kubelet.prepare(claim)
    assert first[claim.uid].error == ""

    process.kill()
    assert await process.wait() == -signal.SIGKILL

    again = await launch()
    kubelet = await listening(again)
    assert await kubelet.prepare(claim) == first
    assert await kubelet.unprepare(claim) == {claim.uid: ""}
    assert node.files() == []
    again.kill(signal.SIGTERM)
    assert await again.wait() == 0
    assert [path.name for path in (node.root / "reg").iterdir()] == []


async def test_pains_36_sigterm_ends_with_0_and_takes_the_sockets_away(node: Any, launch: Any, listening: Any) -> None:
    process = await launch(POD_UID="uid-1")
    await listening(process)
    process.kill(signal.SIGTERM)
    assert await process.wait() == 0
    settings = node.settings()
    assert not list(Path(settings.kubelet_registrar_directory_path).iterdir())
    assert not [path for path in settings.plugin_directory.iterdir() if path.is_socket()]
    assert [record["msg"] for record in process.records][-2:] == ["stopping", "stopped"]


async def test_the_whole_configuration_is_logged_once_and_no_token(root: Path, launch: Any, listening: Any) -> None:
    process = await launch("--log-level=debug", "--metrics-port=0", "--healthcheck-port=0")
    await listening(process)
    started = [record for record in process.records if record["msg"] == "starting"]
    assert len(started) == 1
    assert (started[0]["node_name"], started[0]["metrics_port"]) == ("node-a", 0)
    assert {"ts", "level", "logger", "msg"} <= started[0].keys()
    assert (root / "sa" / "token").read_text().strip() not in process.log


async def test_one_process_is_enough_for_one_set_of_sockets(launch: Any, listening: Any) -> None:
    first = await launch()
    await listening(first)
    second = await launch()
    assert await second.wait(30) == 1
    assert "another process serves" in second.log
    assert first.process.returncode is None


@pytest.mark.parametrize(
    ("flags", "variables", "line"),
    [
        (["--nod-name=x"], {}, "unknown argument --nod-name=x: did you mean --node-name?"),
        ([], {"NODE_NAME": ""}, "--node-name is missing: give it, or set NODE_NAME"),
        (["--driver-name=GPU"], {}, "driver name 'GPU' is not a lower-case DNS subdomain"),
        (["--kubeconfig=/nowhere"], {}, "kubeconfig /nowhere is not a file"),
        (["--metrics-port=x"], {}, "--metrics-port: "),
        (["--metrics-port=70000"], {}, "--metrics-port: 70000 is no port"),
        (["--metrics-port=9", "--healthcheck-port=9"], {}, "--healthcheck-port and --metrics-port are both 9"),
        (["--log-level=loud"], {}, "--log-level: 'loud' is not one of debug, info, warning, error"),
        ([], {"LOG_FORMAT": "xml"}, "environment variable LOG_FORMAT: 'xml' is not one of"),
        (["--cdi-root=relative"], {}, "--cdi-root must be an absolute path"),
        (["--cdi-root=/proc/cdi"], {}, "cannot keep CDI specs in /proc/cdi"),
        (["--kubelet-plugins-directory-path=/proc/x"], {}, "cannot write in /proc/x/gpu.example.com"),
        (["--kubelet-registrar-directory-path=/" + "x" * 100], {}, "the kernel allows 107"),
        (["--pod-uid=../x"], {}, "--pod-uid: '../x' is not a UID"),
        (["--service-account-directory=/nowhere"], {}, "cannot read /nowhere/token"),
        (["--config=/nowhere.yaml"], {}, "cannot read config file /nowhere.yaml"),
    ],
)
def test_bad_input_is_one_line_and_exit_2_before_anything_starts(  # noqa: PLR0917 - parameters and fixtures
    root: Path, flags: Any, variables: Any, line: Any, capsys: Any, monkeypatch: Any
) -> None:
    from drakit import cli

    (root / "kubeconfig").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    for name, value in {"NODE_NAME": "node-a", **variables}.items():
        monkeypatch.setenv(name, value)
    defaults = [
        f"--kubeconfig={root / 'kubeconfig' if 'service' not in str(flags) else ''}",
        f"--cdi-root={root / 'cdi'}",
        f"--kubelet-registrar-directory-path={root / 'reg'}",
        f"--kubelet-plugins-directory-path={root / 'plugins'}",
    ]
    given = {flag.partition("=")[0] for flag in flags}
    words = ["run", *(flag for flag in defaults if flag.partition("=")[0] not in given), *flags]
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1
    assert error.startswith("drakit: ")
    assert not list(root.rglob("*.sock"))


def test_unknown_configuration_keys_get_a_suggestion(root: Path, capsys: Any) -> None:
    from drakit import cli

    (root / "c.yaml").write_text("nod-name: x\n")
    assert cli.main(["run", f"--config={root / 'c.yaml'}"]) == 2
    assert "unknown key 'nod-name': did you mean node-name?" in capsys.readouterr().err


def test_a_name_that_is_not_the_drivers_is_refused(node: Any, driver: Any, capsys: Any) -> None:
    from drakit.driver import run

    with pytest.raises(SystemExit) as ended:
        run(driver, node.settings(driver_name="other.example.com"))
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "the driver's name is fixed, --driver-name (DRIVER_NAME) other.example.com is not it" in error
    assert not node.root.joinpath("plugins").exists()
