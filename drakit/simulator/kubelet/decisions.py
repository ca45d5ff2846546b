"""What kubelet 1.36 does when something happens: decide(state, event) -> (state, actions), without any I/O.

Rules and texts are those of a recorded kubelet; letters and numbers (R24, P19) name the rule in the specification of
the plugin interface, figures in square brackets the recorded scenario.
"""

from typing import assert_never

from msgspec import structs

from drakit.simulator.kubelet.state import (
    Action,
    Call,
    CallAnswered,
    CancelWipe,
    Claim,
    ClaimInfo,
    ClaimRef,
    Connect,
    ConnectionChanged,
    Device,
    Disconnect,
    Event,
    Fail,
    Finished,
    Instance,
    Introduced,
    Notified,
    Notify,
    PrepareAnswered,
    PrepareFinished,
    PreparePod,
    Register,
    RegistrationFailed,
    SaveCheckpoint,
    Socket,
    StartWipe,
    State,
    Tick,
    UnprepareAnswered,
    UnprepareFinished,
    UnpreparePod,
    WipeDue,
    WipeSlices,
)
from drakit.simulator.kubelet.timers import RECORDED, Timers

__all__ = ["PLUGIN_TYPE", "choose_version", "decide", "pick"]

PLUGIN_TYPE = "DRAPlugin"

Decision = tuple[State, tuple[Action, ...]]


def decide(state: State, event: Event, timers: Timers = RECORDED) -> Decision:
    """The state after `event`, and what the kubelet does because of it, in order."""
    match event:
        case Tick():
            return _tick(state, event, timers)
        case Introduced():
            return _introduced(state, event, timers)
        case RegistrationFailed():
            return _back_off(state, event.socket, event.now, timers), ()
        case Notified():
            return _notified(state, event, timers)
        case ConnectionChanged():
            return _connection_changed(state, event, timers)
        case WipeDue():
            return _wipe_due(state, event)
        case PreparePod():
            return _prepare_pod(state, event)
        case PrepareAnswered():
            return _prepare_answered(state, event)
        case PrepareFinished():
            return _prepare_finished(state, event)
        case UnpreparePod():
            return _unprepare_pod(state, event)
        case UnprepareAnswered():
            message = _reply_fault("NodeUnprepareResources", event)
            return state, (Fail(message),) if message else ()
        case UnprepareFinished():
            gone = {_key(ref) for ref in event.claims}
            claims = {key: info for key, info in state.claims.items() if key not in gone}
            return structs.replace(state, claims=claims), (SaveCheckpoint(),)
        case _:
            assert_never(event)


def choose_version(versions: tuple[str, ...], supported: tuple[str, ...]) -> str | None:
    """The first entry, in the plugin's order, that the kubelet supports (R27, [02])."""
    return next((version for version in versions if version in supported), None)


def pick(state: State, driver: str) -> Instance | None:
    """The most recently registered instance that is connected, else the most recent one (R28, [08])."""
    instances = [instance for instance in state.instances if instance.driver == driver]
    connected = [instance for instance in instances if instance.connected]
    candidates = connected or instances
    return candidates[-1] if candidates else None


# Registration


def _tick(state: State, event: Tick, timers: Timers) -> Decision:
    """Unregister what vanished or was replaced; a replaced socket is registered one tick later (R26, [05])."""
    actions: list[Action] = []
    for path, socket in state.sockets.items():
        if socket.registered is None or socket.busy or event.found.get(path) == socket.registered:
            continue
        state, closing = _unregister(state, path, event.now, timers)
        state = _with_socket(state, path, structs.replace(socket, registered=None, delay=0.0, not_before=0.0))
        actions += closing
        event = structs.replace(event, found={key: value for key, value in event.found.items() if key != path})
    for path, identity in event.found.items():
        socket = state.sockets.get(path, Socket())
        if socket.registered is None and not socket.busy and event.now >= socket.not_before:
            state = _with_socket(state, path, structs.replace(socket, busy=identity))
            actions.append(Register(path))
    return state, tuple(actions)


def _introduced(state: State, event: Introduced, timers: Timers) -> Decision:
    """Validate a plugin; connect before Notify(true) so that the connection may be up before it arrives [01]."""
    endpoint = event.endpoint or event.socket
    fault = _registration_fault(state, event, endpoint)
    if fault is not None:
        return state, (Notify(event.socket, f"RegisterPlugin error -- {fault}"),)
    version = choose_version(event.versions, state.supported)
    assert version is not None
    instance = Instance(state.next_instance, event.socket, event.name, endpoint, version, advertised=event.versions)
    state = structs.replace(state, instances=(*state.instances, instance), next_instance=instance.id + 1)
    state, wiping = _watch_connections(state, event.name, event.now, timers)
    return state, (*wiping, Connect(instance), Notify(event.socket))


