"""Warnings on pods that use claims, and on what makes such pods."""

from collections.abc import Iterator
from typing import Any

from drakit.lint.objects import Input, Object, PodSpec, items, mapping, text
from drakit.lint.rules.rule import Hit, Rule, Target

__all__ = ["RULES"]

_POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
_SUFFIX = 5  # random characters at the end of a generated name


def _node_name(data: Input, _: Target) -> Iterator[Hit]:
    for pod in data.pods:
        node = text(pod.value, "nodeName")
        ran = mapping(pod.owner.value, "status").get("phase")  # printed by get: the scheduler has set it
        if node and items(pod.value, "resourceClaims") and not ran:
            yield Hit(
                pod.owner,
                f"{pod.path}.nodeName",
                f"bypasses the scheduler, so nobody allocates the pod's claims and it hangs: use nodeSelector with "
                f"kubernetes.io/hostname: {node} instead",
            )


def _references(data: Input, pods: list[PodSpec]) -> Iterator[tuple[PodSpec, str, str, list[Object]]]:
    """Pods with each claim that they name: path, name, and the claims of that name in the input."""
    claims: dict[str, list[Object]] = {}
    for claim in data.objects:
        if claim.is_a("ResourceClaim"):
            claims.setdefault(claim.name, []).append(claim)
    for pod in pods:
        for index, entry in enumerate(items(pod.value, "resourceClaims")):
            name = text(entry, "resourceClaimName")
            if name:
                yield pod, f"{pod.path}.resourceClaims[{index}].resourceClaimName", name, claims.get(name, [])


def _namespaces(data: Input, _: Target) -> Iterator[Hit]:
    for pod, path, name, claims in _references(data, data.pods):
        namespaces = {claim.namespace or "default" for claim in claims}
        own = pod.owner.namespace or "default"
        if namespaces and own not in namespaces:
            yield Hit(
                pod.owner,
                path,
                f"claim {name} is in namespace {', '.join(sorted(namespaces))}, not in the pod's namespace {own}: pods "
                "only see claims of their own namespace",
            )
    yield from _templates(data)


def _templates(data: Input) -> Iterator[Hit]:
    namespaces: dict[str, set[str]] = {}
    for each in data.objects:
        if each.is_a("ResourceClaimTemplate"):
            namespaces.setdefault(each.name, set()).add(each.namespace or "default")
    for pod in data.pods:
        own = pod.owner.namespace or "default"
        for index, entry in enumerate(items(pod.value, "resourceClaims")):
            name = text(entry, "resourceClaimTemplateName")
            found = namespaces.get(name, {own})
            if own not in found:
                yield Hit(
                    pod.owner,
                    f"{pod.path}.resourceClaims[{index}].resourceClaimTemplateName",
                    f"template {name} is in namespace {', '.join(sorted(found))}, not in the pod's namespace {own}: "
                    "pods only see templates of their own namespace",
                )


def _generated(data: Input, _: Target) -> Iterator[Hit]:
    stems = {
        f"{pod.owner.name}-{text(entry, 'name')}-": pod.owner
        for pod in data.pods
        if pod.owner.kind == "Pod"
        for entry in items(pod.value, "resourceClaims")
        if text(entry, "resourceClaimTemplateName")
    }
    for pod, path, name, claims in _references(data, data.pods):
        own = pod.owner.namespace or "default"
        makers = [maker for claim in claims if (claim.namespace or "default") == own for maker in _makers(claim)]
        stem = stems.get(name[:-_SUFFIX])
        if stem is not None and (stem.namespace or "default") == own:
            makers.append(stem.name)
        others = sorted({maker for maker in makers if pod.owner.kind != "Pod" or maker != pod.owner.name})
        if others:
            yield Hit(
                pod.owner,
                path,
                f"claim {name} was generated for pod {others[0]} and is deleted with it: use a ResourceClaim of its "
                "own for what pods share, or a resourceClaimTemplateName",
            )


def _makers(claim: Object) -> list[str]:
    metadata: dict[str, Any] = mapping(claim.value, "metadata")
    owners = [text(owner, "name") for owner in items(metadata, "ownerReferences") if text(owner, "kind") == "Pod"]
    entry = text(metadata, "annotations", _POD_CLAIM_NAME)
    if not owners and entry:
        owners = [claim.name[:-_SUFFIX].removesuffix(f"-{entry}-")]
    return owners


RULES = (
    Rule("node-name", "a pod with claims and a nodeName bypasses the scheduler", _node_name),
    Rule("other-namespace", "a pod refers to a claim or template of another namespace", _namespaces),
    Rule("generated-claim", "a pod refers to a claim that was generated for another pod", _generated),
)
