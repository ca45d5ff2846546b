"""Device health towards the kubelet: one hub keeps the last state of every device, each stream begins with all of it.

The kubelet forgets everything when a stream ends, also one of another instance (H5, H10), and takes a device for
Unknown after its timeout (H8): so full reports are repeated, whether or not anything changed.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import structlog

from drakit._proto import health_v1_pb2, health_v1_pb2_grpc, health_v1alpha1_pb2, health_v1alpha1_pb2_grpc
from drakit.clock import Clock
from drakit.driver.plugin import Driver, HealthReport

__all__ = ["HealthHub", "HealthV1", "HealthV1alpha1", "cut"]

MESSAGE_LIMIT = 1021  # the kubelet cuts 1024 bytes and adds dots, and breaks characters doing so (recorded 17)
DEFAULT_TIMEOUT_SECONDS = 30
UNSUPPORTED = "device health reporting is not supported by this driver"

_STATES = {"Unknown": 0, "Healthy": 1, "Unhealthy": 2}

_log = structlog.stdlib.get_logger("drakit.driver.health")


def cut(message: str) -> str:
    """At most 1021 bytes, whole characters."""
    return message.encode(errors="backslashreplace")[:MESSAGE_LIMIT].decode(errors="ignore")


class HealthHub:
    """The last report of every device.

    Args:
        driver: asked for reports.
        pool: of reports that name none.
        clock: for repeating.
    """

    def __init__(self, driver: Driver, pool: str, clock: Clock) -> None:
        self._driver = driver
        self._pool = pool
        self._clock = clock
        self._reports: dict[tuple[str, str], tuple[HealthReport, int]] = {}
        self._changed = asyncio.Event()

    @property
    def supported(self) -> bool:
        """Whether the driver reports health at all."""
        return type(self._driver).health is not Driver.health

    async def run(self) -> None:
        """Take in the driver's reports until they end.

        When they fail, nothing is known any more: what is no longer repeated becomes Unknown at the kubelet (H8).
        """
        reports = self._driver.health()
        if reports is None:
            return
        try:
            async for batch in reports:
                self.report(batch)
        except Exception:
            self._reports.clear()
            raise

    def report(self, batch: Sequence[HealthReport]) -> None:
        """Take in reports; what they do not mention stays."""
        seconds = int(self._clock.now().timestamp())
        for report in batch:
            self._reports[report.pool or self._pool, report.device] = (report, seconds)
        self._changed.set()
        self._changed = asyncio.Event()

    async def stream(self) -> AsyncIterator[list[tuple[str, HealthReport, int]]]:
        """All devices at once and again after each change, at least three times within the shortest timeout."""
        while True:
            changed = self._changed
            if self._reports:
                yield [(pool, report, seconds) for (pool, _), (report, seconds) in self._reports.items()]
            try:
                await self._clock.timeout(changed.wait(), self._period())
            except TimeoutError:
                continue

    def _period(self) -> float:
        timeouts = [report.timeout_seconds or DEFAULT_TIMEOUT_SECONDS for report, _ in self._reports.values()]
        return max(1.0, min([*timeouts, DEFAULT_TIMEOUT_SECONDS]) / 3)


class _Wire:
    _messages: Any

    def __init__(self, hub: HealthHub) -> None:
        self._hub = hub

    async def NodeWatchResources(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802, ARG002 - wire name
        """Send reports until the kubelet goes away."""
        if not self._hub.supported:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, UNSUPPORTED)
        async for reports in self._hub.stream():
            yield self._messages.NodeWatchResourcesResponse(devices=[self._device(*one) for one in reports])

    def _device(self, pool: str, report: HealthReport, seconds: int) -> Any:
        return self._messages.DeviceHealth(
            device=self._messages.DeviceIdentifier(pool_name=pool, device_name=report.device),
            health=_STATES[report.health],
            last_updated_time=seconds,
            health_check_timeout_seconds=report.timeout_seconds or 0,
            message=cut(report.message),
        )


class HealthV1(_Wire, health_v1_pb2_grpc.DRAResourceHealthServicer):
    """v1.DRAResourceHealth."""

    _messages = health_v1_pb2


class HealthV1alpha1(_Wire, health_v1alpha1_pb2_grpc.DRAResourceHealthServicer):
    """v1alpha1.DRAResourceHealth: kubelet 1.36 opens it on every plugin (H7)."""

    _messages = health_v1alpha1_pb2
