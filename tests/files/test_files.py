"""Atomic files over a Filesystem object, on a file system that cannot be trusted."""

import errno
import os
import stat
from pathlib import Path

import pytest

from drakit import files
from drakit.files import REAL, Filesystem


class Recording(Filesystem):
    """Records each operation; `fail` raises instead of doing it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fail: dict[str, OSError] = {}

    def _note(self, name: str) -> None:
        self.calls.append(name)
        if name in self.fail:
            raise self.fail[name]

    def create(self, path: files.StrPath, data: bytes, mode: int = 0o600) -> None:
        self._note("create")
        super().create(path, data, mode)

    def sync(self, path: files.StrPath) -> None:
        self._note("sync")
        super().sync(path)

    def rename(self, source: files.StrPath, target: files.StrPath) -> None:
        self._note("rename")
        super().rename(source, target)


@pytest.fixture
def recording() -> Recording:
    return Recording()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_create_writes_exactly_once(tmp_path: Path) -> None:
    REAL.create(tmp_path / "a", b"one")
    assert REAL.read(tmp_path / "a") == b"one"
    with pytest.raises(FileExistsError):
        REAL.create(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_modes_are_exact_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        REAL.create(tmp_path / "file", b"", 0o644)
        REAL.mkdir(tmp_path / "directory", 0o751)
        files.make_directories(REAL, tmp_path / "deep" / "er", 0o755)
        files.replace(REAL, tmp_path / "replaced", b"", mode=0o640)
        REAL.open_lock(tmp_path / "lock").close()
    finally:
        os.umask(before)
    assert mode(tmp_path / "file") == 0o644
    assert mode(tmp_path / "directory") == 0o751
    assert mode(tmp_path / "deep") == mode(tmp_path / "deep" / "er") == 0o755
    assert mode(tmp_path / "replaced") == 0o640
    assert mode(tmp_path / "lock") == 0o600


def test_links_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    link = tmp_path / "link"
    link.symlink_to(victim)
    for attempt in (lambda: REAL.read(link), lambda: REAL.sync(link), lambda: REAL.open_lock(link)):
        with pytest.raises(OSError, match="symbolic link"):
            attempt()
    with pytest.raises(FileExistsError):
        REAL.create(link, b"evil")
    assert REAL.read(link, follow=True) == b"precious"


def test_replace_replaces_the_link_not_its_target(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "state").symlink_to(victim)
    files.replace(REAL, tmp_path / "state", b"new")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "state").is_symlink()


def test_read_refuses_what_is_not_a_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="regular") as caught:
        REAL.read(tmp_path / "pipe")
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(OSError, match="regular") as caught:
        REAL.read(tmp_path)
    assert caught.value.filename == str(tmp_path)
    with pytest.raises(OSError, match="regular"):
        REAL.read("/dev/zero", follow=True)


def test_read_is_bounded(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(OSError, match="too large") as caught:
        REAL.read(tmp_path / "huge")
    assert caught.value.errno == errno.EFBIG


def test_missing_things_are_answers_not_errors(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert REAL.unlink(missing) is False
    assert REAL.rmdir(missing) is False
    assert REAL.list(missing) == ()
    assert REAL.stat(missing) is None
    files.remove(REAL, missing)
    files.clean_temporaries(REAL, missing)
    with pytest.raises(FileNotFoundError):
        REAL.read(missing)


def test_list_is_sorted_and_stat_does_not_follow(tmp_path: Path) -> None:
    for name in ("b", "a", "C"):
        (tmp_path / name).touch()
    (tmp_path / "z").symlink_to(tmp_path)
    assert REAL.list(tmp_path) == ("C", "a", "b", "z")
    found = REAL.stat(tmp_path / "z")
    followed = REAL.stat(tmp_path / "z", follow=True)
    assert found is not None
    assert stat.S_ISLNK(found.st_mode)
    assert followed is not None
    assert stat.S_ISDIR(followed.st_mode)


def test_replace_in_order_and_whole(tmp_path: Path, recording: Recording) -> None:
    files.replace(recording, tmp_path / "a.json", b"one")
    assert recording.calls == ["create", "rename"]
    recording.calls.clear()
    files.replace(recording, tmp_path / "a.json", b"two", durable=True)
    assert recording.calls == ["create", "sync", "rename"]
    assert (tmp_path / "a.json").read_bytes() == b"two"
    assert REAL.list(tmp_path) == ("a.json",)


@pytest.mark.parametrize("operation", ["create", "sync", "rename"])
def test_failed_replace_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, recording: Recording, operation: str
) -> None:
    (tmp_path / "a.json").write_bytes(b"old")
    recording.fail[operation] = OSError(errno.ENOSPC, "full")
    with pytest.raises(OSError, match="full"):
        files.replace(recording, tmp_path / "a.json", b"new", durable=True)
    assert REAL.list(tmp_path) == ("a.json",)
    assert (tmp_path / "a.json").read_bytes() == b"old"


def test_replace_survives_another_process_cleaning_its_temporary(tmp_path: Path) -> None:
    class Cleaned(Filesystem):
        times = 2

        def rename(self, source: files.StrPath, target: files.StrPath) -> None:
            if self.times:
                self.times -= 1
                files.clean_temporaries(REAL, tmp_path)
            super().rename(source, target)

    files.replace(Cleaned(), tmp_path / "a.json", b"new")
    assert REAL.list(tmp_path) == ("a.json",)
    always = Cleaned()
    always.times = 100
    with pytest.raises(FileNotFoundError):
        files.replace(always, tmp_path / "b.json", b"new")


def test_replace_into_a_missing_directory_says_so_at_once(tmp_path: Path, recording: Recording) -> None:
    with pytest.raises(FileNotFoundError):
        files.replace(recording, tmp_path / "missing" / "a.json", b"")
    assert recording.calls == ["create"]


def test_temporaries_are_hidden_from_scanners_and_found_by_their_owner(tmp_path: Path) -> None:
    class Dying(Filesystem):
        def rename(self, source: files.StrPath, target: files.StrPath) -> None:
            raise KeyboardInterrupt

    longest = "x" * 250 + ".json"
    for name in ("ours-1.json", "theirs-1.yaml", longest):
        with pytest.raises(KeyboardInterrupt):
            files.replace(Dying(), tmp_path / name, b"half")
    left = REAL.list(tmp_path)
    assert len(left) == 3
    assert all(name.startswith(".") and name.endswith(".tmp") and len(name) <= 255 for name in left)
    files.clean_temporaries(REAL, tmp_path, prefix="ours-")
    assert len(REAL.list(tmp_path)) == 2
    files.clean_temporaries(REAL, tmp_path)
    assert REAL.list(tmp_path) == ()


def test_clean_temporaries_keeps_files(tmp_path: Path) -> None:
    for name in (".hidden", "a.tmp", "a.json"):
        (tmp_path / name).touch()
    files.clean_temporaries(REAL, tmp_path)
    assert REAL.list(tmp_path) == (".hidden", "a.json", "a.tmp")


def test_make_directories_accepts_what_exists_and_refuses_files(tmp_path: Path) -> None:
    files.make_directories(REAL, tmp_path / "a" / "b" / "c")
    files.make_directories(REAL, tmp_path / "a" / "b" / "c")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    files.make_directories(REAL, tmp_path / "link")
    files.make_directories(REAL, tmp_path / "link" / "d")
    assert (tmp_path / "a" / "d").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="not a directory"):
        files.make_directories(REAL, tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        files.make_directories(REAL, tmp_path / "file" / "below")


def test_remove_takes_a_tree_and_never_what_links_point_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "file").touch()
    (tree / "link").symlink_to(outside)
    files.remove(REAL, tree)
    assert not tree.exists()
    assert (outside / "precious").exists()
    (tmp_path / "top").symlink_to(outside)
    files.remove(REAL, tmp_path / "top")
    assert REAL.list(tmp_path) == ("outside",)


def test_sync_directory_refuses_files(tmp_path: Path) -> None:
    REAL.sync_directory(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        REAL.sync_directory(tmp_path / "file")
