"""Which slices and devices a node can reach: node names, all nodes, node selectors."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drakit.api import core

__all__ = ["NodeSelectorError", "Placed", "matches", "selector_matches"]

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LABEL_KEY: Final = re.compile(
    r"(?:([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)/)?([A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
)
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


class NodeSelectorError(ValueError):
    """A node selector that no validation would have let in; `path` is where, from `nodeSelectorTerms` on."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(f"failed to parse node selector: {path}: {message}")
        self.path = path


class Placed(Protocol):
    """A slice spec, or a device of a slice with perDeviceNodeSelection."""

    @property
    def node_name(self) -> str | None:
        """The only node."""

    @property
    def node_selector(self) -> core.NodeSelector | None:
        """Labels and names of the nodes."""

    @property
    def all_nodes(self) -> bool | None:
        """Every node."""


def matches(placed: Placed, name: str, labels: Mapping[str, str]) -> bool:
    """Whether the node with this name and these labels can use it: by name, else all nodes, else by selector.

    Raises:
        NodeSelectorError: The selector cannot be parsed.
    """
    if placed.node_name:
        return placed.node_name == name
    if placed.all_nodes:
        return True
    return placed.node_selector is not None and selector_matches(placed.node_selector, name, labels)


def selector_matches(selector: core.NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    """Whether any term of the selector holds.

    Raises:
        NodeSelectorError: The selector cannot be parsed.
    """
    _check(selector)
    return any(_term_matches(term, name, labels) for term in selector.node_selector_terms)


def _term_matches(term: core.NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": name} if name else {}
    return all(_holds(requirement, labels) for requirement in term.match_expressions) and all(
        _holds(requirement, fields) for requirement in term.match_fields
    )


def _holds(requirement: core.NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return _compares(requirement, value)


def _compares(requirement: core.NodeSelectorRequirement, value: str | None) -> bool:
    if value is None or not _INTEGER.fullmatch(value):
        return False
    bound = int(requirement.values[0])
    return int(value) > bound if requirement.operator == "Gt" else int(value) < bound


@functools.lru_cache(maxsize=4096)
def _check(selector: core.NodeSelector) -> None:
    for index, term in enumerate(selector.node_selector_terms):
        for position, requirement in enumerate(term.match_expressions):
            _check_expression(requirement, f"nodeSelectorTerms[{index}].matchExpressions[{position}]")
        for position, requirement in enumerate(term.match_fields):
            _check_field(requirement, f"nodeSelectorTerms[{index}].matchFields[{position}]")


def _check_expression(requirement: core.NodeSelectorRequirement, path: str) -> None:
    values = requirement.values
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                raise NodeSelectorError("for 'in', 'notin' operators, values set can't be empty", f"{path}.values")
        case "Exists" | "DoesNotExist":
            if values:
                raise NodeSelectorError("values set must be empty for exists and does not exist", f"{path}.values")
        case "Gt" | "Lt":
            if len(values) != 1:
                raise NodeSelectorError("for 'Gt', 'Lt' operators, exactly one value is required", f"{path}.values")
            if not _INTEGER.fullmatch(values[0]):
                message = f"Invalid value: \"{values[0]}\": for 'Gt', 'Lt' operators, the value must be an integer"
                raise NodeSelectorError(message, f"{path}.values[0]")
        case _:
            raise NodeSelectorError(f'"{requirement.operator}" is not a valid label selector operator', path)
    if not _LABEL_KEY.fullmatch(requirement.key):
        raise NodeSelectorError(f'Invalid value: "{requirement.key}": no qualified name', f"{path}.key")
    for position, value in enumerate(values):
        if not _LABEL_VALUE.fullmatch(value):
            raise NodeSelectorError(f'Invalid value: "{value}": no label value', f"{path}.values[{position}]")


def _check_field(requirement: core.NodeSelectorRequirement, path: str) -> None:
    if requirement.operator not in {"In", "NotIn"}:
        raise NodeSelectorError(f'"{requirement.operator}" is not a valid field selector operator', path)
    if len(requirement.values) != 1:
        raise NodeSelectorError("must have one element", f"{path}.values")
