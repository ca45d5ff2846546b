"""Object metadata. Source: recorded answers (spec/apiserver.md Decoding; rules *.metadata.* of the vectors)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit.admission.validation import formats
from drakit.api import names

if TYPE_CHECKING:
    from drakit.admission.faults import Faults

__all__ = ["created", "template", "updated"]

Json = dict[str, Any]

_ANNOTATIONS_SIZE: Final = 256 * 1024
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_NOT_IN_TEMPLATES: Final = {
    name: "uID" if name == "uid" else name
    for name in (
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
        "managedFields",
    )
}
_IMMUTABLE: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def created(faults: Faults, meta: Json, *, namespaced: bool) -> None:
    """The metadata of a new object (claims and classes are checked so on updates, too)."""
    prefix = meta.get("generateName", "")
    if prefix:
        unfinished = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        faults.invalid_each("metadata.generateName", prefix, names.dns_subdomain(unfinished))
    name = meta.get("name", "")
    if name:
        formats.subdomain(faults, "metadata.name", name)
    else:
        faults.required("metadata.name", "name or generateName is required")
    if namespaced:
        namespace = meta.get("namespace", "")
        if namespace:
            formats.label(faults, "metadata.namespace", namespace)
        else:
            faults.required("metadata.namespace")
    if meta.get("generation", 0) < 0:
        faults.invalid("metadata.generation", meta["generation"], "must be greater than or equal to 0")
    _labels(faults, meta, "metadata")
    _annotations(faults, meta, "metadata")
    _owners(faults, meta, "metadata.ownerReferences")
    _finalizers(faults, meta)


def updated(faults: Faults, meta: Json, old: Json) -> None:
    """What must not change, and what may."""
    if old.get("deletionTimestamp"):
        added = [each for each in meta.get("finalizers") or () if each not in (old.get("finalizers") or ())]
        if added:
            faults.forbidden(
                "metadata.finalizers",
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{"
                + ", ".join(f'"{each}"' for each in added)
                + "}",
            )
    for name in _IMMUTABLE:
        if meta.get(name) != old.get(name):
            faults.invalid(f"metadata.{name}", meta.get(name), "field is immutable")
    _labels(faults, meta, "metadata")
    _annotations(faults, meta, "metadata")
    _owners(faults, meta, "metadata.ownerReferences")


def template(faults: Faults, meta: Json, path: str) -> None:
    """The metadata inside a template: labels and annotations only. Paths have the names of Go, such as uID."""
    _annotations(faults, meta, path)
    _labels(faults, meta, path)
    for name, shown in _NOT_IN_TEMPLATES.items():
        if meta.get(name) is not None:
            faults.forbidden(f"{path}.{shown}", "cannot be set")


def _labels(faults: Faults, meta: Json, path: str) -> None:
    for key, value in (meta.get("labels") or {}).items():
        formats.label_key(faults, f"{path}.labels", key)
        formats.label_value(faults, f"{path}.labels", value)


def _annotations(faults: Faults, meta: Json, path: str) -> None:
    annotations = meta.get("annotations") or {}
    for key in annotations:
        faults.invalid_each(f"{path}.annotations", key, names.label_key(key.lower()))
    size = sum(formats.byte_length(key) + formats.byte_length(value) for key, value in annotations.items())
    if size > _ANNOTATIONS_SIZE:
        faults.too_long(f"{path}.annotations", _ANNOTATIONS_SIZE)


def _owners(faults: Faults, meta: Json, path: str) -> None:
    owners = meta.get("ownerReferences") or ()
    for owner in owners:
        api_version = owner["apiVersion"]
        version = api_version.rpartition("/")[2] if api_version.count("/") < 2 else ""
        if not version:
            faults.invalid(f"{path}.apiVersion", api_version, "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner[name]:
                faults.invalid(f"{path}.{name}", "", "must not be empty")
        if api_version == "v1" and owner["kind"] == "Event":
            faults.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
    controllers = [f"{owner['kind']}/{owner['name']}" for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        faults.invalid(
            path,
            owners,
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}",
        )


def _finalizers(faults: Faults, meta: Json) -> None:
    finalizers = meta.get("finalizers") or ()
    for name in finalizers:
        formats.label_key(faults, "metadata.finalizers", name)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        faults.invalid("metadata.finalizers", finalizers, "finalizer orphan and foregroundDeletion cannot be both set")
    for index, name in enumerate(finalizers):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            faults.invalid(
                f"metadata.finalizers[{index}]",
                name,
                "name is neither a standard finalizer name nor is it fully qualified",
            )
