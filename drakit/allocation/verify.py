"""Check an allocation against the rules, one by one and from scratch, without knowing how it was found.

`verify` says whether an allocation is allowed, not whether it is the one that upstream's order picks. It reads the
plain objects and the pure rules of this package, never the search (an import contract forbids it).
"""

from __future__ import annotations

import collections
import functools
from typing import TYPE_CHECKING, Any

import msgspec

from drakit import cel
from drakit.allocation import capacity, compatibility, constraints, nodes, taints
from drakit.allocation.features import OPTIONAL_NODE_OPERATIONS, Features
from drakit.allocation.requests import Constraint, claim_name
from drakit.allocation.sight import see_devices, see_pools
from drakit.allocation.state import AllocatedState
from drakit.api import core, limits, resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from drakit.allocation.sight import Identity, SeenDevice, SeenPool

__all__ = ["Inputs", "Violation", "verify"]


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """What an allocation was made from; slices already carry the taints of DeviceTaintRules."""

    node: core.Node
    claims: tuple[resource.ResourceClaim, ...]
    slices: tuple[resource.ResourceSlice, ...]
    classes: tuple[resource.DeviceClass, ...]
    allocated: AllocatedState = msgspec.field(default_factory=AllocatedState)
    features: Features = Features()


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that the allocation breaks; `device` is `driver/pool/device` when it is about one."""

    rule: str
    claim: str
    message: str
    request: str = ""
    device: str = ""


_Request = resource.ExactDeviceRequest | resource.DeviceSubRequest


@functools.cache
def _environment() -> cel.Environment:
    """One for all checks, since it keeps what it compiled."""
    return cel.Environment()


def verify(allocations: Sequence[resource.AllocationResult], inputs: Inputs) -> list[Violation]:
    """All rules that the allocations of `inputs.claims` on `inputs.node` break; empty when they are allowed."""
    return list(_Check(allocations, inputs).run())


class _Check:
    def __init__(self, allocations: Sequence[resource.AllocationResult], inputs: Inputs) -> None:
        self.allocations = allocations
        self.inputs = inputs
        self.features = inputs.features
        self.classes = {each.metadata.name: each for each in inputs.classes}
        self.node = inputs.node.metadata
        self.pools = see_pools(inputs.slices, self.node, self.features)
        self.devices = see_devices(self.pools, self.node)
        self.environment = _environment()

    def run(self) -> Iterator[Violation]:
        claims = self.inputs.claims
        if len(claims) != len(self.allocations):
            text = f"{len(self.allocations)} allocations for {len(claims)} claims"
            yield Violation(rule="one allocation per claim", claim="", message=text)
            return
        for claim, allocation in zip(claims, self.allocations, strict=True):
            yield from self._claim(claim, allocation)
        yield from self._exclusive()
        yield from self._shares()
        yield from self._counters()
        yield from self._groups()

    # One claim

    def _claim(self, claim: resource.ResourceClaim, allocation: resource.AllocationResult) -> Iterator[Violation]:
        name = claim_name(claim)
        results = allocation.devices.results
        if len(results) > limits.ALLOCATION_RESULTS:
            yield Violation(rule="32 results", claim=name, message=f"{len(results)} results")
        by_request: dict[str, list[resource.DeviceRequestAllocationResult]] = collections.defaultdict(list)
        for result in results:
            by_request[result.request].append(result)
        known: set[str] = set()
        for request in claim.spec.devices.requests:
            alternatives = _alternatives(request)
            known.update(alternatives)
            yield from self._request(name, request, alternatives, by_request)
        for request_name in by_request.keys() - known:
            yield Violation(rule="known request", claim=name, request=request_name, message="no such request")
        for index, constraint in enumerate(claim.spec.devices.constraints):
            yield from self._constraint(claim, index, constraint, results)
        if allocation.node_selector is not None and not nodes.selector_matches(
            allocation.node_selector, self.node.name, self.node.labels
        ):
            yield Violation(rule="node selector", claim=name, message="the node selector excludes the node")

    def _request(
        self,
        claim: str,
        request: resource.DeviceRequest,
        alternatives: Mapping[str, _Request],
        by_request: Mapping[str, list[resource.DeviceRequestAllocationResult]],
    ) -> Iterator[Violation]:
        used = [each for each in alternatives if by_request.get(each)]
        if len(used) > 1:
            yield Violation(rule="one alternative", claim=claim, request=request.name, message=" and ".join(used))
        if not used and all(each.allocation_mode == "All" or each.count > 0 for each in alternatives.values()):
            yield Violation(rule="every request", claim=claim, request=request.name, message="no devices")
        for name in used:
            results, wanted = by_request[name], alternatives[name]
            identities = [(each.driver, each.pool, each.device) for each in results]
            if len(set(identities)) != len(identities):
                yield Violation(rule="each device once per request", claim=claim, request=name, message=str(identities))
            if wanted.allocation_mode == "All":
                yield from self._everything(claim, name, wanted, set(identities))
            elif len(results) != wanted.count:
                text = f"{len(results)} devices instead of {wanted.count}"
                yield Violation(rule="count", claim=claim, request=name, message=text)
            for result in results:
                yield from self._device(claim, name, wanted, result)

    def _everything(self, claim: str, request: str, wanted: _Request, chosen: set[Identity]) -> Iterator[Violation]:
        """All must have exactly the devices that are selected and have the capacity before this call."""
        if any(pool.broken and not pool.obsolete for pool in self.pools.values()):
            yield Violation(rule="All needs whole pools", claim=claim, request=request, message="a pool is broken")
        expected = {
            identity
            for identity, found in self.devices.items()
            if self._selects(wanted, identity[0], found) is True and self._has_capacity(wanted, identity, found)
        }
        if expected != chosen:
            text = f"missing {sorted(expected - chosen)}, not asked for {sorted(chosen - expected)}"
            yield Violation(rule="All means all", claim=claim, request=request, message=text)

    def _device(
        self, claim: str, request: str, wanted: _Request, result: resource.DeviceRequestAllocationResult
    ) -> Iterator[Violation]:
        identity = (result.driver, result.pool, result.device)

        def broken(rule: str, message: str) -> Violation:
            return Violation(rule=rule, claim=claim, request=request, device="/".join(identity), message=message)

        found = self.devices.get(identity)
        if found is None:
            yield broken("the node sees it", "no such device in a usable pool of this node")
            return
        device, features = found.device, self.features
        selected = self._selects(wanted, result.driver, found)
        if selected is not True:
            yield broken("selectors", str(selected))
        if features.device_taints:
            taint = taints.untolerated(taints.blocking(device.taints), wanted.tolerations)
            if taint is not None:
                yield broken("taints", f"{taint.key}={taint.value}:{taint.effect} is not tolerated")
        if device.consumes_counters and not features.partitionable_devices:
            yield broken("gate", "the device consumes counters")
        if device.binding_conditions and not features.device_binding_and_status:
            yield broken("gate", "the device has binding conditions")
        if found.slice.spec.skip_node_operations:
            if not features.optional_node_operations:
                yield broken("gate", "the slice skips node operations")
            elif OPTIONAL_NODE_OPERATIONS not in self.inputs.node.status.declared_features:
                yield broken("node feature", "the node cannot skip operations")
        admin = bool(getattr(wanted, "admin_access", None))
        if bool(result.admin_access) != admin:
            yield broken("adminAccess is copied", f"{result.admin_access}")
        if result.tolerations != wanted.tolerations:
            yield broken("tolerations are copied", str(result.tolerations))
        copied = (result.binding_conditions, result.binding_failure_conditions)
        if features.device_binding_and_status and copied != (
            device.binding_conditions,
            device.binding_failure_conditions,
        ):
            yield broken("binding conditions are copied", str(copied))
        if features.optional_node_operations and result.skip_node_operations != found.slice.spec.skip_node_operations:
            yield broken("skipNodeOperations are copied", str(result.skip_node_operations))
        yield from self._share(broken, wanted, result, device)

    def _share(
        self, broken: Any, wanted: _Request, result: resource.DeviceRequestAllocationResult, device: resource.Device
    ) -> Iterator[Violation]:
        if not self.features.consumable_capacity:
            return
        consumed = self._consumption(wanted, device)
        if not isinstance(consumed, capacity.Consumption):
            yield broken("capacity request", str(consumed))
            return
        if any(amount > value for amount, value in zip(consumed.amounts, consumed.values, strict=True)):
            yield broken("capacity", "the device is too small")
        if not device.allow_multiple_allocations:
            if result.share_id is not None or result.consumed_capacity:
                yield broken("dedicated devices are not shared", str(result.share_id))
            return
        if result.share_id is None:
            yield broken("shares have an ID", "no share ID")
        amounts = {name: quantity.nano for name, quantity in result.consumed_capacity.items()}
        if amounts != dict(zip(consumed.names, consumed.amounts, strict=True)):
            yield broken("consumed capacity", str(result.consumed_capacity))

    def _selects(self, wanted: _Request, driver: str, found: SeenDevice) -> bool | str:
        class_ = self.classes.get(wanted.device_class_name)
        if class_ is None:
            return f"class {wanted.device_class_name} does not exist"
        view = cel.device_view(driver, found.device)
        for selector in (*class_.spec.selectors, *wanted.selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            try:
                if not self.environment.compile(expression).evaluate(view):
                    return f"{expression} is false"
            except (cel.CompileError, cel.EvaluationError) as error:
                return f"{expression}: {error}"
        return True

    def _consumption(self, wanted: _Request, device: resource.Device) -> Any:
        requests = wanted.capacity.requests if wanted.capacity is not None else None
        return capacity.consume(device.capacity, requests or None, fractional=self.features.fractional_capacity_range)

    def _has_capacity(self, wanted: _Request, identity: Identity, found: SeenDevice) -> bool:
        if not self.features.consumable_capacity:
            return True
        consumed = self._consumption(wanted, found.device)
        held = self._held(identity)
        return isinstance(consumed, capacity.Consumption) and all(
            held.get(name, 0) + amount <= value
            for name, amount, value in zip(consumed.names, consumed.amounts, consumed.values, strict=True)
        )

    def _held(self, identity: Identity) -> dict[str, int]:
        use = self.inputs.allocated.pools.get(identity[:2])
        return use.consumed(identity[2]) if use is not None else {}

    # Constraints

    def _constraint(
        self,
        claim: resource.ResourceClaim,
        index: int,
        constraint: resource.DeviceConstraint,
        results: Iterable[resource.DeviceRequestAllocationResult],
    ) -> Iterator[Violation]:
        distinct = constraint.match_attribute is None
        attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        rule = Constraint(index, index, attribute, constraint.requests, distinct=distinct)
        values: list[tuple[str, frozenset[tuple[str, Any]] | None]] = []
        for result in results:
            if not rule.applies_to(result.request.partition("/")[0], result.request):
                continue
            found = self.devices.get((result.driver, result.pool, result.device))
            if found is not None:
                values.append((result.device, self._values(rule, claim, result, found)))
        problem = _contradiction(values, distinct=distinct)
        if problem:
            yield Violation(
                rule="distinctAttribute" if distinct else "matchAttribute",
                claim=claim_name(claim),
                message=f"constraint #{index} on {attribute}: {problem}",
            )

    def _values(
        self,
        rule: Constraint,
        claim: resource.ResourceClaim,
        result: resource.DeviceRequestAllocationResult,
        found: SeenDevice,
    ) -> frozenset[tuple[str, Any]] | None:
        lists = self.features.list_type_attributes
        if self.features.derived_attributes:
            for request in claim.spec.devices.requests:
                wanted = _alternatives(request).get(result.request)
                for derived in wanted.derived_attributes if wanted is not None else ():
                    if derived.name == rule.attribute:
                        return self._derived(derived.expression, result.driver, found)
        attribute = constraints.lookup(found.device, result.driver, rule)
        return constraints.attribute_values(attribute, lists=lists) if attribute is not None else None

    def _derived(self, expression: str, driver: str, found: SeenDevice) -> frozenset[tuple[str, Any]] | None:
        """Values of a derived attribute, None when it cannot be computed."""
        try:
            value = self.environment.compile(expression, "value").attribute(cel.device_view(driver, found.device))
        except (cel.CompileError, cel.EvaluationError):
            return None
        return constraints.attribute_values(value, lists=self.features.list_type_attributes)

    # All claims together

    def _uses(self) -> Iterator[tuple[int, resource.DeviceRequestAllocationResult]]:
        for index, allocation in enumerate(self.allocations):
            for result in allocation.devices.results:
                yield index, result

    def _exclusive(self) -> Iterator[Violation]:
        """Whole devices have one user; adminAccess may use what others have, though not twice in a claim."""
        taken: dict[Identity, set[int]] = collections.defaultdict(set)
        for index, result in self._uses():
            identity = (result.driver, result.pool, result.device)
            found = self.devices.get(identity)
            use = self.inputs.allocated.pools.get(identity[:2])
            shareable = (
                self.features.consumable_capacity and found is not None and found.device.allow_multiple_allocations
            )
            held = use is not None and (
                result.device in use.exclusive
                or (not self.features.consumable_capacity and result.device in use.shared)
            )
            problem = ""
            if not result.admin_access and held:
                problem = "it is held by " + ", ".join(use.holders(result.device)) if use else ""
            elif not shareable and (index in taken[identity] if result.admin_access else taken[identity]):
                problem = "it is taken already"
            if problem:
                yield Violation(
                    rule="one user",
                    claim=claim_name(self.inputs.claims[index]),
                    request=result.request,
                    device="/".join(identity),
                    message=problem,
                )
            if not shareable:
                taken[identity].add(index)

    def _shares(self) -> Iterator[Violation]:
        """What all users of a shareable device consume fits into it, and share IDs are unique."""
        totals: dict[Identity, dict[str, int]] = {}
        identifiers: set[tuple[Identity, str]] = set()
        for index, result in self._uses():
            identity = (result.driver, result.pool, result.device)
            found = self.devices.get(identity)
            if result.share_id is None or found is None:
                continue
            claim = claim_name(self.inputs.claims[index])
            if (identity, result.share_id) in identifiers:
                yield Violation(rule="share IDs are unique", claim=claim, device="/".join(identity), message="")
            identifiers.add((identity, result.share_id))
            total = totals.setdefault(identity, dict(self._held(identity)))
            for name, quantity in result.consumed_capacity.items():
                total[name] = total.get(name, 0) + quantity.nano
                declared = found.device.capacity.get(name)
                if declared is not None and total[name] > declared.value.nano:
                    yield Violation(
                        rule="capacity", claim=claim, device="/".join(identity), message=f"{name} is used up"
                    )

    def _drawing(self) -> Iterator[tuple[str, SeenPool, list[tuple[resource.Device, bool]]]]:
        """Per pool the devices that draw counters: allocated before (False), or in this call (True)."""
        if not self.features.partitionable_devices:
            return
        for (driver, name), pool in self.pools.items():
            use = self.inputs.allocated.pools.get((driver, name))
            drawing: list[tuple[resource.Device, bool]] = []
            before: set[str] = set()
            for device in (device for each in pool.slices for device in each.spec.devices):
                if use is not None and (device.name in use.exclusive or device.name in use.shared):
                    before.add(device.name)
                    drawing.append((device, False))
            shared: set[str] = set()
            for _, result in self._uses():
                found = self.devices.get((driver, name, result.device))
                if found is None or (result.driver, result.pool) != (driver, name):
                    continue
                if result.share_id is not None:
                    if result.device in shared or self._held((driver, name, result.device)):
                        continue
                    shared.add(result.device)
                drawing.append((found.device, True))
            yield f"{driver}/{name}", pool, drawing

    def _counters(self) -> Iterator[Violation]:
        for name, pool, drawing in self._drawing():
            if not any(new and device.consumes_counters for device, new in drawing):
                continue
            left = {
                (each.name, counter): amount.value.nano
                for slice_ in pool.slices
                for each in slice_.spec.shared_counters
                for counter, amount in each.counters.items()
            }
            for device, _ in drawing:
                for entry in device.consumes_counters:
                    for counter, amount in entry.counters.items():
                        left[entry.counter_set, counter] -= amount.value.nano
            for (counter_set, counter), amount_left in left.items():
                if amount_left < 0:
                    text = f"counter {counter} of {counter_set} in pool {name} is overdrawn"
                    yield Violation(rule="counters", claim="", message=text)

    def _groups(self) -> Iterator[Violation]:
        if not self.features.device_compatibility_groups:
            return
        for name, _, drawing in self._drawing():
            possible: dict[str, frozenset[str]] = {}
            conflicting: set[str] = set()
            for device, new in drawing:
                for entry in device.consumes_counters:
                    groups = frozenset(entry.compatibility_groups)
                    fits, joined = compatibility.join(possible.get(entry.counter_set), groups)
                    if new and (not fits or entry.counter_set in conflicting):
                        text = f"{device.name} does not go with the other devices on {entry.counter_set} of pool {name}"
                        yield Violation(rule="compatibility groups", claim="", device=device.name, message=text)
                    if not fits:
                        conflicting.add(entry.counter_set)
                    possible[entry.counter_set] = joined


def _contradiction(values: Sequence[tuple[str, frozenset[tuple[str, Any]] | None]], *, distinct: bool) -> str:
    """Why values do not satisfy a constraint, empty when they do."""
    for device, each in values:
        if each is None:
            return f"{device} does not have the attribute"
        if not each and not distinct:
            return f"{device} has a value of unknown type"
    known = [(device, each) for device, each in values if each is not None]
    odd = [device for device, each in known if each is constraints.FIRST_ONLY or not each]
    if not distinct:
        if odd and len(known) > 1:
            return f"{odd[0]} has a value that cannot be compared"
        common = frozenset.intersection(*(each for _, each in known)) if known else frozenset({("", "")})
        return "" if common else "no common value"
    if odd and odd != [known[0][0]]:
        return f"{odd[0]} has a value that cannot be compared"
    seen: set[tuple[str, Any]] = set()
    for device, each in known:
        if device not in odd and seen & each:
            return f"{device} repeats a value"
        seen |= each if device not in odd else set()
    return ""


def _alternatives(request: resource.DeviceRequest) -> dict[str, _Request]:
    """What can satisfy a request, by the name in results."""
    if request.first_available:
        return {f"{request.name}/{each.name}": each for each in request.first_available}
    return {request.name: request.exactly} if request.exactly is not None else {}
