"""Attributes made fit for the API before they are sent: one bad value must not cost the whole slice (pains 13-15).

What can be wrong: a version that is no semver, a string of more than 64 bytes, a name that is no C identifier or too
long, the same name with and without the driver's domain. For each of them the driver chooses an action; everything that
is changed is reported.
"""

import functools
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeVar

import msgspec

from drakit.api import limits
from drakit.api.names import QualifiedName, c_identifier, driver_name
from drakit.api.resource import Device, DeviceAttribute
from drakit.api.semver import Semver, SemverError

V = TypeVar("V")

__all__ = ["Action", "Adjustment", "Normaliser", "Policy", "semver_like", "truncate"]


class Action(Enum):
    """What to do with a value that the API would refuse."""

    NORMALISE = "normalise"
    """Make the nearest legal value of the same kind; drop what has none."""
    STRING = "string"
    """Publish a version as a string attribute of the same name."""
    TRUNCATE = "truncate"
    """Cut at a UTF-8 boundary."""
    DROP = "drop"
    """Leave the attribute out."""
    FAIL = "fail"
    """Leave the device out and report it."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The actions by fault; `attributes` overrides them for single attributes, by name as published by the driver.

    Attributes:
        version: not semver: NORMALISE ("580.159.04" -> "580.159.4", "v1" -> "1.0.0"), STRING, DROP or FAIL. What cannot
            be normalised becomes a string.
        string: over 64 bytes: TRUNCATE, DROP or FAIL.
        name: no C identifier of at most 32 bytes: NORMALISE ("vendor-id" -> "vendor_id"), DROP or FAIL.
        duplicate: a name that appears with and without the driver's domain, or twice after normalising: DROP (the
            later one) or FAIL.
        attributes: by attribute name.
    """

    version: Action = Action.NORMALISE
    string: Action = Action.TRUNCATE
    name: Action = Action.NORMALISE
    duplicate: Action = Action.DROP
    attributes: Mapping[str, Action] = {}


