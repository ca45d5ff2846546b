"""Which attributes claims read. Devices that differ in others only (UUIDs, serial numbers) are alike to the allocator.

Attributes are told apart by their identifier, the part of the name behind the domain.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drakit.allocation.requests import Plan

__all__ = ["expression_reads", "identifier", "plan_reads"]

_PLAIN: Final = re.compile(
    r"""\bdevice\s*\.\s*(?:
        (?:driver|allowMultipleAllocations|capacity)\b
        | attributes\s*\[\s*(?:"[\w./-]*"|'[\w./-]*'|device\s*\.\s*driver)\s*\]
          \s*\.\s*(?P<identifier>[A-Za-z_]\w*+)(?!\s*\()
    )""",
    re.ASCII | re.VERBOSE,
)
"""Ways to read a device that name the attribute; `attributes["domain"].size()` is none, it looks at all of them."""


def identifier(name: str) -> str:
    """The part of an attribute's name behind its domain."""
    domain, slash, rest = name.partition("/")
    return rest if slash else domain


def expression_reads(expression: str) -> frozenset[str] | None:
    """Identifiers of the attributes that an expression may depend on; None when it may be any.

    It is decided by the text alone: `device` must occur in plain forms only. A comment could hide what follows one.
    """
    if "//" in expression or "device" in _PLAIN.sub("", expression):
        return None
    return frozenset(found for found in _PLAIN.findall(expression) if found)


def plan_reads(plan: Plan) -> frozenset[str] | None:
    """Identifiers of what selectors, derived attributes and constraints of a plan read; None when it may be any."""
    names = {identifier(constraint.attribute) for constraint in plan.constraints}
    for expression in _expressions(plan):
        read = expression_reads(expression)
        if read is None:
            return None
        names |= read
    return frozenset(names)


def _expressions(plan: Plan) -> Iterable[str]:
    for variant in plan.variants:
        if variant.fault is None:
            selectors = variant.needs.selectors
            yield from (text for _, _, text in selectors.expressions)
            yield from (text for _, text in selectors.derived)
