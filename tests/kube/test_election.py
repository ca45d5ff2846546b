"""One leader at a time, against a fake API server and a manual clock."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from drakit import kube
from drakit.simulator.apiserver import FakeAPIServer
from drakit.simulator.clock import ManualClock


class Field:
    """A server, a clock, candidates, and who leads now."""

    def __init__(self, server: FakeAPIServer, clock: ManualClock, stack: AsyncExitStack) -> None:
        self.server, self.clock, self.stack = server, clock, stack
        self.leading: list[str] = []
        self.most = 0

    async def client(self) -> kube.Client:
        credentials = kube.from_kubeconfig(self.server.kubeconfig(certificate=False))
        client = kube.Client(credentials, clock=self.clock, attempts=1, jitter=lambda: 0.5)
        await self.stack.enter_async_context(client)
        self.clock.idle_when(lambda: client.in_flight == 0)
        return client

    async def candidate(self, name: str) -> tuple[kube.Election, "asyncio.Task[None]"]:
        election = kube.Election(
            await self.client(), name="lead", namespace="default", identity=name, clock=self.clock, jitter=lambda: 0.5
        )

        async def lead() -> None:
            self.leading.append(name)
            self.most = max(self.most, len(self.leading))
            try:
                await asyncio.Event().wait()
            finally:
                self.leading.remove(name)

        task = asyncio.create_task(election.run(lead))

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.stack.push_async_callback(stop)
        return election, task

    def lease(self) -> dict[str, Any]:
        found = self.server.get("leases", "lead", "default")
        assert found is not None
        spec: dict[str, Any] = found["spec"]
        return spec


@pytest.fixture(name="field")
async def _field() -> AsyncIterator[Field]:
    clock = ManualClock()
    async with FakeAPIServer(tls=False, clock=clock) as server, AsyncExitStack() as stack:
        yield Field(server, clock, stack)


async def test_the_first_leads_and_renews(field: Field) -> None:
    election, _task = await field.candidate("a")
    await field.clock.advance(1)
    assert field.leading == ["a"]
    assert election.leads
    first = field.lease()
    await field.clock.advance(60)
    assert field.leading == ["a"]
    assert field.lease()["renewTime"] > first["renewTime"]
    assert field.lease()["acquireTime"] == first["acquireTime"]
    assert field.lease()["leaseDurationSeconds"] == 15


async def test_the_second_waits_and_takes_over_after_a_clean_end(field: Field) -> None:
    _first, task = await field.candidate("a")
    await field.clock.advance(1)
    second, _ = await field.candidate("b")
    await field.clock.advance(60)
    assert field.leading == ["a"]
    assert second.leader == "a"
    task.cancel()
    await field.clock.advance(6)
    assert field.leading == ["b"]
    assert field.lease()["leaseTransitions"] == 1


async def test_a_dead_leader_is_replaced_when_its_lease_has_run_out(field: Field) -> None:
    dead = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lead", "namespace": "default"},
        "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 15, "renewTime": "2099-01-01T00:00:00.000000Z"},
    }
    field.server.create(dead)
    await field.candidate("b")
    await field.clock.advance(14)
    assert field.leading == []
    await field.clock.advance(10)
    assert field.leading == ["b"], "judged by our own clock, whatever the holder's said"


async def test_who_cannot_renew_stops_before_others_begin(field: Field) -> None:
    _a, first = await field.candidate("a")
    await field.clock.advance(1)
    await field.candidate("b")
    await field.clock.advance(7)
    field.server.faults.fail(503, times=None, verb="update", resource="leases")
    await field.clock.advance(12)
    assert field.leading == []
    with pytest.raises(kube.LostLeadershipError, match="not renewed"):
        await first
    field.server.faults.clear()
    await field.clock.advance(30)
    assert field.leading == ["b"]
    assert field.most == 1


async def test_a_lease_taken_by_force_ends_the_leadership(field: Field) -> None:
    _a, task = await field.candidate("a")
    await field.clock.advance(1)
    thief = kube.Election(await field.client(), name="lead", namespace="default", identity="thief", clock=field.clock)
    await thief.acquire(force=True)
    await field.clock.advance(6)
    assert field.leading == []
    with pytest.raises(kube.LostLeadershipError, match="thief holds lease default/lead"):
        await task
    await thief.release()
    assert field.lease()["holderIdentity"] == ""
    await thief.release()


async def test_short_outages_do_not_end_it(field: Field) -> None:
    await field.candidate("a")
    await field.clock.advance(1)
    field.server.faults.fail(500, times=1, verb="update", resource="leases")
    field.server.faults.fail(409, times=1, verb="update", resource="leases")
    await field.clock.advance(60)
    assert field.leading == ["a"]


async def test_the_end_of_the_work_ends_the_leadership(field: Field) -> None:
    client = await field.client()
    election = kube.Election(client, name="lead", namespace="default", identity="a", clock=field.clock)

    async def work() -> None:
        await field.clock.sleep(2)

    task = asyncio.create_task(election.run(work))
    await field.clock.advance(3)
    await task
    assert not election.leads
    assert field.lease()["holderIdentity"] == ""


async def test_errors_of_the_work_come_out(field: Field) -> None:
    client = await field.client()
    election = kube.Election(client, name="lead", namespace="default", identity="a", clock=field.clock)

    async def work() -> None:
        raise OSError("broken")

    task = asyncio.create_task(election.run(work))
    await field.clock.advance(1)
    with pytest.raises(OSError, match="broken"):
        await task


async def test_no_server_is_waited_for(field: Field) -> None:
    field.server.faults.fail(503, times=3, resource="leases")
    await field.candidate("a")
    await field.clock.advance(30)
    assert field.leading == ["a"]


def test_identities_are_unique_and_legal() -> None:
    found = {kube.identity() for _ in range(3)}
    assert len(found) == 3
    assert all(all(c.isalnum() or c in "-_" for c in each) for each in found)


def test_it_names_its_lease() -> None:
    make: Callable[..., Any] = kube.Election
    election = make(None, name="n", namespace="ns", identity="i")
    assert election.lease == {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": "ns", "name": "n",
    }  # fmt: skip
