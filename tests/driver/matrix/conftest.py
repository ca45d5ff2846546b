"""A node without sockets: disk, hardware and API objects that outlive processes, and processes that can die anywhere.

A process is an Application whose state is opened and whose service is called directly; the sockets in front of it are
not part of what a crash can break here. Everything that touches the disk or a lock goes through a Filesystem that
numbers it.
"""

import asyncio
import contextlib
import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from drakit import cdi, kube
from drakit.driver.application import Application
from drakit.driver.claims import AllocatedDevice, Claim, ClaimRef, Preparation, Prepared
from drakit.driver.journal import Identity
from drakit.driver.plugin import Device, Driver
from drakit.driver.settings import Settings
from drakit.files import REAL, Filesystem, LockFile

T = TypeVar("T")
DRIVER = "gpu.example.com"
NODE = "node-a"
PATIENCE_SECONDS = 20.0
OPERATIONS = frozenset(name for name in vars(Filesystem) if not name.startswith("_"))
WRITES = frozenset({"create", "sync", "sync_directory", "rename", "unlink", "mkdir", "rmdir", "write_counter"})
LEFT_STANDING = frozenset(
    {
        "cdi",
        "plugins",
        f"plugins/{DRIVER}",
        f"plugins/{DRIVER}/claims",
        f"plugins/{DRIVER}/instances",
        f"plugins/{DRIVER}/dra-device-metadata",
        f"plugins/{DRIVER}/state.lock",
    }
)
"""What a node keeps when no claim is prepared and no instance runs."""

Wanted = Identity


class Killed(BaseException):
    """The process is dead. No handler of errors may see it: SIGKILL gives no chance to clean up."""


class NumberedLock(LockFile):
    """A lock file whose operations are points."""

    def __init__(self, inner: LockFile, fs: "NumberedFilesystem") -> None:
        super().__init__(inner._descriptor, inner.path)
        self._fs = fs

    def acquire(self, offset: int, length: int, *, exclusive: bool = True, blocking: bool = True) -> bool:
        return self._fs.step(
            "acquire",
            (offset,),
            lambda: super(NumberedLock, self).acquire(offset, length, exclusive=exclusive, blocking=blocking),
        )

    def release(self, offset: int, length: int) -> None:
        self._fs.step("release", (offset,), lambda: super(NumberedLock, self).release(offset, length))

    def read_counter(self) -> int:
        return self._fs.step("read_counter", (self.path,), super().read_counter)

    def write_counter(self, number: int) -> None:
        self._fs.step("write_counter", (self.path, number), lambda: super(NumberedLock, self).write_counter(number))


class NumberedFilesystem(Filesystem):
    """The real one, one operation at a time, each with a number; subclasses decide what happens at it."""

    def __init__(self) -> None:
        self.count = 0
        self.locks: list[NumberedLock] = []
        self._mutex = threading.RLock()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in OPERATIONS:
            return found
        return lambda *args, **kwargs: self.step(name, args, lambda: found(*args, **kwargs))

    def open_lock(self, path: Any) -> LockFile:
        lock = NumberedLock(super().open_lock(path), self)
        self.locks.append(lock)
        return lock

    def step(self, name: str, args: tuple[Any, ...], call: Callable[[], T]) -> T:
        with self._mutex:
            self.count += 1
            return self.perform(name, args, call)

    def point(self, name: str) -> None:
        """A place outside the disk where something may happen, such as the beginning of a hook."""
        self.step(name, (), lambda: None)

    def perform(self, name: str, args: tuple[Any, ...], call: Callable[[], T]) -> T:
        result = call()
        self.happened(name, args)
        return result

    def happened(self, name: str, args: tuple[Any, ...]) -> None:
        """Told of every operation that was carried out."""


