"""Claims of pods and the order of CDI devices, as recorded."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.simulator.kubelet import checkpoint, podclaims
from drakit.simulator.kubelet.podclaims import ClaimError
from drakit.simulator.kubelet.state import ClaimInfo, ClaimRef, Device


def pod(claims: list[dict[str, Any]], **status: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "ns", "uid": "p-uid"}
    return {"metadata": metadata, "spec": {"resourceClaims": claims}, "status": status}


def container(*entries: tuple[str, str]) -> dict[str, Any]:
    claims = [{"name": name, **({"request": request} if request else {})} for name, request in entries]
    return {"name": "main", "resources": {"claims": claims}}


def info(name: str, *devices: Device, driver: str = "gpu.example.com") -> tuple[str, ClaimInfo]:
    return f"ns/{name}", ClaimInfo(ClaimRef("ns", name, f"uid-{name}"), ("p-uid",), {driver: devices}, prepared=True)


def device(name: str, *requests: str) -> Device:
    return Device("pool", name, requests, (f"v/c={name}",))


DIRECT = [{"name": "a", "resourceClaimName": "claim-a"}, {"name": "b", "resourceClaimName": "claim-b"}]
THREE = dict([info("claim-a", device("x", "r0"), device("y", "r0"), device("z", "r2"), device("all"))])


def ids(entries: list[tuple[str, str]], claims: dict[str, ClaimInfo] = THREE, seed: int = 0) -> list[str]:
    found = podclaims.cdi_devices(pod(DIRECT), container(*entries), claims, random.Random(seed))
    return [cdi_id.removeprefix("v/c=") for cdi_id in found]


class TestInjection:
    def test_the_whole_claim_in_reply_order_21(self) -> None:
        assert ids([("a", "")]) == ["x", "y", "z", "all"]

    def test_requests_in_the_order_of_the_containers_entries_21(self) -> None:
        assert ids([("a", "r2"), ("a", "r0")]) == ["z", "all", "x", "y", "all"]

    def test_devices_without_requests_go_to_every_container_p26(self) -> None:
        assert ids([("a", "r9")]) == ["all"]

    def test_subrequest_names_match_nothing_16(self) -> None:
        assert ids([("a", "r")], dict([info("claim-a", device("x", "r/sub"))])) == []

    def test_the_order_of_pod_claims_is_random_21(self) -> None:
        claims = dict([info("claim-a", device("x")), info("claim-b", device("y"))])
        orders = {tuple(ids([("a", ""), ("b", "")], claims, seed)) for seed in range(20)}
        assert orders == {("x", "y"), ("y", "x")}

    def test_a_container_without_claims_gets_nothing_21(self) -> None:
        assert ids([]) == []

    def test_a_claim_that_was_forgotten_27(self) -> None:
        with pytest.raises(ClaimError) as raised:
            ids([("b", "")])
        assert str(raised.value) == (
            "internal error: unable to get claim info for ResourceClaim claim-b in namespace ns"
        )

    def test_extended_resources_go_to_the_mapped_container_p27(self) -> None:
        status = {
            "extendedResourceClaimStatus": {
                "resourceClaimName": "claim-a",
                "requestMappings": [{"containerName": "main", "requestName": "r2", "resourceName": "x/y"}],
            }
        }
        found = podclaims.cdi_devices(pod([], **status), container(), THREE, random.Random(0))
        assert found == ("v/c=z", "v/c=all")
        assert podclaims.cdi_devices(pod([], **status), {"name": "other"}, THREE, random.Random(0)) == ()


class TestNames:
    def test_direct_generated_and_not_needed(self) -> None:
        entries = [
            *DIRECT[:1],
            {"name": "t", "resourceClaimTemplateName": "x"},
            {"name": "n", "resourceClaimTemplateName": "x"},
        ]
        statuses = [{"name": "t", "resourceClaimName": "p-t-abcde"}, {"name": "n"}]
        assert podclaims.claim_names(pod(entries, resourceClaimStatuses=statuses)) == {"a": "claim-a", "t": "p-t-abcde"}

    def test_not_created_yet(self) -> None:
        with pytest.raises(ClaimError, match='pod "ns/p": ResourceClaim not created yet'):
            podclaims.claim_names(pod([{"name": "t", "resourceClaimTemplateName": "x"}]))

    def test_a_generated_claim_of_another_pod_p18(self) -> None:
        claim = {
            "metadata": {
                "name": "c",
                "namespace": "ns",
                "uid": "u",
                "ownerReferences": [{"uid": "other", "controller": True}],
            }
        }
        with pytest.raises(ClaimError, match="Pod is not owner"):
            podclaims.read_claim(pod([]), claim, generated=True)

    def test_drivers_and_consumers(self) -> None:
        results = [{"driver": "b"}, {"driver": "a"}, {"driver": "b"}]
        claim = {
            "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
            "status": {"allocation": {"devices": {"results": results}}, "reservedFor": [{"uid": "p-uid"}]},
        }
        read = podclaims.read_claim(pod([]), claim, generated=False)
        assert (read.drivers, read.reserved_for) == (("b", "a"), ("p-uid",))
        assert podclaims.read_claim(pod([]), {"metadata": claim["metadata"]}, generated=False).drivers is None


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
devices = st.builds(Device, words, words, st.lists(words).map(tuple), st.lists(words).map(tuple), st.none() | words)
infos = st.builds(
    ClaimInfo,
    st.builds(ClaimRef, words, words, words),
    st.lists(words, unique=True, max_size=3).map(tuple),
    st.dictionaries(words, st.lists(devices, max_size=3).map(tuple), max_size=3),
)


@settings(max_examples=60)
@given(st.lists(infos, max_size=4))
def test_checkpoints_keep_everything_but_prepared_p22(entries: list[ClaimInfo]) -> None:
    claims = {f"{entry.ref.namespace}/{entry.ref.name}": entry for entry in entries}
    assert checkpoint.decode(checkpoint.encode(claims)) == claims


@pytest.mark.parametrize("content", [b"", b"{}", b'{"Data":"{}","Checksum":1}', b'{"Data":"{}","Checksum":2745614147}'])
def test_a_broken_checkpoint_is_refused(content: bytes) -> None:
    with pytest.raises(checkpoint.CheckpointError):
        checkpoint.decode(content)


def test_the_recorded_form_of_a_checkpoint_09() -> None:
    content = checkpoint.encode(dict([info("c", device("d0", "r"))]))
    assert content.startswith(
        b'{"Data":"{\\"kind\\":\\"DRACheckpoint\\",\\"apiVersion\\":\\"checkpoint.dra.kubelet.k8s.io/v1\\"'
    )
    assert b'\\"PodUIDs\\":{\\"p-uid\\":{}}' in content
