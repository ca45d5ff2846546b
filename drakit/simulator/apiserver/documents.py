"""The paths that name no resource: health, version, discovery, OpenAPI."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.simulator.apiserver import discovery, openapi
from drakit.simulator.apiserver.answers import Answer
from drakit.simulator.apiserver.errors import Refused, method_not_allowed, no_such_path
from drakit.simulator.apiserver.media import JSON, accepts_discovery
from drakit.simulator.apiserver.resources import Registry

__all__ = ["HEALTH", "document"]

HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
"""Answered without credentials."""
_AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def document(registry: Registry, method: str, path: str, headers: Mapping[str, str], address: str) -> Answer:
    """The document at `path`; `address` is host:port of the server.

    Raises:
        Refused: 404, 405, 406.
    """
    path = path.rstrip("/")
    known = _served(registry, path, headers, address)
    if known is None:
        raise no_such_path()
    if method not in {"GET", "HEAD"}:
        raise method_not_allowed()
    return known


def _served(registry: Registry, path: str, headers: Mapping[str, str], address: str) -> Answer | None:
    if path in HEALTH or path.startswith(("/livez/", "/readyz/")):
        return Answer(b"ok", media="text/plain; charset=utf-8", headers={"X-Content-Type-Options": "nosniff"})
    if path in {"/api", "/apis"}:
        return _root(registry, path, headers, address)
    if path == "/version":
        return _encoded(discovery.version_info(registry.version))
    if path.startswith("/openapi/"):
        return openapi.answer(registry, path, headers.get("If-None-Match", ""))
    match path.strip("/").split("/"):
        case ["api", version] if registry.serves("", version):
            return _encoded(discovery.api_resource_list(registry, "", version))
        case ["apis", group] if group in registry.groups:
            return _encoded(discovery.api_group(registry, group))
        case ["apis", group, version] if registry.serves(group, version):
            return _encoded(discovery.api_resource_list(registry, group, version))
    return None


def _root(registry: Registry, path: str, headers: Mapping[str, str], address: str) -> Answer:
    wants = accepts_discovery(headers.get("Accept", ""))
    if wants is None:
        known = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        raise Refused(406, "NotAcceptable", f"only the following media types are accepted: {known}")
    if not wants:
        return _encoded(discovery.api_versions(address) if path == "/api" else discovery.api_group_list(registry))
    body = msgspec.json.encode(discovery.aggregated(registry, core=path == "/api"))
    etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    cached = {"Etag": etag, "Vary": "Accept", "Cache-Control": "public"}
    if headers.get("If-None-Match") == etag:
        return Answer(b"", 304, _AGGREGATED, headers=cached)
    return Answer(body, media=_AGGREGATED, headers=cached)


def _encoded(document: dict[str, Any]) -> Answer:
    return Answer(msgspec.json.encode(document))
