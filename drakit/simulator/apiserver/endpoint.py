"""HTTP requests to answers: authentication, routing, options, media types, streams."""

import logging
import uuid
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

# Not aiohttp.web: its applications, routes and middlewares cost a tenth of the time that a start takes.
from aiohttp.web_exceptions import HTTPRequestEntityTooLarge
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from multidict import CIMultiDict

from drakit import admission
from drakit.clock import Clock
from drakit.simulator.apiserver.access import NODE_NAME, Access, User, service_account_user
from drakit.simulator.apiserver.answers import Answer
from drakit.simulator.apiserver.documents import HEALTH, document
from drakit.simulator.apiserver.errors import (
    Refused,
    forbidden,
    invalid_options,
    method_not_allowed,
    unauthorized,
    unsupported_media_type,
)
from drakit.simulator.apiserver.faults import Call, Fault, Faults, Requests
from drakit.simulator.apiserver.gatekeeper import decode
from drakit.simulator.apiserver.listing import list_records, parse_revision, too_large
from drakit.simulator.apiserver.media import JSON, YAML, Accepted, accepted, from_yaml, media_type
from drakit.simulator.apiserver.objects import Objects
from drakit.simulator.apiserver.options import DeleteOptions, ListOptions, WriteOptions, truth
from drakit.simulator.apiserver.outcomes import Outcome
from drakit.simulator.apiserver.paths import Target, parse
from drakit.simulator.apiserver.presenting import Presenter, formatted
from drakit.simulator.apiserver.protobuf import PROTOBUF, to_json
from drakit.simulator.apiserver.reviews import review, token_review
from drakit.simulator.apiserver.selectors import parse as parse_selector
from drakit.simulator.apiserver.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Endpoint"]

_LOG = logging.getLogger(__name__)

_MINIMUM_WATCH, _MAXIMUM_WATCH = 1800, 3600
"""Seconds that a watch without timeoutSeconds lasts: half an hour to an hour, as on a real server."""
_PATCHES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}


