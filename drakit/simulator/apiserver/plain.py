"""Admission of the kinds outside resource.k8s.io: identity, names, the defaults that DRA components read. No more.

Their specs are stored as sent; docs/simulator.md lists what a real server would refuse.
"""

import base64
import re
from typing import Any

from drakit.simulator.apiserver.errors import bad_request, invalid
from drakit.simulator.apiserver.paths import Target
from drakit.simulator.apiserver.resources import NAMESPACES, NODES, PODS
from drakit.simulator.apiserver.shapes import Shape

__all__ = ["admit", "check_identity", "check_types"]

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def check_identity(target: Target, body: dict[str, Any]) -> None:
    """Refuse a body of another kind or API version than the path's; what is missing is taken from the path."""
    kind, version = target.kind, target.api_version
    sent_kind, sent_version = body.get("kind") or kind.kind, body.get("apiVersion") or version
    if sent_kind != kind.kind or sent_version.rpartition("/")[0] != kind.group:
        raise bad_request(
            f"{sent_kind} in version {_quoted(sent_version.rpartition('/')[2])} cannot be handled as a {kind.kind}: "
            f"no kind {_quoted(sent_kind)} is registered for version {_quoted(sent_version)}"
        )
    if sent_version != version:
        raise bad_request(
            f"the API version in the data ({sent_version}) does not match the expected API version ({version})"
        )


_GO_TYPES = {
    "object": "struct",
    "map": "map",
    "array": "slice",
    "string": "string",
    "integer": "int64",
    "boolean": "bool",
}
_JSON_WORDS = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "map": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
}


def check_types(target: Target, value: Any, shape: Shape | None, path: str = "") -> None:
    """Refuse values of another type than the known fields have; null is always allowed.

    Raises:
        Refused: 400.
    """
    if value is None or shape is None or shape.type not in _PYTHON_TYPES:
        return
    fits = isinstance(value, _PYTHON_TYPES[shape.type]) and (shape.type == "boolean" or not isinstance(value, bool))
    if not fits and not (shape.reference.endswith(".Quantity") and isinstance(value, int | float)):
        kind, version = target.kind.kind, target.version
        word, type_ = _JSON_WORDS.get(type(value), "value"), _GO_TYPES[shape.type]
        where = f"Go struct field {path.removeprefix('.')} of type {type_}"
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: json: cannot unmarshal {word} into {where}'
        )
    if isinstance(value, dict):
        for name, child in value.items():
            check_types(target, child, shape.field(name), f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            check_types(target, item, shape.item, path)


def admit(
    target: Target, body: dict[str, Any], stored: dict[str, Any] | None, shape: Shape | None = None
) -> dict[str, Any]:
    """The object to store: the body with its defaults, its status or everything but its status kept from `stored`."""
    check_types(target, body, shape)
    check_identity(target, body)
    metadata = body.get("metadata")
    obj = {**body, "apiVersion": target.kind.api_version(target.kind.storage), "kind": target.kind.kind}
    obj["metadata"] = dict(metadata or {})
    if not target.kind.namespaced:
        obj["metadata"].pop("namespace", None)
    if stored is None:
        _check_name(target, obj["metadata"])
        if "status" in target.kind.subresources:
            obj.pop("status", None)
    elif target.subresource == "status":
        obj = {**stored, "metadata": obj["metadata"], "status": obj.get("status") or {}}
    elif "status" in target.kind.subresources:
        obj.pop("status", None)
        if "status" in stored:
            obj["status"] = stored["status"]
    _check_finalizers(target, obj["metadata"], stored)
    return _defaulted(target, obj)


def _quoted(text: str) -> str:
    return f'"{text}"'


def _check_name(target: Target, metadata: dict[str, Any]) -> None:
    kind, name, prefix = target.kind, metadata.get("name") or "", metadata.get("generateName") or ""
    if not name and not prefix:
        causes = [("FieldValueRequired", "metadata.name", "Required value: name or generateName is required")]
        raise invalid(kind.group, kind.kind, "", causes)
    tried = name or f"{prefix}aaaaa"
    if len(tried) > 253 or not _SUBDOMAIN.fullmatch(tried):
        message = f'Invalid value: "{tried}": {_SUBDOMAIN_TEXT}'
        raise invalid(kind.group, kind.kind, tried, [("FieldValueInvalid", "metadata.name", message)])


def _check_finalizers(target: Target, metadata: dict[str, Any], stored: dict[str, Any] | None) -> None:
    if stored is None or not stored["metadata"].get("deletionTimestamp"):
        return
    old = stored["metadata"].get("finalizers") or []
    added = [name for name in metadata.get("finalizers") or [] if name not in old]
    if added:
        listed = ", ".join(_quoted(name) for name in added)
        message = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}"
        )
        kind = target.kind
        raise invalid(
            kind.group, kind.kind, metadata.get("name", ""), [("FieldValueForbidden", "metadata.finalizers", message)]
        )


