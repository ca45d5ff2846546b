"""The namespace's word on admin access, for requests and for results."""

from collections.abc import Mapping

from drakit.admission.faults import Faults

__all__ = ["namespace_allows"]


def namespace_allows(faults: Faults, path: str, labels: Mapping[str, str] | None, label: str) -> bool:
    """Whether the containing namespace carries `label`; a fault at `path` if not, or if nobody can tell."""
    if labels is None:
        faults.internal(path, "could not retrieve namespace to verify admin access")
        return False
    if labels.get(label) != "true":
        faults.forbidden(
            path, f"admin access to devices requires the `{label}: true` label on the containing namespace"
        )
        return False
    return True
