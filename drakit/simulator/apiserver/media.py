"""Media types: what a client accepts, and bodies in YAML."""

from typing import Any

import msgspec

from drakit.simulator.apiserver.errors import bad_request, not_acceptable

__all__ = ["JSON", "YAML", "Accepted", "accepted", "accepts_discovery", "from_yaml", "media_type", "to_yaml"]

JSON = "application/json"
YAML = "application/yaml"
_SERVED = {JSON: JSON, "*/*": JSON, "application/*": JSON, YAML: YAML}


class Accepted(msgspec.Struct, frozen=True):
    """The form of an answer: `transform` is Table, PartialObjectMetadata(List) or empty."""

    media: str = JSON
    transform: str = ""


def _clauses(header: str) -> list[tuple[str, dict[str, str]]]:
    clauses = []
    for text in header.split(","):
        media, *parameters = [part.strip() for part in text.split(";")]
        pairs = (parameter.partition("=") for parameter in parameters)
        clauses.append((media.lower(), {name.strip().lower(): value.strip() for name, _, value in pairs}))
    return clauses


def accepted(header: str) -> Accepted:
    """The first form in an Accept header that is served.

    Raises:
        Refused: 406.
    """
    if not header.strip():
        return Accepted()
    for media, parameters in _clauses(header):
        if media not in _SERVED:
            continue
        transform = parameters.get("as", "")
        if transform and (
            transform not in {"Table", "PartialObjectMetadata", "PartialObjectMetadataList"}
            or parameters.get("g") != "meta.k8s.io"
            or parameters.get("v") != "v1"
        ):
            continue
        return Accepted(_SERVED[media], transform)
    raise not_acceptable()


def accepts_discovery(header: str) -> bool | None:
    """True for aggregated discovery v2, False for the plain documents, None when neither is accepted."""
    if not header.strip():
        return False
    for media, parameters in _clauses(header):
        if media not in _SERVED:
            continue
        if not parameters.get("as"):
            return False
        if (parameters.get("g"), parameters.get("v")) == ("apidiscovery.k8s.io", "v2"):
            return True
    return None


def media_type(content_type: str) -> str:
    """A Content-Type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def from_yaml(body: bytes) -> bytes:
    """A YAML (or JSON) body as compact JSON.

    Raises:
        Refused: 400.
    """
    import yaml

    try:
        value = yaml.load(body, Loader=_loader())  # noqa: S506  (a safe loader)
        return msgspec.json.encode(value)
    except (yaml.YAMLError, TypeError, ValueError, OverflowError, RecursionError) as fault:
        raise bad_request(f"error converting YAML to JSON: {fault}") from fault


def _loader() -> Any:
    """YAML's safe loader, with timestamps left as texts, as in Go."""
    import yaml

    class Loader(yaml.CSafeLoader):  # type: ignore[misc,unused-ignore]
        pass

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def to_yaml(body: bytes) -> bytes:
    """JSON as YAML with sorted keys."""
    import yaml

    text: bytes = yaml.dump(
        msgspec.json.decode(body), Dumper=yaml.CSafeDumper, sort_keys=True, encoding="utf-8", allow_unicode=True
    )
    return text
