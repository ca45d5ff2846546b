"""The protobuf envelope by hand-computed bytes."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.simulator.apiserver import Refused
from drakit.simulator.apiserver.protobuf import to_json


def _field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def _envelope(kind: bytes, raw: bytes, api_version: bytes = b"v1") -> bytes:
    return b"k8s\x00" + _field(1, _field(1, api_version) + _field(2, kind)) + _field(2, raw)


def test_a_namespace() -> None:
    label = _field(11, _field(1, b"a") + _field(2, b"b"))
    body = _envelope(b"Namespace", _field(1, _field(1, b"team") + label))
    assert json.loads(to_json(body)) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "team", "labels": {"a": "b"}},
    }


def test_numbers_lists_and_unknown_fields() -> None:
    options = b"\x08\x1e" + _field(2, _field(1, b"uid-1")) + _field(5, b"All") + b"\xf8\x01\x07" + b"\x7d1234"
    assert json.loads(to_json(_envelope(b"DeleteOptions", options))) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 30,
        "preconditions": {"uid": "uid-1"},
        "dryRun": ["All"],
    }
    negative = b"\x08" + b"\xff" * 9 + b"\x01"
    assert json.loads(to_json(_envelope(b"DeleteOptions", negative)))["gracePeriodSeconds"] == -1


def test_bytes_and_times() -> None:
    created = _field(8, b"\x08\xd2\x85\xd8\xcc\x04")
    secret = _field(1, created) + _field(2, _field(1, b"k") + _field(2, b"\x00\xff"))
    decoded = json.loads(to_json(_envelope(b"Secret", secret)))
    assert decoded["data"] == {"k": "AP8="}
    assert decoded["metadata"]["creationTimestamp"] == "2009-02-13T23:31:30Z"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{}", "does not appear to be a protobuf message"),
        (_envelope(b"Pod", b""), "Pod is not read as protobuf"),
        (_envelope(b"Namespace", b"\x0a\x05ab"), "malformed protobuf"),
        (_envelope(b"Namespace", b"\x0b"), "malformed protobuf"),
        (_envelope(b"Namespace", b"\x08\x01"), "malformed protobuf"),
        (_envelope(b"DeleteOptions", _field(1, b"x")), "malformed protobuf"),
        (b"k8s\x00\xff", "malformed protobuf"),
    ],
)
def test_what_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(Refused, match=message) as refused:
        to_json(body)
    assert refused.value.status == 400


@given(st.binary(max_size=40))
@settings(max_examples=200, deadline=None)
def test_no_bytes_crash_it(data: bytes) -> None:
    for body in (b"k8s\x00" + data, _envelope(b"Secret", data)):
        try:
            decoded: Any = json.loads(to_json(body))
        except Refused:
            continue
        assert isinstance(decoded, dict)
