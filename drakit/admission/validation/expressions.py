"""CEL expressions of selectors and derived attributes. Source: spec/apiserver.md 4-6, spec/cel.md 3."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from drakit.admission.validation import formats
from drakit.api import limits

if TYPE_CHECKING:
    from drakit import cel
    from drakit.admission.faults import Faults
    from drakit.admission.policy import Policy

__all__ = ["expression"]


def expression(faults: Faults, path: str, text: str, server: Policy, *, derived: bool = False) -> int:
    """Compile an expression as a new one; the estimated cost, 0 when it does not compile.

    `derived`: the result may be any scalar or list of scalars, not only a bool.
    """
    if formats.byte_length(text) > limits.CEL_EXPRESSION_LENGTH:
        faults.too_long(path, limits.CEL_EXPRESSION_LENGTH)
        return 0
    complaint, cost = _compile(text, server.minor, server.gates & _GATES, "value" if derived else "bool")
    if complaint:
        faults.invalid(path, text, complaint)
    elif cost > limits.CEL_COST:
        faults.forbidden(path, "too complex, exceeds cost limit")
    return cost


_GATES = frozenset({"DRAConsumableCapacity", "DRAListTypeAttributes"})


@functools.lru_cache(maxsize=64)
def _environment(minor: str, gates: frozenset[str]) -> cel.Environment:
    from drakit import cel  # a node's driver checks only slices, which have none: 1.7 MiB of its memory

    return cel.Environment(version=minor, features=gates, stored=False)


@functools.lru_cache(maxsize=4096)
def _compile(text: str, minor: str, gates: frozenset[str], result: str) -> tuple[str, int]:
    from drakit import cel

    try:
        program = _environment(minor, gates).compile(text, result=result)
    except cel.CompileError as error:
        return str(error), 0
    return "", program.cost
