"""Replay: `python -m drakit.allocation CASES.jsonl[.gz]` answers each case, `--nodes` measures benchmark inputs.

Formats: tests/vectors and bench/inputs.py. `--nodes` cases have `nodes` in place of `node`.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import itertools
import json
import resource as process
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drakit import api
from drakit.allocation import AllocatedState, AllocationError, Allocator, Contents, Features, NodeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from drakit.api import core

_NAMES = {
    "AdminAccess": "admin_access",
    "ConsumableCapacity": "consumable_capacity",
    "DeviceBindingAndStatus": "device_binding_and_status",
    "DeviceTaints": "device_taints",
    "ListTypeAttributes": "list_type_attributes",
    "PartitionableDevices": "partitionable_devices",
    "PrioritizedList": "prioritized_list",
}
_NEWER = {
    "FractionalCapacityRange": "fractional_capacity_range",
    "DerivedAttributes": "derived_attributes",
    "DeviceCompatibilityGroups": "device_compatibility_groups",
    "OptionalNodeOperations": "optional_node_operations",
}


_RARELY = (100_000, 50, 100)
"""Thresholds of the garbage collector for a short run that makes hardly any cycles."""


def features_of(named: dict[str, bool]) -> Features:
    """The features of a case: those of the recordings are on unless said otherwise, newer ones off."""
    switches = {attribute: named.get(name, True) for name, attribute in _NAMES.items()}
    switches |= {attribute: named.get(name, False) for name, attribute in _NEWER.items()}
    return Features(**switches)


def node_of(described: dict[str, Any]) -> core.Node:
    """A node from `{"name", "labels"}`."""
    metadata = {"name": described.get("name", ""), "labels": described.get("labels") or {}}
    return api.decode({"metadata": metadata}, "Node")  # type: ignore[no-any-return]


class _Case:
    """The decoded objects of one case."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.id = case["id"]
        self.features = features_of(case.get("features") or {})
        self.slices = [api.decode(each, "ResourceSlice") for each in case.get("slices") or ()]
        self.classes = [api.decode(each, "DeviceClass") for each in case.get("classes") or ()]
        self.claims = [api.decode(each, "ResourceClaim") for each in case.get("claims") or ()]
        self.allocated = [api.decode(each, "ResourceClaim") for each in case.get("allocatedClaims") or ()]
        self.nodes = [node_of(each) for each in case.get("nodes") or (case["node"],)]


def answer(case: dict[str, Any], contents: Contents | None = None) -> dict[str, Any]:
    """The answer line of one case."""
    decoded = _Case(case)
    numbers = itertools.count()
    try:
        allocator = Allocator(
            decoded.slices,
            decoded.classes,
            AllocatedState.of(decoded.allocated),
            decoded.features,
            contents=contents,
            share_id=lambda: f"share-{next(numbers)}",
        )
        results = allocator.allocate(decoded.nodes[0], decoded.claims)
    except (AllocationError, NodeError) as error:
        return {"id": decoded.id, "ok": False, "results": None, "error": str(error), "errorKind": error.kind}
    plain = None if results is None else [_plain(each) for each in results]
    return {"id": decoded.id, "ok": results is not None, "results": plain, "error": None, "errorKind": None}


def _plain(value: Any) -> Any:
    return json.loads(api.shape(value))


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Counts and times of one benchmark input: from decoded objects to the last node's answer, cold and warm."""
    decoded = _Case(case)
    gc.collect()
    gc.freeze()
    contents = Contents(decoded.features)
    (fits, fails, errors), cold, cold_cpu = _timed(decoded, contents)
    _, warm, warm_cpu = _timed(decoded, contents)
    return {
        "id": decoded.id,
        "okNodes": fits,
        "noFitNodes": fails,
        "errorNodes": errors,
        "totalNs": cold,
        "warmTotalNs": warm,
        "cpuNs": cold_cpu,
        "warmCpuNs": warm_cpu,
        "nsPerNode": cold // max(1, len(decoded.nodes)),
        "peakRssKiB": _peak_memory(),
    }


def _timed(decoded: _Case, contents: Contents) -> tuple[tuple[int, int, int], int, int]:
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    counts = _run(decoded, contents)
    return counts, time.perf_counter_ns() - wall, time.process_time_ns() - cpu


def _peak_memory() -> int:
    """KiB; Linux counts it anew for each program, getrusage also has the parent's."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return process.getrusage(process.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def _run(decoded: _Case, contents: Contents) -> tuple[int, int, int]:
    allocator = Allocator(
        decoded.slices, decoded.classes, AllocatedState.of(decoded.allocated), decoded.features, contents=contents
    )
    fits = fails = errors = 0
    for node in decoded.nodes:
        try:
            if allocator.allocate(node, decoded.claims) is None:
                fails += 1
            else:
                fits += 1
        except (AllocationError, NodeError):
            errors += 1
    return fits, fails, errors


def _cases(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    for line in data.splitlines():
        if line.strip():
            yield json.loads(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one answer line per case."""
    parser = argparse.ArgumentParser(prog="python -m drakit.allocation", description=__doc__)
    parser.add_argument("cases", type=Path, nargs="+", help="JSON lines, perhaps gzipped")
    parser.add_argument("--nodes", action="store_true", help="measure benchmark inputs")
    options = parser.parse_args(arguments)
    gc.set_threshold(*_RARELY)
    for path in options.cases:
        for case in _cases(path):
            print(json.dumps(measure(case) if options.nodes else answer(case), separators=(",", ":")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
