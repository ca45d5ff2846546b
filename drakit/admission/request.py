"""What goes into admission and what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drakit.admission.authorization import User

__all__ = ["Answer", "Cause", "Fault", "Request"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One write as it arrives at the API server, with what the server would look up to answer it.

    Attributes:
        verb: `create` or `update` (a patch is an update with the patched body).
        resource: The plural, such as `resourceslices`.
        version: The version of the URL.
        body: The JSON as sent. Bytes, where duplicate keys and blanks in parameters matter.
        group: The API group.
        subresource: Empty or `status`.
        namespace: The namespace of the URL, empty for cluster-scoped resources.
        name: The name of the URL, empty on create.
        stored: The object before an update, in storage form (see `Answer.stored`).
        field_validation: The query parameter: `Strict`, `Warn` or `Ignore`.
        namespace_labels: Labels of the namespace (they may permit adminAccess); None when it cannot be read.
        now: The server's time, RFC 3339 in UTC with whole seconds.
        suffix: What the server appends to `generateName`.
        user: Who writes, where the status of claims is concerned; None may do everything.
        dry_run: Nothing is stored; a resourceVersion on create is then no error.
    """

    verb: str
    resource: str
    version: str
    body: bytes | dict[str, Any]
    group: str = "resource.k8s.io"
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    stored: dict[str, Any] | None = None
    field_validation: str = ""
    namespace_labels: Mapping[str, str] | None = {}
    now: str = "1970-01-01T00:00:00Z"
    suffix: str = "aaaaa"
    user: User | None = None
    dry_run: bool = False


class Cause(msgspec.Struct, frozen=True):
    """One entry of `details.causes` of a Status."""

    reason: str
    field: str
    message: str


class Fault(msgspec.Struct, frozen=True):
    """One validation error. `reason` is the API's, such as FieldValueRequired; `path` is a JSON path without a root."""

    path: str
    reason: str
    message: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the API server would answer.

    Attributes:
        status: The HTTP status.
        reason: The reason of the Status, empty on success.
        message: The message of the Status, empty on success.
        causes: The causes of the Status, in the server's order.
        stored: The object to keep: a v1 object with apiVersion and kind, defaulted and pruned, without uid,
            resourceVersion and creationTimestamp on create (storage adds them). Opaque parameters that were not sent
            as compact JSON are `msgspec.Raw`, because their bytes count on the next update; show objects through
            `convert`. None when refused.
        warnings: The texts of the Warning headers.
    """

    status: int
    reason: str = ""
    message: str = ""
    causes: tuple[Cause, ...] = ()
    stored: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the write takes place."""
        return self.status < 400
