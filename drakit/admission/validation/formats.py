"""Names and values with a format. Every check adds its faults at a path. Source: spec/resourceslice.md 2.2."""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import TYPE_CHECKING, Any, Final

from drakit.api import limits, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from drakit.admission.faults import Faults

__all__ = [
    "byte_length",
    "driver_name",
    "fully_qualified_name",
    "interface_address",
    "items",
    "label",
    "label_key",
    "label_value",
    "pool_name",
    "qualified_name",
    "required_label",
    "shortened",
    "subdomain",
    "unique",
    "uuid",
]

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_LONGEST_KEY: Final = limits.DOMAIN_LENGTH + 1 + limits.IDENTIFIER_LENGTH
_UPPER: Final = re.compile(r"[A-Z]")


def byte_length(text: str) -> int:
    """Length in bytes, as Go counts."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@functools.lru_cache(maxsize=1 << 14)
def _label(value: str) -> tuple[str, ...]:
    return tuple(names.dns_label(value))


@functools.lru_cache(maxsize=1 << 14)
def _subdomain(value: str) -> tuple[str, ...]:
    return tuple(names.dns_subdomain(value))


@functools.lru_cache(maxsize=1 << 14)
def _label_key(value: str) -> tuple[str, ...]:
    return tuple(names.label_key(value))


@functools.lru_cache(maxsize=1 << 14)
def _label_value(value: str) -> tuple[str, ...]:
    return tuple(names.label_value(value))


def label(faults: Faults, path: str, value: str) -> None:
    """A DNS label: devices, requests."""
    faults.invalid_each(path, value, _label(value))


def required_label(faults: Faults, path: str, value: str) -> None:
    """A DNS label whose absence is told apart: counter sets."""
    if value:
        label(faults, path, value)
    else:
        faults.required(path)


def subdomain(faults: Faults, path: str, value: str) -> None:
    """A DNS subdomain: nodes, classes."""
    faults.invalid_each(path, value, _subdomain(value))


def label_key(faults: Faults, path: str, value: str) -> None:
    """A label key, not empty: taints, conditions, node selectors."""
    faults.invalid_each(path, value, _label_key(value))


def label_value(faults: Faults, path: str, value: str) -> None:
    """A label value."""
    faults.invalid_each(path, value, _label_value(value))


def driver_name(faults: Faults, path: str, value: str) -> None:
    """A driver name: a subdomain in any case, at most 63 bytes."""
    if not value:
        faults.required(path)
        return
    if byte_length(value) > limits.DRIVER_NAME_LENGTH:
        faults.too_long(path, limits.DRIVER_NAME_LENGTH)
    faults.invalid_each(path, value, _subdomain(value.lower()))


def pool_name(faults: Faults, path: str, value: str) -> None:
    """A pool name: subdomains separated by slashes, at most 253 bytes."""
    if not value:
        faults.required(path)
        return
    if byte_length(value) > limits.POOL_NAME_LENGTH:
        faults.too_long(path, limits.POOL_NAME_LENGTH)
    for segment in value.split("/"):
        for fault in _subdomain(segment):  # segments are still counted in characters, not bytes, in the message
            faults.invalid(
                path, segment, fault.removesuffix(" bytes") + " characters" if "more than" in fault else fault
            )


def _identifier(faults: Faults, path: str, value: str) -> None:
    if byte_length(value) > limits.IDENTIFIER_LENGTH:
        faults.too_long(path, limits.IDENTIFIER_LENGTH)
    faults.invalid_each(path, value, names.c_identifier(value))


def qualified_name(faults: Faults, path: str, value: str, *, one_slash: bool) -> None:
    """The name of an attribute or capacity; `one_slash`: more slashes are an error (since 1.37)."""
    parts = value.split("/")
    if len(parts) == 1:
        _identifier(faults, path, value)
        return
    if len(parts) > 2:
        if one_slash:
            faults.invalid(path, value, "must not contain more than one slash")
        return
    domain, name = parts
    if domain:
        driver_name(faults, path, domain)
    else:
        faults.invalid(path, "", "the domain must not be empty")
    if name:
        _identifier(faults, path, name)
    else:
        faults.invalid(path, "", "the name must not be empty")


def fully_qualified_name(faults: Faults, path: str, value: str, *, one_slash: bool) -> None:
    """A qualified name with a domain."""
    qualified_name(faults, path, value, one_slash=one_slash)
    if "/" not in value:
        faults.invalid(path, value, "a fully qualified name must be a domain and a name separated by a slash")


def uuid(faults: Faults, path: str, value: str) -> None:
    """A UUID in canonical form: 36 characters, lower case."""
    if _parsable_uuid(value):
        if len(value) != limits.SHARE_ID_LENGTH or _UPPER.search(value):
            faults.invalid(
                path,
                value,
                "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
                "hexadecimal characters",
            )
        return
    detail = "invalid UUID format"
    if len(value) not in {32, 36, 38, 45}:
        detail = f"invalid UUID length: {len(value)}"
    faults.invalid(path, value, f"error validating uid: {detail}")


def _parsable_uuid(value: str) -> bool:
    """Also with `urn:uuid:`, in braces, or without dashes."""
    if len(value) == 32:
        return re.fullmatch(r"[0-9a-fA-F]{32}", value) is not None
    if len(value) == 38:
        value = value[1:-1]
    elif len(value) == 45:
        prefix, value = value[:9], value[9:]
        if prefix.lower() != "urn:uuid:":
            return False
    return _UUID.fullmatch(value) is not None


def interface_address(faults: Faults, path: str, value: str) -> None:
    """An address with its prefix length, in canonical form."""
    try:
        interface = ipaddress.ip_interface(value) if "/" in value and not re.search(r"/0\d|/.*\.|%", value) else None
    except ValueError:
        interface = None
    if interface is None:
        faults.invalid(path, value, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)")
    elif getattr(interface.ip, "ipv4_mapped", None) is not None:
        faults.invalid(path, value, "must not be an IPv4-mapped IPv6 address")
    elif str(interface) != value:
        faults.invalid(path, value, f'must be in canonical form ("{interface}")')


def shortened(key: str) -> str:
    """A map key as paths show it: long ones lose their middle."""
    if byte_length(key) <= _LONGEST_KEY:
        return key
    data = key.encode("utf-8", "surrogatepass")
    rest = _LONGEST_KEY - 3
    return (data[: (rest + 1) // 2] + b"..." + data[len(data) - rest // 2 :]).decode("utf-8", "replace")


def items(
    faults: Faults, path: str, values: Sequence[Any] | None, limit: int, check: Callable[[str, Any], None]
) -> bool:
    """Check every item, or only complain about their number; False in that case."""
    values = values or ()
    if len(values) > limit:
        faults.too_many(path, len(values), limit)
        return False
    for index, value in enumerate(values):
        check(f"{path}[{index}]", value)
    return True


def unique(faults: Faults, path: str, keys: Iterable[Any]) -> None:
    """Complain about keys that came before."""
    seen = set()
    for index, key in enumerate(keys):
        if key in seen:
            faults.duplicate(f"{path}[{index}]", key)
        seen.add(key)
