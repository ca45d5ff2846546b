"""What the project's own files promise to each other."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drakit.driver.claims import AllocatedDevice

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_readme_opens_with_the_two_commands_and_stays_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line.split("#")[0].strip("$ ") for line in lines[3:5]] == ["make demo", "make test"]
    assert len(lines) <= 150


@pytest.mark.parametrize("lock", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_locks_pin_every_package_by_hash_and_name_no_address(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    blocks = [block for block in re.split(r"\n(?=\S)", text) if block.strip()]
    assert blocks
    for block in blocks:
        assert re.match(r"[a-z0-9._-]+==\S+", block)
        assert "--hash=sha256:" in block


def test_the_stubs_generator_is_pinned_and_is_the_lower_bound_of_the_runtime() -> None:
    dev = PYPROJECT["dependency-groups"]["dev"]
    (pin,) = [line.removeprefix("grpcio-tools==") for line in dev if str(line).startswith("grpcio-tools==")]
    driver = PYPROJECT["project"]["optional-dependencies"]["driver"]
    assert f"grpcio>={pin}" in driver
    generated = sorted((ROOT / "drakit/_proto").glob("*_pb2_grpc.py"))
    assert generated
    assert all(f"GRPC_GENERATED_VERSION = '{pin}'" in path.read_text() for path in generated)


def test_the_version_is_one() -> None:
    version = PYPROJECT["project"]["version"]
    assert f"newTag: {version}" in (ROOT / "deploy/base/kustomization.yaml").read_text()
    assert f"ARG VERSION={version}" in (ROOT / "Dockerfile").read_text()


def test_every_room_says_what_may_live_there() -> None:
    for init in (ROOT / "drakit").rglob("__init__.py"):
        if "_proto" not in init.parts:
            assert init.read_text().startswith('"""'), init


def test_the_readmes_driver_is_one() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(code, "README.md", "exec"), names)
    driver = names["Kvm"]()
    assert [device.name for device in driver.devices()] == ["kvm"]
    device = AllocatedDevice(request="r", pool="p", device="kvm")
    (prepared,) = driver.prepare(SimpleNamespace(devices=(device,)))
    assert prepared.edits.device_nodes[0].path == "/dev/kvm"


def test_every_page_that_the_readme_names_is_there() -> None:
    pages = re.findall(r"\]\((docs/[^)]+)\)", (ROOT / "README.md").read_text())
    assert pages
    assert [page for page in pages if not (ROOT / page).is_file()] == []
