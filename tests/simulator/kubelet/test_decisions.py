"""decide() against the recorded kubelet; the names in brackets are scenarios of the recording."""

import itertools
import random

import pytest
from msgspec import structs

from drakit.simulator.kubelet.decisions import choose_version, decide, pick
from drakit.simulator.kubelet.state import (
    Action,
    Call,
    CancelWipe,
    Claim,
    ClaimRef,
    Connect,
    ConnectionChanged,
    Device,
    Disconnect,
    Event,
    Fail,
    Finished,
    Introduced,
    Notified,
    Notify,
    PrepareAnswered,
    PrepareFinished,
    PreparePod,
    Register,
    RegistrationFailed,
    SaveCheckpoint,
    StartWipe,
    State,
    Tick,
    UnprepareAnswered,
    UnprepareFinished,
    UnpreparePod,
    WipeDue,
    WipeSlices,
)
from drakit.simulator.kubelet.timers import RECORDED

DRIVER = "gpu.example.com"
SOCKET = "/registry/gpu.sock"
V1 = ("v1.DRAPlugin", "v1beta1.DRAPlugin")


def run(state: State, *events: Event) -> tuple[State, list[Action]]:
    actions: list[Action] = []
    for event in events:
        state, more = decide(state, event)
        actions += more
    return state, actions


def introduced(socket: str = SOCKET, *, now: float = 0, versions: tuple[str, ...] = V1, **fields: str) -> Introduced:
    return Introduced(
        now,
        socket,
        fields.get("type", "DRAPlugin"),
        fields.get("name", DRIVER),
        fields.get("endpoint", f"/plugins{socket}"),
        versions,
    )


def register(state: State, socket: str = SOCKET, *, connected: bool = True, now: float = 0) -> State:
    found = {path: entry.registered for path, entry in state.sockets.items() if entry.registered}
    state, _ = run(
        state, Tick(now, {**found, socket: "1"}), introduced(socket, now=now), Notified(now, socket, ok=True)
    )
    if connected:
        state, _ = run(state, ConnectionChanged(now, state.instances[-1].id, connected=True))
    return state


def claim(name: str = "c", *, pod: str = "p", drivers: tuple[str, ...] | None = (DRIVER,), uid: str = "") -> Claim:
    return Claim(ref=ClaimRef("ns", name, uid or f"uid-{name}"), drivers=drivers, reserved_for=(pod,))


def device(name: str = "d0") -> Device:
    return Device("pool", name, ("r",), (f"{DRIVER}/class={name}",))


