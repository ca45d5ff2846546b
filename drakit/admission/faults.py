"""Collects validation errors in the API server's words and order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from drakit.admission.request import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DUPLICATE",
    "FORBIDDEN",
    "INTERNAL",
    "INVALID",
    "NOT_FOUND",
    "REQUIRED",
    "TOO_LONG",
    "TOO_MANY",
    "UNSUPPORTED",
    "Faults",
]

REQUIRED: Final = "FieldValueRequired"
INVALID: Final = "FieldValueInvalid"
DUPLICATE: Final = "FieldValueDuplicate"
UNSUPPORTED: Final = "FieldValueNotSupported"
FORBIDDEN: Final = "FieldValueForbidden"
TOO_LONG: Final = "FieldValueTooLong"
TOO_MANY: Final = "FieldValueTooMany"
NOT_FOUND: Final = "FieldValueNotFound"
INTERNAL: Final = "InternalError"


class Faults:
    """A growing list of faults; one method per kind of error."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def __len__(self) -> int:
        return len(self.found)

    def add(self, path: str, reason: str, message: str) -> None:
        """Add a fault with a finished message."""
        self.found.append(Fault(path, reason, message))

    def required(self, path: str, detail: str = "") -> None:
        """A value is missing."""
        self.add(path, REQUIRED, _with("Required value", detail))

    def invalid(self, path: str, value: object, detail: str) -> None:
        """A value is malformed or against a rule."""
        self.add(path, INVALID, _with(f"Invalid value: {_shown(value)}", detail))

    def invalid_each(self, path: str, value: object, details: Iterable[str]) -> None:
        """One fault for each complaint."""
        for detail in details:
            self.invalid(path, value, detail)

    def too_long(self, path: str, limit: int) -> None:
        """Text with more bytes than allowed."""
        self.add(path, TOO_LONG, f"Too long: may not be more than {limit} bytes")

    def too_many(self, path: str, actual: int, limit: int) -> None:
        """A list or map with more items than allowed."""
        self.add(path, TOO_MANY, f"Too many: {actual}: must have at most {limit} items")

    def duplicate(self, path: str, value: object) -> None:
        """An item that is there already."""
        self.add(path, DUPLICATE, f"Duplicate value: {_shown(value)}")

    def unsupported(self, path: str, value: object, supported: Iterable[str]) -> None:
        """A value outside an enumeration."""
        options = ", ".join(_shown(each) for each in supported)
        self.add(path, UNSUPPORTED, f"Unsupported value: {_shown(value)}: supported values: {options}")

    def forbidden(self, path: str, detail: str) -> None:
        """Something that is not permitted here."""
        self.add(path, FORBIDDEN, f"Forbidden: {detail}")

    def not_found(self, path: str, value: object) -> None:
        """A reference to nothing."""
        self.add(path, NOT_FOUND, f"Not found: {_shown(value)}")

    def internal(self, path: str, detail: str) -> None:
        """The server could not check it."""
        self.add(path, INTERNAL, f"Internal error: {detail}")


def _with(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def _shown(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
