"""One version: pyproject's, which is static so that nothing has to be installed to know it."""

import tomllib
from pathlib import Path

import drakit


def test_the_version_is_pyprojects() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert drakit.__version__ == project["project"]["version"]
