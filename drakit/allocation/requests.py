"""Claims compiled for the search: slots (requests) with variants (the request itself, or its alternatives).

Compiling also does the validation of spec/allocator.md 1.3. What depends on devices (`allocationMode: All`) is decided
per node, so a fault is kept with its place and raised when the validation pass of a node gets there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drakit import api
from drakit.allocation.errors import AllocationError
from drakit.allocation.reads import plan_reads
from drakit.api import limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drakit.allocation.contents import Contents, Needs
    from drakit.allocation.features import Features
    from drakit.api import resource

__all__ = ["ALL", "EXACT_COUNT", "ClaimPlan", "Constraint", "Plan", "Slot", "Variant", "claim_name", "compile_claims"]

ALL: Final = "All"
EXACT_COUNT: Final = "ExactCount"
_MAX_COUNT: Final = 2**63 - 1


class Constraint:
    """One match or distinct constraint of a claim.

    Attributes:
        index: Position in the claim.
        number: Position among the constraints of all claims of the plan.
        attribute: Fully qualified name.
        distinct: Values must differ; else they must be equal.
        names: Requests and `request/subrequest` that it applies to; empty for all.
    """

    __slots__ = ("attribute", "distinct", "domain", "identifier", "index", "names", "number")

    def __init__(self, index: int, number: int, attribute: str, names: tuple[str, ...], *, distinct: bool) -> None:
        self.index = index
        self.number = number
        self.attribute = attribute
        self.distinct = distinct
        self.names = frozenset(names)
        self.domain, _, self.identifier = attribute.partition("/")

    def applies_to(self, request: str, name: str) -> bool:
        """Whether it covers the request, or the chosen `request/subrequest`."""
        return not self.names or request in self.names or name in self.names


class Variant:
    """One way to satisfy a slot.

    Attributes:
        name: Name in results: `request` or `request/subrequest`.
        label: Name in messages: the request, or the subrequest alone.
        count: Devices needed with ExactCount.
        every: `allocationMode: All`.
        fault: Why the validation pass fails here, or None.
    """

    __slots__ = (
        "admin",
        "claim",
        "claim_name",
        "class_",
        "constraints",
        "count",
        "every",
        "fault",
        "index",
        "label",
        "name",
        "needs",
        "number",
        "path",
        "request",
        "slot",
    )

    claim: int
    claim_name: str
    slot: int
    index: int
    number: int
    name: str
    label: str
    path: str
    request: resource.ExactDeviceRequest | resource.DeviceSubRequest
    class_: resource.DeviceClass | None
    needs: Needs
    count: int
    every: bool
    admin: bool
    constraints: tuple[Constraint, ...]
    fault: AllocationError | None


class Slot:
    """One request of one claim.

    Attributes:
        number: Position among the slots of all claims.
        prioritized: It is a firstAvailable request.
        fault: A gate forbids the request.
    """

    __slots__ = ("claim", "fault", "index", "number", "prioritized", "request", "variants")

    def __init__(self, claim: int, index: int, number: int, request: resource.DeviceRequest) -> None:
        self.claim = claim
        self.index = index
        self.number = number
        self.request = request
        self.prioritized = bool(request.first_available)
        self.fault: AllocationError | None = None
        self.variants: tuple[Variant, ...] = ()


class ClaimPlan:
    """One claim: its slots, its constraints, and what is wrong with it.

    `configurations` keeps what was merged for results, by the alternatives chosen.
    """

    __slots__ = ("claim", "configurations", "constraints", "fault", "index", "name", "slots")

    def __init__(self, index: int, claim: resource.ResourceClaim) -> None:
        self.index = index
        self.claim = claim
        self.name = claim_name(claim)
        self.slots: tuple[Slot, ...] = ()
        self.constraints: tuple[Constraint, ...] = ()
        self.configurations: dict[tuple[int, ...], tuple[resource.DeviceAllocationConfiguration, ...]] = {}
        self.fault: AllocationError | None = None


class Plan:
    """All claims of one attempt.

    Attributes:
        slots: The slots of all claims, in search order.
        variants: All variants, by `number`.
        constraints: All constraints, by `number`.
        token: Equal for plans that differ in nothing but the names of their claims.
        straightforward: No faults and nothing asks for all devices: the validation pass can only fail on counts.
    """

    __slots__ = ("claims", "constraints", "has_admin", "slots", "straightforward", "token", "variants")

    def __init__(self, claims: tuple[ClaimPlan, ...]) -> None:
        self.claims = claims
        self.token: object = self
        self.slots = tuple(slot for claim in claims for slot in claim.slots)
        self.variants = tuple(variant for slot in self.slots for variant in slot.variants)
        self.constraints = tuple(constraint for claim in claims for constraint in claim.constraints)
        self.has_admin = any(variant.admin for variant in self.variants)
        faults = [claim.fault for claim in claims] + [slot.fault for slot in self.slots]
        faults += [variant.fault for variant in self.variants]
        self.straightforward = not any(faults) and not any(variant.every for variant in self.variants)
        if self.straightforward:
            for claim in claims:
                check_count(claim, [[variant.count for variant in slot.variants] for slot in claim.slots])


def claim_name(claim: resource.ResourceClaim) -> str:
    """`namespace/name`, or the name alone without a namespace."""
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def check_count(claim: ClaimPlan, counts: Sequence[Sequence[int]]) -> None:
    """Refuse a claim whose requests need more devices than a result can hold, even with the smallest alternatives.

    Raises:
        AllocationError: They do.
    """
    total = sum(min(alternatives) for alternatives in counts)
    if total > limits.ALLOCATION_RESULTS:
        raise AllocationError(
            f"claim {claim.name}: number of requested devices {total} exceeds the claim limit of "
            f"{limits.ALLOCATION_RESULTS}",
            claim=claim.name,
            path="spec.devices.requests",
        )


def compile_claims(
    claims: Sequence[resource.ResourceClaim],
    classes: Mapping[str, resource.DeviceClass],
    contents: Contents,
) -> Plan:
    """Compile claims for the search.

    Raises:
        AllocationError: A claim can never be allocated because of its counts.
    """
    compiler = _Compiler(classes, contents)
    plan = Plan(tuple(compiler.claim(index, claim) for index, claim in enumerate(claims)))
    contents.widen(plan_reads(plan))
    if plan.straightforward:
        used = {id(variant.class_): variant.class_ for variant in plan.variants}
        plan.token = contents.token(
            (tuple([api.shape(claim.spec) for claim in claims]), tuple([_Same(class_) for class_ in used.values()]))
        )
    return plan


class _Same:
    """Equal to wrappers of the very same object."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


