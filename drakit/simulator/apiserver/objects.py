"""What the server does to objects: create, read, update, patch, delete, by the rules of a real registry.

Everything here is synchronous: between the read and the write of an update nothing else happens.
"""

import random
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from drakit.simulator.apiserver import ownership, patches
from drakit.simulator.apiserver.apply import apply, check_declared
from drakit.simulator.apiserver.binding import bound
from drakit.simulator.apiserver.deletion import Deletion, is_finished
from drakit.simulator.apiserver.errors import (
    already_exists,
    bad_request,
    conflict,
    forbidden,
    internal,
    not_found,
)
from drakit.simulator.apiserver.gatekeeper import Circumstances, Gatekeeper, Verdict, decode
from drakit.simulator.apiserver.options import DeleteOptions, WriteOptions
from drakit.simulator.apiserver.outcomes import Outcome
from drakit.simulator.apiserver.paths import Target
from drakit.simulator.apiserver.plain import check_identity, check_types
from drakit.simulator.apiserver.resources import NAMESPACES, RESOURCE, Kind, Registry
from drakit.simulator.apiserver.shapes import Shape
from drakit.simulator.apiserver.storage import Key, Record, Storage
from drakit.simulator.apiserver.times import timestamp

__all__ = ["Objects"]

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes generates names from these, so that they spell no words."""
_NAME_ATTEMPTS = 8
_LONGEST_PREFIX = 58


class _SentMeta(msgspec.Struct, rename="camel"):
    """The parts of a sent object that are compared with path and storage before anything else."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Sent(msgspec.Struct):
    metadata: _SentMeta | None = None


_SENT = msgspec.json.Decoder(_Sent)