class MortalFilesystem(NumberedFilesystem):
    """Kills its process before operation `at` (1 = the first). A half-done `create` or `mkdir` is a point of its own.

    After that every operation fails with Killed, and all locks are free, as the kernel does it.
    """

    def __init__(self, at: int | None = None) -> None:
        super().__init__()
        self.at = at
        self.dead = False
        self.last: tuple[str, tuple[Any, ...]] = ("", ())
        self.death = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def perform(self, name: str, args: tuple[Any, ...], call: Callable[[], T]) -> T:
        if self.dead:
            raise Killed
        self._survive(name, args, lambda: None)
        if name == "create":
            data = args[1]
            for part in {0, len(data) // 2}:
                self.count += 1
                self._survive(f"create, {part} bytes", args, partial(self._write, args[0], data[:part]))
        elif name == "mkdir":
            self.count += 1
            self._survive("mkdir, mode missing", args, partial(self._mkdir, args[0]))
        return super().perform(name, args, call)

    def _survive(self, name: str, args: tuple[Any, ...], half: Callable[[], None]) -> None:
        if self.at is None or self.count != self.at:
            return
        with contextlib.suppress(OSError):
            half()
        self.last = (name, args)
        self.die()
        raise Killed

    def _write(self, path: Any, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, data)
        os.close(descriptor)
        self.happened("create", (path, data))

    def _mkdir(self, path: Any) -> None:
        Path(path).mkdir(0o700)
        self.happened("mkdir", (path,))

    def die(self) -> None:
        """What the kernel does at SIGKILL."""
        with self._mutex:
            self.dead = True
            for lock in self.locks:
                lock.close()
        self._loop.call_soon_threadsafe(self.death.set)


class FailingFilesystem(NumberedFilesystem):
    """Operation number `at`, counted as `counts` says, fails with `code`; all later ones too while `forever`."""

    def __init__(self) -> None:
        super().__init__()
        self.code = 0
        self.at = 0
        self.forever = False
        self.eligible = 0
        self.only = ""
        self.failed: list[tuple[str, tuple[Any, ...]]] = []

    def break_down(self, code: int, at: int, *, forever: bool) -> None:
        """From now on the `at`-th operation (1 = the next) fails."""
        self.code, self.at, self.forever, self.eligible = code, at, forever, 0

    def heal(self) -> None:
        """Nothing fails any more."""
        self.code = 0

    def perform(self, name: str, args: tuple[Any, ...], call: Callable[[], T]) -> T:
        if self.code and self.concerned(name) and self.only in str(args[:1]):
            self.eligible += 1
            if self.eligible == self.at or (self.forever and self.eligible > self.at):
                self.failed.append((name, args))
                raise OSError(self.code, os.strerror(self.code), str(args[0]) if args else None)
        return super().perform(name, args, call)

    def concerned(self, name: str) -> bool:
        """Whether the kernel may answer with the error: hooks are no operations, and locks know no full disk."""
        if self.code in {errno.ENOSPC, errno.EROFS}:
            return name in {"create", "mkdir", "rename", "sync", "sync_directory", "unlink", "rmdir", "write_counter"}
        return name in OPERATIONS or name.endswith("_counter") or (name == "acquire" and self.code == errno.EIO)


class RecordingFilesystem(MortalFilesystem):
    """Keeps what it did in a `log` that several processes may share, with what was known of the hardware then.

    `forgets` names syncs that are left out, as if the line of code were missing.
    """

    def __init__(
        self, log: list[Any], hardware: "Hardware", forgets: Callable[[str, tuple[Any, ...]], bool] = lambda *_: False
    ) -> None:
        super().__init__()
        self.log, self.hardware, self.forgets = log, hardware, forgets
        self.fails_on: Callable[[str, tuple[Any, ...]], bool] | None = None

    def perform(self, name: str, args: tuple[Any, ...], call: Callable[[], T]) -> T:
        if self.fails_on is not None and self.fails_on(name, args):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(args[0]))
        if name in {"sync", "sync_directory"} and self.forgets(name, args):
            return None  # type: ignore[return-value]  # what a sync returns
        return super().perform(name, args, call)

    def happened(self, name: str, args: tuple[Any, ...]) -> None:
        self.log.append((name, args, self.hardware.copy()))


@dataclass
class Hardware:
    """What hooks did to the devices. It outlives processes; what is found wrong is kept in `violations`."""

    held: dict[tuple[str, ...], str] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    promised: dict[str, Any] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def copy(self) -> "Hardware":
        return Hardware(dict(self.held), set(self.begun), dict(self.promised), list(self.violations))

    def take(self, device: AllocatedDevice, uid: str) -> None:
        if device.admin_access:
            return
        key = (device.pool, device.device, device.share_id or "")
        if self.held.setdefault(key, uid) != uid:
            self.violations.append(f"{key} given to {uid} while {self.held[key]} has it")

    def give_back(self, ref: ClaimRef) -> None:
        promised = self.promised.pop(ref.uid, None)
        if promised is not None and ref.state != promised:
            self.violations.append(f"unprepare of {ref.uid} got state {ref.state}, not {promised}")
        for key in [key for key, uid in self.held.items() if uid == ref.uid]:
            del self.held[key]
        self.begun.discard(ref.uid)


