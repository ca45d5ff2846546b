"""To be filled."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["OVERLOADS"]

OVERLOADS: Final[dict[str, Any]] = {}
