"""YAML and JSON files as values that know their lines.

Scalars mean what they mean to kubectl: dates and sexagesimal numbers are strings. Values are made from the parser's
nodes; a position is looked up only when there is something to say.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

__all__ = ["Document", "Position", "ReadError", "read"]

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is there
_DEPTH = 100
_NODES = 10_000  # and two for each character: more is made by aliases, which can stand for gigabytes
# JSON writes characters above 16 bits as two escapes, which YAML does not take.
_SURROGATES = re.compile(r"\\u(d[89ab]..)\\u(d[c-f]..)|\\u(d[89a-f]..)|\\.", re.IGNORECASE)
_TAG = "tag:yaml.org,2002:"


class Position(msgspec.Struct, frozen=True):
    """Line and column in a file, both from 1."""

    line: int
    column: int


class ReadError(Exception):
    """Text that is not YAML; `position` says where."""

    def __init__(self, message: str, position: Position) -> None:
        """Keep where it went wrong."""
        self.position = position
        super().__init__(message)


class Document:
    """One document of a file: its value, repeated keys, and where everything is."""

    def __init__(self, root: yaml.Node, text: str) -> None:
        """Make the value of `root`, a node of `text`.

        Raises:
            ReadError: nested too deeply, or an alias that contains itself.
        """
        self._root, self._text = root, text
        self._left = _NODES + 2 * len(text)
        self.repeated: list[tuple[str, Position]] = []
        self.value = self._value(root, 0)

    @property
    def is_json(self) -> bool:
        """Whether the file is JSON, which clients may send as it is; YAML is always converted."""
        try:
            json.loads(self._text)
        except (ValueError, RecursionError):
            return False
        return True

    def position(self, path: str) -> Position:
        """Where `path` is, as precise as the document has it.

        Paths are those of API servers for v1, such as `spec.devices.requests[0].exactly.count` or
        `spec.devices[0].attributes[model]`; parts that other versions do not have (`exactly`, `basic`) are passed over.
        """
        return _position(self._find(path)[1])

    def inner(self, path: str, line: int, column: int) -> Position:
        """Where line and column (from 1 and 0) of the string at `path` are, as far as its style tells."""
        node, mark, rest = self._find(path)
        if rest or not isinstance(node, yaml.ScalarNode):
            return _position(mark)
        if node.style == "|":
            row = node.start_mark.line + line
            content = self._text.split("\n", row + 1)[row : row + 1]
            indentation = len(content[0]) - len(content[0].lstrip(" ")) if content else 0
            return Position(row + 1, indentation + column + 1)
        if node.start_mark.line == node.end_mark.line and line == 1 and "\\" not in self.text(path):
            return Position(node.start_mark.line + 1, node.start_mark.column + bool(node.style) + column + 1)
        return _position(mark)

    def text(self, path: str) -> str:
        """The text of the value at `path` as it stands in the file; empty when there is none."""
        node, _, rest = self._find(path)
        return "" if rest else self._text[node.start_mark.index : node.end_mark.index]

    def _find(self, path: str) -> "_Step":
        node, mark, rest = self._root, self._root.start_mark, path
        while rest:
            step = _mapping_step(node, rest) if isinstance(node, yaml.MappingNode) else _sequence_step(node, rest)
            if step is None:
                break
            node, mark, rest = step[0], step[1] or mark, step[2]
        return node, mark, rest

    def _value(self, node: yaml.Node, depth: int) -> Any:
        self._left -= 1
        if depth > _DEPTH or self._left < 0:
            raise ReadError("is nested too deeply, or too large", _position(node.start_mark))
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, depth + 1) for item in node.value]
        return self._mapping(node, depth)

    def _mapping(self, node: yaml.Node, depth: int) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        value: dict[str, Any] = {}
        for key_node, item in node.value:
            content = self._value(item, depth + 1)
            if key_node.tag == _TAG + "merge":
                for part in content if isinstance(content, list) else [content]:
                    merged = (part if isinstance(part, dict) else {}) | merged
                continue
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "?"
            if key in value:
                self.repeated.append((key, _position(key_node.start_mark)))
            value[key] = content
        return merged | value if merged else value


def read(text: str) -> Iterator[Document]:
    """The documents of a file, empty ones left out.

    Raises:
        ReadError: not YAML (JSON is).
    """
    if text.lstrip()[:1] in {"{", "["}:
        text = _SURROGATES.sub(_character, text)
    try:
        for root in yaml.compose_all(text, Loader=_LOADER):
            if not (isinstance(root, yaml.ScalarNode) and root.tag == _TAG + "null"):
                yield Document(root, text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(filter(None, (error.context, error.problem)))
        raise ReadError(f"is not YAML: {problem}", _position(mark) if mark else Position(1, 1)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ReadError(f"is not YAML: character {error.character!r} is not allowed", Position(line, 1)) from error
    except RecursionError as error:
        raise ReadError("is nested too deeply", Position(1, 1)) from error


def _character(found: re.Match[str]) -> str:
    high, low, alone = found.groups()
    if alone:
        return r"\uFFFD"
    return rf"\U{0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00:08x}" if high else found[0]


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _scalar(node: yaml.ScalarNode) -> Any:
    text, kind = node.value, node.tag.removeprefix(_TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in {"true", "yes", "on"}
    if kind in {"int", "float"} and ":" not in text:
        return _number(text, kind)
    if kind == "binary":
        try:
            return base64.b64decode(text).decode("latin-1")
        except binascii.Error:
            return text
    return text


def _number(text: str, kind: str) -> Any:
    plain = text.replace("_", "").lower()
    sign = -1 if plain.startswith("-") else 1
    digits = plain.lstrip("+-")
    try:
        if kind == "float":
            return sign * float(digits)  # .inf and .nan have no JSON: they stay text
        for prefix, base in (("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)):
            if digits.startswith(prefix) and len(digits) > len(prefix):
                return sign * int(digits[len(prefix) :], base)
        return sign * int(digits)
    except ValueError:
        return text


_Step = tuple[yaml.Node, Any, str]


def _mapping_step(node: yaml.MappingNode, rest: str) -> _Step | None:
    rest = rest.removeprefix(".")
    entries = {str(key.value): (key, item) for key, item in node.value if isinstance(key, yaml.ScalarNode)}
    if rest.startswith("[") and "]" in rest:
        name, _, after = rest[1:].partition("]")
        found = entries.get(name.strip("\"'"))
        return None if found is None else (found[1], found[0].start_mark, after)
    fitting = [name for name in entries if rest.startswith(name) and rest[len(name) :][:1] in {"", ".", "["}]
    if fitting:
        name = max(fitting, key=len)
        key, item = entries[name]
        return item, key.start_mark, rest[len(name) :]
    if rest.startswith("exactly"):
        return node, None, rest.removeprefix("exactly")
    # Paths of v1 leave out what v1beta1 and templates have around, and those of adminAccess leave out `exactly`.
    wrapped = (entries[wrapper][1] for wrapper in ("basic", "exactly", "spec") if wrapper in entries)
    return next(
        (step for item in wrapped if isinstance(item, yaml.MappingNode) and (step := _mapping_step(item, rest))), None
    )


def _sequence_step(node: yaml.Node, rest: str) -> _Step | None:
    if not (isinstance(node, yaml.SequenceNode) and rest.startswith("[") and "]" in rest):
        return None
    index, _, after = rest[1:].partition("]")
    if not (index.isdigit() and int(index) < len(node.value)):
        return None
    item = node.value[int(index)]
    return item, item.start_mark, after
