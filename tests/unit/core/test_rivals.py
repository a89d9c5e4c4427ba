"""Workloads do not preempt each other for ever, and nobody who may preempt is kept waiting for nothing."""

from dataclasses import dataclass

from app.core.manifests import Manifest
from app.core.model import Workload
from app.core.policy import Policy
from app.core.rivals import Rivals
from tests.builders import NOW, cluster_queue, flavor, image, local_queue, run, workload
from tests.laws.stage import Stage

ROOT = "co"


def preempted(rivals: Rivals, times: int, edits: int = 1) -> Rivals:
    for _ in range(times):
        rivals.note("preemptor", "victim", ROOT, edits)
    return rivals


@dataclass(frozen=True)
class Head:
    workload: Workload


def head(uid: str) -> Head:
    return Head(Workload(uid=uid, namespace="default", name=uid, queue_name="main", created_at=NOW))


def turns(rivals: Rivals, *uids: str, edits: int = 1) -> list[str]:
    heads = [head(uid) for uid in uids]
    return [one.workload.uid for one in rivals.in_turn(heads, heads, edits)]


def test_a_second_time_is_allowed_and_a_third_is_not() -> None:
    once, twice = preempted(Rivals(), 1), preempted(Rivals(), 2)

    assert once.spent("preemptor", ROOT, edits=1) == ()
    assert twice.spent("preemptor", ROOT, edits=1) == ("victim",)
    assert twice.spent("victim", ROOT, edits=1) == ()


def test_each_further_time_takes_twice_the_room_from_others() -> None:
    rivals = preempted(Rivals(), 2)
    needed = []
    for _ in range(4):
        rooms = 0
        while rivals.spent("preemptor", ROOT, edits=1):
            rivals.note_room(ROOT)
            rooms += 1
        needed.append(rooms)
        rivals.note("preemptor", "victim", ROOT, edits=1)

    assert needed == [1, 2, 4, 8]


def test_room_in_another_tree_is_no_help() -> None:
    rivals = preempted(Rivals(), 2)
    rivals.note_room("elsewhere")

    assert rivals.spent("preemptor", ROOT, edits=1) == ("victim",)


def test_an_edit_wipes_the_slate() -> None:
    rivals = preempted(Rivals(), 2, edits=1)

    assert rivals.spent("preemptor", ROOT, edits=2) == ()
    assert turns(rivals, "victim", "preemptor", edits=2) == ["victim", "preemptor"]
    rivals.note("preemptor", "victim", ROOT, edits=2)
    assert rivals.spent("preemptor", ROOT, edits=2) == ()


def test_whoever_leaves_is_forgotten_on_both_sides() -> None:
    for uid in ("preemptor", "victim"):
        rivals = preempted(Rivals(), 2)
        rivals.forget(uid)

        assert rivals.spent("preemptor", ROOT, edits=1) == ()
        assert turns(rivals, "victim", "preemptor") == ["victim", "preemptor"]


def test_after_the_second_time_the_victim_goes_right_behind_its_preemptor() -> None:
    order = ("victim", "other", "preemptor", "last")

    assert turns(preempted(Rivals(), 1), *order) == list(order)
    assert turns(preempted(Rivals(), 2), *order) == ["other", "preemptor", "victim", "last"]
    assert turns(preempted(Rivals(), 2), "victim", "other") == ["victim", "other"]


def test_two_who_preempted_each_other_keep_their_order() -> None:
    rivals = preempted(Rivals(), 2)
    rivals.note("victim", "preemptor", ROOT, 1)
    rivals.note("victim", "preemptor", ROOT, 1)

    assert turns(rivals, "victim", "preemptor", "other") == ["other", "victim", "preemptor"]


def rivalry() -> list[Manifest]:
    """The lender reclaims spot from the borrower, but then tries to borrow on-demand, behind a more important one.

    With the victim gone, borrowing comes before reclaiming in the order of flavors; among those who borrow, priority
    counts: the victim is back before its preemptor got in, for ever.
    """
    quota = {"on-demand": {"cpu": 0}, "spot": {"cpu": 4}}
    rules = {"reclaimWithinCohort": "Any"}
    borrower = workload("borrower", "borrower", cpu=4, priority=2, age=9)
    second = {**borrower["spec"]["podSets"][0], "name": "second"}
    borrower["spec"]["podSets"].append(second)
    return [
        flavor("on-demand"),
        flavor("spot"),
        cluster_queue("lender", quota, cohort=ROOT, preemption=rules),
        cluster_queue("borrower", {"on-demand": {"cpu": 4}, "spot": {"cpu": 0}}, cohort=ROOT),
        local_queue("lender", "lender"),
        local_queue("borrower", "borrower"),
        borrower,
    ]


def test_kueue_lets_the_two_preempt_for_ever() -> None:
    stage = Stage(*rivalry(), break_loops=False).settle()
    stage.add(workload("lender", "lender", cpu=4)).settle()

    assert not stage.is_quiet


def test_the_preemptor_gets_in_after_the_second_time() -> None:
    stage = Stage(*rivalry()).settle()
    stage.add(workload("lender", "lender", cpu=4)).settle()

    assert stage.is_quiet
    assert stage.running == ["lender"]
    assert [one["workload"] for one in stage.record.preempted] == ["default/borrower"] * 2


def test_a_preemptor_says_whom_it_does_not_preempt_again() -> None:
    made = image(*rivalry(), workload("lender", "lender", cpu=4))
    holder = run(made).admissions[0]
    for _ in range(2):
        made.rivals.note("uid-lender", holder.uid, ROOT, made.edits)

    result = run(made, Policy(break_loops=True))

    (pending,) = result.pending
    assert not result.preemptions
    assert pending.explanation.reason == "WaitingForQuota"
    assert "default/borrower was preempted for it before, came back" in pending.explanation.message
