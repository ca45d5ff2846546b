"""The documents by which clients learn what is served: /version, /api, /apis, in the old and the aggregated form."""

import base64
import hashlib
from typing import Any

from drakit.simulator.apiserver.resources import CORE, Kind, Registry

__all__ = [
    "aggregated",
    "api_group",
    "api_group_list",
    "api_resource_list",
    "api_versions",
    "version_info",
]

_RELEASES = {"1.36": "1.36.2", "1.37": "1.37.0"}


def version_info(version: str) -> dict[str, Any]:
    """/version of a server of Kubernetes `version` ("1.37")."""
    major, minor = version.split(".")
    release = _RELEASES.get(version, f"{version}.0")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{release}",
        "gitCommit": "$Format:%H$",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "go1.26.6",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def api_versions(address: str) -> dict[str, Any]:
    """/api; `address` is host:port of the server."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _group(registry: Registry, group: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in registry.groups[group]]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_group_list(registry: Registry) -> dict[str, Any]:
    """/apis."""
    groups = [_group(registry, group) for group in registry.groups if group != CORE]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(registry: Registry, group: str) -> dict[str, Any]:
    """/apis/GROUP."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)}


def api_resource_list(registry: Registry, group: str, version: str) -> dict[str, Any]:
    """/api/v1 or /apis/GROUP/VERSION."""
    resources = []
    for kind in registry.of(group, version):
        resources.append(_resource(registry, kind))
        for name, verbs in sorted(kind.subresources.items()):
            sub_group, sub_version, sub_kind = _subresource_kind(kind, name)
            entry = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
            if sub_group != kind.group:
                entry |= {"group": sub_group, "version": sub_version}
            resources.append({**entry, "kind": sub_kind, "verbs": list(verbs)})
    document: dict[str, Any] = {"kind": "APIResourceList"}
    if group != CORE:
        document["apiVersion"] = "v1"
    return {**document, "groupVersion": f"{group}/{version}" if group else version, "resources": resources}


def _resource(registry: Registry, kind: Kind) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced}
    entry |= {"kind": kind.kind, "verbs": list(kind.verbs)}
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.is_review:
        return entry
    entry["storageVersionHash"] = _storage_hash(registry, kind)
    return entry


def _storage_hash(registry: Registry, kind: Kind) -> str:
    """A number for the version that a real server stores: the stable one, else the oldest."""
    served = [version for version in kind.versions if registry.find(kind.group, version, kind.plural)]
    stored = served[0] if served[0] == kind.storage else served[-1]
    digest = hashlib.sha256(f"{kind.group}/{stored}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _subresource_kind(kind: Kind, name: str) -> tuple[str, str, str]:
    known = {
        "binding": ("", "v1", "Binding"),
        "eviction": ("policy", "v1", "Eviction"),
        "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    }
    return known.get(name, (kind.group, "", kind.kind))


def aggregated(registry: Registry, *, core: bool) -> dict[str, Any]:
    """/api (`core`) or /apis as one APIGroupDiscoveryList, v2."""
    items = []
    for group, versions in registry.groups.items():
        if (group == CORE) != core:
            continue
        listed = [
            {
                "version": version,
                "resources": [_discovered(kind) for kind in registry.of(group, version)],
                "freshness": "Current",
            }
            for version in versions
        ]
        items.append({"metadata": {"name": group} if group else {}, "versions": listed})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _discovered(kind: Kind) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [_discovered_subresource(kind, name) for name in sorted(kind.subresources)]
    return entry


def _discovered_subresource(kind: Kind, name: str) -> dict[str, Any]:
    group, version, sub_kind = _subresource_kind(kind, name)
    response = {"group": group if group != kind.group else "", "version": version, "kind": sub_kind}
    if name == "binding":
        response["version"] = ""
    return {"subresource": name, "responseKind": response, "verbs": list(kind.subresources[name])}
