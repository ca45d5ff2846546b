"""A gRPC server at a Unix socket path that is put back when it vanishes."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import grpc.aio
import structlog

from drakit.driver.sockets import AddressInUseError, Placement
from drakit.files import Filesystem

__all__ = ["Listener"]

_OPTIONS = (
    # One path is one server: without this a second process would share the address.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 4 << 20),
)
_KEPT_SERVERS = 2

_log = structlog.stdlib.get_logger("drakit.driver.sockets")


class Listener:
    """Serves what `register` adds to a server, at `path`.

    When the socket vanishes, a new server takes the path. The old one goes on serving the connections that it has: the
    kubelet keeps its only connection (R29), so nobody notices.
    """

    def __init__(
        self,
        path: Path,
        fs: Filesystem,
        register: Callable[[grpc.aio.Server], None],
        instance: str,
        on_end: Callable[[str], None],
    ) -> None:
        """Plan for `path`; `instance` is this process' id; `on_end` is told why a server ended that nobody stopped.

        Raises:
            SocketPathError: it can never be bound.
        """
        self.path = path
        self.placement = Placement(path, fs, instance)
        self._register = register
        self._on_end = on_end
        self._servers: list[grpc.aio.Server] = []
        self._watches: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen.

        Raises:
            AddressInUseError: another process serves the path.
            OSError: the directory cannot be used.
        """
        temporary = self.placement.temporary()
        server = grpc.aio.server(options=_OPTIONS)
        self._register(server)
        try:
            server.add_insecure_port(f"unix:{temporary}")
        except RuntimeError as error:
            raise OSError(f"cannot listen at {temporary}: {error}") from error
        await server.start()
        try:
            self.placement.publish()
        except (AddressInUseError, OSError):
            await server.stop(None)
            raise
        self._servers.append(server)
        watch = asyncio.create_task(self._watch(server), name=f"server of {self.path}")
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    async def _watch(self, server: grpc.aio.Server) -> None:
        """Wait for the server's end; one that is stopped has been taken out of the list before."""
        reason = "it stopped"
        try:
            await server.wait_for_termination()
        except Exception as error:  # noqa: BLE001 - whatever gRPC says is the reason
            reason = f"{type(error).__name__}: {error}"
        if server in self._servers:
            self._on_end(f"the gRPC server at {self.path} ended: {reason}")

    async def check(self) -> bool:
        """Put the socket back if it is gone; whether the path is ours in the end."""
        if self.placement.is_own():
            return True
        if self.placement.is_foreign():
            return False
        _log.warning("socket vanished, listening again", path=str(self.path))
        await self.start()
        while len(self._servers) > _KEPT_SERVERS:
            await self._servers.pop(0).stop(None)
        return True

    def unpublish(self) -> None:
        """Remove the socket from its path; connections stay."""
        self.placement.remove()

    async def stop(self, grace: float) -> None:
        """Remove the socket and end all connections once their calls have ended, or after `grace` seconds."""
        self.placement.remove()
        servers, self._servers = self._servers, []
        for server in servers:
            await server.stop(grace)

    async def abandon(self) -> None:
        """Stop serving but leave the socket file, as a kill does."""
        servers, self._servers = self._servers, []
        for server in servers:
            await server.stop(None)