class TestRegistration:
    def test_a_new_socket_is_registered_at_the_next_tick_and_connected_before_notify(self) -> None:
        state, actions = run(State(), Tick(0, {SOCKET: "1"}))
        assert actions == [Register(SOCKET)]
        state, actions = run(state, introduced())
        assert [type(action) for action in actions] == [StartWipe, Connect, Notify]
        assert actions[-1] == Notify(SOCKET)
        state, actions = run(state, Notified(0, SOCKET, ok=True), Tick(1, {SOCKET: "1"}))
        assert actions == []
        assert state.sockets[SOCKET].registered == "1"

    def test_no_second_attempt_while_one_is_under_way(self) -> None:
        _, actions = run(State(), Tick(0, {SOCKET: "1"}), Tick(1, {SOCKET: "1"}))
        assert actions == [Register(SOCKET)]

    @pytest.mark.parametrize(
        ("versions", "chosen"),
        [
            (("v1.DRAPlugin",), "v1.DRAPlugin"),
            (("v1beta1.DRAPlugin",), "v1beta1.DRAPlugin"),
            (("v1beta1.DRAPlugin", "v1.DRAPlugin"), "v1beta1.DRAPlugin"),
            (("v9.DRAPlugin", "v1.DRAPlugin"), "v1.DRAPlugin"),
            (("v1.DRAResourceHealth", "v1.DRAPlugin"), "v1.DRAPlugin"),
            (("v1alpha4.Node",), None),
            (("1.0.0",), None),
            (("k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",), None),
            (("v1.DRAResourceHealth",), None),
            ((), None),
        ],
    )
    def test_the_first_of_the_plugins_versions_that_is_known_r27_02(
        self, versions: tuple[str, ...], chosen: str | None
    ) -> None:
        assert choose_version(versions, State().supported) == chosen

    def test_refusals_have_the_recorded_texts_02_03(self) -> None:
        def refusal(event: Introduced, state: State = State()) -> str:  # noqa: B008 - frozen
            _, actions = run(state, event)
            (notify,) = actions
            assert isinstance(notify, Notify)
            return notify.error

        assert refusal(introduced(versions=("v2.DRAPlugin",))) == (
            "RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC versions of DRA driver "
            f"plugin {DRIVER} at endpoint /plugins{SOCKET}: none of services supported by the plugin "
            '(["v2.DRAPlugin"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])'
        )
        assert refusal(introduced(versions=())).endswith(
            ": empty list of supported gRPC services (aka supported versions)"
        )
        assert refusal(introduced(type="Foo")) == (
            f"RegisterPlugin error -- no handler registered for plugin type: Foo at socket {SOCKET}"
        )
        assert refusal(introduced("/registry/b.sock", endpoint=f"/plugins{SOCKET}"), register(State())) == (
            f"RegisterPlugin error -- plugin registration failed with err: endpoint /plugins{SOCKET} "
            f"already registered for DRA driver plugin {DRIVER}"
        )

    def test_an_empty_endpoint_is_the_registration_socket_r17(self) -> None:
        state, _ = run(State(), introduced(endpoint=""))
        assert state.instances[0].endpoint == SOCKET

    def test_names_are_not_checked_r27(self) -> None:
        state, _ = run(State(), introduced(name="UPPER!"))
        assert state.instances[0].driver == "UPPER!"

    def test_failures_are_tried_again_at_the_recorded_times_35(self) -> None:
        state, now, attempts = State(), 0.0, []
        while now < 400:
            state, actions = run(state, Tick(now, {SOCKET: "1"}))
            if actions:
                attempts.append(now)
                # An attempt takes some milliseconds.
                state, _ = run(state, RegistrationFailed(now + 0.003, SOCKET))
            now += 1
        assert attempts[:8] == [0, 1, 3, 6, 11, 20, 37, 70]
        gaps = [later - earlier for earlier, later in itertools.pairwise(attempts)]
        assert gaps == [1, 2, 3, 5, 9, 17, 33, 65, 123, 123][: len(gaps)]

    def test_a_failed_notify_deregisters_and_starts_over_r24_04(self) -> None:
        state, _ = run(State(), Tick(0, {SOCKET: "1"}), introduced())
        state, actions = run(state, Notified(0, SOCKET, ok=False))
        assert [type(action) for action in actions] == [Disconnect]
        assert state.instances == ()
        _, actions = run(state, Tick(0.4, {SOCKET: "1"}), Tick(1, {SOCKET: "1"}))
        assert actions == [Register(SOCKET)]

    def test_a_removed_socket_is_unregistered_without_rpc_r26(self) -> None:
        state, actions = run(register(State()), Tick(5, {}))
        assert [type(action) for action in actions] == [Disconnect, StartWipe]
        assert pick(state, DRIVER) is None

    def test_a_replaced_socket_is_a_tick_without_driver_05(self) -> None:
        state, actions = run(register(State()), Tick(5, {SOCKET: "2"}))
        assert [type(action) for action in actions] == [Disconnect, StartWipe]
        _, actions = run(state, Tick(6, {SOCKET: "2"}))
        assert actions == [Register(SOCKET)]


class TestInstances:
    def test_the_last_registered_connected_one_is_called_r28_08(self) -> None:
        state = register(register(register(State(), "/registry/a"), "/registry/b"), "/registry/c")
        assert picked(state) == "/registry/c"
        state, _ = run(state, ConnectionChanged(1, 3, connected=False))
        assert picked(state) == "/registry/b"
        state, _ = run(state, ConnectionChanged(2, 3, connected=True))
        assert picked(state) == "/registry/c"

    def test_without_any_connection_the_most_recent_one(self) -> None:
        state = register(register(State(), "/registry/a", connected=False), "/registry/b", connected=False)
        assert picked(state) == "/registry/b"


def picked(state: State) -> str:
    instance = pick(state, DRIVER)
    assert instance is not None
    return instance.socket


class TestSliceWipe:
    def test_thirty_seconds_after_the_last_connection_r31_18(self) -> None:
        state, actions = run(register(State()), ConnectionChanged(100, 1, connected=False))
        assert actions == [StartWipe(DRIVER, 130)]
        _, actions = run(state, WipeDue(129.9, DRIVER))
        assert actions == []
        _, actions = run(state, WipeDue(130, DRIVER))
        assert actions == [WipeSlices(DRIVER)]

    def test_cancelled_by_a_connection_in_time(self) -> None:
        state, actions = run(
            register(State()),
            ConnectionChanged(100, 1, connected=False),
            ConnectionChanged(125, 1, connected=True),
            WipeDue(130, DRIVER),
        )
        assert actions == [StartWipe(DRIVER, 130), CancelWipe(DRIVER)]
        assert state.wipes == {}

    def test_not_armed_again_by_later_losses(self) -> None:
        state, actions = run(register(State()), ConnectionChanged(100, 1, connected=False), Tick(110, {}))
        assert [action for action in actions if isinstance(action, StartWipe)] == [StartWipe(DRIVER, 130)]
        state, actions = run(state, WipeDue(130, DRIVER), Tick(131, {}), WipeDue(200, DRIVER))
        assert actions == [WipeSlices(DRIVER)]

    def test_not_while_another_instance_is_connected(self) -> None:
        _, actions = run(
            register(register(State(), "/registry/a"), "/registry/b"), ConnectionChanged(9, 1, connected=False)
        )
        assert actions == []

    def test_a_dead_endpoint_has_the_timer_from_registration_on(self) -> None:
        _, actions = run(State(), introduced(now=7))
        assert actions[0] == StartWipe(DRIVER, 37)


