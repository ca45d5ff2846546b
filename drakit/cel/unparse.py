"""Printing a tree back as text: what parses to the same tree again."""

from __future__ import annotations

from typing import Any, Final

from drakit.cel.functions.numbers import fixed
from drakit.cel.syntax import Call, Comprehension, Entry, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from drakit.cel.values import Uint

__all__ = ["unparse"]

_BINARY: Final = {
    "_||_": ("||", 1),
    "_&&_": ("&&", 2),
    "_<_": ("<", 3),
    "_<=_": ("<=", 3),
    "_>_": (">", 3),
    "_>=_": (">=", 3),
    "_==_": ("==", 3),
    "_!=_": ("!=", 3),
    "@in": ("in", 3),
    "_+_": ("+", 4),
    "_-_": ("-", 4),
    "_*_": ("*", 5),
    "_/_": ("/", 5),
    "_%_": ("%", 5),
}
_LOGIC: Final = ("_&&_", "_||_")
_UNARY: Final = {"!_": "!", "-_": "-"}
_TERNARY, _PREFIX, _MEMBER = 0, 6, 7
_ESCAPES: Final = str.maketrans(
    {
        "\\": "\\\\",
        '"': '\\"',
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\v": "\\v",
    }
)


def unparse(node: Node) -> str:
    """The text of a parsed tree, macros as they were written."""
    return _text(node, _TERNARY)


def _text(node: Node, level: int) -> str:
    """The node, in parentheses when it binds less than `level`."""
    text, binds = _shown(node)
    return f"({text})" if binds < level else text


def _shown(node: Node) -> tuple[str, int]:
    if node.macro is not None:
        return _call(node.macro.name, node.macro.target, node.macro.arguments), _MEMBER
    match node:
        case Literal():
            text = _literal(node.value)
            return text, _PREFIX if text.startswith("-") else _MEMBER
        case Ident():
            return node.name, _MEMBER
        case Select():
            shown = f"{_text(node.operand, _MEMBER)}.{node.field}"
            return (f"has({shown})" if node.test else shown), _MEMBER
        case Call():
            return _operator(node)
        case ListNode():
            elements = [
                ("?" if index in node.optionals else "") + _text(each, _TERNARY)
                for index, each in enumerate(node.elements)
            ]
            return f"[{', '.join(elements)}]", _MEMBER
        case MapNode():
            return "{" + _entries(node.entries) + "}", _MEMBER
        case StructNode():
            return f"{node.name}{{{_fields(node.entries)}}}", _MEMBER
        case Comprehension():
            raise ValueError("a comprehension without its macro has no text")


def _operator(node: Call) -> tuple[str, int]:
    function = node.function
    if function in _BINARY:
        operator, binds = _BINARY[function]
        if function in _LOGIC:
            terms = _terms(node) if _is_balanced(node, 0, _count(node) - 2) else node.arguments
            return f" {operator} ".join(_text(each, binds + 1) for each in terms), binds
        right = binds + 1
        left, other = _text(node.arguments[0], binds), _text(node.arguments[1], right)
        return f"{left} {operator} {other}", binds
    if function in _UNARY:
        inner = _text(node.arguments[0], _MEMBER)
        if function == "-_" and isinstance(node.arguments[0], Literal):
            inner = f"({inner})"
        return _UNARY[function] + inner, _PREFIX
    if function == "_?_:_":
        condition, first, second = node.arguments
        return f"{_text(condition, 1)} ? {_text(first, 1)} : {_text(second, _TERNARY)}", _TERNARY
    if function in ("_[_]", "_[?_]"):
        optional = "?" if "?" in function else ""
        return f"{_text(node.arguments[0], _MEMBER)}[{optional}{_text(node.arguments[1], _TERNARY)}]", _MEMBER
    if function == "_?._":
        field = node.arguments[1]
        assert isinstance(field, Literal)
        return f"{_text(node.arguments[0], _MEMBER)}.?{field.value}", _MEMBER
    return _call(function, node.target, node.arguments), _MEMBER


def _is_logic(node: Node, function: str) -> bool:
    return isinstance(node, Call) and node.function == function and node.macro is None


def _terms(node: Call) -> list[Node]:
    """The terms of a chain of && or ||."""
    found: list[Node] = []
    stack: list[Node] = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, Call) and _is_logic(each, node.function):
            stack.extend(reversed(each.arguments))
        else:
            found.append(each)
    return found


def _count(node: Call) -> int:
    return len(_terms(node))


def _is_balanced(node: Call, low: int, high: int) -> bool:
    """Whether parsing the flat chain gives this tree, which has operators `low` to `high`."""
    middle = (low + high + 1) // 2
    for child, start, stop in ((node.arguments[0], low, middle - 1), (node.arguments[1], middle + 1, high)):
        if not isinstance(child, Call) or not _is_logic(child, node.function):
            if stop >= start:
                return False
        elif stop < start or not _is_balanced(child, start, stop):
            return False
    return True


def _call(function: str, target: Node | None, arguments: Any) -> str:
    shown = f"{function}({', '.join(_text(each, _TERNARY) for each in arguments)})"
    return shown if target is None else f"{_text(target, _MEMBER)}.{shown}"


def _entries(entries: list[Entry]) -> str:
    return ", ".join(
        f"{'?' if each.optional else ''}{_text(each.key, _TERNARY)}: {_text(each.value, _TERNARY)}" for each in entries
    )


def _fields(entries: list[Entry]) -> str:
    return ", ".join(
        f"{'?' if each.optional else ''}{each.key.value}: {_text(each.value, _TERNARY)}"
        for each in entries
        if isinstance(each.key, Literal)
    )


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    kind = value.__class__
    if kind is str:
        return f'"{_escaped(value)}"'
    if kind is bytes:
        return 'b"' + "".join(f"\\x{byte:02x}" for byte in value) + '"'
    if kind is Uint:
        return f"{int(value)}u"
    if kind is float:
        text = fixed(value)
        return text if "." in text else text + ".0"
    return str(value)


def _escaped(text: str) -> str:
    return "".join(
        char if char.isprintable() else _code(char) if char not in '\\"\n\r\t\a\b\f\v' else char.translate(_ESCAPES)
        for char in text.translate({ord("\\"): "\\\\", ord('"'): '\\"'})
    )


def _code(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
