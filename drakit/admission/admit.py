"""The entry points: `admit`, `convert`, `validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drakit.admission import authorization, decoding, defaulting, lifecycle, semantics
from drakit.admission.faults import Faults
from drakit.admission.policy import Policy, policy
from drakit.admission.request import Answer, Cause, Fault, Request
from drakit.admission.validation import claims, classes, metadata, poolstatus, slices, status, taints
from drakit.api import GROUP, conversion, fields

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["admit", "convert", "validate"]

Json = dict[str, Any]

_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")


class _Refused(Exception):  # noqa: N818  it carries an answer, which may be any error of HTTP
    """The request ends here with an answer."""

    def __init__(self, status: int, reason: str, message: str, faults: list[Fault] | None = None) -> None:
        super().__init__(message)
        causes = tuple(Cause(fault.reason, fault.path, fault.message) for fault in faults or ())
        self.answer = Answer(status=status, reason=reason, message=message, causes=causes)


def admit(request: Request, version: str = "1.37", gates: Collection[str] | None = None) -> Answer:
    """Answer one write as the API server of a minor version with these feature gates would.

    Args:
        request: The write.
        version: The minor version of Kubernetes, 1.32 to 1.37.
        gates: The feature gates that are on; by default those of that version.

    Raises:
        ValueError: drakit does not model that version.
    """
    server = policy(version, None if gates is None else frozenset(gates))
    warnings: list[str] = []
    try:
        kind = _kind(request, server)
        stored = _answer(request, kind, server, warnings)
    except _Refused as refused:
        answer = refused.answer
        return Answer(
            status=answer.status,
            reason=answer.reason,
            message=answer.message,
            causes=answer.causes,
            warnings=tuple(warnings),
        )
    return Answer(status=201 if request.verb == "create" else 200, stored=stored, warnings=tuple(warnings))


def _kind(request: Request, server: Policy) -> fields.Kind:
    """The kind behind the URL, when this server serves it."""
    try:
        kind = fields.kind_of(request.resource)
    except KeyError:
        kind = None
    since = kind.versions.get(request.version) if kind and request.group == GROUP else None
    gate = {"DeviceTaintRule": "DRADeviceTaintRules", "ResourcePoolStatusRequest": "DRAResourcePoolStatus"}
    if kind is None or since is None or not server.since(since) or not _gated(kind.name, gate, server):
        raise _Refused(404, "NotFound", "the server could not find the requested resource")
    if request.subresource not in ({"", "status"} if kind.status else {""}):
        raise _Refused(404, "NotFound", "the server could not find the requested resource")
    return kind


def _gated(kind: str, gates: dict[str, str], server: Policy) -> bool:
    gate = gates.get(kind)
    if gate is None:
        return True
    if kind == "DeviceTaintRule" and not server.since("1.35"):
        gate = "DRADeviceTaints"
    return server.on(gate)


def _answer(request: Request, kind: fields.Kind, server: Policy, warnings: list[str]) -> Json:
    if request.field_validation not in _FIELD_VALIDATION:
        _refuse_option(request)
    _warn_of_version(kind, request.version, server, warnings)
    obj = _decode(_parse(request, kind), request, kind, server, warnings)
    _check_identity(obj, request, kind)
    _single_owners(obj["metadata"], warnings)
    write = _create if request.verb == "create" else _update
    faults = write(obj, kind, request, server)
    if faults.found:
        raise _invalid(f"{kind.name}.{GROUP}", obj["metadata"].get("name", ""), faults.found)
    _warn(obj, kind.name, warnings)
    version = "v1" if "v1" in kind.versions else next(iter(kind.versions))
    return {"kind": kind.name, "apiVersion": f"{GROUP}/{version}", **semantics.tidy(_body(obj), kind.name)}


def _warn_of_version(kind: fields.Kind, version: str, server: Policy, warnings: list[str]) -> None:
    """Versions other than v1 are deprecated three minors after they came, and go after three more."""
    came = int(kind.versions[version].partition(".")[2])
    if version != "v1" and server.since(f"1.{came + 3}"):
        warnings.append(f"{GROUP}/{version} {kind.name} is deprecated in v1.{came + 3}+, unavailable in v1.{came + 6}+")


def _body(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if name not in {"kind", "apiVersion"}}


def _refuse_option(request: Request) -> None:
    faults = Faults()
    faults.unsupported("fieldValidation", request.field_validation, _FIELD_VALIDATION)
    options = "CreateOptions" if request.verb == "create" else "UpdateOptions"
    raise _invalid(f"{options}.meta.k8s.io", "", faults.found)


def _invalid(qualified_kind: str, name: str, found: list[Fault]) -> _Refused:
    texts = [f"{fault.path}: {fault.message}" for fault in found]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(dict.fromkeys(texts))}]"
    return _Refused(422, "Invalid", f'{qualified_kind} "{name}" is invalid: {listed}', found)


# Decoding


def _parse(request: Request, kind: fields.Kind) -> Any:
    try:
        return decoding.parse(request.body) if isinstance(request.body, bytes) else request.body
    except decoding.DecodingError as error:
        raise _unrecognized(kind, f"couldn't get version/kind; json parse error: {error}") from error


def _decode(parsed: Any, request: Request, kind: fields.Kind, server: Policy, warnings: list[str]) -> Json:
    """The object in v1 form, defaulted."""
    parsed = _check_type(parsed, request, kind)
    raw = request.body if isinstance(request.body, bytes) else None
    prefix = f'{kind.name} in version "{request.version}" cannot be handled as a {kind.name}'
    try:
        decoded, complaints = decoding.decode(parsed, kind.name, request.version, server.minor, raw)
    except decoding.DecodingError as error:
        raise _Refused(400, "BadRequest", f"{prefix}: {error}") from error
    if complaints and request.field_validation == "Strict":
        raise _Refused(400, "BadRequest", f"{prefix}: strict decoding error: {', '.join(complaints)}")
    if request.field_validation != "Ignore":
        warnings += complaints
    obj = conversion.to_v1(decoded, request.version)
    defaulting.default(obj, kind.name, request.version, request.now)
    return obj


def _unrecognized(kind: fields.Kind, detail: str) -> _Refused:
    message = f"the object provided is unrecognized (must be of type {kind.name}): {detail}"
    return _Refused(400, "BadRequest", message)


def _check_type(parsed: Any, request: Request, kind: fields.Kind) -> Json:
    """Compare apiVersion and kind with the URL; absent ones are the URL's, null is an empty object."""
    if parsed is None:
        parsed = {}
    if not isinstance(parsed, dict):
        raise _unrecognized(kind, "couldn't get version/kind; json parse error: json: cannot unmarshal")
    expected = f"{GROUP}/{request.version}"
    sent, name = parsed.get("apiVersion") or expected, parsed.get("kind") or kind.name
    if not isinstance(sent, str) or not isinstance(name, str):
        raise _unrecognized(kind, "couldn't get version/kind; json parse error: json: cannot unmarshal")
    if sent.count("/") > 1:
        raise _unrecognized(kind, f"unexpected GroupVersion string: {sent}")
    if name != kind.name or not _served(sent, kind.name):
        version = sent.rpartition("/")[2]
        raise _Refused(
            400,
            "BadRequest",
            f'{name} in version "{version}" cannot be handled as a {kind.name}: no kind "{name}" is registered for '
            f'version "{sent}"',
        )
    if sent != expected:
        raise _Refused(
            400,
            "BadRequest",
            f"the API version in the data ({sent}) does not match the expected API version ({expected})",
        )
    return parsed


