"""Names of slices: the index first, so that the order of names is the driver's order (spec/resourceslice.md 1.4).

Unlike upstream's, the rest of our names is no random text but a digest of driver, node and pool: creating a slice twice
fails instead of publishing it twice. The form is the same, so slices of upstream's controller are taken over in place.
"""

import hashlib
import re

__all__ = ["decode_index", "encode_index", "generate_name", "slice_name", "width"]

_LEAST_WIDTH = 5
_LONGEST = 253
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_INDEX = re.compile(r"([0-9a-f]+)-", re.ASCII)


def width(count: int) -> int:
    """Hexadecimal digits of an index in a pool of `count` slices."""
    return max(_LEAST_WIDTH, len(f"{max(count - 1, 0):x}"))


def encode_index(index: int, digits: int) -> str:
    """`index` as it stands in front of a name."""
    return f"{index:0{digits}x}"


def decode_index(name: str, digits: int) -> int | None:
    """The index in front of a name, or None when there is none of exactly `digits` digits."""
    match = _INDEX.match(name)
    return int(match[1], 16) if match and len(match[1]) == digits else None


def generate_name(index: int, digits: int, driver: str, owner: str) -> str:
    """The prefix that upstream uses too; for when our own name is taken by a stranger."""
    # An upper-case driver name is legal in spec.driver, but not in metadata.
    return "-".join(part for part in (encode_index(index, digits), driver.lower(), owner) if part) + "-"


def slice_name(index: int, digits: int, driver: str, owner: str, pool: str) -> str:
    """The name of the slice with `index`."""
    number = int.from_bytes(hashlib.sha256(f"{driver}\n{owner}\n{pool}".encode()).digest()[:8], "big")
    suffix = ""
    for _ in range(8):
        number, rest = divmod(number, len(_ALPHABET))
        suffix += _ALPHABET[rest]
    base = "-".join(part for part in (encode_index(index, digits), driver.lower(), owner) if part)
    return f"{base[: _LONGEST - len(suffix) - 1].rstrip('-.')}-{suffix}"
