"""Taints and tolerations of devices, and DeviceTaintRules merged into slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from drakit.api import resource

__all__ = ["apply_rules", "blocking", "tolerates", "untolerated"]

_BLOCKING: Final = frozenset({"NoSchedule", "NoExecute"})


def blocking(taints: Iterable[resource.DeviceTaint]) -> tuple[resource.DeviceTaint, ...]:
    """The taints that prevent allocation unless tolerated; other effects are ignored."""
    return tuple(taint for taint in taints if taint.effect in _BLOCKING)


def untolerated(
    taints: Iterable[resource.DeviceTaint], tolerations: Sequence[resource.DeviceToleration]
) -> resource.DeviceTaint | None:
    """The first of the blocking taints that no toleration matches."""
    for taint in taints:
        if not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def tolerates(toleration: resource.DeviceToleration, taint: resource.DeviceTaint) -> bool:
    """Empty effect and empty key match all; operators other than Exists and Equal (or none) match nothing."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and toleration.value == taint.value


def _rule_selects(rule: resource.DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """Whether a rule taints a device: no selector taints nothing, an empty one everything."""
    selector = rule.spec.device_selector
    return (
        selector is not None
        and selector.driver in {None, driver}
        and selector.pool in {None, pool}
        and selector.device in {None, device}
    )


def apply_rules(slice_: resource.ResourceSlice, rules: Sequence[resource.DeviceTaintRule]) -> resource.ResourceSlice:
    """The slice with the taints of all matching rules appended to its devices; itself when no rule matches."""
    driver, pool = slice_.spec.driver, slice_.spec.pool.name
    near = [rule for rule in rules if rule_selects_pool(rule, driver, pool)]
    if not near:
        return slice_
    devices = tuple(_tainted(device, near, driver, pool) for device in slice_.spec.devices)
    return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(slice_.spec, devices=devices))


def rule_selects_pool(rule: resource.DeviceTaintRule, driver: str, pool: str) -> bool:
    """Whether a rule may taint devices of a pool."""
    selector = rule.spec.device_selector
    return selector is not None and selector.driver in {None, driver} and selector.pool in {None, pool}


def _tainted(
    device: resource.Device, rules: Sequence[resource.DeviceTaintRule], driver: str, pool: str
) -> resource.Device:
    added = tuple(rule.spec.taint for rule in rules if _rule_selects(rule, driver, pool, device.name))
    return msgspec.structs.replace(device, taints=device.taints + added) if added else device
