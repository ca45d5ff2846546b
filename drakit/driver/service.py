"""The DRAPlugin service: claims of one request in, one answer for each out (P1-P13).

Trouble with looking a claim up fails the whole request, as the kubelet's Go helper does (P6); everything after that is
told per claim (P11).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import grpc
import structlog

from drakit._proto import dra_v1_pb2, dra_v1_pb2_grpc, dra_v1beta1_pb2, dra_v1beta1_pb2_grpc
from drakit.clock import Clock
from drakit.driver import names
from drakit.driver.claims import Claim
from drakit.driver.errors import ClaimError, LookupFailedError
from drakit.driver.journal import Identity, PreparedDevice, Record
from drakit.driver.metrics import Metrics
from drakit.driver.preparation import Preparer

__all__ = ["ClaimSource", "NodeService", "PluginV1", "PluginV1beta1", "RequestError"]

T = TypeVar("T")

REPLY_LIMIT = 4 << 20  # the kubelet refuses more (recorded 29)
ERROR_LIMIT = 4096
WAIT_SECONDS = 42.0  # the kubelet gives up after 45 and then nobody reads our reason

_log = structlog.stdlib.get_logger("drakit.driver")


class RequestError(Exception):
    """The whole request fails."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        """Keep the gRPC status."""
        self.code, self.text = code, text
        super().__init__(text)


class ClaimSource(Protocol):
    """Where claims come from."""

    async def fetch(self, identity: Identity) -> Callable[[], Claim]:
        """Look the claim up; the answer decodes it, which may raise a ClaimError.

        Raises:
            LookupFailedError: missing, not allocated, replaced, or the API server does not answer.
        """
        ...


class NodeService:
    """Both RPCs, independent of their wire version.

    Args:
        source: looks claims up.
        preparer: does the work.
        clock: for the time a call waits.
        metrics: what is counted.
        record: writes an Event: type, reason, message.
    """

    def __init__(
        self,
        source: ClaimSource,
        preparer: Preparer,
        clock: Clock,
        metrics: Metrics,
        record: Callable[[str, str, str], None] = lambda _type, _reason, _message: None,
    ) -> None:
        self._source = source
        self._preparer = preparer
        self._clock = clock
        self._metrics = metrics
        self._record = record
        self._refused: dict[str, str] = {}
        self.draining = False

    async def prepare(
        self, claims: Sequence[Identity], wait: float = WAIT_SECONDS
    ) -> dict[str, tuple[PreparedDevice, ...] | str]:
        """Devices, or why not, by UID.

        Raises:
            RequestError: a claim could not be looked up, an identity is odd, or the driver is stopping.
        """
        with self._metrics.request("prepare"):
            wanted = self._accept(claims)
            deadline = self._clock.monotonic() + wait
            found = await self._look_up(wanted, wait)
            wait = max(0.0, deadline - self._clock.monotonic())
            answers = await asyncio.gather(
                *(self._joined("prepare", one, self._prepare(one, claim), wait) for one, claim in found)
            )
        return {
            one.uid: answer if isinstance(answer, str) else answer.devices
            for one, answer in zip(wanted, answers, strict=True)
        }

    async def unprepare(self, claims: Sequence[Identity], wait: float = WAIT_SECONDS) -> dict[str, str]:
        """Why not ("" = done), by UID. Needs no API server (P13).

        Raises:
            RequestError: an identity is odd, or the driver is stopping.
        """
        with self._metrics.request("unprepare"):
            wanted = self._accept(claims)
            answers = await asyncio.gather(
                *(self._joined("unprepare", one, self._preparer.unprepare(one), wait) for one in wanted)
            )
        return {one.uid: answer or "" for one, answer in zip(wanted, answers, strict=True)}

    def _accept(self, claims: Sequence[Identity]) -> list[Identity]:
        """The distinct claims of a request."""
        if self.draining and claims:
            raise RequestError(grpc.StatusCode.UNAVAILABLE, "the driver is stopping, its successor will answer")
        for claim in claims:
            try:
                names.check_identity(claim.namespace, claim.name, claim.uid)
            except names.IdentityError as error:
                raise RequestError(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from error
        return list({claim.uid: claim for claim in claims}.values())

    async def _look_up(self, claims: Sequence[Identity], wait: float) -> list[tuple[Identity, Callable[[], Claim]]]:
        """Every claim, or the first failure in the request's order: then nothing is begun."""
        lookups = asyncio.gather(*map(self._source.fetch, claims), return_exceptions=True)
        try:
            results = await self._clock.timeout(lookups, wait)
        except TimeoutError as error:
            self._metrics.failed("prepare", "lookup")
            text = f"get resource claims: the API server has not answered within {wait:.0f} s"
            raise RequestError(grpc.StatusCode.UNKNOWN, text) from error
        found = []
        for claim, result in zip(claims, results, strict=True):
            if isinstance(result, LookupFailedError):
                self._metrics.failed("prepare", "lookup")
                raise RequestError(grpc.StatusCode.UNKNOWN, f"get resource claims: {result}")
            if isinstance(result, BaseException):
                raise result
            found.append((claim, result))
        return found

    def _prepare(self, identity: Identity, found: Callable[[], Claim]) -> asyncio.Future[Record]:
        async def claim(waited: bool) -> Claim:
            if not waited:
                return found()
            # Another call of this claim ran in between: what was looked up before it may be outdated.
            try:
                return (await self._source.fetch(identity))()
            except LookupFailedError as error:
                raise ClaimError(f"get resource claims: {error}") from error

        return self._preparer.prepare(identity, claim)

    async def _joined(self, operation: str, claim: Identity, work: Awaitable[T], wait: float) -> T | str:
        """The task's answer, or the text of its error."""
        started = self._clock.monotonic()
        with structlog.contextvars.bound_contextvars(claim=f"{claim.namespace}/{claim.name}", claim_uid=claim.uid):
            try:
                answer = await self._clock.timeout(work, wait)
            except TimeoutError:
                self._metrics.failed(operation, "timeout")
                text = f"{operation} is still running after {wait:.0f} s; the next call will find it again"
                _log.warning("claim takes long", operation=operation, duration_s=round(wait, 3))
                return text
            except ClaimError as error:
                self._metrics.failed(operation, error.kind)
                self._complain(operation, claim, error)
                return _cut(str(error))
            except Exception as error:  # noqa: BLE001 - one claim must not fail the others
                self._metrics.failed(operation, "internal")
                _log.exception("claim failed unexpectedly", operation=operation)
                return _cut(f"internal error: {type(error).__name__}: {error}")
            self._refused.pop(claim.uid, None)
            _log.info("claim done", operation=operation, duration_s=round(self._clock.monotonic() - started, 4))
            return answer

    def _complain(self, operation: str, claim: Identity, error: ClaimError) -> None:
        """The kubelet repeats a call that cannot succeed for ever: that is one record, not one a minute (pains 46)."""
        text = str(error)
        if not error.permanent:
            _log.error("claim failed", operation=operation, err=text, permanent=False)
            return
        if self._refused.get(claim.uid) != text:
            _log.error("claim failed", operation=operation, err=text, permanent=True)
        self._refused[claim.uid] = text  # until it is prepared after all, or unprepared
        self._record("Warning", "ClaimRefused", f"{operation} of claim {claim}: {text}")


