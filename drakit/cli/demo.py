"""drakit demo: one claim, once around, on a cluster inside this process; the driver is a real process."""

import argparse
import sys
from typing import TYPE_CHECKING

from drakit.cli import options

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from drakit.cli.demo_report import Report
    from drakit.cli.demo_scenario import Scenario
    from drakit.simulator.cluster import Cluster

HELP = "run a driver on a simulated cluster: a claim allocated, prepared, used and given back, every step checked"
_SECONDS = 28.0
_WIPE_SECONDS = 0.5
_V1_SINCE = 34  # the minor version of Kubernetes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What can be chosen."""
    options.add(
        parser,
        "--keep",
        help="leave the cluster and the driver running for kubectl, until Ctrl-C",
        type=options.boolean,
        default=False,
    )
    options.add(
        parser,
        "--form",
        help="API version of the claim template",
        default="both",
        choices=("v1", "v1beta1", "both"),
        env="DEMO_FORM",
    )
    options.add(
        parser,
        "--kubernetes-version",
        help="what the API server answers as",
        default="1.37",
        choices=("1.32", "1.33", "1.34", "1.35", "1.36", "1.37"),
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run it; 0: every step was as it should be."""
    import asyncio
    import os

    try:
        return asyncio.run(_run(arguments))
    except asyncio.CancelledError:  # a signal; everything has been cleaned up
        return 130
    except BrokenPipeError:  # whoever read our output has gone: `drakit demo | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


async def _run(arguments: argparse.Namespace) -> int:
    import asyncio
    import signal

    work = asyncio.current_task()
    assert work is not None
    staying, done = asyncio.Event(), asyncio.Event()

    def interrupt() -> None:
        if staying.is_set() and not done.is_set():
            done.set()
        else:
            work.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupt)
    return await _play(arguments, staying, done)


async def _play(arguments: argparse.Namespace, staying: "asyncio.Event", done: "asyncio.Event") -> int:
    import asyncio

    import msgspec

    from drakit.cli.demo_report import Report
    from drakit.cli.demo_scenario import FORMS, Scenario, StepError
    from drakit.simulator.cluster import QUICK, Cluster

    report = Report()
    timers = QUICK if arguments.keep else msgspec.structs.replace(QUICK, slice_wipe=_WIPE_SECONDS)
    forms = _forms(arguments, FORMS)
    async with Cluster(version=arguments.kubernetes_version, timers=timers) as cluster:
        report.title(
            f"drakit demo: Kubernetes {arguments.kubernetes_version} at {cluster.server.url}, node {cluster.node.name}"
        )
        scenario = Scenario(cluster, report)
        try:
            async with asyncio.timeout(_SECONDS):
                await _steps(scenario, forms, keep=arguments.keep)
        except StepError as error:
            return _fail(report, scenario, str(error))
        except TimeoutError:
            return _fail(report, scenario, f"not done after {_SECONDS:.0f} s")
        report.passed()
        if arguments.keep:
            _explain(cluster)
            staying.set()
            await done.wait()
    return 0


def _forms(arguments: argparse.Namespace, known: tuple[str, ...]) -> tuple[str, ...]:
    """The forms to show; v1 came with Kubernetes 1.34."""
    old = int(arguments.kubernetes_version.partition(".")[2]) < _V1_SINCE
    if old and arguments.form == "v1":
        version = arguments.kubernetes_version
        raise options.UsageError(f"Kubernetes {version} has no v1 (1.{_V1_SINCE} was the first): give --form v1beta1")
    if arguments.form == "both":
        return tuple(form for form in known if not (old and form == "v1"))
    return (arguments.form,)


async def _steps(scenario: "Scenario", forms: tuple[str, ...], *, keep: bool) -> None:
    await scenario.start_driver()
    await scenario.slices()
    for form in forms:
        await scenario.round(form)
    if not keep:
        await scenario.stop_driver()


def _fail(report: "Report", scenario: "Scenario", message: str) -> int:
    report.failed(message)
    if scenario.driver is not None:
        report.line("the driver's last lines:")
        for line in scenario.driver.output.splitlines()[-10:]:
            report.line(f"| {line}")
    return 1


def _explain(cluster: "Cluster") -> None:
    """Where kubectl finds the cluster, and what to try."""
    from drakit.cli.demo_scenario import FORMS, manifest

    kubeconfig = cluster.server.kubeconfig(path=cluster.directory / "kubeconfig")
    manifests: list[Path] = []
    for form in FORMS:
        path = cluster.directory / f"example-{form}.yaml"
        path.write_text(f"{manifest(f'resourceclaimtemplate-{form}')}---\n{manifest('pod')}", encoding="utf-8")
        manifests.append(path)
    print(f"""
The cluster stays until Ctrl-C. In another terminal:

  export KUBECONFIG={kubeconfig}
  kubectl get nodes,deviceclasses,resourceslices
  kubectl get resourceclaims --watch &
  kubectl apply -f {manifests[0]}
  kubectl get pod example-claim -o wide
  kubectl delete -f {manifests[0]}

({manifests[1].name} beside it has the same in the v1beta1 form. The pod's command ends after a minute; then its
claim goes too, as it would in a real cluster. The driver's log: {cluster.node.directory / "driver.log"})
""")
