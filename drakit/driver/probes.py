"""/metrics, /healthz and /readyz on one small HTTP port; GET only, one request per connection."""

import asyncio
import contextlib
import socket
from collections.abc import Callable

__all__ = ["HttpProbes"]

_REQUEST_SECONDS = 5.0
_REQUEST_LIMIT = 8192
_TEXT = "text/plain; charset=utf-8"
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class HttpProbes:
    """Answers probes and scrapes.

    Args:
        address: to listen on; "" = all.
        port: to listen on; 0 = any free.
        metrics: the exposition and its content type.
        unready: reasons why the driver is not ready; empty = ready.
    """

    def __init__(
        self, address: str, port: int, metrics: Callable[[], tuple[bytes, str]], unready: Callable[[], list[str]]
    ) -> None:
        self._address = address
        self._metrics = metrics
        self._unready = unready
        self.port = port
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the port is taken.
        """
        listening = _listening(self._address, self.port)
        self._server = await asyncio.start_server(self._serve, sock=listening, limit=_REQUEST_LIMIT)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _REQUEST_SECONDS)
            writer.write(self._answer(head))
            await asyncio.wait_for(writer.drain(), _REQUEST_SECONDS)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
        if method not in {b"GET", b"HEAD"}:
            status, body, kind = 405, b"GET only\n", _TEXT
        else:
            status, body, kind = self._page(path.decode("ascii", "replace"))
        lines = (
            f"HTTP/1.1 {status} {_REASONS[status]}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            "Connection: close",
            "",
            "",
        )
        return "\r\n".join(lines).encode() + (body if method != b"HEAD" else b"")

    def _page(self, path: str) -> tuple[int, bytes, str]:
        if path == "/metrics":
            body, kind = self._metrics()
            return 200, body, kind
        if path == "/healthz":
            return 200, b"ok\n", _TEXT
        if path == "/readyz":
            reasons = self._unready()
            return (
                (503, "".join(f"{reason}\n" for reason in reasons).encode(), _TEXT)
                if reasons
                else (200, b"ok\n", _TEXT)
            )
        return 404, b"try /metrics, /healthz or /readyz\n", _TEXT


def _listening(address: str, port: int) -> socket.socket:
    if address:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))
