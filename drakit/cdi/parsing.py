"""From the bytes of a CDI file to its Spec. YAML is imported only for files that are not JSON."""

import functools
import json
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import msgspec

from drakit.cdi.model import Spec
from drakit.cdi.validation import Fault, SpecError, decode

if TYPE_CHECKING:
    import yaml

__all__ = ["as_strings", "load", "parse"]


def parse(data: bytes) -> Spec:
    """The Spec of a file's content, accepted as runtimes accept it.

    Raises:
        SpecError: a runtime refuses it.
    """
    return decode(load(data))


def load(data: bytes) -> Any:
    """The plain value of a JSON or YAML file.

    Raises:
        SpecError: neither, or a key stands twice in a mapping.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError([Fault("", f"is not UTF-8: byte {error.start}")]) from error
    try:
        return _json(text) if text.lstrip()[:1] == "{" else _yaml(text)
    except RecursionError as error:
        raise SpecError([Fault("", "is nested too deeply")]) from error


def as_strings(value: Any, expected: Any = Spec) -> Any:
    """The plain value of a YAML file, with numbers and booleans made text where the format has strings.

    Runtimes do so: `name: 0` is the device "0".
    """
    if expected is str and isinstance(value, (bool, int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, list):
        item = get_args(_present(expected))[:1] or (object,)
        return [as_strings(each, item[0]) for each in value]
    if isinstance(value, dict):
        types = _member_types(_present(expected))
        return {str(key): as_strings(content, types.get(key, types.get("", object))) for key, content in value.items()}
    return value


def _present(expected: Any) -> Any:
    """The type without None."""
    choices = [choice for choice in get_args(expected) if choice is not NoneType]
    return choices[0] if get_origin(expected) in {Union, UnionType} else expected


def _member_types(expected: Any) -> dict[str, Any]:
    if isinstance(expected, type) and issubclass(expected, msgspec.Struct):
        return {field.encode_name: _present(field.type) for field in msgspec.structs.fields(expected)}
    return {"": str} if get_origin(expected) is dict else {}


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError:
        return _yaml(text)  # which may have braces too


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise SpecError([Fault("", f"key {key!r} stands twice in one mapping")])
        mapping[key] = value
    return mapping


def _yaml(text: str) -> Any:
    import yaml

    try:
        return as_strings(yaml.load(text, Loader=_loader()))  # noqa: S506 - a subclass of the safe loader
    except yaml.YAMLError as error:
        raise SpecError([Fault("", f"is neither JSON nor YAML: {' '.join(str(error).split())}")]) from error
    except ValueError as error:  # a scalar that looks like a number and is none
        raise SpecError([Fault("", f"is not YAML: {error}")]) from error


@functools.cache
def _loader() -> "type[yaml.SafeLoader]":
    import yaml

    class Loader(yaml.SafeLoader):
        """Safe YAML in which a repeated key is an error and a date is a string, as in JSON."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue  # no mapping key of JSON: refused below
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    raise SpecError([Fault("", f"key {key.value!r} stands twice in one mapping")])
                seen.add(key.value)
            return super().construct_mapping(node, deep=deep)

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    return Loader