def _served(api_version: str, kind: str) -> bool:
    group, _, version = api_version.rpartition("/")
    return group == GROUP and version in fields.TABLES and kind in fields.TABLES[version]


def _check_identity(obj: Json, request: Request, kind: fields.Kind) -> None:
    meta = obj["metadata"]
    if not kind.namespaced:
        meta.pop("namespace", None)
    elif meta.get("namespace") and meta["namespace"] != request.namespace:
        raise _Refused(
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        )
    if request.verb == "create":
        if meta.get("resourceVersion") and not request.dry_run:
            raise _Refused(500, "InternalError", "resourceVersion should not be set on objects to be created")
        return
    if meta.get("name", "") != request.name:
        sent = meta.get("name", "")
        message = f"the name of the object ({sent}) does not match the name on the URL ({request.name})"
        if not sent:
            message = "name must be provided"
        raise _Refused(400, "BadRequest", message)


# Create and update


def _create(obj: Json, kind: fields.Kind, request: Request, server: Policy) -> Faults:
    lifecycle.prepare_create(obj, kind.name, request, server, namespaced=kind.namespaced)
    faults = Faults()
    _admin_access(faults, obj, kind.name, request, server)
    metadata.created(faults, obj["metadata"], namespaced=kind.namespaced)
    _validate_spec(faults, obj, None, kind.name, server)
    return faults