def _registration_fault(state: State, event: Introduced, endpoint: str) -> str | None:
    if event.type != PLUGIN_TYPE:
        return f"no handler registered for plugin type: {event.type} at socket {event.socket}"
    if choose_version(event.versions, state.supported) is None:
        return f"plugin validation failed with err: {_version_fault(state, event, endpoint)}"
    if any(known.driver == event.name and known.endpoint == endpoint for known in state.instances):
        return (
            f"plugin registration failed with err: endpoint {endpoint} already registered for "
            f"DRA driver plugin {event.name}"
        )
    return None


def _version_fault(state: State, event: Introduced, endpoint: str) -> str:
    subject = f"invalid supported gRPC versions of DRA driver plugin {event.name} at endpoint {endpoint}"
    if not event.versions:
        return f"{subject}: empty list of supported gRPC services (aka supported versions)"
    offered, supported = _quoted(event.versions), _quoted(state.supported)
    return f"{subject}: none of services supported by the plugin ({offered}) are supported by the kubelet ({supported})"


def _quoted(words: tuple[str, ...]) -> str:
    return "[" + " ".join(f'"{word}"' for word in words) + "]"


def _notified(state: State, event: Notified, timers: Timers) -> Decision:
    """Notify(true) that fails deregisters the plugin again, with backoff (R24, [04])."""
    socket = state.sockets.get(event.socket, Socket())
    if event.ok:
        registered = Socket(registered=socket.busy)
        return _with_socket(state, event.socket, registered), ()
    state, closing = _unregister(state, event.socket, event.now, timers)
    return _back_off(state, event.socket, event.now, timers), closing


def _back_off(state: State, path: str, now: float, timers: Timers) -> State:
    """Backoff per socket path: doubling to the cap, ends at the first tick after it (R25, [35])."""
    delay = timers.registration_delay(state.sockets.get(path, Socket()).delay)
    return _with_socket(state, path, Socket(delay=delay, not_before=now + delay))


def _with_socket(state: State, path: str, socket: Socket) -> State:
    return structs.replace(state, sockets={**state.sockets, path: socket})


def _unregister(state: State, path: str, now: float, timers: Timers) -> Decision:
    """Forget the instances of a socket: no RPC, only their connections close (R26)."""
    gone = [instance for instance in state.instances if instance.socket == path]
    state = structs.replace(state, instances=tuple(i for i in state.instances if i.socket != path))
    actions: list[Action] = [Disconnect(instance) for instance in gone]
    for driver in dict.fromkeys(instance.driver for instance in gone):
        state, wiping = _watch_connections(state, driver, now, timers)
        actions += wiping
    return state, tuple(actions)


# Connections and slices


def _connection_changed(state: State, event: ConnectionChanged, timers: Timers) -> Decision:
    changed = next((i for i in state.instances if i.id == event.instance and i.connected != event.connected), None)
    if changed is None:
        return state, ()
    updated = structs.replace(changed, connected=event.connected)
    instances = tuple(updated if instance is changed else instance for instance in state.instances)
    return _watch_connections(structs.replace(state, instances=instances), changed.driver, event.now, timers)


def _watch_connections(state: State, driver: str, now: float, timers: Timers) -> Decision:
    """The wipe timer runs from the first loss of a driver's last connection, and is not armed again (R31, [18])."""
    if any(instance.driver == driver and instance.connected for instance in state.instances):
        if driver not in state.wipes:
            return state, ()
        wipes = {key: due for key, due in state.wipes.items() if key != driver}
        return structs.replace(state, wipes=wipes), (CancelWipe(driver),)
    if driver in state.wipes:
        return state, ()
    due = now + timers.slice_wipe
    return structs.replace(state, wipes={**state.wipes, driver: due}), (StartWipe(driver, due),)


def _wipe_due(state: State, event: WipeDue) -> Decision:
    due = state.wipes.get(event.driver)
    if due is None or event.now < due:
        return state, ()
    return structs.replace(state, wipes={**state.wipes, event.driver: None}), (WipeSlices(event.driver),)


# Claims


def _key(ref: ClaimRef) -> str:
    return f"{ref.namespace}/{ref.name}"


def _prepare_pod(state: State, event: PreparePod) -> Decision:
    """Checks per claim in the pod's order (P18, P21), then one call per driver with what is not prepared (P19)."""
    claims = dict(state.claims)
    calls: dict[str, list[ClaimRef]] = {}
    for claim in event.claims:
        known = claims.get(_key(claim.ref))
        fault = _claim_fault(state, event, claim, known)
        if fault is not None:
            # Earlier claims of the pod stay in the cache, as in the kubelet: the next sync finds them there.
            return structs.replace(state, claims=claims), (Fail(fault),)
        info = known or ClaimInfo(claim.ref, (), dict.fromkeys(claim.drivers or (), ()))
        if event.pod not in info.pods:
            info = structs.replace(info, pods=(*info.pods, event.pod))
        claims[_key(claim.ref)] = info
        if not info.prepared:
            for driver in info.devices:
                calls.setdefault(driver, []).append(claim.ref)
    state = structs.replace(state, claims=claims)
    if not calls:
        return state, (SaveCheckpoint(), Finished())
    return state, (SaveCheckpoint(), *(Call(driver, tuple(refs)) for driver, refs in calls.items()))


