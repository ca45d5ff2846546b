"""Warnings on ResourceClaims and their templates."""

import re
from collections.abc import Iterator
from typing import Any

from drakit.api import limits
from drakit.lint.objects import ADMIN_LABEL, Input, Object, Request, claim_spec, items, mapping, requests, text
from drakit.lint.rules.rule import Hit, Rule, Target

__all__ = ["RULES"]

_BLANKS = re.compile(r'"(?:[^"\\]|\\.)*"|(\s)')


def _too_large(data: Input, _: Target) -> Iterator[Hit]:
    for claim in data.claims:
        base, devices = claim_spec(claim)
        total = sum(_smallest(mapping(request)) for request in items(devices, "requests"))
        if total > limits.ALLOCATION_RESULTS:
            yield Hit(
                claim,
                f"{base}.requests",
                f"asks for at least {total} devices; a claim gets at most {limits.ALLOCATION_RESULTS}, so this is "
                "never allocated: split it into several claims",
            )


def _smallest(request: dict[str, Any]) -> int:
    alternatives = items(request, "firstAvailable")
    if alternatives:
        return min(_count(mapping(each)) for each in alternatives)
    return _count(mapping(request, "exactly") or request)


def _count(body: dict[str, Any]) -> int:
    count = body.get("count")
    return count if isinstance(count, int) and count > 0 and body.get("allocationMode", "ExactCount") != "All" else 1


def _eviction(data: Input, _: Target) -> Iterator[Hit]:
    for claim in data.claims:
        for request in requests(claim):
            tolerations = [mapping(each) for each in items(request.body, "tolerations")]
            for index, toleration in enumerate(tolerations):
                if not toleration.get("effect") and not any(_protects(other, toleration) for other in tolerations):
                    yield Hit(
                        claim,
                        f"{request.path}.tolerations[{index}]",
                        "without effect this lets tainted devices be allocated, but does not stop the eviction of "
                        "pods by NoExecute taints: add the same toleration with effect: NoExecute",
                    )


def _protects(other: dict[str, Any], toleration: dict[str, Any]) -> bool:
    return other.get("effect") == "NoExecute" and (
        not other.get("key")
        or (
            other.get("key") == toleration.get("key")
            and (other.get("operator") == "Exists" or other.get("value") == toleration.get("value"))
        )
    )


def _admin_access(data: Input, _: Target) -> Iterator[Hit]:
    for claim in data.claims:
        labels = data.namespace_labels(claim.namespace)
        for request in requests(claim):
            if request.body.get("adminAccess") is True and labels is None:
                yield Hit(
                    claim,
                    f"{request.path}.adminAccess",
                    f'is refused unless namespace {claim.namespace or "default"} has the label {ADMIN_LABEL}: "true"; '
                    "add the Namespace to the input to have it checked",
                )


def _derived(data: Input, _: Target) -> Iterator[Hit]:
    for claim in data.claims:
        devices = claim_spec(claim)[1]
        for request in requests(claim):
            for index, derived in enumerate(items(request.body, "derivedAttributes")):
                name = text(derived, "name")
                if not any(name in used for used in _constrained(devices, request)):
                    yield Hit(
                        claim,
                        f"{request.path}.derivedAttributes[{index}]",
                        f"no constraint over request {request.name} matches or distinguishes {name}: selectors "
                        "cannot see derived attributes, so this has no effect and is refused",
                    )


def _constrained(devices: dict[str, Any], request: Request) -> Iterator[tuple[str, str]]:
    for constraint in items(devices, "constraints"):
        over = items(constraint, "requests")
        if not over or request.name in over or request.name.partition("/")[0] in over:
            yield text(constraint, "matchAttribute"), text(constraint, "distinctAttribute")


def _constraint_attributes(data: Input, _: Target) -> Iterator[Hit]:
    published = {
        name if "/" in name else f"{driver}/{name}"
        for _slice, _path, driver, device in data.devices
        for name in mapping(device, "attributes")
    }
    for claim in data.claims if data.slices else ():
        base, devices = claim_spec(claim)
        derived = {
            text(each, "name") for request in requests(claim) for each in items(request.body, "derivedAttributes")
        }
        for index, constraint in enumerate(items(devices, "constraints")):
            for field in ("matchAttribute", "distinctAttribute"):
                name = text(constraint, field)
                if name and name not in published and name not in derived:
                    yield Hit(
                        claim,
                        f"{base}.constraints[{index}].{field}",
                        f"no device in the input has attribute {name}: with these slices the claim is never allocated",
                    )


def _blanks(data: Input, _: Target) -> Iterator[Hit]:
    for claim in data.claims:
        base, devices = claim_spec(claim)
        configs = items(devices, "config")
        # What has a resourceVersion came from a server: get -o json prints blanks that are not stored.
        if configs and not text(claim.value, "metadata", "resourceVersion") and claim.document.is_json:
            for index in range(len(configs)):
                yield from _blanks_in(claim, f"{base}.config[{index}].opaque.parameters")


def _blanks_in(claim: Object, path: str) -> Iterator[Hit]:
    if any(found[1] for found in _BLANKS.finditer(claim.text(path))):
        yield Hit(
            claim,
            path,
            "has blanks: a server keeps these bytes and compares them, so that an object sent as it stands here can "
            "never be changed again (kubectl sends compact JSON, json.dumps and curl do not): write it without blanks",
        )


RULES = (
    Rule("claim-too-large", "a claim that asks for more than 32 devices is never allocated", _too_large),
    Rule("toleration-eviction", "a toleration allows allocation but does not stop eviction", _eviction),
    Rule("admin-access", "adminAccess needs a label on the namespace", _admin_access),
    Rule("unused-derived-attribute", "a derived attribute that no constraint uses", _derived),
    Rule(
        "constraint-attribute", "a constraint over an attribute that no device in the input has", _constraint_attributes
    ),
    Rule("parameters-blanks", "blanks in opaque parameters of a JSON file make a claim immutable", _blanks),
)
