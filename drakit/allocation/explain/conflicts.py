"""Minimal conflicts: requests and constraints that cannot be satisfied together, each of them needed for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drakit.allocation.explain.parts import Part, Parts, Rule
    from drakit.allocation.explain.world import World

__all__ = ["Core", "minimal_core"]


class Core(msgspec.Struct, frozen=True):
    """A set that cannot be satisfied; `minimal` when leaving out any one member was shown to help."""

    requests: tuple[Part, ...]
    rules: tuple[Rule, ...]
    minimal: bool


def minimal_core(world: World, parts: Parts, requests: Sequence[Part], rules: Sequence[Rule]) -> Core:
    """Shrink a set that cannot be satisfied, by leaving out one member after the other as long as it stays so.

    Whether a subset fits depends on upstream's order too (an error ends a search that might go on), so a larger set may
    fit where a smaller one does not. Therefore the passes are repeated until one of them finds nothing to leave out:
    then every member is needed. Constraints go first, all at once: a conflict without any is the plainest.
    """
    shrinking = _Shrinking(world, parts, list(requests), list(rules))
    shrinking.start()
    while shrinking.run():
        pass
    return Core(tuple(shrinking.requests), tuple(shrinking.rules), shrinking.proved)


class _Shrinking:
    def __init__(self, world: World, parts: Parts, requests: list[Part], rules: list[Rule]) -> None:
        self._world = world
        self._parts = parts
        self.requests = requests
        self.rules = rules
        self.proved = True

    def start(self) -> None:
        if self.rules and self._blocked(self.requests, []):
            self.rules = []

    def run(self) -> bool:
        """One pass; whether anything was left out."""
        self.proved = True
        before = len(self.requests), len(self.rules)
        for part in reversed(self.requests):
            rest = [each for each in self.requests if each != part]
            if rest and self._blocked(rest, self._of(rest)):
                self.requests, self.rules = rest, self._of(rest)
        for rule in reversed(self.rules):
            kept = [each for each in self.rules if each != rule]
            if self._blocked(self.requests, kept):
                self.rules = kept
        return (len(self.requests), len(self.rules)) != before

    def _of(self, requests: list[Part]) -> list[Rule]:
        """The constraints of claims that are still there."""
        places = {place for place, _ in requests}
        return [rule for rule in self.rules if rule[0] in places]

    def _blocked(self, requests: list[Part], rules: list[Rule]) -> bool:
        """Whether the subset is known not to fit."""
        answer = self._world.attempt(self._parts.subset(requests, rules).claims)
        self.proved = self.proved and answer.known
        return answer.known and not answer.fits
