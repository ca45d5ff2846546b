"""Shared by the CDI tests: strategies for valid Specs, and an independent description of the file format."""

import string
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import strategies as st

from drakit import cdi

_STRING = {"type": "string"}
_STRINGS = {"type": "array", "items": _STRING}
_GID = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
_INT = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


def _list(item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _schema() -> dict[str, Any]:
    node = _object(
        ("path",),
        path=_STRING,
        hostPath=_STRING,
        type={"enum": ["b", "c", "u", "p"]},
        major=_INT,
        minor=_INT,
        fileMode=_GID,
        permissions={"type": "string", "pattern": "^([rwm]*|none)$"},
        uid=_GID,
        gid=_GID,
    )
    hooks = ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"]
    hook = _object(
        ("hookName", "path"), hookName={"enum": hooks}, path=_STRING, args=_STRINGS, env=_STRINGS, timeout=_GID
    )
    mount = _object(
        ("hostPath", "containerPath"), hostPath=_STRING, containerPath=_STRING, options=_STRINGS, type=_STRING
    )
    rdt = _object(
        (),
        closID=_STRING,
        l3CacheSchema=_STRING,
        memBwSchema=_STRING,
        schemata=_STRINGS,
        enableMonitoring={"type": "boolean"},
    )
    net = _object(("hostInterfaceName", "name"), hostInterfaceName=_STRING, name=_STRING)
    edits = _object(
        (),
        env=_list({"type": "string", "pattern": "^[^=]+="}),
        deviceNodes=_list(node),
        netDevices=_list(net),
        hooks=_list(hook),
        mounts=_list(mount),
        intelRdt=rdt,
        additionalGids=_list(_GID),
    )
    annotations = {"type": "object", "additionalProperties": _STRING}
    device = _object(("name", "containerEdits"), name=_STRING, annotations=annotations, containerEdits=edits)
    return _object(
        ("cdiVersion", "kind", "devices"),
        cdiVersion=_STRING,
        kind={"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_.-]*/[A-Za-z][A-Za-z0-9_.-]*$"},
        annotations=annotations,
        devices={"type": "array", "minItems": 1, "items": device},
        containerEdits=edits,
    )


@pytest.fixture(scope="session")
def schema() -> jsonschema.Draft202012Validator:
    """The CDI file format as JSON schema, written from its specification."""
    jsonschema.Draft202012Validator.check_schema(_schema())
    return jsonschema.Draft202012Validator(_schema())


_ALNUM = string.ascii_letters + string.digits
_words = st.text(_ALNUM, min_size=1, max_size=8)
_paths = _words.map(lambda word: f"/dev/{word}")
_env = st.lists(st.tuples(_words, _words).map("=".join), max_size=3).map(tuple)
_uint32 = st.integers(0, 2**32 - 1)


def _optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


_nodes = st.builds(
    cdi.DeviceNode,
    path=_paths,
    host_path=_optional(_paths),
    type=st.sampled_from(["b", "c", "u", "p", None]),
    major=_optional(st.integers(0, 2**63 - 1)),
    minor=_optional(st.integers(0, 2**63 - 1)),
    file_mode=_optional(st.integers(0, 0o7777)),
    permissions=st.sampled_from(["r", "rw", "rwm", "none", None]),
    uid=_optional(_uint32),
    gid=_optional(_uint32),
)
_hooks = st.builds(
    cdi.Hook,
    hook_name=st.sampled_from(
        ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"]
    ),
    path=_paths,
    args=st.lists(_words, max_size=2).map(tuple),
    env=_env,
    timeout=_optional(st.integers(0, 100)),
)
_mounts = st.builds(
    cdi.Mount,
    host_path=_paths,
    container_path=_paths,
    options=st.lists(st.sampled_from(["ro", "bind", "nosuid"]), max_size=2).map(tuple),
    type=st.sampled_from(["bind", "tmpfs", None]),
)
_rdt = st.builds(
    cdi.IntelRdt,
    clos_id=_optional(_words),
    l3_cache_schema=_optional(_words),
    mem_bw_schema=_optional(_words),
    schemata=_optional(st.lists(_words, max_size=2).map(tuple)),
    enable_monitoring=_optional(st.booleans()),
)
_nets = st.lists(_words, max_size=2, unique=True).map(
    lambda names: tuple(cdi.NetDevice(f"host-{name}", name) for name in names)
)
_edits = st.builds(
    cdi.ContainerEdits,
    env=_env,
    device_nodes=st.lists(_nodes, max_size=2).map(tuple),
    net_devices=_nets,
    hooks=st.lists(_hooks, max_size=1).map(tuple),
    mounts=st.lists(_mounts, max_size=2).map(tuple),
    intel_rdt=_optional(_rdt),
    additional_gids=st.lists(_uint32, max_size=2).map(tuple),
)
_annotations = st.dictionaries(_words, _words, max_size=2)


@st.composite
def _specs(draw: st.DrawFn) -> cdi.Spec:
    names = draw(st.lists(_words, min_size=1, max_size=3, unique=True))
    devices = tuple(cdi.Device(name, draw(_annotations), draw(_edits.filter(bool))) for name in names)
    kind = draw(st.sampled_from(["vendor.com/device", "a/b.c", "n_1.example.com/claim"]))
    spec = cdi.Spec("", kind, draw(_annotations), devices, draw(_edits))
    return msgspec.structs.replace(spec, cdi_version=cdi.minimum_version(spec))


@pytest.fixture(scope="session")
def specs() -> st.SearchStrategy[cdi.Spec]:
    """Valid Specs that declare exactly the version that they need."""
    return _specs()
