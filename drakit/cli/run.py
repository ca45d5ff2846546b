"""drakit run: the ready-made simulated driver as a node plugin."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from drakit.cli import options

DEVICE_PROFILES = (
    "gpu",
    "allocatable",
    "attributes",
    "compatibility",
    "lists",
    "many",
    "partition-types",
    "partitions",
    "sharing",
    "taints",
)
"""Said here, too, as the profiles themselves load much."""

HELP = "run a DRA driver on this node (simulated devices; for hardware-free clusters and demos)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One flag for each of the driver's options."""
    with _lean_imports():
        from drakit.driver.settings import OPTIONS

    for option in OPTIONS:
        default = "gpu.example.com" if option.name == "driver_name" else option.default
        options.add(
            parser,
            option.flag,
            help=option.help,
            type=option.parse,
            default=default,
            required=option.name == "node_name",
            choices=option.choices or None,
        )
    options.add(
        parser,
        "--device-profile",
        help=f"what the simulated node has, one of {', '.join(DEVICE_PROFILES)}",
        default=DEVICE_PROFILES[0],
        choices=DEVICE_PROFILES,
    )
    options.add_config_file(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run until a signal comes; the process ends inside."""
    with _lean_imports():
        from drakit import kube  # noqa: F401 - brings aiohttp
        from drakit.devices import simulated
        from drakit.driver.application import preflight
        from drakit.driver.running import find_credentials, serve
        from drakit.driver.settings import OPTIONS, Settings, SettingsError

    settings = Settings(**{option.name: getattr(arguments, option.name) for option in OPTIONS})
    try:
        settings.check()
        credentials = find_credentials(settings)
        preflight(settings)
    except SettingsError as error:
        raise options.UsageError(str(error)) from error
    driver = simulated.SimulatedDriver(settings.node_name, settings.driver_name, arguments.device_profile)
    serve(driver, settings, credentials)


@contextmanager
def _lean_imports() -> Iterator[None]:
    """Keep libraries from loading what this process never uses: 6 MiB and 90 ms of every node in a cluster.

    structlog imports rich, where it is installed, for tracebacks that we do not print. aiohttp loads the system's
    certificate authorities for a default context; drakit.kube makes its own, from the cluster's authority.
    """
    missing = object()
    rich = sys.modules.get("rich", missing)
    variables = {name: os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")}
    if rich is missing:
        sys.modules["rich"] = None  # type: ignore[assignment]  # how Python marks what cannot be imported
    os.environ.update(dict.fromkeys(variables, os.devnull))
    try:
        yield
    finally:
        if rich is missing:
            del sys.modules["rich"]
        for name, value in variables.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
