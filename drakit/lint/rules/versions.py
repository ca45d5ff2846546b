"""Warnings on API versions that clusters stop to serve."""

from collections.abc import Iterator

from drakit.api import fields
from drakit.lint.objects import Input
from drakit.lint.rules.rule import Hit, Rule, Target

__all__ = ["RULES"]

_DEPRECATED = {  # version: deprecated in, gone in
    "v1alpha2": ("1.31", "1.31"),
    "v1alpha3": ("1.32", "1.34"),
    "v1beta1": ("1.35", "1.38"),
    "v1beta2": ("1.36", "1.39"),
}
_RULES_GONE = ("1.36", "1.40")  # v1alpha3 lives longer for kinds that had nothing else for long


def _deprecated(data: Input, target: Target) -> Iterator[Hit]:
    for each in data.objects:
        kind = fields.KINDS.get(each.kind) if each.dra else None
        if kind is None or each.version not in _DEPRECATED:
            continue
        deprecated, gone = (
            _DEPRECATED[each.version] if each.version not in kind.versions else _lifetime(each.version, kind)
        )
        newest = next((name for name in fields.VERSIONS if kind.versions.get(name, "9.99") <= target.version), "")
        if newest != each.version and target.version >= deprecated:
            end = f"gone in {gone}" if target.version < gone else f"gone since {gone}"
            message = f"resource.k8s.io/{each.version} is deprecated since Kubernetes {deprecated} and {end}"
            yield Hit(each, "apiVersion", f"{message}: use resource.k8s.io/{newest}" if newest else message)


def _lifetime(version: str, kind: fields.Kind) -> tuple[str, str]:
    return _RULES_GONE if version == "v1alpha3" and "v1alpha3" in kind.versions else _DEPRECATED[version]


RULES = (Rule("deprecated-version", "an API version that is deprecated or gone", _deprecated),)
