"""A real HTTPS server with its own CA, answering from a script; nothing of the client is replaced."""

import datetime as dt
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from drakit import kube

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Authority:
    """A certificate authority that writes PEM files into a directory."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        self.directory, self.name = directory, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"test {name}")])
        self.certificate = self._sign(self.subject, self.key, ca=True)
        self.path = directory / f"{name}.crt"
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, address: str | None = None) -> tuple[Path, Path]:
        """Certificate and key files for a server (with an address) or a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names: list[x509.GeneralName] = [x509.DNSName(name)]
        names += [x509.IPAddress(ipaddress.ip_address(address))] if address else []
        certificate = self._sign(subject, key, names=names)
        paths = self.directory / f"{self.name}-{name}.crt", self.directory / f"{self.name}-{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return paths

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        ca: bool = False,
        names: list[x509.GeneralName] | None = None,
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, hashes.SHA256())


@dataclass
class Recorded:
    """One request as the server saw it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    peer: str | None

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Server:
    """Answers with `handler`; remembers every request."""

    url: str = ""
    handler: Handler | None = None
    seen: list[Recorded] = field(default_factory=list)
    runner: web.AppRunner | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        peer = request.transport.get_extra_info("peercert") if request.transport else None
        name = dict(pair[0] for pair in peer["subject"])["commonName"] if peer else None
        self.seen.append(
            Recorded(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                await request.read(),
                name,
            )
        )
        assert self.handler is not None
        return await self.handler(request)

    def script(self, *answers: web.Response | Callable[[web.Request], web.Response]) -> None:
        """Give these answers one after the other; the last one for ever."""
        queue = list(answers)

        async def handler(request: web.Request) -> web.StreamResponse:
            answer = queue.pop(0) if len(queue) > 1 else queue[0]
            if not isinstance(answer, web.Response):
                return answer(request)
            return web.Response(status=answer.status, body=answer.body, headers=answer.headers)

        self.handler = handler


@pytest.fixture(name="authority", scope="session")
def _authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(name="other_authority", scope="session")
def _other_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("other-pki"), "other")


async def start(authority: Authority) -> Server:
    """Start a server on a free port; client certificates are accepted, not demanded."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.path))
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(*authority.issue("server", address="127.0.0.1"))
    server = Server()
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{path:.*}", server.answer)
    server.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await server.runner.setup()
    site = web.TCPSite(server.runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    host, port = server.runner.addresses[0][:2]
    server.url = f"https://{host}:{port}"
    return server


@pytest.fixture(name="start_server")
async def _start_server() -> AsyncIterator[Callable[[Authority], Awaitable[Server]]]:
    servers: list[Server] = []

    async def begin(authority: Authority) -> Server:
        servers.append(await start(authority))
        return servers[-1]

    yield begin
    for server in servers:
        assert server.runner is not None
        await server.runner.cleanup()


@pytest.fixture(name="server")
async def _server(authority: Authority, start_server: Callable[[Authority], Awaitable[Server]]) -> Server:
    return await start_server(authority)


@pytest.fixture(name="service_account")
def _service_account(tmp_path: Path, authority: Authority) -> Path:
    """A directory like a pod's /var/run/secrets/kubernetes.io/serviceaccount."""
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "token").write_text("first-token\n")
    (directory / "ca.crt").write_bytes(authority.path.read_bytes())
    (directory / "namespace").write_text("drakit-system")
    return directory


@pytest.fixture(name="environment")
def _environment(server: Server) -> dict[str, str]:
    host, port = server.url.removeprefix("https://").split(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


class TickingClock:
    """A clock that jumps over every sleep and remembers it."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.sleeps: list[float] = []

    def now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self.time, dt.UTC)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.time += max(seconds, 0)

    async def timeout(self, awaitable: Awaitable[Any], seconds: float) -> Any:
        return await awaitable


@pytest.fixture(name="clock")
def _clock() -> TickingClock:
    return TickingClock()


@pytest.fixture(name="client")
async def _client(
    service_account: Path, environment: dict[str, str], clock: TickingClock
) -> AsyncIterator[kube.Client]:
    async with kube.Client(kube.in_cluster(service_account, environment), clock=clock, jitter=lambda: 0.0) as client:
        yield client


@pytest.fixture(name="kubeconfig")
def _kubeconfig(tmp_path: Path, server: Server, authority: Authority) -> Callable[..., Path]:
    """Write a kubeconfig for `server` with the given user entry."""

    def write(user: dict[str, Any], **cluster: Any) -> Path:
        path = tmp_path / "kubeconfig"
        entry = {"server": server.url, "certificate-authority": str(authority.path), **cluster}
        path.write_text(
            json.dumps({
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": {k: v for k, v in entry.items() if v is not None}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [
                    {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
                    {"name": "there", "context": {"cluster": "c", "user": "u"}},
                ],
            })
        )  # fmt: skip
        return path

    return write


def status(code: int, reason: str, message: str = "", **details: Any) -> web.Response:
    """A Status answer as the API server writes it."""
    body = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message or reason, "reason": reason, "details": details, "code": code,
    }  # fmt: skip
    return web.json_response(body, status=code)


@pytest.fixture(name="status")
def _status() -> Callable[..., web.Response]:
    return status


@pytest.fixture(name="plugin")
def _plugin(tmp_path: Path) -> Callable[[str], Path]:
    """Write an executable that prints what the given shell script prints."""

    def write(script: str) -> Path:
        path = tmp_path / "plugin"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        return path

    return write
