"""Claims from the API server (P6)."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from drakit import api
from drakit.driver.claims import Claim, claim_of, verify
from drakit.driver.configuration import Configuration
from drakit.driver.errors import LookupFailedError
from drakit.driver.journal import Identity

if TYPE_CHECKING:
    from drakit import kube

__all__ = ["ClaimLookup"]

CLIENT_WAIT_SECONDS = 10.0
PARALLEL = 4
"""Claims looked up at once: each needs a connection, and a TLS handshake costs more than waiting for one's turn."""


class ClaimLookup:
    """Fetches, verifies and decodes claims.

    Args:
        driver: whose results count.
        classes: its opaque parameters.
    """

    def __init__(self, driver: str, classes: Sequence[type[Configuration]]) -> None:
        self._driver = driver
        self._classes = classes
        self._client: asyncio.Future[kube.Client] = asyncio.get_running_loop().create_future()
        self._turns = asyncio.Semaphore(PARALLEL)

    def use(self, client: "kube.Client") -> None:
        """From now on ask through `client`; calls that came earlier have waited for it."""
        if self._client.done():
            self._client = asyncio.get_running_loop().create_future()
        self._client.set_result(client)

    async def fetch(self, identity: Identity) -> Callable[[], Claim]:
        """Look a claim up; the answer decodes it, which may raise NoResultsError or ConfigurationError.

        Raises:
            LookupFailedError: missing, not allocated, replaced, or the API server does not answer.
        """
        from drakit import kube

        where = f"{identity.namespace}/{identity.name}"
        try:
            client = await asyncio.wait_for(asyncio.shield(self._client), CLIENT_WAIT_SECONDS)
            async with self._turns:
                found = await client.get(kube.RESOURCE_CLAIMS, identity.name, namespace=identity.namespace)
            claim = api.decode(found)
        except TimeoutError as error:
            raise LookupFailedError(f"retrieve claim {where}: no connection to the API server yet") from error
        except (kube.ApiError, kube.CredentialsError, msgspec.DecodeError, ValueError) as error:
            raise LookupFailedError(f"retrieve claim {where}: {error}") from error
        verify(claim, identity)
        return lambda: claim_of(claim, self._driver, self._classes)

    async def is_gone(self, identity: Identity) -> bool:
        """Whether the API server says that this very claim no longer exists, or is no longer allocated.

        Raises:
            ApiError: it does not say.
        """
        from drakit import kube

        client = await asyncio.shield(self._client)
        try:
            found = await client.get(kube.RESOURCE_CLAIMS, identity.name, namespace=identity.namespace)
        except kube.NotFound:
            return True
        claim = api.decode(found)
        return claim.metadata.uid != identity.uid or claim.status.allocation is None
