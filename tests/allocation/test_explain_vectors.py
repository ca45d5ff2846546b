"""Every fifth recorded case explained: the same outcome, and a reason for every device of what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drakit.allocation import AllocatedState, Allocator, Contents
from drakit.allocation.__main__ import features_of, node_of
from drakit.api import decode

if TYPE_CHECKING:
    from drakit.allocation import Report

DEFECT_D = {"ar1695"}
"""Recorded with a defect that is fixed here (see test_vectors)."""

OUTCOMES = {None: "does not fit", "node": "does not fit", "allocate": "error", "panic": "error"}
PARTS = 4


def _report(case: dict[str, Any], stores: dict[str, Contents]) -> Report:
    features = features_of(case["features"])
    allocator = Allocator(
        [decode(each, "ResourceSlice") for each in case["slices"]],
        [decode(each, "DeviceClass") for each in case["classes"]],
        AllocatedState.of([decode(each, "ResourceClaim") for each in case.get("allocatedClaims") or ()]),
        features,
        contents=stores.setdefault(str(features), Contents(features)),
    )
    claims = [decode(each, "ResourceClaim") for each in case["claims"]]
    return allocator.explain(node_of(case["node"]), claims)


@pytest.mark.parametrize("part", range(PARTS))
def test_outcomes_are_those_recorded_and_what_does_not_fit_has_reasons(cases: list[dict[str, Any]], part: int) -> None:
    stores: dict[str, Contents] = {}
    for case in cases[5 * part :: 5 * PARTS]:
        report = _report(case, stores)
        expected = case["expected"]
        outcome = "fits" if expected["results"] is not None else OUTCOMES[expected["errorKind"]]
        assert report.outcome == outcome or case["id"] in DEFECT_D, case["id"]
        if not report.fits:
            _check_reasons(report, case["id"])


def _check_reasons(report: Report, name: str) -> None:
    """A minimal conflict, and a reason for each device of the requests in it."""
    assert report.conflicts or report.slices, name
    assert all(conflict.minimal for conflict in report.conflicts), name
    blocked = {(each.claim, each.request) for conflict in report.conflicts for each in conflict.requests}
    for claim in report.claims:
        for request in claim.requests:
            if (claim.claim, request.request.partition("/")[0]) in blocked:
                assert request.error or all(each.reasons for each in request.devices), (name, request.request)
    assert all(line.isprintable() and len(line) < 4000 for line in report.lines()), name
