"""Reading in a container (M28; scenarios 28, 29): nothing but msgspec and the standard library is imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from drakit import metadata

_IMPORTS = """
import json, sys
sys.modules["typing_extensions"] = None  # msgspec takes it where it is installed, and does without it
before = set(sys.modules)
import drakit.metadata
drakit.metadata.read
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before}
                        | {name for name in sys.modules if name.startswith("drakit")})))
"""


def put(base: Path, path: str, *requests: metadata.Request, pod_claim_name: str | None = None) -> Path:
    target = base / path
    target.parent.mkdir(parents=True, exist_ok=True)
    meta = metadata.ObjectMeta("claim", "ns", "uid", 3)
    target.write_bytes(metadata.encode_stream(metadata.DeviceMetadata(meta, pod_claim_name, requests)))
    return target


def device(driver: str, name: str = "d") -> metadata.Device:
    return metadata.Device(driver, "pool", name)


def test_reading_imports_msgspec_and_the_standard_library_only() -> None:
    command = [sys.executable, "-c", _IMPORTS]
    names = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    foreign = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    assert {name for name in foreign if not name.startswith("_")} == {"drakit", "msgspec"}
    assert {name for name in names if name.startswith("drakit.")} == {
        "drakit.metadata",
        "drakit.metadata.model",
        "drakit.metadata.paths",
        "drakit.metadata.reader",
    }


def test_the_writer_is_there_when_asked_for() -> None:
    assert metadata.Writer.__name__ == "Writer"
    with pytest.raises(AttributeError, match="nothing"):
        _ = metadata.nothing


def test_one_driver(tmp_path: Path) -> None:
    put(tmp_path, "resourceclaims/claim/gpu/d.example.com-metadata.json", metadata.Request("gpu", (device("d"),)))
    found = metadata.read("gpu", claim="claim", driver="d.example.com", base=str(tmp_path))
    assert found.metadata == metadata.ObjectMeta("claim", "ns", "uid", 3)
    assert found.requests == (metadata.Request("gpu", (device("d"),)),)
    assert metadata.read("gpu/large", claim="claim", driver="d.example.com", base=str(tmp_path)) == found


def test_all_drivers_are_joined_in_the_order_of_their_names(tmp_path: Path) -> None:
    base = "resourceclaimtemplates/mine/gpu"
    put(tmp_path, f"{base}/b.example.com-metadata.json", metadata.Request("gpu", (device("b"),)), pod_claim_name="mine")
    put(tmp_path, f"{base}/a.example.com-metadata.json", metadata.Request("gpu", (device("a"),)))
    put(tmp_path, f"{base}/c.example.com-metadata.json", metadata.Request("gpu/x", (device("c"),)), pod_claim_name="no")
    (tmp_path / base / "notes.txt").write_text("nonsense")
    (tmp_path / base / "other.json").write_text("nonsense")
    found = metadata.read("gpu", pod_claim="mine", base=str(tmp_path))
    assert found == metadata.DeviceMetadata(
        pod_claim_name="mine",
        requests=(metadata.Request("gpu", (device("a"), device("b"))), metadata.Request("gpu/x", (device("c"),))),
    )


def test_none_or_a_missing_directory(tmp_path: Path) -> None:
    message = f"no metadata files found in {tmp_path}/resourceclaims/claim/gpu"
    with pytest.raises(metadata.MetadataError, match=message):
        metadata.read("gpu", claim="claim", base=str(tmp_path))
    (tmp_path / "resourceclaims/claim/gpu").mkdir(parents=True)
    with pytest.raises(metadata.MetadataError, match=message):
        metadata.read("gpu", claim="claim", base=str(tmp_path))


def test_a_broken_or_missing_file_is_named(tmp_path: Path) -> None:
    path = put(tmp_path, "resourceclaims/claim/gpu/a.example.com-metadata.json")
    put(tmp_path, "resourceclaims/claim/gpu/b.example.com-metadata.json")
    path.write_text("{")
    with pytest.raises(metadata.MetadataError, match=f"^{path}: read metadata object"):
        metadata.read("gpu", claim="claim", base=str(tmp_path))
    path.unlink()
    with pytest.raises(metadata.MetadataError, match=rf"^open metadata file: {path}: No such file"):
        metadata.read("gpu", claim="claim", driver="a.example.com", base=str(tmp_path))


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "resourceclaims/claim").mkdir(parents=True)
    (tmp_path / "resourceclaims/claim/gpu").touch()
    with pytest.raises(metadata.MetadataError, match="Not a directory"):
        metadata.read("gpu", claim="claim", base=str(tmp_path))
