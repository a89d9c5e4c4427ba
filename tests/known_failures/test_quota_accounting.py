"""Section Q: quota that leaks, and quota that is given away twice."""

from collections.abc import Callable
from itertools import permutations

import pytest

from app.core import lifecycle
from tests.known_failures.shorthand import FLAVOR, coh, cq, free, subtree, w
from tests.laws.stage import Stage


@pytest.mark.parametrize(("idle", "admitted"), [(5, ["a1"]), (10, ["a1", "b1"])])
def test_two_borrowers_of_one_cycle_share_what_is_idle(idle: int, admitted: list[str]) -> None:
    """kueue#805, #1029: the second must see the first one's charge, and only that."""
    stage = Stage(
        FLAVOR,
        cq("donor", idle, coh="c"),
        cq("a", 0, 5, coh="c"),
        cq("b", 0, 5, coh="c"),
        w("a1", 5, t=1),
        w("b1", 5, t=2),
    ).cycle()

    assert stage.running == admitted
    assert stage.used("c") == 5 * len(admitted)


def test_a_deleted_cohort_takes_its_quota_from_all_of_its_ancestors() -> None:
    """kueue#10797, #10842."""
    stage = Stage(
        FLAVOR,
        coh("root", 10),
        coh("mid", 5, "root"),
        coh("leaf", 3, "mid"),
        cq("q", 0, coh="root"),
    )
    assert subtree(stage, "root") == 18

    stage.remove("Cohort", "leaf").add(w("q1", 16, t=1), w("q2", 15, t=2)).settle()

    assert (subtree(stage, "mid"), subtree(stage, "root")) == (5, 15)
    assert stage.running == ["q2"]
    assert stage.reason("q1") == "ExceedsMaxQuota"


def test_a_cohort_deleted_above_a_queue_leaves_it_its_own_and_evicts_nobody() -> None:
    """kueue#10797, second case. The children of the deleted cohort do not move up to the grandparent."""
    stage = Stage(
        FLAVOR, coh("root", 10), coh("mid", 5, "root"), cq("k", 7, coh="mid"), w("k1", 7)
    ).settle()

    stage.remove("Cohort", "mid").add(w("k2", 1)).settle()

    assert subtree(stage, "root") == 10
    assert stage.running == ["k1"]
    assert stage.evictions("k1") == 0
    assert free(stage, "k") == 0


@pytest.mark.parametrize("order", list(permutations(["finish", "leave", "cycle"])))
def test_an_ending_and_the_removal_of_its_queue_leave_no_charge(order: tuple[str, ...]) -> None:
    """yunikorn-core#662, #256: in whatever order they come."""
    stage = Stage(FLAVOR, cq("a", 4, coh="c"), w("a1", 3)).settle()
    steps: dict[str, Callable[[], Stage]] = {
        "finish": lambda: stage.finish("a1"),
        "leave": lambda: stage.remove("LocalQueue", "a"),
        "cycle": stage.cycle,
    }
    for step in order:
        steps[step]()

    assert (stage.used("a"), stage.used("c")) == (0, 0)


def test_what_is_used_and_what_is_asked_count_together() -> None:
    """volcano#1860: a queue that is not full may still be too full for this one."""
    stage = Stage(FLAVOR, cq("a", 10, 0), w("a0", 9)).settle().add(w("a1", 10, t=1)).settle()

    assert stage.running == ["a0"]
    assert stage.used("a") == 9


def test_one_ending_lets_one_start() -> None:
    """volcano#921."""
    stage = Stage(FLAVOR, cq("a", 2), [w(f"a{i}", 1, t=i) for i in range(1, 5)]).settle()
    assert stage.running == ["a1", "a2"]

    stage.finish("a1").settle()

    assert stage.running == ["a2", "a3"]
    assert stage.used("a") == 2


def test_quota_cut_below_its_use_evicts_nobody_and_admits_nobody() -> None:
    """kueue#5176: free is never negative, and what runs goes on."""
    jobs = [w(f"a{i}", 1, t=i) for i in range(8)]
    stage = Stage(FLAVOR, cq("a", 8), jobs).settle()

    stage.put(cq("a", 4)[0]).add(w("a9", 1, t=9)).settle()
    assert (stage.used("a"), free(stage, "a")) == (8, 0)
    assert len(stage.running) == 8

    for left in (7, 6, 5, 4):
        stage.finish(f"a{7 - left}").settle()
        assert len(stage.running) == left
    stage.finish("a4").settle()

    assert "a9" in stage.running
    assert stage.used("a") == 4


def test_a_job_that_its_operator_refuses_gives_its_quota_back() -> None:
    """kueue#14194: the adapter sees the refusal, and a failed ending frees as much as a good one."""
    stage = Stage(FLAVOR, cq("a", 1), w("a1", 1), w("a2", 1, t=1)).settle()

    refused = lifecycle.finish(
        stage.find("Workload", "a1"), "Failed", "The RayJob spec is invalid", stage.now
    )
    stage.put(refused).cycle()

    assert stage.running == ["a2"]
    ending = lifecycle.condition(stage.status("a1"), "Finished") or {}
    assert (ending["reason"], ending["message"]) == ("Failed", "The RayJob spec is invalid")


def test_an_evicted_workload_is_charged_until_its_job_has_stopped() -> None:
    """kueue#1574, #6893: when pods count as gone is for the cluster side to say; until it does, nobody else starts."""
    stage = Stage(FLAVOR, cq("a", 4), w("a1", 3), stopping="when told").settle()

    stage.evict("a1", "PodsReadyTimeout").add(w("a2", 4)).cycle(5)
    assert (stage.holding, stage.used("a")) == (["a1"], 3)

    assert stage.stop("a1").cycle().running == ["a2"]
