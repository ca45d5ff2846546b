"""The immediate writer (M1-M3, M12, M14-M22; scenarios 16-24, 77)."""

import errno
import json
import stat
from pathlib import Path

import pytest

from drakit import cdi, metadata
from drakit.files import REAL, Filesystem, StrPath

DRIVER = "gpu.example.com"
UID = "5d8c4f43-6fbc-4d1c-95a4-0f4b1f4c2a11"
CLAIM = metadata.Claim("default", "claim", UID)
TEMPLATE = metadata.Claim.of("default", "pod-gpu-x7", UID, {"resource.kubernetes.io/pod-claim-name": "gpus"})


def device(name: str = "gpu-0", **attributes: str) -> metadata.Device:
    return metadata.Device(
        DRIVER, "node-1", name, {key: metadata.Attribute(string=value) for key, value in attributes.items()}
    )


def prepared(*requests: str, name: str = "gpu-0") -> metadata.PreparedDevice:
    return metadata.PreparedDevice(requests, device(name, model="x"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "plugins"


@pytest.fixture
def store(tmp_path: Path) -> cdi.Store:
    return cdi.Store(tmp_path / "cdi", owner=DRIVER)


@pytest.fixture
def writer(data: Path, store: cdi.Store) -> metadata.Writer:
    return metadata.Writer(driver=DRIVER, data_directory=data, store=store)


def mounted(tmp_path: Path, data: Path, store: cdi.Store, ids: tuple[str, ...]) -> Path:
    """What a container sees: the files that the CDI ids mount, in a directory of its own."""
    root = tmp_path / "container"
    for mount in cdi.resolve([store.root], ids, {})["mounts"]:
        assert mount["options"] == ["ro", "bind"]
        assert Path(mount["source"]).is_relative_to(data)
        target = root / mount["destination"].lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(Path(mount["source"]).read_bytes())
    return root / metadata.paths.CONTAINER_BASE.lstrip("/")


def test_a_container_reads_what_was_written(
    tmp_path: Path, data: Path, store: cdi.Store, writer: metadata.Writer
) -> None:
    [ids] = writer.write(CLAIM, [prepared("gpu")])
    assert ids == (f"{DRIVER}/metadata={UID}_gpu",)
    base = str(mounted(tmp_path, data, store, ids))
    found = metadata.read("gpu", claim="claim", driver=DRIVER, base=base)
    assert found.metadata == metadata.ObjectMeta("claim", "default", UID, 1)
    assert found.requests == (metadata.Request("gpu", (device(model="x"),)),)
    assert found.pod_claim_name is None


def test_files_modes_and_versions_m1_m2_m3_m8(data: Path, store: cdi.Store, writer: metadata.Writer) -> None:
    writer.write(CLAIM, [prepared("gpu")])
    file = data / "dra-device-metadata" / "default_claim" / "gpu" / "metadata.json"
    spec = store.root / f"{DRIVER}_metadata_{UID}_gpu.json"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, spec)] == [0o644, 0o644]
    assert {stat.S_IMODE(path.stat().st_mode) for path in list(file.parents)[:4]} == {0o755}
    assert [line for line in file.read_text().splitlines() if "apiVersion" in line] == [
        '  "apiVersion": "metadata.resource.k8s.io/v1beta1",',
        '  "apiVersion": "metadata.resource.k8s.io/v1alpha1",',
    ]
    expected = {
        "cdiVersion": "0.5.0",
        "kind": f"{DRIVER}/metadata",
        "devices": [
            {
                "name": f"{UID}_gpu",
                "containerEdits": {
                    "mounts": [
                        {
                            "hostPath": str(file),
                            "containerPath": "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/claim/gpu/"
                            f"{DRIVER}-metadata.json",
                            "options": ["ro", "bind"],
                        }
                    ]
                },
            }
        ],
    }
    assert spec.read_text() == json.dumps(expected, indent=2)  # keys in this order, no newline at the end


def test_a_uid_that_begins_with_a_letter_needs_an_older_version(store: cdi.Store, writer: metadata.Writer) -> None:
    writer.write(metadata.Claim("default", "claim", "abc"), [prepared("gpu")])
    assert cdi.parse((store.root / f"{DRIVER}_metadata_abc_gpu.json").read_bytes()).cdi_version == "0.3.0"


def test_template_claims_m5(tmp_path: Path, data: Path, store: cdi.Store, writer: metadata.Writer) -> None:
    [ids] = writer.write(TEMPLATE, [prepared("gpu")])
    found = metadata.read("gpu", pod_claim="gpus", base=str(mounted(tmp_path, data, store, ids)))
    assert found.pod_claim_name == "gpus"


def test_empty_template_annotation_m5(tmp_path: Path, data: Path, store: cdi.Store, writer: metadata.Writer) -> None:
    claim = metadata.Claim.of("default", "claim", UID, {metadata.POD_CLAIM_NAME: ""})
    [ids] = writer.write(claim, [prepared("gpu")])
    assert metadata.read("gpu", claim="claim", base=str(mounted(tmp_path, data, store, ids))).pod_claim_name == ""


