"""Nothing waits for ever, and no part's trouble becomes another's: what device drivers and API servers can do to us."""

import asyncio
import errno
import io
import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from drakit.driver import PermanentError, Preparation, Prepared
from drakit.driver.health import cut
from drakit.driver.journal import PREPARED, Record
from drakit.files import Filesystem

STUBBORN = """
import asyncio, sys
from drakit.driver import Driver, run

class Stubborn(Driver):
    name = "gpu.example.com"

    def devices(self):
        return []

    async def changes(self):
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                print("not cancelled", file=sys.stderr, flush=True)
            if False:
                yield

run(Stubborn())
"""

STUCK = """
import asyncio
from drakit.driver import Driver, run
from drakit.driver.application import Application

class Stuck(Driver):
    name = "gpu.example.com"

    def devices(self):
        return []

async def leave(application):
    await asyncio.Event().wait()

Application._leave = leave  # as a disk that no longer answers does it
run(Stuck())
"""

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: secret}}]
"""

NO_TEXT = os.fsdecode(b"/dev/\xff\xfe")
"""A file name that is no UTF-8, as Python shows it."""


async def test_p6_an_api_server_that_does_not_answer_is_told_before_the_deadline(node: Any) -> None:
    _, kubelet = await node.start()
    claim = node.claim("c", "gpu-0")
    node.server.faults.delay(30, resource="resourceclaims", name=claim.name)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await kubelet.prepare(claim, deadline=1.3)
    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    assert "get resource claims: the API server has not answered" in (caught.value.details() or "")


@pytest.fixture(name="unlogged")
def _unlogged() -> Iterator[None]:
    """Captured records are part of a test's report, and that must be UTF-8 to travel between processes."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("unlogged")
@pytest.mark.parametrize("permanent", [False, True])
async def test_p11_errors_that_are_no_text_reach_the_kubelet(node: Any, driver: Any, permanent: Any) -> None:
    def prepare(_: Any) -> Any:
        raise (PermanentError if permanent else OSError)(f"cannot open {NO_TEXT}")

    driver.on_prepare = prepare
    _, kubelet = await node.start(driver)
    bad, good = node.claim("bad", "gpu-0"), node.claim("good", "gpu-1", driver="other.example.com")
    reply = await kubelet.prepare(bad, good)
    assert r"cannot open /dev/\udcff\udcfe" in reply[bad.uid].error
    assert "nothing is allocated from driver" in reply[good.uid].error


async def test_p11_errors_of_several_lines_are_one_line_for_the_kubelet(node: Any, driver: Any) -> None:
    def prepare(_: Any) -> Any:
        raise PermanentError("\n  tool failed:\n\n    no device\r\n")

    driver.on_prepare = prepare
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0")
    assert (await kubelet.prepare(claim))[claim.uid].error == "tool failed:; no device"


def test_h2_messages_that_are_no_text_do_not_end_the_stream() -> None:
    assert cut(NO_TEXT) == r"/dev/\udcff\udcfe"


def test_records_with_errors_that_are_no_text_are_not_lost() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.getLogger().handlers[0].formatter)
    handler.emit(logging.makeLogRecord({"name": "x", "levelno": logging.ERROR, "levelname": "ERROR", "msg": NO_TEXT}))
    assert json.loads(stream.getvalue())["msg"] == NO_TEXT


@pytest.mark.parametrize("answer", [True, 1, {"removed": 1}, "done"])
async def test_trap_7_whatever_unprepare_answers_the_claim_goes(node: Any, driver: Any, answer: Any) -> None:
    driver.on_unprepare = lambda _: None

    class Answering(type(driver)):  # type: ignore[misc]
        def unprepare(self, claim: Any) -> Any:
            super().unprepare(claim)
            return answer

    _, kubelet = await node.start(Answering())
    claim = node.claim("c", "gpu-0")
    await kubelet.prepare(claim)
    assert await kubelet.unprepare(claim) == {claim.uid: ""}
    assert node.files() == []


async def test_plain_functions_may_answer_coroutines(node: Any, driver: Any) -> None:
    """A decorator hides that a hook is a coroutine function."""
    loops = []

    class Decorated(type(driver)):  # type: ignore[misc]
        def prepare(self, claim: Any) -> Any:
            async def answer() -> Any:
                loops.append(asyncio.get_running_loop())
                return Preparation([Prepared(device) for device in claim.devices], state="kept")

            return answer()

    decorated = Decorated()
    _, kubelet = await node.start(decorated)
    claim = node.claim("c", "gpu-0")
    assert (await kubelet.prepare(claim))[claim.uid].error == ""
    assert loops == [asyncio.get_running_loop()]
    await kubelet.unprepare(claim)
    assert [ref.state for ref in decorated.refs] == ["kept"]


@pytest.mark.parametrize("coroutine", [False, True])
async def test_a_hooks_own_timeout_is_not_ours(node: Any, driver: Any, coroutine: Any) -> None:
    def fail(_: Any) -> Any:
        raise TimeoutError("the device does not answer")

    async def fail_later(claim: Any) -> Any:
        fail(claim)

    driver.on_prepare = fail_later if coroutine else fail
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0")
    text = (await kubelet.prepare(claim))[claim.uid].error
    assert text == "prepare of the device driver failed: TimeoutError: the device does not answer"


