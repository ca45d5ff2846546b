"""v1beta1 <-> v1 on plain dicts: nothing is lost (spec/resourceslice.md 3)."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.kube import conversion

quick = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
names = st.text("abcdefghij", min_size=1, max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(names, values, max_size=4)
devices = st.builds(lambda name, body: {"name": name, **body}, names, bodies)
requests = st.builds(
    lambda name, exactly, first: {"name": name, **({"firstAvailable": first} if first else {"exactly": exactly})},
    names,
    st.dictionaries(names, values, min_size=1, max_size=4),
    st.none() | st.lists(bodies, min_size=1, max_size=2),
)


@quick
@given(spec=bodies, listed=st.lists(devices, max_size=3))
def test_slices_survive_the_way_there_and_back(spec: dict[str, Any], listed: list[Any]) -> None:
    obj = {"metadata": {"name": "s"}, "spec": {**spec, "devices": listed}}
    there = conversion.from_v1(obj, "ResourceSlice", "v1beta1")
    assert all(set(device) == {"name", "basic"} for device in there["spec"]["devices"])
    assert conversion.to_v1(there, "ResourceSlice", "v1beta1") == obj


@quick
@given(listed=st.lists(requests, max_size=3), rest=bodies)
def test_claims_and_templates_survive_the_way_there_and_back(listed: list[Any], rest: dict[str, Any]) -> None:
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {**rest, "requests": listed}}, "status": rest}
    there = conversion.from_v1(claim, "ResourceClaim", "v1beta1")
    assert not any("exactly" in request for request in there["spec"]["devices"]["requests"])
    assert conversion.to_v1(there, "ResourceClaim", "v1beta1") == claim
    template = {"spec": {"metadata": {"labels": {}}, "spec": claim["spec"]}}
    there = conversion.from_v1(template, "ResourceClaimTemplate", "v1beta1")
    assert conversion.to_v1(there, "ResourceClaimTemplate", "v1beta1") == template


def test_v1beta1_says_unset_with_zero_values() -> None:
    obj = {"spec": {"nodeName": "", "allNodes": False, "perDeviceNodeSelection": True}}
    assert conversion.to_v1(obj, "ResourceSlice", "v1beta1") == {"spec": {"perDeviceNodeSelection": True}}


def test_a_device_without_basic_is_a_name() -> None:
    obj = {"spec": {"devices": [{"name": "d"}]}}
    assert conversion.to_v1(obj, "ResourceSlice", "v1beta1") == obj


def test_the_required_class_name_of_first_available_requests_is_no_field() -> None:
    request = {"name": "r", "deviceClassName": "", "firstAvailable": [{"name": "a"}]}
    obj = {"spec": {"devices": {"requests": [request]}}}
    found = conversion.to_v1(obj, "ResourceClaim", "v1beta1")
    assert found["spec"]["devices"]["requests"] == [{"name": "r", "firstAvailable": [{"name": "a"}]}]


def test_flat_and_first_available_together_stay_both_set() -> None:
    request = {"name": "r", "deviceClassName": "c", "firstAvailable": [{"name": "a"}]}
    obj = {"spec": {"devices": {"requests": [request]}}}
    found = conversion.to_v1(obj, "ResourceClaim", "v1beta1")
    assert set(found["spec"]["devices"]["requests"][0]) == {"name", "exactly", "firstAvailable"}


def test_partial_objects_pass() -> None:
    for kind in ("ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "Node"):
        parts: list[dict[str, Any]] = [
            {"metadata": {"labels": {"a": "b"}}},
            {"status": {"devices": []}},
            {"spec": None},
        ]
        for obj in parts:
            assert conversion.from_v1(obj, kind, "v1beta1") == obj
            assert conversion.to_v1(obj, kind, "v1beta1") == obj


def test_v1beta2_has_the_shape_of_v1() -> None:
    obj = {"spec": {"devices": [{"name": "d", "attributes": {}}]}}
    assert conversion.from_v1(obj, "ResourceSlice", "v1beta2") is obj
