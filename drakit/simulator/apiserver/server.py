"""The fake API server as test authors and the demo use it."""

import asyncio
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp.web_request import BaseRequest
from aiohttp.web_server import Server

from drakit.clock import SYSTEM, Clock
from drakit.simulator.apiserver.access import ADMIN, Access, User, service_account_user
from drakit.simulator.apiserver.endpoint import Endpoint
from drakit.simulator.apiserver.faults import Call, Faults, Requests
from drakit.simulator.apiserver.gatekeeper import Gatekeeper
from drakit.simulator.apiserver.objects import Objects
from drakit.simulator.apiserver.options import DeleteOptions, WriteOptions
from drakit.simulator.apiserver.paths import Target
from drakit.simulator.apiserver.resources import Kind, Registry
from drakit.simulator.apiserver.schema import shape_of
from drakit.simulator.apiserver.storage import Storage

__all__ = ["FakeAPIServer"]

_BODY_LIMIT = 3 * 1024 * 1024
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class FakeAPIServer:
    """A Kubernetes API server for DRA, over real HTTP(S), in the running event loop.

    ```python
    async with FakeAPIServer() as server:
        client = kube.Client(kube.from_kubeconfig(server.kubeconfig()))
    ```

    Attributes:
        faults: Failures to inject: `server.faults.fail(503, times=2, verb="update", retry_after=1)`.
        requests: Counts and records of what was asked: `server.requests.writes("resourceslices")`.
        storage: Objects, revision and history.
        access: Tokens and certificates.
    """

    def __init__(
        self,
        version: str = "1.37",
        *,
        gates: Collection[str] | None = None,
        tls: bool = True,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock = SYSTEM,
        authenticate: bool = True,
        authorizer: Callable[[Call], bool] | None = None,
        namespaces: Collection[str] = _NAMESPACES,
        future_wait: float = 3.0,
    ) -> None:
        """Configure the server; it listens once it is entered.

        Args:
            version: Kubernetes version to answer as, "1.32" to "1.37".
            gates: Feature gates that are on; None means those that are on by default.
            tls: Serve HTTPS with a certificate authority of its own.
            host: Address to listen on.
            port: Port to listen on; 0 picks a free one.
            clock: Time for timestamps, watches and waits.
            authenticate: Ask for a token or client certificate; without, everybody may do everything.
            authorizer: Says whether a call is allowed; None allows all (RBAC is not modelled).
            namespaces: Namespaces that exist from the start.
            future_wait: Seconds that a request for a future resourceVersion waits before it gets 504.
        """
        self.version = version
        self.storage = Storage()
        self.faults = Faults()
        self.requests = Requests()
        self._files: tempfile.TemporaryDirectory[str] | None = None
        self._host = host
        self._port = port
        self._clock = clock
        self._tls = tls
        self._authority: Any = None
        if tls:
            from drakit.simulator.apiserver.tls import Authority

            self._authority = Authority()
        self.access = Access(self._authority)
        self.registry = Registry(version, gates)
        self._objects = Objects(
            self.storage,
            self.registry,
            Gatekeeper(version, gates),
            lambda kind, api_version: shape_of(kind, api_version, version),
            clock.now,
        )
        self._endpoint = Endpoint(
            self._objects,
            self.access,
            clock=clock,
            faults=self.faults,
            requests=self.requests,
            future_wait=future_wait,
        )
        self._endpoint.is_open = not authenticate
        self._endpoint.authorizer = authorizer
        self._web: Server | None = None
        self._listener: asyncio.Server | None = None
        for namespace in namespaces:
            self.add_namespace(namespace)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        self.close()

    def close(self) -> None:
        """Remove its directory (keys, kubeconfigs); leaving the context does it."""
        if self._files is not None:
            self._files.cleanup()
            self._files = None

    @property
    def _directory(self) -> Path:
        """Where its own files lie; made when the first is written."""
        if self._files is None:
            self._files = tempfile.TemporaryDirectory(prefix="drakit-apiserver-", ignore_cleanup_errors=True)
        return Path(self._files.name)

    async def start(self) -> None:
        """Listen; after a `stop` on the same port again, with the same objects, keys and tokens."""
        loop = asyncio.get_running_loop()
        self._web = Server(self._endpoint.handle, request_factory=_request, handler_cancellation=True)
        context = None
        if self._authority is not None:
            from drakit.simulator.apiserver.tls import server_context

            context = server_context(self._directory, self._authority, _hosts(self._host))
        self._listener = await loop.create_server(self._web, self._host, self._port, ssl=context, reuse_address=True)
        self._port = self._listener.sockets[0].getsockname()[1]
        self._endpoint.address = f"{self._host}:{self._port}"

    async def stop(self) -> None:
        """Close the port and all connections; objects stay."""
        if self._listener is None or self._web is None:
            return
        self._listener.close()
        self._endpoint.drop_watches()
        await self._web.shutdown(0.1)
        await self._listener.wait_closed()
        self._listener = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{'https' if self._tls else 'http'}://{self._host}:{self._port}"

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._port

    @property
    def ca(self) -> bytes:
        """The certificate of its authority, PEM; empty without TLS."""
        return self._authority.certificate if self._authority is not None else b""

    def kubeconfig(
        self,
        user: str = ADMIN.name,
        *,
        groups: tuple[str, ...] = (),
        namespace: str = "default",
        certificate: bool = True,
        path: Path | None = None,
    ) -> Path:
        """Write a kubeconfig for `user` (a client certificate, else a token); returns its path.

        Without `path` it lies in the server's own directory, which goes when the server is left.
        """
        import yaml

        who = ADMIN if user == ADMIN.name and not groups else User(user, (*groups, "system:authenticated"))
        config = self.access.kubeconfig(self.url, who, namespace=namespace, certificate=certificate)
        path = path or self._directory / f"{user.replace(':', '-').replace('/', '-')}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        return path

    def token(self, user: str = ADMIN.name, *groups: str) -> str:
        """A new bearer token for `user`."""
        return self.access.issue(ADMIN if user == ADMIN.name else User(user, (*groups, "system:authenticated")))

    def service_account(
        self, directory: Path, *, namespace: str = "default", name: str = "default", node: str = ""
    ) -> dict[str, str]:
        """Write `token`, `ca.crt` and `namespace` as a pod finds them; called again, it rotates the token file.

        Returns the environment that points to the server (KUBERNETES_SERVICE_HOST and _PORT).
        """
        self.access.write_service_account(directory, namespace, service_account_user(namespace, name, node))
        return {"KUBERNETES_SERVICE_HOST": self._host, "KUBERNETES_SERVICE_PORT": str(self._port)}

    def compact(self, revision: int | None = None) -> int:
        """Forget the history: older resourceVersions and continue tokens get 410. Returns the revision."""
        for kind in self.registry.kinds:
            self.storage.history(kind)
        return self.storage.compact(revision)

    def drop_watches(self, resource: str | None = None) -> int:
        """Break the open watches (of one resource, plural); returns how many."""
        return self._endpoint.drop_watches(resource)

    def watching(self, resource: str | None = None) -> int:
        """How many watches are open."""
        return self._endpoint.watching(resource)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in flight: for `ManualClock.idle_when(lambda: server.is_idle)`."""
        return self._endpoint.is_idle

    def add_namespace(self, name: str, **labels: str) -> None:
        """Create a namespace."""
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

    def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Create an object (any served apiVersion) as the server itself; returns it as stored.

        Raises:
            Refused: as over HTTP.
        """
        target = self._target(obj)
        outcome = self._objects.create(target, msgspec.json.encode(obj), WriteOptions(manager="drakit"))
        return self._shown(target, outcome.record.object)

    def update(self, obj: dict[str, Any], *, subresource: str | None = None) -> dict[str, Any]:
        """Replace an object, or its status; returns it as stored."""
        target = msgspec.structs.replace(self._target(obj), name=obj["metadata"]["name"], subresource=subresource)
        outcome = self._objects.update(target, msgspec.json.encode(obj), WriteOptions(manager="drakit"))
        return self._shown(target, outcome.record.object)

    def get(self, resource: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """An object by plural resource name in its preferred version, or None."""
        kind = self.registry.by_plural(resource)
        record = self.storage.get(kind, (namespace, name))
        return None if record is None else self._shown(self._collection(kind), record.object)

    def list(self, resource: str, namespace: str | None = None) -> list[dict[str, Any]]:
        """All objects of a resource in its preferred version, in order of their names."""
        kind = self.registry.by_plural(resource)
        target = self._collection(kind)
        return [self._shown(target, record.object) for record in self.storage.records(kind, namespace)]

    def delete(self, resource: str, name: str, namespace: str = "", *, grace_period_seconds: int | None = None) -> None:
        """Delete an object, by the same rules as over HTTP."""
        kind = self.registry.by_plural(resource)
        target = msgspec.structs.replace(self._collection(kind), namespace=namespace or None, name=name)
        self._objects.delete(target, DeleteOptions(grace_period_seconds=grace_period_seconds))

    def _collection(self, kind: Kind) -> Target:
        versions = self.registry.groups[kind.group]
        version = next(version for version in versions if self.registry.find(kind.group, version, kind.plural))
        return Target(kind, version)

    def _target(self, obj: dict[str, Any]) -> Target:
        group, _, version = obj["apiVersion"].rpartition("/")
        kind = self.registry.by_kind(group, obj["kind"])
        namespace = (obj["metadata"].get("namespace") or "default") if kind.namespaced else None
        return Target(kind, version, namespace)

    def _shown(self, target: Target, obj: dict[str, Any]) -> dict[str, Any]:
        shown: dict[str, Any] = msgspec.json.decode(
            msgspec.json.encode(self._objects.gatekeeper.convert(target.kind, obj, target.version))
        )
        return shown


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> BaseRequest:
    loop = asyncio.get_running_loop()
    return BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_BODY_LIMIT)


def _hosts(host: str) -> list[str]:
    names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    return names if host in names else [host, *names]
