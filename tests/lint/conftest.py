"""Lint a text as a file, and what its findings are."""

import textwrap
from collections.abc import Callable
from typing import TypeAlias

import pytest

from drakit import admission, lint

Lint: TypeAlias = Callable[..., lint.Report]


@pytest.fixture
def lint_text() -> Lint:
    """Lint texts (files file-0.yaml, file-1.yaml ...) for a version, with its default gates or all."""

    def run(*texts: str, version: str = "1.37", all_gates: bool = False) -> lint.Report:
        gates = admission.profile(version, all_gates=True) if all_gates else None
        sources = [lint.Source(f"file-{index}.yaml", textwrap.dedent(text)) for index, text in enumerate(texts)]
        return lint.lint(sources, lint.target(version, gates))

    return run
