"""Requests to the API server: raw JSON over aiohttp, retried only where that is safe, in whatever version it serves."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from drakit.api import conversion
from drakit.clock import SYSTEM, Clock
from drakit.kube import errors
from drakit.kube.backoff import Backoff
from drakit.kube.credentials import Credentials, Grant
from drakit.kube.errors import ApiError
from drakit.kube.resources import Resource
from drakit.kube.transport import Exchange, Request, Transport

__all__ = ["APPLY_PATCH", "JSON_PATCH", "MERGE_PATCH", "STRATEGIC_MERGE_PATCH", "Client", "Event"]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

ATTEMPTS = 5
TIMEOUT_SECONDS = 30.0
PAGE_SIZE = 500
WATCH_SLACK_SECONDS = 30.0
_READS = frozenset({"GET", "HEAD", "OPTIONS"})

Object = dict[str, Any]
Items = list[Any]
Query = Mapping[str, str]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Event:
    """One watch event: type ADDED, MODIFIED, DELETED or BOOKMARK; the object in v1 form."""

    type: str
    object: Object


class Client:
    """A connection to one API server; use it as an async context manager.

    Objects go in and come out as plain v1 dicts (of JSON values), whatever version the server speaks; unknown fields
    are kept. Bodies are sent as compact JSON (spec/apiserver.md 1). All methods raise `ApiError`.

    What is retried (at most `attempts` times in all, with jittered backoff and Retry-After): anything the server
    certainly did not execute (no connection, 429, a 401 after which the credentials could be renewed), and reads after
    5xx or a lost answer. A write whose outcome is unknown raises `Unanswered` or `ServerError`: read back, then decide.

    Args:
        credentials: see `in_cluster`, `from_kubeconfig`, `find`.
        clock: time for backoff and for the age of tokens; socket timeouts are always real time.
        attempts: how often one request is sent at most.
        timeout: seconds for one exchange (not for watches).
        jitter: source of numbers in [0, 1).

    Attributes:
        credentials: as given.
        clock: as given.
        requests: exchanges begun so far.
        in_flight: requests not yet answered, those waiting between attempts not counted; watches count until they are
            open.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        clock: Clock = SYSTEM,
        attempts: int = ATTEMPTS,
        timeout: float = TIMEOUT_SECONDS,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.credentials = credentials
        self.clock = clock
        self.requests = 0
        self.in_flight = 0
        self._attempts = attempts
        self._timeout = timeout
        self._jitter = jitter
        self._versions: dict[Resource, str] = {}
        self._transport: Transport | None = None

    async def __aenter__(self) -> Self:
        self._transport = Transport()
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()

    # Raw requests

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: bytes | Object | Items | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        """Send one request and return the body of a 2xx answer.

        Args:
            method: GET, POST, PUT, PATCH, DELETE.
            path: absolute path below the server's URL.
            query: parameters of the URL.
            body: bytes are sent as they are, JSON values as compact JSON.
            content_type: of the body.
            accept: what the answer may be.

        Raises:
            ApiError: the server refused, failed or did not answer.
            CredentialsError: the credentials cannot be loaded.
        """
        data = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        headers = {"Accept": accept} if data is None else {"Accept": accept, "Content-Type": content_type}
        request = Request(method, path, query, data, headers)
        timeout = aiohttp.ClientTimeout(total=self._timeout, sock_connect=min(10.0, self._timeout))
        backoff = Backoff(jitter=self._jitter)
        refused: Grant | None = None
        while True:
            try:
                with self._counted():
                    grant = await self._grant(refused)
                    async with self._send(grant, request, timeout) as answer:
                        return await answer.read()
            except errors.Unauthorized:
                if refused is not None:
                    raise
                refused = grant
            except ApiError as error:
                if backoff.failures + 1 >= self._attempts or not _may_repeat(method, error):
                    raise
                await self.clock.sleep(backoff.delay(error.retry_after))

    async def _grant(self, refused: Grant | None) -> Grant:
        now = self.clock.monotonic()
        return await (self.credentials.current(now) if refused is None else self.credentials.renew(refused, now))

    def _send(self, grant: Grant, request: Request, timeout: aiohttp.ClientTimeout) -> Exchange:
        if self._transport is None:
            raise RuntimeError("the client is not open: use `async with Client(...)`")
        self.requests += 1
        return self._transport.send(grant, request, timeout)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    # Typed by resource

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object:
        """One object.

        Raises:
            NotFound: it does not exist.
        """
        return await self._call(resource, "GET", namespace, name)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        field_selector: str | None = None,
        label_selector: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Object:
        """All matching objects, as one List dict: {"metadata": {"resourceVersion": ...}, "items": [...]}.

        Items carry apiVersion and kind, unlike the server's. `namespace` None means all namespaces.
        """
        query = _selectors(field_selector, label_selector)

        async def pages(version: str) -> Object:
            return await self._pages(resource, version, namespace, query, page_size)

        return await self._in_served_version(resource, pages)

    async def create(
        self, resource: Resource, body: Object, *, namespace: str | None = None, query: Query | None = None
    ) -> Object:
        """Create an object and return it as stored; the namespace defaults to the object's own."""
        return await self._call(resource, "POST", namespace or _namespace(body), None, body=body, query=query)

    async def update(
        self,
        resource: Resource,
        body: Object,
        *,
        namespace: str | None = None,
        subresource: str = "",
        query: Query | None = None,
    ) -> Object:
        """Replace an object (or its subresource) and return it as stored.

        With metadata.resourceVersion the write fails with Conflict when someone else was first.
        """
        name = body["metadata"]["name"]
        return await self._call(
            resource, "PUT", namespace or _namespace(body), name, subresource=subresource, body=body, query=query
        )

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Object | Items,
        *,
        namespace: str | None = None,
        subresource: str = "",
        content_type: str = MERGE_PATCH,
        query: Query | None = None,
    ) -> Object:
        """Patch an object (or its subresource) and return it as stored.

        Server-side apply: content_type=APPLY_PATCH, query={"fieldManager": ..., "force": "true"}. A JSON patch is sent
        as it is: its paths must be the same in all served versions (metadata, status).
        """
        return await self._call(
            resource,
            "PATCH",
            namespace,
            name,
            subresource=subresource,
            body=body,
            query=query,
            content_type=content_type,
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
    ) -> Object:
        """Delete an object and return the server's answer.

        Args:
            resource: the collection.
            name: of the object.
            namespace: of the object.
            uid: delete only this very object (else Conflict).
            resource_version: delete only this state of it (else Conflict).
            grace_period_seconds: for pods.
            propagation_policy: Background, Foreground or Orphan.

        Raises:
            NotFound: it does not exist (any more).
        """
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: Object = {
            "preconditions": {key: value for key, value in preconditions.items() if value},
            "gracePeriodSeconds": grace_period_seconds,
            "propagationPolicy": propagation_policy,
        }
        body = {key: value for key, value in options.items() if value not in ({}, None)}
        # Without options there is no body: a body would make the server ignore the query string.
        sent = {"kind": "DeleteOptions", "apiVersion": "v1", **body} if body else None
        return await self._call(resource, "DELETE", namespace, name, body=sent, convert=False)

    async def delete_collection(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        field_selector: str | None = None,
        label_selector: str | None = None,
    ) -> Object:
        """Delete all matching objects."""
        query = _selectors(field_selector, label_selector)
        return await self._call(resource, "DELETE", namespace, None, query=query, convert=False)

    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        field_selector: str | None = None,
        label_selector: str | None = None,
        timeout_seconds: int | None = None,
    ) -> AsyncIterator[Event]:
        """Events after `resource_version`, bookmarks included, until the server ends the watch.

        Args:
            resource: the collection.
            resource_version: of a list or of an earlier event.
            namespace: None = all.
            field_selector: as in list.
            label_selector: as in list.
            timeout_seconds: what to ask of the server; default: random in 300-600, so that watches do not end together.

        Raises:
            Gone: the resource version is too old, told by HTTP or by an ERROR event: list again.
            ApiError: other failures; nothing is retried here.
        """
        seconds = timeout_seconds or 300 + int(self._jitter() * 301)
        query = {
            **_selectors(field_selector, label_selector),
            "watch": "true",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        # One version only: which one is served has been found out by the list before.
        version = self._versions.get(resource, resource.versions[0])
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=seconds + WATCH_SLACK_SECONDS)
        request = Request("GET", resource.path(version, namespace), query, None, {"Accept": JSON})
        async with AsyncExitStack() as stack:
            with self._counted():
                grant = await self._grant(None)
                try:
                    answer = await stack.enter_async_context(self._send(grant, request, timeout))
                except errors.Unauthorized:
                    await self._grant(grant)
                    raise
            async for line in answer.lines():
                yield _event(line, resource, version)

    # How both are done

    async def _call(
        self,
        resource: Resource,
        method: str,
        namespace: str | None,
        name: str | None,
        *,
        subresource: str = "",
        body: Object | Items | None = None,
        query: Query | None = None,
        content_type: str = JSON,
        convert: bool = True,
    ) -> Object:
        async def call(version: str) -> Object:
            sent = _outgoing(body, resource, version, typed=content_type in _TYPED) if convert else body
            path = resource.path(version, namespace, name, subresource)
            answer = await self.request(method, path, query=query, body=sent, content_type=content_type)
            return _incoming(msgspec.json.decode(answer), resource, version)

        return await self._in_served_version(resource, call)

    async def _in_served_version(self, resource: Resource, call: Callable[[str], Awaitable[T]]) -> T:
        """Call with the version that worked last, then the others; only "not served" advances (slices 1.10)."""
        first = self._versions.get(resource, resource.versions[0])
        at = resource.versions.index(first)
        refusal: errors.NotServed | None = None
        for version in resource.versions[at:] + resource.versions[:at]:
            try:
                result = await call(version)
            except errors.NotServed as error:
                refusal = refusal or error
            except errors.NotFound:
                self._versions[resource] = version
                raise
            else:
                self._versions[resource] = version
                return result
        assert refusal is not None
        raise errors.NotServed(
            404,
            "NotServed",
            f"the API server serves {resource.plural} in none of "
            f"{', '.join(resource.api_version(v) for v in resource.versions)}: {refusal.message}",
        )

    async def _pages(
        self, resource: Resource, version: str, namespace: str | None, query: Query, page_size: int
    ) -> Object:
        items: list[Object] = []
        token = ""
        limit = {"limit": str(page_size)} if page_size else {}
        while True:
            more = {"continue": token} if token else {}
            try:
                page = await self.request("GET", resource.path(version, namespace), query={**query, **limit, **more})
            except errors.Gone:
                if not token:
                    raise
                # The snapshot of the first page is gone. One whole list is consistent, however slow.
                items, token, limit = [], "", {}
                continue
            decoded = msgspec.json.decode(page)
            items += [_incoming(item, resource, version) for item in decoded.get("items") or ()]
            token = decoded.get("metadata", {}).get("continue") or ""
            if not token:
                return {
                    "apiVersion": resource.api_version(resource.versions[0]),
                    "kind": f"{resource.kind}List",
                    "metadata": decoded.get("metadata", {}),
                    "items": items,
                }