def _claim_fault(state: State, event: PreparePod, claim: Claim, known: ClaimInfo | None) -> str | None:
    """Reservation is tested before allocation [33], registration of all drivers before the cache is touched [20]."""
    name, uid = claim.ref.name, claim.ref.uid
    if event.pod not in claim.reserved_for:
        return f"pod {event.pod_name} ({event.pod}) is not allowed to use ResourceClaim {name} ({uid})"
    if claim.drivers is None:
        return f"ResourceClaim {name} not allocated"
    if known is not None and known.ref.uid != uid:
        return (
            f"old ResourceClaim with same name {name} and different UID {known.ref.uid} still exists "
            "(previous pod force-deleted?!)"
        )
    if known is None or not known.prepared:
        missing = next((driver for driver in claim.drivers if pick(state, driver) is None), None)
        return None if missing is None else _not_registered(missing)
    return None


def _not_registered(driver: str) -> str:
    return f"DRA driver {driver} is not registered"


def _prepare_answered(state: State, event: PrepareAnswered) -> Decision:
    """Append the devices of every good entry, without dedup (P22), up to the first fault (P25)."""
    if event.error is not None:
        return state, (Fail(f"NodePrepareResources: {event.error}"),)
    claims = dict(state.claims)
    wanted = {ref.uid: ref for ref in event.claims}
    for uid, (error, devices) in event.entries.items():
        fault = _entry_fault("NodePrepareResources", wanted, uid, error)
        info = None if fault else claims.get(_key(wanted[uid]))
        if fault is None and info is None:
            fault = _lost(wanted[uid])
        if info is None:
            return structs.replace(state, claims=claims), (Fail(str(fault)),)
        claims[_key(info.ref)] = _append(info, event.driver, devices)
    state = structs.replace(state, claims=claims)
    fault = _reply_fault("NodePrepareResources", event)
    return state, (Fail(fault),) if fault else ()


def _append(info: ClaimInfo, driver: str, devices: tuple[Device, ...]) -> ClaimInfo:
    known = info.devices.get(driver, ())
    return structs.replace(info, devices={**info.devices, driver: (*known, *devices)})


def _lost(ref: ClaimRef) -> str:
    return f"internal error: unable to get claim info for ResourceClaim {ref.name} in namespace {ref.namespace}"


def _entry_fault(method: str, wanted: dict[str, ClaimRef], uid: str, error: str) -> str | None:
    if uid not in wanted:
        return f"{method} returned result for unknown claim UID {uid}"
    if error:
        return f"{method} failed for ResourceClaim {wanted[uid].name}: {error}"
    return None


def _reply_fault(method: str, event: CallAnswered) -> str | None:
    """The kubelet's checks of a reply (P25): UIDs and error texts, nothing else [16]."""
    if event.error is not None:
        return f"{method}: {event.error}"
    wanted = {ref.uid: ref for ref in event.claims}
    for uid, (error, _) in event.entries.items():
        fault = _entry_fault(method, wanted, uid, error)
        if fault is not None:
            return fault
    skipped = len(wanted) - len(event.entries)
    return f"{method} skipped {skipped} ResourceClaims" if skipped else None


def _prepare_finished(state: State, event: PrepareFinished) -> Decision:
    claims = dict(state.claims)
    for ref in event.claims:
        info = claims.get(_key(ref))
        if info is None:
            # Unprepared meanwhile for another pod.
            return state, (Fail(_lost(ref)),)
        claims[_key(ref)] = structs.replace(info, prepared=True)
    return structs.replace(state, claims=claims), (SaveCheckpoint(), Finished())


def _unprepare_pod(state: State, event: UnpreparePod) -> Decision:
    """One call per driver for the claims whose last pod this is (P23, P24); unknown claims are skipped."""
    claims = dict(state.claims)
    calls: dict[str, list[ClaimRef]] = {}
    for key in event.claims:
        info = claims.get(key)
        if info is None:
            continue
        others = tuple(pod for pod in info.pods if pod != event.pod)
        if others:
            claims[key] = structs.replace(info, pods=others)
            continue
        for driver in info.devices:
            calls.setdefault(driver, []).append(info.ref)
    state = structs.replace(state, claims=claims)
    missing = next((driver for driver in calls if pick(state, driver) is None), None)
    if missing is not None:
        return state, (SaveCheckpoint(), Fail(_not_registered(missing)))
    if not calls:
        return state, (SaveCheckpoint(), Finished())
    return state, tuple(Call(driver, tuple(refs)) for driver, refs in calls.items())
