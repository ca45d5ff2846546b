"""Node selectors of slices, devices, allocations. Source: spec/resourceslice.md 4.1.7, spec/apiserver.md 7 and 17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drakit.admission.validation import formats

if TYPE_CHECKING:
    from drakit.admission.faults import Faults

__all__ = ["selector"]

Json = dict[str, Any]


def selector(faults: Faults, path: str, value: Json) -> None:
    """A node selector: at least one term, each with valid requirements (possibly none)."""
    terms = value.get("nodeSelectorTerms") or ()
    if not terms:
        faults.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        where = f"{path}.nodeSelectorTerms[{index}]"
        for position, requirement in enumerate(term.get("matchExpressions") or ()):
            _label_requirement(faults, f"{where}.matchExpressions[{position}]", requirement)
        for position, requirement in enumerate(term.get("matchFields") or ()):
            _field_requirement(faults, f"{where}.matchFields[{position}]", requirement)


def _label_requirement(faults: Faults, path: str, requirement: Json) -> None:
    operator, values = requirement["operator"], requirement.get("values") or ()
    if operator in {"In", "NotIn"}:
        if not values:
            faults.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            faults.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in {"Gt", "Lt"}:
        if len(values) != 1:
            faults.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        faults.invalid(f"{path}.operator", operator, "not a valid selector operator")
    formats.label_key(faults, f"{path}.key", requirement["key"])
    for index, value in enumerate(values):
        formats.label_value(faults, f"{path}.values[{index}]", value)


def _field_requirement(faults: Faults, path: str, requirement: Json) -> None:
    operator, values = requirement["operator"], requirement.get("values") or ()
    if operator not in {"In", "NotIn"}:
        faults.invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        faults.required(
            f"{path}.values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        )
    if requirement["key"] != "metadata.name":
        faults.invalid(f"{path}.key", requirement["key"], "not a valid field selector key")
        return
    for index, value in enumerate(values):
        formats.subdomain(faults, f"{path}.values[{index}]", value)
