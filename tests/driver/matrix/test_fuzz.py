"""Whatever is in the files and in the claims: the driver starts, answers, and leaves other claims and files alone."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[*HealthCheck])
MANY = settings(max_examples=800, deadline=None, suppress_health_check=[*HealthCheck])

STATE = ("claims/", "state.lock", "instances/", "dra-device-metadata/", "publisher.json", "cdi/")
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=60).filter(
    lambda name: name not in {".", ".."} and len(name.encode()) < 200
)
OWN_NAMES = st.builds(
    "{}gpu.example.com_{}{}".format, st.sampled_from(["", "."]), NAMES, st.sampled_from([".json", ".yaml", ".tmp", ""])
).filter(lambda name: len(name.encode()) < 200)


@st.composite
def damages(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """What may become of a file's content."""
    kind = draw(st.sampled_from(["random", "cut", "flip", "double", "zeros"]))
    noise, position, bit = draw(st.binary(max_size=300)), draw(st.floats(0, 1)), draw(st.integers(0, 7))

    def damage(data: bytes) -> bytes:
        at = min(int(position * len(data)), max(len(data) - 1, 0))
        if kind == "flip" and data:
            return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
        return {"cut": data[:at], "double": data + data, "zeros": bytes(len(data))}.get(kind, noise)

    return damage


def _put(path: Path, kind: str, content: bytes) -> None:
    """Something in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to("/dev/null")
    elif kind == "dangling link":
        path.symlink_to("/nowhere/at/all")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.write_bytes(content)


async def damaged_state(lab: Any, which: float, damage: Callable[[bytes], bytes], kind: str) -> None:
    """One file of one prepared claim, or of the driver's own, is something else after a crash."""
    lab.reset()
    claims = [lab.api.claim(name, f"uid-{name}", f"gpu-{n}") for n, name in enumerate(("a", "b"))]
    process = await lab.start()
    replies = await process.prepare(*claims)
    await process.abandon()
    files = sorted(
        path for path in lab.root.rglob("*") if path.is_file() and "uid-b" not in path.name and "_b" not in str(path)
    )
    victim = files[min(int(which * len(files)), len(files) - 1)]
    if victim.name == "state.lock" and kind != "bytes":
        return  # a lock file that cannot be opened stops the start, with a message: see test_errors
    _put(victim, kind, damage(victim.read_bytes()))

    process = await lab.start()
    assert (await process.prepare(claims[1]))["uid-b"] == replies["uid-b"], victim
    assert process.driver.prepared == [], victim
    assert await process.prepare(*claims) == replies, victim
    for claim in claims:
        assert await process.unprepare(claim) == {claim.uid: ""}, victim
    await process.stop()
    await (await lab.start()).stop()
    assert [leak for leak in lab.leaks() if "quarantine" not in leak] == [], victim


KINDS = st.sampled_from(["bytes", "bytes", "bytes", "link", "dangling link", "pipe"])


@FEW
@given(st.floats(0, 1), damages(), KINDS)
async def test_damaged_state_sample(lab: Any, which: float, damage: Any, kind: str) -> None:
    await damaged_state(lab, which, damage, kind)


@pytest.mark.fuzz
@pytest.mark.timeout(120)
@MANY
@given(st.floats(0, 1), damages(), KINDS)
async def test_damaged_state(lab: Any, which: float, damage: Any, kind: str) -> None:
    await damaged_state(lab, which, damage, kind)


async def foreign_files(lab: Any, garbage: dict[str, tuple[str, bytes]]) -> None:
    """Others keep what they like in the CDI directory, and what looks like ours cannot hurt."""
    lab.reset()
    cdi = lab.root / "cdi"
    cdi.mkdir()
    for name, (kind, content) in garbage.items():
        _put(cdi / name, kind, content)
    foreign = {name for name in garbage if not name.removeprefix(".").startswith("gpu.example.com_")}
    claim = lab.api.claim("a", "uid-a", "gpu-0")
    process = await lab.start()
    assert not isinstance((await process.prepare(claim))["uid-a"], str)
    await process.application.restorer.check()
    assert await process.unprepare(claim) == {"uid-a": ""}
    await process.stop()
    assert foreign <= {path.name for path in cdi.iterdir()}
    for name in foreign:
        kind, content = garbage[name]
        assert kind != "bytes" or (cdi / name).read_bytes() == content


GARBAGE = st.dictionaries(
    NAMES | OWN_NAMES,
    st.tuples(st.sampled_from(["bytes", "link", "dangling link", "pipe", "directory"]), st.binary(max_size=50)),
    max_size=8,
)


@FEW
@given(GARBAGE)
async def test_foreign_files_sample(lab: Any, garbage: Any) -> None:
    await foreign_files(lab, garbage)


@pytest.mark.fuzz
@pytest.mark.timeout(120)
@MANY
@given(GARBAGE)
async def test_foreign_files(lab: Any, garbage: Any) -> None:
    await foreign_files(lab, garbage)


async def test_a_directory_with_a_name_of_ours_among_the_cdi_files(lab: Any) -> None:
    uid = "0c8f4e0e-2f0b-4f5c-9d3e-1a2b3c4d5e6f"
    await foreign_files(lab, {f"gpu.example.com_claim_{uid}.json": ("directory", b"")})
    await foreign_files(lab, {".gpu.example.com_x.tmp": ("directory", b"")})


LABELS = st.from_regex(r"\A[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?\Z")
RESULTS = st.lists(
    st.fixed_dictionaries(
        {
            "request": st.builds(lambda *parts: "/".join(p for p in parts if p), LABELS, st.just("") | LABELS),
            "pool": st.builds("/".join, st.lists(LABELS, min_size=1, max_size=3)),
            "device": LABELS,
        },
        optional={
            "shareID": st.uuids().map(str),
            "adminAccess": st.booleans(),
        },
    ),
    min_size=1,
    max_size=6,
)


async def odd_claim(lab: Any, results: list[dict[str, Any]]) -> None:
    """Whatever the scheduler may have allocated: one answer per result, the same again, and nothing left."""
    exclusive = [(r["pool"], r["device"], r.get("shareID")) for r in results if not r.get("adminAccess")]
    assume(len({(pool, device) for pool, device, _ in exclusive}) == len({*exclusive}))
    lab.reset()
    claim = lab.api.claim("a", "uid-a", *results)
    process = await lab.start()
    reply = (await process.prepare(claim))["uid-a"]
    assert not isinstance(reply, str), reply
    assert [(d.request, d.pool, d.device, d.share_id) for d in reply] == [
        (r["request"], r["pool"], r["device"], r.get("shareID")) for r in results
    ]
    assert all(device.cdi_ids for device in reply)
    later = await lab.start(pod_uid="later")
    assert (await later.prepare(claim))["uid-a"] == reply
    assert await later.unprepare(claim) == {"uid-a": ""}
    await later.stop()
    await process.stop()
    assert lab.leaks() == []


@FEW
@given(RESULTS)
async def test_odd_claims_sample(lab: Any, results: Any) -> None:
    await odd_claim(lab, results)


@pytest.mark.fuzz
@pytest.mark.timeout(120)
@MANY
@given(RESULTS)
async def test_odd_claims(lab: Any, results: Any) -> None:
    await odd_claim(lab, results)
