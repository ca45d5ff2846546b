"""Strategies for values of resource.k8s.io, and the recorded OpenAPI documents."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

VECTORS = Path(__file__).parent.parent / "vectors"


@pytest.fixture(scope="session")
def openapi() -> dict[str, dict[str, Any]]:
    """Schemas of the OpenAPI documents that a server of 1.36 gave, by version."""
    documents = {}
    for version in ("v1", "v1beta2", "v1beta1"):
        with gzip.open(VECTORS / f"openapi-v3-resource-{version}.json.gz") as file:
            documents[version] = json.load(file)["components"]["schemas"]
    return documents


@pytest.fixture(scope="session")
def recorded() -> list[dict[str, Any]]:
    """Objects as a server stored and showed them, in all versions."""
    with gzip.open(VECTORS / "validation.jsonl.gz") as file:
        cases = [json.loads(line) for line in file]
    return [case["stored"] for case in cases if case["stored"]]
