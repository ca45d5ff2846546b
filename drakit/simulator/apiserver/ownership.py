"""Who set which field: metadata.managedFields, kept by the shapes of the kinds.

Paths are tuples of the path elements of FieldsV1: `f:NAME`, `k:{"key":"value"}` for an item of a keyed list, `v:VALUE`
for an item of a set. A path in a set means ownership of that leaf, or of the presence of that container.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from drakit.simulator.apiserver.shapes import Shape

__all__ = [
    "Owner",
    "Path",
    "Writer",
    "after_update",
    "differences",
    "fields_of",
    "item_element",
    "read_owners",
    "show",
    "write_owners",
]

Path = tuple[str, ...]

_UNOWNED: frozenset[Path] = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "creationTimestamp",
                "deletionGracePeriodSeconds",
                "deletionTimestamp",
                "generation",
                "managedFields",
                "name",
                "namespace",
                "resourceVersion",
                "selfLink",
                "uid",
            )
        ),
    }
)
"""Fields of the system, owned by nobody."""

_ALWAYS_THERE: frozenset[Path] = frozenset(
    {
        ("f:spec",),
        ("f:status",),
        ("f:spec", "f:pool"),
        ("f:spec", "f:devices"),
        ("f:spec", "f:metadata"),
        ("f:spec", "f:spec"),
        ("f:spec", "f:spec", "f:devices"),
    }
)
"""Objects that even an empty object carries: their presence is nobody's doing."""

_CONTAINER = object()


class Writer(msgspec.Struct, frozen=True):
    """Who writes now."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What tells entries apart; an applier keeps its entry when it changes the API version."""
        version = self.api_version if self.operation == "Update" else ""
        return self.manager, self.operation, version, self.subresource


class Owner(msgspec.Struct):
    """One entry of managedFields."""

    writer: Writer
    fields: set[Path]


def fields_of(value: Any, shape: Shape | None, path: Path = ()) -> Iterator[Path]:
    """The paths that a configuration owns once it is applied."""
    for place in _configured(value, shape, path):
        if place not in _UNOWNED:
            yield place


def _configured(value: Any, shape: Shape | None, path: Path) -> Iterator[Path]:
    if isinstance(value, dict) and value and not (shape is not None and shape.atomic):
        for name, child in value.items():
            yield from _configured(child, shape.field(name) if shape is not None else None, (*path, f"f:{name}"))
    elif isinstance(value, list) and value and shape is not None and not shape.atomic and (shape.keys or shape.is_set):
        for item in value:
            place = (*path, item_element(item, shape))
            yield place
            if shape.keys and isinstance(item, dict):
                yield from _configured(item, shape.item, place)
    elif path:
        yield path


def item_element(item: Any, shape: Shape) -> str:
    """The path element of an item in a keyed list or a set."""
    if shape.is_set:
        return "v:" + msgspec.json.encode(item).decode()
    keys = {key: item[key] for key in sorted(shape.keys) if isinstance(item, dict) and key in item}
    return "k:" + msgspec.json.encode(keys).decode()