def _admin_access(faults: Faults, obj: Json, kind: str, request: Request, server: Policy) -> None:
    """Checked when claims and templates are created, in templates at the path of a claim."""
    if kind == "ResourceClaim":
        claims.admin_access(faults, obj["spec"]["devices"], request.namespace_labels, server)
    elif kind == "ResourceClaimTemplate":
        claims.admin_access(faults, obj["spec"]["spec"]["devices"], request.namespace_labels, server)


def _update(obj: Json, kind: fields.Kind, request: Request, server: Policy) -> Faults:
    if request.stored is None:
        message = f'{kind.plural}.{GROUP} "{request.name}" not found'
        raise _Refused(404, "NotFound", message)
    old = _stored(request.stored, kind.name, server)
    faults = Faults()
    _check_preconditions(faults, obj["metadata"], old["metadata"], kind, request)
    if request.subresource == "status":
        lifecycle.prepare_status_update(obj, old, kind.name, server)
        metadata.updated(faults, obj["metadata"], old["metadata"])
        _validate_status(faults, obj, old, request, server)
        return faults
    lifecycle.prepare_update(obj, old, kind.name, server, request.now)
    metadata.updated(faults, obj["metadata"], old["metadata"])  # the server's generic half; kinds do it again
    _validate_update(faults, obj, old, kind, server)
    return faults


def _stored(stored: Json, kind: str, server: Policy) -> Json:
    """A stored object in decoded form: with the members that are always there."""
    version = "v1" if kind in fields.TABLES["v1"] else "v1alpha3"
    decoded, _ = decoding.decode(stored, kind, version, server.minor)
    return decoded


def _check_preconditions(faults: Faults, meta: Json, old: Json, kind: fields.Kind, request: Request) -> None:
    sent = meta.get("resourceVersion", "")
    conflict = f'Operation cannot be fulfilled on {kind.plural}.{GROUP} "{request.name}"'
    if sent and not (sent.isascii() and sent.isdigit()):
        raise _Refused(500, "", f'strconv.ParseUint: parsing "{sent}": invalid syntax')
    if meta.get("uid") and meta["uid"] != old.get("uid", ""):
        raise _Refused(
            409,
            "Conflict",
            f"{conflict}: Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: "
            f"{old.get('uid', '')}",
        )
    if sent.strip("0") and sent != old.get("resourceVersion", ""):
        raise _Refused(
            409,
            "Conflict",
            f"{conflict}: the object has been modified; please apply your changes to the latest version and try again",
        )
    if kind.name == "ResourcePoolStatusRequest" and not sent:
        faults.invalid("metadata.resourceVersion", 0, "must be specified for an update")


def _validate_update(faults: Faults, obj: Json, old: Json, kind: fields.Kind, server: Policy) -> None:
    meta = obj["metadata"]
    if kind.name in {"ResourceClaim", "DeviceClass"}:
        metadata.created(faults, meta, namespaced=kind.namespaced)
    metadata.updated(faults, meta, old["metadata"])
    _validate_spec(faults, obj, old, kind.name, server)


def _validate_spec(faults: Faults, obj: Json, old: Json | None, kind: str, server: Policy) -> None:
    spec = obj["spec"]
    before = old["spec"] if old else None
    if kind == "ResourceSlice":
        slices.resource_slice(faults, spec, before, server)
    elif kind == "DeviceClass":
        classes.device_class(faults, spec, before, server)
    elif kind == "DeviceTaintRule":
        taints.rule(faults, spec, before, server)
    elif kind == "ResourcePoolStatusRequest":
        poolstatus.request(faults, spec, before)
    elif before is not None:
        _claim_update(faults, spec, before, kind, server)
    elif kind == "ResourceClaim":
        claims.claim(faults, "spec", spec, server)
    else:
        metadata.template(faults, spec["metadata"], "spec.metadata")
        claims.claim(faults, "spec.spec", spec["spec"], server)


