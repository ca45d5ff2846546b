"""The corpus of good and bad CDI files: every fault, each with its path (STYLE: CDI corpus; pain 55)."""

import copy
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit import cdi

GOOD: dict[str, Any] = {
    "cdiVersion": "1.1.0",
    "kind": "vendor.com/class",
    "devices": [{"name": "dev", "containerEdits": {"env": ["A=1"]}}],
}
EDITS = ("devices", 0, "containerEdits")


def changed(*changes: tuple[tuple[str | int, ...], Any]) -> dict[str, Any]:
    value = copy.deepcopy(GOOD)
    for path, content in changes:
        parent: Any = value
        for part in path[:-1]:
            parent = parent[part]
        if content is ...:
            del parent[path[-1]]
        else:
            parent[path[-1]] = content
    return value


def edit(**edits: Any) -> dict[str, Any]:
    return changed((EDITS, edits))


GOOD_FILES: dict[str, dict[str, Any]] = {
    "minimal": GOOD,
    "nulls count as absent": changed((("annotations",), None), (("containerEdits",), None), ((*EDITS, "mounts"), None)),
    "two devices": changed((("devices",), [{"name": str(n), "containerEdits": {"env": ["A="]}} for n in range(2)])),
    "every node type": edit(deviceNodes=[{"path": f"/dev/{t}", "type": t} for t in "bcup"]),
    "no permissions": edit(deviceNodes=[{"path": "/dev/a", "permissions": "none"}]),
    "repeated permissions": edit(deviceNodes=[{"path": "/dev/a", "permissions": "rrw"}]),
    "largest numbers": edit(deviceNodes=[{"path": "/d", "uid": 2**32 - 1, "gid": 0, "major": 2**63 - 1, "minor": -1}]),
    "source that is no path": edit(mounts=[{"hostPath": "tmpfs", "containerPath": "/tmp", "type": "tmpfs"}]),
    "root class": edit(intelRdt={"closID": "/"}),
    "value with equals signs": edit(env=["A=b=c"]),
}

