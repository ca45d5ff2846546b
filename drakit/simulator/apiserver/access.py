"""Who may talk to the server: client certificates, bearer tokens, and the files that carry them.

RBAC is not modelled: whoever is known may do everything, unless the test passes an authorizer.
"""

import base64
import hashlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from drakit.simulator.apiserver.tls import Authority

__all__ = ["ADMIN", "NODE_NAME", "Access", "User", "service_account_user"]


class User(msgspec.Struct, frozen=True):
    """A known client."""

    name: str
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


NODE_NAME = "authentication.kubernetes.io/node-name"
"""The extra of a user whose token is bound to a node."""
ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))


def service_account_user(namespace: str, name: str, node: str = "") -> User:
    """The user of a service account; `node` binds its token to a node, as those of pods are."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    extra: dict[str, tuple[str, ...]] = {NODE_NAME: (node,)} if node else {}
    return User(f"system:serviceaccount:{namespace}:{name}", groups, extra)


class Access:
    """Tokens and certificates of one server."""

    def __init__(self, authority: "Authority | None") -> None:
        """Sign client certificates with `authority`; None when the server speaks plain HTTP."""
        self._authority = authority
        self._tokens: dict[str, User] = {}

    def issue(self, user: User) -> str:
        """A new token of `user`; older ones stay valid until they are revoked."""
        token = secrets.token_urlsafe(24)
        self._tokens[hashlib.sha256(token.encode()).hexdigest()] = user
        return token

    def revoke(self, *, token: str | None = None, user: str | None = None) -> None:
        """Make one token, or all of a user, unknown: requests with them get 401."""
        digest = hashlib.sha256(token.encode()).hexdigest() if token is not None else None
        self._tokens = {known: owner for known, owner in self._tokens.items() if known != digest and owner.name != user}

    def identify(self, authorization: str | None, peer: dict[str, Any] | None) -> User | None:
        """The user behind a bearer token or a client certificate, or None."""
        if peer:
            subject = [pair for part in peer.get("subject", ()) for pair in part]
            names = [value for key, value in subject if key == "commonName"]
            groups = tuple(value for key, value in subject if key == "organizationName")
            if names:
                return User(names[0], (*groups, "system:authenticated"))
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        return self._tokens.get(hashlib.sha256(token.strip().encode()).hexdigest())

    def kubeconfig(self, url: str, user: User, *, namespace: str, certificate: bool) -> dict[str, Any]:
        """A kubeconfig for `user`, everything embedded; with a client certificate or with a new token."""
        cluster: dict[str, Any] = {"server": url}
        credentials: dict[str, Any] = {}
        if self._authority is not None:
            cluster["certificate-authority-data"] = _embedded(self._authority.certificate)
        if certificate and self._authority is not None:
            organizations = tuple(group for group in user.groups if group != "system:authenticated")
            pair = self._authority.client(user.name, organizations)
            credentials["client-certificate-data"] = _embedded(pair.certificate)
            credentials["client-key-data"] = _embedded(pair.key)
        else:
            credentials["token"] = self.issue(user)
        context = {"cluster": "drakit", "user": user.name, "namespace": namespace}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "drakit", "cluster": cluster}],
            "users": [{"name": user.name, "user": credentials}],
            "contexts": [{"name": "drakit", "context": context}],
            "current-context": "drakit",
        }

    def write_service_account(self, directory: Path, namespace: str, user: User) -> str:
        """The files of /var/run/secrets/kubernetes.io/serviceaccount in `directory`; returns the token."""
        directory.mkdir(parents=True, exist_ok=True)
        token = self.issue(user)
        (directory / "token").write_text(token)
        (directory / "namespace").write_text(namespace)
        if self._authority is not None:
            (directory / "ca.crt").write_bytes(self._authority.certificate)
        return token


def _embedded(data: bytes) -> str:
    return base64.b64encode(data).decode()
