"""Warnings on CEL selectors: what never matches, and what fails where an attribute is missing."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from drakit import api, cel
from drakit.lint.contradictions import Fact, demands, join
from drakit.lint.guards import Read, guards, reads
from drakit.lint.objects import Input, Object, mapping, requests, selectors, text
from drakit.lint.rules.rule import Hit, Rule, Target

__all__ = ["RULES"]

_EVALUATIONS = 200_000  # about two seconds; whole clusters with all their claims are for explain and simulate
_KINDS = {str: "string", bool: "bool", int: "int"}
_CURES = {
    "version": 'compare it with semver("...")',
    "int": "compare it with a number",
    "bool": "compare it with a boolean",
}


class _Selector(NamedTuple):
    object: Object
    path: str
    expression: str


class _Request(NamedTuple):
    """A request's own selectors, and those of its DeviceClass; `known` is whether the class is in the input."""

    own: list[_Selector]
    given: list[_Selector]
    known: bool


def _requests(data: Input) -> Iterator[_Request]:
    """All classes (as requests of themselves) and all requests that have selectors."""
    of_class = {
        name: [_Selector(each, *found) for found in selectors("spec", mapping(each.value, "spec"))]
        for name, each in data.classes.items()
    }
    for own in of_class.values():
        yield _Request(own, [], known=True)
    for claim in data.claims:
        for request in requests(claim):
            name = text(request.body, "deviceClassName")
            own = [_Selector(claim, *found) for found in selectors(request.path, request.body)]
            yield _Request(own, of_class.get(name, []), name in of_class)


def _never(data: Input, target: Target) -> Iterator[Hit]:
    environment = cel.Environment(target.version)
    for own, given, _known in _requests(data):
        facts: list[Fact] = []
        for selector in given:
            join(facts, demands(environment, selector.expression))
        of_class = tuple(facts)
        for selector in own:
            found = join(facts, demands(environment, selector.expression))
            if found is not None:
                yield Hit(selector.object, selector.path, f"can never be true: {_because(*found, of_class)}")
                break


def _because(fact: Fact, earlier: Fact | None, of_class: tuple[Fact, ...]) -> str:
    if earlier is None:
        return str(fact)
    origin = " (of the DeviceClass)" if any(earlier is each for each in of_class) else ""
    return f"{earlier}{origin} excludes {fact}"


def _unguarded(data: Input, target: Target) -> Iterator[Hit]:
    environment = cel.Environment(target.version)
    for own, given, known in _requests(data):
        holds = frozenset[tuple[str, ...]]().union(*(guards(environment, each.expression) for each in given))
        for selector in own:
            if _compiled(environment, selector.expression) is None:
                continue  # refused, which is said elsewhere
            found = list(reads(environment, selector.expression, _without_drivers(holds)))
            holds |= guards(environment, selector.expression)
            failing = {read: place for read in found if (place := _fails_for(read, holds, data)) is not None}
            if failing:
                yield Hit(selector.object, selector.path, _failure(failing, known=known))


def _without_drivers(holds: frozenset[tuple[str, ...]]) -> frozenset[tuple[str, ...]]:
    # The driver alone says nothing of single attributes: what its devices have is looked up in the input.
    return frozenset(path for path in holds if path[:2] != ("device", "driver"))


def _fails_for(read: Read, holds: frozenset[tuple[str, ...]], data: Input) -> str | None:
    """A device of the input for which `read` fails, "" for one that may exist, None when there is no reason to fear."""
    drivers = {path[2] for path in holds if path[:2] == ("device", "driver")}
    found = False
    for slice_, path, driver, body in data.devices:
        if not drivers or driver in drivers:
            found = True
            if not _has(body, read, driver):
                return f"{slice_.title} {path}"
    return None if found or read.domain in drivers else ""


def _failure(failing: Mapping[Read, str], *, known: bool) -> str:
    first, place = next(iter(failing.items()))
    names = ", ".join(map(str, failing))
    cure = "" if known or place else ", or add the DeviceClass to the input if that compares device.driver"
    return (
        f"an error for {place or 'devices'} without {names}, which fails the whole pod and not just that device: guard "
        f"it with has({first}){cure}"
    )


def _has(device: Mapping[str, Any], read: Read, driver: str) -> bool:
    present = mapping(device, read.map)
    return f"{read.domain}/{read.name}" in present or (read.domain == driver and read.name in present)


def _matches_nothing(data: Input, target: Target) -> Iterator[Hit]:
    views = list(_views(data))
    environment = cel.Environment(target.version)
    left = _EVALUATIONS
    for own, given, _known in _requests(data) if views else ():
        programs = [_compiled(environment, each.expression) for each in (*given, *own)]
        left -= len(views) * len(programs)
        if left < 0:
            return
        if own and all(programs) and not any(_matches(programs, view) for view in views):
            yield Hit(
                own[-1].object,
                own[-1].path,
                "no device in the input satisfies this (with its DeviceClass and the other selectors of the request)",
            )


def _mistyped(data: Input, target: Target) -> Iterator[Hit]:
    kinds = _kinds(data)
    environment = cel.Environment(target.version)
    for own, _given, _known in _requests(data) if kinds else ():
        for selector in own:
            for fact in demands(environment, selector.expression):
                published = kinds.get(fact.subject[2:], set()) if fact.subject[1:2] == ("attributes",) else set()
                values = fact.value if fact.relation == "in" else (fact.value,)
                wanted = {_KINDS.get(type(value), "") for value in values}
                if published and "" not in wanted and not published & wanted:
                    yield Hit(selector.object, selector.path, _mismatch(fact, published))


def _kinds(data: Input) -> dict[tuple[str, ...], set[str]]:
    """By (domain, name): the types with which devices of the input publish an attribute."""
    kinds: dict[tuple[str, ...], set[str]] = {}
    for _slice, _path, driver, body in data.devices:
        for name, attribute in mapping(body, "attributes").items():
            qualified = api.QualifiedName.parse(name, driver)
            kinds.setdefault(tuple(qualified), set()).update(mapping(attribute))
    return kinds


def _mismatch(fact: Fact, published: set[str]) -> str:
    kind = min(published)
    cure = _CURES.get(kind, "use includes() for lists" if kind.endswith("s") else "compare it with a string")
    return f"{fact} never holds: in the input that attribute is of type {kind}: {cure}"


def _views(data: Input) -> Iterator[cel.DeviceView]:
    seen: set[tuple[str, bytes]] = set()
    for each in data.slices:
        try:
            decoded = api.decode(each.value)
        except (ValueError, msgspec.ValidationError):
            continue  # refused, which is said elsewhere
        if isinstance(decoded, api.resource.ResourceSlice):
            for device in decoded.spec.devices:
                content = (decoded.spec.driver, api.shape(msgspec.structs.replace(device, name="")))
                if content not in seen:
                    seen.add(content)
                    yield cel.device_view(decoded.spec.driver, device)


def _compiled(environment: cel.Environment, expression: str) -> cel.Program | None:
    try:
        return environment.compile(expression)
    except cel.CompileError:
        return None


def _matches(programs: list[cel.Program | None], view: cel.DeviceView) -> bool:
    try:
        return all(program is not None and program.evaluate(view) for program in programs)
    except cel.EvaluationError:
        return False


RULES = (
    Rule("unguarded-attribute", "a selector reads an attribute that devices may not have", _unguarded),
    Rule("never-true", "a selector that no device can satisfy", _never),
    Rule("type-mismatch", "a selector compares an attribute with a value of another type", _mistyped),
    Rule("matches-nothing", "a selector that no device in the input satisfies", _matches_nothing),
)
