"""Warnings on CEL selectors: what never matches, and what fails where an attribute is missing."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from drakit import api, cel
from drakit.cel.errors import locate
from drakit.cel.guards import DRIVER, Guards, Read, guards, reads
from drakit.cel.paths import is_computed
from drakit.lint.contradictions import Fact, demands, join
from drakit.lint.expressions import Expression, compiled, parsed, selections
from drakit.lint.objects import Input, mapping
from drakit.lint.rules.mistakes import published_types
from drakit.lint.rules.rule import Hit, Rule, Target

__all__ = ["RULES"]

_EVALUATIONS = 200_000  # about two seconds; whole clusters with all their claims are for explain and simulate
_KINDS = {str: "string", bool: "bool", int: "int"}
_OWN = "(device.driver)"
_CURES = {
    "version": 'compare it with semver("...")',
    "int": "compare it with a number",
    "bool": "compare it with a boolean",
}


def _never(data: Input, target: Target) -> Iterator[Hit]:
    for own, given, _known in selections(data):
        facts: list[Fact] = []
        for selector in given:
            join(facts, demands(parsed(target.version, selector.text)))
        of_class = tuple(facts)
        for selector in own:
            found = join(facts, demands(parsed(target.version, selector.text)))
            if found is not None:
                yield Hit(selector.object, selector.path, f"can never be true: {_because(*found, of_class)}")
                break


def _because(fact: Fact, earlier: Fact | None, of_class: tuple[Fact, ...]) -> str:
    if earlier is None:
        return str(fact)
    origin = " (of the DeviceClass)" if any(earlier is each for each in of_class) else ""
    return f"{earlier}{origin} excludes {fact}"


def _unguarded(data: Input, target: Target) -> Iterator[Hit]:
    for own, given, known in selections(data):
        holds: Guards = frozenset()
        for selector in given:
            holds |= _demanded(selector, target)
        for selector in own:
            root = parsed(target.version, selector.text)
            if root is None or compiled(target.version, selector.text) is None:
                continue  # refused, which is said elsewhere
            found = list(reads(root, _without_drivers(holds)))
            holds |= guards(root)
            failing = {read: place for read in found if (place := _fails_for(read, holds, data)) is not None}
            if failing:
                position = locate(selector.text, next(iter(failing)).offset)
                yield Hit(selector.object, selector.path, _failure(failing, known=known), position)


def _demanded(selector: Expression, target: Target) -> Guards:
    root = parsed(target.version, selector.text)
    return frozenset() if root is None else guards(root)


def _without_drivers(holds: Guards) -> Guards:
    # The driver alone says nothing of single attributes: what its devices have is looked up in the input.
    return frozenset(path for path in holds if path[:2] != DRIVER)


def _fails_for(read: Read, holds: Guards, data: Input) -> str | None:
    """A device of the input for which `read` fails, "" for one that may exist, None when there is no reason to fear."""
    of_own_driver = read.domain == _OWN
    if is_computed(read.name) or (is_computed(read.domain) and not of_own_driver):
        return None
    drivers = {path[2] for path in holds if path[:2] == DRIVER}
    found = False
    for slice_, path, driver, body in data.devices:
        if not drivers or driver in drivers:
            found = True
            if not _has(body, read._replace(domain=driver) if of_own_driver else read, driver):
                return f"{slice_.title} {path}"
    trusted = bool(drivers) if of_own_driver else read.domain in drivers
    return None if found or trusted else ""


def _failure(failing: Mapping[Read, str], *, known: bool) -> str:
    first, place = next(iter(failing.items()))
    names = ", ".join(dict.fromkeys(map(str, failing)))
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
    left = _EVALUATIONS
    for own, given, _known in selections(data) if views else ():
        programs = [compiled(target.version, each.text) for each in (*given, *own)]
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
    kinds = published_types(data)
    for own, _given, _known in selections(data) if kinds else ():
        for selector in own:
            for fact in demands(parsed(target.version, selector.text)):
                published = kinds.get(fact.subject[2:], set()) if fact.subject[1:2] == ("attributes",) else set()
                values = fact.value if fact.relation == "in" else (fact.value,)
                wanted = {_KINDS.get(type(value), "") for value in values}
                if published and "" not in wanted and not published & wanted:
                    yield Hit(selector.object, selector.path, _mismatch(fact, published))


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
