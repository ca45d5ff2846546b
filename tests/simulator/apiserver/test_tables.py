"""What kubectl prints: ages and cells."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drakit.simulator.apiserver.resources import PODS, Registry
from drakit.simulator.apiserver.tables import duration, table

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REGISTRY = Registry("1.37")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-0.5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 300, "3h5m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (3 * 365 * 86400 + 86400, "3y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def _cells(plural: str, obj: dict[str, Any]) -> list[Any]:
    kind = REGISTRY.by_plural(plural)
    whole = {"spec": {}, **obj}
    whole["metadata"] = {"name": "x", "creationTimestamp": "2026-01-01T23:59:00Z", **obj.get("metadata", {})}
    cells: list[Any] = table(kind, [(whole, None)], {}, NOW)["rows"][0]["cells"]
    return cells


@pytest.mark.parametrize(
    ("status", "deleted", "state"),
    [
        ({}, False, "pending"),
        ({"allocation": {"devices": {}}}, False, "allocated"),
        ({"allocation": {"devices": {}}, "reservedFor": [{}]}, False, "allocated,reserved"),
        ({"allocation": {"devices": {}}, "reservedFor": [{}]}, True, "deleted,allocated,reserved"),
        ({}, True, "deleted"),
    ],
)
def test_states_of_claims(status: dict[str, Any], deleted: bool, state: str) -> None:
    metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
    assert _cells("resourceclaims", {"metadata": metadata, "status": status}) == ["x", state, "60s"]


def test_cells_of_slices_and_rules() -> None:
    spec = {"driver": "d", "nodeName": "n", "pool": {"name": "p"}}
    assert _cells("resourceslices", {"spec": spec}) == ["x", "n", "d", "p", "60s"]
    taint = {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T23:58:00Z"}
    assert _cells("devicetaintrules", {"spec": {"taint": taint}}) == ["x", "k", "v", "NoExecute", "2m", "60s"]


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        ({"status": {"phase": "Pending"}}, "Pending"),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, "Evicted"),
        (
            {"status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "Creating"}}}]}},
            "Creating",
        ),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}}, "Terminating"),
        (
            {"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}},
            "SchedulingGated",
        ),
    ],
)
def test_states_of_pods(pod: dict[str, Any], state: str) -> None:
    assert _cells("pods", pod)[2] == state


def test_cells_of_nodes() -> None:
    labels = {"node-role.kubernetes.io/worker": "", "a": "b"}
    status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.37.0"}}
    node = {"metadata": {"labels": labels}, "spec": {"unschedulable": True}, "status": status}
    assert _cells("nodes", node)[:5] == ["x", "Ready,SchedulingDisabled", "worker", "60s", "v1.37.0"]


def test_every_kind_has_as_many_cells_as_columns() -> None:
    for kind in REGISTRY.kinds:
        obj = {"metadata": {"name": "x"}, "spec": {}, "status": {}}
        shown = table(kind, [(obj, None)], {}, NOW)
        assert len(shown["rows"][0]["cells"]) == len(shown["columnDefinitions"]), kind.kind
    assert PODS in REGISTRY.kinds
