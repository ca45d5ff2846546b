"""How long to wait before the next attempt."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Backoff"]


@dataclass(slots=True)
class Backoff:
    """Doubling delays with jitter, never shorter than what the server asked for.

    Attributes:
        first: upper bound of the first delay, seconds.
        most: upper bound of any delay, seconds; Retry-After may exceed it.
        jitter: source of numbers in [0, 1); half of each delay is fixed, half is drawn, so that many clients spread.
        failures: attempts failed since the last reset.
    """

    first: float = 0.2
    most: float = 30.0
    jitter: Callable[[], float] = random.random
    failures: int = field(default=0)

    def delay(self, retry_after: float | None = None) -> float:
        """Count one failure and return the seconds to wait."""
        bound = min(self.most, self.first * float(1 << min(self.failures, 30)))
        self.failures += 1
        waiting = bound * (0.5 + 0.5 * self.jitter())
        # The jitter stays on top of Retry-After: everybody was told the same moment.
        return waiting if retry_after is None else retry_after + min(waiting, 1.0)

    def reset(self) -> None:
        """Forget the failures: something worked."""
        self.failures = 0
