"""How large the parts of `device` can be: the limits of the API, by path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from drakit.cel.cost.ranges import Range

__all__ = ["Path", "Size", "device_size"]


class Path:
    """A field path that appends like a Go slice: paths with room to spare share it.

    Upstream's paths overwrite each other that way (the key of a two-variable comprehension gets the value's size),
    and estimates depend on it.
    """

    __slots__ = ("_capacity", "_parts", "length")

    def __init__(self, parts: list[str], length: int, capacity: int) -> None:
        self._parts = parts
        self.length = length
        self._capacity = capacity

    @classmethod
    def of(cls, name: str) -> Path:
        """The path of a variable."""
        return cls([name], 1, 1)

    def append(self, part: str) -> Path:
        """The path with one more part."""
        if self.length < self._capacity:
            self._parts[self.length] = part
            return Path(self._parts, self.length + 1, self._capacity)
        capacity = max(1, 2 * self._capacity)
        grown = self._parts[: self.length] + [part] + [""] * (capacity - self.length - 1)
        return Path(grown, self.length + 1, capacity)

    def parts(self) -> list[str]:
        """What the path says now."""
        return self._parts[: self.length]


EMPTY: Final = Path([], 0, 0)


class Size:
    """A node of the size tree: its own size, and those of keys, elements and fields."""

    __slots__ = ("element", "fields", "key", "most")

    def __init__(
        self, most: int, key: Size | None = None, element: Size | None = None, fields: dict[str, Size] | None = None
    ) -> None:
        self.most = most
        self.key = key
        self.element = element
        self.fields = fields or {}


_DOMAIN: Final = 63
_IDENTIFIER: Final = 32
_DRIVER: Final = 63
_ENTRIES: Final = 32
_VALUE: Final = Size(64)


def _by_domain(element: Size) -> Size:
    inner = Size(_ENTRIES, key=Size(_IDENTIFIER), element=element)
    return Size(_ENTRIES, key=Size(_DOMAIN), element=inner)


_DEVICE: Final = Size(
    0,
    fields={
        "driver": Size(_DRIVER),
        "attributes": _by_domain(_VALUE),
        "capacity": _by_domain(Size(0)),
        "allowMultipleAllocations": Size(1),
    },
)


def device_size(path: list[str]) -> Range | None:
    """The size at a path that starts with `device`, or None when nothing is known."""
    if not path or path[0] != "device":
        return None
    node = _DEVICE
    for name in path[1:]:
        if name in ("@items", "@values"):
            below = node.element
        elif name == "@keys":
            below = node.key
        else:
            below = node.fields.get(name)
            if below is None and node.element is _VALUE:
                below = _VALUE
        if below is None:
            return None
        node = below
    return 0, node.most
