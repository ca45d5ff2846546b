"""What an operator can set: one table for flags, environment twins and documentation."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from drakit.driver import logs, names

__all__ = ["OPTIONS", "Option", "Settings", "SettingsError"]


class SettingsError(ValueError):
    """A setting is missing or cannot work; one line that says what to do."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How one instance of a driver runs; see OPTIONS for what each one means."""

    node_name: str
    driver_name: str
    cdi_root: str = "/var/run/cdi"
    kubelet_registrar_directory_path: str = "/var/lib/kubelet/plugins_registry"
    kubelet_plugins_directory_path: str = "/var/lib/kubelet/plugins"
    pod_uid: str = ""
    healthcheck_port: int = -1
    metrics_port: int = -1
    listen_address: str = ""
    kubeconfig: str = ""
    service_account_directory: str = "/var/run/secrets/kubernetes.io/serviceaccount"
    log_level: str = "info"
    log_format: str = "auto"
    max_hooks: int = 64
    hook_timeout: float = 300.0
    drain_timeout: float = 25.0
    reconcile_grace: float = 300.0

    @property
    def plugin_directory(self) -> Path:
        """The driver's own directory."""
        return Path(self.kubelet_plugins_directory_path, self.driver_name)

    @property
    def registration_socket(self) -> Path:
        """Where the kubelet finds the driver."""
        return names.registration_socket(self.kubelet_registrar_directory_path, self.driver_name, self.pod_uid)

    @property
    def service_socket(self) -> Path:
        """Where the kubelet calls it."""
        return names.service_socket(self.plugin_directory, self.pod_uid)

    def check(self) -> None:
        """Find out what can be known without touching anything.

        Raises:
            SettingsError: a name or path can never work.
        """
        if not self.node_name:
            raise SettingsError("the node's name is missing: give --node-name, or set NODE_NAME")
        for option in ("cdi_root", "kubelet_registrar_directory_path", "kubelet_plugins_directory_path"):
            if not Path(getattr(self, option)).is_absolute():
                raise SettingsError(f"--{option.replace('_', '-')} must be an absolute path, the same on the host")
        if self.healthcheck_port == self.metrics_port > 0:
            raise SettingsError(
                f"--healthcheck-port and --metrics-port are both {self.metrics_port}: give each its own"
            )
        try:
            names.check_driver_name(self.driver_name)
            names.check_identity("namespace", "pod", self.pod_uid or "none")
            names.check_socket_path(self.registration_socket)
            names.check_socket_path(self.service_socket)
        except names.IdentityError as error:
            raise SettingsError(f"--pod-uid: {self.pod_uid!r} is not a UID") from error
        except ValueError as error:
            raise SettingsError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Option:
    """One setting: `name` in kebab case is the flag, in upper snake case the environment variable."""

    name: str
    help: str
    parse: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """`--node-name`."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def default(self) -> Any:
        """What holds when nothing is given; None = required, or the driver's own."""
        value = next(field.default for field in msgspec.structs.fields(Settings) if field.name == self.name)
        return None if value is msgspec.NODEFAULT else value


def _port(text: str) -> int:
    port = int(text)
    if port > 65535:
        raise ValueError(f"{port} is no port")
    return port


def _positive(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{text} is not a positive number of seconds")
    return seconds


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError(f"{text} is less than 1")
    return count


OPTIONS = (
    Option("node_name", "name of the node that the driver runs on"),
    Option("driver_name", "name of the driver, a DNS subdomain"),
    Option("cdi_root", "directory for CDI specs; the container runtime must read it"),
    Option("kubelet_registrar_directory_path", "the kubelet's registry of plugins"),
    Option("kubelet_plugins_directory_path", "where plugins keep their data, the driver's below its name"),
    Option("pod_uid", "UID of the driver's pod: gives the sockets names of their own, for upgrades without a gap"),
    Option("healthcheck_port", "TCP port of the gRPC health service; 0 = any free, negative = off", _port),
    Option("metrics_port", "TCP port of /metrics, /healthz, /readyz; 0 = any free, negative = off", _port),
    Option("listen_address", "address that both ports listen on; empty = all"),
    Option("kubeconfig", "kubeconfig file; without it the pod's service account is used"),
    Option("service_account_directory", "token, ca.crt and namespace of the pod's service account"),
    Option("log_level", "least level of records", choices=logs.LEVELS),
    Option("log_format", "auto means console on a terminal, else json", choices=logs.FORMATS),
    Option("max_hooks", "prepare and unprepare calls of the device driver at once", _count),
    Option("hook_timeout", "seconds after which a call of the device driver counts as hanging", _positive),
    Option("drain_timeout", "seconds to finish claims after SIGTERM", _positive),
    Option("reconcile_grace", "seconds before a claim that the API no longer has is unprepared", _positive),
)


def from_environment(driver_name: str, environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from environment variables alone.

    Raises:
        SettingsError: a value does not parse or cannot work.
    """
    env = os.environ if environment is None else environment
    values: dict[str, Any] = {"node_name": "", "driver_name": driver_name}
    for option in OPTIONS:
        twin = option.name.upper()
        text = env.get(twin, "")
        if not text:
            continue
        try:
            values[option.name] = option.parse(text)
        except ValueError as error:
            raise SettingsError(f"environment variable {twin}: {error}") from error
        if option.choices and text not in option.choices:
            raise SettingsError(f"environment variable {twin}: {text!r} is not one of {', '.join(option.choices)}")
    settings = Settings(**values)
    settings.check()
    return settings
