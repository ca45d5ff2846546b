"""Refusals of the API server as Status objects, in the wording that clients see (spec/apiserver.md, recorded)."""

from collections.abc import Iterable
from typing import Any

from drakit.simulator.apiserver.resources import Kind

__all__ = [
    "Refused",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "forbidden",
    "internal",
    "invalid",
    "invalid_options",
    "method_not_allowed",
    "no_such_path",
    "not_acceptable",
    "not_found",
    "unauthorized",
    "unsupported_media_type",
]


class Refused(Exception):  # noqa: N818  (the server's word, not a fault of the program)
    """A request that is answered with a Status of kind Failure."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        """Keep the parts of the Status; `details` None leaves the field out."""
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata or {}
        self.retry_after = retry_after
        self.warnings: tuple[str, ...] = ()

    def body(self) -> dict[str, Any]:
        """The Status object."""
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        details = self.details
        if self.retry_after is not None:
            details = {**(details or {}), "retryAfterSeconds": self.retry_after}
        if details is not None:
            body["details"] = details
        body["code"] = self.status
        return body


def _details(kind: Kind, name: str, *, of_kind: bool = False) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.kind if of_kind else kind.plural
    return details


def not_found(kind: Kind, name: str) -> Refused:
    """404: no object of that name."""
    return Refused(404, "NotFound", f'{kind.qualified} "{name}" not found', details=_details(kind, name))


def already_exists(kind: Kind, name: str) -> Refused:
    """409: the name is taken."""
    return Refused(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', details=_details(kind, name))


def conflict(kind: Kind, name: str, why: str | None = None, *, of_kind: bool = False) -> Refused:
    """409: the object is not as the request expects it."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    subject = kind.qualified_kind if of_kind else kind.qualified
    message = f'Operation cannot be fulfilled on {subject} "{name}": {why}'
    return Refused(409, "Conflict", message, details=_details(kind, name, of_kind=of_kind))


def forbidden(kind: Kind, name: str, why: str) -> Refused:
    """403, by the authorizer or by namespace lifecycle."""
    subject = f'{kind.qualified} "{name}"' if name else kind.qualified
    return Refused(403, "Forbidden", f"{subject} is forbidden: {why}", details=_details(kind, name))


def invalid(group: str, kind: str, name: str, causes: Iterable[tuple[str, str, str]]) -> Refused:
    """422 with causes (reason, field, message); the message tells each text once."""
    listed = list(causes)
    texts = list(dict.fromkeys(f"{field}: {message}" for _, field, message in listed))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    subject = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [{"reason": reason, "message": message, "field": field} for reason, field, message in listed]
    return Refused(422, "Invalid", f'{subject} "{name}" is invalid: {text}', details=details)


def invalid_options(kind: str, reason: str, field: str, message: str) -> Refused:
    """422 on the options of a request (CreateOptions, ListOptions, ...)."""
    return invalid("meta.k8s.io", kind, "", [(reason, field, message)])


def bad_request(message: str) -> Refused:
    """400."""
    return Refused(400, "BadRequest", message)


def expired(message: str, *, continuation: str | None = None) -> Refused:
    """410: the history that was asked for is compacted."""
    metadata = {"continue": continuation} if continuation else None
    return Refused(410, "Expired", message, metadata=metadata)


def internal(message: str) -> Refused:
    """500 without a reason, as the server answers what it did not foresee."""
    return Refused(500, "", message)


def no_such_path() -> Refused:
    """404: nothing is served at this path."""
    return Refused(404, "NotFound", "the server could not find the requested resource", details={})


def method_not_allowed() -> Refused:
    """405: the path exists, the method does not."""
    return Refused(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={}
    )


def unauthorized() -> Refused:
    """401: no or unknown credentials."""
    return Refused(401, "Unauthorized", "Unauthorized")


def not_acceptable() -> Refused:
    """406: none of the accepted media types is served."""
    known = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    return Refused(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {known}", details={})


def unsupported_media_type(*, patch: bool = False) -> Refused:
    """415: the body's media type is not read here."""
    if patch:
        return Refused(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    known = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    message = f"the body of the request was in an unknown format - accepted media types include: {known}"
    return Refused(415, "UnsupportedMediaType", message)
