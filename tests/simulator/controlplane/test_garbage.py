from drakit.simulator.controlplane import is_garbage


def owned(*owners: tuple[str, str], **metadata: str) -> dict[str, object]:
    return {"metadata": {"ownerReferences": [{"kind": kind, "uid": uid} for kind, uid in owners], **metadata}}


def test_all_owners_must_be_gone() -> None:
    living = {"Pod": {"a"}, "Node": {"n"}}
    assert is_garbage(owned(("Pod", "gone")), living)
    assert not is_garbage(owned(("Pod", "a")), living)
    assert not is_garbage(owned(("Pod", "gone"), ("Node", "n")), living)


def test_owners_of_other_kinds_and_objects_without_owners_are_left_alone() -> None:
    assert not is_garbage(owned(("Job", "x")), {"Pod": set()})
    assert not is_garbage({"metadata": {}}, {"Pod": set()})


def test_what_is_being_deleted_is_not_deleted_again() -> None:
    assert not is_garbage(owned(("Pod", "gone"), deletionTimestamp="now"), {"Pod": set()})
