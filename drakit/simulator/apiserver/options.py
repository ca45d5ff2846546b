"""The options of requests: query parameters and DeleteOptions."""

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit import admission
from drakit.simulator.apiserver.errors import bad_request, invalid, invalid_options

__all__ = ["DeleteOptions", "ListOptions", "WriteOptions", "truth"]


def truth(text: str | None) -> bool:
    """A boolean query parameter: present and neither `false` nor `0`."""
    return text is not None and text.lower() not in {"false", "0"}


def _dry_run(values: list[str], kind: str) -> bool:
    if not values:
        return False
    if values != ["All"]:
        listed = ",".join(f'"{value}"' for value in values)
        message = f'Unsupported value: [{listed}]: supported values: "All"'
        raise invalid_options(kind, "FieldValueNotSupported", "dryRun", message)
    return True


class WriteOptions(msgspec.Struct, frozen=True):
    """Options of create, update and patch.

    `owners` is set by an apply, which decides managedFields itself; `user` where an authorizer decides who may change
    which part of a claim's status.
    """

    dry_run: bool = False
    manager: str = "unknown"
    field_validation: str = ""
    force: bool = False
    owners: list[dict[str, Any]] | None = None
    user: admission.User | None = None

    @classmethod
    def parse(cls, query: Mapping[str, str], user_agent: str, kind: str) -> "WriteOptions":
        """From the query; `kind` is CreateOptions, UpdateOptions or PatchOptions.

        Raises:
            Refused: 422 for an unknown dryRun or fieldValidation.
        """
        validation = query.get("fieldValidation", "")
        if validation not in {"", "Ignore", "Warn", "Strict"}:
            supported = '"", "Ignore", "Strict", "Warn"'
            message = f'Unsupported value: "{validation}": supported values: {supported}'
            raise invalid_options(kind, "FieldValueNotSupported", "fieldValidation", message)
        manager = query.get("fieldManager") or user_agent.partition("/")[0] or "unknown"
        return cls(
            dry_run=_dry_run([query["dryRun"]] if query.get("dryRun") else [], kind),
            manager=manager[:128],
            field_validation=validation,
            force=truth(query.get("force")),
        )


class DeleteOptions(msgspec.Struct, frozen=True):
    """Options of delete and deletecollection."""

    dry_run: bool = False
    grace_period_seconds: int | None = None
    propagation_policy: str = ""
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def parse(cls, query: Mapping[str, str], body: bytes) -> "DeleteOptions":
        """From the body, or from the query when there is no body: a body makes the server ignore the query."""
        if body.strip():
            try:
                value = msgspec.json.decode(body)
            except msgspec.DecodeError as fault:
                raise bad_request(f"error decoding DeleteOptions: {fault}") from fault
            if not isinstance(value, dict):
                raise bad_request("error decoding DeleteOptions: not an object")
            return cls.from_object(value)
        grace = query.get("gracePeriodSeconds")
        if grace is not None and not grace.removeprefix("-").isdecimal():
            raise bad_request(f'strconv.ParseInt: parsing "{grace}": invalid syntax')
        return cls(
            dry_run=_dry_run([query["dryRun"]] if query.get("dryRun") else [], "DeleteOptions"),
            grace_period_seconds=int(grace) if grace is not None else None,
            propagation_policy=query.get("propagationPolicy", ""),
        )

    @classmethod
    def from_object(cls, value: dict[str, Any]) -> "DeleteOptions":
        """From a DeleteOptions object."""
        kind = value.get("kind") or "DeleteOptions"
        if kind != "DeleteOptions":
            raise bad_request(f"expected DeleteOptions, got {kind}")
        policy = value.get("propagationPolicy") or ""
        if policy not in {"", "Foreground", "Background", "Orphan"}:
            message = f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan", "nil"'
            causes = [("FieldValueNotSupported", "propagationPolicy", message)]
            raise invalid("meta.k8s.io", "DeleteOptions", "", causes)
        preconditions = value.get("preconditions") or {}
        return cls(
            dry_run=_dry_run(list(value.get("dryRun") or []), "DeleteOptions"),
            grace_period_seconds=value.get("gracePeriodSeconds"),
            propagation_policy=policy,
            uid=preconditions.get("uid") or "",
            resource_version=preconditions.get("resourceVersion") or "",
        )


class ListOptions(msgspec.Struct, frozen=True):
    """Options of list, watch and deletecollection."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continuation: str = ""
    watch: bool = False
    timeout_seconds: int | None = None
    allow_bookmarks: bool = False
    send_initial_events: bool | None = None
    include_object: str = ""

    @classmethod
    def parse(cls, query: Mapping[str, str], *, watch: bool = False) -> "ListOptions":
        """From the query.

        Raises:
            Refused: 400 for a malformed number, 422 for options that exclude each other.
        """
        options = cls(
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
            resource_version=query.get("resourceVersion", ""),
            resource_version_match=query.get("resourceVersionMatch", ""),
            limit=_number(query.get("limit")) or 0,
            continuation=query.get("continue", ""),
            watch=watch or truth(query.get("watch")),
            timeout_seconds=_number(query.get("timeoutSeconds")),
            allow_bookmarks=truth(query.get("allowWatchBookmarks")),
            send_initial_events=truth(query["sendInitialEvents"]) if "sendInitialEvents" in query else None,
            include_object=query.get("includeObject", ""),
        )
        options.check()
        return options

    def check(self) -> None:
        """Refuse combinations that a real server forbids."""
        match, why = self.resource_version_match, ""
        if self.send_initial_events is not None and not self.watch:
            raise invalid_options(
                "ListOptions",
                "FieldValueForbidden",
                "sendInitialEvents",
                "Forbidden: sendInitialEvents is forbidden for list",
            )
        if self.send_initial_events is not None and match != "NotOlderThan":
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        elif match and self.watch and self.send_initial_events is None:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        elif match and not self.watch and not self.resource_version:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        elif match and self.continuation:
            why = "resourceVersionMatch is forbidden when continue is provided"
        elif match == "Exact" and self.resource_version == "0":
            why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        if why:
            raise invalid_options("ListOptions", "FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {why}")
        if match not in {"", "Exact", "NotOlderThan"}:
            message = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
            raise invalid_options("ListOptions", "FieldValueNotSupported", "resourceVersionMatch", message)


def _number(text: str | None) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
