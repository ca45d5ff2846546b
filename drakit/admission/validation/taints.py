"""Device taints, tolerations, DeviceTaintRules.

Source: spec/resourceslice.md 4.1.17, 4.3, 4.5, spec/apiserver.md 9, 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit.admission.validation import conditions, formats
from drakit.api import limits

if TYPE_CHECKING:
    from drakit.admission.faults import Faults
    from drakit.admission.policy import Policy

__all__ = ["rule", "rule_status", "taint", "toleration"]

Json = dict[str, Any]

_OPERATORS: Final = ("Equal", "Exists")


def taint(faults: Faults, path: str, value: Json, old: Json | None, server: Policy) -> None:
    """A taint; the effect is not checked again when it is the old one's."""
    formats.label_key(faults, f"{path}.key", value["key"])
    if value.get("value"):
        formats.label_value(faults, f"{path}.value", value["value"])
    effect = value["effect"]
    if old is not None and old["effect"] == effect:
        return
    if not effect:
        faults.required(f"{path}.effect")
    elif effect not in server.taint_effects:
        faults.unsupported(f"{path}.effect", effect, server.taint_effects)


def toleration(faults: Faults, path: str, value: Json, server: Policy) -> None:
    """A toleration; an empty key is legal with every operator."""
    if value.get("key"):
        formats.label_key(faults, f"{path}.key", value["key"])
    operator, text = value.get("operator", ""), value.get("value", "")
    if operator == "Exists":
        if text:
            faults.invalid(f"{path}.value", text, "must be empty for operator `Exists`")
    elif operator == "Equal":
        formats.label_value(faults, f"{path}.value", text)
    elif not operator:
        faults.required(f"{path}.operator")
    else:
        faults.unsupported(f"{path}.operator", operator, _OPERATORS)
    effect = value.get("effect", "")
    if effect and effect not in server.taint_effects:
        faults.unsupported(f"{path}.effect", effect, server.taint_effects)


def rule(faults: Faults, spec: Json, old: Json | None, server: Policy) -> None:
    """The spec of a DeviceTaintRule."""
    selector = spec.get("deviceSelector") or {}
    if selector.get("driver") is not None:
        formats.driver_name(faults, "spec.deviceSelector.driver", selector["driver"])
    if selector.get("pool") is not None:
        formats.pool_name(faults, "spec.deviceSelector.pool", selector["pool"])
    if selector.get("device") is not None:
        formats.label(faults, "spec.deviceSelector.device", selector["device"])
    taint(faults, "spec.taint", spec["taint"], old["taint"] if old else None, server)


def rule_status(faults: Faults, status: Json) -> None:
    """The status of a DeviceTaintRule."""
    found = status.get("conditions") or ()
    conditions.conditions(faults, "status.conditions", found)
    if len(found) > limits.TAINT_RULE_CONDITIONS:
        faults.too_many("status.conditions", len(found), limits.TAINT_RULE_CONDITIONS)
