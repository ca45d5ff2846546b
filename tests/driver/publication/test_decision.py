"""`decide` against a model of the API server: crashes between any two writes, edits by others, any order of a batch.

At every moment the scheduler's view of the pool (spec/resourceslice.md 1.13) is incomplete or one desired state.
"""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.api.resource import Device, DeviceTaint
from drakit.driver.publication import Actions, Desired, ObservedSlice, SliceContent, Stamp, Write, decide, naming

STAMP = Stamp(driver="d.example.com", node_name="n")
quick = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def content(*names: str) -> SliceContent:
    return SliceContent(devices=tuple(Device(name=name) for name in names))


class Model:
    """Slices of one pool as the API server has them, and every desired state there ever was."""

    def __init__(self) -> None:
        self.slices: dict[str, ObservedSlice] = {}
        self.wanted: list[tuple[SliceContent, ...]] = []
        self.foreign: set[str] = set()
        self.numbers = 0
        self.writes = 0
        self.floor = 0

    def decide(self, contents: tuple[SliceContent, ...], generation: int = 0) -> Actions:
        if contents not in self.wanted:
            self.wanted.append(contents)
        desired = Desired(contents=contents, stamp=STAMP, generation=generation, floor=self.floor)
        return decide(desired, list(self.slices.values()))

    def put(self, name: str, content: SliceContent | None, generation: int, count: int) -> None:
        self.numbers += 1
        self.slices[name] = ObservedSlice(
            name=name,
            uid=f"u{self.numbers}",
            resource_version=str(self.numbers),
            pool="p",
            generation=generation,
            count=count,
            content=content,
        )

    def perform(self, actions: Actions, *, crash_after: int | None = None, order: random.Random | None = None) -> bool:
        """Do it, checking after each step; False when it crashed on the way."""
        rest = list(actions.writes[1:])
        if order is not None:
            # What the publisher may have in flight together can land in any order.
            rest = [w for at in range(0, len(rest), 4) for w in order.sample(rest[at : at + 4], len(rest[at : at + 4]))]
        actions_in_order: list[ObservedSlice | Write] = [*actions.deletes, *actions.writes[:1], *rest]
        for step, action in enumerate(actions_in_order):
            if crash_after is not None and step >= crash_after:
                return False
            if isinstance(action, ObservedSlice):
                del self.slices[action.name]
                self.foreign.discard(action.name)
            else:
                assert isinstance(action, Write)
                name = action.observed.name if action.observed else naming.slice_name(action.index, 5, "d", "n", "p")
                self.put(name, action.content, actions.generation, actions.count)
                self.foreign.discard(name)
                self.floor = max(self.floor, actions.generation)
            self.writes += 1
            self.check()
        return True

    def check(self) -> None:
        newest = max((found.generation for found in self.slices.values()), default=0)
        current = sorted((s for s in self.slices.values() if s.generation == newest), key=lambda s: s.name)
        if not current or not any(found.count == len(current) for found in current):
            return
        if any(found.name in self.foreign for found in current):
            return  # what others write is theirs to answer for
        assert tuple(found.content for found in current) in self.wanted, "a mixed pool is seen as complete"


states = st.lists(
    st.lists(st.sampled_from("abcdefgh"), max_size=2, unique=True).map(lambda letters: content(*letters)),
    min_size=0,
    max_size=5,
).map(tuple)


@quick
@given(
    script=st.lists(
        st.one_of(
            st.tuples(st.just("want"), states, st.none() | st.integers(0, 6), st.integers(0, 1 << 16)),
            st.tuples(st.just("delete"), st.integers(0, 5)),
            st.tuples(st.just("edit"), st.integers(0, 5), st.sampled_from(["content", "count", "generation"])),
            st.tuples(st.just("add"), st.integers(0, 5), st.integers(1, 5)),
            st.tuples(st.just("wipe")),
        ),
        max_size=12,
    ),
    last=states,
)
def test_no_mixed_pool_is_ever_complete_and_the_last_wish_is_reached(script: list[Any], last: Any) -> None:
    model = Model()
    for step in script:
        names = sorted(model.slices)
        chosen = names[step[1] % len(names)] if names and len(step) > 1 and isinstance(step[1], int) else None
        if step[0] == "want":
            model.perform(model.decide(step[1]), crash_after=step[2], order=random.Random(step[3]))
        elif step[0] == "wipe":
            model.slices.clear()
        elif step[0] == "delete" and chosen:
            del model.slices[chosen]
            # What is left may look complete only if others also edited; a plain deletion never does.
        elif step[0] == "edit" and chosen:
            old = model.slices[chosen]
            changes: dict[str, Any] = {
                "content": {"content": content("foreign")},
                "count": {"count": old.count % 5 + 1},
                "generation": {"generation": old.generation + 1},
            }
            model.slices[chosen] = msgspec.structs.replace(old, **changes[step[2]])
            model.foreign.add(chosen)
        elif step[0] == "add":
            model.put(f"stranger-{step[1]}", content("x"), step[2], 1)
            model.foreign.add(f"stranger-{step[1]}")
    model.perform(model.decide(last))
    final = sorted(model.slices.values(), key=lambda found: found.name)
    assert tuple(found.content for found in final) == last
    assert {found.count for found in final} <= {len(last)}
    assert len({found.generation for found in final}) <= 1
    assert not model.decide(last), "a second look does nothing"


