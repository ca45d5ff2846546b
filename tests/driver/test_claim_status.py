"""Device drivers that tell about devices in the claim's own status (P37, R38, slices 4.4; KEP-4817)."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from drakit import admission, kube, metadata
from drakit.api.meta import Condition
from drakit.driver import Claim, Device, DeviceStatus, Driver, Prepared
from drakit.driver.application import Application
from drakit.driver.claimstatus import decide
from drakit.driver.devicestatus import DeviceStatusError, verified
from drakit.driver.journal import PREPARED, Identity, PreparedDevice, Record
from drakit.driver.publishing import Publishing
from drakit.simulator.apiserver import Call, FakeAPIServer
from drakit.simulator.clock import ManualClock

NODE = "node-a"
GPU, NIC = "gpu.example.com", "nic.example.com"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SHARE = "11111111-2222-3333-4444-555555555555"
STATUS = DeviceStatus(
    conditions=(Condition(type="Ready", status="True", reason="Up"),),
    data={"slot": 3, "lanes": [1, 2]},
    network_data=metadata.NetworkData("eth1", ("10.1.0.5/24",), "02:00:00:00:00:01"),
)


def answering(status: Any = STATUS) -> Callable[[Any], list[Prepared]]:
    return lambda claim: [Prepared(device, status=status) for device in claim.devices]


def record(*devices: PreparedDevice, uid: str = "u") -> Record:
    return Record(namespace="default", name="c", uid=uid, phase=PREPARED, devices=devices)


def prepared(device: str = "gpu-0", status: DeviceStatus | None = STATUS, share: str | None = None) -> PreparedDevice:
    return PreparedDevice(request="r", pool=NODE, device=device, share_id=share, status=status)


def result(driver: str, device: str, **more: Any) -> dict[str, Any]:
    return {"request": "r", "driver": driver, "pool": NODE, "device": device, **more}


def allocated(*results: dict[str, Any], devices: Any = (), uid: str = "u") -> dict[str, Any]:
    status = {"allocation": {"devices": {"results": list(results)}}, "devices": list(devices)}
    return {"metadata": {"namespace": "default", "name": "c", "uid": uid}, "status": status}


def entries(node: Any, name: str = "c") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.server.get("resourceclaims", name, "default")["status"].get("devices", [])
    return found


def events(node: Any) -> list[dict[str, Any]]:
    return [event for event in node.server.list("events") if event["reason"].startswith("DeviceStatus")]


def writes(node: Any) -> list[Call]:
    """What drivers sent; the tests' own writes do not pass the wire."""
    return [call for call in node.server.requests.calls if call.subresource == "status"]


