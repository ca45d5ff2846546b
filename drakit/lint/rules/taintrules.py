"""Warnings on DeviceTaintRules."""

from collections.abc import Iterator

from drakit.lint.objects import Input, mapping
from drakit.lint.rules.rule import Hit, Rule, Target

__all__ = ["RULES"]

_GONE = {"deviceClassName": "a class", "selectors": "CEL selectors"}


def _reach(data: Input, _: Target) -> Iterator[Hit]:
    for rule in data.rules:
        selector = mapping(rule.value, "spec").get("deviceSelector")
        if selector is None:
            yield Hit(
                rule,
                "spec",
                "has no deviceSelector: it taints nothing (and everything for the scheduler of some versions): say "
                "which driver, pool or device is meant",
            )
        elif isinstance(selector, dict) and not any(selector.get(key) for key in ("driver", "pool", "device", *_GONE)):
            yield Hit(
                rule,
                "spec.deviceSelector",
                "is empty: it taints every device of the cluster, and NoExecute evicts every pod that uses one: say "
                "which driver, pool or device is meant",
            )


def _gone(data: Input, target: Target) -> Iterator[Hit]:
    for rule in data.rules if target.version >= "1.35" else ():
        selector = mapping(rule.value, "spec", "deviceSelector")
        for field, means in _GONE.items():
            if field in selector:
                yield Hit(
                    rule,
                    f"spec.deviceSelector.{field}",
                    f"rules cannot select by {means} since Kubernetes 1.35: the field is dropped, and the rule then "
                    "taints more than is meant: select by driver, pool and device",
                )


RULES = (
    Rule("taint-rule-selector", "a rule that taints every device, or none", _reach),
    Rule("taint-rule-gone-field", "deviceClassName or selectors in a DeviceTaintRule, gone since 1.35", _gone),
)
