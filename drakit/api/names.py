"""The formats of names. Every check gives the API server's complaints, none when the name is fine.

Lengths are bytes. Source: spec/resourceslice.md 2.2, recorded answers of the API server.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from drakit.api import limits

__all__ = [
    "QualifiedName",
    "c_identifier",
    "dns_label",
    "dns_subdomain",
    "driver_name",
    "label_key",
    "label_value",
    "pool_name",
]

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_C_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_PART: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")

_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_C_IDENTIFIER_RULE: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_NAME_PART_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_LABEL_KEY_RULE: Final = (
    f"a valid label key {_NAME_PART_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)


class QualifiedName(NamedTuple):
    """The name of an attribute or capacity: `domain/identifier`."""

    domain: str
    identifier: str

    @staticmethod
    def parse(name: str, driver: str = "") -> QualifiedName:
        """Split at the first slash; a name without one belongs to the driver's domain."""
        domain, slash, identifier = name.partition("/")
        return QualifiedName(domain, identifier) if slash else QualifiedName(driver, name)

    def __str__(self) -> str:
        return f"{self.domain}/{self.identifier}"


def _length(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def dns_label(value: str) -> list[str]:
    """Complaints about an RFC 1123 label: devices, requests, counter sets, counters."""
    faults = []
    if _length(value) > limits.LABEL_LENGTH:
        faults.append(_too_long(limits.LABEL_LENGTH))
    if not _LABEL.fullmatch(value):
        faults.append("must not contain dots" if _SUBDOMAIN.fullmatch(value) else _LABEL_RULE)
    return faults


def dns_subdomain(value: str) -> list[str]:
    """Complaints about an RFC 1123 subdomain: objects, classes, nodes."""
    faults = []
    if _length(value) > limits.SUBDOMAIN_LENGTH:
        faults.append(_too_long(limits.SUBDOMAIN_LENGTH))
    if not _SUBDOMAIN.fullmatch(value):
        faults.append(_SUBDOMAIN_RULE)
    return faults


def c_identifier(value: str) -> list[str]:
    """Complaints about a C identifier: the last part of attribute and capacity names (length not included)."""
    return [] if _C_IDENTIFIER.fullmatch(value) else [_C_IDENTIFIER_RULE]


def driver_name(value: str) -> list[str]:
    """Complaints about a driver name: a subdomain in any case, not empty, at most 63 bytes."""
    if not value:
        return ["must not be empty"]
    faults = [_too_long(limits.DRIVER_NAME_LENGTH)] if _length(value) > limits.DRIVER_NAME_LENGTH else []
    return faults + dns_subdomain(value.lower())


def pool_name(value: str) -> list[str]:
    """Complaints about a pool name: subdomains separated by slashes, at most 253 bytes."""
    if not value:
        return ["must not be empty"]
    if _length(value) > limits.POOL_NAME_LENGTH:
        return [_too_long(limits.POOL_NAME_LENGTH)]
    return [fault for segment in value.split("/") for fault in dns_subdomain(segment)]


def label_key(value: str) -> list[str]:
    """Complaints about a label key: an optional DNS prefix, a slash, a name of at most 63 bytes."""
    prefix, slash, name = value.rpartition("/")
    faults = []
    if value.count("/") > 1:
        return [_LABEL_KEY_RULE]
    if slash:
        faults += (
            [f"prefix part {fault}" for fault in dns_subdomain(prefix)] if prefix else ["prefix part must be non-empty"]
        )
    if not name:
        faults.append("name part must be non-empty")
    elif _length(name) > limits.LABEL_LENGTH:
        faults.append(f"name part {_too_long(limits.LABEL_LENGTH)}")
    if not _NAME_PART.fullmatch(name):
        faults.append(f"name part {_NAME_PART_RULE}")
    return faults


def label_value(value: str) -> list[str]:
    """Complaints about a label value: empty, or a name of at most 63 bytes."""
    faults = []
    if _length(value) > limits.LABEL_LENGTH:
        faults.append(_too_long(limits.LABEL_LENGTH))
    if value and not _NAME_PART.fullmatch(value):
        faults.append(_LABEL_VALUE_RULE)
    return faults
