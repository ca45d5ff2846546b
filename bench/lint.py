"""Lint of a 5,000-line manifest, after import: claims, templates, classes, slices and pods in one file."""

import statistics
import time

from drakit import lint

TARGET = "at most 1 s"
ROUNDS = 5

_UNIT = """apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: gpus-{n}
  namespace: team
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.example.com
          count: 2
          selectors:
          - cel:
              expression: |-
                device.attributes["gpu.example.com"].model == "A{n}" &&
                device.attributes["gpu.example.com"].index < {n}
      - name: nic
        firstAvailable:
        - name: fast
          deviceClassName: nic.example.com
          tolerations:
          - key: nic.example.com/flaky
            operator: Exists
      constraints:
      - requests: [gpu]
        matchAttribute: resource.kubernetes.io/pcieRoot
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: node-{n}
spec:
  driver: gpu.example.com
  nodeName: node-{n}
  pool:
    name: node-{n}
    generation: 1
    resourceSliceCount: 1
  devices:
  - name: gpu-0
    attributes:
      index: {{int: 0}}
      model: {{string: A{n}}}
      resource.kubernetes.io/pcieRoot:
        string: pci0000:00
    capacity:
      memory:
        value: 80Gi
---
apiVersion: v1
kind: Pod
metadata:
  name: pod-{n}
  namespace: team
spec:
  containers:
  - name: main
    image: busybox
    resources:
      claims:
      - name: gpus
  resourceClaims:
  - name: gpus
    resourceClaimTemplateName: gpus-{n}
---
"""


def manifest(lines: int) -> str:
    """A file of at least `lines` lines."""
    units = lines // _UNIT.count("\n") + 1
    return "".join(_UNIT.format(n=n) for n in range(units))


def main() -> None:
    text = manifest(5000)
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        report = lint.lint([lint.Source("manifest.yaml", text)])
        times.append(time.perf_counter() - start)
    what = f"{text.count(chr(10))} lines, {report.objects} objects, {len(report.findings)} findings"
    print(f"lint of {what}: {statistics.median(times):.3f} s ({TARGET})")


if __name__ == "__main__":
    main()