BAD: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "no version": (changed((("cdiVersion",), ...)), {"cdiVersion": "is missing"}),
    "no kind": (changed((("kind",), ...)), {"kind": "is missing"}),
    "null kind": (changed((("kind",), None)), {"kind": "is missing"}),
    "empty kind": (changed((("kind",), "")), {"kind": "must be vendor/class"}),
    "kind without class": (changed((("kind",), "vendor")), {"kind": "must be vendor/class"}),
    "kind of three": (changed((("kind",), "a/b/c")), {"kind": "is not valid"}),
    "vendor begins with a digit": (changed((("kind",), "1a.com/b")), {"kind": "is not valid"}),
    "class ends with a dash": (changed((("kind",), "a/b-")), {"kind": "is not valid"}),
    "no devices": (changed((("devices",), [])), {"devices": "at least one"}),
    "devices missing": (changed((("devices",), ...)), {"devices": "at least one"}),
    "devices are a mapping": (changed((("devices",), {})), {"devices": "must be a list, not a mapping"}),
    "device is null": (changed((("devices",), [None])), {"devices[0]": "must be a mapping, not nothing"}),
    "device without name": (changed((("devices", 0, "name"), ...)), {"devices[0].name": "is missing"}),
    "device with empty name": (changed((("devices", 0, "name"), "")), {"devices[0].name": "is not valid"}),
    "device with a slash": (changed((("devices", 0, "name"), "a/b")), {"devices[0].name": "is not valid"}),
    "device ends with a colon": (changed((("devices", 0, "name"), "a:")), {"devices[0].name": "is not valid"}),
    "same name twice": (
        changed((("devices",), [GOOD["devices"][0]] * 2)),
        {"devices[1].name": "also the name of devices[0]"},
    ),
    "device without edits": (
        changed((EDITS, ...)), {"devices[0].containerEdits": "must not be empty"}),
    "device with empty edits": (edit(), {"devices[0].containerEdits": "must not be empty"}),
    "device with empty lists": (edit(env=[], mounts=[]), {"devices[0].containerEdits": "must not be empty"}),
    "unknown field": (changed((("vendor",), "x")), {"vendor": "unknown field"}),
    "unknown edit": (edit(devicenodes=[]), {"devices[0].containerEdits.devicenodes": "unknown field"}),
    "variable without equals sign": (edit(env=["A"]), {"devices[0].containerEdits.env[0]": "NAME=value"}),
    "variable without name": (edit(env=["A=1", "=1"]), {"devices[0].containerEdits.env[1]": "NAME=value"}),
    "variable is a number": (edit(env=[1]), {"devices[0].containerEdits.env[0]": "must be a string, not a number"}),
    "node without path": (edit(deviceNodes=[{}]), {"devices[0].containerEdits.deviceNodes[0].path": "is missing"}),
    "node with empty path": (
        edit(deviceNodes=[{"path": ""}]), {"devices[0].containerEdits.deviceNodes[0].path": "must not be empty"}),
    "node of another type": (
        edit(deviceNodes=[{"path": "/d", "type": "s"}]), {"devices[0].containerEdits.deviceNodes[0].type": "'s'"}),
    "node with execute permission": (
        edit(deviceNodes=[{"path": "/d", "permissions": "rx"}]),
        {"devices[0].containerEdits.deviceNodes[0].permissions": "'rx'"}),
    "node with negative uid": (
        edit(deviceNodes=[{"path": "/d", "uid": -1}]), {"devices[0].containerEdits.deviceNodes[0].uid": "from 0"}),
    "node with huge major": (
        edit(deviceNodes=[{"path": "/d", "major": 2**63}]), {"devices[0].containerEdits.deviceNodes[0].major": "to"}),
    "node with major in quotes": (
        edit(deviceNodes=[{"path": "/d", "major": "1"}]),
        {"devices[0].containerEdits.deviceNodes[0].major": "must be an integer, not a string"}),
    "node with true for a number": (
        edit(deviceNodes=[{"path": "/d", "minor": True}]),
        {"devices[0].containerEdits.deviceNodes[0].minor": "must be an integer, not a boolean"}),
    "net device without name": (
        edit(netDevices=[{"hostInterfaceName": "e"}]), {"devices[0].containerEdits.netDevices[0].name": "is missing"}),
    "net device with empty host name": (
        edit(netDevices=[{"hostInterfaceName": "", "name": "n"}]),
        {"devices[0].containerEdits.netDevices[0].hostInterfaceName": "must not be empty"}),
    "net devices of the same name": (
        edit(netDevices=[{"hostInterfaceName": "a", "name": "n"}, {"hostInterfaceName": "b", "name": "n"}]),
        {"devices[0].containerEdits.netDevices[1].name": "netDevices[0]"}),
    "net devices of the same host name": (
        edit(netDevices=[{"hostInterfaceName": "a", "name": "n"}, {"hostInterfaceName": "a", "name": "m"}]),
        {"devices[0].containerEdits.netDevices[1].hostInterfaceName": "netDevices[0]"}),
    "hook of another name": (
        edit(hooks=[{"hookName": "stop", "path": "/h"}]), {"devices[0].containerEdits.hooks[0].hookName": "prestart"}),
    "hook with empty path": (
        edit(hooks=[{"hookName": "poststop", "path": ""}]),
        {"devices[0].containerEdits.hooks[0].path": "must not be empty"}),
    "hook with bad variable": (
        edit(hooks=[{"hookName": "poststop", "path": "/h", "env": ["A"]}]),
        {"devices[0].containerEdits.hooks[0].env[0]": "NAME=value"}),
    "mount without source": (
        edit(mounts=[{"containerPath": "/x"}]), {"devices[0].containerEdits.mounts[0].hostPath": "is missing"}),
    "mount with empty source": (
        edit(mounts=[{"hostPath": "", "containerPath": "/x"}]),
        {"devices[0].containerEdits.mounts[0].hostPath": "must not be empty"}),
    "mount with empty target": (
        edit(mounts=[{"hostPath": "/x", "containerPath": ""}]),
        {"devices[0].containerEdits.mounts[0].containerPath": "must not be empty"}),
    "class of service with slash": (
        edit(intelRdt={"closID": "a/b"}), {"devices[0].containerEdits.intelRdt.closID": "file name"}),
    "class of service is parent": (
        edit(intelRdt={"closID": ".."}), {"devices[0].containerEdits.intelRdt.closID": "file name"}),
    "class of service too long": (
        edit(intelRdt={"closID": "a" * 4096}), {"devices[0].containerEdits.intelRdt.closID": "file name"}),
    "monitoring is text": (
        edit(intelRdt={"enableMonitoring": "yes"}),
        {"devices[0].containerEdits.intelRdt.enableMonitoring": "must be a boolean, not a string"}),
    "group above 32 bits": (
        edit(additionalGids=[2**32]), {"devices[0].containerEdits.additionalGids[0]": "from 0 to 4294967295"}),
    "annotation is a number": (changed((("annotations",), {"a": 1})), {"annotations.a": "must be a string"}),
    "annotations are a list": (changed((("annotations",), [])), {"annotations": "a mapping of strings"}),
    "edits of all devices are checked": (
        changed((("containerEdits",), {"env": ["A"]})), {"containerEdits.env[0]": "NAME=value"}),
    "all faults at once": (
        changed((("kind",), "1/b"), (("cdiVersion",), "9"), ((*EDITS, "env"), ["A", "=", "B=1"])),
        {
            "cdiVersion": "is not one of", "kind": "is not valid",
            "devices[0].containerEdits.env[0]": "NAME=value", "devices[0].containerEdits.env[1]": "NAME=value",
        }),
    "all faults of shape at once": (
        changed((("kind",), 1), (("devices", 0, "name"), []), (("x",), 1)),
        {"kind": "not a number", "devices[0].name": "not a list", "x": "unknown field"}),
}  # fmt: skip