class Objects:
    """The objects of one server and the rules for changing them."""

    def __init__(
        self,
        storage: Storage,
        registry: Registry,
        gatekeeper: Gatekeeper,
        shape_of: Callable[[Kind, str], Shape],
        now: Callable[[], datetime],
    ) -> None:
        """Work on `storage`, asking `gatekeeper` about each write."""
        self.storage = storage
        self.registry = registry
        self.gatekeeper = gatekeeper
        self.shape_of = shape_of
        self._now = now
        self._deletion = Deletion(storage, registry, now)

    def get(self, target: Target) -> Record:
        """The current record.

        Raises:
            Refused: 404.
        """
        record = self.storage.get(target.kind, target.key)
        if record is None:
            raise not_found(target.kind, target.name or "")
        return record

    def encode(self, kind: Kind, record: Record, version: str) -> bytes:
        """The object as JSON in `version` without kind and apiVersion, as list items are; cached."""
        encoded = record.encoded.get(version)
        if encoded is None:
            obj = self.gatekeeper.convert(kind, record.object, version)
            encoded = msgspec.json.encode({key: obj[key] for key in obj if key not in {"kind", "apiVersion"}})
            record.encoded[version] = encoded
        return encoded

    def encode_whole(self, kind: Kind, record: Record, version: str) -> bytes:
        """The object as JSON in `version`."""
        head = f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version(version)}",'.encode()
        return head + self.encode(kind, record, version)[1:]

    def create(self, target: Target, body: bytes, options: WriteOptions) -> Outcome:
        """POST: a new object, named by its metadata or by generateName.

        Raises:
            Refused: 400, 404 (namespace), 409, 422, 500 (a resourceVersion was sent).
        """
        suffix = self._suffix()
        verdict = self._ask("create", target, body, None, options=options, suffix=suffix)
        _raise_undecodable(verdict)
        sent = _sent_metadata(body)
        self._check_namespace(target, sent)
        obj = _admitted(verdict)
        metadata = obj["metadata"]
        name = metadata.get("name") or ""
        if not name or (not sent.name and metadata.get("generateName")):
            name = self._generated_name(target, metadata.get("generateName") or "", suffix)
        key = (target.namespace or "", name)
        if self.storage.get(target.kind, key) is not None:
            raise already_exists(target.kind, name)
        if sent.resource_version and not options.dry_run:
            raise internal("resourceVersion should not be set on objects to be created")
        obj["metadata"] = self._new_metadata(target, name, metadata)
        self._set_owners(target, None, obj, options)
        record = self._store(target.kind, key, obj, dry_run=options.dry_run)
        return Outcome(record, 201, verdict.warnings)

    def _ask(
        self,
        verb: str,
        target: Target,
        body: bytes,
        stored: dict[str, Any] | None,
        *,
        options: WriteOptions,
        suffix: str = "aaaaa",
    ) -> Verdict:
        labels = None
        if target.namespace:
            namespace = self.storage.get(NAMESPACES, ("", target.namespace))
            labels = (namespace.metadata.get("labels") or {}) if namespace is not None else None
        circumstances = Circumstances(
            field_validation=options.field_validation,
            dry_run=options.dry_run,
            user=options.user,
            namespace_labels=labels,
            now=timestamp(self._now()),
            suffix=suffix,
        )
        return self.gatekeeper.ask(verb, target, body, stored, circumstances)

    def _check_namespace(self, target: Target, sent: _SentMeta) -> None:
        if not target.kind.namespaced:
            return
        namespace = target.namespace or ""
        if sent.namespace and sent.namespace != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        record = self.storage.get(NAMESPACES, ("", namespace))
        if record is None:
            raise not_found(NAMESPACES, namespace)
        if record.metadata.get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            refusal = forbidden(target.kind, sent.name or "", why)
            cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
            refusal.details = {**(refusal.details or {}), "causes": [{**cause, "field": "metadata.namespace"}]}
            raise refusal

    @staticmethod
    def _suffix() -> str:
        return "".join(random.choices(_SUFFIX_LETTERS, k=5))  # noqa: S311  (a name, not a secret)

    def _generated_name(self, target: Target, prefix: str, suffix: str) -> str:
        for _ in range(_NAME_ATTEMPTS):
            name = prefix[:_LONGEST_PREFIX] + suffix
            if self.storage.get(target.kind, (target.namespace or "", name)) is None:
                return name
            suffix = self._suffix()
        raise already_exists(target.kind, name)

    def _new_metadata(self, target: Target, name: str, sent: dict[str, Any]) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name}
        if sent.get("generateName"):
            metadata["generateName"] = sent["generateName"]
        if target.kind.namespaced:
            metadata["namespace"] = target.namespace
        metadata["uid"] = str(uuid.uuid4())
        metadata["resourceVersion"] = ""
        if target.kind.has_generation:
            metadata["generation"] = 1
        elif sent.get("generation"):
            metadata["generation"] = sent["generation"]
        metadata["creationTimestamp"] = timestamp(self._now())
        metadata.update(_kept_metadata(sent))
        return metadata

    def update(self, target: Target, body: bytes, options: WriteOptions) -> Outcome:
        """PUT, and the second half of every patch.

        Raises:
            Refused: 400, 404, 409, 422.
        """
        sent = _sent_metadata(body)
        if sent.name and sent.name != target.name:
            raise bad_request(
                f"the name of the object ({sent.name}) does not match the name on the URL ({target.name})"
            )
        if target.kind.namespaced and sent.namespace and sent.namespace != target.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        existing = self.storage.get(target.kind, target.key)
        if existing is None:
            decode(target.kind, body)
            if target.kind.create_on_update and target.subresource is None:
                return self.create(target, body, options)
            raise not_found(target.kind, target.name or "")
        verdict = self._ask("update", target, body, existing.object, options=options)
        if verdict.refusal is not None and verdict.refusal.status in {400, 404}:
            raise verdict.refusal
        self._check_preconditions(target, existing, sent)
        return self._replace(target, existing, _admitted(verdict), options, verdict.warnings)

    def _check_preconditions(self, target: Target, existing: Record, sent: _SentMeta) -> None:
        name = target.name or ""
        if (
            sent.resource_version
            and sent.resource_version.strip("0")
            and sent.resource_version != existing.metadata["resourceVersion"]
        ):
            if not sent.resource_version.isdecimal():
                value = sent.resource_version
                raise internal(
                    f'resourceVersion: Invalid value: "{value}": strconv.ParseUint: parsing "{value}": invalid syntax'
                )
            raise conflict(target.kind, name)
        uid = existing.metadata["uid"]
        if sent.uid and sent.uid != uid:
            where = f"/registry/{target.kind.plural}/{'/'.join(part for part in target.key if part)}"
            why = (
                f"StorageError: invalid object, Code: 4, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: "
                f"Precondition failed: UID in precondition: {sent.uid}, UID in object meta: {uid}"
            )
            raise conflict(target.kind, name, why)

    def _replace(
        self, target: Target, existing: Record, obj: dict[str, Any], options: WriteOptions, warnings: tuple[str, ...]
    ) -> Outcome:
        sent_owners = obj["metadata"].get("managedFields")
        obj["metadata"] = self._next_metadata(target, existing, obj)
        self._set_owners(target, existing, obj, options, sent_owners)
        if is_finished(obj):
            if not options.dry_run:
                self._deletion.remove(target.kind, existing)
            return Outcome(Record(existing.key, existing.revision, obj), 200, warnings)
        if obj == existing.object:
            return Outcome(existing, 200, warnings)
        record = self._store(target.kind, existing.key, obj, dry_run=options.dry_run)
        if target.kind is NAMESPACES and not options.dry_run:
            self._deletion.settle_namespace(record.key[1])
        return Outcome(record, 200, warnings)

    def _next_metadata(self, target: Target, existing: Record, obj: dict[str, Any]) -> dict[str, Any]:
        old = existing.metadata
        system = ("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")
        kept = ("deletionTimestamp", "deletionGracePeriodSeconds")
        metadata = {field: old[field] for field in (*system, *kept) if field in old}
        if target.kind.group == RESOURCE:
            if "generation" in obj["metadata"]:
                metadata["generation"] = obj["metadata"]["generation"]
        elif target.kind.has_generation and target.subresource is None and _spec(obj) != _spec(existing.object):
            metadata["generation"] = old.get("generation", 1) + 1
        metadata.update(_kept_metadata(obj["metadata"]))
        return metadata

    def _set_owners(
        self,
        target: Target,
        existing: Record | None,
        obj: dict[str, Any],
        options: WriteOptions,
        sent: list[dict[str, Any]] | None = None,
    ) -> None:
        """Note in managedFields who changed what; `options.owners` is already the result for an apply."""
        if options.owners is not None:
            owners = options.owners
        else:
            owners = ownership.after_update(
                self.shape_of(target.kind, target.version),
                self._in_version(target, existing.object) if existing is not None else None,
                self._in_version(target, obj),
                ownership.Writer(
                    options.manager, "Update", target.api_version, target.subresource or "", timestamp(self._now())
                ),
                sent,
            )
        if owners:
            obj["metadata"]["managedFields"] = owners

    def _in_version(self, target: Target, obj: dict[str, Any]) -> dict[str, Any]:
        """The object in the writer's version; it is only read, so the stored form does where it is that version."""
        if obj["apiVersion"] == target.api_version:
            return obj
        return self.gatekeeper.convert(target.kind, obj, target.version)

    def _store(self, kind: Kind, key: Key, obj: dict[str, Any], *, dry_run: bool) -> Record:
        if dry_run:
            previous = self.storage.get(kind, key)
            if previous is None:
                obj["metadata"].pop("resourceVersion", None)
            return Record(key, previous.revision if previous is not None else 0, obj)
        return self.storage.put(kind, key, obj)

    def delete(self, target: Target, options: DeleteOptions) -> Outcome:
        """DELETE.

        Raises:
            Refused: 404, 409 (preconditions).
        """
        return self._deletion.delete(target, self.get(target), options)

    def bind(self, target: Target, body: bytes, options: WriteOptions) -> Outcome:
        """POST pods/NAME/binding: set the node, once.

        Raises:
            Refused: 400, 404, 409 (already bound).
        """
        existing = self.get(target)
        obj = bound(target, existing.object, decode(target.kind, body), timestamp(self._now()))
        return Outcome(self._store(target.kind, existing.key, obj, dry_run=options.dry_run), 201)

    def evict(self, target: Target, body: bytes) -> Outcome:
        """POST pods/NAME/eviction: a graceful deletion (disruption budgets are not modelled)."""
        eviction = decode(target.kind, body)
        options = DeleteOptions.from_object(eviction.get("deleteOptions") or {})
        return msgspec.structs.replace(self.delete(target, options), status=201)

    def patch(self, target: Target, kind: str, body: bytes, options: WriteOptions) -> Outcome:
        """PATCH by JSON patch, merge patch or strategic merge patch, on the object as the path's version shows it.

        Opaque parameters are compact there, which is why a patch cannot change an object whose parameters were stored
        with blanks (spec/apiserver.md 1).

        Raises:
            Refused: 400, 404, 409, 422.
        """
        existing = self.get(target)
        try:
            patch = msgspec.json.decode(body)
        except msgspec.DecodeError as fault:
            raise bad_request(f"error decoding patch: {fault}") from fault
        current = self._current(target, existing)
        if kind == "json":
            patched = patches.json_patch(current, patch)
        elif not isinstance(patch, dict):
            raise bad_request(
                "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}"
            )
        elif kind == "merge":
            patched = patches.merge_patch(current, patch)
        else:
            patched = patches.strategic_merge_patch(current, patch, self.shape_of(target.kind, target.version))
        return self.update(target, msgspec.json.encode(patched), options)

    def _current(self, target: Target, existing: Record) -> dict[str, Any]:
        current: dict[str, Any] = msgspec.json.decode(self.encode_whole(target.kind, existing, target.version))
        return current

    def apply(self, target: Target, body: bytes, options: WriteOptions) -> Outcome:
        """PATCH by server-side apply; creates the object when there is none.

        Raises:
            Refused: 400, 404 (status of nothing), 409 (another manager's fields), 422, 500 (undeclared fields).
        """
        config = decode(target.kind, body)
        shape = self.shape_of(target.kind, target.version)
        check_types(target, config, shape)
        check_identity(target, config)
        metadata = config.get("metadata") or {}
        if metadata.get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        where = f"{target.namespace or ''}/{target.name}"
        subject = f"{where}; {target.api_version}, Kind={target.kind.kind}"
        check_declared(config, shape, subject)
        existing = self.storage.get(target.kind, target.key)
        if existing is None and target.subresource is not None:
            raise not_found(target.kind, target.name or "")
        now = timestamp(self._now())
        writer = ownership.Writer(options.manager, "Apply", target.api_version, target.subresource or "", now)
        live = self._current(target, existing) if existing is not None else None
        merged, owners = apply(live, config, shape, writer, force=options.force)
        merged["kind"], merged["apiVersion"] = target.kind.kind, target.api_version
        merged["metadata"] = {**(merged.get("metadata") or {}), "name": metadata.get("name") or target.name}
        options = msgspec.structs.replace(options, owners=owners)
        body = msgspec.json.encode(merged)
        if existing is None:
            if metadata.get("uid"):
                raise conflict(
                    target.kind,
                    target.name or "",
                    "uid mismatch: the provided object specified uid of no existing object",
                )
            return self.create(msgspec.structs.replace(target, name=None), body, options)
        return self.update(target, body, options)


def _sent_metadata(body: bytes) -> _SentMeta:
    try:
        return _SENT.decode(body).metadata or _SentMeta()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _SentMeta()


def _raise_undecodable(verdict: Verdict) -> None:
    if verdict.refusal is not None and verdict.refusal.status not in {403, 422}:
        raise verdict.refusal


def _admitted(verdict: Verdict) -> dict[str, Any]:
    if verdict.refusal is not None:
        raise verdict.refusal
    assert verdict.object is not None
    return verdict.object


def _kept_metadata(sent: dict[str, Any]) -> dict[str, Any]:
    """The metadata that clients decide; empty values are absent."""
    fields = ("labels", "annotations", "ownerReferences", "finalizers")
    return {field: sent[field] for field in fields if sent.get(field)}


def _spec(obj: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in {"metadata", "status", "kind", "apiVersion"}}
