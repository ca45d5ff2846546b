"""URLs, parsed, taken apart and complained about as Go's net/url package does."""

from __future__ import annotations

from typing import Any, Final

from drakit.cel.errors import EvaluationError
from drakit.cel.functions.formatting import quoted
from drakit.cel.values import EQUALITY, GO_NAMES, TYPE_NAMES, Opaque, no_overload

__all__ = ["OVERLOADS", "Url", "UrlError", "parse_request_uri"]

_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_UNRESERVED: Final = _LETTERS | _DIGITS | frozenset("-_.~")
_IN_HOST: Final = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_IN_PATH: Final = _UNRESERVED | frozenset("$&+,/:;=@")
_VALID_PATH: Final = _IN_PATH | frozenset("!'()*[]%")
_IN_FRAGMENT: Final = _UNRESERVED | frozenset("$&+,/:;=?@!()*")
_IN_USER: Final = _UNRESERVED | frozenset("$&+,;=")
_VALID_USER: Final = _UNRESERVED | frozenset(":!$&'()*+,;=%@")


class UrlError(ValueError):
    """In the words of net/url."""


def _bytes(text: str) -> str:
    """One character a byte, as Go walks strings."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _text(raw: str) -> str:
    return raw.encode("latin-1").decode("utf-8", "replace")


class Url(Opaque):
    """A parsed URL; fields hold one character a byte."""

    __slots__ = (
        "force_query",
        "fragment",
        "host",
        "omit_host",
        "opaque",
        "path",
        "query",
        "raw_path",
        "scheme",
        "user",
    )

    def __init__(self) -> None:
        self.scheme = self.opaque = self.host = self.path = self.raw_path = self.query = self.fragment = ""
        self.user: str | None = None
        self.force_query = self.omit_host = False

    def escaped_path(self) -> str:
        """The path with its escapes, as it was written when that was valid."""
        if self.raw_path and all(char in _VALID_PATH for char in self.raw_path):
            return self.raw_path
        return "*" if self.path == "*" else _escape(self.path, _IN_PATH)

    def host_and_port(self) -> tuple[str, str]:
        """Host without brackets, and port."""
        host, port = self.host, ""
        colon = host.rfind(":")
        if colon >= 0 and _is_port(host[colon:]):
            host, port = host[:colon], host[colon + 1 :]
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    def values(self) -> dict[str, list[str]]:
        """The query's values by key; malformed pairs are skipped."""
        found: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if not pair or ";" in pair:
                continue
            key, _, value = pair.partition("=")
            try:
                name, content = (_text(_unescape(part.replace("+", " "), None)) for part in (key, value))
            except UrlError:
                continue
            found.setdefault(name, []).append(content)
        return found

    def __str__(self) -> str:
        parts = [self.scheme + ":" if self.scheme else ""]
        if self.opaque:
            parts.append(self.opaque)
        else:
            named = bool(self.host) or self.user is not None
            if named or (self.scheme and not self.omit_host):
                if named or self.path:
                    parts.append("//")
                if self.user is not None:
                    parts.append(self.user + "@")
                parts.append(_escape(self.host, _IN_HOST))
            path = self.escaped_path()
            if path and not path.startswith("/") and self.host:
                parts.append("/")
            parts.append(path)
        if self.force_query or self.query:
            parts.append("?" + self.query)
        if self.fragment:
            parts.append("#" + _escape(self.fragment, _IN_FRAGMENT))
        return _text("".join(parts))


def _escape(text: str, allowed: frozenset[str]) -> str:
    return "".join(char if char in allowed else f"%{ord(char):02X}" for char in text)


def _unescape(text: str, mode: str | None) -> str:
    """Undo percent escapes; `host` and `zone` restrict what may stand there."""
    parts: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char != "%":
            if mode in ("host", "zone") and ord(char) < 128 and char not in _IN_HOST:
                raise UrlError(f"invalid character {quoted(char)} in host name")
            parts.append(char)
            position += 1
            continue
        escape = text[position : position + 3]
        if len(escape) < 3 or escape[1] not in _HEX or escape[2] not in _HEX:
            raise UrlError(f"invalid URL escape {quoted(_text(escape))}")
        value = chr(int(escape[1:], 16))
        if escape != "%25" and (
            (mode == "host" and ord(value) < 128) or (mode == "zone" and value != " " and value not in _IN_HOST)
        ):
            raise UrlError(f"invalid URL escape {quoted(escape)}")
        parts.append(value)
        position += 3
    return "".join(parts)


