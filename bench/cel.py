"""CEL: nanoseconds per device beside hand-written Python, compile time, and work per distinct device content.

Medians of repeated runs in CPU time. Budgets (issue 3): X with ready views <= 0.5 us, with views built <= 6 us,
compile <= 400 us, import <= 60 ms.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

import msgspec

from drakit import api, cel
from drakit.api.resource import Device, DeviceAttribute, DeviceCapacity

if TYPE_CHECKING:
    from collections.abc import Callable

DRIVER = "gpu.example.com"
X = (
    'device.attributes["gpu.example.com"].model == "LATEST" && '
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'
)
DEVICES = 10_000
CONTENTS = 16
RUNS = 7
SELECTORS = [
    X,
    'device.driver == "gpu.example.com"',
    'has(device.attributes["gpu.example.com"].numa) && device.attributes["gpu.example.com"].numa == 0',
    'device.attributes["gpu.example.com"].?family.orValue("none") == "ampere"',
    'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.0.0"))',
    'cel.bind(a, device.attributes["gpu.example.com"], a.index >= 0 && a.model.startsWith("LA"))',
    'device.attributes["gpu.example.com"].model in ["LATEST", "OLDEST"]',
    'device.attributes["gpu.example.com"].model.matches("^L.*T$")',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("10Gi"))',
    "!device.allowMultipleAllocations",
    *(f'device.attributes["gpu.example.com"].index == {index}' for index in range(10)),
]  # fmt: skip


def device(index: int) -> Device:
    attributes = {
        "model": DeviceAttribute(string="LATEST" if index % 2 else "OLDEST"),
        "index": DeviceAttribute(int=index),
        "numa": DeviceAttribute(int=index % 2),
        "uuid": DeviceAttribute(string=f"gpu-{index}"),
        "driverVersion": DeviceAttribute(version="1.2.3"),
        "healthy": DeviceAttribute(bool=True),
        "family": DeviceAttribute(string="ampere"),
        "pci.example.com/root": DeviceAttribute(string="pci0000:00"),
    }
    memory = DeviceCapacity(value=api.Quantity.parse("80Gi"))
    return Device(name=f"gpu-{index}", attributes=attributes, capacity={"memory": memory})


def by_hand(view: cel.DeviceView, limit: int = api.Quantity.parse("80Gi").nano) -> bool:
    own, capacity = view.attributes[DRIVER], view.capacity[DRIVER]
    return bool(own["model"] == "LATEST" and capacity["memory"].nano >= limit)


def median(run: Callable[[], object], per: int) -> float:
    """Nanoseconds of CPU per unit, median of the runs."""
    times = []
    for _ in range(RUNS):
        start = time.process_time_ns()
        run()
        times.append((time.process_time_ns() - start) / per)
    return statistics.median(times)


def imports() -> float:
    """Milliseconds of `import drakit.cel` in a fresh process with warm bytecode."""
    code = "import time; t = time.process_time(); import drakit.cel; print((time.process_time() - t) * 1e3)"
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", code]
        times = [
            float(subprocess.run(command, env=environment, capture_output=True, check=True).stdout) for _ in range(RUNS)
        ]
    return statistics.median(times[1:])


def distinct(devices: list[Device]) -> tuple[float, int]:
    """20 selectors on all devices: seconds, and evaluations made (one per selector and device content)."""
    environment = cel.Environment()
    programs = [environment.compile(each) for each in SELECTORS]
    start = time.process_time()
    evaluations = matches = 0
    outcomes: dict[bytes, list[bool]] = {}
    for each in devices:
        content = api.shape(msgspec.structs.replace(each, name=""))
        known = outcomes.get(content)
        if known is None:
            view = cel.device_view(DRIVER, each)
            known = outcomes[content] = [program.evaluate(view) for program in programs]
            evaluations += len(programs)
        matches += sum(known)
    assert matches
    return time.process_time() - start, evaluations


def main() -> None:
    devices = [device(index % CONTENTS) for index in range(DEVICES)]
    views = [cel.device_view(DRIVER, each) for each in devices]
    environment = cel.Environment()
    program = environment.compile(X)
    evaluate, compile_once = program.evaluate, environment._compile  # noqa: SLF001 - past the cache
    print(f"X by hand                {median(lambda: [by_hand(each) for each in views], DEVICES):8.0f} ns per device")
    print(f"X, views ready           {median(lambda: [evaluate(each) for each in views], DEVICES):8.0f} ns per device")
    built = median(lambda: [evaluate(cel.device_view(DRIVER, each)) for each in devices], DEVICES)
    print(f"X, views built           {built:8.0f} ns per device")
    exact = median(lambda: [program.exact([each.as_map()]) for each in views[:1000]], 1000)
    print(f"X, closures              {exact:8.0f} ns per device")
    metered = median(lambda: [program.measure([each.as_map()]) for each in views[:1000]], 1000)
    print(f"X, metered               {metered:8.0f} ns per device")
    print(
        f"compile X                {median(lambda: [compile_once(X, 'bool') for _ in range(200)], 200) / 1000:8.0f} us"
    )
    seconds, evaluations = distinct(devices)
    print(f"{DEVICES} devices x {len(SELECTORS)} selectors {seconds * 1000:8.0f} ms, {evaluations} evaluations")
    assert evaluations == CONTENTS * len(SELECTORS)
    print(f"import drakit.cel        {imports():8.0f} ms")


if __name__ == "__main__":
    main()
