"""gRPC to plugins as a kubelet speaks it: channels, error texts, messages."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

import grpc

from drakit._proto import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    health_v1_pb2,
    health_v1_pb2_grpc,
    health_v1alpha1_pb2,
    health_v1alpha1_pb2_grpc,
    pluginregistration_pb2,
    pluginregistration_pb2_grpc,
)
from drakit.simulator.kubelet.health import HEALTHY, UNHEALTHY, UNKNOWN, Health
from drakit.simulator.kubelet.state import ClaimRef, Device
from drakit.simulator.kubelet.timers import Timers

__all__ = [
    "Entries",
    "RegistrationChannel",
    "RegistrationError",
    "RpcError",
    "call",
    "dial_error",
    "open_channel",
    "registration",
    "watch_health",
]

PATH_LIMIT = 107
Entries = dict[str, tuple[str, tuple[Device, ...]]]

_MESSAGES: dict[str, ModuleType] = {"v1.DRAPlugin": dra_v1_pb2, "v1beta1.DRAPlugin": dra_v1beta1_pb2}
_STUBS: dict[str, Any] = {
    "v1.DRAPlugin": dra_v1_pb2_grpc.DRAPluginStub,
    "v1beta1.DRAPlugin": dra_v1beta1_pb2_grpc.DRAPluginStub,
}
_HEALTH: dict[str, tuple[ModuleType, Any]] = {
    "v1.DRAResourceHealth": (health_v1_pb2, health_v1_pb2_grpc.DRAResourceHealthStub),
    "v1alpha1.DRAResourceHealth": (health_v1alpha1_pb2, health_v1alpha1_pb2_grpc.DRAResourceHealthStub),
}
_STATUSES = {1: HEALTHY, 2: UNHEALTHY}
_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # every instance has its own connection
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class RpcError(Exception):
    """A failed RPC; the text is what grpc-go would print.

    Attributes:
        unimplemented: the plugin does not know the method.
    """

    def __init__(self, text: str, *, unimplemented: bool = False) -> None:
        self.unimplemented = unimplemented
        super().__init__(text)


class RegistrationError(Exception):
    """No word could be exchanged with a registration socket."""


def open_channel(path: str, authority: str) -> grpc.aio.Channel:
    """A channel over a Unix socket, insecure; nothing is dialled yet."""
    options = (*_OPTIONS, ("grpc.default_authority", authority))
    return grpc.aio.insecure_channel(f"unix:{path}", options=options)


def dial_error(path: str) -> str:
    """grpc-go's text for RPCs on a connection that could not be made."""
    if len(os.fsencode(path)) > PATH_LIMIT:
        cause = "invalid argument"
    else:
        cause = "connection refused" if Path(path).exists() else "no such file or directory"
    return (
        'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: '
        f'dial unix {path}: connect: {cause}"'
    )


async def call(
    channel: grpc.aio.Channel, version: str, method: str, claims: tuple[ClaimRef, ...], deadline: float
) -> Entries:
    """NodePrepareResources or NodeUnprepareResources: error text and devices by claim UID.

    Raises:
        RpcError: the whole call failed.
    """
    messages = _MESSAGES[version]
    request = getattr(messages, f"{method}Request")(
        claims=[messages.Claim(namespace=ref.namespace, uid=ref.uid, name=ref.name) for ref in claims]
    )
    try:
        reply = await getattr(_STUBS[version](channel), method)(request, timeout=deadline)
    except grpc.aio.AioRpcError as error:
        raise RpcError(_text(error)) from error
    return {uid: (entry.error, _devices(entry)) for uid, entry in reply.claims.items()}


async def watch_health(channel: grpc.aio.Channel, service: str) -> AsyncIterator[dict[str, Health]]:
    """Reports of NodeWatchResources by `pool/device`, without a deadline, until the stream ends.

    Raises:
        RpcError: it ended with an error.
    """
    messages, stub = _HEALTH[service]
    try:
        async for reply in stub(channel).NodeWatchResources(messages.NodeWatchResourcesRequest()):
            yield {
                f"{entry.device.pool_name}/{entry.device.device_name}": Health(
                    _STATUSES.get(entry.health, UNKNOWN), entry.message, 0, entry.health_check_timeout_seconds
                )
                for entry in reply.devices
            }
    except grpc.aio.AioRpcError as error:
        raise RpcError(_text(error), unimplemented=error.code() is grpc.StatusCode.UNIMPLEMENTED) from error


def _devices(entry: Any) -> tuple[Device, ...]:
    return tuple(
        Device(
            device.pool_name,
            device.device_name,
            tuple(device.request_names),
            tuple(device.cdi_device_ids),
            _share_id(device),
        )
        for device in getattr(entry, "devices", ())
    )


def _share_id(device: Any) -> str | None:
    if "share_id" not in device.DESCRIPTOR.fields_by_name or not device.HasField("share_id"):
        return None
    return str(device.share_id)


def _text(error: grpc.aio.AioRpcError) -> str:
    code = error.code()
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    name = "".join(word.capitalize() for word in code.name.split("_"))
    return f"rpc error: code = {'Canceled' if name == 'Cancelled' else name} desc = {error.details()}"


class RegistrationChannel:
    """One attempt's connection to a registration socket."""

    def __init__(self, channel: grpc.aio.Channel, timers: Timers) -> None:
        self._stub: Any = pluginregistration_pb2_grpc.RegistrationStub(channel)  # type: ignore[no-untyped-call]
        self._timers = timers

    async def get_info(self) -> Any:
        """The plugin's PluginInfo."""
        try:
            return await self._stub.GetInfo(pluginregistration_pb2.InfoRequest(), timeout=self._timers.get_info)
        except grpc.aio.AioRpcError as error:
            raise RegistrationError(f"failed to get plugin info: {_text(error)}") from error

    async def notify(self, error: str) -> bool:
        """Tell the outcome; whether the plugin took it well."""
        status = pluginregistration_pb2.RegistrationStatus(plugin_registered=not error, error=error)
        try:
            await self._stub.NotifyRegistrationStatus(status, timeout=self._timers.notify)
        except grpc.aio.AioRpcError:
            return False
        return True


@contextlib.asynccontextmanager
async def registration(path: str, timers: Timers) -> AsyncIterator[RegistrationChannel]:
    """Dial a registration socket (its authority is the percent-encoded path, R30) and hang up afterwards.

    Raises:
        RegistrationError: nobody accepts in time.
    """
    channel = open_channel(path, quote(path, safe=""))
    try:
        try:
            await asyncio.wait_for(channel.channel_ready(), timers.registration_dial)
        except TimeoutError as error:
            raise RegistrationError(f"RegisterPlugin error -- dial failed at socket {path}") from error
        yield RegistrationChannel(channel, timers)
    finally:
        await channel.close()
