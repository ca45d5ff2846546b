"""Explanations hold what they say, on small random clusters: reasons, conflicts and changes are checked by allocating."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.allocation import AllocatedState, AllocationError, Allocator, Inputs, NodeError, verify
from drakit.allocation.explain import DropConstraint, DropSelector, FreeDevice, LowerCapacity, LowerCount, Tolerate
from drakit.api import core, meta, resource
from drakit.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from drakit.allocation.explain import Change, Conflict, Report

SEEDS = st.integers(min_value=0, max_value=2**40)
NODE = core.Node(metadata=meta.ObjectMeta(name="node-1"))
FAST = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _allocator(world: SimpleNamespace, allocated: Iterable[resource.ResourceClaim] | None = None) -> Allocator:
    state = AllocatedState.of(world.allocated if allocated is None else allocated)
    share_id = map(str, itertools.count()).__next__
    return Allocator(world.slices, world.classes, state, world.features, share_id=share_id)


def _allocate(world: SimpleNamespace, claims: Any, allocated: Any = None) -> Any:
    """The results, None, or the error."""
    try:
        return _allocator(world, allocated).allocate(NODE, claims)
    except (AllocationError, NodeError) as error:
        return error


def _fits(world: SimpleNamespace, claims: Any, allocated: Any = None) -> bool:
    return isinstance(_allocate(world, claims, allocated), list)


def _rough(world: SimpleNamespace, seed: int) -> SimpleNamespace:
    """The cluster with slices that contradict each other, are for other nodes, or need what the node has not."""
    chance = random.Random(seed)
    slices, missing = [], set()
    for index, each in enumerate(world.slices):
        spec = each.spec
        kind = chance.choice(("none", "none", "incomplete", "duplicate", "per device", "obsolete", "skip", "counter"))
        if kind == "incomplete":
            missing.add(spec.pool.name)
        elif kind == "duplicate" and spec.devices:
            spec = _replace(spec, devices=(*spec.devices, spec.devices[0]))
        elif kind == "per device":
            placed = tuple(
                _replace(device, node_name=chance.choice(("node-1", "node-1", "node-2"))) for device in spec.devices
            )
            spec = _replace(spec, node_name=None, per_device_node_selection=True, devices=placed)
        elif kind == "skip":
            spec = _replace(spec, skip_node_operations=("NodePrepareResources", "NodeUnprepareResources"))
        elif kind == "obsolete":
            newer = _replace(spec, node_name="node-2", pool=_replace(spec.pool, generation=2, resource_slice_count=1))
            slices.append(_replace(each, metadata=meta.ObjectMeta(name=f"newer-{index}"), spec=newer))
        elif kind == "counter" and spec.devices:
            drawn = resource.DeviceCounterConsumption(
                counter_set="nowhere", counters={"a": resource.Counter(value=Quantity.parse("1"))}
            )
            spec = _replace(spec, devices=(_replace(spec.devices[0], consumes_counters=(drawn,)), *spec.devices[1:]))
        slices.append(_replace(each, spec=spec))
    for index, each in enumerate(slices):
        pool = each.spec.pool
        if pool.name in missing:
            announced = _replace(pool, resource_slice_count=pool.resource_slice_count + 1)
            slices[index] = _replace(each, spec=_replace(each.spec, pool=announced))
    return SimpleNamespace(**{**vars(world), "slices": slices})


def _replace(value: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(value, **fields)


def _explain(world: SimpleNamespace) -> Report:
    return _allocator(world).explain(NODE, world.claims)


@FAST
@given(seed=SEEDS)
def test_the_outcome_is_what_allocate_says(make_world: Callable[..., SimpleNamespace], seed: int) -> None:
    world = _rough(make_world(seed, size=6), seed) if seed % 2 else make_world(seed, size=6)
    report = _explain(world)
    found = _allocate(world, world.claims)
    if isinstance(found, list):
        assert report.fits
        assert [each.device for each in report.chosen] == [one.device for each in found for one in each.devices.results]
        assert report.lines()[0] == "node-1: fits"
    elif isinstance(found, AllocationError):
        assert (report.outcome, report.error) == ("error", str(found))
    else:
        assert report.outcome == "does not fit"
        assert report.error == ("" if found is None else str(found))


@FAST
@given(seed=SEEDS)
def test_every_device_is_seen_and_every_device_of_a_blocked_request_has_a_reason(
    make_world: Callable[..., SimpleNamespace], seed: int
) -> None:
    world = _rough(make_world(seed), seed) if seed % 2 else make_world(seed)
    report = _explain(world)
    if report.fits:
        return
    assert report.conflicts
    blocked = {(each.claim, each.request) for conflict in report.conflicts for each in conflict.requests}
    seen = [(pool, device.name) for pool in world.slices for device in pool.spec.devices]
    for claim in report.claims:
        for request in claim.requests:
            if request.error:
                assert not request.devices
                continue
            assert len(request.devices) == len(seen) or seed % 2
            for device in request.devices:
                assert device.usable or device.reasons
                if (claim.claim, request.request.partition("/")[0]) in blocked:
                    assert device.reasons, (request.request, device)
    assert all(report.lines())


@FAST
@given(seed=SEEDS)
def test_a_device_is_called_usable_exactly_when_the_request_alone_may_have_it(
    make_world: Callable[..., SimpleNamespace], seed: int
) -> None:
    world = _rough(make_world(seed), seed) if seed % 2 else make_world(seed)
    report = _explain(world)
    requests = [(claim, request) for claim in world.claims for request in claim.spec.devices.requests]
    for claim, request in requests:
        alone = _only(claim, request, count=1)
        inputs = Inputs(
            node=NODE,
            claims=(alone,),
            slices=tuple(world.slices),
            classes=tuple(world.classes),
            allocated=AllocatedState.of(world.allocated),
            features=world.features,
        )
        allocator = _allocator(world)
        plan = allocator.plan((alone,))
        contents = {
            (pool.driver, pool.name, content.device.name): content
            for pool in allocator.pools(NODE)
            for content in pool.content.devices
        }
        for each in report.claims:
            for reported in each.requests if each.claim == f"ns/{claim.metadata.name}" else ():
                variant = next((one for one in plan.variants if one.name == reported.request), None)
                if variant is None or reported.error:
                    continue
                for device in reported.devices:
                    content = contents[device.driver, device.pool, device.device]
                    found = verify([_result(world, variant, device, content)], inputs)
                    assert device.usable == (not found), (reported.request, device, found)


@FAST
@given(seed=SEEDS)
def test_conflicts_are_infeasible_and_minimal(make_world: Callable[..., SimpleNamespace], seed: int) -> None:
    world = _rough(make_world(seed, size=5), seed) if seed % 4 == 1 else make_world(seed, size=5)
    report = _explain(world)
    for conflict in report.conflicts:
        assert conflict.minimal
        assert not _fits(world, _subset(world, conflict))
        for each in conflict.requests if len(conflict.requests) > 1 else ():
            fewer = tuple(one for one in conflict.requests if one != each)
            kept = {one.claim for one in fewer}
            constraints = tuple(one for one in conflict.constraints if one.claim in kept)
            assert _fits(
                world, _subset(world, msgspec.structs.replace(conflict, requests=fewer, constraints=constraints))
            )
        for constraint in conflict.constraints:
            fewer_rules = tuple(one for one in conflict.constraints if one != constraint)
            assert _fits(world, _subset(world, msgspec.structs.replace(conflict, constraints=fewer_rules)))


@FAST
@given(seed=SEEDS)
def test_changes_help_and_nothing_in_them_is_superfluous(make_world: Callable[..., SimpleNamespace], seed: int) -> None:
    world = _rough(make_world(seed, size=5), seed) if seed % 4 == 1 else make_world(seed, size=5)
    report = _explain(world)
    for change in report.changes:
        assert _fits(world, *_changed(world, change)), str(change)
        for edit in change.edits if len(change.edits) > 1 else ():
            fewer = msgspec.structs.replace(change, edits=tuple(each for each in change.edits if each != edit))
            assert not _fits(world, *_changed(world, fewer)), (str(change), str(edit))


@FAST
@given(seed=SEEDS)
def test_explaining_changes_nothing(make_world: Callable[..., SimpleNamespace], seed: int) -> None:
    world = make_world(seed)
    allocator = _allocator(world)
    first, second = allocator.explain(NODE, world.claims), allocator.explain(NODE, world.claims)
    assert first == second
    assert hash(first.conflicts) == hash(second.conflicts)
    before = _allocate(world, world.claims)
    try:
        after: Any = allocator.allocate(NODE, world.claims)
    except (AllocationError, NodeError) as error:
        after = error
    assert _names(before) == _names(after)


def _names(found: Any) -> Any:
    if isinstance(found, list):
        return [[(each.request, each.device) for each in one.devices.results] for one in found]
    return found if found is None else str(found)


# --- the same claims with less, written down without the code under test


def _only(claim: resource.ResourceClaim, request: resource.DeviceRequest, count: int) -> resource.ResourceClaim:
    """The claim with this request alone, asking for single devices."""
    if request.exactly is not None:
        changed = msgspec.structs.replace(
            request, exactly=msgspec.structs.replace(request.exactly, count=count, allocation_mode="ExactCount")
        )
    else:
        changed = msgspec.structs.replace(
            request,
            first_available=tuple(
                msgspec.structs.replace(each, count=count, allocation_mode="ExactCount")
                for each in request.first_available
            ),
        )
    return _with(claim, requests=(changed,))


def _with(claim: resource.ResourceClaim, **fields: Any) -> resource.ResourceClaim:
    devices = msgspec.structs.replace(claim.spec.devices, **fields)
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))


def _subset(world: SimpleNamespace, conflict: Conflict) -> list[resource.ResourceClaim]:
    found = []
    for claim in world.claims:
        name = f"ns/{claim.metadata.name}"
        names = {each.request for each in conflict.requests if each.claim == name}
        rules = {each.index for each in conflict.constraints if each.claim == name}
        devices = claim.spec.devices
        if names:
            found.append(
                _with(
                    claim,
                    requests=tuple(each for each in devices.requests if each.name in names),
                    constraints=tuple(each for index, each in enumerate(devices.constraints) if index in rules),
                )
            )
    return found


def _result(world: SimpleNamespace, variant: Any, device: Any, content: Any) -> resource.AllocationResult:
    consumed = content.consumption(variant.needs.capacity, fractional=world.features.fractional_capacity_range)
    shared = content.shareable and hasattr(consumed, "names")
    binding = world.features.device_binding_and_status
    one = resource.DeviceRequestAllocationResult(
        request=variant.name,
        driver=device.driver,
        pool=device.pool,
        device=device.device,
        admin_access=variant.admin or None,
        tolerations=variant.needs.tolerations,
        binding_conditions=content.device.binding_conditions if binding else (),
        binding_failure_conditions=content.device.binding_failure_conditions if binding else (),
        share_id="1" if shared else None,
        consumed_capacity=dict(zip(consumed.names, consumed.quantities, strict=True)) if shared else {},
    )
    return resource.AllocationResult(devices=resource.DeviceAllocationResult(results=(one,)))


# --- edits, applied to the cluster as its owner would


def _changed(
    world: SimpleNamespace, change: Change
) -> tuple[list[resource.ResourceClaim], list[resource.ResourceClaim]]:
    claims, allocated = list(world.claims), list(world.allocated)
    for edit in sorted(change.edits, key=_last_first):
        if isinstance(edit, FreeDevice):
            allocated = [_without(each, edit) for each in allocated]
            continue
        for index, claim in enumerate(claims):
            if f"ns/{claim.metadata.name}" == edit.claim:
                claims[index] = _edit(claim, edit)
    return claims, allocated


def _last_first(edit: Any) -> int:
    if isinstance(edit, DropConstraint):
        return -edit.constraint.index
    return -edit.index if isinstance(edit, DropSelector) else 1


def _without(claim: resource.ResourceClaim, edit: FreeDevice) -> resource.ResourceClaim:
    allocation = claim.status.allocation
    assert allocation is not None
    results = tuple(
        each
        for each in allocation.devices.results
        if (each.driver, each.pool, each.device) != (edit.driver, edit.pool, edit.device)
    )
    changed = msgspec.structs.replace(allocation, devices=msgspec.structs.replace(allocation.devices, results=results))
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=changed))


def _edit(claim: resource.ResourceClaim, edit: Any) -> resource.ResourceClaim:
    devices = claim.spec.devices
    if isinstance(edit, DropConstraint):
        kept = [each for index, each in enumerate(devices.constraints) if index != edit.constraint.index]
        return _with(claim, constraints=tuple(kept))
    parent, _, alternative = edit.request.partition("/")
    requests = []
    for request in devices.requests:
        if request.name != parent:
            requests.append(request)
        elif request.exactly is not None:
            requests.append(msgspec.structs.replace(request, exactly=_edit_wanted(request.exactly, edit)))
        else:
            several = [
                _edit_wanted(each, edit) if each.name == alternative else each for each in request.first_available
            ]
            requests.append(msgspec.structs.replace(request, first_available=tuple(several)))
    return _with(claim, requests=tuple(requests))


def _edit_wanted(wanted: Any, edit: Any) -> Any:
    if isinstance(edit, Tolerate):
        toleration = resource.DeviceToleration(key=edit.key, operator="Exists", effect=edit.effect)
        return msgspec.structs.replace(wanted, tolerations=(*wanted.tolerations, toleration))
    if isinstance(edit, LowerCount):
        assert edit.count < wanted.count
        return msgspec.structs.replace(wanted, count=edit.count)
    if isinstance(edit, LowerCapacity):
        amounts = {**wanted.capacity.requests, edit.name: Quantity.parse(edit.amount)}
        return msgspec.structs.replace(wanted, capacity=resource.CapacityRequirements(requests=amounts))
    assert isinstance(edit, DropSelector)
    kept = [each for index, each in enumerate(wanted.selectors) if index != edit.index]
    return msgspec.structs.replace(wanted, selectors=tuple(kept))
