"""Kill matrix: the process dies before every file operation, lock operation, hook step and reply, and in torn writes.

Each scenario runs once without a kill for its answers and files. Then it runs on a new node for point 1, 2, 3 ... until
a run ends unharmed: points that a later change adds are covered by themselves. After each kill a new process starts on
the same disk, and the kubelet does one of the two things that it can do: call again, or give the claim up.
"""

import random
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SHARED = [{"device": "gpu-0", "shareID": "11111111-1111-4111-8111-111111111111"}]
OTHER_SHARE = [{"device": "gpu-0", "shareID": "22222222-2222-4222-8222-222222222222"}]
SHARED_3 = [{**SHARED[0], "device": "gpu-3"}]
OTHER_3 = [{**OTHER_SHARE[0], "device": "gpu-3"}]


@dataclass(frozen=True)
class Scenario:
    """Claims (name, UID, results) by key; steps are a verb and keys. `act` is what is killed."""

    claims: dict[str, tuple[str, str, list[Any]]]
    before: tuple[tuple[str, ...], ...]
    act: tuple[str, ...]
    refused: bool = False


ONE = {"a": ("a", "uid-a", ["gpu-0"])}
MANY = {f"c{n}": (f"c{n}", f"uid-{n}", [f"gpu-{n}"]) for n in range(5)}
SCENARIOS = {
    "prepare": Scenario(ONE, (("allocate", "a"),), ("prepare", "a")),
    "prepare, several devices and requests": Scenario(
        {
            "a": (
                "a",
                "uid-a",
                ["gpu-0", "gpu-1", {"request": "s/first", "device": "gpu-2"}, {"request": "t", "device": "gpu-2"}],
            )
        },
        (("allocate", "a"),),
        ("prepare", "a"),
    ),
    "prepare a second share": Scenario(
        {"a": ("a", "uid-a", SHARED), "b": ("b", "uid-b", OTHER_SHARE)},
        (("allocate", "a"), ("allocate", "b"), ("prepare", "a")),
        ("prepare", "b"),
    ),
    "prepare a batch": Scenario(MANY, (("allocate", *MANY),), ("prepare", *MANY)),
    "prepare what replaces a claim": Scenario(
        {"old": ("c", "uid-old", ["gpu-0"]), "new": ("c", "uid-new", ["gpu-0", "gpu-1"])},
        (("allocate", "old"), ("prepare", "old"), ("allocate", "new")),
        ("prepare", "new"),
    ),
    "prepare another allocation": Scenario(
        {"old": ("c", "uid-c", ["gpu-0"]), "new": ("c", "uid-c", ["gpu-1"])},
        (("allocate", "old"), ("prepare", "old"), ("allocate", "new")),
        ("prepare", "new"),
    ),
    "prepare, refused by the hook": Scenario(ONE, (("allocate", "a"),), ("prepare", "a"), refused=True),
    "answer from the record": Scenario(ONE, (("allocate", "a"), ("prepare", "a")), ("prepare", "a")),
    "unprepare": Scenario(ONE, (("allocate", "a"), ("prepare", "a")), ("unprepare", "a")),
    "unprepare one of a name space": Scenario(
        {"a": ("a", "uid-a", ["gpu-0"]), "b": ("b", "uid-b", ["gpu-1"])},
        (("allocate", "a", "b"), ("prepare", "a", "b")),
        ("unprepare", "a"),
    ),
    "unprepare a batch": Scenario(MANY, (("allocate", *MANY), ("prepare", *MANY)), ("unprepare", *MANY)),
}
SAMPLE = {"prepare", "unprepare"}


class DeviceBrokenError(Exception):
    """The device is broken today."""


