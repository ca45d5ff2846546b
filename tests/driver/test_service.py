"""The DRAPlugin service as the kubelet sees it (P1-P38, recorded 07b-37, pains 5.4)."""

import asyncio
import threading
from typing import Any

import grpc
import pytest

from drakit import cdi
from drakit.driver.claims import Preparation, Prepared
from drakit.driver.errors import PermanentError


async def test_prepare_and_unprepare_leave_nothing(node: Any, driver: Any) -> None:
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0", "gpu-1")

    reply = (await kubelet.prepare(claim))[claim.uid]

    assert reply.error == ""
    assert [(d.request_names, d.pool_name, d.device_name, d.HasField("share_id")) for d in reply.devices] == [
        (["r"], "node-a", "gpu-0", False),
        (["r"], "node-a", "gpu-1", False),
    ]
    assert node.files() == [
        f"cdi/gpu.example.com_claim_{claim.uid}.json",
        f"cdi/gpu.example.com_metadata_{claim.uid}_r.json",
        f"plugins/gpu.example.com/claims/default/c/{claim.uid}.json",
        "plugins/gpu.example.com/dra-device-metadata/default_c/r/metadata.json",
    ]
    assert await kubelet.unprepare(claim) == {claim.uid: ""}
    assert node.files() == []
    assert (driver.prepared, driver.unprepared) == ([claim.uid], [claim.uid])


async def test_p12_p22_every_retry_gets_the_same_reply_and_the_hook_runs_once(node: Any, driver: Any) -> None:
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-1", "gpu-0")
    replies = [(await kubelet.prepare(claim))[claim.uid].SerializeToString() for _ in range(3)]
    assert len(set(replies)) == 1
    assert driver.prepared == [claim.uid]


async def test_p12_pains_1_cdi_files_come_back_with_the_next_prepare(node: Any, driver: Any) -> None:
    _, kubelet = await node.start(driver)
    claim = node.claim("c", "gpu-0")
    first = await kubelet.prepare(claim)
    files = node.files()
    for path in (node.root / "cdi").iterdir():
        path.unlink()
    assert await kubelet.prepare(claim) == first
    assert node.files() == files
    assert driver.prepared == [claim.uid]


async def test_p4_v1beta1_gives_the_same_without_share_ids(node: Any) -> None:
    _, kubelet = await node.start()
    share = "11111111-1111-1111-1111-111111111111"
    claim = node.claim("c", {"device": "gpu-0", "shareID": share})
    v1 = (await kubelet.prepare(claim))[claim.uid].devices[0]
    v1beta1 = (await kubelet.prepare_v1beta1(claim))[claim.uid].devices[0]
    assert v1.share_id == share
    assert (v1.request_names, v1.device_name, v1.cdi_device_ids) == (
        v1beta1.request_names,
        v1beta1.device_name,
        v1beta1.cdi_device_ids,
    )


async def test_r39_an_empty_request_needs_nothing(node: Any) -> None:
    _, kubelet = await node.start()
    node.server.faults.fail(503, times=None)
    assert await kubelet.prepare() == {}
    assert await kubelet.unprepare() == {}


async def test_p15_every_uid_is_answered_once(node: Any) -> None:
    _, kubelet = await node.start()
    claims = [node.claim(f"c{index}", f"gpu-{index}") for index in range(4)]
    assert set(await kubelet.prepare(*claims, claims[0])) == {claim.uid for claim in claims}
    assert set(await kubelet.unprepare(*claims, claims[0])) == {claim.uid for claim in claims}


