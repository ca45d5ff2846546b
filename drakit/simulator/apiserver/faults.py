"""Failures on purpose, and counts of what was asked: the hooks of tests."""

from collections import Counter, deque
from typing import Literal

import msgspec

from drakit.simulator.apiserver.errors import Refused

__all__ = ["Call", "Fault", "Faults", "Requests"]

Effect = Literal["fail", "delay", "drop", "lose"]
WRITE_VERBS = frozenset({"create", "update", "patch", "apply", "delete", "deletecollection"})
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Call(msgspec.Struct, frozen=True):
    """One request as authorization sees it.

    `resource` is the plural name, `node` the node that the user's token is bound to, `status` 0 when it was not
    answered.
    """

    verb: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    group: str = ""
    version: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    status: int = 0
    node: str = ""
    dry_run: bool = False


class Fault(msgspec.Struct):
    """What goes wrong for matching requests; None matches all. `left` counts down, None never ends.

    `fail` answers with `status` without looking at the request, `delay` waits `seconds` first, `drop` closes the
    connection before anything is done, `lose` closes it after the request was carried out.
    """

    effect: Effect
    verb: str | None = None
    resource: str | None = None
    subresource: str | None = None
    name: str | None = None
    user: str | None = None
    left: int | None = 1
    status: int = 500
    reason: str = ""
    message: str = "injected by the test"
    retry_after: int | None = None
    seconds: float = 0.0

    def matches(self, call: Call) -> bool:
        """Whether `call` is hit."""
        if self.left == 0:
            return False
        wanted = (
            (self.verb, call.verb),
            (self.resource, call.resource),
            (self.subresource, call.subresource),
            (self.name, call.name),
            (self.user, call.user),
        )
        return all(value is None or value == actual for value, actual in wanted)

    def refusal(self) -> Refused:
        """The answer of a `fail`."""
        reason = self.reason or _REASONS.get(self.status, "InternalError")
        return Refused(self.status, reason, self.message, details={}, retry_after=self.retry_after)


class Faults:
    """The failures that are armed."""

    def __init__(self) -> None:
        """Nothing fails."""
        self._armed: list[Fault] = []

    def fail(
        self,
        status: int,
        *,
        times: int | None = 1,
        retry_after: int | None = None,
        reason: str = "",
        message: str = "injected by the test",
        verb: str | None = None,
        resource: str | None = None,
        subresource: str | None = None,
        name: str | None = None,
        user: str | None = None,
    ) -> Fault:
        """Answer the next `times` matching requests (None: all) with `status`, with Retry-After when given."""
        return self.arm(
            Fault(
                "fail",
                verb,
                resource,
                subresource,
                name,
                user,
                times,
                status=status,
                reason=reason,
                message=message,
                retry_after=retry_after,
            )
        )

    def delay(
        self,
        seconds: float,
        *,
        times: int | None = 1,
        verb: str | None = None,
        resource: str | None = None,
        name: str | None = None,
    ) -> Fault:
        """Let the next `times` matching requests wait on the server's clock."""
        return self.arm(Fault("delay", verb, resource, None, name, None, times, seconds=seconds))

    def drop(
        self,
        *,
        times: int | None = 1,
        after_work: bool = False,
        verb: str | None = None,
        resource: str | None = None,
        subresource: str | None = None,
        name: str | None = None,
    ) -> Fault:
        """Close the connection without an answer, `after_work`: once the request was carried out."""
        return self.arm(Fault("lose" if after_work else "drop", verb, resource, subresource, name, None, times))

    def arm(self, fault: Fault) -> Fault:
        """Add a fault; returns it, so that the test can see what is `left` of it."""
        self._armed.append(fault)
        return fault

    def clear(self) -> None:
        """Nothing fails any more."""
        self._armed.clear()

    def take(self, call: Call) -> list[Fault]:
        """The faults that hit `call`: each delay, and the first other one. Their counts go down."""
        hit: list[Fault] = []
        for fault in self._armed:
            if fault.matches(call) and (fault.effect == "delay" or all(other.effect == "delay" for other in hit)):
                if fault.left is not None:
                    fault.left -= 1
                hit.append(fault)
        self._armed = [fault for fault in self._armed if fault.left != 0]
        return hit


class Requests:
    """Counts of answered requests by verb and resource, and the latest of them in order."""

    def __init__(self, keep: int = 10_000) -> None:
        """Remember the last `keep` calls."""
        self.calls: deque[Call] = deque(maxlen=keep)
        self.counts: Counter[tuple[str, str]] = Counter()

    def note(self, call: Call) -> None:
        """Count one answered call."""
        self.calls.append(call)
        self.counts[call.verb, call.resource] += 1

    def count(self, verb: str | None = None, resource: str | None = None) -> int:
        """How many requests had that verb and resource; None counts all."""
        return sum(
            number
            for (counted_verb, counted_resource), number in self.counts.items()
            if verb in {None, counted_verb} and resource in {None, counted_resource}
        )

    def writes(self, resource: str | None = None) -> int:
        """How many requests asked for a change of `resource`, refused ones and dry runs included."""
        return sum(self.count(verb, resource) for verb in WRITE_VERBS)

    def clear(self) -> None:
        """Start counting again."""
        self.calls.clear()
        self.counts.clear()
