"""Power-loss matrix: every state that the disk may have when the power fails, and a start on each of them.

What a journaling file system promises, and no more: the content of a file once it was synced; the names in a directory
up to its last sync, and of the changes since then the first ones, in order, up to any point; directories one by one, so
a synced directory is lost with an unsynced name of its own. Content that was not synced may be whole, cut or empty.

After a power loss the machine has another boot id and empty memory, the devices may or may not have kept what hooks
did to them, and the kubelet holds to what it was told.
"""

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Tree: TypeAlias = "bytes | tuple[tuple[str, Tree], ...]"
"""What is on a disk: the content of a file, or names with what they name."""


Pins: TypeAlias = "dict[File | Directory, Tree]"
"""Parts of the disk whose state is chosen already."""


@dataclass(eq=False)
class File:
    """Content, and whether it must be there after a power loss."""

    data: bytes
    synced: bool = False

    def states(self, pins: Pins) -> Iterator[Tree]:
        if self in pins:
            yield pins[self]
            return
        if not self.synced:
            yield from {b"", self.data[: len(self.data) // 2]} - {self.data}
        yield self.data

    def least(self) -> Tree:
        return self.data if self.synced else b""

    def whole(self) -> Tree:
        return self.data

    def draw(self, dice: random.Random) -> Tree:
        return dice.choice([*self.states({})])


@dataclass(eq=False)
class Directory:
    """Names that are certain, and changes since then: a name with its node, or with None where it was removed."""

    certain: dict[str, Any] = field(default_factory=dict)
    pending: list[dict[str, Any]] = field(default_factory=list)

    def names(self, changes: int | None = None) -> dict[str, Any]:
        """After the first `changes` (None = all) pending changes."""
        found = dict(self.certain)
        for change in self.pending[:changes]:
            found.update(change)
        return {name: found[name] for name in sorted(found) if found[name] is not None}

    def sync(self) -> None:
        self.certain, self.pending = self.names(), []

    def states(self, pins: Pins) -> Iterator[Tree]:
        if self in pins:
            yield pins[self]
            return
        for changes in range(len(self.pending) + 1):
            names = self.names(changes)
            for chosen in itertools.product(*(list(node.states(pins)) for node in names.values())):
                yield tuple(zip(names, chosen, strict=True))

    def least(self) -> Tree:
        return tuple((name, node.least()) for name, node in self.names(0).items())

    def whole(self) -> Tree:
        return tuple((name, node.whole()) for name, node in self.names().items())

    def draw(self, dice: random.Random) -> Tree:
        names = self.names(dice.randint(0, len(self.pending)))
        return tuple((name, node.draw(dice)) for name, node in names.items())


class Disk:
    """Follows the operations of processes below `root`. The kubelet's own directories have long been there."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.top = Directory({"plugins": Directory(), "cdi": Directory()})

    def follow(self, name: str, args: tuple[Any, ...]) -> None:
        operation = getattr(self, f"_{name}", None)
        if operation is not None:
            operation(*args)

    def _at(self, path: Any) -> Any:
        node: Any = self.top
        for part in Path(path).relative_to(self._root).parts:
            node = node.names()[part]
        return node

    def _change(self, path: Any, **names: Any) -> None:
        self._at(Path(path).parent).pending.append(names)

    def _create(self, path: Any, data: bytes, *_: Any) -> None:
        self._change(path, **{Path(path).name: File(data)})

    def _mkdir(self, path: Any, *_: Any) -> None:
        self._change(path, **{Path(path).name: Directory()})

    def _rename(self, source: Any, target: Any) -> None:
        assert Path(source).parent == Path(target).parent
        self._change(target, **{Path(source).name: None, Path(target).name: self._at(source)})

    def _unlink(self, path: Any) -> None:
        if Path(path).name in self._at(Path(path).parent).names():
            self._change(path, **{Path(path).name: None})

    _rmdir = _unlink

    def _open_lock(self, path: Any) -> None:
        if Path(path).name not in self._at(Path(path).parent).names():
            self._change(path, **{Path(path).name: File(b"")})

    def _write_counter(self, path: Any, number: int) -> None:
        lock = self._at(path)
        lock.data, lock.synced = b"%020d\n" % number, False

    def _sync(self, path: Any) -> None:
        self._at(path).synced = True

    def _sync_directory(self, path: Any) -> None:
        self._at(path).sync()

    def states(self) -> set[Tree]:
        """All states of the journal, each with all states of one other part while the rest is whole, or lost.

        The other parts (CDI files, metadata, records of instances, the lock file) never refer to each other.
        """
        others = self._others()
        found = set(self.top.states({node: node.whole() for node in others}))
        for free in others:
            for rest in ("whole", "least"):
                found.update(self.top.states({node: getattr(node, rest)() for node in others if node is not free}))
        return found

    def journal_states(self) -> set[Tree]:
        """All states of the journal, with everything else whole."""
        return set(self.top.states({node: node.whole() for node in self._others()}))

    def draw(self, dice: random.Random, count: int) -> set[Tree]:
        """Some states, each part of them chosen by chance."""
        return {self.top.draw(dice) for _ in range(count)}

    def _others(self) -> list[Any]:
        parts = [self.top.names()["cdi"]]
        for plugin in self.top.names()["plugins"].names().values():
            parts += [node for name, node in plugin.names().items() if name != "claims"]
        return parts


def build(tree: Tree, path: Path) -> None:
    """Make a state real."""
    if isinstance(tree, bytes):
        path.write_bytes(tree)
        return
    path.mkdir(exist_ok=True)
    for name, child in tree:
        build(child, path / name)


@dataclass(frozen=True)
class Moment:
    """The power fails now: what may be on the disk, what hooks did, and what the kubelet was doing."""

    states: frozenset[Tree]
    hardware: Any
    stage: str


CALLED, REPLIED, UNDOING, UNDONE = "prepare called", "prepare replied", "unprepare called", "unprepare replied"


class Trial:
    """One run of some claims that is recorded, and the checks of what a power loss in it leaves."""

    def __init__(self, lab: Any, claims: dict[str, list[Any]]) -> None:
        self.lab = lab
        self.results = claims
        self.claims = [lab.api.claim(name, f"uid-{name}", *results) for name, results in claims.items()]
        self.log: list[Any] = []
        self.forgets: Callable[[str, tuple[Any, ...]], bool] = lambda *_: False
        self.reference: tuple[Any, Any] = ({}, {})

    def empty_node(self) -> None:
        """The kubelet made its directory long ago."""
        self.lab.reset()
        for name in ("plugins", "cdi"):
            (self.lab.root / name).mkdir()

    def filesystem(self) -> Any:
        return self.lab.recording_filesystem(self.log, self.lab.hardware, self._forgets)

    def _forgets(self, name: str, args: tuple[Any, ...]) -> bool:
        return self.forgets(name, args)

    async def learn(self) -> None:
        """Reply and files of a run on a sound disk, in the boot after the power loss."""
        self.empty_node()
        process = await self.lab.start(boot_id="boot-2")
        self.reference = (await process.prepare(*self.claims), self.lab.claim_files())
        await process.stop()

    async def record(self) -> None:
        """Start, prepare, unprepare, stop."""
        await self.learn()
        self.empty_node()
        self.log.clear()
        fs = self.filesystem()
        process = await self.lab.start(fs)
        fs.point(CALLED)
        assert await process.prepare(*self.claims) == self.reference[0]
        fs.point(REPLIED)
        fs.point(UNDOING)
        await process.unprepare(*self.claims)
        fs.point(UNDONE)
        await process.stop()

    async def record_killed(self, at: int) -> bool:
        """Prepare is killed at its point `at`; the next process answers. Whether there is such a point."""
        self.empty_node()
        self.log.clear()
        fs = self.filesystem()
        victim = await self.lab.start(fs)
        fs.at = fs.count + at
        await self.lab.until_killed(fs, victim.prepare(*self.claims))
        killed = bool(fs.dead)
        fs.die()
        await victim.abandon()
        await self._answer(await self.lab.start(successor := self.filesystem()), successor)
        return killed

    async def record_failed(self, at: int) -> bool:
        """Operation `at` of prepare fails; the kubelet calls again. Whether there is such an operation."""
        self.empty_node()
        self.log.clear()
        fs = self.filesystem()
        process = await self.lab.start(fs)
        last = fs.count + at
        fs.fails_on = lambda _, args: args and fs.count == last
        first = await process.prepare(*self.claims)
        failed, fs.fails_on = bool(fs.count >= last), None
        if failed and not any(isinstance(answer, str) for answer in first.values()):
            return failed  # without metadata (M17), or nothing was needed: as good as undisturbed
        await self._answer(process, fs)
        return failed

    async def _answer(self, process: Any, fs: Any) -> None:
        assert await process.prepare(*self.claims) == self.reference[0]
        fs.point(REPLIED)
        self.log.append(("the power fails", (), self.lab.hardware.copy()))
        await process.abandon()

    def last_moment(self) -> Moment:
        """The power fails right after the reply."""
        disk = Disk(self.lab.root)
        for name, args, _ in self.log:
            disk.follow(name, args)
            if name == "the power fails":
                break
        return Moment(frozenset(disk.states()), self.log[-1][2], REPLIED)

    def moments(self, states: Callable[[Disk], Any] = Disk.states) -> Iterator[Moment]:
        """Every moment after which something is different."""
        disk, stage = Disk(self.lab.root), ""
        for name, args, hardware in self.log:
            disk.follow(name, args)
            stage = name if name in {CALLED, REPLIED, UNDOING, UNDONE} else stage
            if stage and (name in self.lab.writes or not args):
                yield Moment(frozenset(states(disk)), hardware, stage)

    async def check(self, tree: Tree, moment: Moment) -> list[str]:
        """What is wrong after a start on `tree`."""
        found: list[str] = []
        for branch in _BRANCHES[moment.stage]:
            self.lab.reset()
            build(tree, self.lab.root)
            self.lab.hardware = moment.hardware.copy()
            try:
                process = await self.lab.start(boot_id="boot-2")
                try:
                    await branch(self, process)
                finally:
                    await process.stop()
                found += self.lab.leaks()
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                found.append(f"{branch.__name__}: {type(error).__name__}: {error}")
        return found

    async def prepared_again(self, process: Any) -> None:
        """The pod is started again."""
        self._no_record_is_broken()
        reply, files = self.reference
        assert await process.prepare(*self.claims) == reply
        assert self.lab.claim_files() == files
        assert set(process.driver.prepared) == {claim.uid for claim in self.claims}, "not prepared in this boot"
        await self.unprepared(process)

    async def unprepared(self, process: Any) -> None:
        """The pod is gone, and the next one wants its devices."""
        self._no_record_is_broken()
        for claim in self.claims:
            assert await process.unprepare(claim) == {claim.uid: ""}
        await self.rivals(process)

    async def rivals(self, process: Any) -> None:
        """Nobody calls for the claims any more: their devices are free for others."""
        rivals = [
            self.lab.api.claim(f"{name}-rival", f"rival-{name}", *results) for name, results in self.results.items()
        ]
        for uid, answer in (await process.prepare(*rivals)).items():
            assert not isinstance(answer, str), (uid, answer)
        await process.unprepare(*rivals)

    def _no_record_is_broken(self) -> None:
        """A power loss may take a record, but never breaks one."""
        assert not (self.lab.plugin_directory / "quarantine").exists(), "a record was broken"


_BRANCHES = {
    CALLED: (Trial.prepared_again, Trial.unprepared),
    REPLIED: (Trial.prepared_again, Trial.unprepared),
    UNDOING: (Trial.unprepared,),
    UNDONE: (Trial.rivals,),
}


SEED = 6


def _some(states: Any, count: int) -> list[Any]:
    """The same ones in each run."""
    ordered = sorted(states, key=repr)
    return random.Random(SEED).sample(ordered, min(count, len(ordered)))


async def everything(trial: Trial, moments: Iterator[Moment], limit: int | None = None) -> int:
    """Check all different states of all moments, or `limit` of them; how many there were."""
    found = {(tree, moment.stage, str(moment.hardware)): moment for moment in moments for tree in moment.states}
    chosen = found.keys() if limit is None else _some(found, limit)
    for key in chosen:
        wrong = await trial.check(key[0], found[key])
        assert not wrong, (found[key].stage, key[0], wrong)
    return len(chosen)


async def test_sample(lab: Any, counted: Any) -> None:
    """What `make test` runs of it."""
    trial = Trial(lab, {"a": ["gpu-0"]})
    await trial.record()
    assert counted(await everything(trial, trial.moments(Disk.journal_states), limit=60)) == 60


@pytest.mark.matrix
@pytest.mark.timeout(300)
async def test_one_claim(lab: Any, counted: Any) -> None:
    trial = Trial(lab, {"a": ["gpu-0"]})
    await trial.record()
    assert counted(await everything(trial, trial.moments())) > 1000


@pytest.mark.matrix
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "claims",
    [
        {f"c{n}": [f"gpu-{n}"] for n in range(4)},
        {"a": ["gpu-0", "gpu-1", {"request": "s/first", "device": "gpu-2"}], "b": ["gpu-3"]},
    ],
    ids=["four claims", "several devices"],
)
async def test_batches(lab: Any, claims: Any, counted: Any) -> None:
    trial, dice = Trial(lab, claims), random.Random(SEED)
    await trial.record()
    assert counted(await everything(trial, trial.moments(lambda disk: disk.draw(dice, 8)), limit=400)) == 400


async def _after(trial: Trial, disturb: Callable[[int], Any]) -> int:
    """A disturbance at each point of prepare, the retry's reply, and then the power fails; some states of each."""
    at, count = 0, 0
    while True:
        at += 1
        await trial.learn()
        more = await disturb(at)
        if not any(name == REPLIED for name, _, _ in trial.log):
            continue
        moment = trial.last_moment()
        for tree in _some(moment.states, 12):
            wrong = await trial.check(tree, moment)
            assert not wrong, (at, tree, wrong)
            count += 1
        if not more:
            return count


@pytest.mark.matrix
@pytest.mark.timeout(240)
async def test_after_a_kill_and_the_reply_of_the_next_process(lab: Any, counted: Any) -> None:
    trial = Trial(lab, {"a": ["gpu-0"]})
    assert counted(await _after(trial, trial.record_killed)) > 100


@pytest.mark.matrix
@pytest.mark.timeout(240)
async def test_after_a_failed_operation_and_the_reply_to_the_retry(lab: Any, counted: Any) -> None:
    trial = Trial(lab, {"a": ["gpu-0"]})
    assert counted(await _after(trial, trial.record_failed)) > 100


SYNCS = {
    "the driver's directory in the kubelet's": ("sync_directory", "plugins", 1),
    "the records' directory in the driver's": ("sync_directory", "gpu.example.com", 1),
    "preparing: content": ("sync", ".uid-a.tmp", 1),
    "preparing: name space": ("sync_directory", "claims", 2),
    "preparing: claim": ("sync_directory", "default", 1),
    "preparing: record": ("sync_directory", "a", 1),
    "prepared: content": ("sync", ".uid-a.tmp", 2),
    "prepared: record": ("sync_directory", "a", 2),
    "unprepared": ("sync_directory", "a", 3),
}
"""Each sync of one claim's life: operation, name, and which one of that name. (The first of `claims` is the sweep's.)"""


@pytest.mark.matrix
@pytest.mark.parametrize("missing", SYNCS)
async def test_mutation_without_this_sync_something_is_lost(lab: Any, missing: str) -> None:
    """The matrix finds the missing line: there is a state on which a check fails."""
    operation, name, which = SYNCS[missing]
    seen: list[Any] = []

    def forgets(called: str, args: tuple[Any, ...]) -> bool:
        if (called, Path(args[0]).name) == (operation, name):
            seen.append(args)
            return len(seen) == which
        return False

    trial = Trial(lab, {"a": ["gpu-0"]})
    await trial.record()
    trial.forgets = forgets
    await trial.record()
    assert len(seen) >= which
    for moment in trial.moments(Disk.journal_states):
        for tree in moment.states:
            if await trial.check(tree, moment):
                return
    raise AssertionError("no state of the disk shows that this sync is needed")


async def test_there_are_no_other_syncs(lab: Any) -> None:
    """The list above is complete, so that a new sync gets its proof too."""
    trial = Trial(lab, {"a": ["gpu-0"]})
    await trial.record()
    done = [(name, Path(args[0]).name) for name, args, _ in trial.log if name.startswith("sync")]
    wanted = [(operation, name) for operation, name, _ in SYNCS.values()]
    assert sorted([*wanted, ("sync_directory", "claims")]) == sorted(done)
