"""The Spec of one prepared claim, and the ids that go to kubelet."""

from pathlib import Path

import pytest

from drakit import cdi

UID = "5d8c4f43-6fbc-4d1c-95a4-0f4b1f4c2a11"


def env(name: str) -> cdi.ContainerEdits:
    return cdi.ContainerEdits(env=(f"{name}=1",))


def test_each_device_has_an_id_of_its_own() -> None:
    devices = {("node-1", "gpu-0"): env("A"), ("node-1", "gpu-1"): env("B")}
    spec, ids = cdi.claim_spec("gpu.example.com", UID, devices)
    assert spec is not None
    assert cdi.validate(spec) == []
    assert ids == {key: (f"gpu.example.com/claim={UID}_{'_'.join(key)}",) for key in devices}


def test_common_edits_come_first_and_once(tmp_path: Path) -> None:
    devices = {("p", "a"): env("A"), ("p", "b"): cdi.ContainerEdits()}
    spec, ids = cdi.claim_spec("1.example.com", UID, devices, env("COMMON"))
    assert spec is not None
    assert [len(each) for each in ids.values()] == [2, 1]
    store = cdi.Store(tmp_path, owner="1.example.com")
    store.write(cdi.claim_file(UID), spec)
    wanted = [cdi_id for each in ids.values() for cdi_id in each]
    assert cdi.resolve([tmp_path], wanted, {})["process"]["env"] == ["COMMON=1", "A=1"]


def test_shares_of_one_device_differ() -> None:
    devices = {("p", "a", "share-1"): env("A"), ("p", "a", "share-2"): env("B"), ("p/q", "a"): env("C")}
    _, ids = cdi.claim_spec("gpu.example.com", UID, devices)
    assert len({cdi_id for each in ids.values() for cdi_id in each}) == 3


def test_nothing_to_edit_needs_no_file() -> None:
    assert cdi.claim_spec("gpu.example.com", UID, {("p", "a"): cdi.ContainerEdits()}) == (None, {("p", "a"): ()})
    assert cdi.claim_spec("gpu.example.com", UID, {}) == (None, {})


def test_claims_never_share_ids() -> None:
    """Pain 56: two claims on one device."""
    one, other = (cdi.claim_spec("gpu.example.com", uid, {("p", "a"): env("A")})[1] for uid in (UID, UID[:-1]))
    assert not {*one[("p", "a")]} & {*other[("p", "a")]}


def test_driver_name_is_checked() -> None:
    with pytest.raises(ValueError, match="driver name"):
        cdi.claim_spec("a_b", UID, {("p", "a"): env("A")})
