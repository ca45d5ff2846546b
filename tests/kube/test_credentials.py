"""Issue 2 'Done when': TLS, bearer token with rotation, CA file, client certificate, exec plugin, on real HTTPS."""

import asyncio
import base64
import json
import ssl
from typing import Any

import pytest
from aiohttp import web

from drakit import kube

SLICE = {"metadata": {"name": "a"}}


def ok() -> web.Response:
    return web.json_response(SLICE)


async def get(client: kube.Client) -> Any:
    return await client.get(kube.RESOURCE_SLICES, "a")


async def test_in_cluster_credentials_send_the_token_over_verified_tls(client: Any, server: Any) -> None:
    server.script(ok())
    assert (await get(client))["metadata"] == {"name": "a"}
    assert server.seen[0].headers["Authorization"] == "Bearer first-token"
    assert client.credentials.namespace == "drakit-system"


async def test_a_rotated_token_is_read_again_after_60_seconds(
    client: Any, server: Any, service_account: Any, clock: Any
) -> None:
    server.script(ok())
    await get(client)
    (service_account / "token").write_text("second-token")
    clock.time += 59
    await get(client)
    clock.time += 1
    await get(client)
    sent = [request.headers["Authorization"] for request in server.seen]
    assert sent == ["Bearer first-token", "Bearer first-token", "Bearer second-token"]


async def test_401_reads_the_token_at_once_and_repeats_even_a_write(
    client: Any, server: Any, service_account: Any, status: Any
) -> None:
    def check(request: web.Request) -> web.Response:
        return ok() if request.headers["Authorization"] == "Bearer second-token" else status(401, "Unauthorized")

    server.script(check)
    await asyncio.sleep(0)
    with pytest.raises(kube.Unauthorized):
        await get(client)
    (service_account / "token").write_text("second-token")
    await client.create(kube.RESOURCE_SLICES, SLICE)
    assert [request.method for request in server.seen] == ["GET", "GET", "POST", "POST"]


async def test_many_401_at_once_load_the_token_once(
    client: Any, server: Any, service_account: Any, status: Any
) -> None:
    def check(request: web.Request) -> web.Response:
        return ok() if request.headers["Authorization"] == "Bearer second-token" else status(401, "Unauthorized")

    server.script(ok(), check)
    await get(client)
    (service_account / "token").write_text("second-token")
    await asyncio.gather(*(get(client) for _ in range(10)))
    assert len(server.seen) <= 21


async def test_a_token_file_being_replaced_keeps_the_old_token(
    client: Any, server: Any, service_account: Any, clock: Any
) -> None:
    server.script(ok())
    await get(client)
    (service_account / "token").unlink()
    clock.time += 61
    await get(client)
    assert server.seen[-1].headers["Authorization"] == "Bearer first-token"


async def test_a_server_of_another_authority_is_refused_without_retries(
    server: Any, service_account: Any, environment: Any, other_authority: Any, clock: Any
) -> None:
    server.script(ok())
    (service_account / "ca.crt").write_bytes(other_authority.path.read_bytes())
    async with kube.Client(kube.in_cluster(service_account, environment), clock=clock) as client:
        with pytest.raises(kube.Unreachable, match="check the CA") as caught:
            await get(client)
    assert caught.value.reason == "Certificate"
    assert clock.sleeps == []


async def test_a_new_ca_bundle_is_taken_up_with_the_token(
    service_account: Any, authority: Any, other_authority: Any, start_server: Any, clock: Any
) -> None:
    old, new = await start_server(authority), await start_server(other_authority)
    new.script(ok())
    host, port = new.url.removeprefix("https://").split(":")
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    async with kube.Client(kube.in_cluster(service_account, env), clock=clock) as client:
        with pytest.raises(kube.Unreachable):
            await get(client)
        (service_account / "ca.crt").write_bytes(authority.path.read_bytes() + other_authority.path.read_bytes())
        clock.time += 60
        await get(client)
    assert old.seen == []


@pytest.mark.parametrize(
    ("missing", "words"),
    [("token", "cannot read"), ("ca.crt", "cannot read")],
)
def test_in_cluster_names_the_missing_file(service_account: Any, missing: str, words: str) -> None:
    (service_account / missing).unlink()
    env = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(kube.CredentialsError, match=words) as caught:
        kube.in_cluster(service_account, env)
    assert missing in str(caught.value)


def test_in_cluster_outside_a_pod_says_so(service_account: Any) -> None:
    with pytest.raises(kube.CredentialsError, match="not in a pod"):
        kube.in_cluster(service_account, {})


def test_an_empty_token_or_a_broken_ca_is_refused(service_account: Any) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    (service_account / "ca.crt").write_text("no certificate")
    with pytest.raises(kube.CredentialsError, match="cannot be used"):
        kube.in_cluster(service_account, env)
    (service_account / "token").write_text("")
    with pytest.raises(kube.CredentialsError, match="is empty"):
        kube.in_cluster(service_account, env)


async def test_in_cluster_brackets_an_ipv6_host(service_account: Any) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    grant = await kube.in_cluster(service_account, env).current(0.0)
    assert grant.server == "https://[fd00::1]:443"


async def test_kubeconfig_with_client_certificate_files(kubeconfig: Any, server: Any, authority: Any) -> None:
    server.script(ok())
    certificate, key = authority.issue("kubelet-user")
    path = kubeconfig({"client-certificate": str(certificate), "client-key": str(key)})
    async with kube.Client(kube.from_kubeconfig(path)) as client:
        await get(client)
        assert client.credentials.namespace == "team"
    assert server.seen[0].peer == "kubelet-user"
    assert "Authorization" not in server.seen[0].headers


