"""Validate 1,000 slices of 8 devices, from bytes, and answer one write of each.

python bench/admission.py [rounds]
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from drakit import admission

if TYPE_CHECKING:
    from collections.abc import Callable

SLICES, DEVICES, ATTRIBUTES = 1000, 8, 12


def device(index: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        f"attribute{number}": {"string": f"value-{index}-{number}"} for number in range(ATTRIBUTES - 4)
    }
    attributes |= {"index": {"int": index}, "ready": {"bool": True}, "driverVersion": {"version": f"1.{index}.0"}}
    attributes["resource.kubernetes.io/pcieRoot"] = {"string": f"pci0000:{index:02x}"}
    return {
        "name": f"gpu-{index}",
        "attributes": attributes,
        "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": str(100 + index)}},
    }


def slice_object(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"node-{number}-gpu.example.com"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1},
            "nodeName": f"node-{number}",
            "devices": [device(index) for index in range(DEVICES)],
        },
    }


def median(action: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    objects = [slice_object(number) for number in range(SLICES)]
    bodies = [json.dumps(each, separators=(",", ":")).encode() for each in objects]

    def validate_objects() -> None:
        assert not any(admission.validate(each) for each in objects)

    def validate_bodies() -> None:
        assert not any(admission.validate(each) for each in bodies)

    def admit_bodies() -> None:
        for body in bodies:
            request = admission.Request(verb="create", resource="resourceslices", version="v1", body=body)
            assert admission.admit(request).status == 201

    shape = f"{SLICES} slices x {DEVICES} devices, {ATTRIBUTES} attributes, 2 capacities"
    print(f"{shape}: CPU time, median of {rounds}")
    print(f"  validate decoded objects  {median(validate_objects, rounds):6.3f} s")
    print(f"  validate bytes            {median(validate_bodies, rounds):6.3f} s")
    print(f"  admit bytes               {median(admit_bodies, rounds):6.3f} s")


if __name__ == "__main__":
    main()
