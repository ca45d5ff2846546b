"""The demo's steps: each does something, waits for its effect, and checks what it sees."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from drakit import cdi, kube, metadata
from drakit.cli.demo_report import Report
from drakit.simulator.cluster import Cluster
from drakit.simulator.kubelet.decisions import pick
from drakit.simulator.runtime import Container

if TYPE_CHECKING:
    from drakit.simulator.process import DriverProcess

__all__ = ["DRIVER", "FORMS", "Scenario", "StepError", "manifest"]

DRIVER = "gpu.example.com"
FORMS = ("v1", "v1beta1")
_POD, _CONTAINER, _POD_CLAIM, _REQUEST = "example-claim", "sleep-busybox", "example", "example-claim"
_DEVICES = 8
_STEP_SECONDS = 12.0

Object = Mapping[str, Any]


class StepError(Exception):
    """A step did not come out as it should."""


def manifest(name: str) -> str:
    """One of the YAML files that come with the demo."""
    return resources.files("drakit.cli").joinpath("demo_manifests", f"{name}.yaml").read_text(encoding="utf-8")


def claim_state(claim: Object) -> str:
    """The STATE column of kubectl."""
    status = claim.get("status") or {}
    flags = {
        "deleted": claim["metadata"].get("deletionTimestamp"),
        "allocated": status.get("allocation"),
        "reserved": status.get("reservedFor"),
    }
    return ",".join(name for name, value in flags.items() if value) or "pending"


def expect(condition: object, message: str) -> None:
    """Fail the step unless `condition` holds.

    Raises:
        StepError: with `message`.
    """
    if not condition:
        raise StepError(message)


class Scenario:
    """One claim, once around, on a running cluster."""

    def __init__(self, cluster: Cluster, report: Report) -> None:
        self._cluster, self._node, self._report = cluster, cluster.node, report
        self._states: list[tuple[str, str]] = []
        self._devices: dict[str, dict[str, Any]] = {}
        self.driver: DriverProcess | None = None

    @contextlib.asynccontextmanager
    async def _step(self, title: str) -> AsyncIterator[None]:
        """A step: what takes too long has failed."""
        self._report.step(title)
        try:
            async with asyncio.timeout(_STEP_SECONDS):
                yield
        except TimeoutError:
            raise StepError(f"nothing happened for {_STEP_SECONDS:.0f} s{self._events()}") from None
        except kube.ApiError as error:
            raise StepError(f"the API server says: {error}") from error

    def _events(self) -> str:
        warnings = [event["message"] for event in self._cluster.server.list("events") if event["type"] == "Warning"]
        return "".join(f"\n       event: {message}" for message in warnings[-3:])

    # Driver and slices

    async def start_driver(self) -> None:
        """The driver's own process registers with the kubelet."""
        async with self._step("Start the driver: drakit run, a process of its own"):
            self.driver = await self._cluster.start_driver(self._node)
            plugins = self._node.kubelet.plugins
            registered = asyncio.ensure_future(plugins.registered(DRIVER))
            ended = asyncio.ensure_future(self.driver.wait())
            await asyncio.wait({registered, ended}, return_when=asyncio.FIRST_COMPLETED)
            registered.cancel()
            expect(not ended.done(), "the driver's process ended")
            ended.cancel()
            instance = pick(plugins.state, DRIVER)
            assert instance is not None
            newest = plugins.state.supported[0]
            expect(instance.version == newest, f"the kubelet chose {instance.version}, not {newest}")
            self._report.line(f"endpoint {instance.endpoint}")
            self._report.ok(
                f"pid {self.driver.pid} is registered as {instance.driver}, spoken to as {instance.version}"
            )

    async def slices(self) -> None:
        """The driver publishes its devices."""
        async with self._step("Devices are published as ResourceSlices"):
            slices = await self._cluster.until(kube.RESOURCE_SLICES, lambda found: len(_devices(found)) == _DEVICES)
            rows = [
                (item["metadata"]["name"], item["spec"]["nodeName"], DRIVER, item["spec"]["pool"]["name"])
                for item in slices
            ]
            self._report.table(("NAME", "NODE", "DRIVER", "POOL"), *rows)
            self._devices = _devices(slices)
            names = [f"gpu-{index}" for index in range(_DEVICES)]
            expect(sorted(self._devices) == names, f"devices are {', '.join(self._devices)}")
            first = self._devices["gpu-0"]
            self._report.document(first)
            expect(first["attributes"]["model"] == {"string": "LATEST-GPU-MODEL"}, "gpu-0 is of another model")
            expect(first["capacity"]["memory"] == {"value": "80Gi"}, "gpu-0 has not 80Gi of memory")
            self._report.ok(f"{_DEVICES} devices, {names[0]} to {names[-1]}")

    # One claim

    async def apply(self, form: str) -> None:
        """Template and pod, in the form of one API version."""
        template = manifest(f"resourceclaimtemplate-{form}")
        async with self._step(f"Apply ResourceClaimTemplate (resource.k8s.io/{form}) and Pod"):
            for line in template.splitlines():
                self._report.line(f"| {line}")
            if self._cluster.server.get("deviceclasses", DRIVER) is None:
                await self._cluster.apply(
                    manifest("deviceclass").replace("resource.k8s.io/v1", f"resource.k8s.io/{form}")
                )
            await self._cluster.apply(template)
            await self._cluster.apply(manifest("pod"))
            self._report.ok("accepted by the API server")

    async def allocation(self) -> tuple[dict[str, Any], str]:
        """A claim is made from the template and allocated; returns it and its device."""
        async with self._step("The claim is made, allocated and reserved"):
            claim = await self._watch_claim()
            self._report.table(("NAME", "STATE"), *self._states)
            expect(self._states[0][1] == "pending", f"the first state is {self._states[0][1]}")
            results = claim["status"]["allocation"]["devices"]["results"]
            self._report.document({"results": results, "reservedFor": claim["status"]["reservedFor"]})
            expect(len(results) == 1, f"{len(results)} devices are allocated")
            chosen = results[0]
            expect(
                (chosen["driver"], chosen["pool"], chosen["request"]) == (DRIVER, self._node.name, _REQUEST),
                f"allocated is {chosen}",
            )
            expect(chosen["device"] in self._devices, f"{chosen['device']} is not published")
            self._report.ok(f"{chosen['device']} of node {self._node.name}")
            return claim, chosen["device"]

    async def _watch_claim(self) -> dict[str, Any]:
        """Follow the claims' states until one is reserved, as `kubectl get resourceclaim -w` shows them."""
        self._states = []
        client = self._cluster.api
        async with kube.Reflector(client, kube.RESOURCE_CLAIMS) as claims:
            async for change in claims.changes():
                state = claim_state(change.object)
                self._states.append((change.object["metadata"]["name"], state))
                if state == "allocated,reserved":
                    return change.object
        raise StepError("the watch ended")

    async def container(self, claim: Object, device: str) -> Container:
        """The pod runs; its container has what the driver prepared."""
        async with self._step("The driver prepares the claim, the container starts"):
            pod = await self._cluster.pod(_POD)
            (container,) = self._node.containers(pod["metadata"]["uid"])
            expect(container.cdi_devices, "the container got no CDI devices")
            self._show_cdi(container.cdi_devices, claim["metadata"]["uid"])
            mine = {name: value for name, value in container.env.items() if name not in {"PATH", "HOSTNAME"}}
            self._report.line("")
            self._report.line(f"container {_CONTAINER} sees")
            self._report.document({"env": mine, "devices": list(container.devices), "mounts": container.mounts})
            variable = f"GPU_DEVICE_{device.removeprefix('gpu-')}"
            expect(mine.get(variable) == device, f"{variable} is not {device} in the container")
            self._report.ok(f"{variable}={device}")
            return container

    def _show_cdi(self, ids: tuple[str, ...], uid: str) -> None:
        inventory = cdi.scan((self._node.cdi,))
        expect(not inventory.errors and not inventory.conflicts, f"CDI files are broken: {inventory.errors}")
        shown: set[str] = set()
        for cdi_id in ids:
            expect(cdi_id in inventory.devices and uid in cdi_id, f"CDI device {cdi_id} is not the claim's")
            path, _, spec = inventory.devices[cdi_id]
            if path not in shown:
                shown.add(path)
                self._report.line(f"CDI spec {path}")
                self._report.document(json.loads(cdi.encode(spec)))
        self._report.line(f"injected: {', '.join(ids)}")

    async def read_metadata(self, claim: Object, container: Container, device: str) -> None:
        """The workload reads about its device (KEP-5304) through the library."""
        async with self._step("The container reads its device metadata: drakit.metadata.read"):
            base = container.path(metadata.paths.CONTAINER_BASE)
            found = metadata.read(_REQUEST, pod_claim=_POD_CLAIM, driver=DRIVER, base=str(base))
            (request,) = found.requests
            (seen,) = request.devices
            attributes = {name: _value(attribute) for name, attribute in (seen.attributes or {}).items()}
            self._report.document(
                {"driver": seen.driver, "pool": seen.pool, "name": seen.name, "attributes": attributes}
            )
            expect(
                (seen.driver, seen.pool, seen.name) == (DRIVER, self._node.name, device), f"it describes {seen.name}"
            )
            uuid = self._devices[device]["attributes"]["uuid"]["string"]
            expect(attributes.get("uuid") == uuid, f"the uuid differs from the slice's {uuid}")
            expect(found.metadata.uid == claim["metadata"]["uid"], "it is about another claim")
            self._report.ok(f"{device} has the uuid that its slice says")

    async def delete(self, claim: Object) -> None:
        """The pod goes, and everything with it."""
        name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
        async with self._step("Delete the pod: everything is given back"):
            await self._cluster.delete(kube.PODS, _POD)
            await self._cluster.gone(kube.PODS, _POD)
            await self._cluster.gone(kube.RESOURCE_CLAIMS, name)
            await self._cluster.delete(kube.RESOURCE_CLAIM_TEMPLATES, _POD_CLAIM)
            left = [str(path) for path in self._node.directory.rglob("*") if uid in str(path) or _of_claim(path, name)]
            expect(not left, f"left behind: {', '.join(left)}")
            expect(not list(self._node.cdi.iterdir()), "CDI files are left behind")
            expect(not self._node.kubelet.plugins.state.claims, "the kubelet still holds claims")
            expect(not self._node.runtime.containers(), "containers are left behind")
            self._report.ok("pod, claim, CDI spec, metadata and driver state are gone")

    async def round(self, form: str) -> None:
        """All of it in the form of one API version."""
        await self.apply(form)
        claim, device = await self.allocation()
        container = await self.container(claim, device)
        await self.read_metadata(claim, container, device)
        await self.delete(claim)

    async def stop_driver(self) -> None:
        """The driver ends well; the kubelet deletes the slices of a driver that stays away."""
        driver = self.driver
        assert driver is not None
        async with self._step("Stop the driver: SIGTERM"):
            code = await driver.stop()
            expect(code == 0, f"the driver's exit code is {code}")
            kubelet = self._node.kubelet
            sockets = [str(path) for path in kubelet.root.rglob("*") if path.is_socket()]
            expect(not sockets, f"sockets are left behind: {', '.join(sockets)}")
            await self._cluster.until(kube.RESOURCE_SLICES, lambda slices: not slices)
            self._report.ok("exit code 0, sockets and ResourceSlices are gone")


def _devices(slices: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        device["name"]: device
        for item in slices
        if item["spec"]["driver"] == DRIVER
        for device in item["spec"].get("devices") or ()
    }


def _of_claim(path: Any, name: str) -> bool:
    return any(name in part for part in path.parts)


def _value(attribute: Any) -> Any:
    """The one value that an attribute has."""
    fields = {name: getattr(attribute, name) for name in attribute.__struct_fields__}
    return next(value for value in fields.values() if value is not None)
