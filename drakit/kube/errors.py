"""What can go wrong between a client and the API server, by whose fault it is.

`ApiError` carries the fields of the Status the server sent. Two subclasses have no answer behind them: `Unreachable`
(the request never left, so any method may be repeated) and `Unanswered` (it left and may have been executed: a write
has to be read back before it is repeated).
"""
# ruff: noqa: N818 - named like the reasons of a Status

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

__all__ = [
    "ApiError",
    "Cause",
    "Conflict",
    "CredentialsError",
    "Forbidden",
    "Gone",
    "Invalid",
    "NotFound",
    "NotServed",
    "ServerError",
    "TooManyRequests",
    "Unanswered",
    "Unauthorized",
    "Unreachable",
    "from_answer",
    "from_status",
]

_SHOWN = 1024  # bytes of a message that reach a log: a 422 may repeat half a megabyte (spec/apiserver.md 4)


class CredentialsError(Exception):
    """The credentials cannot be loaded; the message names the file and the way out."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a refusal: reason (FieldValueInvalid ...), field (JSON path), message."""

    reason: str
    field: str
    message: str


class ApiError(Exception):
    """The server refused or failed a request.

    Attributes:
        status: HTTP status; 0 without an answer.
        reason: the Status' reason (NotFound, Conflict, Invalid ...); "" when the answer was no Status.
        message: the server's words.
        causes: the details' causes, in the server's order.
        retry_after: seconds the server asked to wait, or None.
        details: the Status' details as sent.
    """

    def __init__(  # noqa: PLR0917 - the fields of a Status, in its order
        self,
        status: int,
        reason: str = "",
        message: str = "",
        causes: tuple[Cause, ...] = (),
        retry_after: float | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes
        self.retry_after = retry_after
        self.details = details or {}

    def __str__(self) -> str:
        message = self.message if len(self.message) <= _SHOWN else f"{self.message[:_SHOWN]}..."
        return f"{self.status or 'no answer'} {self.reason}: {message}" if self.reason else f"{self.status}: {message}"

    @property
    def terminal(self) -> bool:
        """Repeating the same request cannot help: a 4xx other than 401, 408, 409, 410 and 429."""
        return 400 <= self.status < 500 and self.status not in _TRANSIENT_4XX


_TRANSIENT_4XX = frozenset({401, 408, 409, 410, 429})


class NotFound(ApiError):
    """The object (or its namespace) does not exist."""


class NotServed(ApiError):
    """The server does not know this path: the API group or version is not served."""


class Conflict(ApiError):
    """Another writer was first, the object exists already, or a precondition failed."""


class Forbidden(ApiError):
    """The user may not do this."""


class Unauthorized(ApiError):
    """The credentials are not accepted."""


class Invalid(ApiError):
    """The object was refused; see causes."""


class Gone(ApiError):
    """The resource version or continue token is too old: list again."""


class TooManyRequests(ApiError):
    """The server did not execute the request and asks to come back later."""


class ServerError(ApiError):
    """The server failed; whether a write was executed is unknown."""


class Unreachable(ApiError):
    """No connection: the request was never sent."""


class Unanswered(ApiError):
    """The request was sent and no complete answer came: a write may have been executed."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def from_answer(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error for an HTTP answer; `body` may be a Status or anything else."""
    try:
        decoded = msgspec.json.decode(body)
    except msgspec.DecodeError:
        decoded = None
    if not isinstance(decoded, dict) or decoded.get("kind") != "Status":
        text = body[:_SHOWN].decode("utf-8", "replace").strip()
        decoded = {"message": text}
    return from_status({**decoded, "code": status}, _seconds(retry_after))


def from_status(status: dict[str, Any], retry_after: float | None = None) -> ApiError:
    """The error for a Status object (of an answer, or of a watch's ERROR event)."""
    code = int(status.get("code") or 500)
    details = status.get("details") or {}
    causes = tuple(
        Cause(cause.get("reason", ""), cause.get("field", ""), cause.get("message", ""))
        for cause in details.get("causes") or ()
    )
    if retry_after is None and details.get("retryAfterSeconds"):
        retry_after = float(details["retryAfterSeconds"])
    return _class(code, details)(
        code, status.get("reason") or "", status.get("message") or "", causes, retry_after, details
    )


def _class(code: int, details: dict[str, Any]) -> type[ApiError]:
    # A missing object is named in the details; a path that is not served has empty details or no Status at all.
    if code == 404 and not (details.get("name") or details.get("kind")):
        return NotServed
    return _BY_STATUS.get(code, ServerError if code >= 500 else ApiError)


def _seconds(header: str | None) -> float | None:
    """Retry-After is a number of seconds or an HTTP date."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
