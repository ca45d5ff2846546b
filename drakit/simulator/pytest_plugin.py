"""Fixtures of the simulated cluster. Heavy rooms are imported inside the fixtures: every pytest run loads this file.

`api_server` is a running `FakeAPIServer`, `kubeconfig` the path of an administrator's kubeconfig for it, `cluster` a
whole `Cluster` with an API server of its own. All need pytest-asyncio (any mode); they live in the test's event loop.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drakit.simulator.apiserver import FakeAPIServer
    from drakit.simulator.cluster import Cluster

__all__ = ["api_server", "cluster", "kubeconfig"]


def _async_fixture(function: Any) -> Any:
    """A fixture of pytest-asyncio; where that is missing, one that says so when a test asks for it."""
    if importlib.util.find_spec("pytest_asyncio") is not None:
        import pytest_asyncio

        return pytest_asyncio.fixture(function)

    def unavailable() -> None:
        pytest.fail(f"the fixture {function.__name__} needs pytest-asyncio: pip install pytest-asyncio")

    unavailable.__name__ = function.__name__
    unavailable.__doc__ = function.__doc__
    return pytest.fixture(unavailable)


@_async_fixture  # type: ignore[untyped-decorator, unused-ignore]
async def api_server() -> AsyncIterator[FakeAPIServer]:
    """A fake API server of the newest Kubernetes version over HTTPS; nothing in it but the usual namespaces."""
    from drakit.simulator.apiserver import FakeAPIServer

    async with FakeAPIServer() as server:
        yield server


@_async_fixture  # type: ignore[untyped-decorator, unused-ignore]
async def cluster() -> AsyncIterator[Cluster]:
    """A cluster with one node, `n1`, whose kubelet is in a hurry; no driver runs yet (`cluster.start_driver`)."""
    from drakit.simulator.cluster import Cluster

    async with Cluster() as running:
        yield running


@pytest.fixture
def kubeconfig(api_server: FakeAPIServer) -> Path:
    """The path of a kubeconfig with an administrator's client certificate for `api_server`."""
    return api_server.kubeconfig()