def test_one_file_spec_and_id_per_request_m10_m16(
    tmp_path: Path, data: Path, store: cdi.Store, writer: metadata.Writer
) -> None:
    devices = [
        prepared("a/big", name="gpu-0"),
        prepared("a/big", "b", name="gpu-1"),
        prepared(name="gpu-2"),
        prepared("c", name="gpu-3"),
    ]
    ids = writer.write(CLAIM, devices)
    prefix = f"{DRIVER}/metadata={UID}_"
    assert ids == ((f"{prefix}a",), (f"{prefix}b",), (), (f"{prefix}c",))
    assert ids == writer.ids(CLAIM, devices)
    base = str(mounted(tmp_path, data, store, tuple(cdi_id for each in ids for cdi_id in each)))
    [request] = metadata.read("a", claim="claim", base=base).requests
    assert request.name == "a/big"
    assert [found.name for found in request.devices] == ["gpu-0", "gpu-1"]
    assert [file.part for file in store.list()] == ["a", "b", "c"]


def test_a_driver_whose_name_begins_with_a_digit(tmp_path: Path, data: Path) -> None:
    store = cdi.Store(tmp_path / "cdi", owner="1.example.com")
    writer = metadata.Writer(driver="1.example.com", data_directory=data, store=store)
    [ids] = writer.write(CLAIM, [prepared("gpu")])
    found = metadata.read("gpu", claim="claim", driver="1.example.com", base=str(mounted(tmp_path, data, store, ids)))
    assert found.metadata.uid == UID


def test_deferred_device_has_its_identity_m15(data: Path, writer: metadata.Writer) -> None:
    writer.write(CLAIM, [metadata.PreparedDevice(("gpu",), metadata.Device(DRIVER, "node-1", "gpu-0"))])
    text = (data / "dra-device-metadata/default_claim/gpu/metadata.json").read_text()
    assert "attributes" not in text
    assert '"name": "gpu-0"' in text


def test_updates_raise_the_generation_m19(data: Path, writer: metadata.Writer) -> None:
    writer.write(TEMPLATE, [prepared("gpu/big")])
    path = data / "dra-device-metadata/default_pod-gpu-x7/gpu/metadata.json"
    anonymous = metadata.Claim("default", "pod-gpu-x7", UID)
    assert [writer.update(anonymous, "gpu/big", [device("gpu-9", model="y")]) for _ in range(3)] == [2, 3, 4]
    found = metadata.read_file(path)
    assert found.metadata.generation == 4
    assert found.pod_claim_name == "gpus"
    assert found.requests == (metadata.Request("gpu/big", (device("gpu-9", model="y"),)),)
    writer.update(anonymous, "gpu", [])
    assert metadata.read_file(path).requests == (metadata.Request("gpu"),)


@pytest.mark.parametrize(
    ("claim", "request_name"),
    [
        (CLAIM, "other"),
        (metadata.Claim("default", "other", UID), "gpu"),
        (metadata.Claim("default", "claim", "another-uid"), "gpu"),
    ],
)
def test_update_of_what_was_not_prepared(writer: metadata.Writer, claim: metadata.Claim, request_name: str) -> None:
    writer.write(CLAIM, [prepared("gpu")])
    with pytest.raises(metadata.MetadataError, match=f'request "{request_name}" not found in prepared claim'):
        writer.update(claim, request_name, [])


def test_update_says_why_it_cannot(data: Path, writer: metadata.Writer) -> None:
    writer.write(CLAIM, [prepared("gpu")])
    path = data / "dra-device-metadata/default_claim/gpu/metadata.json"
    path.write_text("{")
    with pytest.raises(metadata.MetadataError, match="decode existing metadata: read metadata object"):
        writer.update(CLAIM, "gpu", [])
    path.unlink()
    path.mkdir()
    with pytest.raises(metadata.MetadataError, match=r"read metadata file: .*not a regular file"):
        writer.update(CLAIM, "gpu", [])
    with pytest.raises(metadata.MetadataError, match="must be lower-case"):
        writer.update(CLAIM, "../gpu", [])


def test_prepare_again_begins_again_m18(data: Path, writer: metadata.Writer) -> None:
    writer.write(CLAIM, [prepared("gpu")])
    writer.update(CLAIM, "gpu", [])
    writer.write(CLAIM, [prepared("gpu")])
    path = data / "dra-device-metadata/default_claim/gpu/metadata.json"
    assert metadata.read_file(path).metadata.generation == 1


def test_restoring_writes_only_what_is_missing_and_keeps_generations(
    data: Path, store: cdi.Store, writer: metadata.Writer
) -> None:
    devices = [prepared("a"), prepared("b", name="gpu-1")]
    writer.write(CLAIM, devices)
    writer.update(CLAIM, "a", [])
    before = (data / "dra-device-metadata/default_claim/a/metadata.json").stat()
    (data / "dra-device-metadata/default_claim/b/metadata.json").unlink()
    store.remove(cdi.SpecFile("metadata", UID, "a"))
    writer.write(CLAIM, devices, generations={"b": 7}, only_missing=True)
    assert (data / "dra-device-metadata/default_claim/a/metadata.json").stat() == before
    found = metadata.read_file(data / "dra-device-metadata/default_claim/b/metadata.json")
    assert found.metadata.generation == 7
    assert len(store.list()) == 2