def _cut(text: str) -> str:
    """One line for the pod's event, of a length that people read and the kubelet accepts."""
    line = "; ".join(part for part in map(str.strip, text.splitlines()) if part)
    # Names of files in a hook's error may hold bytes that are no text: the reply could not carry them.
    encoded = (line or "unknown error").encode(errors="backslashreplace")
    return encoded[:ERROR_LIMIT].decode(errors="ignore")


def _identities(claims: Sequence[Any]) -> list[Identity]:
    return [Identity(claim.namespace, claim.name, claim.uid) for claim in claims]


class _Wire:
    """Translates between one wire version and NodeService (P4)."""

    _messages: Any
    _fields: Callable[[PreparedDevice], dict[str, Any]]

    def __init__(self, service: NodeService) -> None:
        self._service = service

    async def NodePrepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - wire name
        """Prepare the claims of the request."""
        answers = await self._guard(context, self._service.prepare(_identities(request.claims), _patience(context)))
        reply = self._messages.NodePrepareResourcesResponse()
        for uid, answer in answers.items():
            entry = reply.claims[uid]
            if isinstance(answer, str):
                entry.error = answer
            else:
                entry.devices.extend(self._messages.Device(**self._device(device)) for device in answer)
        if reply.ByteSize() > REPLY_LIMIT:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the reply is larger than the kubelet accepts")
        return reply

    async def NodeUnprepareResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - wire name
        """Unprepare the claims of the request."""
        answers = await self._guard(context, self._service.unprepare(_identities(request.claims), _patience(context)))
        reply = self._messages.NodeUnprepareResourcesResponse()
        for uid, error in answers.items():
            reply.claims[uid].error = error
        return reply

    async def _guard(self, context: Any, work: Awaitable[dict[str, T]]) -> dict[str, T]:
        try:
            return await work
        except RequestError as error:
            _log.error("request failed", err=error.text)
            await context.abort(error.code, _cut(error.text))
            raise
        except Exception as error:
            _log.exception("request failed unexpectedly")
            await context.abort(
                grpc.StatusCode.UNKNOWN, _cut(f"internal error of the driver: {type(error).__name__}: {error}")
            )
            raise

    @staticmethod
    def _device(device: PreparedDevice) -> dict[str, Any]:
        """Fields that both versions have. The kubelet knows only base requests (P9)."""
        return {
            "request_names": [names.base_request(device.request)],
            "pool_name": device.pool,
            "device_name": device.device,
            "cdi_device_ids": device.cdi_ids,
        }


class PluginV1(_Wire, dra_v1_pb2_grpc.DRAPluginServicer):
    """k8s.io.kubelet.pkg.apis.dra.v1."""

    _messages = dra_v1_pb2

    @staticmethod
    def _device(device: PreparedDevice) -> dict[str, Any]:
        return {**_Wire._device(device), "share_id": device.share_id}  # noqa: SLF001 - its own base


class PluginV1beta1(_Wire, dra_v1beta1_pb2_grpc.DRAPluginServicer):
    """k8s.io.kubelet.pkg.apis.dra.v1beta1: the same without share ids (P2)."""

    _messages = dra_v1beta1_pb2


def _patience(context: Any) -> float:
    """How long to wait for a claim: a little less than the caller does."""
    remaining = context.time_remaining()
    return WAIT_SECONDS if remaining is None else max(0.0, min(WAIT_SECONDS, remaining - 1.0))
