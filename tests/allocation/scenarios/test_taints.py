"""Tainted devices and what tolerates them (spec/allocator.md 6.1, 1.11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def scenarios(say: SimpleNamespace) -> list[Any]:
    def tainted(*taints: Any) -> list[Any]:
        """One device per list of taints."""
        return [say.slice(*(say.device(f"d{index}", taints=each) for index, each in enumerate(taints, 1)))]

    schedule, execute = say.NO_SCHEDULE, say.NO_EXECUTE
    one, two = tainted([schedule]), tainted([schedule], [execute])
    twice = tainted([schedule, execute])
    r0, every = [say.request("r0")], [say.every("r0")]
    tolerate_execute = [say.TOLERATE_NO_EXECUTE]
    tolerate_both = [say.TOLERATE_NO_SCHEDULE, say.TOLERATE_NO_EXECUTE]
    b_or_a = [say.first_of("r0", say.subrequest("s0", cls="class-b"), say.subrequest("s1"))]
    admin = [say.request("r0", admin=True)]
    got_d1 = [[say.result("r0", "d1")]]
    off = ["device_taints"]
    return [
        say.scenario(98, "tainted-two-devices", slices=two, claims=[r0]),
        say.scenario(99, "tainted-one-device-two-taints", slices=twice, claims=[r0]),
        say.scenario(
            100,
            "tainted-two-devices-tolerated",
            slices=two,
            claims=[[say.request("r0", tolerations=tolerate_execute)]],
            gives=[[say.result("r0", "d2", tolerations=tolerate_execute)]],
        ),
        say.scenario(
            101,
            "tainted-two-devices-prioritized-list-tolerated",
            slices=two,
            claims=[[say.first_of("r0", say.subrequest("s0"), say.subrequest("s1", tolerations=tolerate_execute))]],
            gives=[[say.result("r0/s1", "d2", tolerations=tolerate_execute)]],
        ),
        say.scenario(102, "tainted-no-effect", slices=tainted([say.NO_EFFECT]), claims=[r0], gives=got_d1),
        say.scenario(
            103,
            "tainted-one-device-two-taints-both-tolerated",
            slices=twice,
            claims=[[say.request("r0", tolerations=tolerate_both)]],
            gives=[[say.result("r0", "d1", tolerations=tolerate_both)]],
        ),
        say.scenario(104, "tainted-disabled", off=off, slices=twice, claims=[r0], gives=got_d1),
        say.scenario(105, "tainted-prioritized-list", slices=one, claims=[b_or_a]),
        say.scenario(
            106,
            "tainted-prioritized-list-disabled",
            off=off,
            slices=one,
            claims=[b_or_a],
            gives=[[say.result("r0/s1", "d1")]],
        ),
        say.scenario(107, "tainted-admin-access", slices=one, held=["d1", "d2"], claims=[admin]),
        say.scenario(
            108,
            "tainted-admin-access-disabled",
            off=off,
            slices=one,
            held=["d1", "d2"],
            claims=[admin],
            gives=[[say.result("r0", "d1", admin=True)]],
        ),
        say.scenario(109, "tainted-all-devices-single", slices=one, claims=[every]),
        say.scenario(110, "tainted-all-devices-single-disabled", off=off, slices=one, claims=[every], gives=got_d1),
    ]
