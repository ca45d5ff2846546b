"""Leader election on a Lease: of several processes, one at a time leads.

The times are those that controllers of the ecosystem use: a lease lasts 15 s, is renewed every 5 s, and who cannot
renew it for 10 s stops leading, well before others may take it. Whether somebody else's lease has run out is judged by
how long we have seen it unchanged, so that clocks need not agree.
"""

import asyncio
import logging
import random
import re
import secrets
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from drakit.clock import SYSTEM, Clock
from drakit.kube import errors
from drakit.kube.client import Client
from drakit.kube.resources import LEASES

__all__ = ["Election", "LostLeadershipError", "identity", "running_holder"]

LEASE_SECONDS, RENEW_DEADLINE_SECONDS, RETRY_SECONDS = 15.0, 10.0, 5.0
HURRY_SECONDS = 1.0  # between attempts once a renewal has failed
_log = logging.getLogger(__name__)


class LostLeadershipError(Exception):
    """Another process leads now, or the lease could not be renewed; the way out is to start again."""


def identity() -> str:
    """A name for this process in a Lease: the host's, made unique."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname()).strip("-") or "host"
    return f"{host[:200]}_{secrets.token_hex(4)}"


def running_holder(lease: dict[str, Any], now: datetime) -> str:
    """Who seems to lead by this Lease at `now`; "" when nobody does or the last renewal is long past."""
    spec = lease.get("spec") or {}
    try:
        renewed = datetime.fromisoformat(spec.get("renewTime") or "")
    except ValueError:
        return ""
    fresh = abs((now - renewed).total_seconds()) < 2 * (spec.get("leaseDurationSeconds") or LEASE_SECONDS)
    return str(spec.get("holderIdentity") or "") if fresh else ""


class Election:
    """One candidate for one Lease.

    Args:
        client: an open client.
        name: of the Lease.
        namespace: of the Lease.
        identity: this candidate's name; see `identity`.
        clock: time.
        jitter: source of numbers in [0, 1).

    Attributes:
        leader: who leads, as far as is known; "" = nobody.
    """

    def __init__(
        self,
        client: Client,
        *,
        name: str,
        namespace: str,
        identity: str,
        clock: Clock = SYSTEM,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.leader = ""
        self._client, self._clock, self._jitter = client, clock, jitter
        self._name, self._namespace, self._identity = name, namespace, identity
        self._seen: Any = None
        self._seen_at = 0.0
        self._renewed_at = 0.0

    @property
    def leads(self) -> bool:
        """Whether this candidate leads now."""
        return self.leader == self._identity

    @property
    def lease(self) -> dict[str, str]:
        """A reference to the Lease, for events."""
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": self._namespace,
            "name": self._name,
        }

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait until this candidate leads, then run `lead` for as long as it does; give the lease back at the end.

        Raises:
            LostLeadershipError: leadership was lost while `lead` ran; `lead` has been cancelled and has ended.
        """
        await self.acquire()
        work = asyncio.ensure_future(lead())
        renewing = asyncio.ensure_future(self._keep())
        try:
            await asyncio.wait({work, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
                return
            renewing.result()
        finally:
            for task in (work, renewing):
                task.cancel()
            await asyncio.gather(work, renewing, return_exceptions=True)
            await self.release()

    async def acquire(self, *, force: bool = False) -> None:
        """Wait until this candidate leads; `force` takes the lease from whoever has it."""
        while True:
            try:
                if await self._try(force=force):
                    _log.info("leading by lease %s/%s", self._namespace, self._name)
                    return
            except (errors.ApiError, errors.CredentialsError) as error:
                _log.warning("cannot take lease %s/%s: %s", self._namespace, self._name, error)
            await self._clock.sleep(RETRY_SECONDS * (0.8 + 0.4 * self._jitter()))

    async def release(self) -> None:
        """Let others lead at once; a courtesy that may fail."""
        if not self.leads:
            return
        self.leader = ""
        try:
            lease = await self._client.get(LEASES, self._name, namespace=self._namespace)
            if lease["spec"].get("holderIdentity") == self._identity:
                spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._now()}
                await self._client.update(LEASES, {**lease, "spec": spec})
        except (errors.ApiError, errors.CredentialsError) as error:
            _log.warning("cannot release lease %s/%s: %s", self._namespace, self._name, error)

    async def _keep(self) -> None:
        """Renew for ever.

        Raises:
            LostLeadershipError: it was taken, or could not be renewed in time.
        """
        pause = RETRY_SECONDS
        while True:
            await self._clock.sleep(pause)
            pause = HURRY_SECONDS
            failure = "somebody else wrote it at the same time"
            try:
                remaining = RENEW_DEADLINE_SECONDS - (self._clock.monotonic() - self._renewed_at)
                if await self._clock.timeout(self._try(), max(remaining, 0.1)):
                    pause = RETRY_SECONDS
                    continue
                if self.leader:
                    raise LostLeadershipError(f"{self.leader} holds lease {self._namespace}/{self._name} now")
            except TimeoutError:
                failure = "no answer"
            except (errors.ApiError, errors.CredentialsError) as error:
                failure = str(error)
            if self._clock.monotonic() - self._renewed_at >= RENEW_DEADLINE_SECONDS - HURRY_SECONDS:
                self.leader = ""
                waited = f"{RENEW_DEADLINE_SECONDS:.0f} s"
                raise LostLeadershipError(f"lease {self._namespace}/{self._name} not renewed for {waited}: {failure}")

    async def _try(self, *, force: bool = False) -> bool:
        """Take or renew the lease; False when somebody else has it."""
        try:
            lease = await self._client.get(LEASES, self._name, namespace=self._namespace)
        except errors.NotFound:
            return await self._create()
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._clock.monotonic()
        duration = spec.get("leaseDurationSeconds") or LEASE_SECONDS
        expired = self._clock.monotonic() - self._seen_at >= duration
        if holder not in {"", self._identity} and not expired and not force:
            self.leader = holder
            return False
        now = self._now()
        fresh = {**spec, "holderIdentity": self._identity, "leaseDurationSeconds": int(LEASE_SECONDS), "renewTime": now}
        if holder != self._identity:
            fresh |= {"acquireTime": now, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        return await self._write(self._client.update(LEASES, {**lease, "spec": fresh}))

    async def _create(self) -> bool:
        now = self._now()
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(LEASE_SECONDS),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        body = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": spec}
        return await self._write(self._client.create(LEASES, body))

    async def _write(self, request: Awaitable[dict[str, Any]]) -> bool:
        # Counted from before the request: the server's time of the renewal is not before that.
        begun = self._clock.monotonic()
        try:
            stored = await request
        except errors.Conflict:
            self.leader = ""
            return False
        self._seen, self._seen_at = stored["spec"], self._clock.monotonic()
        self._renewed_at = begun
        self.leader = self._identity
        return True

    def _now(self) -> str:
        now: datetime = self._clock.now().astimezone(UTC)
        return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
