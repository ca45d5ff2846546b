"""The one service connection of a plugin instance: its own state, backoff and fail-fast, as grpc-go has them."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import grpc

from drakit.clock import Clock
from drakit.simulator.kubelet import wire
from drakit.simulator.kubelet.health import Health
from drakit.simulator.kubelet.state import ClaimRef, Instance
from drakit.simulator.kubelet.timers import Timers

__all__ = ["Connection"]

_CLOSING = "rpc error: code = Canceled desc = grpc: the client connection is closing"
_DRAIN_SECONDS = 1.0  # for calls in flight on a lost connection to get their own status


class Connection:
    """Dials at once, again after each loss, and with backoff after each failure (recorded section 32).

    RPCs wait while the first dial of a round is under way and fail at once while the backoff runs: a call never forces
    a new dial.
    """

    def __init__(
        self,
        instance: Instance,
        *,
        clock: Clock,
        timers: Timers,
        rng: random.Random,
        changed: Callable[[bool], None],
    ) -> None:
        self.instance = instance
        self._clock, self._timers, self._rng, self._changed = clock, timers, rng, changed
        self._channel: grpc.aio.Channel | None = None
        self._error = wire.dial_error(instance.endpoint)
        self._settled = asyncio.Event()
        self._dialling = False
        self._calls: set[asyncio.Task[wire.Entries]] = set()
        self._draining: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._run(), name=f"kubelet connection {instance.driver}#{instance.id}")

    @property
    def is_idle(self) -> bool:
        """Whether neither a dial nor a call is under way (health streams do not count)."""
        return not self._dialling and not self._calls

    async def call(self, method: str, claims: tuple[ClaimRef, ...]) -> wire.Entries:
        """One RPC within the recorded deadline.

        Raises:
            RpcError: with grpc-go's text.
        """
        task = asyncio.create_task(self._call(method, claims))
        self._calls.add(task)
        try:
            await asyncio.wait({task})
        finally:
            self._calls.discard(task)
            task.cancel()
        if task.cancelled():
            raise wire.RpcError(_CLOSING)
        return task.result()

    async def _call(self, method: str, claims: tuple[ClaimRef, ...]) -> wire.Entries:
        await self._settled.wait()
        if self._channel is None:
            raise wire.RpcError(self._error)
        return await wire.call(self._channel, self.instance.version, method, claims, self._timers.rpc)

    async def watch_health(self, service: str) -> AsyncIterator[dict[str, Health]]:
        """Health reports over this connection, until the stream ends.

        Raises:
            RpcError: it ended with an error, or there is no connection.
        """
        await self._settled.wait()
        if self._channel is None:
            raise wire.RpcError(self._error)
        async for report in wire.watch_health(self._channel, service):
            yield report

    async def close(self) -> None:
        """Hang up: calls in flight are cancelled, as the plugin can see."""
        self._task.cancel()
        for task in (*self._calls, *self._draining):
            task.cancel()
        await asyncio.gather(self._task, *self._calls, *self._draining, return_exceptions=True)
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def _run(self) -> None:
        failures = 0
        while True:
            channel = wire.open_channel(self.instance.endpoint, "localhost")
            self._dialling = True
            try:
                connected = await _dial(channel)
            except BaseException:
                await channel.close()
                raise
            finally:
                self._dialling = False
            if connected:
                failures = 0
                await self._hold(channel)
                continue
            failures += 1
            self._error = wire.dial_error(self.instance.endpoint)
            self._settled.set()
            await channel.close()
            await self._clock.sleep(self._timers.reconnect_delay(failures, self._rng))

    async def _hold(self, channel: grpc.aio.Channel) -> None:
        """Serve calls on `channel` until it is lost."""
        self._channel = channel
        self._settled.set()
        self._changed(True)
        await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
        self._channel = None
        self._settled.clear()
        self._changed(False)
        task = asyncio.create_task(channel.close(_DRAIN_SECONDS))
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)


async def _dial(channel: grpc.aio.Channel) -> bool:
    """Whether the first attempt of a fresh channel gets through."""
    state = channel.get_state(try_to_connect=True)
    while state not in {grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE}:
        await channel.wait_for_state_change(state)
        state = channel.get_state(try_to_connect=True)
    return state is grpc.ChannelConnectivity.READY
