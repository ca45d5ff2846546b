"""Decoding as strict, and as lenient, as the API server's (spec/apiserver.md Decoding)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from drakit import admission

Json = dict[str, Any]
PARAMETERS = "spec.devices.config[0].opaque.parameters"


def create(obj: Json | bytes, resource: str = "resourceslices", **fields: Any) -> admission.Answer:
    body = obj if isinstance(obj, bytes) else json.dumps(obj, separators=(",", ":")).encode()
    namespace = "ns" if resource.startswith("resourceclaim") else ""
    request = admission.Request(
        verb="create", resource=resource, version=fields.pop("version", "v1"), namespace=namespace, body=body, **fields
    )
    return admission.admit(request, "1.37", admission.profile("1.37", all_gates=True))


def stored_spec(obj: Json, resource: str = "resourceslices") -> Json:
    answer = create(obj, resource)
    assert answer.stored is not None, answer.message
    spec: Json = answer.stored["spec"]
    return spec


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (5, "5"),
        (1.5, "1500m"),
        ("1024Mi", "1Gi"),
        (" 1 ", "1"),
        ("+1", "+1"),
        ("Gi", "0"),
        (None, "0"),
        (1e21, "1e+21"),
    ],
)
def test_quantities(make: Any, sent: Any, kept: str) -> None:
    obj = make("ResourceSlice", devices=[{"name": "a", "capacity": {"c": {"value": sent}}}])
    assert stored_spec(obj)["devices"][0]["capacity"]["c"]["value"] == kept


def test_numbers_keep_their_text_until_they_are_quantities(make: Any) -> None:
    body = json.dumps(make("ResourceSlice", devices=[{"name": "a", "capacity": {"c": {"value": "@"}}}])).encode()
    answer = create(body.replace(b'"@"', b"1000.0"))
    assert answer.stored is not None
    assert answer.stored["spec"]["devices"][0]["capacity"]["c"]["value"] == "1k"


@pytest.mark.parametrize("sent", ["", "x", True, [], {}, "1.2.3"])
def test_bad_quantities(make: Any, sent: Any) -> None:
    assert create(make("ResourceSlice", devices=[{"name": "a", "capacity": {"c": {"value": sent}}}])).status == 400


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.999Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+02:30", "2026-01-02T00:34:05Z"),
        ("2026-01-02T03:04:05-02:30", "2026-01-02T05:34:05Z"),
        ("0001-01-01T00:00:00Z", None),
        (None, "2026-05-06T07:08:09Z"),
    ],
)
def test_times(make: Any, sent: Any, kept: str | None) -> None:
    obj = make("DeviceTaintRule", taint={"key": "k", "effect": "None", "timeAdded": sent})
    answer = create(obj, "devicetaintrules", now="2026-05-06T07:08:09Z")
    assert answer.stored is not None
    assert answer.stored["spec"]["taint"]["timeAdded"] == kept


@pytest.mark.parametrize(
    "sent", ["", "2026-01-02", "2026-01-02t03:04:05Z", "2026-02-30T00:00:00Z", 5, "9999-12-31T23:59:59-23:00"]
)
def test_bad_times(make: Any, sent: Any) -> None:
    obj = make("DeviceTaintRule", taint={"key": "k", "effect": "None", "timeAdded": sent})
    assert create(obj, "devicetaintrules").status == 400


@pytest.mark.parametrize("sent", [1.0, "1", True, 2**63, -(2**63) - 1, [], {}])
def test_bad_integers(make: Any, sent: Any) -> None:
    assert create(make("ResourceSlice", devices=[{"name": "a", "attributes": {"x": {"int": sent}}}])).status == 400


@pytest.mark.parametrize(
    ("field", "value"),
    [("driver", 5), ("pool", []), ("devices", {}), ("allNodes", "true"), ("nodeSelector", "x"), ("sharedCounters", 1)],
)
def test_wrong_types(make: Any, field: str, value: Any) -> None:
    answer = create(make("ResourceSlice", **{field: value}))
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert f"spec.{field}" in answer.message


def test_null_items_are_zero_values(make: Any) -> None:
    attributes = {"s": {"strings": [None]}, "i": {"ints": [None]}, "b": {"bools": [None]}}
    spec = stored_spec(make("ResourceSlice", devices=[{"name": "a", "attributes": attributes}]))
    assert spec["devices"][0]["attributes"] == {"s": {"strings": [""]}, "i": {"ints": [0]}, "b": {"bools": [False]}}
    assert [cause.field for cause in create(make("ResourceSlice", devices=[None])).causes] == ["spec.devices[0].name"]


def test_unknown_and_repeated_fields(make: Any) -> None:
    obj = make("ResourceSlice", unknown=1, devices=[{"name": "a", "Attributes": {}}])
    body = json.dumps(obj)[:-1] + ',"kind":"ResourceSlice"}'
    body = body.replace('"nodeName"', '"nodeName":"other","nodeName"')
    complaints = {
        'unknown field "spec.unknown"',
        'unknown field "spec.devices[0].Attributes"',
        'duplicate field "kind"',
        'duplicate field "spec.nodeName"',
    }
    warned = create(body.encode(), field_validation="Warn")
    assert (warned.status, set(warned.warnings)) == (201, complaints)
    assert create(body.encode()).warnings == warned.warnings
    assert create(body.encode(), field_validation="Ignore").warnings == ()
    strict = create(body.encode(), field_validation="Strict")
    assert strict.status == 400
    assert all(complaint in strict.message for complaint in complaints)
    bogus = create(body.encode(), field_validation="Maybe")
    assert [(cause.reason, cause.field) for cause in bogus.causes] == [("FieldValueNotSupported", "fieldValidation")]


def test_repeated_map_keys_are_told(make: Any) -> None:
    body = json.dumps(make("ResourceSlice", devices=[{"name": "a", "attributes": {"x": {"int": 1}}}]))
    answer = create(body.replace('"x": {"int": 1}', '"x":{"int":2},"x":{"int":1}').encode())
    assert answer.warnings == ('duplicate field "spec.devices[0].attributes.x"',)
    assert answer.stored is not None
    assert answer.stored["spec"]["devices"][0]["attributes"] == {"x": {"int": 1}}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"apiVersion": ""}, 201),
        ({"kind": None}, 201),
        ({"kind": "Nope"}, 400),
        ({"kind": 5}, 400),
        ({"apiVersion": "resource.k8s.io/v1beta2"}, 400),
        ({"apiVersion": "resource.k8s.io/v7"}, 400),
        ({"apiVersion": "apps/v1"}, 400),
        ({"apiVersion": "a/b/c"}, 400),
    ],
)
def test_type_of_the_object(make: Any, change: Json, status: int) -> None:
    assert create(make("ResourceSlice") | change).status == status


@pytest.mark.parametrize("body", [b"", b"{", b'"x"', b"[]", b"5", b"{}x", b'{"a":NaN}', b'{"a":"\x01"}', b"1" * 5000])
def test_bodies_that_are_no_objects(body: bytes) -> None:
    assert create(body).status == 400


def test_null_is_an_empty_object() -> None:
    assert [cause.field for cause in create(b"null", "deviceclasses").causes] == ["metadata.name"]


def test_text_that_is_no_unicode_is_replaced(make: Any) -> None:
    body = json.dumps(make("ResourceSlice", devices=[{"name": "a", "attributes": {"x": {"string": "@"}}}])).encode()
    for text in (b"\xff", rb"\ud800"):
        answer = create(body.replace(b"@", text))
        assert answer.stored is not None
        assert answer.stored["spec"]["devices"][0]["attributes"]["x"]["string"] == "\ufffd"
    kept = create(body.replace(b"@", rb"\ud83d\ude00").replace(b'"a"', rb'"\u0061"'))
    assert kept.stored is not None
    assert kept.stored["spec"]["devices"][0]["attributes"]["x"]["string"] == "\U0001f600"


def config(parameters: bytes) -> bytes:
    return (
        b'{"metadata":{"name":"x"},"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":'
        + parameters
        + b"}}]}}}"
    )


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (b"null", "FieldValueRequired"),
        (b"5", "FieldValueInvalid"),
        (b'""', "FieldValueInvalid"),
        (b"false", "FieldValueInvalid"),
    ],
)
def test_parameters_must_be_an_object(parameters: bytes, reason: str) -> None:
    answer = create(config(parameters), "resourceclaims")
    assert [(cause.reason, cause.field) for cause in answer.causes] == [(reason, PARAMETERS)]


def test_parameters_count_as_the_bytes_that_were_sent() -> None:
    """spec/apiserver.md 1: blanks make a claim immutable for ever."""
    for parameters, again, status in (
        (b'{"a": 1}', b'{"a":1}', 422),
        (b'{"a": 1}', b'{"a": 1}', 200),
        (b'{"a":1}', b'{"a":1}', 200),
        (b'{"a":1}', b'{"a":1.0}', 422),
        (b'{"a":"\\u0078"}', b'{"a":"x"}', 422),
    ):
        stored = create(config(parameters), "resourceclaims").stored
        assert stored is not None
        shown = admission.convert(stored, "v1")
        assert shown["spec"]["devices"]["config"][0]["opaque"]["parameters"] == json.loads(parameters)
        request = admission.Request(
            verb="update",
            resource="resourceclaims",
            version="v1",
            namespace="ns",
            name="x",
            body=config(again),
            stored=stored,
        )
        answer = admission.admit(request)
        assert answer.status == status
        if status == 200:
            assert answer.stored == stored
    kept = create(config(b'{"a": 1}'), "resourceclaims").stored
    assert kept is not None
    assert isinstance(kept["spec"]["devices"]["config"][0]["opaque"]["parameters"], msgspec.Raw)


def test_raw_parameters_may_come_in_decoded_objects(make: Any) -> None:
    parameters = msgspec.Raw(b'{"a": 1}')
    obj = make("ResourceClaim", devices={"config": [{"opaque": {"driver": "d", "parameters": parameters}}]})
    request = admission.Request(verb="create", resource="resourceclaims", version="v1", namespace="ns", body=obj)
    answer = admission.admit(request)
    assert answer.stored is not None
    assert answer.stored["spec"]["devices"]["config"][0]["opaque"]["parameters"] is parameters
