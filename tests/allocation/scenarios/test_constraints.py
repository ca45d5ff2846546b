"""Attributes that must be equal, or differ (spec/allocator.md 6.1, 1.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


def test_scenario(row: Any, play: Callable[[Any], None]) -> None:
    play(row)


def test_variation(variation: Any, play: Callable[[Any], None]) -> None:
    play(variation)


def scenarios(say: SimpleNamespace) -> list[Any]:
    r0, r1, r2 = say.request("r0"), say.request("r1"), say.request("r2")
    two = say.request("r0", count=2)
    one, other = say.version("1.0.0"), say.version("2.0.0")

    def differing(attribute: str, *values: Any) -> list[Any]:
        return [say.slice(*(say.device(f"d{index}", {attribute: value}) for index, value in enumerate(values, 1)))]

    def none_match(number: int, kind: str, *values: Any) -> Any:
        name = f"with-constraint-not-matching-{kind}-attribute"
        slices = differing("x", *values)
        return say.scenario(number, name, slices=slices, claims=[say.claim(two, constraints=[say.match("x")])])

    same = {"numa": 1, "driverVersion": one, "model": "m", "healthy": True}
    shareable = [
        say.device("d1", {"release": one, "numa": 0, "even": True}, shareable=True),
        say.device("d2", {"release": say.version("1.0.1"), "numa": 1, "even": False}, shareable=True),
        say.device("d3", {"release": say.version("1.0.2"), "numa": 2, "even": True}, shareable=True),
        say.device("d4", {"release": one, "numa": 3, "even": True}, shareable=True),
    ]
    preferring = [
        say.first_of(name, say.subrequest("s0", say.flag("even")), say.subrequest("s1")) for name in ("r0", "r1", "r2")
    ]
    shareables = say.class_a("device.allowMultipleAllocations == true")

    def sharing(*places: tuple[str, str]) -> list[Any]:
        return [say.result(request, device, consumed={}) for request, device in places]

    def rooms(*names: str) -> list[Any]:
        capacity = {"units": say.ranged("4" if len(names) > 1 else "2")}
        return [say.device(name, {"room": name}, shareable=True, capacity=capacity) for name in names]

    return [
        say.scenario(
            45,
            "with-constraint",
            slices=[say.slice(say.device("d1", same), say.device("d2", same))],
            claims=[say.claim(r0, r1, constraints=[say.match(name) for name in same])],
            gives=[[say.result("r0", "d1"), say.result("r1", "d2")]],
        ),
        say.scenario(
            46,
            "with-constraint-non-existent-attribute",
            slices=[say.slice(say.device("d1"))],
            claims=[say.claim(r0, constraints=[say.match("missing")])],
        ),
        none_match(47, "int", 1, 2),
        # Defect X4, kept: a request for all devices does not fall back.
        say.scenario(
            48,
            "with-constraint-not-matching-int-attribute-all-devices",
            slices=differing("numa", 1, 2),
            claims=[say.claim(say.every("r0"), constraints=[say.match("numa")])],
            fails="claim c0, request r0: cannot add device driver-a/p1/d2 because a claim constraint would not be satisfied",
        ),
        none_match(49, "string", "one", "two"),
        none_match(50, "bool", True, False),
        none_match(51, "version", one, other),
        say.scenario(
            52,
            "with-constraint-for-request",
            slices=differing("driverVersion", one, other),
            claims=[say.claim(r0, r1, constraints=[say.match("driverVersion", "r0")])],
            gives=[[say.result("r0", "d1"), say.result("r1", "d2")]],
        ),
        # d1 is fine for the first constraint, but it has no partner for the second.
        say.scenario(
            53,
            "with-constraint-for-request-retry",
            slices=[
                say.slice(
                    say.device("d1", {"driverVersion": one, "kind": "a"}),
                    say.device("d2", {"driverVersion": other, "kind": "b"}),
                    say.device("d3", {"driverVersion": say.version("3.0.0"), "kind": "b"}),
                )
            ],
            claims=[say.claim(r0, r1, constraints=[say.match("driverVersion", "r0"), say.match("kind")])],
            gives=[[say.result("r0", "d2"), say.result("r1", "d3")]],
        ),
        say.scenario(
            167,
            "with-distinct-constraints",
            slices=[say.slice(*shareable)],
            claims=[
                say.claim(
                    *(r0, r1, r2, say.request("r3")),
                    constraints=[
                        say.distinct("even", "r0", "r1"),
                        say.distinct("release", "r0", "r1", "r2"),
                        say.distinct("numa", "r0", "r1", "r2", "r3"),
                    ],
                )
            ],
            gives=[sharing(("r0", "d1"), ("r1", "d2"), ("r2", "d3"), ("r3", "d4"))],
        ),
        say.scenario(
            168,
            "with-distinct-constraints-attribute-not-set",
            slices=[say.slice(say.device("d1", shareable=True))],
            claims=[say.claim(r0, constraints=[say.distinct("even", "r0")])],
        ),
        # The selector of the class already fails: the device as a whole cannot be shown to it.
        say.scenario(
            169,
            "with-distinct-constraints-unknown-type-attribute",
            slices=[say.slice(say.device("d1", {"even": say.NO_VALUE}, shareable=True))],
            claims=[say.claim(r0, constraints=[say.distinct("even", "r0")])],
            fails="unsupported attribute value",
        ),
        # r2 is not in the constraint and shares d1 with r0.
        say.scenario(
            170,
            "with-distinct-constraints-with-subrequests",
            slices=[say.slice(*shareable[:2])],
            claims=[say.claim(*preferring, constraints=[say.distinct("even", "r0", "r1")])],
            gives=[sharing(("r0/s0", "d1"), ("r1/s1", "d2"), ("r2/s0", "d1"))],
        ),
        say.scenario(
            171,
            "distinct-constraint-one-multi-allocatable-device-with-distinct-constraint",
            classes=[shareables],
            slices=[say.slice(*rooms("d1"))],
            claims=[
                say.claim(
                    say.request("r0", needs="1"), say.request("r1", needs="1"), constraints=[say.distinct("room")]
                )
            ],
        ),
        say.scenario(
            172,
            "distinct-constraint-two-multi-allocatable-devices-with-distinct-constraint",
            classes=[shareables],
            slices=[say.slice(each, of=2) for each in rooms("d1", "d2")],
            claims=[
                say.claim(
                    say.request("r0", needs="2"), say.request("r1", needs="2"), constraints=[say.distinct("room")]
                )
            ],
            gives=[
                [
                    say.result("r0", "d1", consumed={"units": "2"}),
                    say.result("r1", "d2", consumed={"units": "2"}),
                ]
            ],
        ),
    ]


def variations(say: SimpleNamespace) -> list[Any]:
    """What upstream added after the table: all devices of a request differ, not only neighbours (defect D, fixed).

    And 171 with room for both requests on the device: there it is full after one, with or without the constraint.
    """
    roomy = say.device("d1", {"room": "r"}, shareable=True, capacity={"units": say.ranged("4")})
    sharing = [say.request(name, needs="2") for name in ("r0", "r1")]

    def kinds(values: str) -> list[Any]:
        return [say.slice(*(say.device(f"d{index}", {"kind": kind}) for index, kind in enumerate(values, 1)))]

    three = [say.claim(say.request("r0", count=3), constraints=[say.distinct("kind")])]
    return [
        say.scenario(
            0,
            "two-requests-share-a-device-with-room",
            slices=[say.slice(roomy)],
            claims=[sharing],
            gives=[[say.result(name, "d1", consumed={"units": "2"}) for name in ("r0", "r1")]],
        ),
        say.scenario(
            0,
            "unless-they-must-differ",
            slices=[say.slice(roomy)],
            claims=[say.claim(*sharing, constraints=[say.distinct("room")])],
        ),
        say.scenario(0, "a-value-that-comes-back-is-not-distinct", slices=kinds("aba"), claims=three),
        say.scenario(
            0,
            "the-search-goes-on-to-one-that-is",
            slices=kinds("abac"),
            claims=three,
            gives=[[say.result("r0", name) for name in ("d1", "d2", "d4")]],
        ),
        say.scenario(
            0,
            "across-requests-too",
            slices=kinds("aba"),
            claims=[
                say.claim(say.request("r0", count=2), say.request("r1"), constraints=[say.distinct("kind", "r0", "r1")])
            ],
        ),
    ]