class HardwareDriver(Driver):
    """Configures hardware; each hook has points at its begin, in its middle and at its end."""

    def __init__(self, hardware: Hardware, point: Callable[[str], None]) -> None:
        self.name = DRIVER
        self._hardware = hardware
        self._point = point
        self.refuses: Callable[[Claim], None] = lambda _: None
        self.prepared: list[str] = []

    def devices(self) -> Sequence[Device]:
        return [Device(name=f"gpu-{index}") for index in range(8)]

    def prepare(self, claim: Claim) -> Preparation:
        self._point("prepare begins")
        self.prepared.append(claim.uid)
        self._hardware.begun.add(claim.uid)
        for device in claim.devices:
            self._point("prepare, one device more")
            self._hardware.take(device, claim.uid)
        self.refuses(claim)
        self._point("prepare ends")
        answers = [
            Prepared(device, cdi.ContainerEdits(env=(f"GPU={device.device}",)), {"serial": device.device})
            for device in claim.devices
        ]
        return Preparation(answers, cdi.ContainerEdits(env=("LIBRARY=1",)), state_of(claim.uid))

    def unprepare(self, ref: ClaimRef) -> None:
        self._point("unprepare begins")
        self._hardware.give_back(ref)
        self._point("unprepare ends")


def state_of(uid: str) -> dict[str, str]:
    """What the driver wants back at unprepare."""
    return {"slot": uid}


class Api:
    """ResourceClaims by namespace and name, as far as a client asks for them."""

    def __init__(self) -> None:
        self.claims: dict[tuple[str, str], dict[str, Any]] = {}

    async def get(self, _resource: Any, name: str, *, namespace: str = "") -> dict[str, Any]:
        try:
            return self.claims[namespace, name]
        except KeyError:
            raise kube.NotFound(404, "NotFound", f"{namespace}/{name}") from None

    def claim(self, name: str, uid: str, *results: str | dict[str, Any], namespace: str = "default") -> Wanted:
        """Create or replace an allocated claim with one result per device."""
        filled = [
            {"request": "r", "driver": DRIVER, "pool": NODE, **({"device": r} if isinstance(r, str) else r)}
            for r in results
        ]
        requests = [
            {"name": n, "exactly": {"deviceClassName": "gpu"}} for n in dict.fromkeys(f["request"] for f in filled)
        ]
        self.claims[namespace, name] = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "spec": {"devices": {"requests": requests}},
            "status": {"allocation": {"devices": {"results": filled}}},
        }
        return Wanted(namespace, name, uid)


class _Nothing:
    """Publishes nothing."""

    def update(self, inventory: Any) -> None:
        """Nothing is published."""

    async def run(self, client: Any) -> None:
        """Nothing is published."""

    def unready(self) -> str:
        return ""


@dataclass
class Process:
    """One life of the driver."""

    application: Application
    driver: HardwareDriver
    hardware: Hardware
    api: Api

    async def open(self) -> None:
        """What a start does before it listens."""
        self.application.lookup.use(self.api)  # type: ignore[arg-type]  # the only method that a lookup calls
        await self.application._open_state()

    async def prepare(self, *claims: Wanted) -> dict[str, Any]:
        """A reply that arrives is a promise: the driver must hold to it from now on."""
        reply = await self.application.service.prepare(claims)
        self.hardware.promised.update({uid: state_of(uid) for uid, one in reply.items() if not isinstance(one, str)})
        return reply

    async def unprepare(self, *claims: Wanted) -> dict[str, str]:
        reply = await self.application.service.unprepare(claims)
        for uid in [uid for uid, error in reply.items() if not error]:
            self.hardware.promised.pop(uid, None)
            if uid in self.hardware.begun:
                self.hardware.violations.append(f"unprepare of {uid} answered, and its hook did not run")
        return reply

    async def abandon(self) -> None:
        await self.application.abandon()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and _is_ours(task)]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE_SECONDS)

    async def stop(self) -> None:
        await self.application.stop(0)


