"""What a URL path names: a resource, an object, a subresource, or one of the server's documents."""

from urllib.parse import unquote

import msgspec

from drakit.simulator.apiserver.resources import CORE, Kind, Registry

__all__ = ["Target", "parse"]


class Target(msgspec.Struct, frozen=True):
    """A resource path: what it names; `name` None is the collection, `namespace` None is all or cluster-scoped."""

    kind: Kind
    version: str
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None
    watch: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The storage key of the object."""
        return self.namespace or "", self.name or ""

    @property
    def api_version(self) -> str:
        """`group/version` of the path."""
        return self.kind.api_version(self.version)


def parse(registry: Registry, path: str) -> Target | None:
    """The target of `path` (still percent-encoded), or None when it names no served resource."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = CORE, parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2 and not (group == CORE and rest[2] in {"status", "finalize"}):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or not all(rest):
        return None
    kind = registry.find(group, version, rest[0])
    if kind is None or (namespace is not None and not kind.namespaced):
        return None
    name = rest[1] if len(rest) > 1 else None
    subresource = rest[2] if len(rest) > 2 else None
    if subresource is not None and subresource not in kind.subresources:
        return None
    if name is not None and kind.namespaced and namespace is None:
        return None
    return Target(kind, version, namespace, name, subresource, watch)
