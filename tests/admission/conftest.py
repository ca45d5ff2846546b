"""Recorded cases, and small valid objects to bend."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drakit.admission import replay

VECTORS = Path(__file__).parent.parent / "vectors"

Json = dict[str, Any]
Cases = Callable[[str], list[Json]]
Make = Callable[..., Json]


@pytest.fixture(scope="session")
def recorded() -> Cases:
    """The cases of a vector file by its short name."""
    loaded: dict[str, list[Json]] = {}

    def load(name: str) -> list[Json]:
        if name not in loaded:
            loaded[name] = list(replay.cases(str(VECTORS / f"{name}.jsonl.gz")))
        return loaded[name]

    return load


@pytest.fixture
def make() -> Make:
    """`make(kind, **spec)`: a valid v1 object with members of its spec replaced."""

    def build(kind: str, /, *, meta: Json | None = None, version: str = "v1", **spec: Any) -> Json:
        body = copy.deepcopy(SPECS[kind]) | spec
        metadata = {"name": "x"} | ({"namespace": "ns"} if kind.startswith("ResourceClaim") else {}) | (meta or {})
        return {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": metadata, "spec": body}

    return build


REQUESTS: list[Json] = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
SPECS: dict[str, Json] = {
    "ResourceSlice": {
        "driver": "d.example.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [{"name": "a"}],
    },
    "DeviceClass": {},
    "ResourceClaim": {"devices": {"requests": REQUESTS}},
    "ResourceClaimTemplate": {"spec": {"devices": {"requests": REQUESTS}}},
    "DeviceTaintRule": {"taint": {"key": "k", "effect": "NoSchedule"}},
    "ResourcePoolStatusRequest": {"driver": "d.example.com"},
}