async def test_kubeconfig_with_everything_inline(kubeconfig: Any, server: Any, authority: Any) -> None:
    server.script(ok())
    certificate, key = (base64.b64encode(path.read_bytes()).decode() for path in authority.issue("inline-user"))
    ca = base64.b64encode(authority.path.read_bytes()).decode()
    path = kubeconfig(
        {"client-certificate-data": certificate, "client-key-data": key},
        **{"certificate-authority": None, "certificate-authority-data": ca},
    )
    async with kube.Client(kube.from_kubeconfig(path, "there")) as client:
        await get(client)
        assert client.credentials.namespace == "default"
    assert server.seen[0].peer == "inline-user"


async def test_kubeconfig_with_a_token_and_no_verification(kubeconfig: Any, server: Any) -> None:
    server.script(ok())
    path = kubeconfig({"token": "t"}, **{"certificate-authority": None, "insecure-skip-tls-verify": True})
    async with kube.Client(kube.from_kubeconfig(path)) as client:
        await get(client)
    assert server.seen[0].headers["Authorization"] == "Bearer t"


async def test_kubeconfig_with_tls_server_name(kubeconfig: Any, server: Any) -> None:
    server.script(ok())
    path = kubeconfig(
        {"token": "t"}, **{"server": server.url.replace("127.0.0.1", "localhost"), "tls-server-name": "server"}
    )
    async with kube.Client(kube.from_kubeconfig(path)) as client:
        await get(client)
    assert len(server.seen) == 1


def credential(**status: Any) -> str:
    return json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})


async def test_exec_plugin_gives_a_token_and_is_asked_again_after_401(
    kubeconfig: Any, plugin: Any, server: Any, status: Any, tmp_path: Any
) -> None:
    tokens = tmp_path / "answer.json"
    tokens.write_text(credential(token="exec-1"))
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin(f"cat {tokens}"))}

    def check(request: web.Request) -> web.Response:
        return ok() if request.headers["Authorization"] == "Bearer exec-2" else status(401, "Unauthorized")

    server.script(check)
    credentials = kube.from_kubeconfig(kubeconfig({"exec": entry}))
    tokens.write_text(credential(token="exec-2"))
    async with kube.Client(credentials) as client:
        await get(client)
    assert [request.headers["Authorization"] for request in server.seen] == ["Bearer exec-1", "Bearer exec-2"]


async def test_exec_plugin_is_asked_again_when_its_token_has_expired(
    kubeconfig: Any, plugin: Any, server: Any, tmp_path: Any, clock: Any
) -> None:
    tokens = tmp_path / "answer.json"
    tokens.write_text(credential(token="old", expirationTimestamp="2020-01-01T00:00:00Z"))
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin(f"cat {tokens}"))}
    server.script(ok())
    async with kube.Client(kube.from_kubeconfig(kubeconfig({"exec": entry})), clock=clock) as client:
        tokens.write_text(credential(token="new"))
        clock.time += 60
        await get(client)
    assert server.seen[-1].headers["Authorization"] == "Bearer new"


async def test_exec_plugin_gives_a_client_certificate(
    kubeconfig: Any, plugin: Any, server: Any, authority: Any, tmp_path: Any
) -> None:
    certificate, key = (path.read_text() for path in authority.issue("exec-user"))
    answer = tmp_path / "answer.json"
    answer.write_text(credential(clientCertificateData=certificate, clientKeyData=key))
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin(f"cat {answer}"))}
    server.script(ok())
    async with kube.Client(kube.from_kubeconfig(kubeconfig({"exec": entry}))) as client:
        await get(client)
    assert server.seen[0].peer == "exec-user"


@pytest.mark.parametrize("script", ["echo broken >&2; exit 3", "echo no json", "echo '{}'"])
def test_a_failing_exec_plugin_is_one_clear_error(kubeconfig: Any, plugin: Any, script: str) -> None:
    entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin(script))}
    with pytest.raises(kube.CredentialsError, match=r"kubeconfig .*: .*exec: .*"):
        kube.from_kubeconfig(kubeconfig({"exec": entry}))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "kubeconfig"),
        ("a: [", "kubeconfig"),
        ("- list", "kubeconfig"),
        ("{}", "kubeconfig"),
        ("current-context: x\ncontexts: []\nclusters: []\nusers: []", "kubeconfig"),
    ],
)
def test_what_is_no_kubeconfig_is_one_clear_error(tmp_path: Any, content: str, words: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(kube.CredentialsError, match=words):
        kube.from_kubeconfig(path)


def test_a_missing_kubeconfig_or_context_is_named(tmp_path: Any, kubeconfig: Any) -> None:
    with pytest.raises(kube.CredentialsError, match="is not a file"):
        kube.from_kubeconfig(tmp_path / "nowhere")
    with pytest.raises(kube.CredentialsError, match="has no context 'elsewhere'"):
        kube.from_kubeconfig(kubeconfig({"token": "t"}), "elsewhere")


def test_find_prefers_the_given_file_then_the_environment(
    kubeconfig: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kubeconfig({"token": "t"})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with pytest.raises(kube.CredentialsError, match="give --kubeconfig"):
        kube.find()
    assert kube.find(str(path)).namespace == "team"
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none:{path}")
    assert kube.find().namespace == "team"


async def test_authorities_without_key_identifiers_are_accepted(kubeconfig: Any, server: Any) -> None:
    server.script(ok())
    grant = await kube.from_kubeconfig(kubeconfig({"token": "t"})).current(0.0)
    assert isinstance(grant.tls, ssl.SSLContext)
    assert not grant.tls.verify_flags & ssl.VERIFY_X509_STRICT