class Endpoint:
    """Answers the requests of one server."""

    def __init__(
        self,
        objects: Objects,
        access: Access,
        *,
        clock: Clock,
        faults: Faults,
        requests: Requests,
        future_wait: float,
    ) -> None:
        """Answer from `objects`; requests for a future revision wait `future_wait` seconds for it."""
        self._objects = objects
        self._presenter = Presenter(objects, clock)
        self._access = access
        self._clock = clock
        self._faults = faults
        self._requests = requests
        self._future_wait = future_wait
        self._watches: dict[Watch, str] = {}
        self._in_flight = 0
        self.address = ""
        self.authorizer: Callable[[Call], bool] | None = None
        self.is_open = False

    def drop_watches(self, resource: str | None = None) -> int:
        """Break the open watches (of one resource); returns how many."""
        hit = [watch for watch, plural in self._watches.items() if resource in {None, plural}]
        for watch in hit:
            watch.drop()
        return len(hit)

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered and every open watch has sent what there is."""
        return self._in_flight == len(self._watches) and all(watch.is_idle for watch in self._watches)

    def watching(self, resource: str | None = None) -> int:
        """How many watches are open."""
        return sum(1 for plural in self._watches.values() if resource in {None, plural})

    async def handle(self, request: BaseRequest) -> StreamResponse:
        """Answer one request; never raises but for a closed connection."""
        self._in_flight += 1
        try:
            return await self._handle(request)
        finally:
            self._in_flight -= 1

    async def _handle(self, request: BaseRequest) -> StreamResponse:
        call = Call("get", "", name=request.path)
        try:
            user = self._authenticate(request)
            target = parse(self._objects.registry, request.rel_url.raw_path)
            call = self._call(request, target, user)
            faults = self._faults.take(call)
            if not await self._before(faults):
                self._requests.note(call)
                return _abort(request)
            answer: Answer | StreamResponse = await self._answer(request, target, call, user)
            if any(fault.effect == "lose" for fault in faults):
                self._requests.note(call)
                return _abort(request)
        except Refused as refusal:
            answer = _refused(refusal)
        except ConnectionError:
            raise
        except Exception as fault:  # noqa: BLE001  (a defect, ours or an authorizer's, is answered and logged)
            _LOG.exception("failed on %s %s", request.method, request.path)
            answer = _refused(Refused(500, "InternalError", f"Internal error occurred: {fault}"))
        if isinstance(answer, StreamResponse):
            return answer  # a watch: it was counted when it was opened
        self._requests.note(msgspec.structs.replace(call, status=answer.status))
        return _response(answer)

    def _authenticate(self, request: BaseRequest) -> User:
        if self.is_open or request.path in HEALTH:
            return User("system:anonymous", ("system:unauthenticated",))
        transport = request.transport
        peer = transport.get_extra_info("peercert") if transport is not None else None
        user = self._access.identify(request.headers.get("Authorization"), peer)
        if user is None:
            raise unauthorized()
        impersonated = request.headers.get("Impersonate-User")
        if impersonated:
            return User(impersonated, (*request.headers.getall("Impersonate-Group", []), "system:authenticated"))
        return user

    def _call(self, request: BaseRequest, target: Target | None, user: User) -> Call:
        if target is None:
            return Call(request.method.lower(), "", name=request.path, user=user.name, groups=user.groups)
        call = Call(
            self._verb(request, target),
            target.kind.plural,
            target.subresource or "",
            target.namespace or "",
            target.name or "",
            target.kind.group,
            target.version,
            user.name,
            user.groups,
            node="".join(user.extra.get(NODE_NAME, ())),
            dry_run="dryRun" in request.query,
        )
        if self.authorizer is not None and not self.authorizer(call):
            raise _denied(target, call)
        return call

    @staticmethod
    def _verb(request: BaseRequest, target: Target) -> str:
        match request.method:
            case "GET" | "HEAD":
                if target.watch or truth(request.query.get("watch")):
                    return "watch"
                return "get" if target.name is not None else "list"
            case "POST":
                return "create"
            case "PUT":
                return "update"
            case "PATCH":
                return "patch"
            case "DELETE":
                return "delete" if target.name is not None else "deletecollection"
            case other:
                return other.lower()

    async def _before(self, faults: list[Fault]) -> bool:
        """Carry out what hits the request before its work; False when the connection is to be dropped."""
        for fault in faults:
            if fault.effect == "delay":
                await self._clock.sleep(fault.seconds)
            elif fault.effect == "fail":
                raise fault.refusal()
        return all(fault.effect != "drop" for fault in faults)

    async def _answer(
        self, request: BaseRequest, target: Target | None, call: Call, user: User
    ) -> Answer | StreamResponse:
        if target is None:
            registry = self._objects.registry
            return document(registry, request.method, request.path, request.headers, self.address)
        form = accepted(request.headers.get("Accept", ""))
        self._check_method(target, request.method)
        match call.verb:
            case "get":
                record = self._objects.get(target)
                return self._presenter.record(target, record, form, _include(request))
            case "list":
                return await self._list(target, form, request)
            case "watch":
                return await self._watch(target, form, request, call)
        body = await self._body(request)
        match call.verb:
            case "create" if target.kind.is_review or target.subresource == "token":
                return self._review(target, decode(target.kind, _json(body, request)), call, user, form)
            case "create":
                outcome = self._create(target, body, request, call)
            case "update":
                options = self._write_options(request, call, "UpdateOptions")
                outcome = self._objects.update(target, _json(body, request), options)
            case "patch":
                outcome = self._patch(target, body, request, call)
            case "delete":
                return self._delete(target, body, form, request)
            case _:
                return self._delete_collection(target, body, form, request)
        return self._presenter.outcome(target, outcome, form, _include(request))

    @staticmethod
    def _check_method(target: Target, method: str) -> None:
        kind = target.kind
        if target.subresource is not None:
            verbs: tuple[str, ...] = kind.subresources[target.subresource]
        elif kind.is_review:
            verbs = ("create",) if target.name is None else ()
        elif target.name is not None:
            verbs = ("get", "update", "patch", "delete")
        elif target.namespace is None and kind.namespaced:
            verbs = ("get",)
        else:
            verbs = ("get", "create", *(("delete",) if kind.collection_delete else ()))
        needed = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        if needed.get(method) not in verbs:
            raise method_not_allowed()

    @staticmethod
    async def _body(request: BaseRequest) -> bytes:
        try:
            return await request.read()
        except HTTPRequestEntityTooLarge:
            message = "Request entity too large: limit is 3145728"
            raise Refused(413, "RequestEntityTooLarge", message, details={}) from None

    def _write_options(self, request: BaseRequest, call: Call, kind: str) -> WriteOptions:
        options = WriteOptions.parse(request.query, request.headers.get("User-Agent", ""), kind)
        if self.authorizer is None:
            return options
        authorizer = self.authorizer

        def allows(verb: str, resource: str, name: str) -> bool:
            plural, _, subresource = resource.partition("/")
            return authorizer(
                msgspec.structs.replace(call, verb=verb, resource=plural, subresource=subresource, name=name)
            )

        user = admission.User(name=call.user, allows=allows, node=call.node)
        return msgspec.structs.replace(options, user=user)

    def _create(self, target: Target, body: bytes, request: BaseRequest, call: Call) -> Outcome:
        options = self._write_options(request, call, "CreateOptions")
        body = _json(body, request)
        if target.subresource == "binding":
            return self._objects.bind(target, body, options)
        if target.subresource == "eviction":
            return self._objects.evict(target, body)
        return self._objects.create(target, body, options)

    def _review(self, target: Target, body: dict[str, Any], call: Call, user: User, form: Accepted) -> Answer:
        if target.subresource == "token":
            self._objects.get(target)
            spec = body.get("spec") or {}
            bound = spec.get("boundObjectRef") or {}
            node = (bound.get("name") or "") if bound.get("kind") == "Node" else ""
            namespace, name = target.key
            token = self._access.issue(service_account_user(namespace, name, node))
            answer = token_review(namespace, name, spec, token)
        else:
            answer = review(target.kind.kind, body, user, call, self.authorizer)
        return formatted(msgspec.json.encode(answer), form, 201)

    def _patch(self, target: Target, body: bytes, request: BaseRequest, call: Call) -> Outcome:
        kind = _PATCHES.get(media_type(request.headers.get("Content-Type", "")))
        if kind is None:
            raise unsupported_media_type(patch=True)
        options = self._write_options(request, call, "PatchOptions")
        if kind == "apply":
            if not request.query.get("fieldManager"):
                raise invalid_options(
                    "PatchOptions",
                    "FieldValueRequired",
                    "fieldManager",
                    "Required value: is required for apply patch",
                )
            return self._objects.apply(target, from_yaml(body), options)
        return self._objects.patch(target, kind, body, options)

    def _delete(self, target: Target, body: bytes, form: Accepted, request: BaseRequest) -> Answer:
        body = _json(body, request) if body else body
        outcome = self._objects.delete(target, DeleteOptions.parse(request.query, body))
        kind = target.kind
        if kind.delete_returns_object or outcome.record.metadata.get("deletionTimestamp"):
            return self._presenter.outcome(target, outcome, form, _include(request))
        details: dict[str, Any] = {"name": target.name}
        if kind.group:
            details["group"] = kind.group
        details |= {"kind": kind.plural, "uid": outcome.record.metadata["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return formatted(msgspec.json.encode(status), form)

    def _delete_collection(self, target: Target, body: bytes, form: Accepted, request: BaseRequest) -> Answer:
        options = ListOptions.parse(request.query)
        select = self._selector(target, options)
        listing = list_records(self._objects.storage, target, options, select)
        delete_options = DeleteOptions.parse(request.query, _json(body, request) if body else body)
        for record in listing.records:
            one = msgspec.structs.replace(target, name=record.key[1], namespace=record.key[0] or None)
            self._objects.delete(one, delete_options)
        return self._presenter.listing(target, listing, form, options.include_object)

    def _selector(self, target: Target, options: ListOptions) -> Any:
        return parse_selector(
            target.kind,
            target.version,
            self._objects.registry.version,
            options.label_selector,
            options.field_selector,
        )

    async def _list(self, target: Target, form: Accepted, request: BaseRequest) -> Answer:
        options = ListOptions.parse(request.query)
        select = self._selector(target, options)
        await self._wait_for_future(parse_revision(options.resource_version))
        listing = list_records(self._objects.storage, target, options, select)
        return self._presenter.listing(target, listing, form, options.include_object)

    async def _wait_for_future(self, revision: int) -> None:
        """A real server waits three seconds for its cache to reach a revision that it has not seen."""
        if revision > self._objects.storage.revision:
            await self._clock.sleep(self._future_wait)

    async def _watch(self, target: Target, form: Accepted, request: BaseRequest, call: Call) -> StreamResponse:
        options = ListOptions.parse(request.query, watch=True)
        if target.name is not None:
            selected = f"metadata.name={target.name}"
            options = msgspec.structs.replace(options, field_selector=selected)
            target = msgspec.structs.replace(target, name=None)
        select = self._selector(target, options)
        storage = self._objects.storage
        show = self._presenter.events(target, form, options.include_object)
        watch = Watch(storage, target, options, select=select, show=show, clock=self._clock)
        await self._wait_for_future(watch.start())
        if watch.start() > storage.revision:
            raise too_large(watch.start(), storage.revision)
        seconds = options.timeout_seconds or (_MINIMUM_WATCH + _MAXIMUM_WATCH) / 2
        response = StreamResponse(headers=_headers(Answer(b"", warnings=self._presenter.deprecation(target))))
        response.enable_chunked_encoding()
        self._watches[watch] = target.kind.plural
        self._requests.note(msgspec.structs.replace(call, status=200))
        try:
            await response.prepare(request)
            async with aclosing(watch.lines(self._clock.monotonic() + seconds)) as lines:
                async for line in lines:
                    await response.write(line)
        except ConnectionError:
            return response
        finally:
            del self._watches[watch]
        if watch.dropped:
            return _abort(request)
        await response.write_eof()
        return response


def _include(request: BaseRequest) -> str:
    return request.query.get("includeObject", "")


def _abort(request: BaseRequest) -> StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return Response(status=500)


def _json(body: bytes, request: BaseRequest) -> bytes:
    """The body as JSON, by its Content-Type."""
    media = media_type(request.headers.get("Content-Type", JSON))
    if media == YAML:
        return from_yaml(body)
    if media == PROTOBUF:
        return to_json(body)
    if media not in {JSON, ""}:
        raise unsupported_media_type()
    return body


def _denied(target: Target, call: Call) -> Refused:
    kind = target.kind
    resource = f"{kind.plural}/{call.subresource}" if call.subresource else kind.plural
    where = f'in the namespace "{call.namespace}"' if call.namespace else "at the cluster scope"
    why = f'User "{call.user}" cannot {call.verb} resource "{resource}" in API group "{kind.group}" {where}'
    return forbidden(kind, call.name, why)


def _refused(refusal: Refused) -> Answer:
    headers = {}
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
    if refusal.status == 403:
        headers["X-Content-Type-Options"] = "nosniff"
    return Answer(msgspec.json.encode(refusal.body()), refusal.status, warnings=refusal.warnings, headers=headers)


def _headers(answer: Answer) -> list[tuple[str, str]]:
    headers = [("Audit-Id", str(uuid.uuid4())), ("Content-Type", answer.media)]
    if "Cache-Control" not in answer.headers:
        headers.append(("Cache-Control", "no-cache, private"))
    headers += [("Warning", f"299 - {_quoted(text)}") for text in answer.warnings]
    headers += answer.headers.items()
    return headers


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _response(answer: Answer) -> Response:
    return Response(body=answer.body, status=answer.status, headers=CIMultiDict(_headers(answer)))
