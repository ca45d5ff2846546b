"""The class that a device driver subclasses."""

from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import msgspec

from drakit.api import resource
from drakit.driver.claims import Claim, ClaimRef, Preparation, Prepared
from drakit.driver.configuration import Configuration

if TYPE_CHECKING:
    from drakit.driver.publication import DriverResources

__all__ = ["Device", "Driver", "HealthReport", "PrepareAnswer"]

Device: TypeAlias = resource.Device
PrepareAnswer: TypeAlias = Preparation | Iterable[Prepared]


class HealthReport(msgspec.Struct, frozen=True):
    """The health of one device.

    Attributes:
        device: its name.
        health: Healthy, Unhealthy or Unknown.
        message: why, for people; cut to 1024 bytes on a character boundary (H2).
        pool: its pool; None = the node's pool.
        timeout_seconds: the kubelet takes the device for Unknown after so long a silence; None = 30 s. Drakit repeats
            the last report in time as long as the driver's iterator is alive.
    """

    device: str
    health: Literal["Healthy", "Unhealthy", "Unknown"]
    message: str = ""
    pool: str | None = None
    timeout_seconds: int | None = None


class Driver:
    """A device driver: what there is, and what using it takes.

    `prepare` and `unprepare` may be plain functions (each call gets a daemon thread of its own) or coroutine functions
    (they run on the event loop and must not block it). Both may be called again for the same claim after a crash or an
    error and must then bring about the same; two calls for one claim never overlap. Raise `PermanentError` when a retry
    cannot help.
    """

    name: str
    """The driver's name, a DNS subdomain; by convention also that of its DeviceClass."""

    configurations: ClassVar[Sequence[type[Configuration]]] = ()
    """Classes of opaque parameters that claims and DeviceClasses may carry for this driver."""

    def devices(self) -> "Iterable[Device] | DriverResources":
        """All devices of this node, or pools of them; read at the start and again whenever `changes` yields."""
        raise TypeError(f"{type(self).__name__} does not define devices()")

    def changes(self) -> AsyncIterator[None] | None:
        """Yield whenever `devices` has something new; None = never."""
        return None

    def prepare(self, claim: Claim) -> PrepareAnswer | Awaitable[PrepareAnswer]:
        """Make the claim's devices usable and say what their containers need."""
        return [Prepared(device) for device in claim.devices]

    def unprepare(self, claim: ClaimRef) -> Awaitable[None] | None:
        """Take back what `prepare` did; also called when it failed or its record was lost. Unknown claims are fine."""
        del claim
        return None

    def health(self) -> AsyncIterator[Sequence[HealthReport]] | None:
        """Yield the state of all devices first, then whatever changes; None = health is not reported."""
        return None
