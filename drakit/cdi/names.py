"""CDI names: what is valid, and a valid name for every driver and device (P31, P33).

The mappings are injective and can be undone, so two drivers or devices never share a CDI id by accident.
"""

import re

__all__ = [
    "device_name",
    "device_parts",
    "driver_of_vendor",
    "is_class",
    "is_device_name",
    "is_vendor",
    "parse_qualified_name",
    "qualified_name",
    "vendor_of_driver",
]

_VENDOR = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?", re.ASCII)
_ESCAPED = re.compile(r"[^A-Za-z0-9.-]")
_ESCAPE = re.compile(r":([0-9a-f]+):")
_DIGIT_DRIVER = "n_"  # no driver name has an underscore
_EDGE = "x::"  # stands where a name would begin with a character that must not: no escape follows that x
_EDGE_AT_END = "::x"


def is_vendor(text: str) -> bool:
    """Whether `text` may stand before the slash: a letter first, a letter or digit last, `_.-` between."""
    return _VENDOR.fullmatch(text) is not None


def is_class(text: str) -> bool:
    """Whether `text` may stand between slash and equals sign: the rule of vendors."""
    return is_vendor(text)


def is_device_name(text: str) -> bool:
    """Whether `text` may stand after the equals sign: letters or digits at both ends, `_.:-` between."""
    return _DEVICE.fullmatch(text) is not None


def qualified_name(vendor: str, cls: str, name: str) -> str:
    """The CDI id `vendor/cls=name`.

    Raises:
        ValueError: a part is not valid; says which and why.
    """
    for what, part in (("vendor", vendor), ("class", cls)):
        if not is_vendor(part):
            rule = "must begin with a letter, end with a letter or digit, and have only these and _.- between"
            raise ValueError(f"CDI {what} {part!r}: {rule}")
    if not is_device_name(name):
        raise ValueError(
            f"CDI device {name!r}: must begin and end with a letter or digit, with only these and _.:- between"
        )
    return f"{vendor}/{cls}={name}"


def parse_qualified_name(text: str) -> tuple[str, str, str]:
    """Vendor, class and name of a CDI id.

    Raises:
        ValueError: `text` is not one.
    """
    kind, equals, name = text.partition("=")
    vendor, slash, cls = kind.partition("/")
    if not (equals and slash):
        raise ValueError(f"CDI id {text!r}: must be vendor/class=name")
    qualified_name(vendor, cls, name)
    return vendor, cls, name


def vendor_of_driver(driver: str) -> str:
    """The CDI vendor of a DRA driver: its own name, marked when that begins with a digit, which vendors may not.

    Raises:
        ValueError: `driver` is not a DNS subdomain.
    """
    vendor = driver if driver[:1].isalpha() else _DIGIT_DRIVER + driver
    if "_" in driver or not driver[:1].isalnum() or not is_vendor(vendor):
        raise ValueError(f"driver name {driver!r}: must be a DNS subdomain such as gpu.example.com")
    return vendor


def driver_of_vendor(vendor: str) -> str:
    """The driver whose `vendor_of_driver` is `vendor`."""
    return vendor.removeprefix(_DIGIT_DRIVER)


def device_name(*parts: str) -> str:
    """A valid device name that carries `parts`, joined by `_` and otherwise unchanged where that is valid.

    Pools have slashes, and identities may begin or end with a dash: such characters are written `:<hexadecimal>:`.
    """
    name = "_".join(_ESCAPED.sub(lambda found: f":{ord(found[0]):x}:", part) for part in parts)
    if not (name[:1].isascii() and name[:1].isalnum()):
        name = _EDGE + name
    if not name[-1:].isalnum():
        name += _EDGE_AT_END
    return name


def device_parts(name: str) -> tuple[str, ...]:
    """The parts from which `device_name` made `name`."""
    inner = name.removesuffix(_EDGE_AT_END).removeprefix(_EDGE)
    return tuple(_ESCAPE.sub(lambda found: chr(int(found[1], 16)), part) for part in inner.split("_"))
