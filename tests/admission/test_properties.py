"""What holds for every object: stored ones are fixed points, versions lose nothing, nothing crashes."""

from __future__ import annotations

import copy
import json
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit import admission, api
from drakit.admission import decoding, replay

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


@pytest.fixture(scope="module")
def stored(recorded: Any) -> list[tuple[Json, Json]]:
    """Cases that were accepted, with what we keep of them."""
    kept = []
    for case in recorded("validation"):
        if case["stored"] and not case.get("user"):
            answer = replay.answer(case)
            assert answer.stored is not None
            kept.append((case, answer.stored))
    return kept


def update(case: Json, obj: Json, version: str) -> admission.Answer:
    kind = api.fields.KINDS[obj["kind"]]
    request = admission.Request(
        verb="update",
        resource=kind.plural,
        version=version,
        namespace=case["namespace"],
        name=obj["metadata"]["name"],
        body=json.dumps(admission.convert(obj, version), separators=(",", ":"), ensure_ascii=False).encode(),
        stored=obj,
        namespace_labels={"resource.kubernetes.io/admin-access": "true"},
    )
    return admission.admit(request, "1.36", admission.profile("1.36", all_gates=True))


def has_raw_bytes(obj: Any) -> bool:
    """Parameters that were not sent in compact form: a GET and PUT changes them (spec/apiserver.md 1)."""
    return json.dumps(obj, default=lambda _: "<raw>").find("<raw>") >= 0


def test_getting_and_putting_back_changes_nothing(stored: list[tuple[Json, Json]]) -> None:
    for case, obj in stored:
        if has_raw_bytes(obj) or '"timeAdded": null' in json.dumps(obj):
            continue  # the zero time is shown as null, which asks for a new one
        before = copy.deepcopy(obj)
        for version in api.fields.KINDS[obj["kind"]].versions:
            if version == "v1" and obj["kind"] == "DeviceTaintRule":
                continue  # not served by 1.36
            answer = update(case, obj, version)
            assert answer.causes == (), (case["id"], answer.message)
            assert answer.stored == obj, case["id"]
            assert obj == before


def test_every_version_shows_what_the_structs_carry(stored: list[tuple[Json, Json]]) -> None:
    for case, obj in stored:
        if has_raw_bytes(obj):
            continue
        versions = api.fields.KINDS[obj["kind"]].versions
        values = [api.decode(admission.convert(obj, version)) for version in versions]
        assert all(value == values[0] for value in values), case["id"]
        for version in versions:
            assert api.decode(api.encode(values[0], version)) == values[0]


VALUES: list[Any] = [
    None,
    "",
    "x",
    "A_",
    0,
    -1,
    1.5,
    True,
    [],
    [None],
    {},
    {"a": None},
    "1Gi",
    2**63,
    "é" * 70,
    "\ud800",
    [[]],
]


def mutate(value: Any, choice: random.Random) -> Any:
    """Replace, drop, repeat or rename one thing somewhere inside."""
    if isinstance(value, dict) and value and choice.random() < 0.8:
        key = choice.choice(sorted(value))
        changed = dict(value)
        action = choice.random()
        if action < 0.1:
            del changed[key]
        elif action < 0.15:
            changed[choice.choice(["", "unknown", key.upper(), "a/b/c", key + "/x"])] = changed.pop(key)
        else:
            changed[key] = mutate(value[key], choice)
        return changed
    if isinstance(value, list) and value and choice.random() < 0.8:
        index = choice.randrange(len(value))
        if choice.random() < 0.1:
            return value * choice.choice([0, 2, 40])
        return [*value[:index], mutate(value[index], choice), *value[index + 1 :]]
    return choice.choice(VALUES)


@pytest.fixture(scope="module")
def pick(recorded: Any) -> Callable[[random.Random], Json]:
    seeds = [case for case in recorded("validation") if not case.get("user") and isinstance(case["object"], dict)]
    return lambda choice: choice.choice(seeds)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32), minor=st.sampled_from(["1.32", "1.34", "1.36", "1.37"]))
def test_random_mutations_never_crash(pick: Callable[[random.Random], Json], seed: int, minor: str) -> None:
    choice = random.Random(seed)
    case = pick(choice)
    obj = case["object"]
    for _ in range(choice.randint(1, 4)):
        obj = mutate(obj, choice)
    text = json.dumps(obj, separators=(",", ":"), ensure_ascii=False).replace("\ud800", "\\ud800")
    request = replay.request_of(case | {"raw": text})
    gates = frozenset(gate for gate in admission.profile(minor, all_gates=True) if choice.random() < 0.7)
    answer = admission.admit(request, minor, gates)
    assert (answer.stored is None) == (answer.status >= 400)
    assert answer.allowed == (answer.stored is not None)
    if isinstance(obj, dict) and "ud800" not in json.dumps(obj):
        as_dict = admission.admit(msgspec.structs.replace(request, body=obj), minor, gates)
        assert as_dict.status == answer.status
        assert isinstance(admission.validate(obj, minor, gates), list)
    if answer.stored is not None and request.verb == "create":
        assert answer.stored["kind"] == case["kind"]
        json.dumps(admission.convert(answer.stored, case["version"])).encode()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_random_bodies_are_bad_requests(body: bytes) -> None:
    request = admission.Request(verb="create", resource="resourceslices", version="v1", body=body)
    assert admission.admit(request).status in {400, 422}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_parsing_is_that_of_json(value: Any) -> None:
    assert decoding.parse(json.dumps(value).encode()) == json.loads(json.dumps(value))


def test_deep_nesting_is_refused() -> None:
    for body in (b"[" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000):
        request = admission.Request(verb="create", resource="resourceclaims", version="v1", namespace="ns", body=body)
        assert admission.admit(request).status == 400
