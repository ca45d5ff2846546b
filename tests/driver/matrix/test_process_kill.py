"""SIGKILL of a real process, once per phase of a claim's life: what the kernel leaves is what the matrix assumes."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

PHASES = {
    "preparing: record written": ("rename", ".*.tmp", 1),
    "preparing: record in place, not synced": ("sync_directory", "c", 1),
    "the hook is at work": ("prepare", "c", 1),
    "a CDI file is written": ("rename", ".*_claim_*.tmp", 1),
    "a metadata file is written": ("rename", ".metadata.json.*.tmp", 1),
    "prepared: record in place, not synced": ("sync_directory", "c", 2),
    "unprepare: the hook is at work": ("unprepare", "c", 1),
    "unprepare: files are removed": ("unlink", "*_claim_*.json", 1),
    "unprepare: record removed, not synced": ("sync_directory", "c", 3),
    "unprepare: the marker is left": ("unlink", "*.unpreparing", 2),
}
SAMPLE = "the hook is at work"


async def killed_in(node: Any, eventually: Any, phase: str) -> None:
    """Run to the phase, kill, and let the kubelet call the next process."""
    operation, pattern, which = PHASES[phase]
    claim = node.claim("c", "gpu-0")
    if pattern == ".*.tmp":
        pattern = f".{claim.uid}.tmp"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("halting_driver.py")),
        str(node.root),
        node.server.kubeconfig(),
        operation,
        pattern,
        str(which),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await eventually(lambda: (node.root / "listening").exists() or process.returncode is not None, 30)
        kubelet = node.kubelet(node.application())
        call = asyncio.create_task(_live(kubelet, claim))
        await eventually(lambda: (node.root / "halted").exists() or call.done(), 30)
        assert not call.done(), call.result()
    finally:
        if process.returncode is None:
            process.kill()
    _, errors = await process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()
    await asyncio.gather(call, return_exceptions=True)
    _, kubelet = await node.start()
    if phase.startswith("unprepare"):
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        assert node.files() == []
    reply = (await kubelet.prepare(claim))[claim.uid]
    assert reply.error == ""
    assert (await kubelet.prepare(claim))[claim.uid] == reply
    assert await kubelet.unprepare(claim) == {claim.uid: ""}
    assert node.files() == []


async def _live(kubelet: Any, claim: Any) -> None:
    await kubelet.prepare(claim)
    await kubelet.unprepare(claim)


async def test_sample(node: Any, eventually: Any) -> None:
    await killed_in(node, eventually, SAMPLE)


@pytest.mark.matrix
@pytest.mark.parametrize("phase", sorted(PHASES.keys() - {SAMPLE}))
async def test_phase(node: Any, eventually: Any, phase: str) -> None:
    await killed_in(node, eventually, phase)
