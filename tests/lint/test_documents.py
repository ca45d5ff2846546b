"""YAML and JSON as values that know their lines."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.lint.documents import Document, Position, ReadError, read


def one(text: str) -> Document:
    [document] = read(text)
    return document


CLAIM = """\
# Größe: ein Kommentar
kind: ResourceClaim
metadata:
  annotations:
    a.b/c: "é"
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        count: 1
    config:
    - opaque: {driver: a, parameters: {x: 1}}
"""


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ("", 2, 1),
        ("kind", 2, 1),
        ("metadata.annotations[a.b/c]", 5, 5),
        ("metadata.annotations.a.b/c", 5, 5),
        ("spec.devices.requests", 8, 5),
        ("spec.devices.requests[0]", 9, 7),
        ("spec.devices.requests[0].exactly.count", 11, 9),
        ("spec.devices.requests[0].exactly.missing", 10, 7),
        ("spec.devices.requests[7].name", 8, 5),
        ("spec.devices.config[0].opaque.parameters.x", 13, 40),
        ("nowhere.at.all", 2, 1),
        ("spec[", 6, 1),
    ],
)
def test_paths_have_positions(path: str, line: int, column: int) -> None:
    assert one(CLAIM).position(path) == Position(line, column)


def test_paths_of_v1_find_their_place_in_other_versions() -> None:
    flat = one("spec:\n  devices:\n    requests:\n    - name: a\n      count: 0\n")
    assert flat.position("spec.devices.requests[0].exactly.count") == Position(5, 7)
    basic = one("spec:\n  devices:\n  - name: a\n    basic:\n      attributes:\n        x: {}\n")
    assert basic.position("spec.devices[0].attributes[x]") == Position(6, 9)
    template = one("spec:\n  spec:\n    devices:\n      requests: []\n")
    assert template.position("spec.devices.requests") == Position(4, 7)


def test_text_is_that_of_the_file() -> None:
    assert one(CLAIM).text("spec.devices.config[0].opaque.parameters") == "{x: 1}"
    assert one(CLAIM).text("spec.devices.config[0].opaque.nothing") == ""
    assert one(CLAIM).text("metadata.annotations[a.b/c]") == '"é"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("expression: device.driver", (1, 20)),
        ('expression: "device.driver"', (1, 21)),
        ("expression: |-\n  a &&\n  device.driver", (2, 10)),
        ("expression: >-\n  a &&\n  device.driver", (1, 1)),
        ('expression: "a\\tb.driver"', (1, 1)),
    ],
)
def test_places_inside_of_strings(text: str, expected: tuple[int, int]) -> None:
    assert one(text).inner("expression", 1, 7) == Position(*expected)


def test_places_inside_of_later_lines() -> None:
    assert one("a: |\n    x\n    yz\n").inner("a", 2, 1) == Position(3, 6)
    assert one("a: [1]\n").inner("a", 1, 1) == Position(1, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-12", -12), ("+3", 3), ("0x1F", 31), ("0b11", 3), ("017", 15), ("1_000", 1000),
        ("1.5", 1.5), ("-1.5e+3", -1500.0), (".inf", ".inf"), ("08", "08"), ("1:30", "1:30"), ("190:20:30.5", "190:20:30.5"),
        ("2026-01-02", "2026-01-02"), ("yes", True), ("Off", False), ("true", True), ("~", None), ("null", None),
        ('"1"', "1"), ("'yes'", "yes"), ("text", "text"), ("80Gi", "80Gi"), ("!!binary aGk=", "hi"), ("!!binary x", "x"),
        ("!!int x", "x"), ("[1, a]", [1, "a"]), ("{1: a}", {"1": "a"}), ("{[1]: a}", {"?": "a"}),
    ],
)  # fmt: skip
def test_scalars_mean_what_they_mean_to_kubectl(text: str, value: Any) -> None:
    assert one(f"a: {text}").value == {"a": value}


def test_merge_keys_and_anchors() -> None:
    value = one("base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nboth: {<<: [{x: 5}, *b]}\nodd: {<<: 1}\n").value
    assert value == {"base": {"x": 1, "y": 2}, "more": {"x": 1, "y": 3}, "both": {"x": 5, "y": 2}, "odd": {}}


def test_repeated_keys_are_kept_in_mind() -> None:
    document = one("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n")
    assert document.value == {"a": 3, "b": {"c": 2}}
    assert document.repeated == [("c", Position(4, 3)), ("a", Position(5, 1))]


def test_empty_documents_are_left_out() -> None:
    assert [document.value for document in read("---\n# nothing\n---\na: 1\n---\n~\n---\n[]\n")] == [{"a": 1}, []]
    assert list(read("")) == []


@pytest.mark.parametrize("value", ["\U0001f600", "a\\ud83d", '\\\U0001f600"', "é\u2028"])
def test_characters_of_json(value: str) -> None:
    assert one(json.dumps({"a": value})).value == {"a": value}
    assert one('{"a": "\\ud83d"}').value == {"a": "\ufffd"}


def test_json_is_known() -> None:
    assert one('{"a": [1, 2]}').is_json
    assert not one("{a: [1, 2]}").is_json
    assert not one("a: 1").is_json


@pytest.mark.parametrize(
    ("text", "message", "lines"),
    [
        ("a: [\n", "is not YAML: ", {2}),
        ("a: 1\n b: 2\n", "is not YAML: ", {2}),
        ("a: 1\nb: \x01\n", "is not YAML: character", {2}),
        ("a: *nothing\n", "is not YAML: ", {1}),
        ("[" * 5000, "is not YAML: |nested", {1, 2}),  # older parsers look for the end, which is a line of its own
        ("a: " + "[" * 300 + "]" * 300, "nested too deeply", {1}),
        ("a: &x [*x]", "nested too deeply", {1}),
    ],
)
def test_what_is_not_yaml_says_where(text: str, message: str, lines: set[int]) -> None:
    with pytest.raises(ReadError, match=message) as caught:
        list(read(text))
    assert caught.value.position.line in lines


def test_aliases_do_not_multiply_without_end() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with pytest.raises(ReadError, match="too large"):
        list(read(bomb))


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(st.characters(codec="ascii"), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc.", max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(_json.filter(lambda value: value is not None), st.sampled_from([None, 1, 2]))
def test_json_files_have_the_values_of_json(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    if "\x7f" not in text:
        assert one(text).value == value


@given(_json, st.text(".[]abc019", max_size=12))
def test_any_path_has_a_position(value: Any, path: str) -> None:
    for document in read(json.dumps(value)):
        assert document.position(path).line >= 1
        assert isinstance(document.text(path), str)