class TestPrepare:
    def test_one_call_per_driver_with_all_its_claims_in_order_p19_11(self) -> None:
        state = register(State())
        state, actions = run(state, PreparePod("p", "pod", (claim("b"), claim("a"))))
        assert actions == [SaveCheckpoint(), Call(DRIVER, (ClaimRef("ns", "b", "uid-b"), ClaimRef("ns", "a", "uid-a")))]
        assert [info.prepared for info in state.claims.values()] == [False, False]

    def test_a_claim_of_two_drivers_goes_to_both_p19(self) -> None:
        state = register(State())
        state, _ = run(state, introduced("/registry/x", name="x.example.com"))
        _, actions = run(state, PreparePod("p", "pod", (claim(drivers=(DRIVER, "x.example.com")),)))
        assert [action.driver for action in actions if isinstance(action, Call)] == [DRIVER, "x.example.com"]

    def test_prepared_claims_make_no_call_p23(self) -> None:
        state, _ = prepared()
        state, actions = run(state, PreparePod("q", "other", (claim(pod="q"),)))
        assert actions == [SaveCheckpoint(), Finished()]
        assert state.claims["ns/c"].pods == ("p", "q")

    def test_two_pods_at_once_make_two_calls_12(self) -> None:
        _state, actions = run(
            register(State()), PreparePod("p", "a", (claim(),)), PreparePod("q", "b", (claim(pod="q"),))
        )
        assert len([action for action in actions if isinstance(action, Call)]) == 2

    @pytest.mark.parametrize(
        ("wrong", "text"),
        [
            (claim(pod="other"), "pod pod (p) is not allowed to use ResourceClaim c (uid-c)"),
            (claim(pod="other", drivers=None), "pod pod (p) is not allowed to use ResourceClaim c (uid-c)"),
            (claim(drivers=None), "ResourceClaim c not allocated"),
            (claim(drivers=("no.example.com",)), "DRA driver no.example.com is not registered"),
        ],
    )
    def test_checks_before_any_call_p18_33(self, wrong: Claim, text: str) -> None:
        state, actions = run(register(State()), PreparePod("p", "pod", (wrong,)))
        assert actions == [Fail(text)]
        assert state.claims == {}

    def test_an_old_claim_of_the_same_name_is_in_the_way_p21_14(self) -> None:
        state, _ = prepared()
        _, actions = run(state, PreparePod("p", "pod", (claim(uid="new"),)))
        assert actions == [
            Fail(
                "old ResourceClaim with same name c and different UID uid-c still exists (previous pod force-deleted?!)"
            )
        ]

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (
                {"error": "rpc error: code = Unavailable desc = x"},
                "NodePrepareResources: rpc error: code = Unavailable desc = x",
            ),
            ({"entries": {}}, "NodePrepareResources skipped 1 ResourceClaims"),
            ({"entries": {"uid-c": ("boom", (device(),))}}, "NodePrepareResources failed for ResourceClaim c: boom"),
            (
                {"entries": {"1111": ("", ()), "uid-c": ("", ())}},
                "NodePrepareResources returned result for unknown claim UID 1111",
            ),
        ],
    )
    def test_checks_of_the_answer_p25_16(self, answer: dict[str, object], text: str) -> None:
        state, _ = run(register(State()), PreparePod("p", "pod", (claim(),)))
        state, actions = run(state, PrepareAnswered(DRIVER, (claim().ref,), **answer))  # type: ignore[arg-type]
        assert actions == [Fail(text)]
        assert state.claims["ns/c"].devices == {DRIVER: ()}

    def test_nothing_else_is_checked_16(self) -> None:
        odd = Device("", "foreign", ("no-such", "r/sub"), ("bogus", ""), "not-a-uuid")
        state, _ = run(register(State()), PreparePod("p", "pod", (claim(),)))
        state, actions = run(state, PrepareAnswered(DRIVER, (claim().ref,), entries={"uid-c": ("", (odd, odd))}))
        assert actions == []
        assert state.claims["ns/c"].devices == {DRIVER: (odd, odd)}

    def test_devices_are_appended_on_a_retry_p22(self) -> None:
        state, _ = prepared()
        state, _ = run(state, PrepareAnswered(DRIVER, (claim().ref,), entries={"uid-c": ("", (device("d1"),))}))
        assert [entry.device for entry in state.claims["ns/c"].devices[DRIVER]] == ["d0", "d1"]

    def test_a_claim_unprepared_meanwhile_fails_27(self) -> None:
        state, _ = prepared()
        state, _ = run(state, UnprepareFinished((claim().ref,)))
        _, actions = run(state, PrepareFinished((claim().ref,)))
        assert actions == [Fail("internal error: unable to get claim info for ResourceClaim c in namespace ns")]


