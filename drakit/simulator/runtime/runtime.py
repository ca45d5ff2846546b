"""The runtime: sandboxes and containers, made and ended on request."""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from drakit import cdi
from drakit.clock import SYSTEM, Clock
from drakit.simulator.runtime.commands import outcome
from drakit.simulator.runtime.container import Container, base_spec, words

__all__ = ["CreateContainerError", "Runtime"]

Object = Mapping[str, Any]
_KILLED = 137  # 128 + SIGKILL
_CRASHED = 255


class CreateContainerError(RuntimeError):
    """A container cannot be created; the text is containerd's."""


class Runtime:
    """A runtime of one node. It outlives kubelets, as containerd does.

    Args:
        cdi_directories: where CDI files are, lowest priority first.
        root: where the containers' directories are laid out.
        clock: for the time that commands take.
        node: what the host has at a device path (default: this machine's).
    """

    def __init__(
        self,
        cdi_directories: Sequence[Path],
        root: Path,
        *,
        clock: Clock = SYSTEM,
        node: Callable[[str], cdi.HostNode | None] | None = None,
    ) -> None:
        self.cdi_directories, self.root = tuple(cdi_directories), root
        self.created = 0
        self._clock, self._node = clock, node
        self._sandboxes: dict[str, bool] = {}
        self._containers: dict[tuple[str, str], Container] = {}
        self._ended: dict[str, asyncio.Event] = {}
        self._commands: dict[str, asyncio.Task[None]] = {}
        self._ids = itertools.count(1)

    def sandboxes(self) -> tuple[str, ...]:
        """UIDs of all pods with a running sandbox."""
        return tuple(uid for uid, running in self._sandboxes.items() if running)

    async def run_sandbox(self, pod: Object) -> None:
        """Make the sandbox of a pod."""
        self._sandboxes[pod["metadata"]["uid"]] = True

    async def create_container(self, pod: Object, container: Object, cdi_devices: tuple[str, ...]) -> None:
        """Create and start a container with CDI devices.

        Raises:
            CreateContainerError: a device does not resolve.
        """
        uid, name = pod["metadata"]["uid"], container["name"]
        try:
            spec = cdi.resolve(self.cdi_directories, cdi_devices, base_spec(pod, container), node=self._node)
        except cdi.ResolveError as error:
            cause = f"unresolvable CDI devices {', '.join(error.ids)}" if error.ids else str(error)
            message = f"failed to create containerd container: CDI device injection failed: {cause}"
            raise CreateContainerError(message) from error
        old = self._containers.pop((uid, name), None)
        if old is not None:
            old.clear()
        number = next(self._ids)
        made = Container(
            f"simulated://{number:064x}",
            pod_uid=uid,
            name=name,
            spec=spec,
            cdi_devices=cdi_devices,
            root=self.root / str(number),
            started=self._clock.now(),
        )
        made.lay_out()
        self.created += 1
        self._containers[uid, name] = made
        self._ended[made.id] = asyncio.Event()
        self._commands[made.id] = asyncio.create_task(self._run(made, words(container)))

    async def _run(self, container: Container, command: Sequence[str]) -> None:
        end = outcome(command)
        if end.seconds is None:
            return
        await self._clock.sleep(end.seconds)
        self._finish(container, end.exit_code)

    def _finish(self, container: Container, exit_code: int) -> None:
        if container.exit_code is None:
            container.exit_code, container.finished = exit_code, self._clock.now()
            self._ended[container.id].set()

    def container(self, pod_uid: str, name: str) -> Container | None:
        """The newest container of that name."""
        return self._containers.get((pod_uid, name))

    def containers(self) -> tuple[Container, ...]:
        """All containers, the ended ones of living sandboxes included."""
        return tuple(self._containers.values())

    async def wait(self, pod_uid: str, name: str) -> int:
        """The exit code, as soon as that container has ended."""
        container = self._containers[pod_uid, name]
        await self._ended[container.id].wait()
        assert container.exit_code is not None
        return container.exit_code

    def end(self, pod_uid: str, name: str, exit_code: int = 0) -> None:
        """Let a container's command end now."""
        self._finish(self._containers[pod_uid, name], exit_code)

    def crash(self) -> None:
        """What a reboot does: every container and sandbox is gone."""
        for container in self._containers.values():
            self._finish(container, _CRASHED)
        for uid in list(self._sandboxes):
            self.remove_sandbox(uid)

    async def stop_sandbox(self, pod_uid: str, grace_seconds: float) -> None:
        """Stop the containers and then the sandbox; nothing to do without one.

        Shells that trap signals, as the pods of tutorials do, end well; all others are taken for killed. Neither makes
        anybody wait for `grace_seconds`.
        """
        for (uid, _), container in self._containers.items():
            if uid == pod_uid:
                trapped = grace_seconds > 0 and any("trap " in word for word in container.spec["process"]["args"])
                self._finish(container, 0 if trapped else _KILLED)
        if pod_uid in self._sandboxes:
            self._sandboxes[pod_uid] = False

    def remove_sandbox(self, pod_uid: str) -> None:
        """Forget a stopped sandbox and its containers."""
        self._sandboxes.pop(pod_uid, None)
        for key in [key for key in self._containers if key[0] == pod_uid]:
            container = self._containers.pop(key)
            self._commands.pop(container.id).cancel()
            self._ended.pop(container.id, None)
            container.clear()

    async def close(self) -> None:
        """End everything."""
        commands = list(self._commands.values())
        for uid in list(self._sandboxes):
            self.remove_sandbox(uid)
        for task in commands:
            task.cancel()
        await asyncio.gather(*commands, return_exceptions=True)
