"""Allocate on every node of the benchmark inputs, and compare with what upstream's Go allocator takes.

python bench/allocation.py [-r ROUNDS] [INPUT ...]

Each round is a fresh process: from decoded objects to the last node's answer (construction and views included), cold;
then again with a new allocator and warm caches. Figures are medians of CPU time (the Go figures are wall time on two
otherwise idle cores AMD EPYC, Go 1.26, one goroutine; on an idle machine both are the same).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# Names in the order of bench/inputs.py; milliseconds, cold and warm; None where Go was not measured.
GO: dict[str, tuple[float, float] | None] = {
    "nodes100x8": (5.5, 1.6),
    "nodes1000x8": (17.7, 12.4),
    "nodes5000x8": (115.7, 92.2),
    "nodes1000x8_cel_constraint": (149.6, 131.1),
    "partitionable_100nodes_2000pools": (12130.0, 11660.0),
    "partitionable_mig_500nodes": (259.4, 146.2),
    "consumable_100nodes_2000slices": (608.8, 611.4),
    "prioritized_1000nodes": (510.2, 479.6),
    "gpu_nic_8x8_pairs": (3.2, 0.356),
    "gpu_nic_8x8_unsolvable": (136.5, 116.9),
    "partitionable_backtracking": (3040.0, 2800.0),
    "backtrack_exhaustive_22c10": (2870.0, 2610.0),
    "backtrack_late_solution": (4280.0, 4500.0),
    "distinct_devices_1000nodes": None,
    "mixed_models_1000nodes": None,
    "random_shapes_400nodes": None,
}
_HEAD = (
    f"{'input':34}{'fit':>6}{'none':>5}{'cold ms':>10}{'warm ms':>10}{'us/node':>9}{'RSS MiB':>9}   Go cold, warm ms"
)


def run(path: Path) -> dict[str, int]:
    command = [sys.executable, "-m", "drakit.allocation", "--nodes", str(path)]
    answer: dict[str, int] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return answer


def report(name: str, answers: list[dict[str, int]]) -> str:
    cold, warm, memory = (
        statistics.median(each[key] for each in answers) for key in ("cpuNs", "warmCpuNs", "peakRssKiB")
    )
    fits, none = answers[0]["okNodes"], answers[0]["noFitNodes"]
    per_node = cold / (fits + none + answers[0]["errorNodes"])
    line = f"{name:34}{fits:6}{none:5}{cold / 1e6:10.2f}{warm / 1e6:10.2f}{per_node / 1e3:9.1f}{memory / 1024:9.0f}"
    go = GO.get(name)
    if go is not None:
        line += f"   {go[0]:8.1f} ({go[0] / cold * 1e6:.1f}x) {go[1]:8.1f} ({go[1] / warm * 1e6:.1f}x)"
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("inputs", nargs="*", default=list(GO))
    options = parser.parse_args()
    print(_HEAD)
    with tempfile.TemporaryDirectory() as directory:
        writer = [sys.executable, str(Path(__file__).parent / "inputs.py"), directory, *options.inputs]
        subprocess.run(writer, check=True, stdout=subprocess.DEVNULL)
        for name in options.inputs:
            print(report(name, [run(Path(directory) / f"{name}.json") for _ in range(options.rounds)]), flush=True)


if __name__ == "__main__":
    main()