class TestUnprepare:
    def test_only_the_last_pod_p23_12(self) -> None:
        state, _ = prepared()
        state, _ = run(state, PreparePod("q", "other", (claim(pod="q"),)))
        state, actions = run(state, UnpreparePod("p", ("ns/c",)))
        assert actions == [SaveCheckpoint(), Finished()]
        _, actions = run(state, UnpreparePod("q", ("ns/c",)))
        assert actions == [Call(DRIVER, (claim().ref,))]

    def test_unknown_claims_are_skipped_p24(self) -> None:
        _, actions = run(State(), UnpreparePod("p", ("ns/other",)))
        assert actions == [SaveCheckpoint(), Finished()]

    def test_a_claim_whose_prepare_failed_is_unprepared_20(self) -> None:
        state, _ = run(register(State()), PreparePod("p", "pod", (claim(),)))
        _, actions = run(state, UnpreparePod("p", ("ns/c",)))
        assert actions == [Call(DRIVER, (claim().ref,))]

    def test_without_the_driver_it_waits_05(self) -> None:
        state, _ = prepared()
        state, _ = run(state, Tick(9, {}))
        state, actions = run(state, UnpreparePod("p", ("ns/c",)))
        assert actions[-1] == Fail(f"DRA driver {DRIVER} is not registered")
        assert state.claims["ns/c"].pods == ("p",)

    def test_answers_are_checked_alike_p25(self) -> None:
        answer = UnprepareAnswered(DRIVER, (claim().ref,), entries={"uid-c": ("busy", ())})
        assert decide(State(), answer)[1] == (Fail("NodeUnprepareResources failed for ResourceClaim c: busy"),)
        answer = structs.replace(answer, entries={})
        assert decide(State(), answer)[1] == (Fail("NodeUnprepareResources skipped 1 ResourceClaims"),)
        answer = structs.replace(answer, entries={"uid-c": ("", ())})
        assert decide(State(), answer)[1] == ()

    def test_the_claim_is_forgotten_when_all_drivers_have_answered(self) -> None:
        state, _ = prepared()
        state, actions = run(state, UnprepareFinished((claim().ref,)))
        assert state.claims == {}
        assert actions == [SaveCheckpoint()]


def prepared() -> tuple[State, list[Action]]:
    state, _ = run(register(State()), PreparePod("p", "pod", (claim(),)))
    return run(
        state,
        PrepareAnswered(DRIVER, (claim().ref,), entries={"uid-c": ("", (device(),))}),
        PrepareFinished((claim().ref,)),
    )


class TestTimers:
    def test_the_recorded_table(self) -> None:
        rng = random.Random(1)
        assert (RECORDED.registration_dial, RECORDED.get_info, RECORDED.notify, RECORDED.rpc) == (10, 1, 5, 45)
        assert all(60 <= RECORDED.sync_delay(rng) <= 90 for _ in range(50))
        assert 0.15 <= RECORDED.unprepare_delay(1, rng) <= 0.5
        assert all(10 <= RECORDED.unprepare_delay(2, rng) <= 15 for _ in range(50))

    def test_registration_backoff_doubles_to_its_cap(self) -> None:
        delays = [0.0]
        while len(delays) < 11:
            delays.append(RECORDED.registration_delay(delays[-1]))
        assert delays[1:] == [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122]

    def test_reconnects_back_off_as_grpc_go_does_32(self) -> None:
        rng = random.Random(2)
        assert RECORDED.reconnect_delay(1, rng) == 1.0
        assert 1.28 <= RECORDED.reconnect_delay(2, rng) <= 1.92
        assert all(96 <= RECORDED.reconnect_delay(40, rng) <= 144 for _ in range(20))
