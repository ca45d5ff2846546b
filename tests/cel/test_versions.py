"""What each Kubernetes version and gate offers (spec/cel.md 3, the table)."""

from __future__ import annotations

import pytest

from drakit import cel

ATTRIBUTE = 'device.attributes["d"].x'
SINCE = {
    'format.named("uuid").hasValue()': 31,
    "[1].all(i, v, true)": 32,
    "[1].transformList(i, v, v) == [1]": 32,
    'isSemver("1", true)': 33,
    "[1].reverse() == [1]": 34,
    "device.allowMultipleAllocations": 34,
    f"{ATTRIBUTE}.includes(1)": 36,
}
ALWAYS = [
    "cel.bind(x, 1, x == 1)",
    'semver("1.0.0").major() == 1',
    "{'a': 1}.?a.orValue(2) == 1",
    'ip("::1").family() == 6',
    "sets.contains([1], [1])",
    'quantity("1").isInteger()',
    '"a".find("a") == "a"',
    "[1].sum() == 1",
    '"%s".format(["a"]) == "a"',
]


def compiles(environment: cel.Environment, expression: str) -> bool:
    try:
        environment.compile(expression)
    except cel.CompileError:
        return False
    return True


@pytest.mark.parametrize("minor", range(31, 38))
def test_stored_expressions_see_what_their_version_has(minor: int) -> None:
    environment = cel.Environment(f"1.{minor}")
    assert {each: compiles(environment, each) for each in SINCE} == {
        each: minor >= since for each, since in SINCE.items()
    }
    assert all(compiles(environment, each) for each in ALWAYS)


@pytest.mark.parametrize("minor", range(33, 38))
def test_new_expressions_see_what_the_version_before_had_or_a_gate_turns_on(minor: int) -> None:
    environment = cel.Environment(f"1.{minor}", features=(), stored=False)
    expected = {each: minor > since for each, since in SINCE.items()}
    expected["device.allowMultipleAllocations"] = expected[f"{ATTRIBUTE}.includes(1)"] = False
    assert {each: compiles(environment, each) for each in SINCE} == expected
    gated = cel.Environment(f"1.{minor}", stored=False)
    assert compiles(gated, "device.allowMultipleAllocations") is (minor >= 34)
    assert compiles(gated, f"{ATTRIBUTE}.includes(1)") is (minor >= 36)


def test_the_type_of_attributes_follows_the_gate_in_1_36_and_is_dyn_from_1_37() -> None:
    off = {"DRAConsumableCapacity"}
    assert cel.Environment("1.36", off).compile(ATTRIBUTE).output_type == "google.protobuf.Any"
    assert cel.Environment("1.36").compile(ATTRIBUTE).output_type == "dyn"
    assert cel.Environment("1.37", off).compile(ATTRIBUTE).output_type == "dyn"
    assert cel.Environment("1.37", off, stored=False).compile(ATTRIBUTE).output_type == "google.protobuf.Any"


def test_iterating_an_attribute_needs_dyn() -> None:
    expression = f"{ATTRIBUTE}.exists(x, x == 1)"
    assert compiles(cel.Environment("1.37"), expression)
    with pytest.raises(cel.CompileError, match=r"expression of type 'any' cannot be range of a comprehension"):
        cel.Environment("1.35").compile(expression)


@pytest.mark.parametrize("version", ["1.30", "1.38", "2.0", "", "1", "1.x"])
def test_unknown_versions_are_refused(version: str) -> None:
    with pytest.raises(ValueError, match=r"no dialect for Kubernetes"):
        cel.Environment(version)


def test_version_with_v_and_patch() -> None:
    assert compiles(cel.Environment("v1.34.2"), "device.allowMultipleAllocations")


class TestPolicies:
    """Environments with variables of any type, as admission policies have them."""

    environment = cel.Environment(variables=cel.ADMISSION_VARIABLES)

    def test_objects(self) -> None:
        program = self.environment.compile(
            "object.spec.devices.all(d, d.name.startsWith('gpu') && d.count <= 2) && !has(object.metadata.labels)"
        )
        spec = {"devices": [{"name": "gpu-0", "count": 1}, {"name": "gpu-1", "count": 2.0}]}
        assert not program.generated  # nothing bounds the size of objects: evaluation is metered
        assert program.evaluate({"object": {"metadata": {"name": "x"}, "spec": spec}}) is True
        spec["devices"].append({"name": "nic", "count": 1})
        assert program.evaluate({"object": {"metadata": {}, "spec": spec}}) is False
        assert program.fallbacks == 0

    def test_errors_and_missing_variables(self) -> None:
        program = self.environment.compile("object.spec.x == oldObject.spec.x || request.operation == 'CREATE'")
        with pytest.raises(cel.EvaluationError, match=r"no such attribute\(s\): oldObject"):
            program.evaluate({"object": {"spec": {"x": 1}}, "request": {"operation": "UPDATE"}})
        assert program.evaluate({"object": {"spec": {}}, "request": {"operation": "CREATE"}}) is True
        with pytest.raises(cel.EvaluationError, match=r"no such key: spec"):
            program.evaluate({"object": {}, "oldObject": {}, "request": {"operation": "UPDATE"}})

    def test_result_types(self) -> None:
        with pytest.raises(cel.CompileError, match=r"^must evaluate to bool$"):
            self.environment.compile("object.spec.x")
        with pytest.raises(cel.CompileError, match=r"^must evaluate to string$"):
            self.environment.compile("1", result="string")
        message = self.environment.compile("'bad ' + object.kind", result="string")
        assert message.evaluate({"object": {"kind": "Pod"}}) == "bad Pod"
        value = self.environment.compile("object.spec", result="any").evaluate({"object": {"spec": {"a": [1, None]}}})
        assert value == {"a": (1, None)}

    def test_selectors_have_no_such_variables(self) -> None:
        with pytest.raises(cel.CompileError, match=r"undeclared reference to 'device'"):
            self.environment.compile("device.driver == 'x'")
        with pytest.raises(TypeError):
            cel.Environment().compile("true").evaluate({})

    def test_authorizer_is_declared_but_not_answered(self) -> None:
        program = self.environment.compile("authorizer.group('').resource('pods').check('get').allowed()")
        with pytest.raises(cel.EvaluationError):
            program.evaluate({})

    def test_values_without_a_type_are_refused(self) -> None:
        with pytest.raises(cel.EvaluationError, match=r"unsupported conversion"):
            self.environment.compile("object == 1").evaluate({"object": object()})