def test_restoring_replaces_another_claims_file_of_the_same_name(data: Path, writer: metadata.Writer) -> None:
    writer.write(metadata.Claim("default", "claim", "old"), [prepared("gpu")])
    writer.write(CLAIM, [prepared("gpu")], only_missing=True)
    assert metadata.read_file(data / "dra-device-metadata/default_claim/gpu/metadata.json").metadata.uid == UID


def test_remove_takes_everything_and_nothing_else_m20(data: Path, store: cdi.Store, writer: metadata.Writer) -> None:
    other = metadata.Claim("default", "other", "other-uid")
    writer.write(CLAIM, [prepared("a/x"), prepared("b")])
    writer.write(other, [prepared("a")])
    store.write(cdi.claim_file(UID), cdi.Spec("", "a/b", devices=(cdi.Device("d", {}, cdi.ContainerEdits(("A=1",))),)))
    for _ in range(2):
        writer.remove(CLAIM)
        assert REAL.list(data / "dra-device-metadata") == ("default_other",)
        assert store.list() == (cdi.claim_file(UID), cdi.SpecFile("metadata", "other-uid", "a"))
    writer.remove(metadata.Claim("default", "never", "was"))


def test_late_removal_of_an_old_claim_spares_the_new_one_trap_25(data: Path, writer: metadata.Writer) -> None:
    old = metadata.Claim("default", "claim", "old")
    writer.write(old, [prepared("gpu")])
    writer.write(CLAIM, [prepared("gpu")])
    writer.remove(old)
    assert (data / "dra-device-metadata/default_claim/gpu/metadata.json").exists()
    writer.remove(CLAIM)
    assert not (data / "dra-device-metadata/default_claim").exists()


def test_clean_removes_what_dead_processes_left(data: Path, store: cdi.Store, writer: metadata.Writer) -> None:
    class Dying(Filesystem):
        def rename(self, source: StrPath, target: StrPath) -> None:
            raise KeyboardInterrupt

    writer.write(CLAIM, [prepared("gpu")])
    writer.write(metadata.Claim("default", "gone", "gone"), [prepared("gpu")])
    dying = metadata.Writer(Dying(), driver=DRIVER, data_directory=data, store=store)
    for name in ("claim", "half"):
        with pytest.raises(KeyboardInterrupt):
            dying.write(metadata.Claim("default", name, UID), [prepared("gpu")])
    assert writer.clean(live={UID}) == ("default_gone", "default_half")
    assert [path.name for path in (data / "dra-device-metadata").rglob("*")] == [
        "default_claim",
        "gpu",
        "metadata.json",
    ]
    assert writer.clean(live={UID}) == ()


class Failing(Filesystem):
    def rename(self, source: StrPath, target: StrPath) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def rmdir(self, path: StrPath) -> bool:
        raise OSError(errno.EBUSY, "busy")


def test_failures_say_what_could_not_be_done(data: Path, store: cdi.Store, writer: metadata.Writer) -> None:
    failing = metadata.Writer(Failing(), driver=DRIVER, data_directory=data, store=store)
    with pytest.raises(metadata.MetadataError, match=r"write device metadata of claim default/claim: .*No space"):
        failing.write(CLAIM, [prepared("gpu")])
    writer.write(CLAIM, [prepared("gpu")])
    with pytest.raises(metadata.MetadataError, match=r"write metadata file: .*No space"):
        failing.update(CLAIM, "gpu", [])
    with pytest.raises(metadata.MetadataError, match=r"clean up device metadata: .*busy"):
        failing.remove(CLAIM)
    writer.remove(CLAIM)


@pytest.mark.parametrize(
    "claim",
    [
        metadata.Claim("..", "claim", UID),
        metadata.Claim("default", "../../etc", UID),
        metadata.Claim("default", "claim", "../x"),
        metadata.Claim("default", "claim", ""),
    ],
)
def test_identities_never_leave_the_directories(tmp_path: Path, writer: metadata.Writer, claim: metadata.Claim) -> None:
    with pytest.raises(metadata.MetadataError):
        writer.write(claim, [prepared("gpu")])
    assert not list(tmp_path.rglob("*_metadata_*"))


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ([], "must include v1beta1"),
        (["v1alpha1"], "must include v1beta1"),
        (["v1beta1", "v1"], "'v1'"),
    ],
)
def test_versions_m12(data: Path, store: cdi.Store, versions: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metadata.Writer(driver=DRIVER, data_directory=data, store=store, versions=versions)


def test_the_newest_version_alone(data: Path, store: cdi.Store) -> None:
    writer = metadata.Writer(driver=DRIVER, data_directory=data, store=store, versions=["v1beta1"])
    writer.write(CLAIM, [prepared("gpu")])
    assert "v1alpha1" not in (data / "dra-device-metadata/default_claim/gpu/metadata.json").read_text()