@quick
@given(before=states, after=states)
def test_the_generation_rises_at_most_by_one_and_only_when_it_must(before: Any, after: Any) -> None:
    model = Model()
    model.perform(model.decide(before))
    generation = max((s.generation for s in model.slices.values()), default=0)
    actions = model.decide(after)
    if not after:
        assert not actions.writes
        return
    differing = sum(a != b for a, b in zip(before, after, strict=False)) if len(before) == len(after) else len(after)
    assert actions.generation == max(1, generation + (differing > 1 and bool(before)))
    if len(before) == len(after) and differing <= 1:
        assert len(actions.writes) == differing


@quick
@given(wanted=states.filter(len), gone=st.sets(st.integers(0, 4)))
def test_deleted_slices_come_back_one_write_each_at_the_same_generation(wanted: Any, gone: set[int]) -> None:
    model = Model()
    model.perform(model.decide(wanted))
    names = sorted(model.slices)
    lost = [names[index] for index in gone if index < len(names)]
    for name in lost:
        del model.slices[name]
    actions = model.decide(wanted)
    assert len(actions.writes) == len(lost)
    assert actions.generation == 1
    model.perform(actions)


@quick
@given(before=states.filter(lambda s: len(s) > 1), after=states.filter(lambda s: len(s) > 1), at=st.integers(1, 4))
def test_an_interrupted_pass_is_finished_not_started_again(before: Any, after: Any, at: int) -> None:
    model = Model()
    model.perform(model.decide(before))
    first = model.decide(after)
    if first.generation == 1 or at >= len(first.deletes) + len(first.writes) or at <= len(first.deletes):
        return
    model.perform(first, crash_after=at)
    second = model.decide(after)
    assert second.generation == first.generation
    assert len(second.writes) + at == len(first.deletes) + len(first.writes)


def test_a_larger_generation_of_the_driver_wins_and_a_smaller_is_ignored() -> None:
    model = Model()
    model.perform(model.decide((content("a"), content("b"))))
    assert model.decide((content("a"), content("b")), generation=1).generation == 1
    actions = model.decide((content("a"), content("b")), generation=9)
    assert actions.generation == 9
    assert len(actions.writes) == 2


def test_risky_writes_come_first() -> None:
    model = Model()
    model.perform(model.decide((content("a"), content("b"), content("c"))))
    actions = model.decide((content("a"), content("x"), content("c"), content("d")))
    assert [write.index for write in actions.writes] == [1, 3, 0, 2]


def test_older_generations_are_deleted_first() -> None:
    model = Model()
    model.put("00000-x", content("a"), 1, 1)
    model.put("00001-x", content("b"), 3, 2)
    model.put("random", content("c"), 2, 1)
    assert [found.generation for found in model.decide(()).deletes] == [1, 2, 3]


def test_of_two_claimants_of_an_index_the_newest_then_the_right_one_stays() -> None:
    model = Model()
    model.put("00000-x", content("wrong"), 2, 1)
    model.put("00000-y", content("a"), 2, 1)
    model.put("00000-z", content("a"), 1, 1)
    actions = model.decide((content("a"),))
    assert [found.name for found in actions.deletes] == ["00000-z", "00000-x"]
    assert not actions.writes


def test_a_slice_that_waits_for_its_finalizers_is_not_counted_on() -> None:
    model = Model()
    model.perform(model.decide((content("a"), content("b"))))
    name = sorted(model.slices)[1]
    model.slices[name] = msgspec.structs.replace(model.slices[name], terminating=True)
    actions = model.decide((content("a"), content("b")))
    assert actions.generation == 2
    assert not actions.deletes
    assert [write.observed is None for write in actions.writes] == [True, False]


@pytest.mark.parametrize("field", ["labels", "owner_references"])
def test_edited_metadata_is_put_back_at_the_same_generation(field: str) -> None:
    model = Model()
    model.perform(model.decide((content("a"), content("b"))))
    name = min(model.slices)
    edited: dict[str, Any] = {"labels": {"x": "y"}} if field == "labels" else {"owner_references": ({"uid": "z"},)}
    model.slices[name] = msgspec.structs.replace(model.slices[name], **edited)
    actions = model.decide((content("a"), content("b")))
    assert actions.generation == 1
    assert [write.index for write in actions.writes] == [0]


def test_times_of_taints_within_a_second_are_no_change() -> None:
    def tainted(time: str | None) -> SliceContent:
        taint = DeviceTaint(key="k", effect="NoSchedule", time_added=time)
        return SliceContent(devices=(Device(name="a", taints=(taint,)),))

    model = Model()
    model.perform(model.decide((tainted("2026-01-01T00:00:00Z"),)))
    assert not model.decide((tainted(None),))
    assert not model.decide((tainted("2026-01-01T00:00:01Z"),))
    assert model.decide((tainted("2026-01-01T00:00:02Z"),)).writes
