"""Error matrix: each operation of prepare and unprepare fails, with each error that a disk gives.

Once, or from then on until somebody makes room, mounts the file system writable, or replaces the disk. Each claim gets
its own answer, the process lives, and after the trouble a retry brings what an undisturbed run brings.
"""

import errno
from typing import Any

import pytest

CODES = {"ENOSPC": errno.ENOSPC, "EACCES": errno.EACCES, "EIO": errno.EIO, "EROFS": errno.EROFS}
CLAIMS = {"one": {"a": "gpu-0"}, "batch": {f"c{n}": f"gpu-{n}" for n in range(4)}}
WORDS = ("cannot keep", "metadata", "No space left", "Permission denied", "Input/output error", "Read-only file system")


class Trial:
    """A node whose disk can fail."""

    def __init__(self, lab: Any, names: dict[str, str]) -> None:
        self.lab = lab
        self.claims = [lab.api.claim(name, f"uid-{name}", device) for name, device in names.items()]
        self.reference: tuple[dict[str, Any], Any] = ({}, {})

    async def learn(self) -> None:
        process = await self._start()
        self.reference = (await process.prepare(*self.claims), self.lab.claim_files())
        await process.stop()

    async def _start(self) -> Any:
        self.lab.reset()
        self.fs = self.lab.failing_filesystem()
        return await self.lab.start(self.fs)

    async def prepare_fails(self, code: int, at: int, *, forever: bool) -> bool:
        """Operation `at` of a prepare fails; whether there is one."""
        process = await self._start()
        self.fs.break_down(code, at, forever=forever)
        self._check_answers(await process.prepare(*self.claims))
        failed = bool(self.fs.failed)
        self.fs.heal()
        await self._healed(process)
        return failed

    async def unprepare_fails(self, code: int, at: int, *, forever: bool) -> bool:
        process = await self._start()
        await process.prepare(*self.claims)
        self.fs.break_down(code, at, forever=forever)
        answers = await process.unprepare(*self.claims)
        assert answers.keys() == {claim.uid for claim in self.claims}
        assert all(not error or _is_clear(error) for error in answers.values()), answers
        failed = bool(self.fs.failed)
        self.fs.heal()
        assert await process.unprepare(*self.claims) == dict.fromkeys(answers, "")
        await self._healed(process)
        return failed

    def _check_answers(self, answers: dict[str, Any]) -> None:
        """Prepared, prepared without metadata (M17), or a clear reason."""
        for uid, answer in answers.items():
            if isinstance(answer, str):
                assert _is_clear(answer), answer
            else:
                assert [self._bare(d) for d in answer] == [self._bare(d) for d in self.reference[0][uid]]

    @staticmethod
    def _bare(device: Any) -> tuple[Any, ...]:
        ids = tuple(found for found in device.cdi_ids if "/metadata=" not in found)
        return (device.request, device.pool, device.device, ids)

    async def _healed(self, process: Any) -> None:
        """Calls after the trouble: first the retry, then the end of the pods. The same process is still at work."""
        answers = await process.prepare(*self.claims)
        self._check_answers(answers)
        assert not [answer for answer in answers.values() if isinstance(answer, str)], answers
        if answers == self.reference[0]:
            assert _records(self.lab.claim_files()) == _records(self.reference[1])
        await self._a_later_process_agrees(answers)
        assert await process.unprepare(*self.claims) == dict.fromkeys(answers, "")
        await process.stop()
        await (await self.lab.start()).stop()  # temporaries whose removal failed go with the next start
        assert self.lab.leaks() == []

    async def _a_later_process_agrees(self, answers: dict[str, Any]) -> None:
        later = await self.lab.start(pod_uid="later")
        view = await later.application.ledger.read()
        assert (view.unpreparing, {record.phase for record in view.records.values()}) == (set(), {"prepared"})
        assert await later.prepare(*self.claims) == answers
        assert later.driver.prepared == []
        await later.stop()


def _is_clear(error: str) -> bool:
    return any(word in error for word in WORDS)


def _records(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if not name.rpartition("/")[2].startswith(".")}


async def fail_everywhere(trial: Trial, attempt: Any, code: int, *, forever: bool) -> int:
    """Each operation in turn; how many there are."""
    await trial.learn()
    at = 0
    while True:
        at += 1
        try:
            if not await attempt(trial, code, at, forever=forever):
                return at - 1
        except BaseException as error:
            error.add_note(f"operation {at}: {[(name, str(args[:1])) for name, args in trial.fs.failed][:3]}")
            raise


VERBS = {"prepare": Trial.prepare_fails, "unprepare": Trial.unprepare_fails}


@pytest.mark.parametrize("verb", VERBS)
async def test_sample(lab: Any, verb: str, counted: Any) -> None:
    """What `make test` runs of it."""
    assert counted(await fail_everywhere(Trial(lab, CLAIMS["one"]), VERBS[verb], errno.ENOSPC, forever=False)) > 8


@pytest.mark.matrix
@pytest.mark.timeout(240)
@pytest.mark.parametrize("forever", [False, True], ids=["once", "until healed"])
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("claims", CLAIMS)
@pytest.mark.parametrize("verb", VERBS)
async def test_matrix(*, lab: Any, verb: str, claims: str, code: str, forever: bool, counted: Any) -> None:
    assert counted(await fail_everywhere(Trial(lab, CLAIMS[claims]), VERBS[verb], CODES[code], forever=forever)) > 8


@pytest.mark.parametrize("code", CODES)
async def test_other_claims_of_the_batch_do_not_notice(lab: Any, code: str) -> None:
    """Only one claim's files cannot be written."""
    trial = Trial(lab, CLAIMS["batch"])
    await trial.learn()
    process = await trial._start()
    trial.fs.concerned = lambda name: name == "create"
    trial.fs.only = "uid-c1"
    trial.fs.break_down(CODES[code], 1, forever=True)
    answers = await process.prepare(*trial.claims)
    assert _is_clear(answers.pop("uid-c1"))
    assert answers == {uid: answer for uid, answer in trial.reference[0].items() if uid != "uid-c1"}
    trial.fs.heal()
    await trial._healed(process)


@pytest.mark.matrix
@pytest.mark.parametrize("code", CODES)
async def test_a_start_that_fails_says_why_and_the_next_one_works(lab: Any, code: str, counted: Any) -> None:
    """Each operation of opening the state, with a prepared claim on the disk."""
    claim = lab.api.claim("a", "uid-a", "gpu-0")
    at, failed = 0, True
    while failed:
        at += 1
        lab.reset()
        before = await lab.start()
        reply = await before.prepare(claim)
        await before.abandon()
        fs = lab.failing_filesystem()
        fs.break_down(CODES[code], at, forever=False)
        process = lab.process(fs)
        error = ""
        try:
            await process.open()
        except Exception as raised:  # noqa: BLE001 - what the process would end with
            error = f"{raised}"
        failed = bool(fs.failed)
        assert not error or _is_clear(error), error
        await process.abandon()
        process = await lab.start()
        assert await process.prepare(claim) == reply
        assert await process.unprepare(claim) == {claim.uid: ""}
        await process.stop()
        assert [leak for leak in lab.leaks() if "quarantine" not in leak] == []
    assert counted(at) > 8
