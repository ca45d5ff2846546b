"""Opaque configuration and other raw JSON. Source: spec/resourceslice.md 4.2, spec/apiserver.md Decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from drakit.admission import semantics
from drakit.admission.validation import formats
from drakit.api import limits

if TYPE_CHECKING:
    from drakit.admission.faults import Faults

__all__ = ["opaque", "raw_object"]

Json = dict[str, Any]

_HIDDEN: Final = "<value omitted>"


def opaque(faults: Faults, path: str, owner: Json, *, stored: bool = False) -> None:
    """The `opaque` member of a configuration; `stored` ones may be as large as they are."""
    body = owner.get("opaque")
    if body is None:
        faults.required(f"{path}.opaque")
        return
    formats.driver_name(faults, f"{path}.opaque.driver", body["driver"])
    parameters = body.get("parameters")
    where = f"{path}.opaque.parameters"
    if parameters is None:
        faults.required(where)
    else:
        raw_object(faults, where, parameters, limits.OPAQUE_PARAMETERS_LENGTH, stored=stored)


def raw_object(faults: Faults, path: str, value: Any, limit: int, *, stored: bool = False) -> None:
    """Raw JSON that has to be an object of at most so many bytes, as sent."""
    if not stored and len(semantics.raw_bytes(value)) > limit:
        faults.too_long(path, limit)
        return
    plain = msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
    if plain is None:
        faults.required(path)
    elif not isinstance(plain, dict):
        faults.invalid(path, _HIDDEN, "must be a valid JSON object")
