"""DESIGN 'The API client (kube)': compact bodies, pages, what is retried, version fallback."""

import asyncio
import json
import threading
from typing import Any

import msgspec
import pytest
from aiohttp import web

from drakit import kube
from drakit.kube import errors
from drakit.kube.threads import in_thread

NOT_SERVED = {"details": {}, "message": "the server could not find the requested resource"}


def answer(body: Any, code: int = 200, **headers: str) -> web.Response:
    return web.json_response(body, status=code, headers=headers)


async def test_bodies_are_compact_json(client: Any, server: Any) -> None:
    server.script(answer({"metadata": {"name": "c"}}, 201))
    body = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"devices": {"config": [{"a": 1, "b": "ü"}]}}}
    await client.create(kube.RESOURCE_CLAIMS, body)
    sent = server.seen[0]
    assert b" " not in sent.body
    assert sent.headers["Content-Type"] == "application/json"
    assert sent.path == "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
    assert sent.json()["apiVersion"] == "resource.k8s.io/v1"
    assert sent.json()["kind"] == "ResourceClaim"


async def test_paths_of_all_verbs(client: Any, server: Any) -> None:
    server.script(answer({"metadata": {"name": "c"}}))
    claim = {"metadata": {"name": "c", "namespace": "n"}}
    await client.get(kube.NODES, "node-1")
    await client.update(kube.RESOURCE_CLAIMS, claim, subresource="status")
    await client.patch(kube.RESOURCE_CLAIMS, "c", {"status": {}}, namespace="n", subresource="status")
    await client.delete(kube.RESOURCE_CLAIMS, "c", namespace="n")
    await client.delete_collection(kube.RESOURCE_SLICES, field_selector="spec.driver=d")
    seen = [(request.method, request.path) for request in server.seen]
    assert seen == [
        ("GET", "/api/v1/nodes/node-1"),
        ("PUT", "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c/status"),
        ("PATCH", "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c/status"),
        ("DELETE", "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c"),
        ("DELETE", "/apis/resource.k8s.io/v1/resourceslices"),
    ]
    assert server.seen[2].headers["Content-Type"] == "application/merge-patch+json"
    assert server.seen[4].query == {"fieldSelector": "spec.driver=d"}
    assert server.seen[3].body == b""


async def test_names_are_quoted_and_namespaces_of_cluster_objects_refused(client: Any, server: Any) -> None:
    server.script(answer({}))
    await client.get(kube.PODS, "../x", namespace="a/b")
    assert server.seen[0].path in {"/api/v1/namespaces/a%2Fb/pods/..%2Fx", "/api/v1/namespaces/a/b/pods/../x"}
    with pytest.raises(ValueError, match="have no namespace"):
        await client.get(kube.NODES, "x", namespace="n")


async def test_delete_sends_preconditions_in_the_body(client: Any, server: Any) -> None:
    server.script(answer({}))
    await client.delete(kube.RESOURCE_SLICES, "s", uid="u", resource_version="7")
    assert server.seen[0].json() == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
    }


async def test_server_side_apply_names_kind_and_version(client: Any, server: Any) -> None:
    server.script(answer({}))
    query = {"fieldManager": "drakit", "force": "true"}
    await client.patch(
        kube.RESOURCE_CLAIMS, "c", {"metadata": {}}, namespace="n", content_type=kube.APPLY_PATCH, query=query
    )
    assert server.seen[0].query == query
    assert server.seen[0].json()["kind"] == "ResourceClaim"


async def test_list_follows_continue_tokens(client: Any, server: Any) -> None:
    def page(request: web.Request) -> web.Response:
        token = request.query.get("continue", "")
        more = {"": "t1", "t1": "t2", "t2": ""}[token]
        return answer(
            {"metadata": {"resourceVersion": "9", "continue": more}, "items": [{"metadata": {"name": token or "t0"}}]}
        )

    server.script(page)
    found = await client.list(kube.RESOURCE_SLICES, field_selector="spec.driver=d", page_size=1)
    assert [item["metadata"]["name"] for item in found["items"]] == ["t0", "t1", "t2"]
    assert {item["kind"] for item in found["items"]} == {"ResourceSlice"}
    assert found["metadata"]["resourceVersion"] == "9"
    assert all(request.query["limit"] == "1" for request in server.seen)
    assert all(request.query["fieldSelector"] == "spec.driver=d" for request in server.seen)