class TestLookup:
    """P6: trouble with finding a claim fails the whole request and nothing is begun."""

    async def refused(self, node: Any, kubelet: Any, driver: Any, *claims: Any) -> Any:
        good = node.claim("good", "gpu-7")
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await kubelet.prepare(good, *claims)
        assert error.value.code() == grpc.StatusCode.UNKNOWN
        assert driver.prepared == []
        assert node.files() == []
        return error.value.details()

    async def test_missing(self, node: Any, driver: Any, wanted: Any) -> None:
        _, kubelet = await node.start(driver)
        text = await self.refused(node, kubelet, driver, wanted("ghost"))
        assert text.startswith("get resource claims: retrieve claim default/ghost: 404 NotFound")

    async def test_not_allocated(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        text = await self.refused(node, kubelet, driver, node.claim("c"))
        assert text == "get resource claims: claim default/c not allocated"

    async def test_pains_38_replaced(self, node: Any, driver: Any, wanted: Any) -> None:
        _, kubelet = await node.start(driver)
        node.claim("c", "gpu-0")
        text = await self.refused(node, kubelet, driver, wanted("c"))
        assert text == "get resource claims: claim default/c got replaced"

    async def test_allocation_is_checked_before_the_uid(self, node: Any, driver: Any, wanted: Any) -> None:
        _, kubelet = await node.start(driver)
        node.claim("c")
        assert await self.refused(node, kubelet, driver, wanted("c")) == (
            "get resource claims: claim default/c not allocated"
        )

    async def test_the_first_failure_in_the_requests_order_is_told(self, node: Any, driver: Any, wanted: Any) -> None:
        _, kubelet = await node.start(driver)
        text = await self.refused(node, kubelet, driver, node.claim("a"), wanted("b"))
        assert "default/a not allocated" in text

    async def test_an_odd_identity_never_becomes_a_path(self, node: Any, driver: Any, wanted: Any) -> None:
        _, kubelet = await node.start(driver)
        for claim in (wanted("../x"), wanted("c", uid="../../x"), wanted("c", namespace="..")):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await kubelet.prepare(claim)
            assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            with pytest.raises(grpc.aio.AioRpcError):
                await kubelet.unprepare(claim)


class TestResults:
    """P7, pains 37: only own results count."""

    async def test_results_of_other_drivers_are_left_out(self, node: Any) -> None:
        _, kubelet = await node.start()
        other = {"driver": "nic.example.com", "device": "nic-0"}
        claim = node.claim("c", other, "gpu-0", other | {"device": "nic-1"})
        assert [d.device_name for d in (await kubelet.prepare(claim))[claim.uid].devices] == ["gpu-0"]

    async def test_no_own_result_is_an_error_of_the_claim(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", {"driver": "nic.example.com", "device": "nic-0"})
        reply = (await kubelet.prepare(claim))[claim.uid]
        assert reply.error == "nothing is allocated from driver gpu.example.com"
        assert (driver.prepared, node.files()) == ([], [])

    async def test_p9_pains_42_subrequests_are_cut_to_their_base(self, node: Any) -> None:
        _, kubelet = await node.start()
        requests = [
            {
                "name": "gpu",
                "firstAvailable": [
                    {"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
                    for name in ("big", "small")
                ],
            }
        ]
        claim = node.claim("c", {"request": "gpu/small", "device": "gpu-0"}, requests=requests)
        devices = (await kubelet.prepare(claim))[claim.uid].devices
        assert [list(device.request_names) for device in devices] == [["gpu"]]

    async def test_pains_42_each_device_carries_its_request(self, node: Any) -> None:
        _, kubelet = await node.start()
        claim = node.claim("c", {"request": "a", "device": "gpu-0"}, {"request": "b", "device": "gpu-1"})
        devices = (await kubelet.prepare(claim))[claim.uid].devices
        assert [list(device.request_names) for device in devices] == [["a"], ["b"]]
        assert set(devices[0].cdi_device_ids).isdisjoint(devices[1].cdi_device_ids)

    async def test_p34_recorded_23_one_device_twice_with_distinct_shares(self, node: Any) -> None:
        _, kubelet = await node.start()
        shares = ["11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"]
        claim = node.claim("c", *({"device": "gpu-0", "shareID": share} for share in shares))
        devices = (await kubelet.prepare(claim))[claim.uid].devices
        assert [device.share_id for device in devices] == shares
        assert devices[0].cdi_device_ids[0] != devices[1].cdi_device_ids[0]

    async def test_one_device_twice_in_a_claim_by_admin_access(self, node: Any) -> None:
        _, kubelet = await node.start()
        node.server.add_namespace("admin", **{"resource.kubernetes.io/admin-access": "true"})
        requests = [
            {"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
            {"name": "b", "exactly": {"deviceClassName": "gpu", "allocationMode": "All", "adminAccess": True}},
        ]
        claim = node.claim(
            "c",
            {"request": "a", "device": "gpu-0"},
            {"request": "b", "device": "gpu-0", "adminAccess": True},
            namespace="admin",
            requests=requests,
        )
        devices = (await kubelet.prepare(claim))[claim.uid].devices
        assert [(list(d.request_names), d.device_name) for d in devices] == [(["a"], "gpu-0"), (["b"], "gpu-0")]


class TestHooks:
    """P8-P12, recorded 10, 12, 20: what hooks answer and how they fail."""

    async def test_p11_a_failing_hook_fails_its_claim_alone(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        good, bad = node.claim("good", "gpu-0"), node.claim("bad", "gpu-1")

        def prepare(claim: Any) -> Any:
            if claim.uid == bad.uid:
                raise RuntimeError("no such luck")
            return [Prepared(device) for device in claim.devices]

        driver.on_prepare = prepare
        reply = await kubelet.prepare(good, bad)
        assert reply[bad.uid].error == "prepare of the device driver failed: RuntimeError: no such luck"
        assert list(reply[bad.uid].devices) == []
        assert reply[good.uid].error == ""

    async def test_a_failed_prepare_is_rolled_back(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        driver.on_prepare = lambda _: 1 / 0
        assert "ZeroDivisionError" in (await kubelet.prepare(claim))[claim.uid].error
        assert driver.unprepared == [claim.uid]
        assert node.files() == []

    async def test_a_failed_rollback_keeps_the_device_reserved_until_a_retry(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        claim, other = node.claim("c", "gpu-0"), node.claim("other", "gpu-0")
        driver.on_prepare = lambda _: 1 / 0
        driver.on_unprepare = lambda _: 1 / 0
        assert "ZeroDivisionError" in (await kubelet.prepare(claim))[claim.uid].error
        driver.on_prepare = lambda claim: [Prepared(device) for device in claim.devices]
        assert "gpu-0" in (await kubelet.prepare(other))[other.uid].error
        driver.on_unprepare = lambda _: None
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        assert (await kubelet.prepare(other))[other.uid].error == ""

    async def test_pains_46_permanent_errors_say_so(self, node: Any, driver: Any) -> None:
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")

        def prepare(_: Any) -> None:
            raise PermanentError("modes A and B exclude each other")

        driver.on_prepare = prepare
        assert (await kubelet.prepare(claim))[claim.uid].error == "modes A and B exclude each other"
        assert 'drakit_claim_errors_total{operation="prepare",type="permanent"} 1.0' in _metrics(application)

    async def test_coroutine_hooks_run_on_the_loop(self, node: Any, driver: Any) -> None:
        class Async(type(driver)):  # type: ignore[misc]
            async def prepare(self, claim: Any) -> Any:
                self.prepared.append(asyncio.get_running_loop())
                return [Prepared(device) for device in claim.devices]

            async def unprepare(self, claim: Any) -> None:
                self.unprepared.append(asyncio.get_running_loop())

        driver = Async()
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        assert (await kubelet.prepare(claim))[claim.uid].error == ""
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        loop = asyncio.get_running_loop()
        assert (driver.prepared, driver.unprepared) == ([loop], [loop])

    async def test_a_coroutine_hook_that_hangs_is_cancelled(self, node: Any, driver: Any) -> None:
        class Hanging(type(driver)):  # type: ignore[misc]
            async def prepare(self, claim: Any) -> None:
                await asyncio.Event().wait()

        _, kubelet = await node.start(Hanging(), hook_timeout=0.05)
        claim = node.claim("c", "gpu-0")
        assert (await kubelet.prepare(claim))[claim.uid].error == "prepare of the device driver took more than 0 s"
        assert node.files() == []

    async def test_generators_run_in_the_hooks_thread(self, node: Any, driver: Any) -> None:
        threads = []

        def prepare(claim: Any) -> Any:
            for device in claim.devices:
                threads.append(threading.current_thread().name)
                yield Prepared(device)

        driver.on_prepare = prepare
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        assert threads[0].startswith("hook-")

    async def test_state_comes_back_to_unprepare(self, node: Any, driver: Any) -> None:
        driver.on_prepare = lambda claim: Preparation([Prepared(d) for d in claim.devices], state={"vf": 3})
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        await node.stop(application)
        _, kubelet = await node.start(driver)
        await kubelet.unprepare(claim)
        assert driver.refs[-1].state == {"vf": 3}
        assert [device.device for device in driver.refs[-1].devices] == ["gpu-0"]

    @pytest.mark.parametrize(
        "answer",
        [
            lambda _: Preparation(state=object()),
            lambda claim: [Prepared(claim.devices[0], cdi.ContainerEdits(env=("no equals sign",)))],
            lambda _: [object()],
            lambda _: 5,
            lambda _: None,
        ],
    )
    async def test_nonsense_from_a_hook_is_refused_and_rolled_back(self, node: Any, driver: Any, answer: Any) -> None:
        driver.on_prepare = answer
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        assert (await kubelet.prepare(claim))[claim.uid].error != ""
        assert (node.files(), driver.unprepared) == ([], [claim.uid])

    async def test_p33_a_device_without_edits_still_has_an_id_that_resolves(self, node: Any) -> None:
        _, kubelet = await node.start()
        claim = node.claim("c", "gpu-0")
        ids = (await kubelet.prepare(claim))[claim.uid].devices[0].cdi_device_ids
        container = cdi.resolve([node.root / "cdi"], ids, {"process": {"env": []}})
        assert container["process"]["env"] == ["DRAKIT_DEVICE=gpu-0"]

    async def test_long_errors_are_cut(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")

        def prepare(_: Any) -> None:
            raise PermanentError("ü" * 1_000_000)

        driver.on_prepare = prepare
        assert len((await kubelet.prepare(claim))[claim.uid].error.encode()) <= 4096


class TestExclusivity:
    """P12, P35, pains 39, recorded 14: the last line of defence against double allocation."""

    async def test_a_device_in_use_is_refused_and_the_holder_named(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        first, second = node.claim("first", "gpu-0"), node.claim("second", "gpu-0")
        await kubelet.prepare(first)
        assert (await kubelet.prepare(second))[second.uid].error == (
            f"device node-a/gpu-0 is in use by claim default/first:{first.uid}"
        )
        await kubelet.unprepare(first)
        assert (await kubelet.prepare(second))[second.uid].error == ""

    async def test_two_claims_of_one_batch_do_not_get_one_device(self, node: Any) -> None:
        _, kubelet = await node.start()
        claims = [node.claim(f"c{index}", "gpu-0") for index in range(8)]
        reply = await kubelet.prepare(*claims)
        assert sorted(bool(entry.error) for entry in reply.values()) == [False] + [True] * 7

    async def test_equal_names_in_other_pools_are_other_devices(self, node: Any) -> None:
        _, kubelet = await node.start()
        first, second = node.claim("a", "gpu-0"), node.claim("b", {"device": "gpu-0", "pool": "other"})
        assert (await kubelet.prepare(first))[first.uid].error == ""
        assert (await kubelet.prepare(second))[second.uid].error == ""

    async def test_p35_admin_access_overlaps(self, node: Any) -> None:
        node.server.add_namespace("admin", **{"resource.kubernetes.io/admin-access": "true"})
        _, kubelet = await node.start()
        owner = node.claim("owner", "gpu-0")
        asked = [{"name": "r", "exactly": {"deviceClassName": "g", "allocationMode": "All", "adminAccess": True}}]
        admin = node.claim("admin", {"device": "gpu-0", "adminAccess": True}, namespace="admin", requests=asked)
        for claim in (owner, admin):
            assert (await kubelet.prepare(claim))[claim.uid].error == ""

    async def test_distinct_shares_overlap_and_equal_ones_do_not(self, node: Any) -> None:
        _, kubelet = await node.start()
        one, two = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
        claims = [
            node.claim("a", {"device": "gpu-0", "shareID": one}),
            node.claim("b", {"device": "gpu-0", "shareID": two}),
            node.claim("c", {"device": "gpu-0", "shareID": one}),
            node.claim("d", "gpu-0"),
        ]
        errors = [(await kubelet.prepare(claim))[claim.uid].error != "" for claim in claims]
        assert errors == [False, False, True, True]

    async def test_recorded_14_trap_11_a_device_that_is_being_released_says_try_again(
        self, node: Any, eventually: Any, driver: Any
    ) -> None:
        _, kubelet = await node.start(driver)
        first, second = node.claim("first", "gpu-0"), node.claim("second", "gpu-0")
        await kubelet.prepare(first)
        release = threading.Event()
        driver.on_unprepare = lambda _: release.wait(10) and None
        leaving = asyncio.create_task(kubelet.unprepare(first))
        await eventually(lambda: driver.unprepared)
        assert (await kubelet.prepare(second))[second.uid].error == (
            f"device node-a/gpu-0 is still being released by claim default/first:{first.uid}: try again"
        )
        release.set()
        assert await leaving == {first.uid: ""}
        assert (await kubelet.prepare(second))[second.uid].error == ""

    async def test_claim_replaced_under_the_same_name(self, node: Any, driver: Any) -> None:
        """P21: the kubelet holds one claim per name, so the earlier one is over."""
        _, kubelet = await node.start(driver)
        old = node.claim("c", "gpu-0")
        await kubelet.prepare(old)
        node.server.delete("resourceclaims", "c", "default")
        new = node.claim("c", "gpu-0")
        assert (await kubelet.prepare(new))[new.uid].error == ""
        assert driver.unprepared == [old.uid]
        files = node.files()
        assert not any(old.uid in name for name in files)
        # Trap 25: the late unprepare of the old claim must not touch the new one's files.
        assert await kubelet.unprepare(old) == {old.uid: ""}
        assert node.files() == files

    async def test_a_claim_that_was_allocated_anew_is_prepared_anew(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        stored = node.server.get("resourceclaims", "c", "default")
        node.server.update({**stored, "status": {}}, subresource="status")
        stored = node.server.get("resourceclaims", "c", "default")
        result = {"request": "r", "driver": "gpu.example.com", "pool": "node-a", "device": "gpu-5"}
        node.server.update(
            {**stored, "status": {"allocation": {"devices": {"results": [result]}}}}, subresource="status"
        )
        assert [d.device_name for d in (await kubelet.prepare(claim))[claim.uid].devices] == ["gpu-5"]
        assert (driver.prepared, driver.unprepared) == ([claim.uid] * 2, [claim.uid])


class TestUnprepare:
    """P13, recorded 14, 19, 20."""

    async def test_p13_pains_12_unknown_claims_are_fine_and_no_file_is_touched(
        self, node: Any, driver: Any, wanted: Any
    ) -> None:
        _, kubelet = await node.start(driver)
        known = node.claim("c", "gpu-0")
        await kubelet.prepare(known)
        files = node.files()
        ghost = wanted("ghost")
        assert await kubelet.unprepare(ghost) == {ghost.uid: ""}
        assert (node.files(), driver.unprepared) == (files, [])

    async def test_p13_trap_7_no_api_server_is_needed(self, node: Any) -> None:
        _, kubelet = await node.start()
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        node.server.faults.fail(503, times=None)
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        assert node.files() == []

    async def test_recorded_14_the_claim_object_may_be_gone(self, node: Any) -> None:
        _, kubelet = await node.start()
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        node.server.delete("resourceclaims", "c", "default")
        assert await kubelet.unprepare(claim) == {claim.uid: ""}

    async def test_recorded_19_a_failing_unprepare_is_told_and_repeated(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        driver.on_unprepare = lambda _: 1 / 0
        assert "ZeroDivisionError" in (await kubelet.unprepare(claim))[claim.uid]
        driver.on_unprepare = lambda _: None
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        assert node.files() == []

    async def test_p20_unpreparing_again_is_fine(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        for _ in range(3):
            assert await kubelet.unprepare(claim) == {claim.uid: ""}
        assert driver.unprepared == [claim.uid]

    async def test_a_prepare_after_a_half_done_unprepare_runs_the_hook_again(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        first = await kubelet.prepare(claim)
        driver.on_unprepare = lambda _: 1 / 0
        await kubelet.unprepare(claim)
        assert await kubelet.prepare(claim) == first
        assert driver.prepared == [claim.uid] * 2


class TestOverlap:
    """Calls come twice, late, and crosswise (P29; recorded 07b, 10, 12, 13, 15, 20, 27, 34, 37)."""

    @pytest.fixture
    def gate(self, driver: Any) -> Any:
        gate = threading.Event()

        def prepare(claim: Any) -> Any:
            assert gate.wait(20)
            return [Prepared(device) for device in claim.devices]

        driver.on_prepare = prepare
        yield gate
        gate.set()

    async def test_recorded_12_34_two_prepares_at_once_are_one(
        self, node: Any, eventually: Any, driver: Any, gate: Any
    ) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        calls = [asyncio.create_task(kubelet.prepare(claim)) for _ in range(2)]
        await eventually(lambda: driver.prepared)
        gate.set()
        first, second = await asyncio.gather(*calls)
        assert first == second
        assert driver.prepared == [claim.uid]

    async def test_p29_recorded_07b_10_a_cancelled_call_goes_on_and_the_next_finds_it(
        self, node: Any, eventually: Any, driver: Any, gate: Any
    ) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        call = asyncio.create_task(kubelet.prepare(claim))
        await eventually(lambda: driver.prepared)
        call.cancel()
        again = asyncio.create_task(kubelet.prepare(claim))
        await asyncio.sleep(0.01)
        gate.set()
        assert (await again)[claim.uid].error == ""
        assert (driver.prepared, driver.unprepared) == ([claim.uid], [])

    async def test_recorded_10_a_slow_claim_answers_before_the_deadline_does(
        self, node: Any, driver: Any, gate: Any
    ) -> None:
        _, kubelet = await node.start(driver)
        slow = node.claim("c", "gpu-0")
        text = (await kubelet.prepare(slow, deadline=1.2))[slow.uid].error
        assert "prepare is still running after 0 s; the next call will find it again" in text
        gate.set()
        assert (await kubelet.prepare(slow))[slow.uid].error == ""
        assert driver.prepared == [slow.uid]

    async def test_recorded_20_unprepare_while_prepare_hangs_waits_for_it(
        self, node: Any, eventually: Any, driver: Any, gate: Any
    ) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        prepare = asyncio.create_task(kubelet.prepare(claim))
        await eventually(lambda: driver.prepared)
        unprepare = asyncio.create_task(kubelet.unprepare(claim))
        await asyncio.sleep(0.02)
        assert driver.unprepared == []
        gate.set()
        assert (await prepare)[claim.uid].error == ""
        assert await unprepare == {claim.uid: ""}
        assert node.files() == []

    async def test_recorded_27_prepare_while_unprepare_runs_waits_and_prepares_anew(
        self, node: Any, eventually: Any, driver: Any
    ) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        gate = threading.Event()
        driver.on_unprepare = lambda _: gate.wait(20) and None
        unprepare = asyncio.create_task(kubelet.unprepare(claim))
        await eventually(lambda: driver.unprepared)
        prepare = asyncio.create_task(kubelet.prepare(claim))
        await asyncio.sleep(0.02)
        assert driver.prepared == [claim.uid]
        gate.set()
        assert await unprepare == {claim.uid: ""}
        assert (await prepare)[claim.uid].error == ""
        assert driver.prepared == [claim.uid] * 2

    async def test_recorded_15_a_claim_in_use_is_not_disturbed(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        first = await kubelet.prepare(claim)
        inodes = {path: path.stat().st_ino for path in (node.root / "cdi").iterdir()}
        assert await kubelet.prepare(claim) == first
        assert {path: path.stat().st_ino for path in (node.root / "cdi").iterdir()} == inodes

    async def test_hooks_that_hang_for_ever_are_bounded_and_found_out(
        self, node: Any, eventually: Any, driver: Any, gate: Any
    ) -> None:
        application, kubelet = await node.start(driver, max_hooks=2, hook_timeout=0.01)
        claims = [node.claim(f"c{index}", f"gpu-{index}") for index in range(3)]
        hanging = [asyncio.create_task(kubelet.prepare(claim)) for claim in claims[:2]]
        await eventually(lambda: len(driver.prepared) == 2)
        assert "2 hooks of the device driver run already" in (await kubelet.prepare(claims[2]))[claims[2].uid].error
        await asyncio.sleep(0.02)
        assert "a call of the device driver has been running for" in application.hanging()
        gate.set()
        await asyncio.gather(*hanging)
        assert application.hanging() == ""
        assert (await kubelet.prepare(claims[2]))[claims[2].uid].error == ""

    async def test_recorded_24_twenty_four_claims_at_once(self, node: Any, driver: Any) -> None:
        _, kubelet = await node.start(driver)
        claims = [node.claim(f"c{index}", f"gpu-{index}") for index in range(24)]
        replies = await asyncio.gather(*(kubelet.prepare(claim) for claim in claims))
        assert all(reply[claim.uid].error == "" for reply, claim in zip(replies, claims, strict=True))
        await asyncio.gather(*(kubelet.unprepare(claim) for claim in claims))
        assert node.files() == []

    async def test_recorded_37_pains_36_stopping_finishes_what_runs(
        self, node: Any, eventually: Any, driver: Any, gate: Any
    ) -> None:
        application, kubelet = await node.start(driver)
        claim, late = node.claim("c", "gpu-0"), node.claim("late", "gpu-1")
        running = asyncio.create_task(kubelet.prepare(claim))
        await eventually(lambda: driver.prepared)
        node.applications.remove(application)
        stopping = asyncio.create_task(application.stop(10))
        await asyncio.sleep(0.01)
        assert application.settings.registration_socket.exists()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await kubelet.prepare(late)
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
        gate.set()
        assert (await running)[claim.uid].error == ""
        await stopping
        assert not application.settings.registration_socket.exists()


class TestReboot:
    """P28, recorded 34, pains 1."""

    async def test_what_another_boot_prepared_is_prepared_again_with_the_same_ids(self, node: Any, driver: Any) -> None:
        before, kubelet = await node.start(driver, boot_id="boot-1")
        claim = node.claim("c", "gpu-0")
        first = await kubelet.prepare(claim)
        await node.crash(before)
        for path in (node.root / "cdi").iterdir():
            path.unlink()
        _, kubelet = await node.start(driver, boot_id="boot-2")
        again = await asyncio.gather(kubelet.prepare(claim), kubelet.prepare(claim))
        assert [*again] == [first, first]
        assert driver.prepared == [claim.uid] * 2
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        assert node.files() == []


async def test_replies_of_many_devices_stay_small(node: Any) -> None:
    """Recorded 29: the kubelet takes 4 MiB."""
    _, kubelet = await node.start()
    claims = [
        node.claim(f"c{claim}", *({"device": f"gpu-{claim}-{index}"} for index in range(32))) for claim in range(20)
    ]
    reply = await kubelet.prepare(*claims)
    assert sum(entry.ByteSize() for entry in reply.values()) < 1 << 20


def _metrics(application: Any) -> str:
    return str(application.metrics.exposition(), "utf-8")
