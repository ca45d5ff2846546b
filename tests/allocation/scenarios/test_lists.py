"""Attributes with several values in constraints (spec/allocator.md 6.1, 1.8)."""

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
    lists = ["list_type_attributes"]

    def table(values: tuple[Any, ...]) -> list[Any]:
        return [say.slice(*(say.device(f"d{index}", {"x": value}) for index, value in enumerate(values, 1)))]

    def matching(number: int, name: str, *values: Any, fits: bool = True, count: int = 2, **more: Any) -> Any:
        """A claim for `count` devices that agree on `x`; the name is upstream's, with its slip."""
        return say.scenario(
            number,
            f"list-attributes-match-constaint-{name}" if more.get("on", lists) else name,
            **{"on": lists, **more},
            slices=table(values),
            claims=[say.claim(say.request("r0", count=count), constraints=[say.match("x")])],
            gives=[[say.result("r0", f"d{index}") for index in range(1, count + 1)]] if fits else None,
        )

    def disjoint(number: int, name: str, *values: Any, fits: bool = True, places: str = "13", **more: Any) -> Any:
        """A claim for two devices that share no value of `x`."""
        return say.scenario(
            number,
            f"list-attributes-distinct-constraint-{name}" if more.get("on", lists) else name,
            **{"on": lists, **more},
            slices=table(values),
            claims=[say.claim(say.request("r0", count=2), constraints=[say.distinct("x")])],
            gives=[[say.result("r0", f"d{place}") for place in places]] if fits else None,
        )

    unknown = {"slices": table((say.NO_VALUE, say.NO_VALUE)), "fails": "unsupported attribute value", "on": lists}
    two = say.request("r0", count=2)
    versions = say.versions
    ab, bc, cd, ca = ["a", "b"], ["b", "c"], ["c", "d"], ["c", "a"]
    abc, bcd = ["a", "b", "c"], ["b", "c", "d"]
    return [
        matching(173, "scalar-string-values", "a", "a"),
        matching(174, "list-of-string-values-with-common-elements", abc, bcd),
        # Any two have a value in common, but not all three.
        matching(175, "list-of-string-values-with-partially-common-elements", ab, bc, ca, count=3, fits=False),
        matching(176, "list-of-string-values-without-common-elements", ab, cd, fits=False),
        matching(177, "mixed-scalar-and-list-of-string-values-with-common-elements", "a", ab),
        matching(
            178,
            "mixed-scalar-and-list-of-string-values-with-partially-common-elements",
            *("a", ab, bc),
            count=3,
            fits=False,
        ),
        matching(179, "mixed-scalar-and-list-of-string-values-without-common-elements", "a", bc, fits=False),
        matching(180, "list-of-int-values-with-common-elements", [0, 1, 2], [1, 2, 3]),
        matching(181, "list-of-bool-values-with-common-elements", [True, False], [True]),
        matching(
            182,
            "list-of-version-values-with-common-elements",
            versions("1.0.0", "1.1.0", "2.0.0"),
            versions("1.1.0", "2.0.0", "2.1.0"),
        ),
        say.scenario(
            183,
            "list-attributes-match-constaint-with-empty-or-unknown-type",
            claims=[say.claim(two, constraints=[say.match("x")])],
            **unknown,
        ),
        matching(184, "list-attributes-disabled-match-constraint-with-lists", abc, bcd, on=[], fits=False),
        disjoint(185, "scalar-string-values-all-distinct", "a", "b", places="12"),
        disjoint(186, "scalar-string-values-not-distinct", "a", "a", fits=False),
        disjoint(187, "list-of-string-values-all-distinct", ab, bc, cd),
        disjoint(188, "list-of-string-values-with-common-elements", abc, ["b", "d", "e"], fits=False),
        disjoint(189, "mixed-scalar-and-list-all-distinct", "a", ab, bc),
        disjoint(190, "mixed-scalar-and-list-with-common-elements", "a", ab, fits=False),
        disjoint(191, "list-of-int-values-all-distinct", [0, 1], [1, 2], [2, 3]),
        disjoint(192, "list-of-bool-values-all-distinct", [True], [True, False], [False]),
        disjoint(
            193,
            "list-of-version-values-all-distinct",
            versions("1.0.0", "1.1.0"),
            versions("1.1.0", "2.0.0"),
            versions("2.0.0", "2.1.0"),
        ),
        say.scenario(
            194,
            "list-attributes-distinct-constaint-with-empty-or-unknown-type",
            claims=[say.claim(two, constraints=[say.distinct("x")])],
            **unknown,
        ),
        disjoint(195, "list-attributes-disabled-distinct-constraint-with-lists", abc, bcd, on=[], fits=False),
    ]


def variations(say: SimpleNamespace) -> list[Any]:
    """Without the gate, whatever the values: a list goes first or not at all."""

    def two(name: str, constraint: Any, *values: Any, fits: bool) -> Any:
        devices = [say.device(f"d{index}", {"x": value}) for index, value in enumerate(values, 1)]
        return say.scenario(
            0,
            name,
            slices=[say.slice(*devices)],
            claims=[say.claim(say.request("r0", count=2), constraints=[constraint])],
            gives=[[say.result("r0", "d1"), say.result("r0", "d2")]] if fits else None,
        )

    match, distinct = say.match("x"), say.distinct("x")
    return [
        two("equal-lists-do-not-match", match, ["a"], ["a"], fits=False),
        two("nothing-matches-a-list", match, ["a"], "a", fits=False),
        two("disjoint-lists-are-not-distinct", distinct, ["a"], ["b"], fits=False),
        two("a-scalar-is-distinct-from-a-list-before", distinct, ["a"], "a", fits=True),
        two("but-not-from-a-list-behind", distinct, "a", ["b"], fits=False),
    ]