def _claim_update(faults: Faults, spec: Json, before: Json, kind: str, server: Policy) -> None:
    """Specs of claims and templates are immutable; templates up to 1.36 are checked all the same."""
    if kind == "ResourceClaimTemplate" and not server.since("1.37"):
        metadata.template(faults, spec["metadata"], "spec.metadata")
        claims.claim(faults, "spec.spec", spec["spec"], server)
    if not semantics.equal(spec, before, f"{kind}Spec"):
        faults.invalid("spec", semantics.plain(spec), "field is immutable")


def _validate_status(faults: Faults, obj: Json, old: Json, request: Request, server: Policy) -> None:
    kind = fields.kind_of(request.resource).name
    if kind == "ResourceClaim":
        authorization.status_update(faults, obj, old, request.user, server)
        status.admin_access(faults, obj, old, request.namespace_labels, server)
        metadata.updated(faults, obj["metadata"], old["metadata"])
        status.claim_status(faults, obj, old, server)
    elif kind == "DeviceTaintRule":
        metadata.updated(faults, obj["metadata"], old["metadata"])
        taints.rule_status(faults, obj["status"])
    else:
        metadata.updated(faults, obj["metadata"], old["metadata"])
        poolstatus.request_status(faults, obj.get("status"), old.get("status"))


def _warn(obj: Json, kind: str, warnings: list[str]) -> None:
    if kind == "ResourceSlice":
        driver = obj["spec"]["driver"]
        if driver != driver.lower():
            warnings.append(f'spec.driver: driver names should be lowercase; "{driver}" contains uppercase characters')


def _single_owners(meta: Json, warnings: list[str]) -> None:
    """Owners count once."""
    owners = meta.get("ownerReferences") or []
    uids = [owner["uid"] for owner in owners]
    repeated = sorted({uid for uid in uids if uids.count(uid) > 1})
    if not repeated:
        return
    meta["ownerReferences"] = [owner for index, owner in enumerate(owners) if owner not in owners[:index]]
    warnings.append(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
        "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        + ", ".join(repeated)
    )


# Views


def convert(obj: Json, version: str) -> Json:
    """Show a stored object in a served version, as a GET would: raw parameters compact, nothing shared with `obj`."""
    body = conversion.from_v1({"kind": obj["kind"], **_body(obj)}, version)
    shown = semantics.fill(semantics.plain(body), obj["kind"], version)
    return {**shown, "kind": obj["kind"], "apiVersion": f"{GROUP}/{version}"}


def validate(obj: bytes | Json, version: str = "1.37", gates: Collection[str] | None = None) -> list[Fault]:
    """Every fault that a server would find when the object (of any served version) is created, in its order.

    The namespace is taken to permit adminAccess. A body that the server would not even decode gives one fault with the
    reason BadRequest and an empty path.

    Raises:
        ValueError: drakit does not model that version of Kubernetes.
    """
    parsed = obj
    if isinstance(obj, bytes):
        try:
            parsed = decoding.parse(obj)
        except decoding.DecodingError as error:
            return [Fault("", "BadRequest", str(error))]
    members = parsed if isinstance(parsed, dict) else {}
    kind = fields.KINDS.get(str(members.get("kind")))
    api_version = str(members.get("apiVersion", ""))
    if kind is None or not api_version.startswith(f"{GROUP}/"):
        return [Fault("", "BadRequest", f"no kind {members.get('kind')!r} in version {api_version!r}")]
    server = policy(version, None if gates is None else frozenset(gates))
    meta = members.get("metadata")
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    request = Request(
        verb="create",
        resource=kind.plural,
        version=api_version.rpartition("/")[2],
        body=obj,
        namespace=(namespace if isinstance(namespace, str) and namespace else "default") if kind.namespaced else "",
        namespace_labels={server.admin_access_label: "true"},
        dry_run=True,
    )
    try:
        _kind(request, server)
        decoded = _decode(parsed, request, kind, server, [])
        _check_identity(decoded, request, kind)
        return _create(decoded, kind, request, server).found
    except _Refused as refused:
        answer = refused.answer
        return [Fault("", answer.reason, answer.message)]
