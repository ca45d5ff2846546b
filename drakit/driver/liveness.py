"""The gRPC health service on a TCP port: alive means that our own two sockets answer (R39)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from drakit._proto import dra_v1_pb2, dra_v1_pb2_grpc, pluginregistration_pb2, pluginregistration_pb2_grpc

__all__ = ["Liveness", "LivenessServer"]

CALL_SECONDS = 5.0
SERVICES = ("", "liveness")

_log = structlog.stdlib.get_logger("drakit.driver.liveness")


class Liveness(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # grpc_health has no types
    """Calls GetInfo and an empty NodePrepareResources through the socket files; never the API server.

    Args:
        registration: path of the registration socket.
        service: path of the service socket.
        hanging: says why the process cannot recover by itself, "" while it can.
    """

    def __init__(self, registration: Path, service: Path, hanging: Callable[[], str]) -> None:
        self._registration = registration
        self._service = service
        self._hanging = hanging

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 - wire name
        """SERVING or NOT_SERVING; NOT_FOUND for unknown services."""
        if request.service not in SERVICES:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"unknown service {request.service!r}")
        reason = self._hanging() or await self._probe()
        if reason:
            _log.error("not alive", err=reason)
        status = health_pb2.HealthCheckResponse
        return status(status=status.NOT_SERVING if reason else status.SERVING)

    async def _probe(self) -> str:
        try:
            async with _channel(self._registration) as channel:
                stub = pluginregistration_pb2_grpc.RegistrationStub(channel)  # type: ignore[no-untyped-call]
                await stub.GetInfo(pluginregistration_pb2.InfoRequest(), timeout=CALL_SECONDS)
            async with _channel(self._service) as channel:
                plugin = dra_v1_pb2_grpc.DRAPluginStub(channel)  # type: ignore[no-untyped-call]
                await plugin.NodePrepareResources(dra_v1_pb2.NodePrepareResourcesRequest(), timeout=CALL_SECONDS)
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"
        return ""


def _channel(path: Path) -> grpc.aio.Channel:
    options = (("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost"))
    return grpc.aio.insecure_channel(f"unix:{path}", options=options)


class LivenessServer:
    """Serves `Liveness` on a port."""

    def __init__(self, address: str, port: int, liveness: Liveness) -> None:
        self._address = address
        self._liveness = liveness
        self.port = port
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the port is taken.
        """
        server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        health_pb2_grpc.add_HealthServicer_to_server(self._liveness, server)
        try:
            self.port = server.add_insecure_port(f"{_host(self._address)}:{self.port}")
        except RuntimeError as error:
            raise OSError(f"cannot listen on port {self.port} for health checks: {error}") from error
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """Stop at once."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None


def _host(address: str) -> str:
    """As gRPC wants it before a port; "" = all addresses."""
    return f"[{address or '::'}]" if not address or ":" in address else address