async def test_g1_records_of_a_hook_say_whose_claim_it_is(node: Any, driver: Any, caplog: Any) -> None:
    def prepare(_: Any) -> Any:
        raise ValueError("broken")

    driver.on_prepare = prepare
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0")
    with caplog.at_level("ERROR"):
        await kubelet.prepare(claim)
    (record,) = [r.msg for r in caplog.records if isinstance(r.msg, dict) and r.msg.get("event") == "hook failed"]
    assert (record["claim"], record["claim_uid"]) == ("default/c", claim.uid)


async def test_records_may_be_listed_while_they_change(node: Any) -> None:
    application, _ = await node.start()
    end = threading.Event()
    view = application.ledger._view

    def change() -> None:
        number = 0
        while not end.is_set():
            number += 1
            view.records[f"u{number % 50}-{number}"] = Record(namespace="n", name="c", uid="u", phase=PREPARED)
            view.records.pop(f"u{(number - 40) % 50}-{number - 40}", None)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(2000):
            assert all(record.uid == "u" for record in application.ledger.records.values())
    finally:
        end.set()
        thread.join()


async def test_a_publisher_that_fails_takes_nothing_from_prepare(node: Any, eventually: Any) -> None:
    application = node.application()

    async def fail(_: Any) -> None:
        raise ValueError("a defect")

    application.publishing.run = fail
    await application.start()
    kubelet = node.kubelet(application)
    await eventually(lambda: "publish" in application.supervisor.failing)
    claim = node.claim("c", "gpu-0")
    assert (await kubelet.prepare(claim))[claim.uid].error == ""
    assert "publish is down: ValueError: a defect" in application.unready()


class ReadOnly(Filesystem):
    """Nothing can be created in the CDI directory while `on`."""

    on = False

    def create(self, path: Any, data: bytes, mode: int = 0o600) -> None:
        if self.on and "/cdi/" in str(path):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        super().create(path, data, mode)


async def test_recorded_15_files_that_cannot_be_restored_are_one_record(node: Any, caplog: Any) -> None:
    fs = ReadOnly()
    application, kubelet = await node.start(fs=fs)
    await kubelet.prepare(node.claim("c", "gpu-0"))
    for path in (node.root / "cdi").iterdir():
        path.unlink()
    fs.on = True
    with caplog.at_level("ERROR"):
        assert [await application.restorer.check() for _ in range(3)] == [0, 0, 0]
    logged = [r.msg for r in caplog.records if isinstance(r.msg, dict) and "cannot be restored" in r.msg["event"]]
    assert len(logged) == 1
    fs.on = False
    assert await application.restorer.check() == 2


async def test_pains_46_a_permanent_error_is_logged_once_however_often_the_kubelet_asks(
    node: Any, driver: Any, caplog: Any
) -> None:
    def refuse(_: Any) -> Any:
        raise PermanentError("contradictory")

    driver.on_prepare = refuse
    application, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0")
    with caplog.at_level("ERROR"):
        for _ in range(3):
            assert (await kubelet.prepare(claim))[claim.uid].error == "contradictory"
    logged = [r.msg for r in caplog.records if isinstance(r.msg, dict) and r.msg.get("event") == "claim failed"]
    assert [(record["err"], record["permanent"]) for record in logged] == [("contradictory", True)]
    assert b'drakit_claim_errors_total{operation="prepare",type="permanent"} 3.0' in application.metrics.exposition()
    await kubelet.unprepare(claim)
    with caplog.at_level("ERROR"):
        await kubelet.prepare(claim)
    logged = [r.msg for r in caplog.records if isinstance(r.msg, dict) and r.msg.get("event") == "claim failed"]
    assert len(logged) == 2


async def test_g6_a_defect_of_ours_is_one_clear_line(node: Any, monkeypatch: Any) -> None:
    application, kubelet = await node.start()

    async def fetch(_: Any) -> Any:
        raise KeyError("spec")

    monkeypatch.setattr(application.lookup, "fetch", fetch)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await kubelet.prepare(node.claim("c", "gpu-0"))
    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    assert caught.value.details() == "internal error of the driver: KeyError: 'spec'"


@pytest.mark.parametrize(("script", "message"), [(STUBBORN, "part does not end"), (STUCK, "ending without it")])
async def test_pains_36_what_cannot_be_ended_does_not_hold_back_the_end(
    node: Any, eventually: Any, script: Any, message: Any
) -> None:
    settings = node.settings()
    config = node.root / "kubeconfig"
    config.write_text(KUBECONFIG)
    log = node.root / "log"
    environment = {
        **os.environ,
        "NODE_NAME": "node-a",
        "CDI_ROOT": settings.cdi_root,
        "KUBELET_REGISTRAR_DIRECTORY_PATH": settings.kubelet_registrar_directory_path,
        "KUBELET_PLUGINS_DIRECTORY_PATH": settings.kubelet_plugins_directory_path,
        "KUBECONFIG": str(config),
        "DRAIN_TIMEOUT": "0.2",
    }
    with log.open("w") as stream:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, env=environment, stdout=stream, stderr=stream
        )
    try:
        await eventually(lambda: "listening" in log.read_text() or process.returncode is not None, 20)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 15) == 0
        assert message in log.read_text()
        assert not [path for path in node.root.rglob("*") if path.is_socket()]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
