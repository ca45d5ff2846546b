"""Records as answers: in the version of the path, as tables or as metadata only, in JSON or YAML."""

from collections.abc import Callable
from typing import Any

import msgspec

from drakit.clock import Clock
from drakit.simulator.apiserver import openapi, tables
from drakit.simulator.apiserver.answers import Answer
from drakit.simulator.apiserver.listing import Listing
from drakit.simulator.apiserver.media import YAML, Accepted, to_yaml
from drakit.simulator.apiserver.objects import Objects
from drakit.simulator.apiserver.outcomes import Outcome
from drakit.simulator.apiserver.paths import Target
from drakit.simulator.apiserver.storage import Record

__all__ = ["Presenter", "formatted"]


class Presenter:
    """Shows what is stored in `objects`; `include` is the includeObject of tables (None, Metadata, Object)."""

    def __init__(self, objects: Objects, clock: Clock) -> None:
        """Take ages from `clock`."""
        self._objects = objects
        self._clock = clock

    def outcome(self, target: Target, outcome: Outcome, form: Accepted, include: str) -> Answer:
        """The answer to a write."""
        if target.subresource in {"binding", "eviction"}:
            status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
            return formatted(msgspec.json.encode(status), form, 201)
        answer = self.record(target, outcome.record, form, include)
        answer.status = outcome.status
        answer.warnings = tuple(dict.fromkeys((*answer.warnings, *outcome.warnings)))
        return answer

    def record(self, target: Target, record: Record, form: Accepted, include: str) -> Answer:
        """One object."""
        answer = formatted(self._one(target, record, form, include), form)
        answer.warnings = self.deprecation(target)
        return answer

    def listing(self, target: Target, listing: Listing, form: Accepted, include: str) -> Answer:
        """A list."""
        answer = formatted(self._many(target, listing, form, include), form)
        answer.warnings = self.deprecation(target)
        return answer

    def events(self, target: Target, form: Accepted, include: str) -> Callable[[Record], bytes]:
        """How the objects of a watch are shown: the first table has the columns, the others do not repeat them."""
        is_first = True

        def show(record: Record) -> bytes:
            nonlocal is_first
            shown = self._one(target, record, form, include, with_columns=is_first)
            is_first = False
            return shown

        return show

    def deprecation(self, target: Target) -> tuple[str, ...]:
        """The warning of a deprecated version."""
        return openapi.deprecations(target.kind, target.version, self._objects.registry.version)

    def _one(self, target: Target, record: Record, form: Accepted, include: str, *, with_columns: bool = True) -> bytes:
        if form.transform == "Table":
            row = (record.object, self._row_object(target, record, include))
            metadata = {"resourceVersion": record.metadata.get("resourceVersion", "")}
            return msgspec.json.encode(
                tables.table(target.kind, [row], metadata, self._clock.now(), with_columns=with_columns)
            )
        if form.transform:
            return msgspec.json.encode(_partial(record))
        return self._objects.encode_whole(target.kind, record, target.version)

    def _many(self, target: Target, listing: Listing, form: Accepted, include: str) -> bytes:
        kind, records = target.kind, listing.records
        if form.transform == "Table":
            rows = [(record.object, self._row_object(target, record, include)) for record in records]
            return msgspec.json.encode(tables.table(kind, rows, listing.metadata(), self._clock.now()))
        if form.transform:
            document = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            items = [_partial(record) for record in records]
            return msgspec.json.encode({**document, "metadata": listing.metadata(), "items": items})
        head = f'{{"kind":"{kind.kind}List","apiVersion":"{target.api_version}","metadata":'.encode()
        shown = b",".join(self._objects.encode(kind, record, target.version) for record in records)
        return b"".join((head, msgspec.json.encode(listing.metadata()), b',"items":[', shown, b"]}"))

    def _row_object(self, target: Target, record: Record, include: str) -> Any:
        if include == "None":
            return None
        if include == "Object":
            return msgspec.Raw(self._objects.encode_whole(target.kind, record, target.version))
        return _partial(record)


def _partial(record: Record) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": record.metadata}


def formatted(body: bytes, form: Accepted, status: int = 200) -> Answer:
    """A JSON body in the accepted media type."""
    if form.media == YAML:
        return Answer(to_yaml(body), status, YAML)
    return Answer(body, status)