class Adjustment(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was changed or left out.

    Attributes:
        device: its name.
        attribute: its name as the driver gave it.
        fault: what was wrong.
        action: what was done about it.
        result: the new value or name; "" when it was left out.
    """

    device: str
    attribute: str
    fault: str
    action: Action
    result: str = ""

    def __str__(self) -> str:
        done = f"now {self.result!r}" if self.result else "left out"
        what = "device" if self.action is Action.FAIL else f"attribute {self.attribute}"
        return f"device {self.device}: {self.attribute}: {self.fault}: {what} {done}"


class _RefusedError(Exception):
    """The policy says FAIL."""


class Normaliser:
    """Applies a policy to devices; devices that did not change since the last time cost one comparison.

    Args:
        driver: whose domain unqualified names belong to.
        policy: the actions.
    """

    def __init__(self, driver: str, policy: Policy | None = None) -> None:
        self._driver, self._policy = driver, policy or Policy()
        self._known: dict[str, dict[str, tuple[Device, Device | None, tuple[Adjustment, ...]]]] = {}

    def pool(
        self, pool: str, devices: tuple[Device, ...], *, more: bool = False
    ) -> tuple[tuple[Device, ...], tuple[Adjustment, ...]]:
        """The devices fit to be published, in the same order, and what was changed; `more` when this is not all."""
        before, after = self._known.get(pool, {}), {}
        kept: list[Device] = []
        warnings: list[Adjustment] = []
        for device in devices:
            known = before.get(device.name)
            # The same objects go out again for the same input, so that everything after this compares by identity.
            if known is None or not (known[0] is device or known[0] == device):
                known = (device, *self.device(device))
            after[device.name] = known
            if known[1] is not None:
                kept.append(known[1])
            if known[2]:
                warnings += known[2]
        self._known[pool] = {**before, **after} if more else after
        return tuple(kept), tuple(warnings)

    def forget(self, pools: set[str]) -> None:
        """Drop what is known of all pools but these."""
        self._known = {pool: known for pool, known in self._known.items() if pool in pools}

    def device(self, device: Device) -> tuple[Device | None, tuple[Adjustment, ...]]:
        """One device fit to be published (None: left out), and what was changed."""
        warnings: list[Adjustment] = []
        try:
            attributes = self._attributes(device, warnings)
            capacity = self._names(device, device.capacity, warnings)
        except _RefusedError:
            return None, tuple(warnings)
        if attributes == device.attributes and capacity == device.capacity:
            return device, tuple(warnings)
        return msgspec.structs.replace(device, attributes=attributes, capacity=capacity), tuple(warnings)

    def _attributes(self, device: Device, warnings: list[Adjustment]) -> dict[str, DeviceAttribute]:
        fit: dict[str, DeviceAttribute] = {}
        for name, attribute in device.attributes.items():
            value = self._value(device, name, attribute, warnings)
            if value is not None:
                fit[name] = value
        return self._names(device, fit, warnings)

    def _value(
        self, device: Device, name: str, attribute: DeviceAttribute, warnings: list[Adjustment]
    ) -> DeviceAttribute | None:
        if attribute.version is not None and not _is_semver(attribute.version):
            return self._version(device, name, attribute.version, warnings)
        if attribute.string is not None and _bytes(attribute.string) > limits.ATTRIBUTE_VALUE_LENGTH:
            return self._string(device, name, attribute.string, warnings)
        if attribute.versions and not all(map(_is_semver, attribute.versions)):
            return self._list(device, name, attribute.versions, warnings, "versions")
        if any(_bytes(text) > limits.ATTRIBUTE_VALUE_LENGTH for text in attribute.strings):
            return self._list(device, name, attribute.strings, warnings, "strings")
        return attribute

    def _version(self, device: Device, name: str, text: str, warnings: list[Adjustment]) -> DeviceAttribute | None:
        action = self._policy.attributes.get(name, self._policy.version)
        fault = f"version {_shown(text)} is not a semantic version of at most 64 bytes"
        normal = semver_like(text) if action is Action.NORMALISE else None
        if normal is not None:
            warnings.append(Adjustment(device=device.name, attribute=name, fault=fault, action=action, result=normal))
            return DeviceAttribute(version=normal)
        if action in {Action.NORMALISE, Action.STRING, Action.TRUNCATE}:
            string = truncate(text, limits.ATTRIBUTE_VALUE_LENGTH)
            warnings.append(
                Adjustment(device=device.name, attribute=name, fault=fault, action=Action.STRING, result=string)
            )
            return DeviceAttribute(string=string)
        return self._left_out(device, name, fault, action, warnings)

    def _string(self, device: Device, name: str, text: str, warnings: list[Adjustment]) -> DeviceAttribute | None:
        action = self._policy.attributes.get(name, self._policy.string)
        fault = f"string of {_bytes(text)} bytes, at most {limits.ATTRIBUTE_VALUE_LENGTH} are allowed"
        if action in {Action.DROP, Action.FAIL}:
            return self._left_out(device, name, fault, action, warnings)
        cut = truncate(text, limits.ATTRIBUTE_VALUE_LENGTH)
        warnings.append(Adjustment(device=device.name, attribute=name, fault=fault, action=Action.TRUNCATE, result=cut))
        return DeviceAttribute(string=cut)

    def _list(
        self, device: Device, name: str, texts: tuple[str, ...], warnings: list[Adjustment], field: str
    ) -> DeviceAttribute | None:
        """Each item as if it were alone; a list of versions has no room for strings, so those items are dropped."""
        one: Callable[..., DeviceAttribute | None] = self._version if field == "versions" else self._string
        legal = _is_semver if field == "versions" else lambda text: _bytes(text) <= limits.ATTRIBUTE_VALUE_LENGTH
        kept: list[str] = []
        for text in texts:
            if legal(text):
                kept.append(text)
                continue
            made = one(device, name, text, warnings)
            if made is not None and (value := made.version if field == "versions" else made.string) is not None:
                kept.append(value)
        if not kept:
            return None
        return DeviceAttribute(versions=tuple(kept)) if field == "versions" else DeviceAttribute(strings=tuple(kept))

    def _left_out(
        self, device: Device, name: str, fault: str, action: Action, warnings: list[Adjustment]
    ) -> DeviceAttribute | None:
        warnings.append(Adjustment(device=device.name, attribute=name, fault=fault, action=action))
        if action is Action.FAIL:
            raise _RefusedError
        return None

    def _names(self, device: Device, values: Mapping[str, V], warnings: list[Adjustment]) -> dict[str, V]:
        fit: dict[str, V] = {}
        seen: dict[QualifiedName, str] = {}
        # Names that are fine come first, so that a mended one never displaces them.
        for name in sorted(values, key=lambda each: _name_fault(each) is not None):
            made = self._name(device, name, warnings)
            if made is None:
                continue
            qualified = QualifiedName.parse(made, self._driver)
            if qualified in seen:
                fault = f"is the same as {seen[qualified]}"
                action = self._policy.attributes.get(name, self._policy.duplicate)
                self._left_out(device, name, fault, Action.FAIL if action is Action.FAIL else Action.DROP, warnings)
                continue
            seen[qualified] = name
            fit[made] = values[name]
        return fit

    def _name(self, device: Device, name: str, warnings: list[Adjustment]) -> str | None:
        fault = _name_fault(name)
        if fault is None:
            return self._unqualified(name)
        action = self._policy.attributes.get(name, self._policy.name)
        made = _legal_name(name) if action is Action.NORMALISE else None
        if made is None:
            action = Action.FAIL if action is Action.FAIL else Action.DROP
            self._left_out(device, name, fault, action, warnings)
            return None
        warnings.append(Adjustment(device=device.name, attribute=name, fault=fault, action=action, result=made))
        return self._unqualified(made)

    def _unqualified(self, name: str) -> str:
        """Own names without the driver's domain: newer clients refuse qualified ones (slices 1.8, 6.11)."""
        domain, slash, identifier = name.partition("/")
        return identifier if slash and domain == self._driver else name


_VERSION = re.compile(r"[vV]?([0-9]+(?:\.[0-9]+)*)([-+].*)?", re.ASCII | re.DOTALL)


def semver_like(text: str) -> str | None:
    """The nearest semantic version, or None: "v1" is 1.0.0, "580.159.04" 580.159.4, "6.10.5.1" 6.10.5+1."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    numbers = [str(int(number)) for number in match[1].split(".")]
    core, more = [*numbers, "0", "0"][:3], numbers[3:]
    tail = match[2] or ""
    # A fourth number has no place in a semantic version but behind the plus, where it does not count for the order.
    for made in (_joined(core, tail, more), _joined(core, "", more), ".".join(core)):
        if _is_semver(made):
            return made
    return None


def _joined(core: list[str], tail: str, more: list[str]) -> str:
    build = ".".join(more)
    if not build:
        return ".".join(core) + tail
    release, plus, old = tail.partition("+")
    return f"{'.'.join(core)}{release}+{build}{'.' if plus else ''}{old}"


def truncate(text: str, most: int) -> str:
    """The longest beginning of `text` that has at most `most` bytes of UTF-8."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _is_semver(text: str) -> bool:
    if _bytes(text) > limits.ATTRIBUTE_VALUE_LENGTH:
        return False
    try:
        Semver.parse(text)
    except SemverError:
        return False
    return True


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


@functools.cache
def _name_fault(name: str) -> str | None:
    domain, slash, identifier = name.partition("/")
    if slash and driver_name(domain):
        return "the domain is no DNS subdomain of at most 63 bytes"
    identifier = identifier if slash else name
    if len(identifier) > limits.IDENTIFIER_LENGTH:
        return f"the name has {len(identifier)} characters, at most {limits.IDENTIFIER_LENGTH} are allowed"
    return "the name is no C identifier" if c_identifier(identifier) else None


def _legal_name(name: str) -> str | None:
    domain, slash, identifier = name.partition("/")
    if slash and driver_name(domain):
        return None
    made = re.sub(r"[^A-Za-z0-9_]", "_", identifier if slash else name)[: limits.IDENTIFIER_LENGTH]
    if not made.strip("_"):
        return None
    if made[0].isdigit():
        made = f"_{made}"[: limits.IDENTIFIER_LENGTH]
    return f"{domain}/{made}" if slash else made
