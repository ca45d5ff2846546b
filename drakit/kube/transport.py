"""One request on the wire: an aiohttp session with our resolver, and failures turned into ApiErrors."""

import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import TracebackType

import aiohttp
import aiohttp.abc

import drakit
from drakit.kube import errors
from drakit.kube.credentials import Grant
from drakit.kube.errors import ApiError
from drakit.kube.threads import in_thread

__all__ = ["Exchange", "Request", "Transport"]


@dataclass(frozen=True, slots=True)
class Request:
    """What to send: method, absolute path, query parameters, body bytes, headers (without credentials)."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Transport:
    """A pool of connections; opened and closed with the running loop."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            # Idle connections are given up before servers and load balancers do it: a write on a connection that
            # is being closed has an unknown outcome.
            connector=aiohttp.TCPConnector(limit=64, keepalive_timeout=20, resolver=_Resolver()),
            headers={"User-Agent": f"drakit/{drakit.__version__}"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    def send(self, grant: Grant, request: Request, timeout: aiohttp.ClientTimeout) -> "Exchange":
        """Prepare one exchange; it starts when it is entered."""
        extra = {} if grant.authorization is None else {"Authorization": grant.authorization}
        context = self._session.request(
            request.method,
            grant.server + request.path,
            params=request.query,
            data=request.body,
            headers={**request.headers, **extra},
            ssl=grant.tls,
            server_hostname=grant.server_name,
            proxy=grant.proxy,
            timeout=timeout,
            allow_redirects=False,
        )
        return Exchange(context, f"{request.method} {grant.server}{request.path}")

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


class Exchange:
    """One request and its answer, as an async context manager that turns failures into ApiErrors."""

    def __init__(self, context: AbstractAsyncContextManager[aiohttp.ClientResponse], what: str) -> None:
        self._context, self._what = context, what
        self._response: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> "Exchange":
        try:
            self._response = await self._context.__aenter__()
            if self._response.status >= 300:
                body = await self._response.read()
                raise errors.from_answer(self._response.status, body, self._response.headers.get("Retry-After"))
        except ApiError:
            await self._context.__aexit__(None, None, None)
            raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if self._response is not None:
                await self._context.__aexit__(None, None, None)
            raise self._failure(error) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._context.__aexit__(kind, error, trace)

    async def read(self) -> bytes:
        """The whole body."""
        assert self._response is not None
        try:
            return await self._response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failure(error) from error

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of an endless body; what follows the last line end is an event cut short."""
        assert self._response is not None
        pending = bytearray()
        try:
            async for chunk in self._response.content.iter_any():
                pending += chunk
                if b"\n" not in chunk:
                    continue
                *whole, rest = bytes(pending).split(b"\n")
                pending = bytearray(rest)
                for line in whole:
                    if line.strip():
                        yield line
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failure(error) from error
        if pending.strip():
            raise errors.Unanswered(0, "Disconnected", f"{self._what}: the watch ended inside an event")

    def _failure(self, error: BaseException) -> ApiError:
        words = str(error) or type(error).__name__
        if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLError | aiohttp.ClientSSLError):
            return errors.Unreachable(0, "Certificate", f"{self._what}: {words}: check the CA of the credentials")
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL):
            return errors.Unreachable(0, "Unreachable", f"{self._what}: {words}")
        if isinstance(error, TimeoutError):
            return errors.Unanswered(0, "Timeout", f"{self._what}: {words}")
        return errors.Unanswered(0, "Disconnected", f"{self._what}: {words}")


class _Resolver(aiohttp.abc.AbstractResolver):
    """Name resolution in daemon threads: a resolver that hangs must not hold the process's exit."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        found = await in_thread("resolver", _addresses, host, port, family)
        return [
            aiohttp.abc.ResolveResult(
                hostname=host, host=address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST
            )
            for kind, address in found
        ]

    async def close(self) -> None:
        """Nothing is held."""


def _addresses(host: str, port: int, family: int) -> list[tuple[int, str]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG)
    return [(entry[0], str(entry[4][0])) for entry in found]
