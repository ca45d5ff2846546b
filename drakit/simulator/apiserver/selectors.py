"""Label and field selectors of list, watch and deletecollection."""

import re
from collections.abc import Callable
from typing import Any

from drakit.simulator.apiserver.errors import bad_request
from drakit.simulator.apiserver.resources import Kind

__all__ = ["Selector", "everything", "parse", "parse_fields", "parse_labels"]

Selector = Callable[[dict[str, Any]], bool]
"""Whether a stored object is selected."""

_FIELDS: dict[str, tuple[str, ...]] = {
    "ResourceSlice": ("spec.nodeName", "spec.driver"),
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase", "name"),
    "Secret": ("type",),
    "Event": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}
_SINCE_1_37: dict[str, tuple[str, ...]] = {"ResourceSlice": ("spec.pool.name",)}
_TOKEN = re.compile(r"\s*(==|!=|=|!|\(|\)|,|>|<|[^\s=!(),<>]+)")


def everything(_: dict[str, Any]) -> bool:
    """Select all."""
    return True


def parse(kind: Kind, version: str, cluster: str, labels: str, fields: str) -> Selector:
    """Both selectors in one; empty texts select everything.

    Raises:
        Refused: 400 for a malformed selector or a field that the kind does not offer in Kubernetes `cluster`.
    """
    chosen = [parse_labels(labels)] if labels else []
    if fields:
        chosen.append(parse_fields(kind, version, cluster, fields))
    if not chosen:
        return everything
    if len(chosen) == 1:
        return chosen[0]
    return lambda obj: all(select(obj) for select in chosen)


def parse_fields(kind: Kind, version: str, cluster: str, text: str) -> Selector:
    """`a.b=x,c.d!=y`; a missing field is the empty text, booleans are `true` and `false`."""
    known = {"metadata.name", *_FIELDS.get(kind.kind, ())}
    if kind.namespaced:
        known.add("metadata.namespace")
    if tuple(map(int, cluster.split("."))) >= (1, 37):
        known.update(_SINCE_1_37.get(kind.kind, ()))
    terms = [_field_term(term) for term in text.split(",") if term]
    for field, _, _ in terms:
        if field not in known:
            where = f"{kind.api_version(version)}, Kind={kind.kind}"
            raise bad_request(f"field label not supported for {where}: {field}")
    return lambda obj: all((_field(obj, path) == value) == equal for path, value, equal in terms)


def _field_term(term: str) -> tuple[str, str, bool]:
    for operator, equal in (("!=", False), ("==", True), ("=", True)):
        field, found, value = term.partition(operator)
        if found:
            return field, value, equal
    raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")


def _field(obj: dict[str, Any], path: str) -> str:
    if path == "source":
        path = "source.component"
    elif path == "name":
        path = "metadata.name"
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return "false" if path in {"spec.unschedulable", "spec.hostNetwork"} else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def parse_labels(text: str) -> Selector:
    """Equality and set-based requirements over metadata.labels."""
    tokens = _tokens(text)
    requirements: list[Callable[[dict[str, str]], bool]] = []
    position = 0
    while position < len(tokens):
        requirement, position = _requirement(tokens, position)
        requirements.append(requirement)
        if position < len(tokens):
            if tokens[position] != ",":
                raise bad_request(
                    f"unable to parse requirement: found '{tokens[position]}', expected: ',' or 'end of string'"
                )
            position += 1
            if position == len(tokens):
                raise bad_request("unable to parse requirement: found '', expected: identifier after ','")

    def select(obj: dict[str, Any]) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(matches(labels) for matches in requirements)

    return select


def _tokens(text: str) -> list[str]:
    tokens = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise bad_request(f"unable to parse requirement: found '{text[position:]}', expected: identifier")
        tokens.append(match.group(1))
        position = match.end()
    return tokens


_OPERATORS = frozenset({"=", "==", "!=", "!", "(", ")", ",", ">", "<"})


def _identifier(tokens: list[str], position: int) -> str:
    token = tokens[position] if position < len(tokens) else ""
    if not token or token in _OPERATORS:
        raise bad_request(f"unable to parse requirement: found '{token}', expected: identifier")
    return token


def _requirement(tokens: list[str], position: int) -> tuple[Callable[[dict[str, str]], bool], int]:
    if tokens[position] == "!":
        absent = _identifier(tokens, position + 1)
        return lambda labels: absent not in labels, position + 2
    key = _identifier(tokens, position)
    position += 1
    operator = tokens[position] if position < len(tokens) else ","
    if operator == ",":
        return lambda labels: key in labels, position
    if operator in {"=", "==", "!="}:
        value = ""
        following = tokens[position + 1] if position + 1 < len(tokens) else ","
        if following != ",":
            value = _identifier(tokens, position + 1)
            position += 1
        equal = operator != "!="
        return lambda labels: (labels.get(key) == value) == equal, position + 1
    if operator in {">", "<"}:
        return _comparison(key, operator, _identifier(tokens, position + 1)), position + 2
    if operator in {"in", "notin"}:
        values, position = _values(tokens, position + 1)
        if operator == "in":
            return lambda labels: labels.get(key) in values, position
        return lambda labels: labels.get(key) not in values, position
    expected = "in, notin, =, ==, !=, gt, lt"
    raise bad_request(f"unable to parse requirement: found '{operator}', expected: {expected}")


def _comparison(key: str, operator: str, text: str) -> Callable[[dict[str, str]], bool]:
    try:
        bound = int(text)
    except ValueError:
        raise bad_request(f"unable to parse requirement: found '{text}', expected: an integer") from None

    def matches(labels: dict[str, str]) -> bool:
        try:
            number = int(labels.get(key, ""))
        except ValueError:
            return False
        return number > bound if operator == ">" else number < bound

    return matches


def _values(tokens: list[str], position: int) -> tuple[frozenset[str], int]:
    if position >= len(tokens) or tokens[position] != "(":
        found = tokens[position] if position < len(tokens) else ""
        raise bad_request(f"unable to parse requirement: found '{found}', expected: '('")
    values: set[str] = set()
    position += 1
    while True:
        following = tokens[position] if position < len(tokens) else ""
        if following == ")":
            return frozenset(values or {""}), position + 1
        if following == ",":
            position += 1
            continue
        values.add(_identifier(tokens, position))
        position += 1
