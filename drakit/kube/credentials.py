"""Who we are and where the API server is: in-cluster files and kubeconfigs.

A `Credentials` object hands out `Grant`s: everything one request needs. The grant is loaded again every 60 s (tokens
rotate, so do CA bundles) and when the server answered 401. In-cluster files are read by our own few lines; kubeconfigs
go through `kubernetes.config`, imported only then, for its exec plugins and OIDC.
"""

import asyncio
import logging
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from drakit.kube.errors import CredentialsError
from drakit.kube.threads import in_thread

__all__ = ["SERVICE_ACCOUNT", "Credentials", "Grant", "find", "from_kubeconfig", "in_cluster"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
RELOAD_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Grant:
    """What one request needs.

    Attributes:
        server: base URL, no slash at the end.
        authorization: the header's value, or None.
        tls: context for https, or False where the user switched verification off; True for plain http.
        server_name: name to expect in the server's certificate, if not the URL's host.
        proxy: URL of an HTTP proxy, or None.
    """

    server: str
    authorization: str | None = None
    tls: ssl.SSLContext | bool = True
    server_name: str | None = None
    proxy: str | None = None


class Credentials:
    """Grants from a loader that may block (files, exec plugins); it runs in a thread of its own.

    Args:
        load: returns a fresh grant; called with True when the server has just refused the last one.
        namespace: default namespace of these credentials.
    """

    def __init__(self, load: Callable[[bool], Grant], namespace: str = "default") -> None:
        self.namespace = namespace
        self._load = load
        self._grant: Grant | None = None
        self._loaded = 0.0
        self._lock = asyncio.Lock()

    async def current(self, now: float) -> Grant:
        """The grant to use at `now` (monotonic seconds); loads it when it is older than 60 s."""
        if self._grant is not None and now - self._loaded < RELOAD_SECONDS:
            return self._grant
        async with self._lock:
            if self._grant is None or now - self._loaded >= RELOAD_SECONDS:
                await self._reload(now, refused=False)
            return self._known()

    async def renew(self, refused: Grant, now: float) -> Grant:
        """A grant newer than `refused`, which the server did not accept."""
        async with self._lock:
            if self._grant is refused:
                await self._reload(now, refused=True)
            return self._known()

    async def _reload(self, now: float, *, refused: bool) -> None:
        try:
            self._grant = await in_thread("credentials", self._load, refused)
        except CredentialsError:
            # A token file that is being replaced must not fail a request the old token still serves.
            if self._grant is None or refused:
                raise
        self._loaded = now

    def _known(self) -> Grant:
        assert self._grant is not None
        return self._grant


def find(kubeconfig: str | None = None, context: str | None = None) -> Credentials:
    """The credentials a command should use: the given kubeconfig, else in-cluster, else KUBECONFIG or ~/.kube/config.

    Raises:
        CredentialsError: none of them is there, or the one found cannot be used.
    """
    if kubeconfig:
        return from_kubeconfig(kubeconfig, context)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT / "token").exists():
        return in_cluster()
    path = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    if not any(Path(part).exists() for part in path.split(os.pathsep) if part):
        raise CredentialsError(f"no API server: not in a pod, and no kubeconfig at {path}; give --kubeconfig")
    return from_kubeconfig(None, context)


