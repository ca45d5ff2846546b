"""IP addresses and CIDR ranges, parsed and complained about as Go's netip package does."""

from __future__ import annotations

import re
from typing import Any, Final

from drakit.cel.errors import EvaluationError
from drakit.cel.functions.formatting import quoted
from drakit.cel.values import EQUALITY, GO_NAMES, TYPE_NAMES, Opaque, no_overload

__all__ = ["OVERLOADS", "Address", "Network", "parse_address"]

_BITS: Final = {4: 32, 6: 128}
_DIGITS: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_LENGTH: Final = re.compile(r"[0-9]|[1-9][0-9]{1,8}", re.ASCII)


class Address(Opaque):
    """An IP address: family (4 or 6) and number."""

    __slots__ = ("family", "number")

    def __init__(self, family: int, number: int) -> None:
        self.family = family
        self.number = number

    def __str__(self) -> str:
        if self.family == 4:
            return ".".join(str(self.number >> shift & 255) for shift in (24, 16, 8, 0))
        groups = [self.number >> shift & 0xFFFF for shift in range(112, -1, -16)]
        start, length = _longest_zeros(groups)
        if length < 2:
            return ":".join(f"{each:x}" for each in groups)
        before = ":".join(f"{each:x}" for each in groups[:start])
        return before + "::" + ":".join(f"{each:x}" for each in groups[start + length :])

    @property
    def size(self) -> int:
        """Bytes, which costs count."""
        return _BITS[self.family] // 8

    def prefix(self, bits: int) -> int:
        """The first bits as a number."""
        return self.number >> (_BITS[self.family] - bits)