class Runner:
    """Runs the steps of one scenario."""

    def __init__(self, lab: Any, scenario: Scenario) -> None:
        self.lab, self.scenario = lab, scenario

    async def step(self, process: Any, step: tuple[str, ...]) -> Any:
        verb, *keys = step
        claims = [self.scenario.claims[key] for key in keys]
        wanted = [self.lab.api.claim(name, uid, *results) for name, uid, results in claims]
        return None if verb == "allocate" else await getattr(process, verb)(*wanted)

    async def before(self, process: Any) -> None:
        for step in self.scenario.before:
            await self.step(process, step)

    async def unprepare_all(self, process: Any) -> None:
        """The pods go. In the order of claims, as the kubelet knows them all."""
        for key, (_, uid, _) in self.scenario.claims.items():
            assert await self.step(process, ("unprepare", key)) == {uid: ""}

    async def reference(self) -> tuple[Any, dict[str, bytes]]:
        """Reply and files of an undisturbed run, which must itself end clean."""
        self.lab.reset()
        process = await self.lab.start()
        await self.before(process)
        reply, files = await self.step(process, self.scenario.act), self.lab.claim_files()
        await self.unprepare_all(process)
        await process.stop()
        assert self.lab.leaks() == []
        return reply, files


def _refuse(process: Any) -> None:
    def refuse(_: Any) -> None:
        raise DeviceBrokenError

    process.driver.refuses = refuse


async def _interrupted(lab: Any, runner: Runner, at: int) -> Any:
    """A process killed at point `at` of the act; its file system tells whether that point exists."""
    lab.reset()
    fs = lab.mortal_filesystem()
    victim = await lab.start(fs)
    await runner.before(victim)
    if runner.scenario.refused:
        _refuse(victim)
    fs.at = fs.count + at
    await lab.until_killed(fs, runner.step(victim, runner.scenario.act))
    fs.unharmed = not fs.dead
    fs.die()  # an unharmed run: the reply was lost
    await victim.abandon()
    return fs


async def _called_again(runner: Runner, process: Any, reference: Any) -> None:
    """The kubelet repeats its call: same reply, same files."""
    reply, files = reference
    assert await runner.step(process, runner.scenario.act) == reply
    await _third_process(runner.lab)
    assert runner.lab.claim_files() == files


async def _changed_its_mind(runner: Runner, process: Any, _: Any) -> None:
    """The kubelet gives up what it wanted: prepares what it unprepared, and unprepares (below) what it prepared."""
    verb, *keys = runner.scenario.act
    if verb == "unprepare":
        for uid, answer in (await runner.step(process, ("prepare", *keys))).items():
            assert not isinstance(answer, str), (uid, answer)
        await _third_process(runner.lab)


async def _third_process(lab: Any) -> None:
    """What is answered must hold for every later process. Its start also sweeps up what the dead one left."""
    process = await lab.start(pod_uid="third")
    view = await process.application.ledger.read()
    assert view.unpreparing == set()
    assert {record.phase for record in view.records.values()} <= {"prepared"}
    await process.stop()


BRANCHES = {"called again": _called_again, "changed its mind": _changed_its_mind}


async def kill_everywhere(lab: Any, scenario: Scenario, branch: Any, *, successor_runs: bool = False) -> int:
    """The whole matrix of one scenario and branch; how many points it has.

    With `successor_runs` the other process of an upgrade is there already and takes over while it runs.
    """
    runner = Runner(lab, scenario)
    reference = await runner.reference()
    at = 0
    while True:
        at += 1
        successor = None
        if successor_runs:
            fs, successor = await _interrupted_beside(lab, runner, at)
        else:
            fs = await _interrupted(lab, runner, at)
        try:
            process = successor or await lab.start()
            await branch(runner, process, reference)
            await runner.unprepare_all(process)
            await process.stop()
            if successor is not None:
                await _third_process(lab)
            assert lab.leaks() == []
        except BaseException as error:
            error.add_note(f"killed at point {at}: {fs.last[0]} {[str(a)[:120] for a in fs.last[1]]}")
            raise
        if fs.unharmed:
            return at


