"""The kinds that the fake API server serves, and since which Kubernetes version it serves them."""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from drakit import admission
from drakit.api import fields

__all__ = ["ALL", "CORE", "NAMESPACES", "NODES", "PODS", "RESOURCE", "Kind", "Registry"]

CORE: Final = ""
RESOURCE: Final = "resource.k8s.io"
_EVER: Final = "1.0"


class Kind(msgspec.Struct, frozen=True):
    """One resource type as discovery tells of it.

    `versions` maps each API version to the Kubernetes version that first served it. Objects are stored in the form of
    `storage`, those of reviews (`is_review`) not at all.
    """

    group: str
    kind: str
    plural: str
    namespaced: bool
    versions: dict[str, str]
    storage: str = "v1"
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, tuple[str, ...]] = {}
    has_generation: bool = False
    delete_returns_object: bool = False
    graceful: bool = False
    create_on_update: bool = False
    is_review: bool = False
    collection_delete: bool = True

    @property
    def singular(self) -> str:
        """The lower-case kind, as kubectl takes it."""
        return self.kind.lower()

    @property
    def qualified(self) -> str:
        """`plural.group` as messages name it; only `plural` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """`Kind.group` as messages name it; only `Kind` in the core group."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def verbs(self) -> tuple[str, ...]:
        """The verbs of the resource itself, in discovery's order."""
        if self.is_review:
            return ("create",)
        verbs = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
        return verbs if self.collection_delete else tuple(verb for verb in verbs if verb != "deletecollection")

    def api_version(self, version: str) -> str:
        """`group/version`; only `version` in the core group."""
        return f"{self.group}/{version}" if self.group else version


_STATUS: Final[dict[str, tuple[str, ...]]] = {"status": ("get", "patch", "update")}

NAMESPACES: Final = Kind(
    CORE,
    "Namespace",
    "namespaces",
    namespaced=False,
    versions={"v1": _EVER},
    short_names=("ns",),
    subresources={"finalize": ("update",), **_STATUS},
    delete_returns_object=True,
    collection_delete=False,
)
NODES: Final = Kind(
    CORE, "Node", "nodes", namespaced=False, versions={"v1": _EVER}, short_names=("no",), subresources=_STATUS
)
PODS: Final = Kind(
    CORE,
    "Pod",
    "pods",
    namespaced=True,
    versions={"v1": _EVER},
    short_names=("po",),
    categories=("all",),
    subresources={"binding": ("create",), "eviction": ("create",), **_STATUS},
    has_generation=True,
    delete_returns_object=True,
    graceful=True,
)


def _dra(kind: fields.Kind) -> Kind:
    """A kind of resource.k8s.io; claims and templates are the ones whose generation is not counted."""
    return Kind(
        RESOURCE,
        kind.name,
        kind.plural,
        namespaced=kind.namespaced,
        versions=kind.versions,
        subresources=_STATUS if kind.status else {},
        has_generation=not kind.namespaced,
        delete_returns_object=True,
    )


ALL: Final = (
    NAMESPACES,
    NODES,
    PODS,
    Kind(CORE, "ConfigMap", "configmaps", namespaced=True, versions={"v1": _EVER}, short_names=("cm",)),
    Kind(
        CORE,
        "Event",
        "events",
        namespaced=True,
        versions={"v1": _EVER},
        short_names=("ev",),
        create_on_update=True,
    ),
    Kind(CORE, "Secret", "secrets", namespaced=True, versions={"v1": _EVER}),
    Kind(
        CORE,
        "ServiceAccount",
        "serviceaccounts",
        namespaced=True,
        versions={"v1": _EVER},
        short_names=("sa",),
        subresources={"token": ("create",)},
        delete_returns_object=True,
    ),
    *(_dra(kind) for kind in fields.KINDS.values()),
    Kind(
        "scheduling.k8s.io",
        "PriorityClass",
        "priorityclasses",
        namespaced=False,
        versions={"v1": _EVER},
        short_names=("pc",),
        has_generation=True,
    ),
    Kind(
        "scheduling.k8s.io",
        "PodGroup",
        "podgroups",
        namespaced=True,
        versions={"v1beta1": "1.37", "v1alpha2": "1.36"},
        storage="v1beta1",
        subresources=_STATUS,
        has_generation=True,
    ),
    Kind(
        "authentication.k8s.io",
        "SelfSubjectReview",
        "selfsubjectreviews",
        namespaced=False,
        versions={"v1": "1.28"},
        is_review=True,
    ),
    Kind(
        "authorization.k8s.io",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        namespaced=False,
        versions={"v1": _EVER},
        is_review=True,
    ),
    Kind(
        "coordination.k8s.io",
        "Lease",
        "leases",
        namespaced=True,
        versions={"v1": _EVER},
        create_on_update=True,
    ),
)


