"""Warnings on ResourceSlices and the attributes that they publish."""

from collections.abc import Iterator

from drakit.cel.errors import locate
from drakit.cel.guards import mentioned
from drakit.lint.expressions import parsed, selections
from drakit.lint.objects import Input, Object, claim_spec, items, mapping, text
from drakit.lint.rules.rule import Hit, Rule, Target

__all__ = ["RULES"]

_DOMAIN = "resource.kubernetes.io"
_OWN_NAMES = {
    "pcieRoot": {"pcieroot", "pciroot", "pcierootcomplex", "pcirootcomplex", "pcierootid", "pcirootid"},
    "pciBusID": {"pcibusid", "pciaddress", "pciaddr", "pcibdf", "bdf", "busid", "pcibus", "pcibusaddress"},
    "numaNode": {"numanode", "numa", "numaid", "numanodeid"},
}
_STANDARD = {own: standard for standard, names in _OWN_NAMES.items() for own in names}
_SINCE = {"numaNode": "1.37"}


def _own_names(data: Input, target: Target) -> Iterator[Hit]:
    seen: set[tuple[int, str]] = set()
    for slice_, path, _, device in data.devices:
        attributes = mapping(device, "attributes")
        for name in attributes:
            standard = _standard(name, target)
            if standard and f"{_DOMAIN}/{standard}" not in attributes and (id(slice_), name) not in seen:
                seen.add((id(slice_), name))  # once a slice: all its devices have the same names
                yield Hit(slice_, f"{path}.attributes[{name}]", _message(name, standard))
    for claim in data.claims:
        yield from _constraints(claim, target)
    yield from _selected(data, target)


def _constraints(claim: Object, target: Target) -> Iterator[Hit]:
    base, devices = claim_spec(claim)
    for index, constraint in enumerate(items(devices, "constraints")):
        for field in ("matchAttribute", "distinctAttribute"):
            name = text(constraint, field)
            standard = _standard(name, target)
            if standard and not name.startswith("derived/"):
                yield Hit(claim, f"{base}.constraints[{index}].{field}", _message(name, standard))


def _selected(data: Input, target: Target) -> Iterator[Hit]:
    """Selectors that look for a standard attribute under a name that is none."""
    for selection in selections(data):
        for each in selection.own:
            root = parsed(target.version, each.text)
            for _, domain, name, offset in () if root is None else mentioned(root):
                standard = _standard(f"{domain}/{name}", target) if domain == _DOMAIN else ""
                if standard:
                    message = f"{domain} has no attribute {name}: the standard one is {standard}"
                    yield Hit(each.object, each.path, message, locate(each.text, offset))


def _standard(name: str, target: Target) -> str:
    domain, _, identifier = name.rpartition("/")
    standard = _STANDARD.get(identifier.lower().replace("_", ""), "")
    if not standard or _SINCE.get(standard, "") > target.version or (domain == _DOMAIN and identifier == standard):
        return ""
    return standard


def _message(name: str, standard: str) -> str:
    return (
        f"{name} is {_DOMAIN}/{standard} by another name: constraints across drivers only match attributes of the "
        "same name, so publish and use the standard one"
    )


def _incomplete(data: Input, _: Target) -> Iterator[Hit]:
    pools: dict[tuple[str, str], list[tuple[int, int, Object]]] = {}
    for each in data.slices:
        pool = mapping(each.value, "spec", "pool")
        generation, count = pool.get("generation", 0), pool.get("resourceSliceCount", 0)
        if isinstance(generation, int) and isinstance(count, int):
            key = (text(each.value, "spec", "driver"), text(pool, "name"))
            pools.setdefault(key, []).append((generation, count, each))
    for (_driver, name), members in pools.items():
        newest = max(generation for generation, _, _ in members)
        current = [(count, each) for generation, count, each in members if generation == newest]
        count, first = current[0]
        if len(current) < count:
            yield Hit(
                first,
                "spec.pool.resourceSliceCount",
                f"pool {name} has {len(current)} of {count} slices of generation {newest} in the input: no device of "
                "an incomplete pool is allocated",
            )


RULES = (
    Rule("standard-attribute", "an own name for a standard resource.kubernetes.io/ attribute", _own_names),
    Rule("incomplete-pool", "a pool whose slices are not all in the input", _incomplete),
)
