"""The kubelet's timers, as measured on kubelet 1.36.2 (all in seconds)."""

import random

import msgspec

__all__ = ["RECORDED", "Timers"]


class Timers(msgspec.Struct, frozen=True, kw_only=True):
    """One field per row of the recorded timer table; tests shorten what they do not examine.

    Deadlines of RPCs run on real time (they belong to sockets), everything else on the kubelet's clock.
    """

    reconciler_tick: float = 1.0
    """Plugin reconciler: all sockets in parallel, the first tick at once at start."""
    registration_dial: float = 10.0
    """How long one attempt waits for a registration socket to accept."""
    get_info: float = 1.0
    """Deadline of GetInfo."""
    notify: float = 5.0
    """Deadline of NotifyRegistrationStatus."""
    registration_backoff: float = 0.5
    """First wait after a failed registration; doubles, and ends at the first tick after it."""
    registration_backoff_cap: float = 122.0
    rpc: float = 45.0
    """Deadline of NodePrepareResources and NodeUnprepareResources."""
    sync: float = 60.0
    """syncFrequency: a pod whose prepare failed is tried again after this times 1..1.5."""
    unprepare_first_retry: float = 0.2
    """The status change after the first failed unprepare triggers one early retry (0.15 to 0.5 s)."""
    unprepare_retry: float = 10.0
    """Later retries of a failed unprepare, times 1..1.5."""
    housekeeping: float = 1.5
    """Retry for pods that were deleted by force (1 to 2 s)."""
    reconcile: float = 60.0
    """The loop that unprepares claims of pods nobody knows; its first useful run is one period after start."""
    slice_wipe: float = 30.0
    """From the loss of a driver's last connection to the deletion of its ResourceSlices."""
    reconnect: float = 1.0
    """grpc-go's first backoff of the service connection."""
    reconnect_factor: float = 1.6
    reconnect_jitter: float = 0.2
    reconnect_cap: float = 120.0
    health_retry: float = 5.0
    """From the end of a health stream to the next attempt."""
    container_backoff: float = 10.0
    """First wait before a container that failed to start is created again; doubles."""
    container_backoff_cap: float = 300.0
    pleg: float = 1.0
    """How late the end of a container is noticed."""
    first_sync: float = 1.28
    """From the start of the kubelet to its first pod syncs: a plugin that is later costs its pods a sync period."""
    removal: float = 0.9
    """From the final status of a deleted pod to the end of its object (0.8 to 1.0 s)."""

    def sync_delay(self, rng: random.Random) -> float:
        """The wait after a failed prepare: syncFrequency x 1..1.5."""
        return self.sync * rng.uniform(1, 1.5)

    def unprepare_delay(self, failures: int, rng: random.Random) -> float:
        """The wait after the `failures`-th failed unprepare of a pod."""
        return self.unprepare_first_retry if failures <= 1 else self.unprepare_retry * rng.uniform(1, 1.5)

    def registration_delay(self, previous: float) -> float:
        """The backoff that follows `previous` (0 for the first failure)."""
        return min(previous * 2 or self.registration_backoff, self.registration_backoff_cap)

    def reconnect_delay(self, attempt: int, rng: random.Random) -> float:
        """grpc-go's backoff before dialling again after `attempt` failures in a row (the first has no jitter)."""
        if attempt <= 1:
            return self.reconnect
        delay = min(self.reconnect * self.reconnect_factor ** (attempt - 1), self.reconnect_cap)
        return delay * rng.uniform(1 - self.reconnect_jitter, 1 + self.reconnect_jitter)

    def container_delay(self, failures: int) -> float:
        """The start backoff of a container after `failures` failed starts."""
        return min(self.container_backoff * 2.0 ** (failures - 1), self.container_backoff_cap)


RECORDED = Timers()
