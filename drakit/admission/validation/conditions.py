"""Conditions in status, and binding conditions. Source: spec/resourceslice.md 4.1.20 and 4.4, spec/apiserver.md 9."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from drakit.admission.validation import formats
from drakit.api import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drakit.admission.faults import Faults

__all__ = ["binding", "conditions"]

Json = dict[str, Any]

_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def conditions(faults: Faults, path: str, values: Sequence[Json]) -> None:
    """Conditions as metav1 has them, with unique types."""
    seen: set[str] = set()
    for index, condition in enumerate(values):
        where = f"{path}[{index}]"
        if condition["type"] in seen:
            faults.duplicate(f"{where}.type", condition["type"])
        seen.add(condition["type"])
        _condition(faults, where, condition)


def _condition(faults: Faults, path: str, condition: Json) -> None:
    formats.label_key(faults, f"{path}.type", condition["type"])
    if condition["status"] not in _STATUSES:
        faults.unsupported(f"{path}.status", condition["status"], _STATUSES)
    if condition.get("observedGeneration", 0) < 0:
        faults.invalid(
            f"{path}.observedGeneration", condition["observedGeneration"], "must be greater than or equal to zero"
        )
    if condition.get("lastTransitionTime") is None:
        faults.required(f"{path}.lastTransitionTime")
    reason, message = condition["reason"], condition["message"]
    if not reason:
        faults.required(f"{path}.reason")
    else:
        if not _REASON.fullmatch(reason):
            faults.invalid(
                f"{path}.reason",
                reason,
                "a condition reason must start with alphabetic character, optionally followed by a string of "
                "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' "
                "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
                "regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
            )
        if formats.byte_length(reason) > limits.CONDITION_REASON_LENGTH:
            faults.too_long(f"{path}.reason", limits.CONDITION_REASON_LENGTH)
    if formats.byte_length(message) > limits.CONDITION_MESSAGE_LENGTH:
        faults.too_long(f"{path}.message", limits.CONDITION_MESSAGE_LENGTH)


def binding(faults: Faults, path: str, owner: Json) -> None:
    """The binding conditions of a device or an allocation result."""
    ready, failed = owner.get("bindingConditions"), owner.get("bindingFailureConditions")
    if ready is None and failed is None:
        return
    where, failure = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"

    def check(spot: str, name: str) -> None:
        formats.label_key(faults, spot, name)

    formats.items(faults, where, ready, limits.BINDING_CONDITIONS, check)
    formats.items(faults, failure, failed, limits.BINDING_FAILURE_CONDITIONS, check)
    formats.unique(faults, where, ready or ())
    seen: set[str] = set()
    for index, name in enumerate(failed or ()):
        if name in seen:
            faults.duplicate(f"{failure}[{index}]", name)
        seen.add(name)
        if name in (ready or ()):
            faults.invalid(
                f"{failure}[{index}]", name, "bindingFailureConditions must not overlap with bindingConditions"
            )
    if failed and not ready:
        faults.invalid(where, ready, "bindingConditions are required to use bindingFailureConditions")
    if ready and not failed:
        faults.invalid(failure, failed, "bindingFailureConditions are required to use bindingConditions")