_TYPED = frozenset({JSON, APPLY_PATCH})


def _may_repeat(method: str, error: ApiError) -> bool:
    if isinstance(error, errors.Unreachable):
        return error.reason != "Certificate"
    if isinstance(error, errors.TooManyRequests):
        return True
    return method in _READS and isinstance(error, errors.Unanswered | errors.ServerError)


def _selectors(field_selector: str | None, label_selector: str | None) -> dict[str, str]:
    given = {"fieldSelector": field_selector, "labelSelector": label_selector}
    return {key: value for key, value in given.items() if value}


def _namespace(body: Object) -> str | None:
    namespace: str | None = body.get("metadata", {}).get("namespace")
    return namespace


def _outgoing(body: Any, resource: Resource, version: str, *, typed: bool) -> Any:
    if not isinstance(body, dict):
        return body
    sent = conversion.from_v1(body, version)
    return {**sent, "apiVersion": resource.api_version(version), "kind": resource.kind} if typed else sent


def _incoming(obj: Object, resource: Resource, version: str) -> Object:
    """The answer in v1 form, with apiVersion and kind (which items of a list lack); a Status stays as it is."""
    if obj.get("kind", resource.kind) != resource.kind:
        return obj
    head = {"apiVersion": resource.api_version(resource.versions[0]), "kind": resource.kind}
    return {**conversion.to_v1({**head, **obj}, version), **head}


def _event(line: bytes, resource: Resource, version: str) -> Event:
    try:
        decoded = msgspec.json.decode(line)
        kind, obj = decoded["type"], decoded["object"]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise errors.Unanswered(0, "Garbled", f"a watch of {resource.plural} sent no event: {error}") from error
    if kind == "ERROR":
        raise errors.from_status(obj)
    return Event(kind, _incoming(obj, resource, version))