async def _interrupted_beside(lab: Any, runner: Runner, at: int) -> tuple[Any, Any]:
    lab.reset()
    fs = lab.mortal_filesystem()
    victim = await lab.start(fs, pod_uid="old")
    await runner.before(victim)
    successor = await lab.start(pod_uid="new")
    if runner.scenario.refused:
        _refuse(victim)
    fs.at = fs.count + at
    await lab.until_killed(fs, runner.step(victim, runner.scenario.act))
    fs.unharmed = not fs.dead
    fs.die()
    await victim.abandon()
    return fs, successor


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("name", sorted(SAMPLE))
async def test_sample(lab: Any, name: str, branch: str, counted: Any) -> None:
    """One claim: what `make test` runs of it."""
    assert counted(await kill_everywhere(lab, SCENARIOS[name], BRANCHES[branch])) > 30


@pytest.mark.matrix
@pytest.mark.timeout(240)
@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - SAMPLE))
async def test_matrix(lab: Any, name: str, branch: str, counted: Any) -> None:
    scenario = SCENARIOS[name]
    if scenario.refused and branch == "called again":
        branch = "changed its mind"  # refusals are not repeated by the successor, whose hook works: see below
    assert counted(await kill_everywhere(lab, scenario, BRANCHES[branch])) > 2


@pytest.mark.matrix
@pytest.mark.timeout(240)
@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - {"prepare, refused by the hook", "answer from the record"}))
async def test_the_other_process_of_an_upgrade_takes_over(lab: Any, name: str, branch: str, counted: Any) -> None:
    assert counted(await kill_everywhere(lab, SCENARIOS[name], BRANCHES[branch], successor_runs=True)) > 30


async def _wreck(lab: Any, at: int) -> tuple[Any, dict[str, Any]]:
    """A node after a crash: a prepared claim without its files, one killed in prepare, a broken record, leftovers."""
    lab.reset()
    claims = [lab.api.claim(name, f"uid-{name}", f"gpu-{n}") for n, name in enumerate(("whole", "half", "broken"))]
    fs = lab.mortal_filesystem()
    victim = await lab.start(fs)
    replies = await victim.prepare(claims[0], claims[2])
    fs.at = fs.count + at
    await lab.until_killed(fs, victim.prepare(claims[1]))
    await victim.abandon()
    for path in (lab.root / "cdi").iterdir():
        path.unlink()
    (lab.plugin_directory / "claims/default/broken/uid-broken.json").write_bytes(b'{"format":1')
    (lab.root / "cdi" / ".gpu.example.com_claim_uid-x.json.00.tmp").touch()
    (lab.plugin_directory / "claims/default/gone").mkdir()
    return claims, replies


@pytest.mark.matrix
@pytest.mark.timeout(240)
@pytest.mark.parametrize("first", [5, 20, 40, 60])
async def test_killed_again_while_it_starts_sweeps_and_restores(lab: Any, first: int, counted: Any) -> None:
    """The second process dies at each point of its start; the third one finds two crashes' remains."""
    at, unharmed = 0, False
    while not unharmed:
        at += 1
        claims, replies = await _wreck(lab, first)
        fs = lab.mortal_filesystem(at)
        second = lab.process(fs)

        async def start(process: Any = second) -> None:
            await process.open()
            await process.application.restorer.check()

        await lab.until_killed(fs, start())
        unharmed = not fs.dead
        fs.die()
        await second.abandon()
        third = await lab.start()
        await third.application.restorer.check()
        assert (lab.root / "cdi/gpu.example.com_claim_uid-whole.json").exists(), fs.last
        assert (await third.prepare(claims[0])) == {"uid-whole": replies["uid-whole"]}
        assert third.driver.prepared == [], fs.last
        answers = await third.prepare(*claims)
        assert {uid: answers[uid] for uid in replies} == replies
        for claim in claims:
            assert await third.unprepare(claim) == {claim.uid: ""}
        await third.stop()
        assert [leak for leak in lab.leaks() if "quarantine" not in leak] == [], fs.last
    assert counted(at) > 40