def _leaves(value: Any, shape: Shape | None, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and not (shape is not None and shape.atomic):
        if path not in _ALWAYS_THERE and path not in _UNOWNED:
            found[path] = _CONTAINER
        for name, child in value.items():
            _leaves(child, shape.field(name) if shape is not None else None, (*path, f"f:{name}"), found)
    elif isinstance(value, list) and shape is not None and not shape.atomic and (shape.keys or shape.is_set):
        found[path] = _CONTAINER
        for item in value:
            place = (*path, item_element(item, shape))
            if shape.keys:
                _leaves(item, shape.item, place, found)
            else:
                found[place] = item
    elif path not in _UNOWNED:
        found[path] = value


def differences(old: dict[str, Any], new: dict[str, Any], shape: Shape | None) -> tuple[set[Path], set[Path]]:
    """(changed or added, removed) paths from `old` to `new`."""
    before: dict[Path, Any] = {}
    after: dict[Path, Any] = {}
    for name in {**old, **new}:
        was, now = old.get(name), new.get(name)
        if was is now or was == now:
            continue
        field = shape.field(name) if shape is not None else None
        if was is not None:
            _leaves(was, field, (f"f:{name}",), before)
        if now is not None:
            _leaves(now, field, (f"f:{name}",), after)
    changed = {path for path, value in after.items() if path not in before or _changed(before[path], value)}
    return changed, before.keys() - after.keys()


def _changed(old: Any, new: Any) -> bool:
    if old is _CONTAINER or new is _CONTAINER:
        return old is not new
    return bool(old != new)


def after_update(
    shape: Shape | None,
    old: dict[str, Any] | None,
    new: dict[str, Any],
    writer: Writer,
    sent: list[dict[str, Any]] | None,
) -> list[dict[str, Any]]:
    """ManagedFields after `writer` turned `old` into `new`; `sent` are the managedFields in its body.

    What it changed is its own now and nobody else's; what it removed is nobody's.
    """
    base = sent or ((old or {}).get("metadata") or {}).get("managedFields") or []
    if old is not None and not sent:
        new = {**new, "metadata": {**new["metadata"], "managedFields": base}}
    changed, removed = differences(old or {}, new, shape)
    if not changed and not removed:
        return base
    owners = read_owners(base)
    for owner in owners:
        if owner.writer.identity != writer.identity:
            owner.fields -= changed
        owner.fields -= removed
    mine = next((owner for owner in owners if owner.writer.identity == writer.identity), None)
    if mine is None:
        mine = Owner(writer, set())
        owners.append(mine)
    if changed:
        mine.fields |= changed
        mine.writer = writer
    return write_owners(owners)


def read_owners(entries: Iterable[dict[str, Any]]) -> list[Owner]:
    """ManagedFields as values; entries without fields are dropped."""
    owners = []
    for entry in entries:
        paths: set[Path] = set()
        _read(entry.get("fieldsV1") or {}, (), paths)
        writer = Writer(
            entry.get("manager", ""),
            entry.get("operation", "Update"),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
            entry.get("time", ""),
        )
        owners.append(Owner(writer, paths))
    return owners


def _read(node: dict[str, Any], path: Path, paths: set[Path]) -> None:
    if path and (not node or "." in node):
        paths.add(path)
    for element, child in node.items():
        if element != ".":
            _read(child, (*path, element), paths)


def write_owners(owners: Iterable[Owner]) -> list[dict[str, Any]]:
    """ManagedFields as the API shows them: appliers first, then by time and name."""
    kept = [owner for owner in owners if owner.fields]
    kept.sort(key=lambda owner: (owner.writer.operation, owner.writer.time, owner.writer.manager))
    return [_entry(owner) for owner in kept]


def _entry(owner: Owner) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path in sorted(owner.fields):
        node = root
        for element in path[:-1]:
            node = node.setdefault(element, {})
        node.setdefault(path[-1], {})
    _mark(root, (), owner.fields)
    writer = owner.writer
    entry: dict[str, Any] = {"manager": writer.manager, "operation": writer.operation}
    entry.update(apiVersion=writer.api_version, time=writer.time, fieldsType="FieldsV1", fieldsV1=root)
    if writer.subresource:
        entry["subresource"] = writer.subresource
    return entry


def _mark(node: dict[str, Any], path: Path, owned: set[Path]) -> None:
    """Put `.` where a container with owned fields below is owned itself."""
    for element, child in list(node.items()):
        place = (*path, element)
        if child:
            _mark(child, place, owned)
            if place in owned:
                node[element] = {".": {}, **child}


def show(path: Path) -> str:
    """A path as messages show it: `.spec.pool.generation`, `.status.devices[device="a"].conditions`."""
    parts = []
    for element in path:
        kind, _, text = element.partition(":")
        if kind == "f":
            parts.append(f".{text}")
        elif kind == "k":
            keys = msgspec.json.decode(text)
            inside = ",".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in keys.items())
            parts.append(f"[{inside}]")
        else:
            parts.append(f"[={text}]")
    return "".join(parts)