class _Compiler:
    def __init__(self, classes: Mapping[str, resource.DeviceClass], contents: Contents) -> None:
        self._classes = classes
        self._contents = contents
        self._features: Features = contents.features
        self._slots = 0
        self._variants = 0
        self._constraints = 0

    def claim(self, index: int, claim: resource.ResourceClaim) -> ClaimPlan:
        plan = ClaimPlan(index, claim)
        constraints = []
        for position, constraint in enumerate(claim.spec.devices.constraints):
            compiled = self._constraint(position, constraint)
            if compiled is None:
                plan.fault = AllocationError(
                    f"claim {plan.name}, constraint #{position}: empty constraint (unsupported constraint type?)",
                    claim=plan.name,
                    path=f"spec.devices.constraints[{position}]",
                )
                break
            constraints.append(compiled)
        plan.constraints = tuple(constraints)
        plan.slots = tuple(
            self._slot(plan, position, request) for position, request in enumerate(claim.spec.devices.requests)
        )
        return plan

    def _constraint(self, index: int, constraint: resource.DeviceConstraint) -> Constraint | None:
        attribute = constraint.match_attribute
        distinct = attribute is None
        if attribute is None:
            attribute = constraint.distinct_attribute
        if attribute is None:
            return None
        self._constraints += 1
        return Constraint(index, self._constraints - 1, attribute, constraint.requests, distinct=distinct)

    def _slot(self, plan: ClaimPlan, index: int, request: resource.DeviceRequest) -> Slot:
        slot = Slot(plan.index, index, self._slots, request)
        self._slots += 1
        path = f"spec.devices.requests[{index}]"
        slot.fault = self._gate_fault(plan, request, path)
        if slot.prioritized:
            slot.variants = tuple(
                self._variant(plan, slot, alternative, position, f"{path}.firstAvailable[{position}]")
                for position, alternative in enumerate(request.first_available)
            )
        elif request.exactly is not None:
            slot.variants = (self._variant(plan, slot, request.exactly, 0, f"{path}.exactly"),)
        else:
            slot.fault = slot.fault or self._missing_class(plan, request.name, path)
        return slot

    def _gate_fault(self, plan: ClaimPlan, request: resource.DeviceRequest, path: str) -> AllocationError | None:
        """Features that the request uses although they are off."""
        where = f"claim {plan.name}, request {request.name}"
        if request.first_available and not self._features.prioritized_list:
            return _fault(
                plan, f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled", request, path
            )
        asked: list[tuple[str, str, resource.ExactDeviceRequest | resource.DeviceSubRequest]] = []
        if request.exactly is not None:
            asked.append((where, f"{path}.exactly", request.exactly))
        for index, alternative in enumerate(request.first_available):
            named = f"claim {plan.name}, subrequest {alternative.name}"
            asked.append((named, f"{path}.firstAvailable[{index}]", alternative))
        for named, place, each in asked:
            if each.capacity is not None and not self._features.consumable_capacity:
                text = f"{named}: has capacity requests, but the DRAConsumableCapacity feature is disabled"
                return _fault(plan, text, request, f"{place}.capacity")
        for named, place, each in asked:
            if each.derived_attributes and not self._features.derived_attributes:
                text = f"{named}: has derived attributes, but the DRADerivedAttributes feature is disabled"
                return _fault(plan, text, request, f"{place}.derivedAttributes")
        return None

    def _variant(
        self,
        plan: ClaimPlan,
        slot: Slot,
        request: resource.ExactDeviceRequest | resource.DeviceSubRequest,
        index: int,
        path: str,
    ) -> Variant:
        parent = slot.request.name
        variant = Variant()
        variant.claim_name = plan.name
        variant.claim, variant.slot, variant.index, variant.number = plan.index, slot.number, index, self._variants
        self._variants += 1
        variant.label = parent if not slot.prioritized else getattr(request, "name", "")
        variant.name = f"{parent}/{variant.label}" if slot.prioritized else parent
        variant.path = path
        variant.request = request
        variant.admin = bool(getattr(request, "admin_access", None))
        requests = request.capacity.requests if request.capacity is not None else None
        capacity = tuple(sorted((name, str(each)) for name, each in requests.items())) if requests else None
        variant.every = request.allocation_mode == ALL
        variant.count = request.count
        variant.constraints = tuple(each for each in plan.constraints if each.applies_to(parent, variant.name))
        variant.class_ = self._classes.get(request.device_class_name)
        variant.fault = self._variant_fault(plan, variant, request, path)
        if variant.fault is None:
            assert variant.class_ is not None
            selectors = self._contents.selectors(
                tuple(each.cel.expression if each.cel else "" for each in variant.class_.spec.selectors),
                tuple(each.cel.expression for each in request.selectors if each.cel is not None),
                tuple((each.name, each.expression) for each in request.derived_attributes),
            )
            variant.needs = self._contents.needs(selectors, request.tolerations, capacity, admin=variant.admin)
        return variant

    def _variant_fault(
        self,
        plan: ClaimPlan,
        variant: Variant,
        request: resource.ExactDeviceRequest | resource.DeviceSubRequest,
        path: str,
    ) -> AllocationError | None:
        """The first fault, in upstream's order; counts of All are not known yet."""
        where = f"claim {plan.name}, request {variant.label}"

        def fault(text: str, place: str) -> AllocationError:
            return AllocationError(text, claim=plan.name, request=variant.name, path=f"{path}.{place}")

        for index, selector in enumerate(request.selectors):
            if selector.cel is None:
                text = f"{where}, selector #{index}: CEL expression empty (unsupported selector type?)"
                return fault(text, f"selectors[{index}]")
        if getattr(request, "admin_access", None) is not None and not self._features.admin_access:
            return fault(f"{where}: admin access is requested, but the feature is disabled", "adminAccess")
        name = request.device_class_name
        if not name:
            return self._missing_class(plan, variant.label, f"{path}.deviceClassName")
        if variant.class_ is None:
            text = f'{where}: could not retrieve device class {name}: deviceclass.resource.k8s.io "{name}" not found'
            return fault(text, "deviceClassName")
        if request.allocation_mode == EXACT_COUNT:
            if request.count > _MAX_COUNT:
                return fault(f"{where}: exact count {request.count} is too large", "count")
        elif request.allocation_mode != ALL:
            return fault(f"{where}: unsupported count mode {request.allocation_mode}", "allocationMode")
        return None

    def _missing_class(self, plan: ClaimPlan, label: str, path: str) -> AllocationError:
        return AllocationError(
            f"claim {plan.name}, request {label}: missing device class name (unsupported request type?)",
            claim=plan.name,
            request=label,
            path=path,
        )


def _fault(plan: ClaimPlan, text: str, request: resource.DeviceRequest, path: str) -> AllocationError:
    return AllocationError(text, claim=plan.name, request=request.name, path=path)
