"""Server-side apply: merge a configuration into the live object, by field ownership."""

from collections.abc import Iterable
from typing import Any

from drakit.simulator.apiserver.errors import Refused, internal
from drakit.simulator.apiserver.ownership import (
    Owner,
    Path,
    Writer,
    differences,
    fields_of,
    item_element,
    read_owners,
    show,
    write_owners,
)
from drakit.simulator.apiserver.shapes import Shape

__all__ = ["apply", "check_declared"]


def apply(
    live: dict[str, Any] | None, config: dict[str, Any], shape: Shape, writer: Writer, *, force: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The merged object and its managedFields.

    Fields that the same applier set before and no longer sends are removed, unless another manager owns them too.

    Raises:
        Refused: 409 when others own what would change and `force` is off.
    """
    base = live or {}
    owners = read_owners((base.get("metadata") or {}).get("managedFields") or [])
    mine = next((owner for owner in owners if owner.writer.identity == writer.identity), None)
    others = [owner for owner in owners if owner is not mine]
    fields = set(fields_of(config, shape))
    merged = _merge(base, config, shape)
    gone = (mine.fields if mine is not None else set()) - fields
    for owner in others:
        gone -= owner.fields
    merged = _without(merged, gone, fields.union(*(owner.fields for owner in others)), shape, ())
    changed, removed = differences(base, merged, shape)
    conflicts = [(owner, owner.fields & changed) for owner in others if owner.fields & changed]
    if conflicts and not force:
        raise _conflict(conflicts)
    for owner in others:
        owner.fields -= changed
        owner.fields -= removed
    if mine is not None and mine.fields == fields and not changed and not removed:
        return merged, (base.get("metadata") or {}).get("managedFields") or []
    return merged, write_owners([*others, Owner(writer, fields)])


def _conflict(conflicts: list[tuple[Owner, set[Path]]]) -> Refused:
    causes = []
    texts = []
    for owner, paths in conflicts:
        who = f'"{owner.writer.manager}"'
        if owner.writer.subresource:
            who += f' with subresource "{owner.writer.subresource}"'
        if owner.writer.operation == "Update":
            who += f" using {owner.writer.api_version} at {owner.writer.time}"
        shown = sorted(show(path) for path in paths)
        causes += [
            {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path} for path in shown
        ]
        if len(shown) == 1:
            texts.append(f"conflict with {who}: {shown[0]}")
        else:
            texts.append(f"conflicts with {who}:\n" + "\n".join(f"- {path}" for path in shown))
    count = len(causes)
    message = f"Apply failed with {count} conflict{'' if count == 1 else 's'}: " + "\n".join(texts)
    return Refused(409, "Conflict", message, details={"causes": causes})


def _merge(live: Any, config: Any, shape: Shape | None) -> Any:
    if shape is not None and shape.atomic:
        return config
    if isinstance(config, dict) and isinstance(live, dict):
        merged = dict(live)
        for name, value in config.items():
            field = shape.field(name) if shape is not None else None
            merged[name] = _merge(live[name], value, field) if name in live else value
        return merged
    if isinstance(config, list) and isinstance(live, list) and shape is not None and (shape.keys or shape.is_set):
        return _merge_items(live, config, shape)
    return config


def _merge_items(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    sent = {item_element(item, shape): item for item in config}
    merged = []
    for item in live:
        element = item_element(item, shape)
        merged.append(_merge(item, sent.pop(element), shape.item) if element in sent else item)
    return [*merged, *sent.values()]


def _without(value: Any, gone: set[Path], kept: Iterable[Path], shape: Shape | None, path: Path) -> Any:
    """`value` less the `gone` paths; a container goes with what is below it unless some `kept` path needs it."""
    if not gone:
        return value
    needed = {place[:length] for place in kept for length in range(1, len(place) + 1)}

    def prune(value: Any, shape: Shape | None, path: Path) -> Any:
        if isinstance(value, dict) and not (shape is not None and shape.atomic):
            result = {}
            for name, child in value.items():
                place = (*path, f"f:{name}")
                below = prune(child, shape.field(name) if shape is not None else None, place)
                if not _goes(place, below, child):
                    result[name] = below
            return result
        if isinstance(value, list) and shape is not None and not shape.atomic and (shape.keys or shape.is_set):
            items = []
            for item in value:
                place = (*path, item_element(item, shape))
                if not _goes(place, item, item):
                    items.append(prune(item, shape.item, place) if shape.keys else item)
            return items
        return value

    def _goes(place: Path, below: Any, child: Any) -> bool:
        if place in needed:
            return False
        return place in gone or (below != child and not below and child not in ({}, []))

    return prune(value, shape, path)


def check_declared(value: Any, shape: Shape | None, subject: str, path: str = "") -> None:
    """Refuse a field that the schema does not declare.

    Raises:
        Refused: 500, as the real server answers.
    """
    if shape is None or shape.type == "any":
        return
    if isinstance(value, dict):
        for name, child in value.items():
            field = shape.field(name)
            if field is None and not shape.is_open and shape.type == "object":
                where = f"{path}.{name}"
                raise internal(
                    f"failed to create typed patch object ({subject}): {where}: field not declared in schema"
                )
            check_declared(child, field, subject, f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            element = f"[{index}]"
            if shape.keys and isinstance(item, dict):
                element = show((item_element(item, shape),))
            check_declared(item, shape.item, subject, f"{path}{element}")
