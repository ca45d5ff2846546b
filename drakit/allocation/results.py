"""What ends in a claim's status: device results, configuration, node selector (spec/allocator.md 1.13 to 1.16)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from drakit.allocation.errors import AllocationError
from drakit.api import core, resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from drakit.allocation.features import Features
    from drakit.allocation.pools import Pool
    from drakit.allocation.requests import ClaimPlan, Plan, Variant
    from drakit.allocation.search import Choice, Problem

__all__ = ["Template", "new_share_id"]


def new_share_id() -> str:
    """A random UUID (version 4)."""
    text = bytearray(os.urandom(16))
    text[6] = text[6] & 0x0F | 0x40
    text[8] = text[8] & 0x3F | 0x80
    digits = text.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


class Template:
    """A found allocation without the names of pools and nodes, so that alike nodes can share it.

    Attributes:
        choices: Per claim, `(pool position, index in the pool, result without pool)`.
        config: Per claim, the merged configuration.
    """

    __slots__ = ("_entries",)

    def __init__(self, plan: Plan, problem: Problem, choices: Sequence[Choice], features: Features) -> None:
        chosen: dict[int, Variant] = {}
        entries: list[list[_Entry]] = [[] for _ in plan.claims]
        for choice in choices:
            chosen[choice.variant.slot] = choice.variant
            pool, index = problem.place(choice.device)
            entries[choice.variant.claim].append(_Entry(choice, pool, index, problem, features))
        self._entries = [
            (tuple(found), _configuration(claim, chosen)) for claim, found in zip(plan.claims, entries, strict=True)
        ]

    def render(
        self, plan: Plan, pools: Sequence[Pool], node: str, share_id: Callable[[], str]
    ) -> list[resource.AllocationResult]:
        """The results for one node; `plan` is one whose claims are alike those of the search.

        Raises:
            AllocationError: A chosen slice has a node selector with several terms.
        """
        rendered = []
        local: core.NodeSelector | None = None
        for claim, (entries, config) in zip(plan.claims, self._entries, strict=True):
            results = tuple([entry.render(pools[entry.pool], share_id) for entry in entries])
            selectors: list[core.NodeSelector] = []
            bound = False
            for entry in entries:
                placed = entry.placed(pools[entry.pool])
                if placed.node_name is not None or entry.binds:
                    bound = True
                    break
                if placed.node_selector is not None:
                    selectors.append(_single_term(placed.node_selector, claim))
            if bound:
                local = local or _only(node)
            selector = local if bound else _merge_node_selectors(selectors)
            devices = resource.DeviceAllocationResult(results=results, config=config)
            rendered.append(resource.AllocationResult(devices=devices, node_selector=selector))
        return rendered


class _Entry:
    """One device of a template."""

    __slots__ = ("_device", "_per_device", "_plain", "_result", "_shared", "binds", "index", "pool")

    def __init__(self, choice: Choice, pool: int, index: int, problem: Problem, features: Features) -> None:
        content = problem.condition(pool).content
        device = content.devices[index].device
        variant, consumption = choice.variant, choice.consumption
        self.pool = pool
        self.index = index
        self.binds = bool(device.binds_to_node)
        self._device = device
        self._shared = consumption is not None
        self._plain = not (
            consumption
            or variant.admin
            or variant.needs.tolerations
            or device.binding_conditions
            or device.binding_failure_conditions
            or content.slices[content.slice_of[index]].spec.skip_node_operations
        )
        slice_ = content.slices[content.slice_of[index]].spec
        self._per_device = bool(slice_.per_device_node_selection)
        conditions = features.device_binding_and_status
        self._result = resource.DeviceRequestAllocationResult(
            request=variant.name,
            driver=content.devices[index].driver,
            pool="",
            device=device.name,
            admin_access=True if variant.admin else None,
            tolerations=variant.needs.tolerations,
            binding_conditions=device.binding_conditions if conditions else (),
            binding_failure_conditions=device.binding_failure_conditions if conditions else (),
            consumed_capacity=dict(zip(consumption.names, consumption.quantities, strict=True)) if consumption else {},
            skip_node_operations=slice_.skip_node_operations if features.optional_node_operations else (),
        )

    def placed(self, pool: Pool) -> resource.ResourceSliceSpec | resource.Device:
        """Where the node data are: on the slice, or on the device with perDeviceNodeSelection."""
        return self._device if self._per_device else pool.slice_of(self.index).spec

    def render(self, pool: Pool, share_id: Callable[[], str]) -> resource.DeviceRequestAllocationResult:
        """The result with the pool's name and a share ID of its own."""
        result = self._result
        if self._plain:
            return resource.DeviceRequestAllocationResult(
                request=result.request, driver=result.driver, pool=pool.name, device=result.device
            )
        return resource.DeviceRequestAllocationResult(
            request=result.request,
            driver=result.driver,
            pool=pool.name,
            device=result.device,
            admin_access=result.admin_access,
            tolerations=result.tolerations,
            binding_conditions=result.binding_conditions,
            binding_failure_conditions=result.binding_failure_conditions,
            share_id=share_id() if self._shared else None,
            consumed_capacity=result.consumed_capacity,
            skip_node_operations=result.skip_node_operations,
        )


