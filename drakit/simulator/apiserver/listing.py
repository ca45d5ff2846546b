"""Lists: which records, at which revision, in which chunk."""

import base64
from typing import Any

import msgspec

from drakit.simulator.apiserver.errors import Refused, bad_request, expired
from drakit.simulator.apiserver.options import ListOptions
from drakit.simulator.apiserver.paths import Target
from drakit.simulator.apiserver.selectors import Selector, everything
from drakit.simulator.apiserver.storage import Record, Storage

__all__ = ["Listing", "list_records", "parse_revision", "too_large"]

_TOO_OLD = "The resourceVersion for the provided list is too old."
_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Listing(msgspec.Struct, frozen=True):
    """One chunk of a list and its metadata."""

    records: list[Record]
    revision: int
    continuation: str = ""
    remaining: int | None = None

    def metadata(self) -> dict[str, Any]:
        """ListMeta."""
        metadata: dict[str, Any] = {"resourceVersion": str(self.revision)}
        if self.continuation:
            metadata["continue"] = self.continuation
            if self.remaining is not None:
                metadata["remainingItemCount"] = self.remaining
        return metadata


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


def parse_revision(text: str) -> int:
    """A resourceVersion as a number; the empty text is 0.

    Raises:
        Refused: 400.
    """
    if text and not text.isdecimal():
        value = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f"invalid resource version: {value}")
    return int(text or 0)


def too_large(requested: int, current: int) -> Refused:
    """504: the revision lies in the future."""
    return Refused(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {requested}, current: {current}",
        details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
        retry_after=1,
    )


def list_records(storage: Storage, target: Target, options: ListOptions, select: Selector) -> Listing:
    """The chunk that `options` ask for; a future resourceVersion has been waited for by then.

    Raises:
        Refused: 400 for a bad token, 410 for history that is gone, 504 for the future.
    """
    if options.continuation:
        return _continued(storage, target, options, select)
    wanted = parse_revision(options.resource_version)
    if wanted > storage.revision:
        raise too_large(wanted, storage.revision)
    revision = storage.revision
    if options.resource_version_match == "Exact":
        revision = wanted
        if wanted < storage.history(target.kind).oldest:
            raise expired(_TOO_OLD)
    records = storage.records_at(target.kind, revision, target.namespace)
    return _chunk(records, target, options, select, revision)


def _chunk(records: list[Record], target: Target, options: ListOptions, select: Selector, revision: int) -> Listing:
    if select is not everything:
        records = [record for record in records if select(record.object)]
    if not options.limit or len(records) <= options.limit:
        return Listing(records, revision)
    chunk = records[: options.limit]
    remaining = len(records) - len(chunk) if select is everything else None
    return Listing(chunk, revision, _token(revision, _start(target, chunk[-1])), remaining)


def _start(target: Target, last: Record) -> str:
    namespace, name = last.key
    place = f"/{namespace}/{name}" if namespace and target.namespace is None else f"/{name}"
    return f"{place}\0"


def _token(revision: int, start: str) -> str:
    text = msgspec.json.encode(_Token("meta.k8s.io/v1", revision, start))
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _continued(storage: Storage, target: Target, options: ListOptions, select: Selector) -> Listing:
    token = _parse_token(options.continuation)
    if options.resource_version not in {"", "0"}:
        raise bad_request("specifying resource version is not allowed when using continue")
    revision = storage.revision if token.rv < 0 else token.rv
    if revision < storage.history(target.kind).oldest:
        raise expired(_CONTINUE_TOO_OLD, continuation=_token(-1, token.start))
    records = storage.records_at(target.kind, revision, target.namespace)
    start = token.start if token.start.startswith("/") else f"/{token.start}"
    rest = [record for record in records if _start(target, record)[:-1] >= start]
    return _chunk(rest, target, options, select, revision)


def _parse_token(text: str) -> _Token:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise bad_request("invalid continue token: continue key is not valid: illegal base64 data") from None
    try:
        token = msgspec.json.decode(raw, type=_Token)
    except (msgspec.DecodeError, UnicodeDecodeError):
        first = raw[:1].decode("latin-1")
        why = f"invalid character '{first}' looking for beginning of value"
        raise bad_request(f"invalid continue token: continue key is not valid: {why}") from None
    if token.v != "meta.k8s.io/v1":
        raise bad_request(f"invalid continue token: continue key is not valid: server does not recognize {token.v}")
    return token
