"""One small test for each defect that the matrices found."""

import socket
from typing import Any

from drakit.driver.sockets import temporary_path


async def test_a_marker_without_a_record_does_not_count(lab: Any) -> None:
    """One process of an upgrade dies between removing the record and the marker; the other one prepares anew."""
    claim = lab.api.claim("c", "uid-c", "gpu-0")
    process = await lab.start()
    await process.prepare(claim)
    await process.unprepare(claim)
    marker = lab.plugin_directory / "claims/default/c/uid-c.unpreparing"
    marker.parent.mkdir(parents=True)
    marker.touch()
    await process.prepare(claim)
    assert not marker.exists()
    later = await lab.start(pod_uid="later")
    assert (await later.application.ledger.read()).unpreparing == set()
    for one in (process, later):
        await one.stop()


def synced(fs: Any) -> set[str]:
    """Names of the directories that were synced."""
    return {args[0].name for name, args, _ in fs.log if name == "sync_directory"}


async def test_the_directory_of_the_driver_itself_is_synced(lab: Any) -> None:
    """All records lay in a directory that a power loss could take away as a whole, after the first start."""
    fs = lab.recording_filesystem([], lab.hardware)
    await (await lab.start(fs)).stop()
    assert {"plugins", "gpu.example.com"} <= synced(fs)


async def test_a_record_that_a_dead_process_did_not_sync_is_synced_before_it_counts(lab: Any) -> None:
    """A new process answered from it: after a power loss that answer was forgotten."""
    claim = lab.api.claim("c", "uid-c", "gpu-0")
    await (await lab.start()).prepare(claim)
    fs = lab.recording_filesystem([], lab.hardware)
    await lab.start(fs)
    assert {"claims", "default", "c"} <= synced(fs)


async def test_so_does_the_other_process_of_an_upgrade(lab: Any) -> None:
    claim = lab.api.claim("c", "uid-c", "gpu-0")
    fs = lab.recording_filesystem([], lab.hardware)
    process = await lab.start(fs, pod_uid="new")
    await (await lab.start(pod_uid="old")).prepare(claim)
    assert "c" not in synced(fs)
    await process.prepare(claim)
    assert {"claims", "default", "c"} <= synced(fs)


async def test_directories_that_a_failed_change_made_are_synced_with_the_next(lab: Any) -> None:
    """They exist by then, but their names may still be lost."""
    claim = lab.api.claim("c", "uid-c", "gpu-0")
    fs = lab.recording_filesystem([], lab.hardware)
    process = await lab.start(fs)
    fs.fails_on = lambda name, args: name == "sync" and args[0].suffix == ".tmp"
    assert "cannot keep the claim's state" in (await process.prepare(claim))["uid-c"]
    fs.fails_on = None
    fs.log.clear()
    assert not isinstance((await process.prepare(claim))["uid-c"], str)
    assert {"claims", "default", "c"} <= synced(fs)


async def test_a_socket_that_a_dead_process_bound_and_did_not_put_in_place_is_removed(lab: Any) -> None:
    """Its name was random, so nobody could tell whose it was: each such death left one more file."""
    (lab.root / "reg").mkdir()
    victim = await lab.start()
    own = victim.application.instances.own
    paths = [temporary_path(path, own.id) for path in (victim.application.service_listener.path, lab.root / "reg/x")]
    for path in paths:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
    await victim.abandon()
    await (await lab.start()).stop()
    assert [path for path in paths if path.exists()] == []


async def test_records_of_instances_that_cannot_be_read_do_not_stop_the_start(lab: Any) -> None:
    """Nor does one with a wrong id stay for ever, or have other things than sockets removed."""
    kept = lab.root / "kept"
    kept.touch()
    directory = lab.plugin_directory / "instances"
    directory.mkdir(parents=True)
    (directory / "link.json").symlink_to("/nowhere")
    (directory / "other.json").write_text('{"id":"another","started":1}')
    (directory / "dead.json").write_text(f'{{"id":"dead","started":1,"service":"{kept}"}}')
    await (await lab.start()).stop()
    assert (list(directory.iterdir()), kept.exists()) == ([], True)
