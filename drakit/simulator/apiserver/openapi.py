"""OpenAPI v3, made from the shapes: as much as kubectl's explain, apply and field validation ask for.

The documents have the structure of a real server's; the descriptions are our own.
"""

import functools
import hashlib
from typing import Any

import msgspec

from drakit.simulator.apiserver.answers import Answer
from drakit.simulator.apiserver.descriptions import describe
from drakit.simulator.apiserver.errors import no_such_path
from drakit.simulator.apiserver.resources import RESOURCE, Kind, Registry
from drakit.simulator.apiserver.schema import shape_of
from drakit.simulator.apiserver.shapes import Shape

__all__ = ["answer", "deprecations", "document"]

_SCHEMAS = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_DEPRECATED = {"v1beta1": ("1.35", "1.38"), "v1beta2": ("1.36", "1.39"), "v1alpha3": ("1.36", "1.39")}
_NOT_DEPRECATED = frozenset({("v1beta2", "DeviceTaintRule"), ("v1alpha3", "ResourcePoolStatusRequest")})


def deprecations(kind: Kind, version: str, minor: str) -> tuple[str, ...]:
    """The warning of an API version that Kubernetes `minor` calls deprecated."""
    since, removed = _DEPRECATED.get(version, ("9.99", ""))
    current = kind.group != RESOURCE or (version, kind.kind) in _NOT_DEPRECATED
    if current or _number(minor) < _number(since):
        return ()
    return (f"{kind.api_version(version)} {kind.kind} is deprecated in v{since}+, unavailable in v{removed}+",)


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])


def answer(registry: Registry, path: str, if_none_match: str) -> Answer:
    """The index or the document at `path`.

    Raises:
        Refused: 404; the OpenAPI v2 document is not served.
    """
    documents = _documents(registry)
    if path == "/openapi/v3":
        index = {
            name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={hashlib.sha512(body).hexdigest().upper()}"}
            for name, body in documents.items()
        }
        return Answer(msgspec.json.encode({"paths": index}), media="text/plain; charset=utf-8")
    body = documents.get(path.removeprefix("/openapi/v3/"))
    if body is None:
        raise no_such_path()
    etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    headers = {"Etag": etag, "Vary": "Accept"}
    if if_none_match == etag:
        return Answer(b"", 304, headers=headers)
    return Answer(body, headers=headers)


def _documents(registry: Registry) -> dict[str, bytes]:
    return _documents_of(registry.version, registry.gates)


@functools.cache
def _documents_of(minor: str, gates: frozenset[str]) -> dict[str, bytes]:
    registry = Registry(minor, gates)
    return {
        f"apis/{group}/{version}" if group else f"api/{version}": msgspec.json.encode(
            document(registry, group, version)
        )
        for group, versions in registry.groups.items()
        for version in versions
    }


