"""Admin access to devices that others use (spec/allocator.md 6.1, 1.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def scenarios(say: SimpleNamespace) -> list[Any]:
    two = [say.slice(say.device("d1"), say.device("d2"))]
    one = [say.slice(say.device("d1"))]
    admin = [say.request("r0", admin=True)]
    saw_d1 = [say.result("r0", "d1", admin=True)]
    saw_both = [*saw_d1, say.result("r0", "d2", admin=True)]
    return [
        say.scenario(
            29,
            "all-devices-some-allocated-admin-access",
            slices=two,
            held=["d1"],
            claims=[[say.every("r0", admin=True)]],
            gives=[saw_both],
        ),
        # Within one claim even admin access takes a device only once.
        say.scenario(
            30,
            "all-devices-some-allocating-admin-access",
            slices=two,
            claims=[[say.request("r0", admin=True), say.every("r1", admin=True)]],
        ),
        say.scenario(
            31,
            "count-devices-some-allocated-admin-access",
            slices=two,
            held=["d1"],
            claims=[[say.request("r0", count=2, admin=True)]],
            gives=[saw_both],
        ),
        say.scenario(
            32,
            "separate-claims-share-device-admin-access",
            slices=two,
            claims=[admin, admin],
            gives=[saw_d1, saw_d1],
        ),
        # The other way round nothing would be found: defect G2, kept.
        say.scenario(
            33,
            "admin-access-claims-device-allocating-for-non-admin-access",
            slices=two,
            claims=[[say.request("r0")], admin],
            gives=[[say.result("r0", "d1")], saw_d1],
        ),
        say.scenario(
            43,
            "admin-access-disabled",
            off=["admin_access"],
            slices=one,
            claims=[admin],
            fails="claim c0, request r0: admin access is requested, but the feature is disabled",
        ),
        say.scenario(44, "admin-access-enabled", slices=one, held=["d1", "d2"], claims=[admin], gives=[saw_d1]),
    ]
