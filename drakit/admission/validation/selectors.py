"""Device selectors of classes and requests. Source: spec/resourceslice.md 4.2 and 4.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drakit.admission.validation import expressions, formats
from drakit.api import limits

if TYPE_CHECKING:
    from drakit.admission.faults import Faults
    from drakit.admission.policy import Policy

__all__ = ["selectors"]


def selectors(
    faults: Faults, path: str, values: list[dict[str, Any]] | None, server: Policy, *, stored: bool = False
) -> None:
    """A list of selectors; stored expressions passed once and are accepted."""

    def check(where: str, selector: dict[str, Any]) -> None:
        body = selector.get("cel")
        if body is None:
            faults.required(f"{where}.cel")
        elif not stored:
            expressions.expression(faults, f"{where}.cel.expression", body["expression"], server)

    formats.items(faults, path, values, limits.SELECTORS, check)
