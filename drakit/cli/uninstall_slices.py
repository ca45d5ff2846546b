"""drakit uninstall-slices: stop publishing, delete the driver's slices, and prove that they are gone."""

import argparse
import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from drakit.cli import options

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from drakit import kube
    from drakit.driver.publication.cleanup import Removal

__all__ = ["HELP", "add_arguments", "execute"]

HELP = "delete a driver's ResourceSlices for good, cluster-wide ones too, and prove that they stay away"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    options.add(parser, "--driver-name", help="name of the driver", required=True)
    options.add(parser, "--node-name", help="only the slices of this node; default: all")
    options.add(parser, "--kubeconfig", help="kubeconfig file; without it the pod's service account is used")
    options.add(
        parser,
        "--kubelet-plugins-directory-path",
        help="on the node itself: the driver's instances there are told to stop publishing first",
    )
    options.add(parser, "--lease-name", help="Lease of `drakit publish`; default: the driver's name")
    options.add(parser, "--lease-namespace", help="its namespace; default: the pod's own", env="POD_NAMESPACE")
    options.add(parser, "--settle", help="seconds in which nothing must come back", type=float, default=5.0)


def execute(arguments: argparse.Namespace) -> int:
    """0 when all slices are gone and stay away, 1 when some are left or came back."""
    from drakit import kube

    try:
        credentials = kube.find(arguments.kubeconfig)
    except kube.CredentialsError as error:
        raise options.UsageError(str(error)) from error
    _drain(arguments)
    try:
        return asyncio.run(_remove(arguments, credentials))
    except kube.ApiError as error:
        print(f"drakit uninstall-slices: {error}")
        return 1


async def _remove(arguments: argparse.Namespace, credentials: "kube.Credentials") -> int:
    from drakit import kube
    from drakit.driver.publication.cleanup import remove_slices

    driver, node = arguments.driver_name, arguments.node_name
    async with kube.Client(credentials) as client:

        async def remove() -> "Removal":
            return await remove_slices(client, driver=driver, node=node, settle_seconds=arguments.settle)

        if node:
            return _report(driver, await remove(), "")
        return await _without_publisher(client, arguments, credentials.namespace, remove)


async def _without_publisher(
    client: "kube.Client",
    arguments: argparse.Namespace,
    namespace: str,
    remove: "Callable[[], Awaitable[Removal]]",
) -> int:
    """Hold the Lease of `drakit publish`, if there is one, while the slices go: whoever led stops."""
    from drakit import kube
    from drakit.kube.election import RETRY_SECONDS

    name, where = arguments.lease_name or arguments.driver_name, arguments.lease_namespace or namespace
    try:
        lease = await client.get(kube.LEASES, name, namespace=where)
    except (kube.NotFound, kube.Forbidden):
        return _report(arguments.driver_name, await remove(), "")
    running = kube.running_holder(lease, datetime.now(UTC))
    election = kube.Election(client, name=name, namespace=where, identity=f"uninstall-{kube.identity()}")
    await election.acquire(force=True)
    outcome: list[Removal] = []

    async def work() -> None:
        if running:
            await asyncio.sleep(RETRY_SECONDS + 1)  # it notices when it renews
        outcome.append(await remove())

    await election.run(work)
    return _report(arguments.driver_name, outcome[0], running)


def _report(driver: str, removal: "Removal", running: str) -> int:
    print(f"{removal.deleted} slices of {driver} deleted")
    if removal.claims:
        print(f"warning: {len(removal.claims)} claims still have its devices: {', '.join(removal.claims[:5])}")
    for node in removal.back:
        what = f"node {node}: the driver still runs there: remove its DaemonSet" if node else "a publisher still runs"
        print(f"slices came back: {what}, then run this again")
    for name in () if removal.back else removal.left:
        print(f"still there: {name}: see its finalizers")
    if running:
        print(f"{running} was publishing until now: remove its Deployment, or the slices come back")
    return 0 if removal.complete and not running else 1


def _drain(arguments: argparse.Namespace) -> None:
    """On a node: tell the instances there to stop; they ask before each pass, so one second is enough."""
    if arguments.kubelet_plugins_directory_path is None:
        return
    from drakit.driver import instances
    from drakit.files import REAL

    directory = Path(arguments.kubelet_plugins_directory_path) / arguments.driver_name
    if not directory.is_dir():
        raise options.UsageError(f"--kubelet-plugins-directory-path: there is no {directory}")
    instances.drain(REAL, directory, time.time_ns())
    time.sleep(1.0)
