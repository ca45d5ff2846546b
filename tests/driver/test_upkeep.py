"""State that outlives things: crashes, vanished files, broken records, claims the API lost, upgrades (pains 5.1)."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from drakit.driver import journal
from drakit.driver.application import StartError
from drakit.driver.journal import PREPARED, Identity
from drakit.files import Filesystem
from drakit.simulator.clock import ManualClock


def record_path(node: Any, claim: Any) -> Path:
    path: Path = node.root / "plugins/gpu.example.com/claims" / claim.namespace / claim.name / f"{claim.uid}.json"
    return path


class TestCrash:
    """A process that dies between two calls, or in the middle of one."""

    async def test_pains_10_11_state_survives(self, node: Any, driver: Any) -> None:
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        first = await kubelet.prepare(claim)
        await node.crash(application)
        _, kubelet = await node.start(driver)
        assert await kubelet.prepare(claim) == first
        assert driver.prepared == [claim.uid]
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        assert node.files() == []

    async def test_pains_4_killed_while_the_hook_runs(self, node: Any, driver: Any, eventually: Any) -> None:
        gate = threading.Event()
        driver.on_prepare = lambda _: gate.wait(10) and []
        application, kubelet = await node.start(driver)
        claim, rival = node.claim("c", "gpu-0"), node.claim("rival", "gpu-0")
        call = asyncio.create_task(kubelet.prepare(claim))
        await eventually(lambda: driver.prepared)
        await node.crash(application)
        await asyncio.gather(call, return_exceptions=True)
        gate.set()
        assert journal.decode(record_path(node, claim).read_bytes(), record_path(node, claim)).phase == "preparing"

        driver.on_prepare = lambda _: []
        _, kubelet = await node.start(driver)
        assert "in use by claim default/c" in (await kubelet.prepare(rival))[rival.uid].error
        assert (await kubelet.prepare(claim))[claim.uid].error == ""
        assert driver.prepared == [claim.uid] * 2

    async def test_recorded_20_killed_while_the_hook_runs_and_never_prepared_again(
        self, node: Any, driver: Any, eventually: Any
    ) -> None:
        gate = threading.Event()
        driver.on_prepare = lambda _: gate.wait(10) and []
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        call = asyncio.create_task(kubelet.prepare(claim))
        await eventually(lambda: driver.prepared)
        await node.crash(application)
        await asyncio.gather(call, return_exceptions=True)
        gate.set()
        _, kubelet = await node.start(driver)
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        assert driver.unprepared == [claim.uid]
        assert node.files() == []

    async def test_what_killed_processes_leave_is_swept_up(self, node: Any, driver: Any) -> None:
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        await node.crash(application)
        kept = node.files()
        claims, cdi = record_path(node, claim).parents[2], node.root / "cdi"
        (claims / "default" / "c" / ".x.tmp").write_text("half")
        (claims / "default" / "gone").mkdir()
        (claims / "default" / "gone" / "0c8f4e0e.unpreparing").write_text("")
        (cdi / ".gpu.example.com_claim_x.json.1234.tmp").write_text("half")
        (cdi / "gpu.example.com_claim_0c8f4e0e.json").write_text("{}")
        (cdi / "other.example.com_claim_0c8f4e0e.json").write_text("{}")
        await node.start(driver)
        assert node.files() == sorted([*kept, "cdi/other.example.com_claim_0c8f4e0e.json"])


class TestRestoring:
    """Recorded 15, pains 1: CDI files must come back by themselves."""

    @pytest.mark.parametrize("what", ["file", "directory", "metadata", "metadata alone"])
    async def test_recorded_15_vanished_files_come_back(self, node: Any, driver: Any, what: Any) -> None:
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        files = {name: (node.root / name).read_bytes() for name in node.files()}
        cdi = node.root / "cdi"
        doomed = [cdi / f"gpu.example.com_claim_{claim.uid}.json"] if what == "file" else [*cdi.iterdir()]
        if what == "metadata alone":
            doomed = []
        if what.startswith("metadata"):
            doomed += (node.root / "plugins").rglob("metadata.json")
        for path in doomed:
            path.unlink()
        if what == "directory":
            cdi.rmdir()
        assert await application.restorer.check() >= 1
        assert {name: (node.root / name).read_bytes() for name in node.files()} == files
        assert driver.prepared == [claim.uid]

    async def test_restored_by_the_clock_alone(self, node: Any, eventually: Any) -> None:
        clock = ManualClock()
        _, kubelet = await node.start(clock=clock)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        path = node.root / "cdi" / f"gpu.example.com_claim_{claim.uid}.json"
        path.unlink()
        await clock.advance(5)
        await eventually(path.exists)

    async def test_nothing_is_written_while_all_is_there(self, node: Any) -> None:
        application, kubelet = await node.start()
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        assert await application.restorer.check() == 0

    async def test_only_prepared_claims_of_this_boot_are_restored(self, node: Any, driver: Any) -> None:
        before, kubelet = await node.start(driver, boot_id="boot-1")
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        await node.crash(before)
        for path in (node.root / "cdi").iterdir():
            path.unlink()
        application, _ = await node.start(driver, boot_id="boot-2")
        assert await application.restorer.check() == 0

    async def test_a_claim_that_is_being_unprepared_is_left_alone(self, node: Any, driver: Any) -> None:
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        driver.on_unprepare = lambda _: 1 / 0
        await kubelet.unprepare(claim)
        for path in (node.root / "cdi").iterdir():
            path.unlink()
        assert await application.restorer.check() == 0


class TestBroken:
    """Pains 2: a broken record costs one claim some work, and nobody else anything."""

    @pytest.mark.parametrize(
        "content", [b"", b"{", b'{"format":1,"checksum":"crc32:0","record":{}}', bytes(range(255, 55, -1))]
    )
    async def test_pains_2_quarantine_and_rebuild(self, node: Any, driver: Any, content: Any, eventually: Any) -> None:
        application, kubelet = await node.start(driver)
        claim, other = node.claim("c", "gpu-0"), node.claim("other", "gpu-1")
        first = await kubelet.prepare(claim)
        second = await kubelet.prepare(other)
        await node.crash(application)
        record_path(node, claim).write_bytes(content)

        application, kubelet = await node.start(driver)
        assert await kubelet.prepare(other) == second
        quarantine = node.root / "plugins/gpu.example.com/quarantine"
        assert [path.read_bytes() for path in quarantine.iterdir()] == [content]
        await eventually(lambda: driver.prepared.count(claim.uid) == 2)
        assert await kubelet.prepare(claim) == first
        assert driver.prepared.count(claim.uid) == 2
        assert "drakit_quarantined_records_total 1.0" in application.metrics.exposition().decode()
        await eventually(lambda: node.server.list("events"))
        assert {event["reason"] for event in node.server.list("events")} == {"ClaimRecordBroken"}
        assert await kubelet.unprepare(claim) == {claim.uid: ""}

    async def test_pains_2_a_rebuild_that_fails_does_not_undo_what_a_pod_may_be_using(
        self, node: Any, driver: Any
    ) -> None:
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        first = await kubelet.prepare(claim)
        await node.crash(application)
        record_path(node, claim).write_bytes(b"")
        prepare = driver.on_prepare

        def busy(_: Any) -> Any:
            raise OSError("busy")

        driver.on_prepare = busy
        application, kubelet = await node.start(driver)
        assert "busy" in (await kubelet.prepare(claim))[claim.uid].error
        assert driver.unprepared == []
        assert list((node.root / "cdi").iterdir())
        driver.on_prepare = prepare
        await application.reconciler.check()
        assert application.ledger.records[claim.uid].phase == PREPARED
        assert await kubelet.prepare(claim) == first
        assert await kubelet.unprepare(claim) == {claim.uid: ""}

    async def test_a_broken_record_can_be_unprepared_without_the_api(self, node: Any, driver: Any) -> None:
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        await node.crash(application)
        record_path(node, claim).write_bytes(b"")
        node.server.faults.fail(503, times=None)
        _, kubelet = await node.start(driver)
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        assert driver.unprepared == [claim.uid]
        assert [name for name in node.files() if "quarantine" not in name] == []

    async def test_newer_formats_stop_the_start_and_nothing_is_lost(self, node: Any, driver: Any) -> None:
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        await node.stop(application)
        path = record_path(node, claim)
        raw = b'{"anything":1}'
        newer = b'{"format":2,"checksum":"%b","record":%b}' % (journal._checksum(2, raw).encode(), raw)
        path.write_bytes(newer)
        with pytest.raises(StartError, match="has format 2, this release understands up to 1: run the release that"):
            await node.application(driver).start()
        assert path.read_bytes() == newer
        assert not application.settings.service_socket.exists()

    async def test_foreign_names_among_the_records_are_passed_by(self, node: Any, driver: Any) -> None:
        claims = node.root / "plugins/gpu.example.com/claims"
        for name in ("stray", "default/stray", "default/c/not_a_uid.json", "Default/c/u.json"):
            path = claims / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("garbage")
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        assert (await kubelet.prepare(claim))[claim.uid].error == ""
        assert (claims / "default/c/not_a_uid.json").exists()


class TestReconciling:
    """Pains 6: claims deleted or replaced while nobody told us."""

    async def prepared(self, node: Any, driver: Any, clock: Any) -> tuple[Any, Any, Any]:
        application, kubelet = await node.start(driver, clock=clock, reconcile_grace=300.0)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        return application, kubelet, claim

    async def test_pains_6_a_deleted_claim_is_unprepared_after_the_grace_period(self, node: Any, driver: Any) -> None:
        clock = ManualClock()
        application, _, claim = await self.prepared(node, driver, clock)
        node.server.delete("resourceclaims", "c", "default")
        await application.reconciler.check()
        clock._elapsed += 299
        await application.reconciler.check()
        assert driver.unprepared == []
        clock._elapsed += 1
        await application.reconciler.check()
        assert driver.unprepared == [claim.uid]
        assert node.files() == []

    async def test_pains_6_a_replaced_claim_too(self, node: Any, driver: Any) -> None:
        clock = ManualClock()
        application, _, claim = await self.prepared(node, driver, clock)
        node.server.delete("resourceclaims", "c", "default")
        node.claim("c", "gpu-3")
        await application.reconciler.check()
        clock._elapsed += 300
        await application.reconciler.check()
        assert driver.unprepared == [claim.uid]

    async def test_pains_6_never_while_the_api_cannot_be_reached(self, node: Any, driver: Any) -> None:
        clock = ManualClock()
        application, _, _ = await self.prepared(node, driver, clock)
        node.server.faults.fail(403, times=None)
        for _ in range(3):
            with pytest.raises(Exception, match="403"):
                await application.reconciler.check()
            clock._elapsed += 1000
        assert driver.unprepared == []

    async def test_a_claim_that_lives_is_left_alone(self, node: Any, driver: Any) -> None:
        clock = ManualClock()
        application, _, _ = await self.prepared(node, driver, clock)
        for _ in range(3):
            await application.reconciler.check()
            clock._elapsed += 1000
        assert driver.unprepared == []


class TestUpgrade:
    """R34-R36, pains 7: two processes share the state."""

    async def test_either_instance_may_be_called(self, node: Any, driver: Any) -> None:
        _, old = await node.start(driver, pod_uid="old")
        _, new = await node.start(driver, pod_uid="new")
        claims = [node.claim(f"c{index}", f"gpu-{index}") for index in range(6)]
        for index, claim in enumerate(claims):
            assert (await (old, new)[index % 2].prepare(claim))[claim.uid].error == ""
        for index, claim in enumerate(claims):
            assert await (new, old)[index % 2].unprepare(claim) == {claim.uid: ""}
        assert node.files() == []

    async def test_exclusivity_holds_across_processes(self, node: Any, driver: Any) -> None:
        _, old = await node.start(driver, pod_uid="old")
        _, new = await node.start(driver, pod_uid="new")
        claims = [node.claim(f"c{index}", "gpu-0") for index in range(8)]
        replies = await asyncio.gather(*((old, new)[index % 2].prepare(claim) for index, claim in enumerate(claims)))
        errors = [reply[claim.uid].error for reply, claim in zip(replies, claims, strict=True)]
        assert sum(error == "" for error in errors) == 1

    async def test_one_claim_is_never_worked_on_twice(self, node: Any, driver: Any, eventually: Any) -> None:
        gate, running = threading.Event(), []

        def prepare(claim: Any) -> Any:
            running.append(claim.uid)
            assert len(running) == 1
            assert gate.wait(10)
            running.clear()
            return []

        driver.on_prepare = prepare
        _, old = await node.start(driver, pod_uid="old")
        _, new = await node.start(driver, pod_uid="new")
        claim = node.claim("c", "gpu-0")
        calls = [asyncio.create_task(kubelet.prepare(claim)) for kubelet in (old, new)]
        await eventually(lambda: running)
        await asyncio.sleep(0.03)
        gate.set()
        first, second = await asyncio.gather(*calls)
        assert first == second
        assert driver.prepared == [claim.uid]

    async def test_pains_7_many_parallel_changes_lose_nothing(self, node: Any, driver: Any) -> None:
        instances = [await node.start(driver, pod_uid=name) for name in ("old", "new")]
        claims = [node.claim(f"c{index}", f"gpu-{index}") for index in range(60)]
        await asyncio.gather(*(instances[index % 2][1].prepare(claim) for index, claim in enumerate(claims)))
        for application, _ in instances:
            assert set((await application.ledger.read()).records) == {claim.uid for claim in claims}
        await asyncio.gather(
            *(instances[index % 2][1].unprepare(claim) for index, claim in enumerate(claims)),
            *(application.restorer.check() for application, _ in instances),
        )
        assert node.files() == []

    async def test_exactly_one_publishes_the_newer_one_first(self, node: Any, driver: Any) -> None:
        old, _ = await node.start(driver, pod_uid="old")
        assert old.instances.claim_publishing()
        new, _ = await node.start(driver, pod_uid="new")
        assert old.instances.claim_publishing()
        assert new.instances.claim_publishing()
        assert not old.instances.claim_publishing()
        await node.crash(new)
        assert old.instances.claim_publishing()
        newest, _ = await node.start(driver, pod_uid="newest")
        assert newest.instances.claim_publishing()
        await node.stop(newest)
        assert old.instances.claim_publishing()

    async def test_a_replaced_lock_file_is_noticed(self, node: Any, driver: Any) -> None:
        _, old = await node.start(driver, pod_uid="old")
        (node.root / "plugins/gpu.example.com/state.lock").unlink()
        _, new = await node.start(driver, pod_uid="new")
        claims = [node.claim(f"c{index}", f"gpu-{index}") for index in range(4)]
        for index, claim in enumerate(claims):
            assert (await (old, new)[index % 2].prepare(claim))[claim.uid].error == ""
        for index, claim in enumerate(claims):
            assert await (new, old)[index % 2].unprepare(claim) == {claim.uid: ""}
        assert node.files() == []


async def test_fsyncs_are_counted(node: Any, driver: Any, counting: Any) -> None:
    """Two durable records and their directories; unprepare needs one directory."""
    _, kubelet = await node.start(driver, fs=counting)
    node.server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "quiet"}})
    claims = [node.claim(f"c{index}", f"gpu-{index}") for index in range(3)]
    await kubelet.prepare(claims[0])
    counting.clear()
    await kubelet.prepare(claims[1])
    assert (counting["sync"], counting["sync_directory"]) == (2, 3)
    counting.clear()
    await kubelet.unprepare(claims[1])
    assert (counting["sync"], counting["sync_directory"]) == (0, 1)


async def test_identity_prints_like_klog() -> None:
    assert str(Identity("ns", "c", "u")) == "ns/c:u"


class Unreadable(Filesystem):
    """One file cannot be read, as on a bad sector."""

    bad = "nothing"

    def read(self, path: Any, *, follow: bool = False) -> bytes:
        if self.bad in str(path):
            raise OSError(5, "Input/output error", str(path))
        return super().read(path, follow=follow)


async def test_an_unreadable_record_stops_nobody_else(node: Any, driver: Any) -> None:
    fs = Unreadable()
    before, kubelet = await node.start(driver)
    claim, other = node.claim("c", "gpu-0"), node.claim("other", "gpu-1")
    await kubelet.prepare(claim)
    first = await kubelet.prepare(other)
    await node.crash(before)
    fs.bad = claim.uid
    _, kubelet = await node.start(driver, fs=fs)
    assert await kubelet.prepare(other) == first
    assert driver.prepared.count(other.uid) == 1
    fs.bad = "nothing"
    assert (await kubelet.prepare(claim))[claim.uid].error == ""
    assert await kubelet.unprepare(claim, other) == {claim.uid: "", other.uid: ""}