def _configuration(claim: ClaimPlan, chosen: dict[int, Variant]) -> tuple[resource.DeviceAllocationConfiguration, ...]:
    """The merged configuration, computed once per combination of alternatives."""
    key = tuple([chosen[slot.number].index if slot.number in chosen else 0 for slot in claim.slots])
    found = claim.configurations.get(key)
    if found is None:
        found = claim.configurations[key] = merge_configuration(claim, chosen)
    return found


def merge_configuration(
    claim: ClaimPlan, chosen: dict[int, Variant]
) -> tuple[resource.DeviceAllocationConfiguration, ...]:
    """Class configuration first, each class once with all its requests, then that of the claim; 1.37 form.

    Requests that were satisfied with no device (count 0) still choose their first alternative.
    """
    picked = [chosen.get(slot.number, slot.variants[0]) for slot in claim.slots]
    names = {each.name for each in picked} | {slot.request.name for slot in claim.slots}
    merged: list[tuple[str, list[str], resource.OpaqueDeviceConfiguration | None]] = []
    by_class: dict[str, list[list[str]]] = {}
    for variant in picked:
        if variant.class_ is None:
            continue
        lists = by_class.get(variant.class_.metadata.name)
        if lists is not None:
            for several in lists:
                several.append(variant.name)
            continue
        lists = by_class[variant.class_.metadata.name] = []
        lists += [[variant.name] for _ in variant.class_.spec.config]
        merged += [
            ("FromClass", several, config.opaque)
            for several, config in zip(lists, variant.class_.spec.config, strict=True)
        ]
    for own in claim.claim.spec.devices.config:
        if not own.requests or not names.isdisjoint(own.requests):
            merged.append(("FromClaim", list(own.requests), own.opaque))
    return tuple(
        resource.DeviceAllocationConfiguration(
            source=source,
            requests=() if _covers_all(requests, claim, picked) else tuple(requests),
            opaque=opaque,
        )
        for source, requests, opaque in merged
    )


def _covers_all(requests: list[str], claim: ClaimPlan, picked: Sequence[Variant]) -> bool:
    return all(
        slot.request.name in requests or variant.name in requests
        for slot, variant in zip(claim.slots, picked, strict=True)
    )


def _merge_node_selectors(selectors: Iterable[core.NodeSelector]) -> core.NodeSelector | None:
    """One term with the requirements of all selectors, each once; None when there are none."""
    fields: list[core.NodeSelectorRequirement] = []
    expressions: list[core.NodeSelectorRequirement] = []
    for selector in selectors:
        for term in selector.node_selector_terms:
            _add_missing(fields, term.match_fields)
            _add_missing(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = core.NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return core.NodeSelector(node_selector_terms=(term,))


def _add_missing(
    merged: list[core.NodeSelectorRequirement], requirements: Iterable[core.NodeSelectorRequirement]
) -> None:
    for requirement in requirements:
        if not any(
            each.key == requirement.key
            and each.operator == requirement.operator
            and set(each.values) == set(requirement.values)
            for each in merged
        ):
            merged.append(requirement)


def _single_term(selector: core.NodeSelector, claim: ClaimPlan) -> core.NodeSelector:
    terms = len(selector.node_selector_terms)
    if terms > 1:
        raise AllocationError(
            f"create NodeSelector for claim {claim.claim.metadata.name}: "
            f"unsupported ResourceSlice.NodeSelector with {terms} terms",
            claim=claim.name,
            path="spec.nodeSelector.nodeSelectorTerms",
        )
    return selector


def _only(node: str) -> core.NodeSelector:
    requirement = core.NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return core.NodeSelector(node_selector_terms=(core.NodeSelectorTerm(match_fields=(requirement,)),))
