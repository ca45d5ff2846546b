"""Server-side apply and managedFields."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.simulator.apiserver import Refused
from drakit.simulator.apiserver.apply import apply
from drakit.simulator.apiserver.ownership import Owner, Writer, read_owners, write_owners
from drakit.simulator.apiserver.resources import PODS, Registry
from drakit.simulator.apiserver.schema import shape_of

POD = shape_of(PODS, "v1", "1.37")
CLAIM = shape_of(Registry("1.37").by_plural("resourceclaims"), "v1", "1.37")
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def _writer(name: str) -> Writer:
    return Writer(name, "Apply", "v1", "", "2026-01-01T00:00:00Z")


def _applied(live: Any, config: Any, name: str, *, force: bool = False, shape: Any = POD) -> dict[str, Any]:
    merged, owners = apply(live, config, shape, _writer(name), force=force)
    return {**merged, "metadata": {**merged.get("metadata", {}), "managedFields": owners}}


def test_what_an_applier_no_longer_sends_goes() -> None:
    live = _applied(None, {"metadata": {"labels": {"a": "1", "b": "2"}}}, "m")
    live = _applied(live, {"metadata": {"labels": {"a": "1"}}}, "m")
    assert live["metadata"]["labels"] == {"a": "1"}


def test_what_another_owns_too_stays() -> None:
    live = _applied(None, {"metadata": {"labels": {"a": "1", "b": "2"}}}, "m")
    live = _applied(live, {"metadata": {"labels": {"b": "2"}}}, "n")
    live = _applied(live, {"metadata": {"labels": {"a": "1"}}}, "m")
    assert live["metadata"]["labels"] == {"a": "1", "b": "2"}


def test_another_value_conflicts_unless_forced() -> None:
    live = _applied(None, {"metadata": {"labels": {"a": "1"}}}, "m")
    with pytest.raises(Refused) as refused:
        _applied(live, {"metadata": {"labels": {"a": "2"}}}, "n")
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "m": .metadata.labels.a'
    live = _applied(live, {"metadata": {"labels": {"a": "2"}}}, "n", force=True)
    assert live["metadata"]["labels"] == {"a": "2"}
    assert [entry["manager"] for entry in live["metadata"]["managedFields"]] == ["n"]


def test_several_conflicts_are_listed() -> None:
    live = _applied(None, {"metadata": {"labels": {"a": "1", "b": "1"}}}, "m")
    with pytest.raises(Refused) as refused:
        _applied(live, {"metadata": {"labels": {"a": "2", "b": "2"}}}, "n")
    assert refused.value.message.startswith(
        'Apply failed with 2 conflicts: conflicts with "m":\n- .metadata.labels.a\n'
    )


def test_keyed_lists_are_shared_item_by_item() -> None:
    def devices(device: str) -> dict[str, Any]:
        item = {"driver": "d", "pool": "p", "device": device, "data": {"a": 1}}
        return {"status": {"devices": [item]}}

    live = _applied(None, devices("a"), "m", shape=CLAIM)
    live = _applied(live, devices("b"), "n", shape=CLAIM)
    assert [item["device"] for item in live["status"]["devices"]] == ["a", "b"]
    live = _applied(live, {"status": {"devices": []}}, "m", shape=CLAIM)
    assert [item["device"] for item in live["status"]["devices"]] == ["b"]


def test_sets_are_joined() -> None:
    live = _applied(None, {"metadata": {"finalizers": ["a"]}}, "m")
    live = _applied(live, {"metadata": {"finalizers": ["b"]}}, "n")
    assert live["metadata"]["finalizers"] == ["a", "b"]
    live = _applied(live, {"metadata": {"labels": {"x": "y"}}}, "m")
    assert live["metadata"]["finalizers"] == ["b"]


def test_atomic_lists_have_one_owner() -> None:
    live = _applied(None, {"spec": {"tolerations": [{"key": "a"}]}}, "m")
    with pytest.raises(Refused, match=r"conflict with \"m\": .spec.tolerations"):
        _applied(live, {"spec": {"tolerations": [{"key": "b"}]}}, "n")


_LABELS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4)


@given(st.lists(st.tuples(st.sampled_from("mno"), _LABELS), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_with_force_everybody_last_said_value_holds(steps: list[tuple[str, dict[str, str]]]) -> None:
    live: dict[str, Any] | None = None
    said: dict[str, dict[str, str]] = {}
    for name, labels in steps:
        live = _applied(live, {"metadata": {"labels": labels}} if labels else {}, name, force=True)
        for other in said.values():
            for key in labels:
                if other.get(key, labels[key]) != labels[key]:
                    del other[key]
        said[name] = dict(labels)
    assert live is not None
    expected = {key: value for labels in said.values() for key, value in labels.items()}
    assert (live["metadata"].get("labels") or {}) == expected


@given(
    st.sets(
        st.lists(st.sampled_from(["f:a", "f:b", 'k:{"x":"1"}', "v:2"]), min_size=1, max_size=4).map(tuple), max_size=8
    )
)
@settings(max_examples=100, deadline=None)
def test_owned_fields_survive_their_notation(fields: set[tuple[str, ...]]) -> None:
    entries = write_owners([Owner(_writer("m"), set(fields))])
    read = read_owners(entries)
    assert (read[0].fields if read else set()) == fields


async def test_an_update_takes_what_it_changes(http: Any) -> None:
    apply_type = {"Content_Type": "application/apply-patch+yaml"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1", "b": "1"}}
    assert (await http("PATCH", f"{CONFIG_MAPS}/m?fieldManager=app", config, **apply_type)).status == 201
    await http(
        "PATCH",
        f"{CONFIG_MAPS}/m",
        {"data": {"a": "2"}},
        Content_Type="application/merge-patch+json",
        User_Agent="edit/1",
    )
    refused = await http("PATCH", f"{CONFIG_MAPS}/m?fieldManager=app", config, **apply_type)
    assert refused.status == 409
    assert 'conflict with "edit" using v1 at ' in refused.message
    forced = await http("PATCH", f"{CONFIG_MAPS}/m?fieldManager=app&force=true", config, **apply_type)
    assert [entry["manager"] for entry in forced.body["metadata"]["managedFields"]] == ["app"]


async def test_apply_of_yaml_and_what_it_refuses(http: Any) -> None:
    kind = {"Content_Type": "application/apply-patch+yaml"}
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '1'}\n"
    assert (await http("PATCH", f"{CONFIG_MAPS}/m?fieldManager=app", body, **kind)).status == 201
    assert (await http("PATCH", f"{CONFIG_MAPS}/m", body, **kind)).status == 422
    assert (await http("PATCH", f"{CONFIG_MAPS}/m?fieldManager=app", b"a: [", **kind)).status == 400
    other = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
    assert (await http("PATCH", f"{CONFIG_MAPS}/m?fieldManager=app", other, **kind)).status == 400
    status = "/api/v1/namespaces/default/pods/none/status?fieldManager=app"
    assert (await http("PATCH", status, b"apiVersion: v1\nkind: Pod\nmetadata: {name: none}\n", **kind)).status == 404