def document(registry: Registry, group: str, version: str) -> dict[str, Any]:
    """The document of one group and version."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for kind in registry.of(group, version):
        shape = shape_of(kind, version, registry.version)
        name = shape.reference or f"io.k8s.api.{group or 'core'}.{version}.{kind.kind}"
        _add(msgspec.structs.replace(shape, reference=name), schemas)
        identity = [{"group": group, "kind": kind.kind, "version": version}]
        schemas[name]["x-kubernetes-group-version-kind"] = identity
        schemas[f"{name}List"] = _list_schema(kind, version, name)
        paths.update(_paths(kind, version, name))
    schemas[f"{_META}ListMeta"] = _LIST_META
    schemas[f"{_META}Patch"] = {"type": "object", "description": "A patch of any of the media types."}
    info = {"title": "Kubernetes", "version": registry.version}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


_LIST_META = {
    "type": "object",
    "description": "Metadata of a list.",
    "properties": {
        "continue": {"type": "string"},
        "remainingItemCount": {"type": "integer", "format": "int64"},
        "resourceVersion": {"type": "string"},
        "selfLink": {"type": "string"},
    },
}


def _list_schema(kind: Kind, version: str, name: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": f"A list of {kind.plural}.",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": _SCHEMAS + name}},
            "kind": {"type": "string"},
            "metadata": {"default": {}, "allOf": [{"$ref": f"{_SCHEMAS}{_META}ListMeta"}]},
        },
        "x-kubernetes-group-version-kind": [{"group": kind.group, "kind": f"{kind.kind}List", "version": version}],
    }


def _add(shape: Shape, schemas: dict[str, Any]) -> None:
    """Put the schema of a named shape, and of all below it, into `schemas`."""
    if shape.reference in schemas:
        return
    schemas[shape.reference] = {}
    schemas[shape.reference].update(_schema(shape, schemas))


def _schema(shape: Shape, schemas: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    name = shape.reference.rpartition(".")[2]
    if describe(name):
        schema["description"] = describe(name)
    if shape.reference.endswith(".Quantity"):
        return {**schema, "oneOf": [{"type": "string"}, {"type": "number"}]}
    schema["type"] = "object" if shape.type in {"map", "any"} else shape.type
    if shape.format:
        schema["format"] = shape.format
    if shape.type == "object":
        if shape.fields:
            schema["properties"] = {
                field: _described(_used(value, schemas), describe(name, field)) for field, value in shape.fields.items()
            }
        if shape.required:
            schema["required"] = list(shape.required)
        if shape.is_open:
            schema["x-kubernetes-preserve-unknown-fields"] = True
        if shape.atomic:
            schema["x-kubernetes-map-type"] = "atomic"
    elif shape.type == "map" and shape.item is not None:
        schema["additionalProperties"] = _used(shape.item, schemas)
        if shape.atomic:
            schema["x-kubernetes-map-type"] = "atomic"
    elif shape.type == "array" and shape.item is not None:
        schema |= {"items": _used(shape.item, schemas), **_list_extensions(shape)}
    return schema


def _list_extensions(shape: Shape) -> dict[str, Any]:
    extensions: dict[str, Any] = {}
    if shape.keys:
        extensions["x-kubernetes-list-map-keys"] = list(shape.keys)
        extensions["x-kubernetes-list-type"] = "map"
    else:
        extensions["x-kubernetes-list-type"] = "set" if shape.is_set else "atomic"
    if shape.patch_merge:
        extensions["x-kubernetes-patch-strategy"] = "merge"
        if shape.patch_key:
            extensions["x-kubernetes-patch-merge-key"] = shape.patch_key
    return extensions


def _used(shape: Shape, schemas: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field or item: a reference where the shape has a name."""
    if not shape.reference:
        return _schema(shape, schemas)
    _add(shape, schemas)
    return {"allOf": [{"$ref": _SCHEMAS + shape.reference}]}


def _described(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, **schema} if description else schema


def _parameter(name: str, type_: str = "string") -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": type_, "uniqueItems": True}}


_WRITE = [_parameter("dryRun"), _parameter("fieldManager"), _parameter("fieldValidation")]
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)


def _paths(kind: Kind, version: str, name: str) -> dict[str, Any]:
    root = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    collection = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    single, many = _response(name), _response(f"{name}List")
    body = {"content": {"*/*": {"schema": {"$ref": _SCHEMAS + name}}}, "required": True}

    def operation(action: str, response: dict[str, Any], **more: Any) -> dict[str, Any]:
        identity = {"group": kind.group, "version": version, "kind": kind.kind}
        known = {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": identity}
        return {"responses": {"200": response}, **more, **known}

    patch = {"content": {media: {"schema": {"$ref": f"{_SCHEMAS}{_META}Patch"}} for media in _PATCH_TYPES}}
    item = {
        "get": operation("get", single),
        "put": operation("put", single, parameters=_WRITE, requestBody=body),
        "patch": operation("patch", single, parameters=[*_WRITE, _parameter("force", "boolean")], requestBody=patch),
        "delete": operation("delete", single, parameters=[_parameter("dryRun")]),
    }
    paths: dict[str, Any] = {
        collection: {
            "get": operation("list", many),
            "post": operation("post", single, parameters=_WRITE, requestBody=body),
        },
        f"{collection}/{{name}}": item,
    }
    if "status" in kind.subresources:
        paths[f"{collection}/{{name}}/status"] = {verb: item[verb] for verb in ("get", "put", "patch")}
    return paths


def _response(name: str) -> dict[str, Any]:
    return {"description": "OK", "content": {"application/json": {"schema": {"$ref": _SCHEMAS + name}}}}
