"""Events for people: what happened to an object, seen by `kubectl get events` and `kubectl describe`."""

import asyncio
import logging
import secrets
from typing import Any

from drakit.clock import SYSTEM, Clock
from drakit.kube import errors
from drakit.kube.client import Client
from drakit.kube.resources import EVENTS

__all__ = ["Recorder"]

_log = logging.getLogger(__name__)
_REPEAT_SECONDS = 600.0
_MESSAGE_LENGTH = 1024
_QUEUE = 100


class Recorder:
    """Writes Events about one object; the same event again within ten minutes is not written.

    `record` returns at once; `run` writes. Events are a courtesy: failures to write them are logged and forgotten.

    Args:
        client: an open client.
        regarding: apiVersion, kind, name and, if it has them, namespace and uid of the object.
        component: who reports, such as the driver's name.
        host: the node's name, or "".
        clock: time.
    """

    def __init__(
        self,
        client: Client,
        *,
        regarding: dict[str, str],
        component: str,
        host: str = "",
        clock: Clock = SYSTEM,
    ) -> None:
        self._client, self._clock = client, clock
        self._regarding = regarding
        self._source = {"component": component, **({"host": host} if host else {})}
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_QUEUE)
        self._written: dict[tuple[str, str, str], float] = {}

    def record(self, type: str, reason: str, message: str) -> None:
        """Report something: type is Normal or Warning, reason one CamelCase word."""
        now = self._clock.monotonic()
        key = (type, reason, message)
        self._written = {k: t for k, t in self._written.items() if now - t < _REPEAT_SECONDS}
        if key in self._written or self._queue.full():
            return
        self._written[key] = now
        self._queue.put_nowait(self._event(type, reason, message))

    def _event(self, type: str, reason: str, message: str) -> dict[str, Any]:
        # Cluster-scoped objects have their events in "default".
        namespace = self._regarding.get("namespace") or "default"
        time = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        text = message.encode(errors="backslashreplace")[:_MESSAGE_LENGTH].decode("utf-8", "ignore")
        name = f"{self._regarding['name'][:200]}.{secrets.token_hex(8)}"
        return {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": self._regarding,
            "type": type,
            "reason": reason,
            "message": text,
            "source": self._source,
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        }

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            event = await self._queue.get()
            try:
                await self._client.create(EVENTS, event)
            except (errors.ApiError, errors.CredentialsError) as error:
                _log.warning("cannot write event %s: %s", event["reason"], error)
