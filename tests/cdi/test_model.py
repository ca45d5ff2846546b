"""CDI files as values: every field of 1.1.0 survives, and both directions agree with an independent description."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit import cdi

EVERYTHING: dict[str, Any] = {
    "cdiVersion": "1.1.0",
    "kind": "vendor.com/class",
    "annotations": {"vendor.com/note": "spec"},
    "devices": [
        {
            "name": "dev-0",
            "annotations": {"note": "device"},
            "containerEdits": {
                "env": ["A=1"],
                "deviceNodes": [
                    {
                        "path": "/dev/c",
                        "hostPath": "/dev/h",
                        "type": "c",
                        "major": 10,
                        "minor": 232,
                        "fileMode": 438,
                        "permissions": "rw",
                        "uid": 1000,
                        "gid": 0,
                    }
                ],
                "netDevices": [{"hostInterfaceName": "enp1s0", "name": "net1"}],
                "hooks": [
                    {"hookName": "createContainer", "path": "/bin/h", "args": ["h"], "env": ["B=2"], "timeout": 5}
                ],
                "mounts": [
                    {"hostPath": "/lib/x", "containerPath": "/x", "options": ["ro", "bind"], "type": "bind"},
                ],
                "intelRdt": {
                    "closID": "class",
                    "l3CacheSchema": "L3:0=f",
                    "memBwSchema": "MB:0=20",
                    "schemata": ["L2:0=f"],
                    "enableMonitoring": True,
                },
                "additionalGids": [5, 6],
            },
        }
    ],
    "containerEdits": {"env": ["SPEC=1"]},
}


def test_every_field_of_1_1_0_survives() -> None:
    spec = cdi.parse(json.dumps(EVERYTHING).encode())
    assert json.loads(cdi.encode(spec)) == EVERYTHING
    assert cdi.validate(spec) == []


def test_files_are_indented_in_the_order_of_the_specification() -> None:
    text = cdi.encode(cdi.Spec("0.3.0", "a/b", devices=(cdi.Device("d", {}, cdi.ContainerEdits(env=("A=1",))),)))
    assert text.startswith(b'{\n  "cdiVersion": "0.3.0",\n  "kind": "a/b",\n  "devices": [\n')
    assert not text.endswith(b"\n")
    assert b"annotations" not in text
    assert b"mounts" not in text


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=40, deadline=None)
@given(data=st.data())
def test_valid_specs_round_trip_and_fit_the_schema(
    data: st.DataObject, specs: st.SearchStrategy[cdi.Spec], schema: jsonschema.Draft202012Validator
) -> None:
    spec = data.draw(specs)
    text = cdi.encode(spec)
    assert cdi.parse(text) == spec
    assert cdi.validate(spec) == []
    schema.validate(json.loads(text))


@pytest.mark.parametrize("field", ["env", "deviceNodes", "netDevices", "hooks", "mounts", "intelRdt", "additionalGids"])
def test_each_edit_alone_is_an_edit(field: str) -> None:
    content = EVERYTHING["devices"][0]["containerEdits"][field]
    value = {"cdiVersion": "1.1.0", "kind": "a/b", "devices": [{"name": "d", "containerEdits": {field: content}}]}
    assert cdi.decode(value).devices[0].container_edits
    assert not cdi.ContainerEdits()


def test_merge_keeps_order_and_the_last_rdt() -> None:
    first = cdi.ContainerEdits(env=("A=1",), intel_rdt=cdi.IntelRdt("one"), additional_gids=(1,))
    last = cdi.ContainerEdits(env=("B=2",), intel_rdt=cdi.IntelRdt("two"), additional_gids=(2,))
    assert cdi.merge(first, last) == cdi.ContainerEdits(
        env=("A=1", "B=2"), intel_rdt=cdi.IntelRdt("two"), additional_gids=(1, 2)
    )
    assert cdi.merge(first, cdi.ContainerEdits()) == first
    assert cdi.merge() == cdi.ContainerEdits()
