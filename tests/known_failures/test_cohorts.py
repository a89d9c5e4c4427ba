"""Section C: nested cohorts, moved cohorts, and trees that are none."""

from tests.builders import cluster_queue, cohort, local_queue, workload
from tests.known_failures.shorthand import FLAVOR, coh, cq, free, w
from tests.laws.stage import Stage


def test_victims_are_sought_in_the_whole_tree() -> None:
    """kueue#3705, #4806: not among direct siblings only."""
    stage = Stage(
        FLAVOR,
        coh("left", parent="root"),
        coh("right", parent="root"),
        cq("a", 4, coh="left", reclaim="Any"),
        cq("b", 0, coh="right"),
        w("b1", 4),
    ).settle()
    assert stage.running == ["b1"]

    stage.add(w("a1", 4, t=1)).settle()

    assert stage.running == ["a1"]
    assert stage.evictions("b1") == 1


def test_a_cohort_moves_to_another_root_with_all_it_uses() -> None:
    """kueue c190893: whoever waited below it is woken by the move itself."""
    stage = Stage(
        FLAVOR,
        cohort("root-a", None, {"default": {"cpu": 1}}),
        cohort("root-b", None, {"default": {"cpu": 2}}),
        cohort("child", "root-a"),
        cluster_queue("q", {"default": {"cpu": 0}}, cohort="child"),
        local_queue("q", "q"),
        *(workload(f"q{i}", "q", cpu="500m", age=9 - i) for i in (1, 2, 3)),
    ).settle()
    assert stage.running == ["q1", "q2"]

    stage.put(cohort("child", "root-b")).cycle()

    assert stage.running == ["q1", "q2", "q3"]
    assert (stage.used("root-a", "cpu"), stage.used("root-b", "cpu")) == (0, 1500)
    assert stage.evictions("q1") == stage.evictions("q2") == 0


def test_a_cohort_that_is_its_own_parent_stops_its_own_queues_only() -> None:
    """volcano commit 87f360b: no endless loop, a reason in words, and it can be mended."""
    stage = Stage(
        FLAVOR,
        coh("loop", 4, "loop"),
        coh("one", 4, "two"),
        coh("two", 4, "one"),
        cq("a", 4, coh="loop"),
        cq("b", 4, coh="two"),
        cq("free", 4),
        w("a1", 1),
        w("b1", 1),
        w("free1", 1),
    ).settle()
    assert stage.running == ["free1"]
    assert (stage.reason("a1"), stage.reason("b1")) == ("Suspended", "Suspended")

    stage.put(coh("loop", 4)).put(coh("one", 4)).settle()

    assert stage.running == ["a1", "b1", "free1"]


def test_what_a_cohort_does_not_list_it_neither_has_nor_forbids() -> None:
    """volcano commits de5266e, 751d450: a missing quota is none, and no bound for the others."""
    stage = Stage(
        FLAVOR,
        cohort("root", None, {"default": {"cpu": 2}}),
        cluster_queue("a", {"default": {"cpu": 2, "gpu": 1}}, cohort="root"),
        local_queue("a", "a"),
        workload("both", "a", cpu=4, gpu=1, age=9),
        workload("more", "a", gpu=1, age=8),
    ).settle()

    assert stage.running == ["both"]
    assert stage.reason("more") == "WaitingForQuota"
    assert free(stage, "a") == 0
    assert (stage.used("root", "cpu"), stage.used("root", "gpu")) == (4000, 1)
