"""How the values of a kind merge: which lists are keyed, which are atomic. Patches, apply and OpenAPI stand on it.

For resource.k8s.io the shapes come from the field tables of drakit.api; for the other kinds they are written here, as
far as DRA touches them, and stay open: fields that they do not name are accepted, maps merge, lists are replaced.
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["ANY", "OPEN", "Shape", "atomic", "keyed", "listed", "mapping", "struct", "unique"]

Type = Literal["object", "map", "array", "string", "integer", "number", "boolean", "any"]


class Shape(msgspec.Struct, frozen=True, eq=False):
    """The shape of one value.

    `keys` makes a list a keyed one (server-side apply merges item by item), `is_set` one of unique values, `atomic` a
    value that has a single owner. `patch_merge` and `patch_key` say what strategic merge patch does. `is_open` objects
    may carry fields that `fields` does not name. `reference` is the name in OpenAPI, `format` its format.
    """

    type: Type
    fields: dict[str, Shape] = {}
    item: Shape | None = None
    keys: tuple[str, ...] = ()
    is_set: bool = False
    atomic: bool = False
    patch_merge: bool = False
    patch_key: str | None = None
    patch_replace: bool = False
    is_open: bool = False
    required: tuple[str, ...] = ()
    reference: str = ""
    format: str = ""

    def field(self, name: str) -> Shape | None:
        """The shape of a field or of a map's values; None when nothing is known of it."""
        if self.type == "map":
            return self.item
        return self.fields.get(name)


ANY = Shape("any")
OPEN = Shape("object", is_open=True)
STRING = Shape("string")
INTEGER = Shape("integer", format="int64")
INT32 = Shape("integer", format="int32")
BOOLEAN = Shape("boolean")
TIME = Shape("string", format="date-time")
QUANTITY = Shape("string", reference="io.k8s.apimachinery.pkg.api.resource.Quantity")


def struct(reference: str = "", *, is_open: bool = False, required: tuple[str, ...] = (), **fields: Shape) -> Shape:
    """An object with named fields; a trailing underscore keeps Python's keywords apart."""
    named = {name.rstrip("_"): shape for name, shape in fields.items()}
    return Shape("object", fields=named, is_open=is_open, required=required, reference=reference)


def mapping(item: Shape = STRING, *, is_atomic: bool = False) -> Shape:
    """A map of texts to `item`."""
    return Shape("map", item=item, atomic=is_atomic)


def listed(item: Shape) -> Shape:
    """A list that is replaced as a whole, by apply and by strategic merge patch."""
    return Shape("array", item=item, atomic=True)


def unique(item: Shape = STRING, *, patch_merge: bool = True) -> Shape:
    """A list of values that apply and strategic merge patch join."""
    return Shape("array", item=item, is_set=True, patch_merge=patch_merge)


def keyed(item: Shape, *keys: str, patch_key: str | None = "") -> Shape:
    """A list of objects told apart by `keys`; `patch_key` defaults to the first key, None means replaced by patches."""
    key = keys[0] if patch_key == "" else patch_key
    return Shape("array", item=item, keys=keys, patch_merge=key is not None, patch_key=key)


def atomic(shape: Shape) -> Shape:
    """`shape` with a single owner."""
    return msgspec.structs.replace(shape, atomic=True)