def mixed_claim(server: FakeAPIServer, version: str = "v1") -> str:
    """Claim c with a GPU and a NIC of two drivers, allocated on the node; its UID."""
    requests = [{"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "All"}}]
    stored = server.create(
        {
            "apiVersion": f"resource.k8s.io/{version}",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": {"requests": requests}},
        }
    )
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}
    allocation = {
        "devices": {"results": [result(GPU, "gpu-0"), result(NIC, "nic-0")]},
        "nodeSelector": {"nodeSelectorTerms": [here]},
    }
    server.update({**stored, "status": {"allocation": allocation}}, subresource="status")
    uid: str = stored["metadata"]["uid"]
    return uid


class ReportingDriver(Driver):
    """Tells about every device."""

    def __init__(self, name: str) -> None:
        self.name = name

    def devices(self) -> list[Device]:
        return [Device(name=f"{self.name.partition('.')[0]}-0")]

    def prepare(self, claim: Claim) -> list[Prepared]:
        return answering()(claim)


class TestDecide:
    """The pure part."""

    def test_one_entry_for_each_device_with_a_status(self) -> None:
        claim = allocated(result(GPU, "gpu-0"), result(GPU, "gpu-1", shareID=SHARE), result(NIC, "nic-0"))
        wanted = record(prepared(), prepared("gpu-1", DeviceStatus(data={"a": 1}), SHARE))
        body = decide(claim, wanted, GPU, NOW)
        assert body is not None
        assert body["status"]["devices"] == [
            {
                "driver": GPU,
                "pool": NODE,
                "device": "gpu-0",
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "Up",
                        "message": "",
                        "lastTransitionTime": "2026-01-02T03:04:05Z",
                    }
                ],
                "data": {"slot": 3, "lanes": [1, 2]},
                "networkData": {
                    "interfaceName": "eth1",
                    "ips": ["10.1.0.5/24"],
                    "hardwareAddress": "02:00:00:00:00:01",
                },
            },
            {"driver": GPU, "pool": NODE, "device": "gpu-1", "shareID": SHARE, "data": {"a": 1}},
        ]
        assert decide(body, wanted, GPU, NOW.replace(year=2027)) is None

    @pytest.mark.parametrize(
        "claim",
        [
            allocated(result(GPU, "gpu-0"), uid="another"),
            allocated(result(GPU, "gpu-1")),
            allocated(result(GPU, "gpu-0", shareID=SHARE)),
            allocated(result(NIC, "gpu-0")),
            {"metadata": {"uid": "u"}},
            {"metadata": {"uid": "u"}, "status": {}},
        ],
        ids=["another claim", "another device", "a share of it", "another driver's", "no status", "not allocated"],
    )
    def test_nothing_about_devices_that_the_claim_does_not_have(self, claim: dict[str, Any]) -> None:
        assert decide(claim, record(prepared()), GPU, NOW) is None

    def test_what_others_wrote_remains(self) -> None:
        binding = {"type": "Attached", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": "t"}
        foreign = {"driver": NIC, "pool": NODE, "device": "nic-0", "data": {"x": 1}, "later": True}
        own = {"driver": GPU, "pool": NODE, "device": "gpu-0", "conditions": [binding], "data": {"old": 1}}
        claim = allocated(result(GPU, "gpu-0"), result(NIC, "nic-0"), devices=[foreign, own])
        wanted = DeviceStatus(conditions=STATUS.conditions)
        body = decide(claim, record(prepared(status=wanted)), GPU, NOW)
        assert body is not None
        first, second = body["status"]["devices"]
        assert first == foreign
        assert second["conditions"][0] == binding
        assert second["conditions"][1]["type"] == "Ready"
        assert second["data"] == {"old": 1}

    @pytest.mark.parametrize(("status", "time"), [("True", "2025-01-01T00:00:00Z"), ("False", "2026-01-02T03:04:05Z")])
    def test_transition_times_move_with_the_status_alone(self, status: str, time: str) -> None:
        old = {
            "type": "Ready",
            "status": status,
            "reason": "Old",
            "message": "m",
            "lastTransitionTime": "2025-01-01T00:00:00Z",
        }
        entry = {"driver": GPU, "pool": NODE, "device": "gpu-0", "conditions": [old]}
        body = decide(allocated(result(GPU, "gpu-0"), devices=[entry]), record(prepared()), GPU, NOW)
        assert body is not None
        assert body["status"]["devices"][0]["conditions"][0]["lastTransitionTime"] == time

    def test_of_two_statuses_for_one_device_the_last_counts(self) -> None:
        claim = allocated(result(GPU, "gpu-0"), result(GPU, "gpu-0", request="admin"))
        wanted = record(prepared(status=DeviceStatus(data={"a": 1})), prepared(status=DeviceStatus(data={"b": 1})))
        body = decide(claim, wanted, GPU, NOW)
        assert body is not None
        assert [entry["data"] for entry in body["status"]["devices"]] == [{"b": 1}]
        assert decide(body, wanted, GPU, NOW) is None

    def test_the_claim_given_is_not_changed(self) -> None:
        entry = {"driver": GPU, "pool": NODE, "device": "gpu-0", "conditions": []}
        claim = allocated(result(GPU, "gpu-0"), devices=[entry])
        before = msgspec.json.encode(claim)
        decide(claim, record(prepared()), GPU, NOW)
        assert msgspec.json.encode(claim) == before


CONDITION = Condition(type="Ready", status="True", reason="Up")
BAD: list[tuple[Any, str]] = [
    ("text", "status is a str, not a DeviceStatus"),
    (DeviceStatus(data={"x": "y" * 10_240}), "status.data: Too long: may not be more than 10240 bytes"),
    (DeviceStatus(data=[1]), r"Expected `object \| null`, got `array` - at `\$.data`"),  # type: ignore[arg-type]
    (DeviceStatus(data={"x": object()}), "objects of type object is unsupported"),
    (DeviceStatus(data={"x": "\udcff"}), "surrogates not allowed"),
    (
        DeviceStatus(conditions=tuple(Condition(type=f"C{i}", status="True", reason="R") for i in range(9))),
        "status.conditions: Too many: 9: must have at most 8 items",
    ),
    (DeviceStatus(conditions=(CONDITION, CONDITION)), r"status.conditions\[1\].type: Duplicate value"),
    (DeviceStatus(conditions=(Condition(type="Ready", status="yes", reason="R"),)), "supported values: "),
    (DeviceStatus(conditions=(Condition(type="Ready", status="True"),)), r"conditions\[0\].reason: Required value"),
    (
        DeviceStatus(conditions=(Condition(type="R", status="True", reason="R", last_transition_time="noon"),)),
        r"conditions\[0\].lastTransitionTime: Invalid value: 'noon'",
    ),
    (DeviceStatus(network_data=metadata.NetworkData("e" * 257)), "interfaceName: Too long: may not be more than 256"),
    (DeviceStatus(network_data=metadata.NetworkData("", (), "a" * 129)), "hardwareAddress: Too long: .* 128 bytes"),
    (DeviceStatus(network_data=metadata.NetworkData("", ("10.0.0.1",))), r"ips\[0\]: .* valid address in CIDR form"),
    (DeviceStatus(network_data=metadata.NetworkData("", ("10.0.0.1/8",) * 2)), r"ips\[1\]: Duplicate value"),
    (
        DeviceStatus(network_data=metadata.NetworkData("", tuple(f"10.0.0.{i}/24" for i in range(17)))),
        "ips: Too many: 17: must have at most 16 items",
    ),
]


@pytest.mark.parametrize(("status", "text"), BAD)
def test_p37_what_the_api_server_would_refuse_is_told_with_its_field(status: Any, text: str) -> None:
    with pytest.raises(DeviceStatusError, match=text):
        verified(status)


class TestWriting:
    """With the driver running."""

    async def test_a_status_is_written_after_prepare_and_only_once(
        self, node: Any, driver: Any, eventually: Any
    ) -> None:
        driver.on_prepare = answering()
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0", "gpu-1")
        first = await kubelet.prepare(claim)
        await eventually(lambda: len(entries(node)) == 2 and not application.statuses.pending)
        assert [entry["device"] for entry in entries(node)] == ["gpu-0", "gpu-1"]
        assert entries(node)[0]["networkData"]["ips"] == ["10.1.0.5/24"]
        assert await kubelet.prepare(claim) == first
        await eventually(lambda: not application.statuses.pending)
        assert len(writes(node)) == 1
        assert not application.supervisor.failing

    async def test_drivers_without_statuses_ask_nothing_more(self, node: Any, driver: Any) -> None:
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        assert not application.statuses.pending
        assert node.server.requests.count("get", "resourceclaims") == 1

    async def test_a_bad_status_is_told_and_the_claim_stays_prepared(
        self, node: Any, driver: Any, eventually: Any
    ) -> None:
        driver.on_prepare = lambda claim: [
            Prepared(claim.devices[0], status=DeviceStatus(data={"x": "y" * 20_000})),
            Prepared(claim.devices[1], status=STATUS),
        ]
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0", "gpu-1")
        assert (await kubelet.prepare(claim))[claim.uid].error == ""
        await kubelet.prepare(claim)
        await eventually(lambda: events(node) and entries(node) and not application.statuses.pending)
        (event,) = events(node)
        assert event["reason"] == "DeviceStatusRefused"
        assert "device node-a/gpu-0: status.data: Too long: may not be more than 10240 bytes" in event["message"]
        assert [entry["device"] for entry in entries(node)] == ["gpu-1"]
        assert driver.unprepared == []

    async def test_an_api_server_that_fails_delays_no_prepare_and_is_asked_again(
        self, node: Any, driver: Any, eventually: Any
    ) -> None:
        driver.on_prepare = answering()
        fault = node.server.faults.fail(500, times=2, verb="update", subresource="status")
        _, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        assert (await kubelet.prepare(claim))[claim.uid].error == ""
        await eventually(lambda: entries(node))
        assert fault.left == 0

    async def test_an_answer_that_is_lost_is_read_back(self, node: Any, driver: Any, eventually: Any) -> None:
        driver.on_prepare = answering()
        node.server.faults.drop(after_work=True, verb="update", subresource="status")
        application, kubelet = await node.start(driver)
        await kubelet.prepare(node.claim("c", "gpu-0"))
        await eventually(lambda: entries(node) and not application.statuses.pending)
        assert [call for call in writes(node) if call.status == 200] == []
        assert events(node) == []

    async def test_conflicts_read_again(self, node: Any, driver: Any, eventually: Any) -> None:
        driver.on_prepare = answering()
        node.server.faults.fail(409, times=2, verb="update", subresource="status")
        application, kubelet = await node.start(driver)
        await kubelet.prepare(node.claim("c", "gpu-0"))
        await eventually(lambda: entries(node) and not application.statuses.pending)
        assert [call.status for call in writes(node)] == [409, 409, 200]
        assert node.server.requests.count("get", "resourceclaims") == 1 + 3
        assert not events(node)

    async def test_a_refusal_is_an_event_and_not_repeated(self, node: Any, driver: Any, eventually: Any) -> None:
        driver.on_prepare = answering()
        node.server.faults.fail(422, times=None, verb="update", subresource="status")
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        await eventually(lambda: events(node) and not application.statuses.pending)
        assert len(writes(node)) == 1
        assert f"default/c:{claim.uid}: 422 Invalid" in events(node)[0]["message"]

    async def test_missing_rights_are_one_event_for_all_claims(self, node: Any, driver: Any, eventually: Any) -> None:
        driver.on_prepare = answering()
        node.server.faults.fail(403, times=None, verb="update", subresource="status")
        application, kubelet = await node.start(driver)
        await kubelet.prepare(node.claim("c", "gpu-0"), node.claim("d", "gpu-1"))
        await eventually(lambda: events(node) and not application.statuses.pending)
        assert len(writes(node)) == 2
        (event,) = events(node)
        assert event["reason"] == "DeviceStatusForbidden"
        assert "grant update on resourceclaims/status" in event["message"]

    async def test_unprepared_meanwhile(self, node: Any, driver: Any, eventually: Any) -> None:
        driver.on_prepare = answering()
        clock = ManualClock()
        node.server.faults.fail(500, times=None, verb="update", subresource="status")
        application, kubelet = await node.start(driver, clock=clock)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        await eventually(lambda: writes(node))
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        node.server.faults.clear()
        assert application.statuses.pending == (Identity("default", "c", claim.uid),)
        async with asyncio.timeout(10):
            while application.statuses.pending:
                await clock.advance(1)
                await asyncio.sleep(0.002)
        assert [call.status for call in writes(node)] == [500]
        assert entries(node) == []

    @pytest.mark.parametrize("again", [False, True], ids=["gone", "of the same name"])
    async def test_the_claim_is_gone_or_another_one(self, node: Any, driver: Any, eventually: Any, again: bool) -> None:
        gate = threading.Event()

        def hook(claim: Any) -> list[Prepared]:
            gate.wait(10)
            return answering()(claim)

        driver.on_prepare = hook
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        call = asyncio.create_task(kubelet.prepare(claim))
        await eventually(lambda: driver.prepared)
        node.server.delete("resourceclaims", "c", "default")
        if again:
            node.claim("c", "gpu-0")
        gate.set()
        assert (await call)[claim.uid].error == ""
        await eventually(lambda: not application.statuses.pending)
        assert writes(node) == []
        assert events(node) == []


class TestRestart:
    """The journal knows what is still to be told."""

    async def test_a_killed_process_is_made_up_for(self, node: Any, driver: Any, eventually: Any) -> None:
        driver.on_prepare = answering()
        node.server.faults.fail(500, times=None, verb="update", subresource="status")
        application, kubelet = await node.start(driver)
        await kubelet.prepare(node.claim("c", "gpu-0"))
        await eventually(lambda: writes(node))
        await node.crash(application)
        node.server.faults.clear()
        assert entries(node) == []

        await node.start(driver)
        await eventually(lambda: entries(node))
        assert len(driver.prepared) == 1

    async def test_p28_after_a_reboot_the_claim_is_prepared_first(
        self, node: Any, driver: Any, eventually: Any
    ) -> None:
        driver.on_prepare = answering()
        application, kubelet = await node.start(driver)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        await eventually(lambda: entries(node))
        await node.crash(application)

        driver.on_prepare = answering(DeviceStatus(data={"slot": 4}))
        application, kubelet = await node.start(driver, boot_id="boot-2")
        assert not application.statuses.pending
        await kubelet.prepare(claim)
        await eventually(lambda: entries(node)[0]["data"] == {"slot": 4})

    async def test_two_processes_of_an_upgrade_and_one_of_them_unprepares(
        self, node: Any, driver: Any, eventually: Any
    ) -> None:
        driver.on_prepare = answering()
        node.server.faults.fail(500, times=None, verb="update", subresource="status")
        old, kubelet = await node.start(driver, pod_uid="old")
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        await eventually(lambda: writes(node))
        new, kubelet = await node.start(driver, pod_uid="new")
        assert old.statuses.pending
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        node.server.faults.clear()
        await eventually(lambda: not old.statuses.pending and not new.statuses.pending)
        assert {call.status for call in writes(node)} == {500}
        assert entries(node) == []


class TestTwoDrivers:
    """One claim, two drivers, two service accounts."""

    @pytest.mark.parametrize(("version", "granted"), [("1.36", True), ("1.36", False), ("1.37", True), ("1.37", False)])
    async def test_r38_each_writes_its_own_entry_with_its_own_right(
        self, node: Any, monkeypatch: Any, eventually: Any, version: str, granted: bool
    ) -> None:
        def authorizer(call: Call) -> bool:
            if call.resource != "resourceclaims" or call.subresource != "driver":
                return True
            own = call.user.rpartition(":")[2] == call.name.partition(".")[0]
            return granted and own and call.verb == "associated-node:update"

        async with FakeAPIServer(version, authorizer=authorizer) as server:
            node.server = server
            uid = mixed_claim(server)
            drivers = [await self.start(node, monkeypatch, name) for name in (GPU, NIC)]
            replies = await asyncio.gather(*(kubelet.prepare(Identity("default", "c", uid)) for _, kubelet in drivers))
            assert [reply[uid].error for reply in replies] == ["", ""]
            await eventually(lambda: not any(application.statuses.pending for application, _ in drivers), 20)
            if granted:
                assert sorted(entry["driver"] for entry in entries(node)) == [GPU, NIC]
                assert events(node) == []
            else:
                await eventually(lambda: len(events(node)) == 2)
                assert entries(node) == []
                assert {event["reason"] for event in events(node)} == {"DeviceStatusForbidden"}
            await node.close()
            node.applications.clear()
            node.kubelets.clear()

    @staticmethod
    async def start(node: Any, monkeypatch: Any, name: str) -> Any:
        """A driver with a token that is bound to the node."""
        short = name.partition(".")[0]
        directory = node.root / short
        for key, value in node.server.service_account(directory, name=short, node=NODE).items():
            monkeypatch.setenv(key, value)
        credentials = kube.in_cluster(str(directory))
        driver = ReportingDriver(name)
        application = Application(
            driver, node.settings(driver_name=name), lambda: credentials, Publishing, boot_id="boot-1"
        )
        node.applications.append(application)
        await application.start()
        return application, node.kubelet(application)


async def test_kubernetes_1_33_has_the_field_in_v1beta2(node: Any, driver: Any, eventually: Any) -> None:
    driver.on_prepare = answering()
    async with FakeAPIServer("1.33", tls=False, authenticate=False) as server:
        node.server = server
        claim = Identity("default", "c", mixed_claim(server, "v1beta2"))
        application, kubelet = await node.start(driver)
        await kubelet.prepare(claim)
        await eventually(lambda: not application.statuses.pending)
        assert [entry["driver"] for entry in entries(node)] == [GPU]
        await node.close()
        node.applications.clear()
        node.kubelets.clear()


async def test_servers_that_drop_the_field_are_told_of_once(node: Any, driver: Any, eventually: Any) -> None:
    driver.on_prepare = answering()
    gates = admission.profile("1.36") - {"DRAResourceClaimDeviceStatus"}
    async with FakeAPIServer("1.36", gates=gates, tls=False, authenticate=False) as server:
        node.server = server
        application, kubelet = await node.start(driver)
        await kubelet.prepare(node.claim("c", "gpu-0"))
        await eventually(lambda: events(node) and not application.statuses.pending)
        assert [event["reason"] for event in events(node)] == ["DeviceStatusNotKept"]
        assert len(writes(node)) == 1
        await node.close()
        node.applications.clear()
        node.kubelets.clear()
