"""Liveness over gRPC, readiness and metrics over HTTP (R39; issue 6 point 6)."""

import asyncio
import contextlib
import socket
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc


async def check(port: int, service: str = "") -> Any:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        return await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))


async def get(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return int(answer.split()[1]), answer.partition("\r\n\r\n")[2]


def _has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


class TestLiveness:
    @pytest.mark.parametrize("service", ["", "liveness"])
    async def test_r39_alive_means_that_both_sockets_answer(self, node: Any, service: Any) -> None:
        application, _ = await node.start(healthcheck_port=0)
        assert (await check(application.liveness.port, service)).status == 1

    async def test_r39_unknown_services(self, node: Any) -> None:
        application, _ = await node.start(healthcheck_port=0)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await check(application.liveness.port, "other")
        assert refused.value.code() == grpc.StatusCode.NOT_FOUND

    @pytest.mark.parametrize("path", ["service_socket", "registration_socket"])
    async def test_a_missing_socket_is_not_alive(self, node: Any, path: Any) -> None:
        application, _ = await node.start(healthcheck_port=0)
        getattr(application.settings, path).unlink()
        assert (await check(application.liveness.port)).status == 2

    async def test_the_api_server_does_not_matter(self, node: Any) -> None:
        application, _ = await node.start(healthcheck_port=0)
        node.server.faults.fail(503, times=None)
        assert (await check(application.liveness.port)).status == 1

    async def test_it_uses_the_shortened_names(self, node: Any) -> None:
        application, _ = await node.start(healthcheck_port=0, pod_uid="3d2a1c57-6c5f-4a58-a1c2-8c3f2c3b9d10")
        assert (await check(application.liveness.port)).status == 1

    @pytest.mark.skipif(not _has_ipv6(), reason="no IPv6")
    async def test_an_address_of_ipv6_is_no_riddle(self, node: Any) -> None:
        application, _ = await node.start(healthcheck_port=0, metrics_port=0, listen_address="::1")
        async with grpc.aio.insecure_channel(f"[::1]:{application.liveness.port}") as channel:
            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status == 1


class TestHttp:
    async def test_metrics(self, node: Any) -> None:
        application, kubelet = await node.start(metrics_port=0)
        claim = node.claim("c", "gpu-0")
        await kubelet.prepare(claim)
        status, body = await get(application.probes.port, "/metrics")
        assert status == 200
        assert 'drakit_requests_total{operation="prepare"} 1.0' in body
        assert 'drakit_requests_total{operation="unprepare"} 0.0' in body
        assert 'drakit_build_info{driver="gpu.example.com",version="' in body
        assert "claim=" not in body
        assert claim.uid not in body

    async def test_ready_when_registered_and_published(self, node: Any, eventually: Any) -> None:
        node.server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}})
        application, kubelet = await node.start(metrics_port=0)
        status, body = await get(application.probes.port, "/readyz")
        assert (status, "not registered by the kubelet yet" in body) == (503, True)
        await kubelet.register()
        await eventually(lambda: not application.unready())
        assert await get(application.probes.port, "/readyz") == (200, "ok\n")
        assert len(node.server.list("resourceslices")) == 1

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/healthz", 200),
            ("HEAD", "/metrics", 200),
            ("GET", "/healthz?verbose", 200),
            ("GET", "/", 404),
            ("GET", "/debug/pprof", 404),
            ("POST", "/metrics", 405),
            ("DELETE", "/healthz", 405),
        ],
    )
    async def test_nothing_else_is_served(self, node: Any, method: Any, path: Any, status: Any) -> None:
        application, _ = await node.start(metrics_port=0)
        assert (await get(application.probes.port, path, method))[0] == status

    async def test_garbage_closes_the_connection(self, node: Any) -> None:
        application, _ = await node.start(metrics_port=0)
        reader, writer = await asyncio.open_connection("127.0.0.1", application.probes.port)
        writer.write(b"x" * 20_000)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        assert (await get(application.probes.port, "/healthz"))[0] == 200


async def test_both_ports_are_off_by_default(node: Any) -> None:
    application, _ = await node.start()
    assert application.liveness._server is None
    assert application.probes._server is None