def _is_ours(task: asyncio.Task[Any]) -> bool:
    return task.get_name() == "ledger" or task.get_name().startswith(("prepare ", "unprepare ", "restore ", "call "))


class Lab:
    """A node: its directory, its hardware, the API server's claims."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.api = Api()
        self.hardware = Hardware()
        self.numbered_filesystem = NumberedFilesystem
        self.mortal_filesystem = MortalFilesystem
        self.failing_filesystem = FailingFilesystem
        self.recording_filesystem = RecordingFilesystem
        self.writes = WRITES
        asyncio.get_running_loop().set_exception_handler(_quiet)

    @property
    def plugin_directory(self) -> Path:
        return self.root / "plugins" / DRIVER

    def reset(self) -> None:
        """A new node, with the same claims in the API."""
        shutil.rmtree(self.root)
        self.root.mkdir()
        self.hardware = Hardware()

    def process(self, fs: Filesystem = REAL, *, boot_id: str = "boot-1", **settings: Any) -> Process:
        """A process that has not opened its state yet."""
        point = fs.point if isinstance(fs, NumberedFilesystem) else lambda _: None
        driver = HardwareDriver(self.hardware, point)
        chosen = Settings(
            node_name=NODE,
            driver_name=DRIVER,
            cdi_root=str(self.root / "cdi"),
            kubelet_registrar_directory_path=str(self.root / "reg"),
            kubelet_plugins_directory_path=str(self.root / "plugins"),
            **settings,
        )
        application = Application(driver, chosen, _no_credentials, lambda _: _Nothing(), fs=fs, boot_id=boot_id)
        return Process(application, driver, self.hardware, self.api)

    async def start(self, fs: Filesystem = REAL, **options: Any) -> Process:
        process = self.process(fs, **options)
        await process.open()
        return process

    async def until_killed(self, fs: MortalFilesystem, work: Awaitable[Any]) -> Any:
        """The result of `work`, or None when the process died first. Then nothing that it says counts any more."""
        call = asyncio.ensure_future(work)
        call.set_name("call under test")
        death = asyncio.create_task(fs.death.wait(), name="call death")
        await asyncio.wait({call, death}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_SECONDS)
        death.cancel()
        if fs.dead:
            call.cancel()
            return None
        assert call.done(), "hangs"
        return call.result()

    def tree(self) -> dict[str, bytes | None]:
        """Everything on the disk: content of files, None for directories; not what every process changes."""
        found: dict[str, bytes | None] = {}
        for base in ("cdi", "plugins", "reg"):
            for path in [self.root / base, *(self.root / base).rglob("*")]:
                if path.is_symlink() or path.exists():
                    found[str(path.relative_to(self.root))] = path.read_bytes() if path.is_file() else None
        return found

    def claim_files(self) -> dict[str, bytes]:
        """Files of claims with their content."""
        return {
            name: data
            for name, data in self.tree().items()
            if data is not None and "instances" not in Path(name).parts and not name.endswith("state.lock")
        }

    def left(self) -> list[str]:
        """What is on the disk though nothing is prepared and nobody runs."""
        return sorted(self.tree().keys() - LEFT_STANDING)

    def locks_are_free(self) -> bool:
        """Whether nobody holds any byte of the state lock."""
        with REAL.open_lock(self.plugin_directory / "state.lock") as lock:
            return lock.acquire(0, 1 << 62, blocking=False)

    def leaks(self) -> list[str]:
        """All that must not be there once every claim is unprepared and every process has ended."""
        found = [f"left on disk: {name}" for name in self.left()]
        found += [f"hardware still configured: {key}" for key in self.hardware.held]
        found += [f"hook never undone: {uid}" for uid in self.hardware.begun]
        found += [] if self.locks_are_free() else ["a lock is held"]
        return found + self.hardware.violations


def _no_credentials() -> Any:
    raise AssertionError("nothing here speaks to an API server")


def _quiet(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), Killed):
        loop.default_exception_handler(context)


@pytest.fixture(name="lab")
async def _lab() -> Any:
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    root = Path(tempfile.mkdtemp(prefix="dk", dir=base))
    yield Lab(root)
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(name="counted")
def _counted(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """Notes how many cases a test had; `pytest --junitxml` shows it (docs/durability.md)."""

    def count(cases: int) -> int:
        request.node.user_properties.append(("cases", cases))
        return cases

    return count
