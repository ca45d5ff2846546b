"""The resourceclaim controller's decisions; names follow upstream's table (allocator.md 6.3) where there is one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.simulator.controlplane import FINALIZER, MissingTemplateError, generate_claims, generate_name, sync_claim
from drakit.simulator.controlplane.claims import (
    CreateClaim,
    Deallocate,
    DeleteClaim,
    SetClaimStatuses,
    UpdateClaimStatus,
    reserve_prescheduled,
    unprotected_claim,
)

FROM_TEMPLATE = [{"name": "x", "resourceClaimTemplateName": "t"}]


class TestGeneration:
    def test_create(self, make: Any) -> None:
        template = make.template(metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}})
        (action,) = generate_claims(make.pod(claims=FROM_TEMPLATE), [], {"t": template})
        assert isinstance(action, CreateClaim)
        metadata = action.claim["metadata"]
        assert metadata["generateName"] == "p-x-"
        assert metadata["annotations"] == {"c": "d", "resource.kubernetes.io/pod-claim-name": "x"}
        assert metadata["labels"] == {"a": "b"}
        assert metadata["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
        ]
        assert action.claim["spec"] == template["spec"]["spec"]
        assert template["spec"]["metadata"]["annotations"] == {"c": "d"}  # upstream changes its cache here

    def test_find_existing_claim_by_label_then_set_the_status(self, make: Any) -> None:
        pod = make.pod(claims=FROM_TEMPLATE)
        claim = make.claim("p-x-abcde", owner=pod, pod_claim="x")
        (action,) = generate_claims(pod, [claim], {"t": make.template()})
        assert action == SetClaimStatuses([{"name": "x", "resourceClaimName": "p-x-abcde"}])

    def test_nop(self, make: Any) -> None:
        pod = make.pod(claims=FROM_TEMPLATE, resourceClaimStatuses=[{"name": "x", "resourceClaimName": "p-x-abcde"}])
        assert generate_claims(pod, [make.claim("p-x-abcde", owner=pod, pod_claim="x")], {}) == ()

    def test_recreate(self, make: Any) -> None:
        pod = make.pod(claims=FROM_TEMPLATE, resourceClaimStatuses=[{"name": "x", "resourceClaimName": "p-x-gone"}])
        (action,) = generate_claims(pod, [], {"t": make.template()})
        assert isinstance(action, CreateClaim)

    def test_missing_template(self, make: Any) -> None:
        with pytest.raises(MissingTemplateError, match=r'resource claim template "t": .* not found'):
            generate_claims(make.pod(claims=FROM_TEMPLATE), [], {})

    def test_wrong_claim_owner_is_not_adopted(self, make: Any) -> None:
        claim = make.claim("p-x-abcde", owner=make.pod("other"), pod_claim="x")
        (action,) = generate_claims(make.pod(claims=FROM_TEMPLATE), [claim], {"t": make.template()})
        assert isinstance(action, CreateClaim)

    def test_a_claim_being_deleted_is_replaced(self, make: Any) -> None:
        pod = make.pod(claims=FROM_TEMPLATE)
        claim = make.claim("p-x-abcde", owner=pod, pod_claim="x", deletionTimestamp="now")
        (action,) = generate_claims(pod, [claim], {"t": make.template()})
        assert isinstance(action, CreateClaim)

    @pytest.mark.parametrize("state", [{"deletionTimestamp": "now"}, {"phase": "Succeeded"}, {"phase": "Failed"}])
    def test_pod_deleted_or_done(self, make: Any, state: dict[str, str]) -> None:
        assert generate_claims(make.pod(claims=FROM_TEMPLATE, **state), [], {"t": make.template()}) == ()

    def test_no_claims_and_direct_claims(self, make: Any) -> None:
        assert generate_claims(make.pod(), [], {}) == ()
        assert generate_claims(make.pod(claims=[{"name": "x", "resourceClaimName": "c"}]), [], {}) == ()

    def test_long_names_are_cut_in_proportion(self) -> None:
        assert generate_name("pod", "claim") == "pod-claim-"
        assert generate_name("p" * 60, "c" * 20) == "p" * 41 + "-" + "c" * 13

    @given(st.integers(1, 253), st.integers(1, 63))
    def test_generated_names_leave_room_for_the_suffix(self, pod: int, claim: int) -> None:
        assert len(generate_name("p" * pod, "c" * claim)) <= 58


class TestPrescheduled:
    """Pods with a node that the scheduler did not give them."""

    DIRECT = ({"name": "x", "resourceClaimName": "c"},)

    def test_add_reserved(self, make: Any) -> None:
        pod = make.pod(claims=self.DIRECT, nodeName="n")
        other = make.pod("q")
        (action,) = reserve_prescheduled(pod, [make.claim(allocated=True, reserved=(other,)), make.claim("unrelated")])
        assert [entry["name"] for entry in action.claim["status"]["reservedFor"]] == ["q", "p"]

    def test_unallocated_and_reserved_claims_stay(self, make: Any) -> None:
        pod = make.pod(claims=self.DIRECT, nodeName="n")
        assert reserve_prescheduled(pod, [make.claim()]) == ()
        assert reserve_prescheduled(pod, [make.claim(allocated=True, reserved=(pod,))]) == ()

    @pytest.mark.parametrize(
        "state", [{}, {"nodeName": "n", "phase": "Failed"}, {"nodeName": "n", "deletionTimestamp": "x"}]
    )
    def test_not_for_pods_without_node_or_future(self, make: Any, state: dict[str, str]) -> None:
        assert reserve_prescheduled(make.pod(claims=self.DIRECT, **state), [make.claim(allocated=True)]) == ()


class TestSync:
    def test_stay_reserved(self, make: Any) -> None:
        pod = make.pod()
        claim = make.claim(reserved=(pod,), allocated=True, finalizers=(FINALIZER,))
        assert sync_claim(claim, {"uid-p": pod}) is None

    @pytest.mark.parametrize("state", [{"phase": "Succeeded"}, {"phase": "Failed"}, {"deletionTimestamp": "now"}])
    def test_clear_reserved_structured(self, make: Any, state: dict[str, str]) -> None:
        pod = make.pod(**state)
        claim = make.claim(reserved=(pod,), allocated=True, finalizers=(FINALIZER, "other"))
        action = sync_claim(claim, {"uid-p": pod})
        assert isinstance(action, Deallocate)
        assert action.claim["status"] == {}
        assert unprotected_claim(action.claim)["metadata"]["finalizers"] == ["other"]
        assert claim["status"]["reservedFor"]  # the cache's object is left alone

    def test_a_scheduled_pod_being_deleted_keeps_its_claim(self, make: Any) -> None:
        pod = make.pod(deletionTimestamp="now", nodeName="n")
        assert sync_claim(make.claim(reserved=(pod,), allocated=True, finalizers=(FINALIZER,)), {"uid-p": pod}) is None

    def test_pods_that_are_gone_or_replaced(self, make: Any) -> None:
        claim = make.claim(reserved=(make.pod(),), allocated=True, finalizers=(FINALIZER,))
        assert isinstance(sync_claim(claim, {}), Deallocate)

    def test_dont_clear_reserved_structured_one_of_two_stays(self, make: Any) -> None:
        gone, living = make.pod("gone"), make.pod("living")
        claim = make.claim(reserved=(gone, living), allocated=True, finalizers=(FINALIZER,))
        action = sync_claim(claim, {"uid-living": living})
        assert isinstance(action, UpdateClaimStatus)
        assert [entry["name"] for entry in action.claim["status"]["reservedFor"]] == ["living"]
        assert "allocation" in action.claim["status"]

    def test_unknown_consumers_stay(self, make: Any) -> None:
        claim = make.claim(allocated=True, finalizers=(FINALIZER,))
        claim["status"]["reservedFor"] = [{"apiGroup": "x", "resource": "jobs", "name": "j", "uid": "u"}]
        assert sync_claim(claim, {}) is None

    def test_structured_deleted(self, make: Any) -> None:
        claim = make.claim(allocated=True, finalizers=(FINALIZER,), deletionTimestamp="now")
        assert isinstance(sync_claim(claim, {}), Deallocate)

    def test_an_allocation_that_never_had_a_consumer_stays(self, make: Any) -> None:
        assert sync_claim(make.claim(allocated=True, finalizers=(FINALIZER,)), {}) is None

    def test_a_finalizer_without_allocation_is_left_to_the_scheduler(self, make: Any) -> None:
        assert sync_claim(make.claim(finalizers=(FINALIZER,)), {}) is None

    def test_without_the_finalizer_only_the_reservation_goes(self, make: Any) -> None:
        action = sync_claim(make.claim(reserved=(make.pod(),), allocated=True), {})
        assert isinstance(action, UpdateClaimStatus)
        assert action.claim["status"] == {"reservedFor": [], "allocation": {"devices": {"results": []}}}

    def test_delete_claim_when_done(self, make: Any) -> None:
        pod = make.pod(phase="Succeeded")
        claim = make.claim(owner=pod, pod_claim="x")
        assert sync_claim(claim, {"uid-p": pod}) == DeleteClaim("ns", "c", "uid-c")
        assert sync_claim(make.claim(owner=pod), {"uid-p": pod}) is None  # made by a user
        assert sync_claim(claim, {}) is None  # the garbage collector's
        assert sync_claim(make.claim(owner=pod, pod_claim="x", deletionTimestamp="now"), {"uid-p": pod}) is None
