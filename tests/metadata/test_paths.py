"""Where metadata is on the host and in a container (M1, M4, M5, M10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.metadata import paths

BASE = "/var/run/kubernetes.io/dra-device-attributes"


def test_host_file_m1() -> None:
    expected = "/var/lib/kubelet/plugins/gpu.example.com/dra-device-metadata/ns_claim/gpu/metadata.json"
    for data in ("/var/lib/kubelet/plugins/gpu.example.com", "/var/lib/kubelet/plugins/gpu.example.com/"):
        assert paths.host_file(data, "ns", "claim", "gpu") == expected
        assert paths.host_file(data, "ns", "claim", "gpu/large") == expected


def test_container_file_m4() -> None:
    assert (
        paths.container_file("gpu.example.com", "gpu/large", claim="my.claim")
        == f"{BASE}/resourceclaims/my.claim/gpu/gpu.example.com-metadata.json"
    )
    assert (
        paths.container_file("gpu.example.com", "gpu", pod_claim="mine")
        == f"{BASE}/resourceclaimtemplates/mine/gpu/gpu.example.com-metadata.json"
    )


@pytest.mark.parametrize(("claim", "pod_claim"), [("", ""), ("a", "b")])
def test_exactly_one_kind_of_claim(claim: str, pod_claim: str) -> None:
    with pytest.raises(ValueError, match="give either claim"):
        paths.container_directory("gpu", claim=claim, pod_claim=pod_claim)


BAD_NAMES = ["..", "a/b", "", "A", ".", "a\0", "a\n", "-a", "x" * 254]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_never_leave_the_directory(name: str) -> None:
    with pytest.raises(ValueError, match="must be lower-case"):
        paths.host_file("/d", name, "claim", "gpu")
    if "/" not in name:  # what follows the slash of a request is not part of the path
        with pytest.raises(ValueError, match="must be lower-case"):
            paths.host_file("/d", "ns", "claim", name)
    if name != "A":  # driver names may have capitals, and the API refuses them in claims
        with pytest.raises(ValueError, match="must be lower-case"):
            paths.host_file("/d", "ns", name, "gpu")
        with pytest.raises(ValueError, match="must be lower-case"):
            paths.container_file(name, "gpu", claim="claim")


_names = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", fullmatch=True).filter(
    lambda name: ".." not in name and ".-" not in name and "-." not in name
)


@given(_names)
def test_long_names_fit_a_file_system_and_stay_apart(name: str) -> None:
    namespace = "n" * 63
    directory = paths.claim_directory("/d", namespace, name).rpartition("/")[2]
    assert len(directory) <= 255
    assert directory == f"{namespace}_{name}" or len(f"{namespace}_{name}") > 255


def test_two_long_names_differ() -> None:
    one, other = (paths.claim_directory("/d", "n" * 63, "c" * 252 + last) for last in "ab")
    assert one != other
    assert max(len(part) for part in one.split("/")) == 255
