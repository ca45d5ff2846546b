"""What clients ask about themselves: who they are, what they may do, a token for an account. Nothing is stored."""

from collections.abc import Callable
from typing import Any

import msgspec

from drakit.simulator.apiserver.access import User
from drakit.simulator.apiserver.faults import Call

__all__ = ["review", "token_review"]


def review(
    kind: str, body: dict[str, Any], user: User, call: Call, authorizer: Callable[[Call], bool] | None
) -> dict[str, Any]:
    """The answer to a SelfSubjectReview or a SelfSubjectAccessReview."""
    if kind == "SelfSubjectReview":
        info: dict[str, Any] = {"username": user.name, "groups": list(user.groups)}
        if user.extra:
            info["extra"] = {name: list(values) for name, values in user.extra.items()}
        return _answer("authentication.k8s.io/v1", kind, status={"userInfo": info})
    spec = body.get("spec") or {}
    asked = spec.get("resourceAttributes")
    allowed = authorizer is None or asked is None or authorizer(_call(call, asked))
    status = {"allowed": allowed, "reason": "RBAC is not modelled" if authorizer is None else "the authorizer says so"}
    return _answer("authorization.k8s.io/v1", kind, spec=spec, status=status)


def token_review(namespace: str, name: str, spec: dict[str, Any], token: str) -> dict[str, Any]:
    """The answer to a TokenRequest; such tokens stay valid until they are revoked."""
    shown = {"audiences": [], "expirationSeconds": 3600, **spec}
    status = {"token": token, "expirationTimestamp": "2099-01-01T00:00:00Z"}
    answer = _answer("authentication.k8s.io/v1", "TokenRequest", spec=shown, status=status)
    return {**answer, "metadata": {"name": name, "namespace": namespace}}


def _call(call: Call, asked: dict[str, Any]) -> Call:
    fields = {
        field: asked.get(field) or "" for field in ("verb", "resource", "subresource", "namespace", "name", "group")
    }
    return msgspec.structs.replace(call, **fields)


def _answer(api_version: str, kind: str, **parts: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": api_version, "metadata": {}, **parts}
