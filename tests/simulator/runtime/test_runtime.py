import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from drakit import cdi
from drakit.simulator.clock import ManualClock
from drakit.simulator.runtime import CreateContainerError, Runtime

POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {}}
ID = "v.example.com/c=d"


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", **fields}


class Bench:
    def __init__(self, root: Path) -> None:
        self.directory = root / "cdi"
        self.directory.mkdir()
        self.clock = ManualClock()
        self.node = cdi.HostNode("c", 195, 0, 0o666)
        self.runtime = Runtime((self.directory,), root / "run", clock=self.clock, node=lambda _: self.node)

    def write(self, edits: cdi.ContainerEdits, name: str = "d") -> None:
        spec = cdi.Spec(
            cdi_version="0.5.0", kind="v.example.com/c", devices=(cdi.Device(name=name, container_edits=edits),)
        )
        (self.directory / f"{name}.json").write_bytes(cdi.encode(spec))

    async def create(self, *ids: str, **fields: Any) -> Any:
        await self.runtime.run_sandbox(POD)
        await self.runtime.create_container(POD, container(**fields), ids)
        return self.runtime.container("u", "main")


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    await bench.runtime.close()


async def test_env_devices_and_mounts_are_what_cdi_says(bench: Bench, tmp_path: Path) -> None:
    source = tmp_path / "data"
    source.write_text("hello")
    bench.write(
        cdi.ContainerEdits(
            env=("A=device", "B=1"),
            device_nodes=(cdi.DeviceNode(path="/dev/gpu0"),),
            mounts=(cdi.Mount(host_path=str(source), container_path="/etc/data", options=("ro", "bind")),),
        )
    )
    made = await bench.create(ID, env=[{"name": "A", "value": "pod"}, {"name": "C", "value": "2"}])
    assert {name: made.env[name] for name in "ABC"} == {"A": "device", "B": "1", "C": "2"}
    assert made.env["HOSTNAME"] == "p"
    assert made.devices == ("/dev/gpu0",)
    assert made.mounts == {"/etc/data": str(source)}
    assert made.path("/etc/data").read_text() == "hello"


async def test_a_mounted_file_keeps_its_inode_m22_22(bench: Bench, tmp_path: Path) -> None:
    source = tmp_path / "data"
    source.write_text("1")
    bench.write(cdi.ContainerEdits(mounts=(cdi.Mount(host_path=str(source), container_path="/data"),)))
    made = await bench.create(ID)
    source.write_text("2")
    assert made.path("/data").read_text() == "2"  # written in place
    other = tmp_path / "new"
    other.write_text("3")
    other.rename(source)
    assert made.path("/data").read_text() == "2"  # replaced: the container keeps what it has
    again = await bench.create(ID)
    assert again.path("/data").read_text() == "3"


async def test_a_mounted_directory_is_the_hosts(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    bench.write(cdi.ContainerEdits(mounts=(cdi.Mount(host_path=str(tmp_path / "lib"), container_path="/usr/lib/x"),)))
    made = await bench.create(ID)
    (tmp_path / "lib" / "late").touch()
    assert made.path("/usr/lib/x/late").exists()


async def test_equal_ids_are_applied_once_21(bench: Bench) -> None:
    bench.write(cdi.ContainerEdits(device_nodes=(cdi.DeviceNode(path="/dev/gpu0"),)))
    made = await bench.create(ID, ID)
    assert made.devices == ("/dev/gpu0",)


@pytest.mark.parametrize("bad", ["bogus", "v.example.com/c=nope", ""])
async def test_ids_that_do_not_resolve_have_containerds_text_16(bench: Bench, bad: str) -> None:
    await bench.runtime.run_sandbox(POD)
    with pytest.raises(CreateContainerError) as raised:
        await bench.runtime.create_container(POD, container(), (bad,))
    assert str(raised.value) == (
        f"failed to create containerd container: CDI device injection failed: unresolvable CDI devices {bad}"
    )
    assert bench.runtime.container("u", "main") is None


async def test_a_command_ends_when_its_time_is_over(bench: Bench) -> None:
    made = await bench.create(command=["sleep", "60"])
    waiting = asyncio.create_task(bench.runtime.wait("u", "main"))
    await bench.clock.advance(59)
    assert made.exit_code is None
    await bench.clock.advance(2)
    assert await waiting == 0
    assert (made.finished - made.started).total_seconds() == 60


async def test_stopping_ends_containers_and_then_the_sandbox(bench: Bench) -> None:
    made = await bench.create(command=["sleep", "infinity"])
    await bench.runtime.stop_sandbox("u", 30)
    assert made.exit_code == 137
    assert bench.runtime.sandboxes() == ()
    assert bench.runtime.containers() == (made,)
    bench.runtime.remove_sandbox("u")
    assert bench.runtime.containers() == ()
    assert not made.root.exists()


async def test_a_shell_with_a_trap_ends_well(bench: Bench) -> None:
    made = await bench.create(command=["sh", "-c", "trap exit INT TERM; sleep 1m & wait"])
    await bench.runtime.stop_sandbox("u", 30)
    assert made.exit_code == 0


async def test_a_crash_leaves_nothing(bench: Bench) -> None:
    made = await bench.create()
    bench.runtime.crash()
    assert made.exit_code == 255
    assert (bench.runtime.sandboxes(), bench.runtime.containers()) == ((), ())
