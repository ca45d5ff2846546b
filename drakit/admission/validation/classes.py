"""DeviceClasses. Source: spec/resourceslice.md 4.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drakit.admission import semantics
from drakit.admission.validation import configuration, formats, selectors
from drakit.api import limits, names

if TYPE_CHECKING:
    from drakit.admission.faults import Faults
    from drakit.admission.policy import Policy

__all__ = ["device_class"]

Json = dict[str, Any]


def device_class(faults: Faults, spec: Json, old: Json | None, server: Policy) -> None:
    """The spec of a class; selectors and config that are exactly the old ones count as stored."""

    def unchanged(name: str) -> bool:
        return old is not None and semantics.equal({name: spec.get(name)}, {name: old.get(name)}, "DeviceClassSpec")

    selectors.selectors(faults, "spec.selectors", spec.get("selectors"), server, stored=unchanged("selectors"))
    stored = unchanged("config")
    formats.items(
        faults,
        "spec.config",
        spec.get("config"),
        limits.CLASS_CONFIGS,
        lambda path, config: configuration.opaque(faults, path, config, stored=stored),
    )
    name = spec.get("extendedResourceName")
    if name is not None and not _is_extended_resource(name):
        faults.invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def _is_extended_resource(name: str) -> bool:
    """Qualified with a domain that is not Kubernetes' own, and a label key even as the name of a quota."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not names.label_key(f"requests.{name}")
