"""One pass of writes over a pool, and what the server has after each of them, whatever went wrong."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from drakit import kube
from drakit.clock import Clock
from drakit.driver.publication import features, naming, slices
from drakit.driver.publication.decision import Actions, Write
from drakit.driver.publication.layout import SliceContent
from drakit.driver.publication.metrics import Metrics
from drakit.driver.publication.observation import Observation
from drakit.driver.publication.slices import ObservedSlice, Stamp
from drakit.driver.publication.work import PoolWork, Refusal

__all__ = ["Dropped", "RefusedError", "Writer"]

Object = dict[str, Any]
PARALLEL = 4


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """The server did not keep all of a slice: gates behind the lost fields."""

    pool: str
    index: int
    gates: tuple[str, ...]


class RefusedError(Exception):
    """The server refused a slice for good: repeating it cannot help. The text names field and cause."""


class Writer:
    """Writes slices and keeps the observation true.

    Args:
        client: an open client.
        observation: learns every outcome.
        selector: field selector of the publisher's slices.
        is_own: tells them from others.
        clock: time of refusals.
        metrics: counters to use.
        on_dropped: told when the server did not keep all of a slice (gates), or kept it (no gates).
        turn_off: told of a gate that a refusal hints at; whether publishing goes on without it from now on.
    """

    def __init__(
        self,
        client: kube.Client,
        observation: Observation,
        *,
        selector: str,
        is_own: Callable[[Object], bool],
        clock: Clock,
        metrics: Metrics,
        on_dropped: Callable[[Dropped], None],
        turn_off: Callable[[str], bool],
    ) -> None:
        self._client, self._observation, self._clock, self._metrics = client, observation, clock, metrics
        self._selector, self._is_own = selector, is_own
        self._on_dropped, self._turn_off = on_dropped, turn_off

    async def perform(self, work: PoolWork, actions: Actions, stamp: Stamp) -> None:
        """Do it.

        Raises:
            RefusedError: the server refused a slice for good.
            ApiError: anything that may be different next time; what the server has now is known again then.
        """
        for found in actions.deletes:
            await self._delete(found)
        # The first alone: it is the likeliest to be refused, and then nothing of the old generation was touched.
        batches = [
            actions.writes[:1],
            *(actions.writes[at : at + PARALLEL] for at in range(1, len(actions.writes), PARALLEL)),
        ]
        for batch in batches:
            results = await asyncio.gather(
                *(self._write(work, actions, write, stamp) for write in batch), return_exceptions=True
            )
            errors = [error for error in results if isinstance(error, BaseException)]
            transient = [error for error in errors if not isinstance(error, RefusedError)]
            if transient:
                raise transient[0]
            if errors:
                raise errors[0]

    async def try_out(self, work: PoolWork, content: SliceContent, stamp: Stamp) -> SliceContent | None:
        """What the server would make of a new slice, by a dry run; None when that cannot be read.

        Raises:
            ApiError: it would refuse it, or could not tell.
        """
        metadata = {"generateName": naming.generate_name(0, naming.width(1), stamp.driver, "probe")}
        body = slices.body(content, stamp, pool=work.name, generation=1, count=1, metadata=metadata)
        answer = await self._client.create(kube.RESOURCE_SLICES, body, query={"dryRun": "All"})
        return slices.observe(answer).content

    async def _delete(self, found: ObservedSlice) -> None:
        try:
            answer = await self._client.delete(
                kube.RESOURCE_SLICES, found.name, uid=found.uid, resource_version=found.resource_version
            )
        except kube.NotFound:
            self._observation.deleted(found.name, found.uid)
        except kube.Conflict:
            await self._read_back(found.name)
            raise
        else:
            self._metrics.writes.labels("delete").inc()
            if "deletionTimestamp" in answer.get("metadata", {}) and answer["metadata"].get("finalizers"):
                self._observation.written(answer)
            else:
                self._observation.deleted(found.name, found.uid)

    async def _write(self, work: PoolWork, actions: Actions, write: Write, stamp: Stamp) -> None:
        stored = self._observation.raw(write.observed.name) if write.observed else None
        body = slices.body(
            write.content,
            stamp,
            pool=work.name,
            generation=actions.generation,
            count=actions.count,
            metadata=_new_metadata(work, write.index, actions.count, stamp),
            stored=stored,
        )
        try:
            if stored is None:
                answer = await self._client.create(kube.RESOURCE_SLICES, body)
            else:
                answer = await self._client.update(kube.RESOURCE_SLICES, body)
        except kube.ApiError as error:
            await self._write_failed(work, write, error, body)
            raise
        self._metrics.writes.labels("update" if stored else "create").inc()
        work.floor = max(work.floor, actions.generation)
        self._compare(work, write, answer)

    def _compare(self, work: PoolWork, write: Write, answer: Object) -> None:
        """Take what was stored as the slice's state, and see whether it is what was sent."""
        found = slices.observe(answer)
        if found.content is not None:
            work.note(found.content)
        if slices.same(write.content, found.content):
            # The very object that was sent: later comparisons are by identity. Times of taints are the server's.
            timed = any(device.taints for device in write.content.devices)
            self._observation.written(answer, None if timed else write.content)
            self._on_dropped(Dropped(pool=work.name, index=write.index, gates=()))
            return
        self._observation.written(answer)
        if found.content is None:
            return
        work.learn(write.content, found.content)
        gates = features.dropped(write.content, found.content)
        self._on_dropped(Dropped(pool=work.name, index=write.index, gates=gates))

    async def _write_failed(self, work: PoolWork, write: Write, error: kube.ApiError, body: Object) -> None:
        """Find out what the server has now; a refusal for good becomes RefusedError."""
        if isinstance(error, kube.Conflict | kube.NotFound):
            name = body["metadata"].get("name", "")
            found = await self._read_back(name) if name else None
            if write.observed is None and found is not None:
                leaving = "deletionTimestamp" in found["metadata"]
                if leaving or not self._is_own(found):
                    work.taken.add(write.index)
        elif isinstance(error, kube.Unanswered | kube.ServerError):
            await self._read_back_all()
        elif error.terminal:
            fields = tuple(cause.field for cause in error.causes)
            gates = features.hinted(write.content, fields)
            if isinstance(error, kube.Invalid) and sum(self._turn_off(gate) for gate in gates):
                return
            until = self._clock.monotonic() + work.refusal_backoff.delay(error.retry_after)
            work.refusals[write.index] = Refusal(content=write.content, until=until)
            work.schedule(until)
            raise RefusedError(_explained(error, gates)) from error

    async def _read_back(self, name: str) -> Object | None:
        try:
            found = await self._client.get(kube.RESOURCE_SLICES, name)
        except kube.NotFound:
            known = self._observation.raw(name)
            if known is not None:
                self._observation.deleted(name, known["metadata"].get("uid", ""))
            return None
        if self._is_own(found):
            self._observation.written(found)
        return found

    async def _read_back_all(self) -> None:
        try:
            listed = await self._client.list(kube.RESOURCE_SLICES, field_selector=self._selector)
        except kube.ApiError:
            return  # the next pass starts from what the reflector knows; a conflict tells if that is old
        self._observation.read_back([item for item in listed["items"] if self._is_own(item)])


def _new_metadata(work: PoolWork, index: int, count: int, stamp: Stamp) -> Object:
    owner = stamp.owner.name if stamp.owner else ""
    digits = naming.width(count)
    if index in work.taken:
        return {"generateName": naming.generate_name(index, digits, stamp.driver, owner)}
    return {"name": naming.slice_name(index, digits, stamp.driver, owner, work.name)}


def _explained(error: kube.ApiError, gates: tuple[str, ...]) -> str:
    """Field and cause of a refusal, and the gate that may be behind it."""
    causes = "; ".join(f"{cause.field}: {cause.message}" for cause in error.causes[:3])
    more = f" (and {len(error.causes) - 3} more)" if len(error.causes) > 3 else ""
    hint = f"; is feature gate {' or '.join(gates)} off?" if gates else ""
    return f"{error.status} {error.reason}: {causes[:800] + more if causes else error.message[:800]}{hint}"
