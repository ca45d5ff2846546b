"""Records on disk: format, checksum, every released format (pains 2-4)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit import cdi, metadata
from drakit.api.meta import Condition
from drakit.driver import DeviceStatus, journal
from drakit.driver.journal import BrokenRecordError, Identity, NewerFormatError, PreparedDevice, Record
from drakit.files import REAL

FORMATS = Path(__file__).parent / "formats"
PATH = Path("/p/claims/ns/c/u.json")


def record(**changes: Any) -> Record:
    defaults: dict[str, Any] = {"namespace": "ns", "name": "c", "uid": "u", "phase": journal.PREPARED}
    return Record(**{**defaults, **changes})


def test_a_record_comes_back_as_it_was() -> None:
    edits = cdi.ContainerEdits(env=("A=b",), device_nodes=(cdi.DeviceNode("/dev/null"),))
    status = DeviceStatus(
        conditions=(Condition(type="Ready", status="True", reason="Up"),),
        data={"vf": [1, None]},
        network_data=metadata.NetworkData("eth0", ("10.0.0.1/24",), "aa"),
    )
    full = record(
        boot_id="b",
        allocation="a",
        devices=(PreparedDevice(request="r/s", pool="p", device="d", share_id="s", cdi_ids=("v/c=n",), status=status),),
        spec=cdi.Spec("0.3.0", "v/c", devices=(cdi.Device("n", container_edits=edits),)),
        pod_claim_name="x",
        generations={"r": 3},
        state={"vf": [1, None, "x"]},
    )
    assert journal.decode(journal.encode(full), PATH) == full


@pytest.mark.parametrize("path", sorted(FORMATS.glob("*.json")), ids=lambda path: path.name)
def test_pains_3_every_released_format_loads(path: Path, tmp_path: Path) -> None:
    """Files are named <format>-<release>.json and hold the record of claim default/demo."""
    uid = "0c8f4e0e-2f0b-4f5c-9d3e-1a2b3c4d5e6f"
    found = journal.decode(path.read_bytes(), tmp_path / "default" / "demo" / f"{uid}.json")
    assert found.identity == Identity("default", "demo", uid)
    assert found.phase == journal.PREPARED
    assert [device.cdi_ids for device in found.devices] == [
        (f"gpu.example.com/claim={uid}_gpu_node-a_gpu-0", f"gpu.example.com/metadata={uid}_gpu")
    ]
    assert found.state == {"slot": 3}


def test_pains_3_fields_of_a_later_release_are_passed_by() -> None:
    """N reads what N + 1 wrote, as long as the format is the same."""
    newer = msgspec.json.decode(msgspec.json.encode(record())) | {"color": "green"}
    raw = msgspec.json.encode(newer)
    envelope = {"format": 1, "checksum": journal._checksum(1, raw), "record": msgspec.Raw(raw)}
    assert journal.decode(msgspec.json.encode(envelope), PATH) == record()


def test_newer_formats_are_refused_with_the_way_out() -> None:
    raw = msgspec.json.encode({"anything": True})
    envelope = {"format": 2, "checksum": journal._checksum(2, raw), "record": msgspec.Raw(raw)}
    with pytest.raises(NewerFormatError, match="format 2, this release understands up to 1: run the release that"):
        journal.decode(msgspec.json.encode(envelope), PATH)


@given(st.integers(0, 400), st.integers(1, 255))
def test_pains_2_any_changed_byte_is_found_out(index: int, change: int) -> None:
    data = bytearray(journal.encode(record(state={"text": "x" * 50})))
    position = index % (len(data) - 1)  # the newline at the end is decoration
    data[position] ^= change
    try:
        found = journal.decode(bytes(data), PATH)
    except BrokenRecordError:
        return
    assert found == record(state={"text": "x" * 50})  # blanks between tokens, and escapes of the same text, may differ


@given(st.integers(0, 400))
def test_pains_2_truncated(length: int) -> None:
    data = journal.encode(record())
    with pytest.raises(BrokenRecordError):
        journal.decode(data[: length % (len(data) - 1)], PATH)


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    with pytest.raises(BrokenRecordError):
        journal.decode(data, PATH)


def test_the_record_of_another_claim_is_broken() -> None:
    with pytest.raises(BrokenRecordError, match="holds the record of ns/c:u"):
        journal.decode(journal.encode(record()), Path("/p/claims/ns/other/u.json"))


def test_identities_come_from_paths_alone(tmp_path: Path) -> None:
    for name in (
        "ns/c/u1.json",
        "ns/c/u2.json",
        "ns/d/u3.json",
        "ns/c/u4.unpreparing",
        "ns/c/.u5.tmp",
        "ns/c/x_y.json",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("garbage")
    (tmp_path / "file").write_text("garbage")
    (tmp_path / "ns" / "file").write_text("garbage")
    assert list(journal.identities(REAL, tmp_path)) == [
        Identity("ns", "c", "u1"),
        Identity("ns", "c", "u2"),
        Identity("ns", "d", "u3"),
    ]
