"""What can go wrong with one claim, and whose fault it is.

The kubelet retries everything alike, so `permanent` is for people: such an error is logged once, shown as an Event, and
counted with its `kind`.
"""

__all__ = [
    "ClaimError",
    "ConfigurationError",
    "DeviceHeldError",
    "HookError",
    "HookTimeoutError",
    "LookupFailedError",
    "NoResultsError",
    "PermanentError",
    "StateError",
    "TooManyHooksError",
]


class ClaimError(Exception):
    """One claim cannot be prepared or unprepared now; the text reaches the pod's events."""

    kind = "claim"
    permanent = False


class PermanentError(ClaimError):
    """Raise it from a hook when a retry cannot help, for example for a contradictory configuration."""

    kind = "permanent"
    permanent = True


class ConfigurationError(PermanentError):
    """The claim's opaque parameters for this driver are wrong."""

    kind = "config"


class NoResultsError(PermanentError):
    """Nothing in the claim was allocated from this driver, so the kubelet should not have asked."""

    kind = "no_results"


class DeviceHeldError(ClaimError):
    """Another claim holds a device exclusively (last line of defence, P12)."""

    kind = "device_held"


class HookError(ClaimError):
    """The device driver's own code raised."""

    kind = "hook"


class HookTimeoutError(ClaimError):
    """The device driver's own code has not returned in time; its claim stays busy until it does."""

    kind = "hook_timeout"


class TooManyHooksError(ClaimError):
    """As many hooks run as are allowed at once."""

    kind = "too_many_hooks"


class StateError(ClaimError):
    """The node's disk does not let us record what we do, so nothing was done."""

    kind = "state"


class LookupFailedError(Exception):
    """A claim of the request is missing, not allocated or replaced: the whole RPC fails (P6)."""
