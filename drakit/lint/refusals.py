"""What the API server would say to an object: refusals, unknown fields, fields that it drops."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from drakit import admission
from drakit.api import fields
from drakit.lint.objects import ADMIN_LABEL, Input, Object, mapping
from drakit.lint.rules.rule import Target

__all__ = ["Refusal", "refusals"]

_UNKNOWN = re.compile(r'unknown field "(.+)"')
_REPEATED = re.compile(r'duplicate field "(.+)"')
_WARNED = re.compile(r"((?:spec|metadata)\S*): ")
_FIELD = re.compile(r"Go struct field (\S+) of type")
_SUGGESTION = "kubectl refuses it; other clients are only warned, and the field is dropped"


class Refusal(NamedTuple):
    """What is refused, or accepted with a warning of the server's own."""

    rule: str
    path: str
    message: str
    error: bool = True


def refusals(each: Object, data: Input, cluster: Target) -> Iterator[Refusal]:
    """What a server of `cluster` says when `each` is created."""
    kind = fields.KINDS.get(each.kind)
    if kind is not None and not each.dra:
        yield Refusal(
            "unknown-kind", "apiVersion", f"{each.kind} is in resource.k8s.io/v1, not in {each.api_version!r}"
        )
        return
    if kind is None:
        yield Refusal("unknown-kind", "kind", f"resource.k8s.io has no kind {each.kind!r}")
        return
    since = kind.versions.get(each.version)
    if since is None or since > cluster.version:
        known = ", ".join(f"{version} since {minor}" for version, minor in kind.versions.items())
        message = f"Kubernetes {cluster.version} does not serve {each.kind} in {each.version!r} (served: {known})"
        yield Refusal("not-served", "apiVersion", message)
        return
    answer = admission.admit(_request(each, kind, data), cluster.version, cluster.gates)
    yield from _warnings(answer.warnings)
    for cause in answer.causes:
        yield Refusal("refused", cause.field, cause.message)
    if not answer.allowed and not answer.causes:
        field = _FIELD.search(answer.message)
        yield Refusal("refused", field[1] if field else "", answer.message)
    if answer.stored is not None:
        unknown = {found[1] for text in answer.warnings if (found := _UNKNOWN.search(text))}
        yield from _dropped(each, answer.stored, unknown, cluster)


def _request(each: Object, kind: fields.Kind, data: Input) -> admission.Request:
    body = dict(each.value)
    metadata = {key: value for key, value in mapping(body, "metadata").items() if key != "resourceVersion"}
    if isinstance(body.get("metadata"), dict):
        body["metadata"] = metadata
    labels = data.namespace_labels(each.namespace)
    return admission.Request(
        verb="create",
        resource=kind.plural,
        version=each.version,
        body=body,
        namespace=(each.namespace or "default") if kind.namespaced else "",
        field_validation="Warn",
        # A namespace that is not in the input gets the benefit of the doubt: rule admin-access speaks of it.
        namespace_labels={ADMIN_LABEL: "true", "resource.k8s.io/admin-access": "true"} if labels is None else labels,
    )


def _warnings(texts: tuple[str, ...]) -> Iterator[Refusal]:
    for text in texts:
        unknown, repeated = _UNKNOWN.search(text), _REPEATED.search(text)
        if unknown:
            yield Refusal("unknown-field", unknown[1], f"unknown field: {_SUGGESTION}")
        elif repeated:
            yield Refusal("repeated-key", repeated[1], "stands twice; the last one counts")
        elif "deprecated" not in text:  # rule deprecated-version says it better
            field = _WARNED.match(text)
            yield Refusal("server-warning", field[1] if field else "", text[field.end() if field else 0 :], error=False)


def _dropped(each: Object, stored: dict[str, Any], unknown: set[str], cluster: Target) -> Iterator[Refusal]:
    kept = admission.convert(stored, each.version)
    for path, gate in _missing(
        mapping(each.value, "spec"), mapping(kept, "spec"), "spec", _table(each, "spec"), each.version
    ):
        if path not in unknown:
            why = f"feature gate {gate} is off" if gate else f"Kubernetes {cluster.version} does not keep it"
            yield Refusal("dropped-field", path, f"the server drops this field without a word: {why}", error=False)


def _table(each: Object, name: str) -> str:
    return next((field.type.name for field in fields.table(each.kind, each.version) if field.name == name), "")


def _missing(sent: Any, kept: Any, path: str, table: str, version: str) -> Iterator[tuple[str, str]]:
    """The paths of what was sent and is not kept, with the gates of their fields."""
    if isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for index, (each, other) in enumerate(zip(sent, kept, strict=True)):
            yield from _missing(each, other, f"{path}[{index}]", table, version)
    elif isinstance(sent, dict) and isinstance(kept, dict):
        known = {field.name: field for field in fields.TABLES[version].get(table, ())}
        for key, value in sent.items():
            field = known.get(key)
            if value in (None, [], {}, "", False) or (field is not None and field.raw):
                continue
            inner = field.type.name if field is not None else table
            if key in kept:
                yield from _missing(value, kept[key], f"{path}.{key}", inner, version)
            else:
                yield f"{path}.{key}", field.gate if field is not None else ""
