"""What a kubelet remembers about plugins and claims, what happens to it, and what it then does: all frozen values."""

from typing import TypeAlias

import msgspec

__all__ = [
    "Action",
    "Call",
    "CallAnswered",
    "CancelWipe",
    "Claim",
    "ClaimInfo",
    "ClaimRef",
    "Connect",
    "ConnectionChanged",
    "Device",
    "Disconnect",
    "Event",
    "Fail",
    "Finished",
    "Instance",
    "Introduced",
    "Notified",
    "Notify",
    "PrepareAnswered",
    "PrepareFinished",
    "PreparePod",
    "Register",
    "RegistrationFailed",
    "SaveCheckpoint",
    "Socket",
    "StartWipe",
    "State",
    "Tick",
    "UnprepareAnswered",
    "UnprepareFinished",
    "UnpreparePod",
    "WipeDue",
    "WipeSlices",
]


class Device(msgspec.Struct, frozen=True):
    """One device of a reply, kept as the plugin gave it (the kubelet checks nothing of it)."""

    pool: str
    device: str
    request_names: tuple[str, ...] = ()
    cdi_device_ids: tuple[str, ...] = ()
    share_id: str | None = None


class ClaimRef(msgspec.Struct, frozen=True):
    """What an RPC says about a claim."""

    namespace: str
    name: str
    uid: str


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of a pod as read from the API server just before preparing it."""

    ref: ClaimRef
    drivers: tuple[str, ...] | None
    """Drivers of its results in order of appearance; None: not allocated."""
    reserved_for: tuple[str, ...] = ()
    """UIDs of the consumers."""


class ClaimInfo(msgspec.Struct, frozen=True):
    """The cache entry of a claim; `prepared` is not kept in the checkpoint (P22)."""

    ref: ClaimRef
    pods: tuple[str, ...]
    devices: dict[str, tuple[Device, ...]]
    prepared: bool = False


class Instance(msgspec.Struct, frozen=True):
    """A registered plugin instance; `id` grows with registration."""

    id: int
    socket: str
    driver: str
    endpoint: str
    version: str
    connected: bool = False
    advertised: tuple[str, ...] = ()
    """All of its supported versions."""


class Socket(msgspec.Struct, frozen=True):
    """A registration socket: what is registered of it, and its backoff."""

    registered: str | None = None
    """Identity (inode) of the socket that is registered; None: none."""
    busy: str | None = None
    """Identity of the socket whose registration is under way."""
    delay: float = 0
    not_before: float = 0


class State(msgspec.Struct, frozen=True):
    """All of it. Dicts are never changed in place."""

    supported: tuple[str, ...] = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
    """Services that the kubelet can call."""
    sockets: dict[str, Socket] = {}
    instances: tuple[Instance, ...] = ()
    """In order of registration: the last connected one of a driver is called (R28)."""
    next_instance: int = 1
    wipes: dict[str, float | None] = {}
    """Drivers without a connection: when their slices go; None: they are gone already."""
    claims: dict[str, ClaimInfo] = {}
    """By `namespace/name` (P21)."""


# Events


class Tick(msgspec.Struct, frozen=True):
    """The reconciler looked at the registry directory: identity by path."""

    now: float
    found: dict[str, str]


class Introduced(msgspec.Struct, frozen=True):
    """GetInfo was answered."""

    now: float
    socket: str
    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...]


class RegistrationFailed(msgspec.Struct, frozen=True):
    """Dial or GetInfo failed, or the refusal was delivered (or not)."""

    now: float
    socket: str


class Notified(msgspec.Struct, frozen=True):
    """Notify(true) was answered well, or failed."""

    now: float
    socket: str
    ok: bool


class ConnectionChanged(msgspec.Struct, frozen=True):
    """The service connection of an instance came up or was lost."""

    now: float
    instance: int
    connected: bool


class WipeDue(msgspec.Struct, frozen=True):
    """The wipe timer of a driver ended."""

    now: float
    driver: str


class PreparePod(msgspec.Struct, frozen=True):
    """A pod needs a sandbox: its claims, in pod.spec.resourceClaims order."""

    pod: str
    pod_name: str
    claims: tuple[Claim, ...]


class CallAnswered(msgspec.Struct, frozen=True):
    """A whole RPC failed, or gave an entry (error text, devices) per claim UID."""

    driver: str
    claims: tuple[ClaimRef, ...]
    error: str | None = None
    entries: dict[str, tuple[str, tuple[Device, ...]]] = {}


class PrepareAnswered(CallAnswered, frozen=True):
    """An answer to NodePrepareResources."""


class UnprepareAnswered(CallAnswered, frozen=True):
    """An answer to NodeUnprepareResources."""


class PrepareFinished(msgspec.Struct, frozen=True):
    """All drivers of a pod answered well."""

    claims: tuple[ClaimRef, ...]


class UnpreparePod(msgspec.Struct, frozen=True):
    """A pod's containers and sandbox are gone: its claims as `namespace/name` keys."""

    pod: str
    claims: tuple[str, ...]


class UnprepareFinished(msgspec.Struct, frozen=True):
    """All drivers of a pod took the claims back."""

    claims: tuple[ClaimRef, ...]


Event: TypeAlias = (
    Tick
    | Introduced
    | RegistrationFailed
    | Notified
    | ConnectionChanged
    | WipeDue
    | PreparePod
    | PrepareAnswered
    | PrepareFinished
    | UnpreparePod
    | UnprepareAnswered
    | UnprepareFinished
)

# Actions


class Register(msgspec.Struct, frozen=True):
    """Dial the registration socket and call GetInfo."""

    socket: str


class Notify(msgspec.Struct, frozen=True):
    """Tell the plugin whether it is registered; empty error: it is."""

    socket: str
    error: str = ""


class Connect(msgspec.Struct, frozen=True):
    """Open the one service connection of an instance."""

    instance: Instance


class Disconnect(msgspec.Struct, frozen=True):
    """Close the service connection of an instance; calls in flight are cancelled."""

    instance: Instance


class StartWipe(msgspec.Struct, frozen=True):
    """Report WipeDue at `due`."""

    driver: str
    due: float


class CancelWipe(msgspec.Struct, frozen=True):
    """A connection is back in time."""

    driver: str


class WipeSlices(msgspec.Struct, frozen=True):
    """Delete the driver's ResourceSlices of this node."""

    driver: str


class SaveCheckpoint(msgspec.Struct, frozen=True):
    """Write the claims to disk before anything else happens."""


class Call(msgspec.Struct, frozen=True):
    """One RPC to one driver with all its claims of the pod (P19)."""

    driver: str
    claims: tuple[ClaimRef, ...]


class Fail(msgspec.Struct, frozen=True):
    """The sync of the pod fails with this text."""

    message: str


class Finished(msgspec.Struct, frozen=True):
    """Nothing (more) to call for this pod."""


Action: TypeAlias = (
    Register
    | Notify
    | Connect
    | Disconnect
    | StartWipe
    | CancelWipe
    | WipeSlices
    | SaveCheckpoint
    | Call
    | Fail
    | Finished
)
