"""One thing that lint has to say."""

from enum import StrEnum

import msgspec

__all__ = ["Finding", "Severity"]


class Severity(StrEnum):
    """How bad: errors are what an API server, kubectl or runtime refuses; warnings are accepted and cost days."""

    ERROR = "error"
    WARNING = "warning"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Where, what, and the way out.

    Attributes:
        severity: error or warning.
        rule: the rule's name, as in docs/lint.md.
        message: what is wrong and what to do.
        file: the file as it was named, `-` for standard input.
        line: from 1.
        column: from 1.
        object: kind and name of the object, such as `ResourceClaim default/gpus`; empty for a file.
        path: JSON path within the object.
    """

    severity: Severity
    rule: str
    message: str
    file: str
    line: int = 1
    column: int = 1
    object: str = ""
    path: str = ""
