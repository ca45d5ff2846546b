"""From a Driver to a process: signals, exit codes."""

import asyncio
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import structlog

from drakit.driver import logs
from drakit.driver.application import Application, StartError, preflight
from drakit.driver.plugin import Driver
from drakit.driver.settings import Settings, SettingsError, from_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from drakit import kube

__all__ = ["run", "serve"]

SWITCH_SECONDS = 0.001
"""Threads hand over often: the event loop waits for short pieces of work in others, five times per claim."""

END_SECONDS = 5.0
"""For what comes after the drain: the last replies, sockets, records. A disk or a device driver may hang for ever."""

_log = structlog.stdlib.get_logger("drakit.driver")


def run(driver: Driver, settings: Settings | None = None) -> NoReturn:
    """Serve `driver` until SIGTERM or SIGINT, then end the process.

    Args:
        driver: the device driver.
        settings: default: from environment variables (NODE_NAME, POD_UID, METRICS_PORT ...; see settings.OPTIONS).

    Exit codes: 0 after a signal, 1 when it could not start or a gRPC server ended, 2 when a setting is wrong.
    """
    try:
        chosen = _of_driver(driver, settings or from_environment(driver.name))
        preflight(chosen)
        credentials = find_credentials(chosen)
    except SettingsError as error:
        sys.stderr.write(f"{driver.name}: {error}\n")
        sys.exit(2)
    serve(driver, chosen, credentials)


def _of_driver(driver: Driver, settings: Settings) -> Settings:
    if settings.driver_name != driver.name:
        raise SettingsError(f"the driver's name is fixed, --driver-name (DRIVER_NAME) {settings.driver_name} is not it")
    return settings


def find_credentials(settings: Settings) -> "Callable[[], kube.Credentials]":
    """How to reach the API server, checked as far as it can be without asking it.

    Raises:
        SettingsError: there is no way.
    """
    from drakit import kube

    try:
        if settings.kubeconfig:
            found = kube.from_kubeconfig(settings.kubeconfig)
        elif os.environ.get("KUBERNETES_SERVICE_HOST"):
            found = kube.in_cluster(settings.service_account_directory)
        else:
            found = kube.find()
    except kube.CredentialsError as error:
        raise SettingsError(str(error)) from error
    return lambda: found


def serve(driver: Driver, settings: Settings, credentials: "Callable[[], kube.Credentials]") -> NoReturn:
    """Run the application; the process ends with `os._exit`, as nothing that still hangs may hold it back."""
    logs.configure(settings.log_level, settings.log_format)
    code = asyncio.run(_serve(driver, settings, credentials))
    _exit(code)


async def _serve(driver: Driver, settings: Settings, credentials: "Callable[[], kube.Credentials]") -> int:
    from drakit.driver.publishing import Publishing

    stop = _signals()
    application = Application(driver, settings, credentials, Publishing)
    _log.info("starting", driver=driver.name, version=application.version, **_shown(settings))
    try:
        await application.start()
    except StartError as error:
        _log.error("cannot start", err=str(error))
        _exit(1)
    _log.info(
        "listening",
        registration=str(settings.registration_socket),
        service=str(settings.service_socket),
        healthcheck_port=application.liveness.port,
        metrics_port=application.probes.port,
    )
    _settle()
    code = await _until_end(stop, application)
    _log.info("stopping")
    ending = asyncio.create_task(application.stop())
    # Not cancelled when it is late: whatever hangs would hang in its cancellation, too.
    await asyncio.wait({ending}, timeout=settings.drain_timeout + END_SECONDS)
    if not ending.done():
        _log.warning("something of the driver does not end, ending without it")
    elif failure := ending.exception():
        _log.error("stopping failed", err=str(failure), exc_info=failure)
    else:
        _log.info("stopped")
    _exit(code)


async def _until_end(stop: asyncio.Event, application: Application) -> int:
    """Wait for a signal, or for the end of a gRPC server: without it the process is of no use; the exit code."""
    signalled = asyncio.ensure_future(stop.wait())
    ends: list[asyncio.Future[Any]] = [signalled, application.ended]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    signalled.cancel()
    if not application.ended.done():
        return 0
    _log.error("cannot go on", err=application.ended.result())
    return 1


def _settle() -> None:
    """What was loaded at the start stays for good: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_SECONDS)


def _signals() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT; the second one ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def handle(number: int) -> None:
        if stop.is_set():
            _log.warning("second signal, ending at once")
            _exit(128 + number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle, number)
    return stop


def _shown(settings: Settings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in settings.__struct_fields__ if name != "driver_name"}


def _exit(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