class Network(Opaque):
    """An address with a prefix length; host bits are kept."""

    __slots__ = ("address", "bits")

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    @property
    def size(self) -> int:
        """Bytes of the prefix, which costs count."""
        return -(-self.bits // 8)

    def contains(self, address: Address) -> bool:
        """Whether the address has this prefix."""
        return self.address.family == address.family and self.address.prefix(self.bits) == address.prefix(self.bits)


def _longest_zeros(groups: list[int]) -> tuple[int, int]:
    best = start = length = 0
    best_start = 0
    for position, group in enumerate([*groups, 1]):
        if group == 0:
            start = position if length == 0 else start
            length += 1
            continue
        if length > best:
            best_start, best = start, length
        length = 0
    return best_start, best


class _ParseError(ValueError):
    """In the words of netip."""


def _refuse(text: str, message: str, at: str = "") -> _ParseError:
    return _ParseError(f"ParseAddr({quoted(text)}): {message}" + (f" (at {quoted(at)})" if at else ""))


def _parse(text: str) -> tuple[Address, str]:
    """An address and its zone."""
    for char in text:
        if char == ".":
            return Address(4, _parse_v4(text, text)), ""
        if char == ":":
            return _parse_v6(text)
        if char == "%":
            raise _refuse(text, "missing IPv6 address")
    raise _refuse(text, "unable to parse IP")


def parse_address(text: str) -> int:
    """The family of an address, zone allowed.

    Raises:
        ValueError: It is no address, in netip's words.
    """
    return _parse(text)[0].family


def _parse_v4(text: str, part: str) -> int:
    number = value = fields = digits = 0
    for position, char in enumerate(part):
        if char in _DIGITS:
            if digits == 1 and value == 0:
                raise _refuse(text, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                raise _refuse(text, "IPv4 field has value >255")
        elif char == ".":
            if position in (0, len(part) - 1) or part[position - 1] == ".":
                raise _refuse(text, "IPv4 field must have at least one digit", part[position:])
            if fields == 3:
                raise _refuse(text, "IPv4 address too long")
            number, fields, value, digits = number << 8 | value, fields + 1, 0, 0
        else:
            raise _refuse(text, "unexpected character", part[position:])
    if fields < 3:
        raise _refuse(text, "IPv4 address too short")
    return number << 8 | value


def _parse_v6(text: str) -> tuple[Address, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _refuse(text, "zone must be a non-empty string")
    groups: list[int] = []
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return Address(6, 0), zone
    while len(groups) < 8:
        length = _group_length(text, rest)
        if rest[length : length + 1] == ".":
            groups += _embedded(text, rest, groups, ellipsis)
            rest = ""
            break
        groups.append(int(rest[:length], 16))
        rest = rest[length:]
        if not rest:
            break
        if rest[0] != ":":
            raise _refuse(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _refuse(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                raise _refuse(text, "multiple :: in address", rest)
            ellipsis, rest = len(groups), rest[1:]
            if not rest:
                break
    return Address(6, _join(text, rest, groups, ellipsis)), zone


def _group_length(text: str, rest: str) -> int:
    length = 0
    while length < len(rest) and rest[length] in _HEX:
        if length > 3:
            raise _refuse(text, "each group must have 4 or fewer digits", rest)
        length += 1
    if length == 0:
        raise _refuse(text, "each colon-separated field must have at least one digit", rest)
    return length


def _embedded(text: str, rest: str, groups: list[int], ellipsis: int) -> list[int]:
    if ellipsis < 0 and len(groups) != 6:
        raise _refuse(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
    if len(groups) > 6:
        raise _refuse(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    number = _parse_v4(text, rest)
    return [number >> 16, number & 0xFFFF]


def _join(text: str, rest: str, groups: list[int], ellipsis: int) -> int:
    if rest:
        raise _refuse(text, "trailing garbage after address", rest)
    if len(groups) < 8:
        if ellipsis < 0:
            raise _refuse(text, "address string too short")
        groups[ellipsis:ellipsis] = [0] * (8 - len(groups))
    elif ellipsis >= 0:
        raise _refuse(text, "the :: must expand to at least one field of zeros")
    number = 0
    for group in groups:
        number = number << 16 | group
    return number


def _mapped(address: Address) -> bool:
    return address.family == 6 and address.number >> 32 == 0xFFFF


def _ip(text: str) -> Address:
    try:
        address, zone = _parse(text)
    except _ParseError as error:
        raise EvaluationError(f"IP Address {quoted(text)} parse error during conversion from string: {error}") from None
    if zone:
        raise EvaluationError(f"IP address {quoted(text)} with zone value is not allowed")
    if _mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


_CIDR_ERROR: Final = "network address parse error during conversion from string: "


def _prefix(text: str) -> Network:
    head, slash, length = text.rpartition("/")
    if not slash:
        raise _ParseError("no '/'")
    address, zone = _parse(head)
    if zone:
        raise _ParseError("IPv6 zones cannot be present in a prefix")
    if not _LENGTH.fullmatch(length):
        raise _ParseError(f"bad bits after slash: {quoted(length)}")
    if int(length) > _BITS[address.family]:
        raise _ParseError("prefix length out of range")
    return Network(address, int(length))


def _cidr(text: str) -> Network:
    try:
        network = _prefix(text)
    except _ParseError as error:
        raise EvaluationError(f"{_CIDR_ERROR * 2}netip.ParsePrefix({quoted(text)}): {error}") from None
    if _mapped(network.address):
        raise EvaluationError(f"{_CIDR_ERROR}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return network


def _parses(parse: Any) -> Any:
    def call(text: str) -> bool:
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return call


def _contains_text(network: Network, text: str) -> bool:
    try:
        address = _ip(text)
    except EvaluationError:
        raise no_overload() from None
    return network.contains(address)


def _contains_network(network: Network, other: Network) -> bool:
    if network.address.family != other.address.family or network.bits > other.bits:
        return False
    return network.contains(other.address)


def _masked(network: Network) -> Network:
    address = network.address
    shift = _BITS[address.family] - network.bits
    return Network(Address(address.family, address.number >> shift << shift), network.bits)


def _is_loopback(address: Address) -> bool:
    return address.prefix(8) == 127 if address.family == 4 else address.number == 1


def _is_link_local_multicast(address: Address) -> bool:
    if address.family == 4:
        return address.prefix(24) == 0xE00000
    return address.prefix(16) & 0xFF0F == 0xFF02


def _is_link_local_unicast(address: Address) -> bool:
    return address.prefix(16) == 0xA9FE if address.family == 4 else address.prefix(10) == 0x3FA


def _is_global_unicast(address: Address) -> bool:
    if address.number == 0 or (address.family == 4 and address.number == 0xFFFFFFFF):
        return False
    multicast = address.prefix(4) == 14 if address.family == 4 else address.prefix(8) == 255
    return not (_is_loopback(address) or multicast or _is_link_local_unicast(address))


def _equal_address(left: Address, right: Any) -> bool:
    if right.__class__ is not Address:
        raise no_overload()
    return left.family == right.family and left.number == right.number


def _equal_network(left: Network, right: Any) -> bool:
    if right.__class__ is not Network:
        raise no_overload()
    return _equal_address(left.address, right.address) and left.bits == right.bits


TYPE_NAMES.update({Address: "net.IP", Network: "net.CIDR"})
GO_NAMES.update({Address: "cel.IP", Network: "cel.CIDR"})
EQUALITY.update({Address: _equal_address, Network: _equal_network})
OVERLOADS: Final[dict[str, Any]] = {
    "string_to_ip": _ip,
    "ip_family": lambda address: address.family,
    "ip_is_canonical": lambda text: str(_ip(text)) == text,
    "ip_is_unspecified": lambda address: address.number == 0,
    "ip_is_loopback": _is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": _is_link_local_unicast,
    "ip_is_global_unicast": _is_global_unicast,
    "is_ip": _parses(_ip),
    "ip_to_string": str,
    "string_to_cidr": _cidr,
    "cidr_contains_ip_string": _contains_text,
    "cidr_contains_ip_ip": Network.contains,
    "cidr_contains_cidr_string": lambda network, text: _contains_network(network, _cidr(text)),
    "cidr_contains_cidr": _contains_network,
    "cidr_ip": lambda network: network.address,
    "cidr_prefix_length": lambda network: network.bits,
    "cidr_masked": _masked,
    "is_cidr": _parses(_cidr),
    "cidr_to_string": str,
}
