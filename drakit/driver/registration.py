"""The registration service: who we are, and what the kubelet thinks of it (R16-R22)."""

from collections.abc import Callable, Sequence
from typing import Any

import grpc
import structlog

from drakit._proto import pluginregistration_pb2 as pb
from drakit._proto import pluginregistration_pb2_grpc

__all__ = ["Registration", "supported_versions"]

PLUGIN_TYPE = "DRAPlugin"

_log = structlog.stdlib.get_logger("drakit.driver.registration")


def supported_versions(*, health: bool) -> tuple[str, ...]:
    """What is served, in the order of preference: the kubelet takes the first that it knows (R18, R27)."""
    services = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
    return (*services, "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth") if health else services


class Registration(pluginregistration_pb2_grpc.RegistrationServicer):
    """Answers GetInfo any number of times and remembers the last verdict.

    Args:
        driver: its name.
        endpoint: absolute path of the service socket, the same on the host.
        versions: what is served.
        on_change: called with each verdict: registered, and the kubelet's reason when not.
    """

    def __init__(
        self,
        driver: str,
        endpoint: str,
        versions: Sequence[str],
        on_change: Callable[[bool, str], None] = lambda _registered, _error: None,
    ) -> None:
        self._info = pb.PluginInfo(type=PLUGIN_TYPE, name=driver, endpoint=endpoint, supported_versions=list(versions))
        self._on_change = on_change
        self.registered = False
        self.error = ""

    async def GetInfo(self, request: pb.InfoRequest, context: Any) -> pb.PluginInfo:  # noqa: N802, ARG002 - wire name
        """Name, endpoint and versions."""
        return self._info

    async def NotifyRegistrationStatus(  # noqa: N802 - wire name
        self, request: pb.RegistrationStatus, context: Any
    ) -> pb.RegistrationStatusResponse:
        """Remember the verdict; a refusal is answered with an error, as the kubelet's Go helper does (R21)."""
        changed = (request.plugin_registered, request.error) != (self.registered, self.error)
        self.registered, self.error = request.plugin_registered, request.error
        if request.plugin_registered:
            _log.info("registered by the kubelet")
        elif changed:
            _log.error("the kubelet refused the registration", err=request.error)
        self._on_change(request.plugin_registered, request.error)
        if not request.plugin_registered:
            await context.abort(grpc.StatusCode.UNKNOWN, f"failed registration process: {request.error}")
        return pb.RegistrationStatusResponse()
