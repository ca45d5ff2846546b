"""A cluster without hardware: API server, kubelet, runtime, control plane, each a room of its own.

`cluster` joins them, `process` runs a driver beside it, `clock` stands still until a test moves it. Nothing is imported
before it is asked for: the control plane's decisions work without gRPC and aiohttp.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drakit.simulator.apiserver import FakeAPIServer
    from drakit.simulator.clock import ManualClock
    from drakit.simulator.cluster import QUICK, Cluster, SimulatedNode
    from drakit.simulator.kubelet import RECORDED, FakeKubelet, Timers
    from drakit.simulator.process import DriverProcess
    from drakit.simulator.runtime import Runtime

__all__ = [
    "QUICK",
    "RECORDED",
    "Cluster",
    "DriverProcess",
    "FakeAPIServer",
    "FakeKubelet",
    "ManualClock",
    "Runtime",
    "SimulatedNode",
    "Timers",
]

_HOMES = {
    "QUICK": "cluster",
    "RECORDED": "kubelet",
    "Cluster": "cluster",
    "DriverProcess": "process",
    "FakeAPIServer": "apiserver",
    "FakeKubelet": "kubelet",
    "ManualClock": "clock",
    "Runtime": "runtime",
    "SimulatedNode": "cluster",
    "Timers": "kubelet",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"drakit.simulator.{_HOMES[name]}"), name)
