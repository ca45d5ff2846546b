"""Who may change which part of a claim's status (1.36+, DRAResourceClaimGranularStatusAuthorization).

Source: spec/apiserver.md 20, spec/resourceslice.md 4.4. Refusals are causes among the validation errors, not a 403.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from drakit.admission import semantics
from drakit.admission.validation import status as status_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from drakit.admission.faults import Faults
    from drakit.admission.policy import Policy

__all__ = ["User", "status_update"]

Json = dict[str, Any]

_BINDING: Final = "resourceclaims/binding"
_DRIVER: Final = "resourceclaims/driver"


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes.

    Attributes:
        name: For messages.
        allows: `(verb, resource, name) -> bool`: whether RBAC permits a verb on a resource of the group, as
            `("update", "resourceclaims/binding", "")` or
            `("arbitrary-node:update", "resourceclaims/driver", <driver>)`.
        node: The node that the user's service account token is bound to, empty when it is to none.
    """

    name: str
    allows: Callable[[str, str, str], bool]
    node: str = ""


def status_update(faults: Faults, claim: Json, old: Json, user: User | None, server: Policy) -> None:
    """Refuse changes that the user may not make; None may do everything."""
    if user is None or not server.on("DRAResourceClaimGranularStatusAuthorization"):
        return
    new_status, old_status = claim["status"], old.get("status", {})
    if not _same(new_status, old_status, "allocation", "reservedFor") and not user.allows("update", _BINDING, ""):
        faults.forbidden(
            "status.allocation",
            f'changing status.allocation or status.reservedFor requires resource="{_BINDING}", verb="update" '
            f'permission: resourceclaims.resource.k8s.io is forbidden: User "{user.name}" cannot update resource '
            f'"{_BINDING}" in API group "resource.k8s.io" at the cluster scope',
        )
    bound = user.node and user.node == _single_node(new_status.get("allocation"))
    verbs = (["associated-node:update"] if bound else []) + ["arbitrary-node:update"]
    for driver in _changed_drivers(new_status, old_status):
        if any(user.allows(verb, _DRIVER, driver) for verb in verbs):
            continue
        faults.forbidden(
            "status.devices",
            f'changing status.devices requires resource="{_DRIVER}", verb="[{" ".join(verbs)}]" permission: '
            f'resourceclaims.resource.k8s.io "{driver}" is forbidden: User "{user.name}" cannot {verbs[-1]} resource '
            f'"{_DRIVER}" in API group "resource.k8s.io" in the namespace "{claim["metadata"].get("namespace", "")}"',
        )


def _same(new: Json, old: Json, *names: str) -> bool:
    return semantics.equal(
        {name: new.get(name) for name in names}, {name: old.get(name) for name in names}, "ResourceClaimStatus"
    )


def _changed_drivers(new: Json, old: Json) -> list[str]:
    """Drivers of entries that came, changed or went, except those that went together with their allocation."""
    allocated = {status_rules.device_id(each) for each in status_rules.results(new.get("allocation"))}
    before = {status_rules.device_id(each): each for each in old.get("devices") or ()}
    after = {status_rules.device_id(each): each for each in new.get("devices") or ()}
    changed = {
        identity[0]
        for identity in before.keys() | after.keys()
        if not semantics.equal(before.get(identity), after.get(identity), "AllocatedDeviceStatus")
        and (identity in after or identity in allocated)
    }
    return sorted(changed)


def _single_node(allocation: Json | None) -> str:
    """The node of an allocation whose selector is one term with just that node's name."""
    terms = ((allocation or {}).get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1 or terms[0].get("matchExpressions"):
        return ""
    fields = terms[0].get("matchFields") or []
    if len(fields) != 1 or fields[0]["key"] != "metadata.name" or fields[0]["operator"] != "In":
        return ""
    values = fields[0].get("values") or []
    return values[0] if len(values) == 1 else ""
