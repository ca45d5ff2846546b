"""Publication against the fake API server over HTTP: first publication, idle writes, one changed device.

python bench/publication.py [--devices 10000] [--runs 3]
"""

import argparse
import asyncio
import statistics
import time

import msgspec

from drakit import api, kube
from drakit.api import resource
from drakit.driver.publication import DriverResources, Publisher
from drakit.simulator.apiserver import FakeAPIServer

NODE = "node-1"


def inventory(count: int) -> list[resource.Device]:
    """Devices like the example driver's GPUs: four attributes, one capacity."""
    memory = {"memory": resource.DeviceCapacity(value=api.Quantity.parse("80Gi"))}
    return [
        resource.Device(
            name=f"gpu-{number}",
            attributes={
                "index": resource.DeviceAttribute(int=number),
                "uuid": resource.DeviceAttribute(string=f"gpu-{number:012x}"),
                "model": resource.DeviceAttribute(string="LATEST-GPU-MODEL"),
                "driverVersion": resource.DeviceAttribute(version="1.0.0"),
            },
            capacity=memory,
        )
        for number in range(count)
    ]


async def measure(count: int) -> dict[str, float]:
    """One run; seconds of wall time, counts of writes, seconds of CPU of this process (server included)."""
    async with (
        FakeAPIServer(tls=False) as server,
        kube.Client(kube.from_kubeconfig(server.kubeconfig(certificate=False))) as client,
    ):
        server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        devices = inventory(count)
        publisher = Publisher(client, driver="gpu.example.com", node=NODE)
        task = asyncio.create_task(publisher.run())
        begin, begin_cpu = time.perf_counter(), time.process_time()
        publisher.update(DriverResources.for_node(NODE, devices))
        await publisher.settled()
        first, first_cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
        assert publisher.ready, publisher.reasons
        slices = server.requests.writes("resourceslices")
        await asyncio.sleep(3)

        server.requests.clear()
        begin_cpu = time.process_time()
        for _ in range(10):
            publisher.update(DriverResources.for_node(NODE, inventory(count)))
            await publisher.settled()
        await asyncio.sleep(1.5)
        idle_cpu = (time.process_time() - begin_cpu) / 10
        idle = server.requests.writes("resourceslices")

        changed = msgspec.structs.replace(
            devices[count // 2], attributes={"healthy": resource.DeviceAttribute(bool=False)}
        )
        devices = [*devices[: count // 2], changed, *devices[count // 2 + 1 :]]
        wanted = DriverResources.for_node(NODE, devices)
        begin, begin_cpu = time.perf_counter(), time.process_time()
        publisher.update(wanted)
        await publisher.settled()
        change_cpu, change = time.process_time() - begin_cpu, time.perf_counter() - begin
        await asyncio.sleep(1.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return {
            "first publication, s": first,
            "its CPU (with the fake server's), s": first_cpu,
            "slices": slices,
            "idle writes in 10 updates": idle,
            "CPU of an idle update (all devices built anew), ms": idle_cpu * 1000,
            "writes for one changed device": server.requests.writes("resourceslices") - idle,
            "CPU for one changed device (with the fake server's), ms": change_cpu * 1000,
            "time for one changed device, ms": change * 1000,
        }


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    runs = [asyncio.run(measure(arguments.devices)) for _ in range(arguments.runs)]
    print(f"{arguments.devices} devices in one pool, median of {arguments.runs} runs")
    for name in runs[0]:
        print(f"{name:60} {statistics.median(run[name] for run in runs):10.2f}")


if __name__ == "__main__":
    main()