@pytest.mark.matrix
async def test_killed_while_it_stops(lab: Any, counted: Any) -> None:
    at, unharmed = 0, False
    claim = lab.api.claim("a", "uid-a", "gpu-0")
    while not unharmed:
        at += 1
        lab.reset()
        fs = lab.mortal_filesystem()
        process = await lab.start(fs)
        reply = await process.prepare(claim)
        fs.at = fs.count + at
        await lab.until_killed(fs, process.stop())
        unharmed = not fs.dead
        fs.die()
        await process.abandon()
        after = await lab.start()
        assert await after.prepare(claim) == reply
        await after.unprepare(claim)
        await after.stop()
        assert lab.leaks() == []
    assert counted(at) > 2


@pytest.mark.matrix
@pytest.mark.timeout(120)
async def test_killed_while_its_sockets_come_and_go(node: Any, lab: Any, counted: Any) -> None:
    """The whole start and stop with real sockets. A dead socket is put back, as a killed process leaves it."""
    claim = node.claim("c", "gpu-0")
    at, unharmed = 0, False
    while not unharmed:
        at += 1
        fs = lab.mortal_filesystem(at)
        victim = node.application(fs=fs)

        async def live(application: Any = victim) -> None:
            await application.start()
            await application.stop(0)

        await lab.until_killed(fs, live())
        unharmed = not fs.dead
        sockets = [path for path in node.root.rglob("*") if path.is_socket()]
        fs.die()
        node.applications.remove(victim)
        await victim.abandon()
        _put_back(sockets)
        application, kubelet = await node.start()
        assert (await kubelet.register()).name == "gpu.example.com"
        assert (await kubelet.prepare(claim))[claim.uid].error == ""
        assert await kubelet.unprepare(claim) == {claim.uid: ""}
        await kubelet.close()
        await node.stop(application)
        assert node.files() == [], fs.last
        assert [path for path in node.root.rglob("*") if path.is_socket()] == [], (at, fs.last)
    assert counted(at) > 60


def _put_back(sockets: list[Path]) -> None:
    for path in sockets:
        if not path.exists():
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(path))


async def _life(lab: Any, seed: int) -> int:
    """Random calls for claims that want each other's devices, to processes that die at random points; the deaths."""
    dice, deaths = random.Random(seed), 0
    wanted: dict[str, list[Any]] = {
        "a": ["gpu-0"],
        "b": ["gpu-1", "gpu-2"],
        "rival": ["gpu-0"],
        "share": SHARED_3,
        "other": OTHER_3,
    }
    claims = {name: lab.api.claim(name, f"uid-{name}", *results) for name, results in wanted.items()}
    replies: dict[str, Any] = {}
    process = None
    for _ in range(12):
        if process is None:
            fs = lab.mortal_filesystem(dice.choice([None, dice.randint(1, 40)]))
            process = lab.process(fs)
            await lab.until_killed(fs, process.open())
        if not fs.dead:
            chosen = [claims[name] for name in dice.sample(sorted(claims), dice.randint(1, 3))]
            fs.at = fs.count + dice.randint(1, 120 * len(chosen))
            call = getattr(process, dice.choice(["prepare", "prepare", "unprepare"]))
            answers = await lab.until_killed(fs, call(*chosen)) or {}
            for uid, answer in answers.items():
                assert isinstance(answer, tuple) or answer == "" or "of claim" in answer or "by claim" in answer, answer
                assert not isinstance(answer, tuple) or replies.setdefault(uid, answer) == answer
        if fs.dead:
            await process.abandon()
            process, deaths = None, deaths + 1
    if process is not None:
        await process.abandon()
    last = await lab.start()
    for claim in claims.values():
        assert await last.unprepare(claim) == {claim.uid: ""}
    await last.stop()
    assert lab.leaks() == []
    return deaths


@pytest.mark.matrix
@pytest.mark.timeout(120)
async def test_random_calls_and_deaths(lab: Any, counted: Any) -> None:
    deaths = 0
    for seed in range(300):
        lab.reset()
        try:
            deaths += await _life(lab, seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert counted(deaths) > 300