def in_cluster(directory: Path | str = SERVICE_ACCOUNT, environment: Mapping[str, str] | None = None) -> Credentials:
    """The service account's credentials, as every pod has them.

    Args:
        directory: holds token, ca.crt and namespace.
        environment: holds KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT; default: the process's own.

    Raises:
        CredentialsError: a variable or a file is missing.
    """
    env = os.environ if environment is None else environment
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise CredentialsError("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    files = Path(directory)
    contexts = _Contexts()

    def load(_refused: bool) -> Grant:
        token = _read(files / "token").strip()
        if not token:
            raise CredentialsError(f"{files / 'token'} is empty")
        return Grant(server, f"Bearer {token}", contexts.get(_read(files / "ca.crt")))

    load(False)
    namespace = files / "namespace"
    return Credentials(load, _read(namespace).strip() if namespace.exists() else "default")


def from_kubeconfig(path: Path | str | None = None, context: str | None = None) -> Credentials:
    """The credentials of a kubeconfig's current (or given) context: certificates, tokens, exec plugins, OIDC.

    Args:
        path: one file, or several joined by ":" as in KUBECONFIG; default: KUBECONFIG, else ~/.kube/config.
        context: name of the context; default: current-context.

    Raises:
        CredentialsError: a file is missing or is no kubeconfig, the context does not exist, a plugin failed.
    """
    chosen = str(path or os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    for part in chosen.split(os.pathsep):
        if path is not None and part and not Path(part).expanduser().is_file():
            raise CredentialsError(f"kubeconfig {part} is not a file")
    source = _Kubeconfig(chosen, context)
    source.load(True)
    return Credentials(source.load, source.namespace)


class _Contexts:
    """TLS contexts, made again only when their files have changed."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._context: ssl.SSLContext | None = None

    def get(self, authority: str | None, certificate: str | None = None, key: str | None = None) -> ssl.SSLContext:
        """A context that trusts `authority` (PEM text; None = the system's) and shows a client certificate (files)."""
        files = tuple(_read(Path(file)) if file else None for file in (certificate, key))
        if self._context is None or self._key != (authority, files):
            try:
                self._context = _context(authority, certificate, key)
            except (ssl.SSLError, ValueError) as error:
                raise CredentialsError(
                    f"certificates of the API server's credentials cannot be used: {error}"
                ) from error
            self._key = (authority, files)
        return self._context


def _context(authority: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority)
    # Python 3.13 turned this on; the CAs of many clusters have no key identifiers and would be refused.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if certificate:
        context.load_cert_chain(certificate, key)
    return context


class _Kubeconfig:
    """Loads one context of a kubeconfig through kubernetes.config."""

    def __init__(self, path: str, context: str | None) -> None:
        self._path, self._context = path, context
        self._contexts = _Contexts()
        self._loaded: Any = None
        self.namespace = "default"

    def load(self, refused: bool) -> Grant:
        """A grant; without `refused` only what has expired is made again (exec plugins are slow)."""
        import yaml
        from kubernetes import config

        try:
            with _logged_errors() as errors:
                if refused or self._loaded is None:
                    self._loaded = self._read_file(config)
                elif (refresh := getattr(self._loaded, "refresh_api_key_hook", None)) is not None:
                    refresh(self._loaded)
            if errors and not self._loaded.api_key and not self._loaded.cert_file:
                raise CredentialsError(f"kubeconfig {self._path}: {'; '.join(errors)}")
            return self._grant(self._loaded)
        except (config.ConfigException, yaml.YAMLError, OSError, KeyError, TypeError, AttributeError) as error:
            raise CredentialsError(f"kubeconfig {self._path}: {' '.join(str(error).split())}") from error

    def _read_file(self, config: Any) -> Any:
        loaded = SimpleNamespace(
            api_key={}, host="", ssl_ca_cert=None, cert_file=None, key_file=None, verify_ssl=True,
            tls_server_name=None, proxy=None,
        )  # fmt: skip
        contexts, current = config.list_kube_config_contexts(self._path)
        chosen = next((c for c in contexts if c["name"] == self._context), None) if self._context else current
        if chosen is None:
            raise CredentialsError(f"kubeconfig {self._path} has no context {self._context!r}")
        self.namespace = chosen["context"].get("namespace") or "default"
        config.load_kube_config(self._path, self._context, client_configuration=loaded, persist_config=False)
        return loaded

    def _grant(self, loaded: Any) -> Grant:
        if not loaded.host:
            raise CredentialsError(f"kubeconfig {self._path}: the cluster has no server")
        # The library's key was "authorization" up to 35 and is "BearerToken" since.
        authorization = loaded.api_key.get("BearerToken") or loaded.api_key.get("authorization")
        tls: ssl.SSLContext | bool = True
        if loaded.host.startswith("https"):
            authority = _read(Path(loaded.ssl_ca_cert)) if loaded.ssl_ca_cert else None
            tls = self._contexts.get(authority, loaded.cert_file, loaded.key_file)
            if not loaded.verify_ssl:
                tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        return Grant(loaded.host, authorization, tls, loaded.tls_server_name, loaded.proxy)


@contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """Collect what kubernetes.config logs in this thread: a failed exec plugin is only logged there, not raised."""
    messages: list[str] = []
    thread = threading.get_ident()

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                messages.append(record.getMessage())

    handler = Collect(logging.ERROR)
    logging.getLogger().addHandler(handler)
    try:
        yield messages
    finally:
        logging.getLogger().removeHandler(handler)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsError(f"cannot read {path}: {error}") from error
