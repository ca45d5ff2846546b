"""Whatever is sent, the answer is one of the API's."""

import contextlib
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.simulator.apiserver import FakeAPIServer, Refused
from drakit.simulator.apiserver.media import accepted, from_yaml
from drakit.simulator.apiserver.options import DeleteOptions, ListOptions, WriteOptions
from drakit.simulator.apiserver.paths import Target, parse
from drakit.simulator.apiserver.resources import Registry
from drakit.simulator.apiserver.tables import table

REGISTRY = Registry("1.37")
_NAMES = st.sampled_from(
    [
        "metadata",
        "name",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "spec",
        "status",
        "containers",
        "resourceClaims",
        "resources",
        "claims",
        "conditions",
        "phase",
        "data",
        "devices",
        "kind",
        "apiVersion",
        "taints",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "v1", "A b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_BODIES = st.dictionaries(_NAMES, _VALUES, max_size=4)
_KINDS = st.sampled_from([(kind, version) for kind in REGISTRY.kinds for version in kind.versions])


def _quietly(call: Any) -> Any:
    """Do it; a refusal with a status of HTTP is an answer too."""
    try:
        return call()
    except Refused as refused:
        json.dumps(refused.body())
        return None


@given(target=_KINDS, body=_BODIES, patch=_BODIES, named=st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_object_is_stored_shown_and_changed_or_refused(target: Any, body: Any, patch: Any, named: bool) -> None:
    kind, version = target
    server = FakeAPIServer(tls=False)
    if named and isinstance(body.setdefault("metadata", {}), dict):
        body["metadata"]["name"] = "a"
    place = Target(kind, version, "default" if kind.namespaced else None)
    objects, options = server._objects, WriteOptions()
    created = _quietly(lambda: objects.create(place, json.dumps(body).encode(), options))
    if created is not None:
        one = Target(kind, version, place.namespace, created.record.key[1])
        objects.encode_whole(kind, created.record, version)
        table(kind, [(created.record.object, None)], {}, server._clock.now())
        for how in ("merge", "strategic"):
            _quietly(lambda how=how: objects.patch(one, how, json.dumps(patch).encode(), options))
        applied = json.dumps({"apiVersion": one.api_version, "kind": kind.kind, **patch}).encode()
        _quietly(lambda: objects.apply(one, applied, WriteOptions(manager="m", force=True)))
        _quietly(lambda: objects.update(one, json.dumps(body).encode(), options))
        _quietly(lambda: objects.delete(one, DeleteOptions()))
    server.close()


@given(st.text("/abcdefghijklmnopqrstuvwxyz18.%20-", max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_path_is_a_target_or_none(path: str) -> None:
    parse(REGISTRY, "/" + path)
    parse(REGISTRY, "/apis/resource.k8s.io/v1/" + path)


@given(st.text(max_size=30), st.text(max_size=10))
@settings(max_examples=150, deadline=None)
def test_any_header_query_and_yaml(header: str, value: str) -> None:
    _quietly(lambda: accepted(header))
    _quietly(lambda: ListOptions.parse({"limit": value, "continue": value, "resourceVersionMatch": value}))
    _quietly(lambda: WriteOptions.parse({"dryRun": value, "fieldValidation": value}, header, "CreateOptions"))
    _quietly(lambda: DeleteOptions.parse({"gracePeriodSeconds": value}, header.encode("utf-8", "replace")))
    with contextlib.suppress(Refused):
        from_yaml(header.encode("utf-8", "replace"))