ADVICE: dict[str, tuple[dict[str, Any], str]] = {
    "relative node": (edit(deviceNodes=[{"path": "dev/a"}]), "devices[0].containerEdits.deviceNodes[0].path"),
    "relative target": (
        edit(mounts=[{"hostPath": "/x", "containerPath": "x"}]),
        "devices[0].containerEdits.mounts[0].containerPath",
    ),
    "negative timeout": (
        edit(hooks=[{"hookName": "prestart", "path": "/h", "timeout": -1}]),
        "devices[0].containerEdits.hooks[0].timeout",
    ),
    "annotation key with blank": (changed((("annotations",), {"a b": "x"})), "annotations.a b"),
    "annotation key with bad prefix": (changed((("annotations",), {"-a/b": "x"})), "annotations.-a/b"),
    "annotation key with two slashes": (changed((("annotations",), {"a/b/c": "x"})), "annotations.a/b/c"),
    "annotation key too long": (changed((("annotations",), {"a" * 64: "x"})), f"annotations.{'a' * 64}"),
    "annotations too large": (changed((("annotations",), {"a": "x" * (256 << 10)})), "annotations"),
}


@pytest.mark.parametrize("name", GOOD_FILES)
def test_good_files(name: str) -> None:
    assert cdi.validate(GOOD_FILES[name]) == []
    cdi.parse(json.dumps(GOOD_FILES[name]).encode())


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str) -> None:
    value, expected = BAD[name]
    faults = cdi.validate(value)
    assert sorted(fault.path for fault in faults) == sorted(expected)
    assert all(expected[fault.path] in fault.message for fault in faults)
    assert all(fault.rejected for fault in faults)
    with pytest.raises(cdi.SpecError) as caught:
        cdi.parse(json.dumps(value).encode())
    assert caught.value.faults == tuple(faults)


@pytest.mark.parametrize("name", ADVICE)
def test_what_no_runtime_refuses_is_told_and_accepted(name: str) -> None:
    value, path = ADVICE[name]
    assert [(fault.path, fault.rejected) for fault in cdi.validate(value)] == [(path, False)]
    cdi.parse(json.dumps(value).encode())


@pytest.mark.parametrize("value", [None, [], "text", 5, True])
def test_what_is_no_mapping_is_no_spec(value: Any) -> None:
    [fault] = cdi.validate(value)
    assert fault.path == ""
    assert str(fault) == fault.message


def test_the_schema_refuses_what_has_the_wrong_shape(schema: jsonschema.Draft202012Validator) -> None:
    shape = (
        "unknown field",
        "must be a mapping",
        "must be a list",
        "must be a string",
        "must be an ",
        "must be from",
        "is missing",
    )
    wrong = [value for value, _ in BAD.values() if any(f.message.startswith(shape) for f in cdi.validate(value))]
    assert len(wrong) > 15
    for value in wrong:
        with pytest.raises(jsonschema.ValidationError):
            schema.validate(value)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_fields = st.sampled_from([*GOOD, "containerEdits", "annotations"])


@given(_fields, _json)
def test_no_content_breaks_validation(field: str, content: Any) -> None:
    value = GOOD | {field: content}
    refused = [fault for fault in cdi.validate(value) if fault.rejected]
    if not refused:
        assert cdi.decode(value).cdi_version


@given(st.sampled_from(["env", "deviceNodes", "hooks", "mounts", "intelRdt", "netDevices", "additionalGids"]), _json)
def test_no_edit_breaks_validation(field: str, content: Any) -> None:
    cdi.validate(edit(**{field: content}))
