"""What the kubelet asks of a container runtime. Any object of this form will do; drakit.simulator.runtime is one."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

__all__ = ["ContainerRuntime", "ContainerView"]

Object = Mapping[str, Any]


class ContainerView(Protocol):
    """A container as the runtime reports it."""

    @property
    def id(self) -> str:
        """Unique among all containers of the runtime."""
        ...

    @property
    def started(self) -> datetime:
        """When it was started."""
        ...

    @property
    def finished(self) -> datetime | None:
        """When it ended; None: it runs."""
        ...

    @property
    def exit_code(self) -> int | None:
        """How it ended; None: it runs."""
        ...


class ContainerRuntime(Protocol):
    """Sandboxes by pod UID, and in each the newest container of every name. It outlives kubelets."""

    def sandboxes(self) -> tuple[str, ...]:
        """UIDs of all pods with a sandbox."""
        ...

    async def run_sandbox(self, pod: Object) -> None:
        """Make the sandbox of a pod."""
        ...

    async def create_container(self, pod: Object, container: Object, cdi_devices: tuple[str, ...]) -> None:
        """Create and start a container (a v1 Container) with CDI devices.

        Raises:
            RuntimeError: it cannot be created; the text is what an event shows.
        """
        ...

    def container(self, pod_uid: str, name: str) -> ContainerView | None:
        """The newest container of that name."""
        ...

    async def wait(self, pod_uid: str, name: str) -> int:
        """The exit code, as soon as that container has ended."""
        ...

    async def stop_sandbox(self, pod_uid: str, grace_seconds: float) -> None:
        """Stop the containers and then the sandbox; nothing to do without one."""
        ...

    def remove_sandbox(self, pod_uid: str) -> None:
        """Forget a stopped sandbox and its containers."""
        ...
