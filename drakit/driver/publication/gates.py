"""Which feature gates the API server seems to lack, found out without showing the scheduler anything wrong.

A device whose fallback is WITHHOLD must not be seen without its fields, not even for a moment. So before such devices
are written for the first time, one of their slices is tried out by a dry run; and when a gate is known to be off, dry
runs once an hour tell when it has been turned on.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from drakit import kube
from drakit.clock import Clock
from drakit.driver.publication import features
from drakit.driver.publication.features import DEFAULT_FALLBACKS, UNKNOWN, Fallback
from drakit.driver.publication.layout import SliceContent

__all__ = ["GateState", "TryOut"]

PROBE_SECONDS = 3600.0

TryOut = Callable[[SliceContent], Awaitable[SliceContent | None]]
"""Dry run: what the server would store; None when that cannot be read."""


class GateState:
    """Gates that are off, gates that are known to be on.

    Args:
        fallbacks: what to do without a gate, over DEFAULT_FALLBACKS.
        clock: time.
        on_off: told of a gate that is found to be off, and what is done about it.

    Attributes:
        off: gates that publication goes without, with their fallbacks.
        probe_at: when to try again what is off (monotonic seconds); None = nothing is.
    """

    def __init__(
        self, fallbacks: Mapping[str, Fallback] | None, clock: Clock, on_off: Callable[[str, Fallback], None]
    ) -> None:
        self.off: dict[str, Fallback] = {}
        self.probe_at: float | None = None
        self._fallbacks = {**DEFAULT_FALLBACKS, **(fallbacks or {})}
        self._clock, self._on_off = clock, on_off
        self._on: set[str] = set()

    def turn_off(self, gate: str) -> bool:
        """Go without a gate from now on; whether that is new."""
        if gate in self.off or gate == UNKNOWN:
            return False
        self.off[gate] = self._fallbacks.get(gate, Fallback.KEEP)
        self._arm()
        self._on_off(gate, self.off[gate])
        return True

    def noticed(self, gates: Iterable[str]) -> None:
        """Fields of these gates were dropped by a write."""
        self._arm()
        for gate in gates:
            if self._fallbacks.get(gate) is Fallback.WITHHOLD:
                self.turn_off(gate)

    async def verify(self, contents: Iterable[SliceContent], try_out: TryOut) -> bool:
        """Try out what must not be shown without its fields; whether a gate was found to be off.

        Raises:
            ApiError: the server could not tell.
        """
        listed = list(contents)
        found = False
        for gate in features.GATES:
            if self._fallbacks[gate.name] is not Fallback.WITHHOLD or gate.name in self._on or gate.name in self.off:
                continue
            content = next((each for each in listed if features.uses(gate, each)), None)
            if content is None:
                continue
            if await self._keeps(gate.name, content, try_out):
                self._on.add(gate.name)
            else:
                found |= self.turn_off(gate.name)
        return found

    async def probe(self, contents: Iterable[SliceContent], try_out: TryOut) -> bool:
        """Try again what is off, on slices as they should be; whether a gate has been turned on."""
        self.probe_at = None
        listed = list(contents)
        found = False
        for gate in features.GATES:
            content = next((each for each in listed if features.uses(gate, each)), None)
            if gate.name not in self.off or content is None:
                continue
            if await self._keeps(gate.name, content, try_out):
                del self.off[gate.name]
                found = True
        if self.off:
            self._arm()
        return found

    async def _keeps(self, gate: str, content: SliceContent, try_out: TryOut) -> bool:
        try:
            stored = await try_out(content)
        except kube.Invalid as error:
            return gate not in features.hinted(content, tuple(cause.field for cause in error.causes))
        return stored is None or gate not in features.dropped(content, stored)

    def _arm(self) -> None:
        self.probe_at = self.probe_at or self._clock.monotonic() + PROBE_SECONDS
