"""A container runtime that only resolves CDI: what a container would get.

No process is started. A container's OCI spec is made as containerd makes it from the pod and the CDI devices, its
mounts are laid out below a directory, and its command is taken for what it says: `sleep 60` ends after a minute.
"""

from drakit.simulator.runtime.commands import Outcome, outcome
from drakit.simulator.runtime.container import Container
from drakit.simulator.runtime.runtime import CreateContainerError, Runtime

__all__ = ["Container", "CreateContainerError", "Outcome", "Runtime", "outcome"]
