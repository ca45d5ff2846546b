"""What the input consists of: Kubernetes objects taken out of documents and lists, and the parts that rules look at.

Nothing is assumed of an object's shape: a manifest may have any JSON anywhere. `mapping` and `items` answer empty for
what is not there or of another type.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from drakit.lint.documents import Document, Position

__all__ = [
    "ADMIN_LABEL",
    "Input",
    "Object",
    "PodSpec",
    "Request",
    "claim_spec",
    "expand",
    "items",
    "mapping",
    "requests",
    "selectors",
    "text",
]

ADMIN_LABEL = "resource.kubernetes.io/admin-access"

_GROUP = "resource.k8s.io"
_TEMPLATES = {  # kind: where its pod template is
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
}


def mapping(value: Any, *keys: str) -> dict[str, Any]:
    """The mapping at `keys` below `value`, {} when there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def items(value: Any, *keys: str) -> list[Any]:
    """The list at `keys` below `value`, [] when there is none."""
    *parents, last = keys
    found = mapping(value, *parents).get(last)
    return found if isinstance(found, list) else []


def text(value: Any, *keys: str) -> str:
    """The string at `keys` below `value`, "" when there is none."""
    *parents, last = keys
    found = mapping(value, *parents).get(last)
    return found if isinstance(found, str) else ""


class Object:
    """One object of the input, with the way back to its place in a file."""

    def __init__(self, file: str, document: Document, value: dict[str, Any], prefix: str = "") -> None:
        """`value` stands at path `prefix` of `document`."""
        self.file, self.document, self.value = file, document, value
        self.prefix = prefix
        self.api_version = text(value, "apiVersion")
        self.group, _, self.version = self.api_version.rpartition("/")
        self.kind = text(value, "kind")
        self.name, self.namespace = text(value, "metadata", "name"), text(value, "metadata", "namespace")

    @property
    def dra(self) -> bool:
        """Whether it belongs to resource.k8s.io."""
        return self.group == _GROUP

    @property
    def title(self) -> str:
        """Kind and name for people."""
        name = self.name or text(self.value, "metadata", "generateName") or "(no name)"
        return f"{self.kind} {self.namespace}/{name}" if self.namespace else f"{self.kind} {name}"

    def is_a(self, *kinds: str) -> bool:
        """Whether it is one of `kinds` of resource.k8s.io."""
        return self.dra and self.kind in kinds

    def position(self, path: str) -> Position:
        """Where `path` of the object is in its file."""
        return self.document.position(self._full(path))

    def inner(self, path: str, line: int, column: int) -> Position:
        """Where line and column of the string at `path` of the object are in its file."""
        return self.document.inner(self._full(path), line, column)

    def text(self, path: str) -> str:
        """The text of `path` of the object as it stands in its file."""
        return self.document.text(self._full(path))

    def _full(self, path: str) -> str:
        return f"{self.prefix}.{path}" if self.prefix and path else self.prefix or path


class Request(NamedTuple):
    """One request or subrequest of a claim, whatever its version calls it."""

    path: str  # of `body`, as in v1
    name: str  # `request` or `request/subrequest`
    body: dict[str, Any]  # deviceClassName, selectors, count ...


class PodSpec(NamedTuple):
    """The pod spec of a pod, or of what makes pods; or the spec of a PodGroup, which names claims in the same way."""

    owner: Object
    path: str
    value: dict[str, Any]


class Input:
    """All objects of all files, with the questions that rules ask.

    `devices` are those of all slices: slice, path, driver, and body (attributes, capacity ...).
    """

    def __init__(self, objects: list[Object]) -> None:
        """Index `objects`."""
        self.objects = objects
        self.slices = [each for each in objects if each.is_a("ResourceSlice")]
        self.claims = [each for each in objects if each.is_a("ResourceClaim", "ResourceClaimTemplate")]
        self.classes = {each.name: each for each in objects if each.is_a("DeviceClass")}
        self.rules = [each for each in objects if each.is_a("DeviceTaintRule")]
        self.pods = [spec for each in objects for spec in _pod_specs(each)]
        self.devices = list(self._devices())
        self._namespaces = {each.name: each for each in objects if each.kind == "Namespace" and not each.group}

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        """The labels of a namespace of the input, None when it is not there."""
        namespace = self._namespaces.get(name or "default")
        return None if namespace is None else mapping(namespace.value, "metadata", "labels")

    def _devices(self) -> Iterator[tuple[Object, str, str, dict[str, Any]]]:
        for each in self.slices:
            driver = text(each.value, "spec", "driver")
            for index, device in enumerate(items(each.value, "spec", "devices")):
                body = mapping(device, "basic") or mapping(device)
                yield each, f"spec.devices[{index}]", driver, body


def expand(file: str, document: Document) -> Iterator[Object]:
    """The objects of a document: itself, or the items of a list such as `kubectl get -o yaml` prints."""
    value = document.value
    if isinstance(value, dict) and text(value, "kind").endswith("List") and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            if isinstance(item, dict):
                yield Object(file, document, item, f"items[{index}]")
    elif isinstance(value, dict):
        yield Object(file, document, value)


def claim_spec(claim: Object) -> tuple[str, dict[str, Any]]:
    """The path and the value of `devices` of a claim or of a template's claim."""
    path = ("spec", "spec", "devices") if claim.kind == "ResourceClaimTemplate" else ("spec", "devices")
    return ".".join(path), mapping(claim.value, *path)


def requests(claim: Object) -> Iterator[Request]:
    """All requests and subrequests of a claim."""
    base, devices = claim_spec(claim)
    for index, request in enumerate(items(devices, "requests")):
        path, name = f"{base}.requests[{index}]", text(request, "name")
        alternatives = items(request, "firstAvailable")
        for number, alternative in enumerate(alternatives):
            full = f"{name}/{text(alternative, 'name')}"
            yield Request(f"{path}.firstAvailable[{number}]", full, mapping(alternative))
        if not alternatives:
            flat = "exactly" not in mapping(request)
            yield Request(f"{path}.exactly", name, mapping(request) if flat else mapping(request, "exactly"))


def selectors(path: str, body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The paths and expressions of the CEL selectors in a request, or in the spec of a class."""
    for index, selector in enumerate(items(body, "selectors")):
        expression = text(selector, "cel", "expression")
        if expression:
            yield f"{path}.selectors[{index}].cel.expression", expression


def _pod_specs(each: Object) -> Iterator[PodSpec]:
    itself = (each.kind, each.group) in {("Pod", ""), ("PodGroup", "scheduling.k8s.io")}
    path: tuple[str, ...] | None = () if itself else _TEMPLATES.get(each.kind)
    if path is not None:
        spec = mapping(each.value, *path, "spec")
        if spec:
            yield PodSpec(each, ".".join((*path, "spec")), spec)
