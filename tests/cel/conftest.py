"""Environments, recorded cases, devices and random expressions for the tests of cel."""

from __future__ import annotations

import functools
import gzip
import pathlib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import strategies as st

from drakit import cel
from drakit.cel.device import make_view

if TYPE_CHECKING:
    from collections.abc import Callable

VECTORS = pathlib.Path(__file__).parent.parent / "vectors"
GATES = {"ConsumableCapacity": "DRAConsumableCapacity", "ListTypeAttributes": "DRAListTypeAttributes"}


@pytest.fixture(scope="session")
def environment() -> cel.Environment:
    return cel.Environment()


@pytest.fixture(scope="session")
def environment_of() -> Callable[[dict[str, Any]], cel.Environment]:
    """The environment that a recorded case was answered in."""
    known: dict[tuple[frozenset[str], bool], cel.Environment] = {}

    def choose(case: dict[str, Any]) -> cel.Environment:
        gates = frozenset(gate for name, gate in GATES.items() if case["features"].get(name, True))
        key = gates, case["envType"] == "stored"
        if key not in known:
            known[key] = cel.Environment(features=gates, stored=key[1])
        return known[key]

    return choose


@pytest.fixture(scope="session")
def cases() -> Callable[[str], list[dict[str, Any]]]:
    """The recorded cases of a file; those of one expression stand together and share its program."""

    @functools.cache
    def load(name: str) -> list[dict[str, Any]]:
        with gzip.open(VECTORS / f"{name}.jsonl.gz") as file:
            return sorted(map(msgspec.json.decode, file), key=lambda case: str(case["expression"]))

    return load


GPU: dict[str, Any] = {
    "driver": "gpu.example.com",
    "attributes": {
        "model": {"string": "LATEST"},
        "index": {"int": 3},
        "big": {"int": 9223372036854775807},
        "ok": {"bool": True},
        "version": {"version": "1.2.3-rc.1+build"},
        "names": {"strings": ["a", "b", "c"]},
        "numbers": {"ints": [3, 1, 2]},
        "flags": {"bools": [True, False]},
        "versions": {"versions": ["1.0.0", "2.0.0"]},
        "other.example.com/model": {"string": "x"},
        "other.example.com/address": {"string": "10.1.2.3"},
    },
    "capacity": {
        "memory": {"value": "80Gi"},
        "cores": {"value": "1500m"},
        "other.example.com/memory": {"value": "1"},
    },
    "allowMultipleAllocations": True,
}


@pytest.fixture(scope="session")
def gpu() -> cel.DeviceView:
    return make_view(GPU["driver"], GPU)


@pytest.fixture(scope="session")
def evaluate(environment: cel.Environment, gpu: cel.DeviceView) -> Callable[[str], Any]:
    """The outcome of an expression on the GPU: True, False, the error's first line, or `compile: ` and its first line."""

    def outcome(expression: str) -> Any:
        try:
            return environment.compile(expression).evaluate(gpu)
        except cel.CompileError as error:
            return "compile: " + error.message.split("\n")[0].removeprefix("compilation failed: ")
        except cel.EvaluationError as error:
            return error.message

    return outcome


# --- random expressions: usually well typed, sometimes not

NAMES = st.sampled_from(["model", "index", "ok", "version", "names", "numbers", "flags", "versions", "nope"])
CAPACITIES = st.sampled_from(["memory", "cores", "nope"])
DOMAINS = st.sampled_from(['"gpu.example.com"', '"other.example.com"', '"none.com"', "device.driver"])
STRINGS = st.sampled_from(['"LATEST"', '"a"', '""', '"1.2.3"', '"80Gi"', '"é✓"', '"10.0.0.0/8"', '"a,b"', "r'\\d+'"])
NUMBERS = st.sampled_from(["0", "1", "-1", "3", "2u", "1.5", "9223372036854775807", "-0.0", "1e300"])
BINARY = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "&&", "||", "+", "-", "*", "/", "%"])
LOGIC = st.sampled_from(["&&", "||"])
METHODS = st.sampled_from(
    [
        "size()", "startsWith('a')", "matches('^[a-z]+$')", "contains('b')", "includes(1)", "includes('a')", "sort()",
        "isGreaterThan(quantity('1Gi'))", "compareTo(quantity('80Gi'))", "isLessThan(semver('1.2.3'))", "major()",
        "add(1)", "sub(quantity('1'))", "reverse()", "distinct()", "sum()", "max()", "join(',')", "split(',')",
        "lowerAscii()", "isSorted()", "indexOf('a')", "first()", "flatten()", "slice(0, 1)", "substring(1)",
        "replace('a', 'bb')", "asInteger()", "isInteger()", "asApproximateFloat()", "find('[0-9]+')", "trim()",
    ]
)  # fmt: skip
FUNCTIONS = st.sampled_from(
    ["size", "string", "int", "double", "type", "dyn", "quantity", "semver", "isSemver", "isQuantity", "ip", "isIP",
     "cidr", "url", "isURL", "duration", "timestamp", "bool", "bytes", "uint", "optional.of", "strings.quote"]
)  # fmt: skip
MACROS = st.sampled_from(
    [
        "{0}.exists({2}, {1})", "{0}.all({2}, {1})", "{0}.exists_one({2}, {1})", "{0}.map({2}, {1}).size() > 0",
        "{0}.filter({2}, {1}).size() == 1", "{0}.exists(i, {2}, {1})", "{0}.all(i, {2}, {1})",
        "{0}.transformList(i, {2}, {1}).size() > 1", "{0}.transformMap(i, {2}, {1}).size() > 1",
        "cel.bind({2}, {0}, {1})", "{0}.sortBy({2}, {1}).size() > 0", "optional.of({0}).optMap({2}, {1}).hasValue()",
    ]
)  # fmt: skip


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.builds("({} {} {})".format, inner, BINARY, inner),
        st.builds("({} {} {})".format, inner, LOGIC, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{}.{}".format, inner, METHODS),
        st.builds("{}({})".format, FUNCTIONS, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("[{}][{}]".format, inner, inner),
        st.builds('{{"a": {}}}.{}'.format, inner, st.sampled_from(["a", "?a.orValue(1)", "b", "size()"])),
        st.builds("({}).orValue({})".format, inner, inner),
        st.builds("{}.or({})".format, inner, inner),
        st.builds(lambda macro, parts, name: macro.format(*parts, name), MACROS, pair, st.sampled_from(["x", "y"])),
    )


LEAVES = st.one_of(
    STRINGS,
    NUMBERS,
    st.sampled_from(["true", "false", "null", "device.driver", "device.allowMultipleAllocations", "x", "y"]),
    st.builds("device.attributes[{}].{}".format, DOMAINS, NAMES),
    st.builds("device.attributes[{}].{}".format, DOMAINS, NAMES),
    st.builds("device.attributes[{}].?{}".format, DOMAINS, NAMES),
    st.builds("has(device.attributes[{}].{})".format, DOMAINS, NAMES),
    st.builds('"{}" in device.attributes[{}]'.format, NAMES, DOMAINS),
    st.builds("device.capacity[{}].{}".format, DOMAINS, CAPACITIES),
    st.builds("device.attributes[{}]".format, DOMAINS),
)


@pytest.fixture(scope="session")
def random_expressions() -> st.SearchStrategy[str]:
    return st.recursive(LEAVES, _compound, max_leaves=8)