def _defaulted(target: Target, obj: dict[str, Any]) -> dict[str, Any]:
    kind = target.kind
    if kind is PODS:
        return _defaulted_pod(target, obj)
    if kind is NAMESPACES:
        obj["spec"] = {"finalizers": ["kubernetes"], **(obj.get("spec") or {})}
        obj["status"] = {"phase": "Active", **(obj.get("status") or {})}
        name = obj["metadata"].get("name")
        if name:
            labels = {**(obj["metadata"].get("labels") or {}), "kubernetes.io/metadata.name": name}
            obj["metadata"]["labels"] = labels
    elif kind is NODES:
        obj["spec"] = obj.get("spec") or {}
        obj["status"] = obj.get("status") or {}
    elif kind.plural == "secrets":
        _merge_string_data(obj)
        obj.setdefault("type", "Opaque")
    return obj


def _merge_string_data(obj: dict[str, Any]) -> None:
    texts = obj.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


_POD_DEFAULTS: dict[str, Any] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0,
}


def _defaulted_pod(target: Target, obj: dict[str, Any]) -> dict[str, Any]:
    spec = obj.get("spec")
    if not isinstance(spec, dict) or not spec.get("containers"):
        name = obj["metadata"].get("name", "")
        raise invalid("", "Pod", name, [("FieldValueRequired", "spec.containers", "Required value")])
    obj["spec"] = {**_POD_DEFAULTS, **spec}
    for field in ("containers", "initContainers"):
        if spec.get(field):
            obj["spec"][field] = [_defaulted_container(container) for container in spec[field]]
    _check_pod_claims(obj)
    if target.subresource is None:
        obj["status"] = obj.get("status") or {"phase": "Pending", "qosClass": "BestEffort"}
    return obj


def _defaulted_container(container: dict[str, Any]) -> dict[str, Any]:
    image = container.get("image") or ""
    tag = image.rpartition("/")[2].partition(":")[2]
    policy = "Always" if tag in {"", "latest"} and "@" not in image else "IfNotPresent"
    defaults = {
        "imagePullPolicy": policy,
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    return {**defaults, **container}


def _check_pod_claims(obj: dict[str, Any]) -> None:
    """The rules on spec.resourceClaims that users of DRA trip over."""
    spec = obj["spec"]
    causes = []
    names = []
    for index, claim in enumerate(spec.get("resourceClaims") or []):
        path = f"spec.resourceClaims[{index}]"
        names.append(claim.get("name") or "")
        if not claim.get("name"):
            causes.append(("FieldValueRequired", f"{path}.name", "Required value"))
        sources = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(key)]
        if len(sources) != 1:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            if sources:
                why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            causes.append(("FieldValueInvalid", path, f"Invalid value: {why}"))
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            for place, use in enumerate((container.get("resources") or {}).get("claims") or []):
                if use.get("name") not in names:
                    path = f"spec.{field}[{index}].resources.claims[{place}].name"
                    causes.append(("FieldValueNotFound", path, f'Not found: "{use.get("name", "")}"'))
    if causes:
        raise invalid("", "Pod", obj["metadata"].get("name", ""), causes)