async def test_an_expired_continue_token_falls_back_to_one_whole_list(client: Any, server: Any, status: Any) -> None:
    def page(request: web.Request) -> web.Response:
        if "continue" in request.query:
            return status(410, "Expired")  # type: ignore[no-any-return]
        if "limit" in request.query:
            return answer(
                {"metadata": {"resourceVersion": "1", "continue": "t"}, "items": [{"metadata": {"name": "old"}}]}
            )
        return answer({"metadata": {"resourceVersion": "2"}, "items": [{"metadata": {"name": "new"}}]})

    server.script(page)
    found = await client.list(kube.RESOURCE_SLICES)
    assert [item["metadata"]["name"] for item in found["items"]] == ["new"]


@pytest.mark.parametrize("code", [500, 502, 503, 504])
async def test_reads_are_repeated_after_server_errors(
    client: Any, server: Any, clock: Any, status: Any, code: int
) -> None:
    server.script(status(code, "InternalError"), status(code, "InternalError"), answer({"metadata": {"name": "a"}}))
    await client.get(kube.RESOURCE_SLICES, "a")
    assert clock.sleeps == [0.1, 0.2]


@pytest.mark.parametrize("code", [500, 503, 504])
async def test_writes_are_not_repeated_when_their_outcome_is_unknown(
    client: Any, server: Any, clock: Any, status: Any, code: int
) -> None:
    server.script(status(code, "InternalError"))
    with pytest.raises(kube.ServerError):
        await client.create(kube.RESOURCE_SLICES, {"metadata": {"generateName": "x-"}})
    assert len(server.seen) == 1
    assert clock.sleeps == []


async def test_429_obeys_retry_after_for_every_method(client: Any, server: Any, clock: Any) -> None:
    busy = web.Response(status=429, headers={"Retry-After": "7"}, body=b"busy")
    server.script(busy, answer({"metadata": {}}, 201))
    await client.create(kube.RESOURCE_SLICES, {"metadata": {"generateName": "x-"}})
    assert clock.sleeps == [7.1]


async def test_the_attempts_are_bounded(client: Any, server: Any, clock: Any) -> None:
    server.script(web.Response(status=429, body=b"busy"))
    with pytest.raises(kube.TooManyRequests):
        await client.get(kube.RESOURCE_SLICES, "a")
    assert len(server.seen) == 5
    assert clock.sleeps == [0.1, 0.2, 0.4, 0.8]


async def test_a_refused_connection_is_repeated_for_writes_too(
    service_account: Any, clock: Any, unused_tcp_port: int
) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(unused_tcp_port)}
    async with kube.Client(kube.in_cluster(service_account, env), clock=clock) as client:
        with pytest.raises(kube.Unreachable) as caught:
            await client.create(kube.RESOURCE_SLICES, {"metadata": {}})
    assert len(clock.sleeps) == 4
    assert caught.value.status == 0


async def test_a_lost_answer_is_unanswered_for_a_write_and_repeated_for_a_read(
    client: Any, server: Any, clock: Any
) -> None:
    def drop(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    server.script(drop)
    with pytest.raises(kube.Unanswered):
        await client.create(kube.RESOURCE_SLICES, {"metadata": {}})
    assert len(server.seen) == 1
    server.script(drop, answer({"metadata": {"name": "a"}}))
    assert (await client.get(kube.RESOURCE_SLICES, "a"))["metadata"]["name"] == "a"


async def test_a_silent_server_is_a_timeout(service_account: Any, environment: Any, server: Any, clock: Any) -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    server.handler = hang
    credentials = kube.in_cluster(service_account, environment)
    async with kube.Client(credentials, clock=clock, attempts=1, timeout=0.1) as client:
        with pytest.raises(kube.Unanswered, match="Timeout"):
            await client.get(kube.RESOURCE_SLICES, "a")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, kube.ApiError), (403, kube.Forbidden), (404, kube.NotFound), (405, kube.ApiError),
        (409, kube.Conflict), (410, kube.Gone), (422, kube.Invalid),
    ],
)  # fmt: skip
async def test_errors_carry_the_status_fields(client: Any, server: Any, status: Any, code: int, kind: type) -> None:
    causes = [{"reason": "FieldValueInvalid", "field": "spec.x", "message": "bad"}]
    server.script(status(code, "Reason", "words", name="n", causes=causes))
    with pytest.raises(kube.ApiError) as caught:
        await client.get(kube.RESOURCE_SLICES, "n")
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (code, "Reason", "words")
    assert error.causes == (kube.Cause("FieldValueInvalid", "spec.x", "bad"),)
    assert error.terminal is (code not in {409, 410})
    assert len(server.seen) == 1


