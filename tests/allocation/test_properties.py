"""The search against its reference and against brute force, on small random clusters."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.allocation import AllocatedState, AllocationError, Allocator, Budget, Inputs, NodeError, Prunings, verify
from drakit.allocation.allocator import ValidationFailed
from drakit.allocation.search import Problem, reference, solve
from drakit.api import core, meta, resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

SEEDS = st.integers(min_value=0, max_value=2**40)
NODE = core.Node(metadata=meta.ObjectMeta(name="node-1"))
SUBSETS = [
    Prunings(bounds=bounds, interchange=interchange, memo=memo, patience=patience)
    for bounds, interchange, memo in itertools.product((False, True), repeat=3)
    for patience in (0, 3)
]
FAST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _allocator(world: SimpleNamespace, **options: Any) -> Allocator:
    state = AllocatedState.of(world.allocated)
    return Allocator(world.slices, world.classes, state, world.features, share_id=itertools.count().__next__, **options)  # type: ignore[arg-type]


def _problem(world: SimpleNamespace) -> Problem | None:
    allocator = _allocator(world)
    try:
        return allocator.problem(allocator.plan(world.claims), allocator.pools(NODE))
    except (AllocationError, ValidationFailed):
        return None


def _comparable(outcome: Any) -> Any:
    if isinstance(outcome, list):
        return [(choice.variant.name, choice.variant.claim, choice.device) for choice in outcome]
    return outcome


@FAST
@given(seed=SEEDS)
def test_no_combination_of_prunings_changes_an_outcome(make_world: Callable[..., SimpleNamespace], seed: int) -> None:
    problem = _problem(make_world(seed, size=7))
    if problem is None:
        return
    expected = _comparable(reference.solve(problem))
    for prunings in SUBSETS:
        assert _comparable(solve(problem, prunings, Budget())) == expected, prunings


@FAST
@given(seed=SEEDS)
def test_results_pass_verification_and_none_means_that_brute_force_finds_nothing(
    make_world: Callable[..., SimpleNamespace], seed: int
) -> None:
    world = make_world(seed, errors=False, size=4)
    inputs = Inputs(
        node=NODE,
        claims=tuple(world.claims),
        slices=tuple(world.slices),
        classes=tuple(world.classes),
        allocated=AllocatedState.of(world.allocated),
        features=world.features,
    )
    try:
        found = _allocator(world, prunings=Prunings(patience=0)).allocate(NODE, world.claims)
    except (AllocationError, NodeError):
        return
    if found is not None:
        assert verify(found, inputs) == []
    expected = next((each for each in _guesses(world, limit=400) if not _violations(each, inputs)), None)
    if expected == "too many":
        return
    assert _names(found) == _names(expected)


@FAST
@given(seed=SEEDS)
def test_a_device_that_the_claims_cannot_see_changes_nothing(
    make_world: Callable[..., SimpleNamespace], build: SimpleNamespace, seed: int
) -> None:
    world = make_world(seed)
    elsewhere = build.slice("elsewhere", build.device("d"), driver="driver-a", pool="elsewhere", nodeName="node-2")
    before = _outcome(_allocator(world), world)
    allocator = _allocator(world)
    allocator.update_slice(elsewhere)
    assert _outcome(allocator, world) == before


@FAST
@given(seed=SEEDS)
def test_updates_lead_where_a_new_allocator_starts(make_world: Callable[..., SimpleNamespace], seed: int) -> None:
    """Slices and claims taken away and given back, and everything asked in between, leave no trace."""
    world = make_world(seed)
    allocator = _allocator(world)
    expected = _outcome(_allocator(world), world)
    _outcome(allocator, world)
    for each in world.slices:
        allocator.remove_slice(each.metadata.name)
        _outcome(allocator, world)
    for each in world.allocated:
        allocator.remove_claim(each)
    for each in world.slices:
        allocator.update_slice(each)
        _outcome(allocator, world)
    for each in world.allocated:
        allocator.update_claim(each)
    assert _outcome(allocator, world) == expected


def _outcome(allocator: Allocator, world: SimpleNamespace) -> Any:
    try:
        return _names(allocator.allocate(NODE, world.claims))
    except (AllocationError, NodeError) as error:
        return str(error)


def _names(allocations: Any) -> Any:
    if allocations is None:
        return None
    return [[(each.request, each.pool, each.device) for each in one.devices.results] for one in allocations]


def _violations(guess: Any, inputs: Inputs) -> Any:
    return guess != "too many" and verify(guess, inputs)


def _guesses(world: SimpleNamespace, limit: int) -> Iterator[Any]:
    """All assignments of devices to requests, in the order in which the search has to try them."""
    allocator = _allocator(world)
    pools = [pool for pool in allocator.pools(NODE) if not pool.is_incomplete and not pool.content.invalid]
    devices = [(pool, index) for pool in pools for index in range(pool.content.local)]
    plan = allocator.plan(world.claims)
    problem = allocator.problem(plan, allocator.pools(NODE))
    options = [list(_options(slot, problem, devices)) for slot in plan.slots]
    total = 1
    for each in options:
        total *= len(each)
    if total > limit:
        yield "too many"
        return
    for combination in itertools.product(*options):
        yield _allocations(world, plan, combination)


def _options(slot: Any, problem: Problem, devices: list[Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    for variant in slot.variants:
        count = problem.count(variant)
        if variant.every and not count:
            continue
        for several in itertools.combinations(devices, count):
            yield variant, several


def _allocations(world: SimpleNamespace, plan: Any, combination: Any) -> list[resource.AllocationResult]:
    """Results as the allocator would write them."""
    identifiers = itertools.count()
    results: list[list[resource.DeviceRequestAllocationResult]] = [[] for _ in plan.claims]
    for variant, several in combination:
        for pool, index in several:
            content = pool.content.devices[index]
            consumed = content.consumption(variant.needs.capacity, fractional=world.features.fractional_capacity_range)
            shared = content.shareable and hasattr(consumed, "names")
            binding = world.features.device_binding_and_status
            results[variant.claim].append(
                resource.DeviceRequestAllocationResult(
                    request=variant.name,
                    driver=pool.driver,
                    pool=pool.name,
                    device=content.device.name,
                    admin_access=variant.admin or None,
                    tolerations=variant.needs.tolerations,
                    binding_conditions=content.device.binding_conditions if binding else (),
                    binding_failure_conditions=content.device.binding_failure_conditions if binding else (),
                    share_id=str(next(identifiers)) if shared else None,
                    consumed_capacity=dict(zip(consumed.names, consumed.quantities, strict=True)) if shared else {},
                )
            )
    return [resource.AllocationResult(devices=resource.DeviceAllocationResult(results=tuple(each))) for each in results]
