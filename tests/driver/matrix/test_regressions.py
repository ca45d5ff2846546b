"""One small test for each defect that the matrices found."""

from typing import Any


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
