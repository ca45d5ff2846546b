"""The resources this project talks about: where they live in the API and which versions may serve them."""

from dataclasses import dataclass
from urllib.parse import quote

__all__ = [
    "DEVICE_CLASSES",
    "DEVICE_TAINT_RULES",
    "EVENTS",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "PODS",
    "RESOURCE_CLAIMS",
    "RESOURCE_CLAIM_TEMPLATES",
    "RESOURCE_SLICES",
    "Resource",
]


@dataclass(frozen=True, slots=True)
class Resource:
    """A collection of the API: group ("" = core), versions in order of preference, plural, namespaced, kind."""

    group: str
    versions: tuple[str, ...]
    plural: str
    namespaced: bool
    kind: str

    def api_version(self, version: str) -> str:
        """group/version as objects carry it."""
        return f"{self.group}/{version}" if self.group else version

    def path(self, version: str, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
        """The URL path of the collection, of an object, or of its subresource."""
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        if namespace is not None:
            if not self.namespaced:
                raise ValueError(f"{self.plural} have no namespace, got {namespace!r}")
            root = f"{root}/namespaces/{quote(namespace, safe='')}"
        parts = [root, self.plural, *([quote(name, safe="")] if name else []), *([subresource] if subresource else [])]
        return "/".join(parts)


_DRA = "resource.k8s.io"
_DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")

RESOURCE_CLAIMS = Resource(_DRA, _DRA_VERSIONS, "resourceclaims", True, "ResourceClaim")
RESOURCE_CLAIM_TEMPLATES = Resource(_DRA, _DRA_VERSIONS, "resourceclaimtemplates", True, "ResourceClaimTemplate")
RESOURCE_SLICES = Resource(_DRA, _DRA_VERSIONS, "resourceslices", False, "ResourceSlice")
DEVICE_CLASSES = Resource(_DRA, _DRA_VERSIONS, "deviceclasses", False, "DeviceClass")
DEVICE_TAINT_RULES = Resource(_DRA, ("v1", "v1beta2", "v1alpha3"), "devicetaintrules", False, "DeviceTaintRule")
NODES = Resource("", ("v1",), "nodes", False, "Node")
PODS = Resource("", ("v1",), "pods", True, "Pod")
NAMESPACES = Resource("", ("v1",), "namespaces", False, "Namespace")
EVENTS = Resource("", ("v1",), "events", True, "Event")
LEASES = Resource("coordination.k8s.io", ("v1",), "leases", True, "Lease")
