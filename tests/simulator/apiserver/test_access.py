"""Who gets in: tokens, certificates, the files of service accounts."""

import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from drakit import kube
from drakit.simulator.apiserver import Call, FakeAPIServer

SLICES = "/apis/resource.k8s.io/v1/resourceslices"


async def test_without_or_with_unknown_credentials_nothing_is_served(http: Any) -> None:
    for header in ("", "Bearer nonsense", "Basic abc", "Bearer "):
        answer = await http("GET", SLICES, Authorization=header)
        assert (answer.status, answer.body["reason"]) == (401, "Unauthorized")
    assert (await http("GET", "/readyz", Authorization="")).status == 200


async def test_a_revoked_token_is_unknown(http: Any, server: FakeAPIServer) -> None:
    token = server.token("someone")
    assert (await http("GET", SLICES, Authorization=f"Bearer {token}")).status == 200
    server.access.revoke(user="someone")
    assert (await http("GET", SLICES, Authorization=f"Bearer {token}")).status == 401


async def test_service_account_files_rotate(server: FakeAPIServer, tmp_path: Path) -> None:
    environment = server.service_account(tmp_path, namespace="kube-system", name="driver", node="node-a")
    credentials = kube.in_cluster(directory=tmp_path, environment=environment)
    async with kube.Client(credentials) as client:
        assert await client.list(kube.RESOURCE_SLICES) is not None
        server.access.revoke(token=(tmp_path / "token").read_text())
        server.service_account(tmp_path, namespace="kube-system", name="driver", node="node-a")
        assert await client.list(kube.RESOURCE_SLICES) is not None
    users = {call.user for call in server.requests.calls if call.status == 200}
    assert users == {"system:serviceaccount:kube-system:driver"}


@pytest.mark.parametrize("certificate", [True, False])
async def test_kubeconfigs_identify_their_user(server: FakeAPIServer, certificate: bool) -> None:
    path = server.kubeconfig("jane", groups=("team",), certificate=certificate)
    async with kube.Client(kube.from_kubeconfig(path)) as client:
        await client.list(kube.RESOURCE_SLICES)
    call = server.requests.calls[-1]
    assert (call.user, call.groups) == ("jane", ("team", "system:authenticated"))
    assert path.stat().st_mode & 0o777 == 0o600
    user = yaml.safe_load(path.read_text())["users"][0]["user"]
    assert ("client-certificate-data" in user) is certificate


async def test_each_server_has_an_authority_of_its_own(session: aiohttp.ClientSession, server: FakeAPIServer) -> None:
    other = FakeAPIServer()
    context = ssl.create_default_context(cadata=other.ca.decode())
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await session.get(server.url + "/readyz", ssl=context)
    other.close()


async def test_an_authorizer_decides_and_impersonation_counts(session: aiohttp.ClientSession, bare: Any) -> None:
    async with FakeAPIServer(authorizer=lambda call: (call.user, call.verb) != ("jane", "list")) as server:
        http = bare(server, session)
        assert (await http("GET", SLICES)).status == 200
        refused = await http("GET", SLICES, Impersonate_User="jane")
    assert refused.status == 403
    assert refused.message == (
        'resourceslices.resource.k8s.io is forbidden: User "jane" cannot list resource "resourceslices" in API group '
        '"resource.k8s.io" at the cluster scope'
    )


async def test_a_broken_authorizer_is_an_internal_error(
    session: aiohttp.ClientSession, bare: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(call: Call) -> bool:
        raise ValueError(call.verb)

    async with FakeAPIServer(authorizer=broken) as server:
        answer = await bare(server, session)("GET", SLICES)
    assert (answer.status, answer.message) == (500, "Internal error occurred: list")
    assert "failed on GET" in caplog.text


async def test_plain_http_without_authentication(session: aiohttp.ClientSession) -> None:
    async with (
        FakeAPIServer(tls=False, authenticate=False) as server,
        session.get(server.url + SLICES) as response,
    ):
        assert (response.status, server.url.startswith("http://"), server.ca) == (200, True, b"")


async def test_tokens_can_be_requested_for_service_accounts(http: Any, server: FakeAPIServer) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await http("POST", accounts, {"metadata": {"name": "driver"}})
    review = await http("POST", f"{accounts}/driver/token", {"spec": {"audiences": ["x"]}})
    token = review.body["status"]["token"]
    assert (await http("GET", SLICES, Authorization=f"Bearer {token}")).status == 200
    assert server.requests.calls[-1].user == "system:serviceaccount:default:driver"


async def test_clients_learn_who_they_are_and_what_they_may(session: aiohttp.ClientSession, bare: Any) -> None:
    async with FakeAPIServer(authorizer=lambda call: call.verb != "delete") as server:
        http = bare(server, session)
        mine = await http("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert mine.body["status"]["userInfo"]["username"] == "kubernetes-admin"
        answers = []
        for verb in ("list", "delete"):
            spec = {"resourceAttributes": {"verb": verb, "group": "resource.k8s.io", "resource": "resourceslices"}}
            asked = await http("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": spec})
            answers.append((asked.status, asked.body["status"]["allowed"]))
        assert answers == [(201, True), (201, False)]
        assert (await http("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")).status == 405
