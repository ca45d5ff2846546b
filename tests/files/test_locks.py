"""Byte-range locks and the counter in one lock file, between owners and between processes."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.files import REAL, lock_offset

_HOLDER = """
import sys
from drakit.files import REAL
lock = REAL.open_lock(sys.argv[1])
lock.acquire(int(sys.argv[2]), 1)
lock.write_counter(lock.read_counter() + 1)
print("held", flush=True)
sys.stdin.read()
"""


def test_owners_exclude_each_other_by_range(tmp_path: Path) -> None:
    with REAL.open_lock(tmp_path / "lock") as one, REAL.open_lock(tmp_path / "lock") as two:
        assert one.acquire(10, 5, blocking=False)
        assert one.acquire(12, 1, blocking=False)  # its own
        assert not two.acquire(14, 1, blocking=False)
        assert two.acquire(15, 1, blocking=False)
        one.release(10, 5)
        assert two.acquire(14, 1, blocking=False)
        assert not one.acquire(10, 5, blocking=False)


def test_shared_locks_share(tmp_path: Path) -> None:
    with REAL.open_lock(tmp_path / "lock") as one, REAL.open_lock(tmp_path / "lock") as two:
        assert one.acquire(0, 1, exclusive=False)
        assert two.acquire(0, 1, exclusive=False, blocking=False)
        assert not two.acquire(0, 1, blocking=False)
        one.release(0, 1)
        assert two.acquire(0, 1, blocking=False)


def test_blocking_waits_for_the_release(tmp_path: Path) -> None:
    with REAL.open_lock(tmp_path / "lock") as one, REAL.open_lock(tmp_path / "lock") as two:
        one.acquire(3, 1)
        got = threading.Event()

        def wait() -> None:
            two.acquire(3, 1)
            got.set()

        waiter = threading.Thread(target=wait, daemon=True)
        waiter.start()
        assert not got.is_set()
        one.release(3, 1)
        assert got.wait(10)
        waiter.join(10)
        assert not one.acquire(3, 1, blocking=False)


def test_closing_another_descriptor_keeps_the_lock(tmp_path: Path) -> None:
    """Trap 6: process-owned locks drop when any descriptor of the file is closed."""
    with REAL.open_lock(tmp_path / "lock") as one, REAL.open_lock(tmp_path / "lock") as two:
        one.acquire(0, 1)
        REAL.open_lock(tmp_path / "lock").close()
        (tmp_path / "lock").read_bytes()
        assert not two.acquire(0, 1, blocking=False)
        one.close()
        one.close()
        assert two.acquire(0, 1, blocking=False)


def test_a_killed_process_gives_up_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    offset = lock_offset("5d8c4f43-6fbc-4d1c-95a4-0f4b1f4c2a11")
    command = [sys.executable, "-c", _HOLDER, str(path), str(offset)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with REAL.open_lock(path) as lock:
            assert lock.read_counter() == 1
            assert not lock.acquire(offset, 1, blocking=False)
            holder.kill()
            assert lock.acquire(offset, 1)


def test_counter_starts_at_zero_and_is_common(tmp_path: Path) -> None:
    with REAL.open_lock(tmp_path / "lock") as one, REAL.open_lock(tmp_path / "lock") as two:
        assert one.read_counter() == 0
        one.write_counter(9)
        assert two.read_counter() == 9
        two.write_counter(10**19)
        assert one.read_counter() == 10**19
        two.write_counter(3)
        assert one.read_counter() == 3


@pytest.mark.parametrize("damage", [b"\0" * 21, b"garbage", b"12x\n", b"0000000000000000000\xff\n"])
def test_damaged_counter_equals_no_cached_number(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "lock").write_bytes(damage)
    with REAL.open_lock(tmp_path / "lock") as lock:
        assert lock.read_counter() >= 1 << 48
        assert lock.read_counter() == lock.read_counter()
        lock.write_counter(lock.read_counter() + 1)
        assert lock.read_counter() > 1 << 48


def test_a_replaced_lock_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with REAL.open_lock(path) as lock:
        assert lock.is_current()
        path.rename(tmp_path / "moved")
        assert not lock.is_current()
        path.touch()
        assert not lock.is_current()


def test_a_directory_is_no_lock_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        REAL.open_lock(tmp_path)
    with pytest.raises(OSError, match="regular"):
        REAL.open_lock("/dev/null")


@given(st.text("0123456789abcdef-", min_size=1, max_size=64))
def test_offsets_lie_above_the_fixed_ones(name: str) -> None:
    assert 1 << 32 <= lock_offset(name) < 1 << 62


def test_offsets_are_stable_across_releases() -> None:
    assert lock_offset("5d8c4f43-6fbc-4d1c-95a4-0f4b1f4c2a11") == 351552200741414399
    assert len({lock_offset(f"claim-{number}") for number in range(1000)}) == 1000
