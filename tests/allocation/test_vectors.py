"""The 2,000 recorded cases: same outcome, error kind and results as the real allocator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drakit.allocation import AllocatedState, Contents, Inputs, verify
from drakit.allocation.__main__ import answer, features_of, node_of
from drakit.api import decode

# Recorded with defect D (distinctAttribute forgot a request's earlier devices), though not tagged: the three devices that
# upstream took for the first request repeat a value, and only so it got as far as the All request that fails.
DEFECT_D = {"ar1695"}


def _plain(value: Any) -> Any:
    """Without empty fields and share IDs, which may differ."""
    if isinstance(value, dict):
        kept = {key: _plain(each) for key, each in value.items() if each not in (None, [], {})}
        return {key: "share" if key == "shareID" else each for key, each in kept.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def answers(cases: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    stores: dict[str, Contents] = {}
    pairs = []
    for case in cases:
        features = features_of(case["features"])
        pairs.append((case, answer(case, stores.setdefault(str(features), Contents(features)))))
    return pairs


def test_outcomes_and_results_are_those_recorded(answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    wrong = set()
    for case, got in answers:
        expected = case["expected"]
        # A count near 2**63 made upstream panic; refusing the claim is what it meant to do.
        kind = "allocate" if expected["errorKind"] == "panic" else expected["errorKind"]
        outcome = (got["ok"], got["errorKind"], _plain(got["results"]))
        if outcome != (expected["ok"], kind, _plain(expected["results"])):
            wrong.add(case["id"])
    assert wrong == DEFECT_D


def test_error_texts_are_those_recorded(answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """Except where Go prints its structs (node selectors), and the column that it gives an empty text."""
    different = []
    for case, got in answers:
        expected = case["expected"]
        if expected["errorKind"] != "allocate" or case["id"] in DEFECT_D or case["tag"] == "text-varies":
            continue
        text = got["error"]
        if text != expected["error"] and "failed to perform node selection" not in text and "'<EOF>'" not in text:
            different.append(case["id"])
    assert not different


def test_invalid_pools_are_named(answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    texts = [got["error"] for _, got in answers if got["errorKind"] == "node"]
    assert len(texts) == 80
    assert all(text.startswith("invalid resource pools were encountered (") for text in texts)


def test_what_was_allocated_passes_verification(answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    for case, got in answers:
        results = got["results"]
        if results is None:
            continue
        inputs = Inputs(
            node=node_of(case["node"]),
            claims=tuple(decode(each, "ResourceClaim") for each in case["claims"]),
            slices=tuple(decode(each, "ResourceSlice") for each in case["slices"]),
            classes=tuple(decode(each, "DeviceClass") for each in case["classes"]),
            allocated=AllocatedState.of([decode(each, "ResourceClaim") for each in case.get("allocatedClaims") or ()]),
            features=features_of(case["features"]),
        )
        allocated = [decode({"status": {"allocation": each}}, "ResourceClaim").status.allocation for each in results]
        assert verify(allocated, inputs) == [], case["id"]


def test_inputs_are_not_changed(cases: list[dict[str, Any]]) -> None:
    for case in cases[:50]:
        before = json.dumps(case)
        answer(case)
        assert json.dumps(case) == before
