"""From bytes to a Spec: JSON and YAML, as runtimes take them."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drakit import cdi

JSON = b'{"cdiVersion": "0.3.0", "kind": "a/b", "devices": [{"name": "d", "containerEdits": {"env": ["A=1"]}}]}'
YAML = b"""---
cdiVersion: 0.3.0  # a comment
kind: a/b
devices:
- name: d
  containerEdits: {env: [A=1]}
"""


def test_json_and_yaml_are_the_same_spec() -> None:
    assert cdi.parse(JSON) == cdi.parse(YAML) == cdi.parse(b"\xef\xbb\xbf" + JSON)


def test_octal_modes_of_yaml_are_numbers() -> None:
    text = YAML.replace(b"{env: [A=1]}", b"{deviceNodes: [{path: /dev/a, fileMode: 0666}]}")
    assert cdi.parse(text).devices[0].container_edits.device_nodes[0].file_mode == 0o666


def test_yaml_with_braces_and_comments() -> None:
    cdi.parse(b"{cdiVersion: 0.3.0, kind: a/b, devices: [{name: d, containerEdits: {env: [A=1]}}]} # end")


def test_numbers_of_yaml_are_strings_where_the_format_has_strings() -> None:
    text = YAML.replace(b"0.3.0", b"0.6.0").replace(b"name: d", b"name: 0\n  annotations: {a: true, b: 1.5, 3: x}")
    [device] = cdi.parse(text).devices
    assert (device.name, device.annotations) == ("0", {"a": "true", "b": "1.5", "3": "x"})
    with pytest.raises(cdi.SpecError, match="must be an integer, not a string"):
        cdi.parse(YAML.replace(b"{env: [A=1]}", b"{additionalGids: ['1']}"))
    with pytest.raises(cdi.SpecError, match="must be a string, not a number"):
        cdi.parse(JSON.replace(b'"d"', b"0"))


def test_dates_are_strings() -> None:
    text = YAML.replace(b"0.3.0", b"0.6.0") + b"annotations: {built: 2026-01-02}\n"
    assert cdi.parse(text).annotations == {"built": "2026-01-02"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "must be a mapping"),
        (b"\xff\xfe", "not UTF-8"),
        (b"{", "neither JSON nor YAML"),
        (b"a: [", "neither JSON nor YAML"),
        (b"a: 1\nb: !!python/object:os.system {}\n", "neither JSON nor YAML"),
        (b"a: !!int x\n", "not YAML"),
        (JSON.replace(b'"kind"', b'"kind": "x/y", "kind"'), "'kind' stands twice"),
        (YAML + b"kind: a/c\n", "'kind' stands twice"),
        (b"[" * 100000, "nested too deeply"),
        (b'{"a":' * 100000, "nested too deeply"),
        (YAML + YAML, "neither JSON nor YAML"),
    ],
)
def test_other_bytes_are_no_spec(data: bytes, message: str) -> None:
    with pytest.raises(cdi.SpecError, match=message):
        cdi.parse(data)


@given(st.binary(max_size=60))
def test_no_bytes_crash(data: bytes) -> None:
    with pytest.raises(cdi.SpecError):
        cdi.parse(data)


@given(st.integers(0, len(YAML)), st.binary(min_size=1, max_size=2))
@example(86, b",")  # a list as a key
def test_no_change_of_a_file_crashes(place: int, change: bytes) -> None:
    with contextlib.suppress(cdi.SpecError):
        cdi.parse(YAML[:place] + change + YAML[place + 1 :])
