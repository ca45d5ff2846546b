"""Every fifth recorded case explained: the same outcome, and a reason for every device of what does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.allocation import AllocatedState, Allocator, Contents
from drakit.allocation.__main__ import features_of, node_of
from drakit.api import decode

DEFECT_D = {"ar1695"}
"""Recorded with a defect that is fixed here (see test_vectors)."""

OUTCOMES = {None: "does not fit", "node": "does not fit", "allocate": "error", "panic": "error"}


@pytest.fixture(scope="module")
def reports(cases: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Any]]:
    stores: dict[str, Contents] = {}
    pairs = []
    for case in cases[::5]:
        features = features_of(case["features"])
        allocator = Allocator(
            [decode(each, "ResourceSlice") for each in case["slices"]],
            [decode(each, "DeviceClass") for each in case["classes"]],
            AllocatedState.of([decode(each, "ResourceClaim") for each in case.get("allocatedClaims") or ()]),
            features,
            contents=stores.setdefault(str(features), Contents(features)),
        )
        claims = [decode(each, "ResourceClaim") for each in case["claims"]]
        pairs.append((case, allocator.explain(node_of(case["node"]), claims)))
    return pairs


def test_outcomes_are_those_recorded(reports: list[tuple[dict[str, Any], Any]]) -> None:
    for case, report in reports:
        expected = case["expected"]
        outcome = "fits" if expected["results"] is not None else OUTCOMES[expected["errorKind"]]
        assert report.outcome == outcome or case["id"] in DEFECT_D, case["id"]


def test_what_does_not_fit_has_a_minimal_conflict_and_reasons(reports: list[tuple[dict[str, Any], Any]]) -> None:
    for case, report in reports:
        if report.fits:
            continue
        assert report.conflicts or report.slices, case["id"]
        assert all(conflict.minimal for conflict in report.conflicts), case["id"]
        blocked = {(each.claim, each.request) for conflict in report.conflicts for each in conflict.requests}
        for claim in report.claims:
            for request in claim.requests:
                if (claim.claim, request.request.partition("/")[0]) in blocked:
                    assert request.error or all(each.reasons for each in request.devices), (case["id"], request.request)
        assert all(line.isprintable() and len(line) < 4000 for line in report.lines()), case["id"]