def _is_port(text: str) -> bool:
    return not text or (text[0] == ":" and all(char in _DIGITS for char in text[1:]))


def parse_request_uri(text: str) -> Url:
    """An absolute URL or absolute path.

    Raises:
        UrlError: It is neither.
    """
    try:
        return _parse(_bytes(text), via_request=True)
    except UrlError as error:
        raise UrlError(f"parse {quoted(text)}: {error}") from None


def _parse_url(text: str) -> Url:
    raw, _, fragment = _bytes(text).partition("#")
    shown = _text(raw)
    try:
        url = _parse(raw, via_request=False)
        if fragment:
            shown = text
            url.fragment = _unescape(fragment, None)
    except UrlError as error:
        raise UrlError(f"parse {quoted(shown)}: {error}") from None
    return url


def _scheme(raw: str) -> tuple[str, str]:
    for position, char in enumerate(raw):
        if char in _LETTERS:
            continue
        if char in _DIGITS or char in "+-.":
            if position == 0:
                break
            continue
        if char == ":":
            if position == 0:
                raise UrlError("missing protocol scheme")
            return raw[:position], raw[position + 1 :]
        break
    return "", raw


def _parse(raw: str, *, via_request: bool) -> Url:
    if any(char < " " or char == "\x7f" for char in raw):
        raise UrlError("net/url: invalid control character in URL")
    if not raw and via_request:
        raise UrlError("empty url")
    url = Url()
    if raw == "*":
        url.path = "*"
        return url
    scheme, rest = _scheme(raw)
    url.scheme = scheme.lower()
    if rest.endswith("?") and rest.count("?") == 1:
        url.force_query, rest = True, rest[:-1]
    else:
        rest, _, url.query = rest.partition("?")
    if not rest.startswith("/"):
        if url.scheme:
            url.opaque = rest
            return url
        if via_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (url.scheme or (not via_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        _authority(url, authority)
    elif url.scheme and rest.startswith("/"):
        url.omit_host = True
    url.path = _unescape(rest, None)
    url.raw_path = "" if rest == _escape(url.path, _IN_PATH) else rest
    return url


def _authority(url: Url, authority: str) -> None:
    user, at, host = authority.rpartition("@")
    url.host = _host(host)
    if not at:
        return
    if any(char not in _VALID_USER for char in user):
        raise UrlError("net/url: invalid userinfo")
    name, colon, password = user.partition(":")
    url.user = _escape(_unescape(name, None), _IN_USER)
    if colon:
        url.user += ":" + _escape(_unescape(password, None), _IN_USER)


def _host(host: str) -> str:
    if host.rfind("[") > 0:
        raise UrlError("invalid IP-literal")
    if host.startswith("["):
        return _literal(host)
    colon = host.rfind(":")
    if colon >= 0 and not _is_port(host[colon:]):
        raise UrlError(f"invalid port {quoted(_text(host[colon:]))} after host")
    return _unescape(host, "host")


def _literal(host: str) -> str:
    from drakit.cel.functions.network import parse_address

    close = host.rfind("]")
    if close < 0:
        raise UrlError("missing ']' in host")
    port = host[close + 1 :]
    if not _is_port(port):
        raise UrlError(f"invalid port {quoted(_text(port))} after host")
    name, percent, zone = host[1:close].partition("%25")
    inside = _unescape(name, "host") + (_unescape(percent + zone, "zone") if percent else "")
    try:
        family = parse_address(inside)
    except ValueError as error:
        raise UrlError(f"invalid host: {error}") from None
    if family == 4:
        raise UrlError("invalid IP-literal")
    return f"[{inside}]{port}"


def _url(text: str) -> Url:
    try:
        parse_request_uri(text)
        return _parse_url(text)
    except UrlError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except UrlError:
        return False
    return True


def _equal(left: Url, right: Any) -> bool:
    if right.__class__ is not Url:
        raise no_overload()
    return str(left) == str(right)


TYPE_NAMES[Url] = "kubernetes.URL"
GO_NAMES[Url] = "cel.URL"
EQUALITY[Url] = _equal
OVERLOADS: Final[dict[str, Any]] = {
    "string_to_url": _url,
    "url_get_scheme": lambda url: _text(url.scheme),
    "url_get_host": lambda url: _text(url.host),
    "url_get_hostname": lambda url: _text(url.host_and_port()[0]),
    "url_get_port": lambda url: _text(url.host_and_port()[1]),
    "url_get_escaped_path": lambda url: _text(url.escaped_path()),
    "url_get_query": lambda url: url.values(),
    "is_url_string": _is_url,
}
