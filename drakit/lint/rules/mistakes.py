"""Warnings on expressions that compile and do something else than is meant, each in itself."""

from collections.abc import Iterator

from drakit import api
from drakit.cel.diagnostics import Remark
from drakit.lint.expressions import Expression, derived, environment, selections
from drakit.lint.objects import Input, mapping
from drakit.lint.rules.rule import Hit, Rule, Target

__all__ = ["RULES", "published_types"]

_OF_VERSIONS = {"version-as-text", "version-in-list"}


def published_types(data: Input) -> dict[tuple[str, ...], set[str]]:
    """By (domain, name): the types with which devices of the input publish an attribute."""
    types: dict[tuple[str, ...], set[str]] = {}
    for _slice, _path, driver, body in data.devices:
        for name, attribute in mapping(body, "attributes").items():
            qualified = api.QualifiedName.parse(name, driver)
            types.setdefault(tuple(qualified), set()).update(mapping(attribute))
    return types


def _remarks(data: Input, target: Target) -> Iterator[tuple[Expression, Remark]]:
    for selection in selections(data):
        for each in selection.own:
            for remark in environment(target.version).check(each.text).warnings:
                yield each, remark
    for each in derived(data):
        for remark in environment(target.version).check(each.text, "value").warnings:
            yield each, remark


def _mistake(code: str, summary: str) -> Rule:
    def check(data: Input, target: Target) -> Iterator[Hit]:
        types = published_types(data) if code in _OF_VERSIONS else {}
        for each, remark in _remarks(data, target):
            published = types.get(remark.attribute[2:], {"version"})
            if remark.code == code and (code not in _OF_VERSIONS or "version" in published):
                yield Hit(each.object, each.path, remark.message, remark.position)

    return Rule(code, summary, check)


RULES = (
    _mistake("version-as-text", "a version attribute compared with a string instead of semver()"),
    _mistake("version-in-list", "a version attribute looked for in a list of strings"),
    _mistake("asymmetric-equality", "an == whose sides cannot change places"),
    _mistake("always-present", "a test for a domain that is always true"),
    _mistake("qualified-identifier", "domain and identifier as one key"),
)
