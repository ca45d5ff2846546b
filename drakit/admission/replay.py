"""Replays recorded cases: one JSON object a line in, one answer a line out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from drakit.admission import semantics
from drakit.admission.admit import admit, convert
from drakit.admission.decoding import decode
from drakit.admission.profiles import profile
from drakit.admission.request import Request
from drakit.api import GROUP, conversion, fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drakit.admission.authorization import User
    from drakit.admission.request import Answer

__all__ = ["answer", "answer_line", "cases", "gates_of", "request_of"]

Json = dict[str, Any]

_MINOR: Final = "1.36"
_NOW: Final = "2026-11-29T13:00:00Z"
_SUFFIX: Final = "x7b2q"
_ADMIN: Final = {"resource.kubernetes.io/admin-access": "true"}


def cases(path: str) -> Iterator[Json]:
    """The cases of a file, which may be gzipped.

    Raises:
        OSError: It cannot be read.
        ValueError: A line is no JSON object.
    """
    file = Path(path)
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def gates_of(case: Json) -> frozenset[str]:
    """The gates of a case: all, unless it says otherwise (`off`, `default`, `no-<gate>`)."""
    named = case.get("gates", "")
    everything = profile(_MINOR, all_gates=True)
    if named == "off":
        return frozenset()
    if named == "default":
        return profile(_MINOR)
    return everything - {named.removeprefix("no-")}


def request_of(case: Json, user: User | None = None) -> Request:
    """The write of a case. The recorded server ran it dry, in namespaces of which `rec-adm` permits adminAccess."""
    kind = fields.KINDS[case["kind"]]
    raw = case.get("raw")
    body = (
        raw.encode()
        if isinstance(raw, str)
        else json.dumps(case["object"], separators=(",", ":"), ensure_ascii=False).encode()
    )
    base = case.get("base")
    return Request(
        verb=case["verb"],
        group=case["group"],
        version=case["version"],
        resource=kind.plural,
        subresource=case["subresource"],
        namespace=case["namespace"],
        name=base["metadata"]["name"] if base else "",
        body=body,
        stored=_stored(base) if base else None,
        field_validation=case.get("query", "").removeprefix("fieldValidation="),
        namespace_labels=_ADMIN if case["namespace"] == "rec-adm" else {},
        now=_NOW,
        suffix=_SUFFIX,
        user=user,
        dry_run=True,
    )


def _stored(base: Json) -> Json:
    """A recorded object, in whatever version it was shown, in storage form."""
    version = base["apiVersion"].rpartition("/")[2]
    decoded, _ = decode(base, base["kind"], version, _MINOR)
    body = semantics.tidy(conversion.to_v1(decoded, version), base["kind"])
    return {**body, "kind": base["kind"], "apiVersion": f"{GROUP}/v1"}


def answer(case: Json, user: User | None = None) -> Answer:
    """What drakit answers to a case."""
    return admit(request_of(case, user), _MINOR, gates_of(case))


def answer_line(case: Json, user: User | None = None) -> Json:
    """The answer to a case in the form of the vectors, with server-made values hidden as there."""
    given = answer(case, user)
    stored = given.stored and _hidden(convert(given.stored, case["version"]))
    return {
        "id": case["id"],
        "status": given.status,
        "causes": [{"reason": cause.reason, "field": cause.field} for cause in given.causes],
        "stored": stored,
        "warnings": list(given.warnings),
    }


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _hidden(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    if value == _NOW:
        return "<NOW>"
    return value.replace(_SUFFIX, "<RND5>") if isinstance(value, str) else value
