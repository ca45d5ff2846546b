"""The stream of versions (M8, M9, M25-M27; scenarios 25, 27, 30)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit import metadata

GOLDEN = """{
  "kind": "DeviceMetadata",
  "apiVersion": "metadata.resource.k8s.io/%s",
  "metadata": {
    "name": "claim",
    "namespace": "default",
    "uid": "uid-1",
    "generation": 2
  },
  "podClaimName": "mine",
  "requests": [
    {
      "name": "gpu/large",
      "devices": [
        {
          "driver": "gpu.example.com",
          "pool": "node-1",
          "name": "gpu-0",
          "attributes": {
            "index": {
              "int": 0
            },
            "models": {
              "strings": [
                "a\\u003cb\\u003e\\u0026\\u2028",
                "c"
              ]
            },
            "resource.kubernetes.io/pciBusID": {
              "string": "0000:01:00.0"
            },
            "ready": {
              "bool": false
            },
            "version": {
              "version": "1.0.0"
            }
          },
          "networkData": {
            "interfaceName": "net1",
            "ips": [
              "10.0.0.1/24"
            ],
            "hardwareAddress": "02:00:00:00:00:01"
          }
        },
        {
          "driver": "gpu.example.com",
          "pool": "node-1",
          "name": "gpu-1"
        }
      ]
    }
  ]
}
"""

VALUE = metadata.DeviceMetadata(
    metadata.ObjectMeta("claim", "default", "uid-1", 2),
    "mine",
    (
        metadata.Request(
            "gpu/large",
            (
                metadata.Device(
                    "gpu.example.com",
                    "node-1",
                    "gpu-0",
                    {
                        "version": metadata.Attribute(version="1.0.0"),
                        "ready": metadata.Attribute(bool=False),
                        "resource.kubernetes.io/pciBusID": metadata.Attribute(string="0000:01:00.0"),
                        "models": metadata.Attribute(strings=("a<b>&\u2028", "c")),
                        "index": metadata.Attribute(int=0),
                    },
                    metadata.NetworkData("net1", ("10.0.0.1/24",), "02:00:00:00:00:01"),
                ),
                metadata.Device("gpu.example.com", "node-1", "gpu-1"),
            ),
        ),
    ),
)


def test_bytes_are_those_of_every_other_driver() -> None:
    golden = "".join(sorted_golden(version) for version in ("v1beta1", "v1alpha1"))
    assert metadata.encode_stream(VALUE).decode() == golden
    assert metadata.encode_stream(VALUE, ["v1alpha1"]).decode() == sorted_golden("v1alpha1")


def sorted_golden(version: str) -> str:
    # Keys of attributes are sorted by bytes: "ready" < "resource..." < "version".
    text = GOLDEN % version
    ready = '            "ready": {\n              "bool": false\n            },\n'
    bus = '            "resource.kubernetes.io/pciBusID": {'
    return text.replace(ready, "").replace(bus, ready + bus)


@pytest.mark.parametrize("version", metadata.VERSIONS)
def test_both_versions_are_lossless(version: str) -> None:
    assert metadata.decode_stream(metadata.encode_stream(VALUE, [version])) == VALUE


def test_empty_parts_are_left_out() -> None:
    text = metadata.encode_stream(metadata.DeviceMetadata(requests=(metadata.Request("r"),)), ["v1beta1"])
    assert json.loads(text) == {
        "kind": "DeviceMetadata",
        "apiVersion": "metadata.resource.k8s.io/v1beta1",
        "metadata": {},
        "requests": [{"name": "r"}],
    }


def test_an_empty_pod_claim_name_is_kept_m5() -> None:
    text = metadata.encode_stream(metadata.DeviceMetadata(pod_claim_name=""), ["v1beta1"])
    assert json.loads(text)["podClaimName"] == ""
    assert metadata.decode_stream(text).pod_claim_name == ""


GV = "metadata.resource.k8s.io"
GOOD = json.dumps({"apiVersion": f"{GV}/v1beta1", "kind": "DeviceMetadata", "metadata": {"name": "good"}})
FUTURE = json.dumps({"apiVersion": f"{GV}/v9", "kind": "DeviceMetadata", "metadata": {"name": 5}})


@pytest.mark.parametrize(
    "stream",
    [
        GOOD,
        f"  \n{GOOD}",
        f"{FUTURE}\n{GOOD}",
        f"{FUTURE}{GOOD}{{broken",
        f'{{"apiVersion": "v1", "kind": "ConfigMap"}}\n{GOOD}',
        GOOD.replace("v1beta1", "v1alpha1"),
        GOOD.replace('"good"', '"good", "unknown": 1, "labels": null'),
    ],
)
def test_the_first_known_object_is_taken_m25(stream: str) -> None:
    assert metadata.decode_stream(stream.encode()).metadata.name == "good"


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ("", "no metadata objects found in stream"),
        (" \n\t", "no metadata objects found in stream"),
        ("]", "no metadata objects found in stream"),
        ("  }" + GOOD, "no metadata objects found in stream"),
        (FUTURE, f"no compatible metadata version found in stream \\(unknown versions: {GV}/v9\\)"),
        (FUTURE + '{"apiVersion":"v1","kind":"Pod"}', f"no compatible .* \\(unknown versions: {GV}/v9, v1\\)"),
        ("{" + GOOD, "read metadata object from stream: "),
        ("nonsense" + GOOD, "read metadata object from stream: "),
        ("NaN", "read metadata object from stream: "),
        ("[" * 100000, "read metadata object from stream: "),
        ('{"kind": "DeviceMetadata"}' + GOOD, "decode metadata object: "),
        ("null" + GOOD, "decode metadata object: "),
        ("[]" + GOOD, "decode metadata object: "),
        ('{"apiVersion": 5, "kind": "x"}' + GOOD, "decode metadata object: "),
        (f'{{"apiVersion": "{GV}/v1beta1"}}' + GOOD, f"decode {GV}/v1beta1: kind"),
        (f'{{"apiVersion": "{GV}/v9"}}' + GOOD, f"decode {GV}/v9: kind"),
        (f'{{"apiVersion": "{GV}/v1beta1", "kind": "Other"}}' + GOOD, f"decode {GV}/v1beta1: kind 'Other'"),
        (GOOD.replace('"good"', "5") + GOOD, f"decode {GV}/v1beta1: "),
        (GOOD.replace('"name": "good"', f'"generation": {2**63}') + GOOD, f"decode {GV}/v1beta1: "),
    ],
)
def test_what_is_broken_before_it_is_fatal_m26_m27(stream: str, message: str) -> None:
    with pytest.raises(metadata.MetadataError, match=f"^{message}"):
        metadata.decode_stream(stream.encode())


def test_writers_may_leave_out_what_is_empty() -> None:
    body: dict[str, Any] = {"requests": [{"devices": [{"name": "d", "attributes": None}]}], "podClaimName": None}
    stream = json.dumps({"apiVersion": f"{GV}/v1alpha1", "kind": "DeviceMetadata"} | body).encode()
    expected = (metadata.Request("", (metadata.Device("", "", "d"),)),)
    assert metadata.decode_stream(stream) == metadata.DeviceMetadata(requests=expected)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        (metadata.Attribute(int=0), 0),
        (metadata.Attribute(bool=False), False),
        (metadata.Attribute(string=""), ""),
        (metadata.Attribute(version="1.0.0"), "1.0.0"),
        (metadata.Attribute(ints=(1, 2)), (1, 2)),
        (metadata.Attribute(bools=(True,)), (True,)),
        (metadata.Attribute(strings=("a",)), ("a",)),
        (metadata.Attribute(versions=("1.0.0",)), ("1.0.0",)),
        (metadata.Attribute(), None),
    ],
)
def test_an_attribute_has_one_value(attribute: metadata.Attribute, value: object) -> None:
    assert attribute.value == value
    assert type(attribute.value) is type(value)


@given(st.binary(max_size=80))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    with pytest.raises(metadata.MetadataError):
        metadata.decode_stream(data)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(["metadata", "requests", "podClaimName", "kind", "apiVersion"]), _json)
def test_no_content_crashes_the_reader(field: str, content: Any) -> None:
    value = {"apiVersion": f"{GV}/v1beta1", "kind": "DeviceMetadata"} | {field: content}
    try:
        found = metadata.decode_stream(json.dumps(value).encode())
    except metadata.MetadataError:
        return
    assert isinstance(found, metadata.DeviceMetadata)