async def test_a_long_message_is_cut_when_printed_not_in_its_field(client: Any, server: Any, status: Any) -> None:
    server.script(status(422, "Invalid", "e" * 500_000, name="n"))
    with pytest.raises(kube.Invalid) as caught:
        await client.get(kube.RESOURCE_SLICES, "n")
    assert len(str(caught.value)) < 2000
    assert len(caught.value.message) == 500_000


async def test_version_fallback_goes_to_v1beta1_and_stays(client: Any, server: Any, status: Any) -> None:
    def serve(request: web.Request) -> web.Response:
        if "/v1beta1/" not in request.path:
            return status(404, "NotFound", **NOT_SERVED)  # type: ignore[no-any-return]
        device = {"name": "d", "basic": {"attributes": {"a": {"int": 1}}, "future": {"x": 1}}}
        spec = {"driver": "x", "nodeName": "", "allNodes": True, "devices": [device], "later": [1]}
        return answer(
            {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
        )

    server.script(serve)
    found = await client.get(kube.RESOURCE_SLICES, "s")
    assert found["apiVersion"] == "resource.k8s.io/v1"
    assert found["spec"] == {
        "driver": "x",
        "allNodes": True,
        "devices": [{"name": "d", "attributes": {"a": {"int": 1}}, "future": {"x": 1}}],
        "later": [1],
    }
    await client.update(kube.RESOURCE_SLICES, found)
    assert [request.path.split("/")[3] for request in server.seen] == ["v1", "v1beta2", "v1beta1", "v1beta1"]
    sent = server.seen[-1].json()
    assert sent["apiVersion"] == "resource.k8s.io/v1beta1"
    assert sent["spec"]["devices"] == [{"name": "d", "basic": {"attributes": {"a": {"int": 1}}, "future": {"x": 1}}}]


async def test_version_fallback_is_cyclic_when_a_cluster_changes(client: Any, server: Any, status: Any) -> None:
    served = {"v1beta2"}

    def serve(request: web.Request) -> web.Response:
        if request.path.split("/")[3] in served:
            return answer({"metadata": {"name": "s"}})
        return web.Response(status=404, body=b"404 page not found\n", content_type="text/plain")

    server.script(serve)
    await client.get(kube.RESOURCE_SLICES, "s")
    served.clear()
    served.add("v1")
    await client.get(kube.RESOURCE_SLICES, "s")
    await client.get(kube.RESOURCE_SLICES, "s")
    seen = [request.path.split("/")[3] for request in server.seen]
    assert seen == ["v1", "v1beta2", "v1beta2", "v1beta1", "v1", "v1"]


async def test_a_missing_object_costs_one_request(client: Any, server: Any, status: Any) -> None:
    server.script(status(404, "NotFound", name="s", kind="resourceslices"))
    with pytest.raises(kube.NotFound):
        await client.get(kube.RESOURCE_SLICES, "s")
    assert len(server.seen) == 1


async def test_a_cluster_without_the_group_says_so(client: Any, server: Any, status: Any) -> None:
    server.script(status(404, "NotFound", **NOT_SERVED))
    with pytest.raises(kube.NotServed, match="serves resourceslices in none of") as caught:
        await client.list(kube.RESOURCE_SLICES)
    assert not isinstance(caught.value, kube.NotFound)
    assert len(server.seen) == 3


async def test_only_404_advances_the_version(client: Any, server: Any, status: Any) -> None:
    server.script(status(403, "Forbidden"))
    with pytest.raises(kube.Forbidden):
        await client.list(kube.RESOURCE_SLICES)
    assert len(server.seen) == 1


async def test_a_closed_client_says_how_to_open_it(service_account: Any, environment: Any) -> None:
    client = kube.Client(kube.in_cluster(service_account, environment))
    with pytest.raises(RuntimeError, match="async with"):
        await client.get(kube.NODES, "n")


async def test_a_status_answer_stays_a_status(client: Any, server: Any) -> None:
    server.script(answer({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
    assert (await client.delete(kube.PODS, "p", namespace="n"))["kind"] == "Status"


async def test_raw_requests_return_the_bytes(client: Any, server: Any) -> None:
    server.script(web.Response(body=b'{"gitVersion": "v1.37.0"}'))
    assert msgspec.json.decode(await client.request("GET", "/version")) == {"gitVersion": "v1.37.0"}
    await client.request("POST", "/x", body=b'{ "kept": 1 }')
    assert server.seen[1].body == b'{ "kept": 1 }'


async def test_the_server_name_is_verified(kubeconfig: Any, server: Any, clock: Any) -> None:
    server.script(answer({}))
    path = kubeconfig({"token": "t"}, **{"tls-server-name": "someone-else"})
    async with kube.Client(kube.from_kubeconfig(path), clock=clock) as client:
        with pytest.raises(kube.Unreachable):
            await client.get(kube.NODES, "n")
    assert server.seen == []


async def test_host_names_are_resolved_and_unknown_ones_are_unreachable(
    kubeconfig: Any, server: Any, clock: Any
) -> None:
    server.script(answer({}))
    local = server.url.replace("127.0.0.1", "localhost")
    async with kube.Client(
        kube.from_kubeconfig(kubeconfig({"token": "t"}, server=local, **{"tls-server-name": "server"}))
    ) as client:
        await client.get(kube.NODES, "n")
    path = kubeconfig({"token": "t"}, server="https://nowhere.invalid:1")
    async with kube.Client(kube.from_kubeconfig(path), clock=clock, attempts=1) as client:
        with pytest.raises(kube.Unreachable):
            await client.get(kube.NODES, "n")


def test_retry_after_may_be_a_date() -> None:
    assert errors.from_answer(429, b"", "Wed, 21 Oct 2015 07:28:00 GMT").retry_after == 0.0
    assert errors.from_answer(429, b"", "soon").retry_after is None
    body = json.dumps({"kind": "Status", "details": {"retryAfterSeconds": 3}}).encode()
    assert errors.from_answer(429, body).retry_after == 3.0


async def test_a_claim_goes_there_and_back_through_v1beta1_whole(client: Any, server: Any) -> None:
    stored = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "a",
                        "deviceClassName": "cls",
                        "count": 2,
                        "allocationMode": "ExactCount",
                        "later": {"x": 1},
                    },
                    {"name": "b", "deviceClassName": "", "firstAvailable": [{"name": "s", "deviceClassName": "cls"}]},
                ],
                "later": [1],
            },
            "later": True,
        },
        "status": {"later": "x"},
    }

    def serve(request: web.Request) -> web.Response:
        return answer(stored) if "/v1beta1/" in request.path else web.Response(status=404)

    server.script(serve)
    found = await client.get(kube.RESOURCE_CLAIMS, "c", namespace="n")
    assert found["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
    assert "exactly" not in found["spec"]["devices"]["requests"][1]
    await client.update(kube.RESOURCE_CLAIMS, found, subresource="status")
    assert server.seen[-1].json() == stored


async def test_blocking_calls_leave_no_thread_that_holds_the_exit(client: Any, server: Any) -> None:
    server.script(answer({}))
    await client.get(kube.NODES, "n")
    assert not [t for t in threading.enumerate() if t.name in {"credentials", "resolver"} and not t.daemon]


async def test_threads_hand_on_results_and_errors() -> None:
    def fail() -> None:
        raise LookupError("inside")

    assert await in_thread("t", lambda a, b: a + b, 1, 2) == 3
    with pytest.raises(LookupError, match="inside"):
        await in_thread("t", fail)
    started, hold = threading.Event(), threading.Event()

    def wait() -> None:
        started.set()
        hold.wait()

    task = asyncio.create_task(in_thread("t", wait))
    while not started.is_set():  # noqa: ASYNC110 - a thread sets it
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    hold.set()
    await asyncio.sleep(0.01)
