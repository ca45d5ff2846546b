"""drakit uninstall-slices: stop publishing, delete the driver's slices, and prove that they are gone."""

import argparse
import asyncio
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from drakit.cli import options

if TYPE_CHECKING:
    from drakit import kube

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

    async with kube.Client(credentials) as client, contextlib.AsyncExitStack() as stack:
        if not arguments.node_name:
            await _take_lease(stack, client, arguments, credentials.namespace)
        removal = await remove_slices(
            client, driver=arguments.driver_name, node=arguments.node_name, settle_seconds=arguments.settle
        )
    print(f"{removal.deleted} slices of {arguments.driver_name} deleted")
    if removal.claims:
        print(f"warning: {len(removal.claims)} claims still have its devices: {', '.join(removal.claims[:5])}")
    for node in removal.back:
        what = f"node {node}: the driver still runs there: remove its DaemonSet" if node else "a publisher still runs"
        print(f"slices came back: {what}, then run this again")
    for name in () if removal.back else removal.left:
        print(f"still there: {name}: see its finalizers")
    return 0 if removal.complete else 1


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


async def _take_lease(
    stack: contextlib.AsyncExitStack, client: "kube.Client", arguments: argparse.Namespace, namespace: str
) -> None:
    """Take the publisher's Lease, if there is one, so that it stops before its slices go."""
    from drakit import kube

    name = arguments.lease_name or arguments.driver_name
    where = arguments.lease_namespace or namespace
    try:
        await client.get(kube.LEASES, name, namespace=where)
    except (kube.NotFound, kube.Forbidden):
        return
    election = kube.Election(client, name=name, namespace=where, identity=f"uninstall-{kube.identity()}")
    await election.acquire(force=True)
    stack.push_async_callback(election.release)
