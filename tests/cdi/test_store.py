"""A driver's own CDI files in a directory shared with others (M2, M20, P33, traps 10 and 17, pains 53, 55, 59)."""

import stat
import threading
from pathlib import Path

import pytest

from drakit import cdi, files
from drakit.files import REAL, Filesystem, StrPath

DRIVER = "gpu.example.com"
UID = "5d8c4f43-6fbc-4d1c-95a4-0f4b1f4c2a11"
OTHER = "0e4f1a2b-0000-4d1c-95a4-0f4b1f4c2a11"


def spec(value: str = "1", name: str = "dev") -> cdi.Spec:
    edits = cdi.ContainerEdits(env=(f"A={value}",))
    return cdi.Spec("", f"{DRIVER}/claim", devices=(cdi.Device(name, container_edits=edits),))


@pytest.fixture
def store(tmp_path: Path) -> cdi.Store:
    return cdi.Store(tmp_path / "cdi", owner=DRIVER)


def test_write_makes_the_directory_and_a_file_that_resolves(store: cdi.Store) -> None:
    path = store.write(cdi.claim_file(UID), spec())
    assert path == store.root / f"{DRIVER}_claim_{UID}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(store.root.stat().st_mode) == 0o755
    assert cdi.resolve([store.root], [f"{DRIVER}/claim=dev"], {})["process"]["env"] == ["A=1"]


def test_write_declares_the_lowest_version(store: cdi.Store) -> None:
    assert cdi.parse(store.write(cdi.claim_file(UID), spec()).read_bytes()).cdi_version == "0.3.0"
    assert cdi.parse(store.write(cdi.claim_file(UID), spec(name="0")).read_bytes()).cdi_version == "0.5.0"


def test_write_replaces(store: cdi.Store) -> None:
    store.write(cdi.claim_file(UID), spec("1"))
    store.write(cdi.claim_file(UID), spec("2"))
    assert store.list() == (cdi.SpecFile("claim", UID),)
    assert cdi.resolve([store.root], [f"{DRIVER}/claim=dev"], {})["process"]["env"] == ["A=2"]


def test_the_directory_vanishes_and_comes_back(store: cdi.Store) -> None:
    """Pain 1: /var/run/cdi is a tmpfs."""
    store.write(cdi.claim_file(UID), spec())
    files.remove(REAL, store.root)
    assert store.list() == ()
    assert store.write(cdi.claim_file(UID), spec()).exists()


def test_what_a_runtime_refuses_is_never_written(store: cdi.Store) -> None:
    bad = cdi.Spec("", "a/b", devices=(cdi.Device("d"),))
    with pytest.raises(cdi.SpecError, match="must not be empty"):
        store.write(cdi.claim_file(UID), bad)
    assert not store.root.exists()


def test_remove_and_list_see_only_own_files(store: cdi.Store) -> None:
    theirs = {"other.example.com_claim_1.json", f"{DRIVER}.json", f"x{DRIVER}_claim_{UID}.json", f"{DRIVER}_claim_.json",
              f"{DRIVER}_claim_{UID}.yaml", f"{DRIVER}_CLAIM_{UID}.json", "README"}  # fmt: skip
    store.prepare()
    for name in theirs:
        (store.root / name).touch()
    mine = (cdi.SpecFile("claim", UID), cdi.SpecFile("metadata", UID, "req-1"), cdi.SpecFile("metadata", UID, "req-2"))
    for file in mine:
        store.write(file, spec())
    assert store.list() == mine
    assert store.remove_claim(UID, purpose="metadata") == 2
    assert store.remove(cdi.claim_file(UID)) is True
    assert store.remove(cdi.claim_file(UID)) is False
    assert store.remove_claim(UID) == 0
    assert set(REAL.list(store.root)) == theirs


def test_a_driver_whose_name_begins_like_ours_keeps_its_files(store: cdi.Store) -> None:
    longer = cdi.Store(store.root, owner=f"{DRIVER}.cn")
    longer.write(cdi.claim_file(UID), spec())
    assert store.list() == ()
    assert store.clean(live=()) == ()
    assert longer.list() == (cdi.SpecFile("claim", UID),)


def test_clean_removes_files_of_dead_claims_and_half_written_ones(store: cdi.Store) -> None:
    class Dying(Filesystem):
        def rename(self, source: StrPath, target: StrPath) -> None:
            raise KeyboardInterrupt

    dying = [cdi.Store(store.root, Dying(), owner=owner) for owner in (DRIVER, "other.example.com")]
    store.write(cdi.claim_file(UID), spec())
    store.write(cdi.claim_file(OTHER), spec(name="dev2"))
    for victim in dying:
        with pytest.raises(KeyboardInterrupt):
            victim.write(cdi.claim_file(UID), spec("half"))
    assert store.clean(live={UID}) == (cdi.SpecFile("claim", OTHER),)
    left = REAL.list(store.root)
    assert f"{DRIVER}_claim_{UID}.json" in left
    assert [name for name in left if name.endswith(".tmp")] == [n for n in left if n.startswith(".other.example.com_")]
    assert len(left) == 2


def test_prepare_leaves_nothing_behind(store: cdi.Store) -> None:
    store.prepare()
    store.prepare()
    assert REAL.list(store.root) == ()


def test_an_unusable_directory_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = cdi.Store(tmp_path / "file", owner=DRIVER)
    for attempt in (store.prepare, lambda: store.write(cdi.claim_file(UID), spec())):
        with pytest.raises(cdi.StoreError, match=r"[Nn]ot a directory.*Mount") as caught:
            attempt()
        assert caught.value.directory == tmp_path / "file"


@pytest.mark.parametrize("file", [
    cdi.SpecFile("claim", "../../etc"), cdi.SpecFile("claim", ""), cdi.SpecFile("claim", "a" * 65),
    cdi.SpecFile("claim", "a_b"), cdi.SpecFile("claim", UID, "a/b"), cdi.SpecFile("", UID), cdi.SpecFile("a/b", UID),
    cdi.SpecFile("claim", UID, "a\n"),
])  # fmt: skip
def test_identities_that_are_no_file_names_are_refused(store: cdi.Store, file: cdi.SpecFile) -> None:
    with pytest.raises(ValueError, match="not a CDI file"):
        store.path(file)


@pytest.mark.parametrize("owner", ["", "a_b", "../x", "a/b", "-a"])
def test_owner_must_be_a_driver_name(tmp_path: Path, owner: str) -> None:
    with pytest.raises(ValueError, match="driver name"):
        cdi.Store(tmp_path, owner=owner)


def test_scanners_never_see_a_part(store: cdi.Store) -> None:
    """Trap 17: a runtime that reads while we write sees the old file or the new, always whole."""
    store.write(cdi.claim_file(UID), spec("0" * 20000))
    stop = threading.Event()
    seen: list[dict[str, str]] = []

    def scan() -> None:
        while not stop.is_set():
            inventory = cdi.scan([store.root])
            seen.append(inventory.errors)
            assert f"{DRIVER}/claim=dev" in inventory.devices

    scanner = threading.Thread(target=scan)
    scanner.start()
    for number in range(60):
        store.write(cdi.claim_file(UID), spec(str(number) * 20000))
    stop.set()
    scanner.join()
    assert seen
    assert not any(seen)
