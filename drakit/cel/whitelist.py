"""What generated code may be made of: anything else is not compiled, whatever made it."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

__all__ = ["assert_allowed"]

_ATTRIBUTES: Final = frozenset(
    {"driver", "attributes", "capacity", "multi", "as_map", "nano", "value", "get", "__class__"}
)
_NAMES: Final = re.compile(r"[KVTA][0-9]+|d", re.ASCII)
_ALLOWED: Final = frozenset(
    {
        ast.Expression, ast.Lambda, ast.arguments, ast.arg, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not,
        ast.IfExp,
        ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.Is, ast.IsNot, ast.Call, ast.Name,
        ast.Attribute, ast.Subscript, ast.Constant, ast.List, ast.Tuple, ast.NamedExpr,
        ast.GeneratorExp, ast.ListComp, ast.comprehension,
    }
)  # fmt: skip
_CONSTANTS: Final = (bool, int, type(None))
_SCALARS: Final = frozenset({str, int, type(None), ast.Load, ast.Store})


def assert_allowed(tree: ast.AST) -> None:
    """Refuse code that is not made of the white-list.

    Raises:
        ValueError: A node, name, attribute or constant does not belong there.
    """
    stack: list[Any] = [tree]
    while stack:
        node = stack.pop()
        kind = node.__class__
        if kind is list:
            stack.extend(node)
            continue
        if kind is ast.Name:
            if not _NAMES.fullmatch(node.id):
                raise ValueError(f"generated code names {node.id}")
            continue
        if kind is ast.Constant:
            if node.value.__class__ not in _CONSTANTS:
                raise ValueError("generated code has a constant of its own")
            continue
        if kind not in _ALLOWED:
            raise ValueError(f"generated code has a {kind.__name__}")
        if kind is ast.Attribute and node.attr not in _ATTRIBUTES:
            raise ValueError(f"generated code reads {node.attr}")
        for name in kind._fields:
            value = getattr(node, name)
            if value.__class__ not in _SCALARS:
                stack.append(value)
