"""Configuration of classes and claims in the allocation (spec/allocator.md 6.1, 1.15)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def scenarios(say: SimpleNamespace) -> list[Any]:
    r0, r1, r2 = say.request("r0"), say.request("r1"), say.request("r2")
    several = [say.slice(*say.devices(3))]
    got = [say.result(f"r{index}", f"d{index}") for index in range(3)]
    b_slice = say.slice(say.device("d1"), say.device("d2"), driver="driver-b")
    got_b = [say.result("r0/s1", name, driver="driver-b") for name in ("d1", "d2")]
    a_or_b = say.first_of("r0", say.subrequest("s0"), say.subrequest("s1", cls="class-b"))
    got_a = [say.result("r0/s0", "d0"), say.result("r1", "d1")]

    def here(*results: Any, config: list[Any]) -> Any:
        return say.allocation(*results, selector=say.named("node-1"), config=config)

    def claimed(value: str, *requests: str, driver: str = "driver-a") -> Any:
        return say.config(value, *requests, driver=driver, source="FromClaim")

    def classed(value: str, *requests: str, driver: str = "driver-a") -> Any:
        return say.config(value, *requests, driver=driver, source="FromClass")

    return [
        # Lists of requests that cover the whole claim are dropped.
        say.scenario(
            54,
            "with-class-device-config",
            classes=[say.class_a(config=say.config("a"))],
            slices=several,
            claims=[[r0]],
            gives=[here(got[0], config=[classed("a")])],
        ),
        say.scenario(
            55,
            "with-class-device-config-with-multiple-request-and-configs",
            classes=[say.class_a(config=say.config("a")), say.class_b(config=say.config("b", driver="driver-b"))],
            slices=[say.slice(*say.devices(2)), say.slice(say.device("d2"), driver="driver-b")],
            claims=[[r0, r1, say.request("r2", cls="class-b")]],
            gives=[
                here(
                    *(got[0], got[1], say.result("r2", "d2", driver="driver-b")),
                    config=[classed("a", "r0", "r1"), classed("b", "r2", driver="driver-b")],
                )
            ],
        ),
        say.scenario(
            56,
            "with-claim-config-for-two-requests",
            slices=several,
            claims=[say.claim(r0, r1, r2, config=[say.config("two", "r0", "r1")])],
            gives=[here(*got, config=[claimed("two", "r0", "r1")])],
        ),
        say.scenario(
            57,
            "claim-with-device-config",
            slices=several,
            claims=[say.claim(r0, config=[say.config("claim")])],
            gives=[here(got[0], config=[claimed("claim")])],
        ),
        say.scenario(
            70,
            "prioritized-list-device-config",
            slices=[b_slice],
            claims=[
                say.claim(
                    say.first_of("r0", say.subrequest("s0"), say.subrequest("s1", cls="class-b", count=2)),
                    config=[say.config("foo", "r0/s0"), say.config("bar", "r0/s1", driver="driver-b")],
                )
            ],
            gives=[here(*got_b, config=[claimed("bar", driver="driver-b")])],
        ),
        say.scenario(
            71,
            "prioritized-list-class-config",
            classes=[say.class_a(config=say.config("foo")), say.class_b(config=say.config("bar", driver="driver-b"))],
            slices=[b_slice, say.slice(say.device("d3"), pool="p2")],
            claims=[[say.first_of("r0", say.subrequest("s0", count=2), say.subrequest("s1", cls="class-b", count=2))]],
            gives=[here(*got_b, config=[classed("bar", driver="driver-b")])],
        ),
        # The list is kept as it was written, with the alternative that was not chosen.
        say.scenario(
            72,
            "claim-config-scoped-to-subrequests-of-one-request",
            slices=several,
            claims=[say.claim(a_or_b, r1, config=[say.config("scoped", "r0/s0", "r0/s1")])],
            gives=[here(*got_a, config=[claimed("scoped", "r0/s0", "r0/s1")])],
        ),
        say.scenario(
            73,
            "claim-config-covering-all-requests-is-cleared",
            slices=several,
            claims=[say.claim(a_or_b, r1, config=[say.config("all", "r0/s0", "r1")])],
            gives=[here(*got_a, config=[claimed("all")])],
        ),
    ]
