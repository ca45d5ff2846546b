"""Warnings on CEL selectors: what never matches, and what fails where an attribute is missing."""

from collections.abc import Iterator
from typing import NamedTuple

from drakit import cel
from drakit.lint.contradictions import Fact, demands, join
from drakit.lint.objects import Input, Object, mapping, requests, selectors, text
from drakit.lint.rules.rule import Hit, Rule, Target

__all__ = ["RULES"]


class _Selector(NamedTuple):
    object: Object
    path: str
    expression: str


def _of_classes(data: Input) -> Iterator[_Selector]:
    for each in data.objects:
        if each.is_a("DeviceClass"):
            for path, expression in selectors("spec", mapping(each.value, "spec")):
                yield _Selector(each, path, expression)


def _of_requests(data: Input) -> Iterator[tuple[str, list[_Selector]]]:
    """For each request its class and its own selectors."""
    for claim in data.claims:
        for request in requests(claim):
            own = [_Selector(claim, *found) for found in selectors(request.path, request.body)]
            yield text(request.body, "deviceClassName"), own


def _never(data: Input, target: Target) -> Iterator[Hit]:
    environment = cel.Environment(target.version)
    by_class: dict[str, list[_Selector]] = {}
    for selector in _of_classes(data):
        by_class.setdefault(selector.object.name, []).append(selector)
    for own in by_class.values():
        yield from _contradictions(environment, [], own)
    for name, own in _of_requests(data):
        yield from _contradictions(environment, by_class.get(name, []), own)


def _contradictions(environment: cel.Environment, given: list[_Selector], own: list[_Selector]) -> Iterator[Hit]:
    facts: list[Fact] = []
    for selector in given:
        join(facts, demands(environment, selector.expression))
    of_class = tuple(facts)
    for selector in own:
        found = join(facts, demands(environment, selector.expression))
        if found is not None:
            fact, earlier = found
            reason = str(fact) if earlier is None else f"{earlier}{_origin(earlier, of_class)} and {fact}"
            yield Hit(selector.object, selector.path, f"can never be true: {reason}")
            return


def _origin(fact: Fact, of_class: tuple[Fact, ...]) -> str:
    return " (of the DeviceClass)" if any(fact is each for each in of_class) else ""


RULES = (Rule("never-true", "a selector that no device can satisfy", _never),)