def _gate(kind: Kind, version: str) -> str:
    """The feature gate without which a kind is not served."""
    if kind.kind == "DeviceTaintRule":
        return "DRADeviceTaintRules" if _minor(version) >= (1, 35) else "DRADeviceTaints"
    return "DRAResourcePoolStatus" if kind.kind == "ResourcePoolStatusRequest" else ""


def _minor(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


class Registry:
    """The kinds and versions that a cluster of one Kubernetes version serves."""

    def __init__(self, version: str, gates: Collection[str] | None = None, kinds: Iterable[Kind] = ALL) -> None:
        """Keep what `version` ("1.37") serves of `kinds` with the feature `gates` (None: its defaults)."""
        self.version = version
        self.gates = admission.profile(version) if gates is None else frozenset(gates)
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self._groups: dict[str, list[str]] = {}
        self.kinds: list[Kind] = []
        for kind in kinds:
            served = [name for name, since in kind.versions.items() if _minor(since) <= _minor(version)]
            if not served or _gate(kind, version) not in {*self.gates, ""}:
                continue
            self.kinds.append(kind)
            for name in served:
                self._by_path[kind.group, name, kind.plural] = kind
                versions = self._groups.setdefault(kind.group, [])
                if name not in versions:
                    versions.append(name)

    @property
    def groups(self) -> dict[str, list[str]]:
        """API versions by group name, the preferred one first; the core group is the empty name."""
        return {group: sorted(versions, key=_priority, reverse=True) for group, versions in self._groups.items()}

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind at /apis/GROUP/VERSION/PLURAL, or None."""
        return self._by_path.get((group, version, plural))

    def serves(self, group: str, version: str) -> bool:
        """Whether anything is served at GROUP/VERSION."""
        return version in self._groups.get(group, ())

    def of(self, group: str, version: str) -> list[Kind]:
        """The kinds of one group and version, sorted by plural name."""
        found = [kind for (g, v, _), kind in self._by_path.items() if (g, v) == (group, version)]
        return sorted(found, key=lambda kind: kind.plural)

    def by_plural(self, plural: str) -> Kind:
        """The kind of that plural name, in whatever group.

        Raises:
            KeyError: nothing of that name is served.
        """
        for kind in self.kinds:
            if kind.plural == plural:
                return kind
        raise KeyError(plural)

    def by_kind(self, group: str, name: str) -> Kind:
        """The kind called `name` in `group`.

        Raises:
            KeyError: nothing of that name is served.
        """
        for kind in self.kinds:
            if (kind.group, kind.kind) == (group, name):
                return kind
        raise KeyError(f"{name}.{group}")


def _priority(version: str) -> tuple[int, int, int]:
    """Kubernetes' order of versions: stable, beta, alpha; the higher number first."""
    text = version.removeprefix("v")
    for rank, stage in ((1, "beta"), (0, "alpha")):
        if stage in text:
            major, minor = text.split(stage)
            return rank, int(major), int(minor)
    return 2, int(text), 0
