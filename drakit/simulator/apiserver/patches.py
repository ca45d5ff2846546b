"""JSON patch (RFC 6902), JSON merge patch (RFC 7386) and strategic merge patch, on plain JSON values.

None of them changes its input.
"""

from typing import Any

from drakit.simulator.apiserver.errors import Refused, bad_request
from drakit.simulator.apiserver.shapes import Shape

__all__ = ["json_patch", "merge_patch", "strategic_merge_patch"]

_REJECTED = "the server rejected our request due to an error in our request"


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null deletes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902.

    Raises:
        Refused: 400 for what is no list of operations, 422 without causes for one that cannot be carried out.
    """
    if not isinstance(operations, list):
        kind = {dict: "object", str: "string", int: "number", float: "number", bool: "bool"}.get(
            type(operations), "null"
        )
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp"
        )
    document = [target]
    for operation in operations:
        try:
            _apply(document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as fault:
            raise Refused(422, "Invalid", _REJECTED, details={}) from fault
    return document[0]


def _apply(document: list[Any], operation: dict[str, Any]) -> None:
    path = _pointer(operation["path"])
    match operation["op"]:
        case "add":
            document[0] = _edit(document[0], path, "add", operation["value"])
        case "replace":
            document[0] = _edit(document[0], path, "replace", operation["value"])
        case "remove":
            document[0] = _edit(document[0], path, "remove", None)
        case "move":
            source = _pointer(operation["from"])
            value = _read(document[0], source)
            document[0] = _edit(_edit(document[0], source, "remove", None), path, "add", value)
        case "copy":
            document[0] = _edit(document[0], path, "add", _read(document[0], _pointer(operation["from"])))
        case "test":
            if not _equal(_read(document[0], path), operation.get("value")):
                raise ValueError("test failed")
        case other:
            raise ValueError(other)


def _pointer(text: str) -> list[str]:
    if text == "":
        return []
    if not text.startswith("/"):
        raise ValueError(text)
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _read(value: Any, path: list[str]) -> Any:
    for part in path:
        value = value[_index(value, part)] if isinstance(value, list) else value[part]
    return value


def _index(items: list[Any], part: str, *, end: bool = False) -> int:
    if part == "-" and end:
        return len(items)
    index = int(part)
    if not 0 <= index < len(items) + end:
        raise IndexError(part)
    return index


def _equal(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _edit(value: Any, path: list[str], operation: str, new: Any) -> Any:
    if not path:
        return new
    head, rest = path[0], path[1:]
    if isinstance(value, list):
        items = list(value)
        if rest:
            index = _index(items, head)
            items[index] = _edit(items[index], rest, operation, new)
        elif operation == "add":
            items.insert(_index(items, head, end=True), new)
        elif operation == "replace":
            items[_index(items, head)] = new
        else:
            del items[_index(items, head)]
        return items
    if not isinstance(value, dict):
        raise TypeError(head)
    fields = dict(value)
    if rest:
        fields[head] = _edit(fields[head], rest, operation, new)
    elif operation == "add":
        fields[head] = new
    elif operation == "replace":
        if head not in fields:
            raise KeyError(head)
        fields[head] = new
    else:
        del fields[head]
    return fields


_DIRECTIVE = "$patch"
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"


def strategic_merge_patch(target: Any, patch: Any, shape: Shape | None) -> Any:
    """Merge patch that merges lists by the merge keys of `shape` and knows the `$` directives.

    Raises:
        Refused: 400 for a list item without its merge key.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if _RETAIN in patch:
        retained = set(patch[_RETAIN])
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key in {_DIRECTIVE, _RETAIN} or key.startswith((_ORDER, _DELETE_PRIMITIVES)):
            continue
        field = shape.field(key) if shape is not None else None
        if value is None:
            result.pop(key, None)
        elif isinstance(value, list) and field is not None and field.patch_merge:
            result[key] = _merge_list(result.get(key) or [], value, field)
        elif isinstance(value, dict) and not (field is not None and field.patch_replace):
            result[key] = strategic_merge_patch(result.get(key), value, field)
        else:
            result[key] = value
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVES):
            name = key.removeprefix(_DELETE_PRIMITIVES)
            result[name] = [item for item in result.get(name) or [] if item not in value]
    for key, value in patch.items():
        if key.startswith(_ORDER):
            name = key.removeprefix(_ORDER)
            field = shape.field(name) if shape is not None else None
            if isinstance(result.get(name), list):
                result[name] = _in_order(result[name], value, field.patch_key if field is not None else None)
    return result


def _merge_list(target: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    key = shape.patch_key
    if key is None:
        return [*target, *(item for item in patch if item not in target)]
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and item.get(_DIRECTIVE) == "replace")]
    result = list(target)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        places = [index for index, old in enumerate(result) if old.get(key) == item[key]]
        if item.get(_DIRECTIVE) == "delete":
            result = [old for old in result if old.get(key) != item[key]]
        elif places:
            result[places[0]] = strategic_merge_patch(result[places[0]], item, shape.item)
        else:
            result.append(strategic_merge_patch({}, item, shape.item))
    return result


def _in_order(items: list[Any], order: list[Any], key: str | None) -> list[Any]:
    """Items that `order` names come in its order; the others keep their place before their former follower."""
    names = [entry.get(key) if key is not None and isinstance(entry, dict) else entry for entry in order]

    def name(item: Any) -> Any:
        return item.get(key) if key is not None and isinstance(item, dict) else item

    listed = iter(sorted((item for item in items if name(item) in names), key=lambda item: names.index(name(item))))
    return [next(listed) if name(item) in names else item for item in items]
