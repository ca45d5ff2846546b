"""Where the fake API server asks `drakit.admission`: the only place. Other kinds go through `plain`."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from drakit import admission
from drakit.simulator.apiserver import plain
from drakit.simulator.apiserver.errors import Refused, bad_request, invalid
from drakit.simulator.apiserver.paths import Target
from drakit.simulator.apiserver.resources import RESOURCE, Kind
from drakit.simulator.apiserver.schema import shape_of

__all__ = ["Circumstances", "Gatekeeper", "Verdict", "decode"]


class Circumstances(msgspec.Struct, frozen=True):
    """What the server knows beside the body.

    Labels of the namespace, its time, the suffix of a generated name; the user where not everybody may do everything.
    """

    field_validation: str = ""
    dry_run: bool = False
    user: admission.User | None = None
    namespace_labels: Mapping[str, str] | None = None
    now: str = ""
    suffix: str = "aaaaa"


class Verdict(msgspec.Struct, frozen=True):
    """What admission says of one request: the object in storage form, or why it is refused."""

    object: dict[str, Any] | None
    refusal: Refused | None = None
    warnings: tuple[str, ...] = ()


class Gatekeeper:
    """Admission for one Kubernetes version and set of feature gates."""

    def __init__(self, version: str, gates: Collection[str] | None = None) -> None:
        """Answer as a server of `version` does; `gates` None are those that are on by default."""
        self.version = version
        self.gates = gates

    def ask(
        self, verb: str, target: Target, body: bytes, stored: dict[str, Any] | None, circumstances: Circumstances
    ) -> Verdict:
        """Decode, default, prune and validate `body` against the `stored` object, if there is one."""
        if target.kind.group == RESOURCE:
            return self._ask_admission(verb, target, body, stored, circumstances)
        try:
            shape = shape_of(target.kind, target.version, self.version)
            return Verdict(plain.admit(target, decode(target.kind, body), stored, shape))
        except Refused as refusal:
            return Verdict(None, refusal)

    def _ask_admission(
        self, verb: str, target: Target, body: bytes, stored: dict[str, Any] | None, circumstances: Circumstances
    ) -> Verdict:
        request = admission.Request(
            verb=verb,
            resource=target.kind.plural,
            version=target.version,
            body=body,
            subresource=target.subresource or "",
            namespace=target.namespace or "",
            name=target.name or "",
            stored=stored,
            field_validation=circumstances.field_validation,
            namespace_labels=circumstances.namespace_labels,
            now=circumstances.now,
            suffix=circumstances.suffix,
            user=circumstances.user,
            dry_run=circumstances.dry_run,
        )
        answer = admission.admit(request, self.version, self.gates)
        if answer.allowed:
            return Verdict(answer.stored, None, answer.warnings)
        return Verdict(None, _refusal(target, answer), answer.warnings)

    def convert(self, kind: Kind, obj: dict[str, Any], version: str) -> dict[str, Any]:
        """A stored object in the form of `version`."""
        if kind.group == RESOURCE:
            return admission.convert(obj, version)
        return {**obj, "apiVersion": kind.api_version(version)}


def _refusal(target: Target, answer: admission.Answer) -> Refused:
    if not answer.causes:
        refusal = Refused(answer.status, answer.reason, answer.message)
    else:
        name = target.name or _named(answer.message)
        causes = [(cause.reason, cause.field, cause.message) for cause in answer.causes]
        refusal = invalid(target.kind.group, target.kind.kind, name, causes)
        refusal.status = answer.status
    refusal.warnings = answer.warnings
    return refusal


def _named(message: str) -> str:
    """The object's name in `Kind.group "name" is invalid: ...`."""
    head = message.partition(" is invalid")[0]
    return head.partition(' "')[2].removesuffix('"')


def decode(kind: Kind, body: bytes) -> dict[str, Any]:
    """The body as a JSON object; `null` is an empty one.

    Raises:
        Refused: 400.
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise bad_request(_unrecognized(kind, _go_words(str(fault)), body)) from fault
    if value is not None and not isinstance(value, dict):
        raise bad_request(_unrecognized(kind, "json: cannot unmarshal into Go value of type struct", body))
    return value or {}


def _unrecognized(kind: Kind, why: str, body: bytes) -> str:
    subject = f"the object provided is unrecognized (must be of type {kind.kind}): couldn't get version/kind"
    return f"{subject}; json parse error: {why} ({body[:16].decode('utf-8', 'replace')})"


def _go_words(fault: str) -> str:
    return "unexpected end of JSON input" if "truncated" in fault else fault
