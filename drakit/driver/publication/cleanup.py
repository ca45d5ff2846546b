"""Removal of a driver's slices for good: who publishes is stopped first, and the end is proved."""

import logging
from collections.abc import Iterable
from typing import Any

import msgspec

from drakit import kube
from drakit.clock import SYSTEM, Clock
from drakit.driver.publication import guard

__all__ = ["Removal", "remove_slices"]

Object = dict[str, Any]
_log = logging.getLogger(__name__)
ROUNDS = 20


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the slices.

    Attributes:
        deleted: how many were deleted.
        back: nodes ("" = cluster-wide) whose slices came back: their publishers still run.
        left: names of slices that are still there, such as those with finalizers.
        claims: namespace/name of claims that still have devices of the driver.
    """

    deleted: int = 0
    back: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Nothing is left, and nothing came back."""
        return not self.back and not self.left


async def remove_slices(
    client: kube.Client,
    *,
    driver: str,
    node: str | None = None,
    settle_seconds: float = 5.0,
    clock: Clock = SYSTEM,
) -> Removal:
    """Delete the driver's slices, of one node or all of them, and see whether any comes back.

    Args:
        client: an open client.
        driver: the driver's name.
        node: only this node's slices; None = all, cluster-wide ones too.
        settle_seconds: how long nothing must come back; a publisher that runs needs about a second.
        clock: time.
    """
    selector = f"spec.driver={driver}" + (f",spec.nodeName={node}" if node else "")
    claims = await _live_claims(client, driver)
    listed = await _list(client, selector)
    before = {obj["metadata"]["uid"] for obj in listed}
    gone: set[str] = set()
    for _ in range(ROUNDS):
        gone |= await _delete(client, [obj for obj in listed if obj["metadata"]["uid"] in before - gone])
        await clock.sleep(settle_seconds)
        listed = await _list(client, selector)
        # What is new is not deleted again: whoever put it there would go on doing so.
        back = {obj["spec"].get("nodeName") or "" for obj in listed if obj["metadata"]["uid"] not in before}
        if back or before <= gone:
            break
    return Removal(deleted=len(gone), back=tuple(sorted(back)), left=_names(listed), claims=claims)


async def _list(client: kube.Client, selector: str) -> list[Object]:
    listed = await client.list(kube.RESOURCE_SLICES, field_selector=selector)
    items: list[Object] = listed["items"]
    return items


async def _live_claims(client: kube.Client, driver: str) -> tuple[str, ...]:
    try:
        listed = await client.list(kube.RESOURCE_CLAIMS)
    except kube.Forbidden as error:
        _log.warning("cannot tell which claims use the driver: %s", error)
        return ()
    return tuple(guard.live_claims(listed["items"], driver))


async def _delete(client: kube.Client, objects: Iterable[Object]) -> set[str]:
    """Delete these very objects; their UIDs. One at a time: a new one of the same name is somebody's intention."""
    gone = set()
    for obj in objects:
        uid = obj["metadata"]["uid"]
        try:
            await client.delete(kube.RESOURCE_SLICES, obj["metadata"]["name"], uid=uid)
        except kube.NotFound:
            pass
        except (kube.Conflict, kube.Unanswered, kube.ServerError) as error:
            _log.warning("cannot delete slice %s yet: %s", obj["metadata"]["name"], error)
            continue
        gone.add(uid)
    return gone


def _names(objects: Iterable[Object]) -> tuple[str, ...]:
    return tuple(sorted(obj["metadata"]["name"] for obj in objects))
