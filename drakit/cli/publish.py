"""drakit publish: cluster-wide pools from a file, by one leader of several replicas."""

import argparse
import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from drakit.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable

    from drakit import kube
    from drakit.driver.publication import DriverResources
    from drakit.driver.publication.cluster import ClusterPublisher

__all__ = ["HELP", "add_arguments", "execute"]

HELP = "publish cluster-wide pools (network-attached or control-plane devices) from a file; no kubelet is needed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    options.add(parser, "--driver-name", help="name of the driver, a DNS subdomain", required=True)
    options.add(parser, "--inventory", help="YAML or JSON file with the pools; read again when it changes")
    options.add(parser, "--profile", help="simulated pools in place of a file, such as everywhere, zone or licences")
    options.add(parser, "--only-pool", help="manage this pool alone, beside other publishers of the driver")
    options.add(parser, "--kubeconfig", help="kubeconfig file; without it the pod's service account is used")
    options.add(parser, "--lease-name", help="Lease by which replicas choose their leader; default: the driver's name")
    options.add(parser, "--lease-namespace", help="its namespace; default: the pod's own", env="POD_NAMESPACE")
    options.add(
        parser,
        "--force",
        help="change skipNodeOperations although claims are live",
        type=options.boolean,
        default=False,
        env="PUBLISH_FORCE",
    )
    options.add(
        parser,
        "--once",
        help="publish, wait until it is done, and end; exit 1 when a pool is refused",
        type=options.boolean,
        default=False,
        env="PUBLISH_ONCE",
    )
    options.add(
        parser, "--metrics-port", help="port of /metrics, /healthz, /readyz; negative = off", type=int, default=8080
    )
    options.add(parser, "--listen-address", help="address that the port listens on; empty = all", default="")
    options.add(parser, "--log-level", help="least level of records", default="info", choices=_LEVELS)
    options.add(parser, "--log-format", help="auto means console on a terminal", default="auto", choices=_FORMATS)
    options.add_config_file(parser)


_LEVELS = ("debug", "info", "warning", "error")
_FORMATS = ("auto", "json", "console")


def execute(arguments: argparse.Namespace) -> int:
    """Publish until a signal comes: 0 after a signal (or --once that worked), 1 when leadership or a pool was lost."""
    from drakit import kube
    from drakit.api.names import driver_name
    from drakit.driver import logs

    if faults := driver_name(arguments.driver_name):
        raise options.UsageError(f"--driver-name {arguments.driver_name!r}: {faults[0]}")
    if (arguments.inventory is None) == (arguments.profile is None):
        raise options.UsageError("give either --inventory FILE or --profile NAME")
    if arguments.inventory is not None and not Path(arguments.inventory).exists():
        raise options.UsageError(f"--inventory {arguments.inventory} does not exist")
    _check_profile(arguments.profile)
    try:
        credentials = kube.find(arguments.kubeconfig)
    except kube.CredentialsError as error:
        raise options.UsageError(str(error)) from error
    logs.configure(arguments.log_level, arguments.log_format)
    return asyncio.run(_publish(arguments, credentials))


def _check_profile(name: str | None) -> None:
    if name is None:
        return
    from drakit.devices.simulated.pools import POOL_PROFILES

    cluster_wide = sorted(each.name for each in POOL_PROFILES.values() if not each.local)
    if name not in cluster_wide:
        raise options.UsageError(f"--profile {name!r} is not one of {', '.join(cluster_wide)}")


async def _publish(arguments: argparse.Namespace, credentials: "kube.Credentials") -> int:
    from drakit import kube
    from drakit.driver.probes import HttpProbes
    from drakit.driver.publication.cluster import ClusterPublisher, SkipChangeError
    from drakit.driver.publication.inventory_file import InventoryError
    from drakit.driver.publication.metrics import Metrics

    metrics = Metrics()
    async with kube.Client(credentials) as client:
        election = kube.Election(
            client,
            name=arguments.lease_name or arguments.driver_name,
            namespace=arguments.lease_namespace or credentials.namespace,
            identity=kube.identity(),
        )
        publisher = ClusterPublisher(
            client,
            driver=arguments.driver_name,
            read=_source(arguments),
            election=election,
            only_pool=arguments.only_pool,
            force=arguments.force,
            metrics=metrics,
        )
        probes = HttpProbes(arguments.listen_address, arguments.metrics_port, metrics.exposition, publisher.unready)
        if arguments.metrics_port >= 0:
            await probes.start()
        try:
            return await _until_signal(publisher, once=arguments.once)
        except (kube.LostLeadershipError, InventoryError, SkipChangeError, ValueError) as error:
            print(f"drakit publish: {error}")
            return 1
        finally:
            await probes.stop()


async def _until_signal(publisher: "ClusterPublisher", *, once: bool) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    work = asyncio.ensure_future(publisher.run(once=once))
    waiting = asyncio.ensure_future(stop.wait())
    await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not work.done():
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return 0
    work.result()
    for reason in publisher.publisher.reasons:
        print(f"drakit publish: {reason}")
    for warning in publisher.publisher.warnings:
        print(f"drakit publish: warning: {warning}")
    return 1 if publisher.publisher.reasons else 0


def _source(arguments: argparse.Namespace) -> "Callable[[], DriverResources | None]":
    if arguments.profile is None:
        from drakit.driver.publication.inventory_file import InventoryFile

        return InventoryFile(Path(arguments.inventory), arguments.driver_name).read
    from drakit.devices.simulated.pools import POOL_PROFILES

    pools = iter([POOL_PROFILES[arguments.profile].build(arguments.only_pool or arguments.profile)])
    return lambda: next(pools, None)
