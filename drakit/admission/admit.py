"""The entry points: `admit`, `convert`, `validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drakit.admission.request import Answer, Fault, Request

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["admit", "convert", "validate"]


def admit(request: Request, version: str = "1.37", gates: Collection[str] | None = None) -> Answer:
    """Answer one write as the API server of a minor version with these feature gates (default: its own) would."""
    return Answer(status=201 if request.verb == "create" else 200, stored=dict(request.body))  # type: ignore[arg-type]


def convert(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """Show a stored object in a served version, as a GET would."""
    return {**obj, "apiVersion": f"{obj['apiVersion'].partition('/')[0]}/{version}"}


def validate(obj: bytes | dict[str, Any], version: str = "1.37", gates: Collection[str] | None = None) -> list[Fault]:
    """Every fault that the API server would find when the object is created."""
    return []
