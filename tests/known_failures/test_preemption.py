"""Section P: who is preempted for nothing, for ever, or by nobody."""

from itertools import permutations

import pytest

from app.core import lifecycle
from app.core.cycle import schedule
from app.core.manifests import Manifest
from app.core.policy import BOTH_STRATEGIES, DEFAULT
from tests.builders import NOW, cluster_queue, flavor, image, local_queue, run, workload
from tests.known_failures.shorthand import FLAVOR, cq, w
from tests.laws.stage import A_CYCLE_LATER, AT_ONCE, WHEN_TOLD, Stage

STOPPING = pytest.mark.parametrize("stopping", [AT_ONCE, A_CYCLE_LATER])

BORROW_BELOW = {"borrowWithinCohort": {"policy": "LowerPriority"}}


@STOPPING
def test_a_victim_does_not_take_its_place_back_before_its_preemptor(stopping: str) -> None:
    """kueue#2821, #2807."""
    stage = Stage(
        FLAVOR,
        cq("donor", 4, coh="c"),
        cq("a", 0, 4, coh="c"),
        cq("b", 4, 4, coh="c", reclaim="LowerPriority", preemption=BORROW_BELOW),
        stopping=stopping,
    )
    stage.add(w("b0", 4, p=10), w("a1", 4, t=1)).settle()
    assert stage.running == ["a1", "b0"]

    stage.add(w("b2", 4, p=10, t=5)).cycle(100)

    assert stage.running == ["b0", "b2"]
    assert stage.waiting == ["a1"]
    assert stage.evictions("a1") == 1


@STOPPING
def test_the_richer_queue_does_not_preempt_the_poorer(stopping: str) -> None:
    """kueue#3779: what it would take would make it the richer one, and be taken back."""
    stage = Stage(
        FLAVOR,
        cq("a", 150, coh="root", reclaim="Any"),
        cq("b", 150, coh="root", reclaim="Any"),
        cq("be", 0, coh="root", reclaim="Any"),
        fair=BOTH_STRATEGIES,
        stopping=stopping,
    )
    stage.add(w("a1", 250), w("be1", 50, t=1)).settle()
    assert stage.running == ["a1", "be1"]

    stage.add(w("a2", 50, t=2)).cycle(100)

    assert stage.running == ["a1", "be1"]
    assert stage.waiting == ["a2"]
    assert stage.evictions("be1") == 0


@STOPPING
@pytest.mark.parametrize("strict", [False, True])
def test_what_can_never_fit_preempts_nobody(stopping: str, *, strict: bool) -> None:
    """kueue#6947: and what fits behind it is served, unless its queue is strict."""
    stage = Stage(
        FLAVOR,
        cq("a", 3, coh="c", reclaim="Any", strict=strict),
        cq("b", 0, coh="c"),
        w("b1", 1),
        stopping=stopping,
    ).settle()

    stage.add(w("a4", 4, t=1)).cycle(3)
    assert (stage.reason("a4"), stage.evictions("b1")) == ("ExceedsMaxQuota", 0)
    stage.add(w("a3", 3, t=2)).cycle(50)

    assert stage.running == (["b1"] if strict else ["a3"])
    assert stage.evictions("b1") == (0 if strict else 1)


def test_room_that_frees_up_in_parts_is_kept_for_the_preemptor() -> None:
    """kueue#13797, #14683."""
    stage = _two_victims()

    stage.cycle().stop("l1").cycle(29)
    assert stage.running == []
    assert stage.waiting == ["h1", "l1"]

    stage.stop("l2").cycle()
    assert stage.running == ["h1"]
    assert (stage.evictions("l1"), stage.evictions("l2")) == (1, 1)


def test_room_kept_for_a_preemptor_is_given_back_when_it_goes() -> None:
    """kueue#13797: the victim that has stopped may return, the other one still has to stop."""
    stage = _two_victims()

    stage.cycle().stop("l1").cycle(9).remove("Workload", "h1").cycle()

    assert stage.running == ["l1"]
    assert stage.holding == ["l1", "l2"]


def _two_victims() -> Stage:
    stage = Stage(
        FLAVOR,
        cq("h", 6, coh="c", reclaim="Any"),
        cq("l", 0, 6, coh="c"),
        stopping=WHEN_TOLD,
    )
    return stage.add(w("l1", 3), w("l2", 3, t=1)).settle().add(w("h1", 6, t=10))


def test_a_blocked_strict_queue_keeps_nobody_from_reclaiming() -> None:
    """kueue#1868, #1030: neither by being older nor by never fitting."""
    stage = Stage(
        FLAVOR,
        cq("s", 0, coh="c", strict=True),
        cq("b", 4, coh="c", reclaim="Any"),
        cq("l", 0, coh="c"),
        w("l1", 4),
    ).settle()

    stage.add(w("s1", 50, t=1), w("b1", 4, t=9)).cycle(5)

    assert stage.running == ["b1"]
    assert stage.evictions("l1") == 1
    assert stage.reason("s1") == "ExceedsMaxQuota"


def test_thousands_of_equal_workloads_hide_nobody() -> None:
    """kueue#9698: each shape is looked at once."""
    crowd = [w(f"a{i}", 16, t=i) for i in range(5000)]
    of = image(FLAVOR, *cq("a", 10), *crowd, w("last", 2, queue="a", t=5001))

    first, second = run(of), run(of, after=1)

    assert not first.admissions
    assert [one.name for one in second.admissions] == ["last"]
    assert of.heads() == []


OTHER_SHAPES: dict[str, Manifest] = {
    "priority": {"priority": 256},
    "size": {"gpu": 1},
    "count": {"pods": 1},
    "minimum count": {"pod_set": {"minCount": 1}},
    "selector": {"template": {"nodeSelector": {"pool": "other"}}},
    "toleration": {"template": {"tolerations": [{"key": "k", "operator": "Exists"}]}},
}


@pytest.mark.parametrize("difference", OTHER_SHAPES)
def test_who_differs_in_what_matters_is_looked_at_for_itself(difference: str) -> None:
    """KAI#1152, KAI#766, kueue#10008: nobody inherits the verdict on somebody else."""
    plain: Manifest = {"gpu": 4, "pods": 4}
    stage = Stage(
        flavor("default", nodeLabels={"pool": "main"}),
        cluster_queue("a", {"default": {"gpu": 10}}),
        local_queue("a", "a"),
        workload("first", "a", **plain, age=9),
        workload("equal", "a", **plain, age=8),
        workload("other", "a", **{**plain, **OTHER_SHAPES[difference]}, age=7),
    ).settle()

    looked_at = {name for name in ("first", "equal", "other") if stage.message(name)}

    assert looked_at | set(stage.running) == {"first", "other"}


def test_a_new_value_of_a_priority_class_moves_those_that_wait_and_those_that_run() -> None:
    """kueue#8499, #8584, #13780: who runs keeps its place, but may be a victim now."""
    gold = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "gold"}
    stage = Stage(
        FLAVOR,
        _priority_class("gold", 100),
        cq("a", 4, within="LowerPriority"),
        w("a0", 4, p=300),
        w("a1", 4, p=100, t=1, priorityClassRef=gold),
        w("a2", 4, p=150, t=2),
    ).cycle()
    stage.put(_priority_class("gold", 200))
    stage.finish("a0").settle()
    assert stage.running == ["a1"]

    stage.put(_priority_class("gold", 120)).settle()
    assert stage.running == ["a2"]
    stage.edit("Workload", "a1", priority=0, priorityClassRef=None)
    stage.finish("a2").settle().add(w("a3", 4, p=50, t=3)).settle()
    assert stage.running == ["a3"]

    stage.edit("Workload", "a1", priorityClassRef=gold).settle()
    assert stage.running == ["a1"]


def _priority_class(name: str, value: int) -> Manifest:
    return {"kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}


def test_the_order_in_which_queues_are_known_decides_nothing() -> None:
    """volcano commit 7910fbd: one queue starves, one is at rest, in any order."""
    parts: list[Manifest] = [
        *cq("q1", 2, coh="c", reclaim="Any", within="LowerPriority"),
        *cq("q2", 2, coh="c", reclaim="Any", within="LowerPriority"),
        *cq("q3", 0, coh="c"),
    ]
    told = set()
    for order in permutations(range(0, 6, 2)):
        queues = [part for place in order for part in parts[place : place + 2]]
        of = image(FLAVOR, *queues, w("j1", 2, queue="q1"), w("j2", 2, queue="q3"))
        run(of)
        of.put(next(iter(image(w("j3", 2, queue="q2")).workloads.values())))
        told.add(repr(schedule(of, DEFAULT, NOW)))

    assert len(told) == 1
    assert "name='j2'" in told.pop()


def test_who_is_within_its_quota_of_what_is_contested_is_no_victim() -> None:
    """yunikorn-core#636: that it exceeds its quota of something else does not matter."""

    def queue(name: str, gpu: int, pods: int, **more: str) -> list[Manifest]:
        rules = {"preemption": more} if more else {}
        quota = {"default": {"gpu": gpu, "pods": pods}}
        return [cluster_queue(name, quota, cohort="c", **rules), local_queue(name, name)]

    stage = Stage(
        FLAVOR,
        queue("v", 4, 10),
        queue("h", 4, 10, reclaimWithinCohort="Any"),
        queue("l", 0, 10),
    )
    stage.add(w("v1", 2, p=-10), w("l1", 4, t=1)).settle()
    stage.put(queue("v", 4, 0)[0]).add(w("h1", 4, t=2)).settle()

    assert stage.running == ["h1", "v1"]
    assert (stage.evictions("l1"), stage.evictions("v1")) == (1, 0)


@pytest.mark.parametrize("fair", [None, BOTH_STRATEGIES])
def test_equal_borrowers_suffer_in_turn(fair: tuple[()] | None) -> None:
    """armada#5053: not one of them three times because of its name."""
    jobs = [w(f"{queue}{i}", 1, t=i) for i in (1, 2, 3) for queue in "abc"]
    stage = Stage(
        FLAVOR,
        *(cq(name, 0, coh="c") for name in "abc"),
        cq("h", 9, coh="c", reclaim="Any"),
        jobs,
        fair=fair,
    ).settle()
    assert len(stage.running) == 9

    stage.add(w("h1", 3, t=9)).settle()

    assert stage.running == ["a1", "a2", "b1", "b2", "c1", "c2", "h1"]


@pytest.mark.parametrize("strict", [True, False])
def test_a_stream_of_small_ones_starves_a_big_one_only_in_a_best_effort_queue(
    *, strict: bool
) -> None:
    """kueue#534: the known price of best effort, which a strict queue does not pay."""
    stage = Stage(FLAVOR, cq("a", 100, strict=strict), w("j1", 30, queue="a"))
    stage.add(w("j2", 30, queue="a", t=1)).settle().add(w("big", 50, queue="a", t=2))
    for second in range(3, 20):
        stage.add(w(f"s{second}", 20, queue="a", t=second)).cycle()
    stage.finish("j1").cycle(3)

    assert ("big" in stage.running) is strict
    assert stage.reason("big") == (None if strict else "WaitingForQuota")


def test_a_preemptor_that_loses_at_the_commit_does_not_lose_its_turn() -> None:
    """The victims' row moved, the preemptor's did not: it asks again, and nobody is evicted twice."""
    stage = Stage(FLAVOR, cq("a", 1, within="LowerPriority"), w("a1", 1)).settle()
    stage.add(w("a2", 1, p=1, t=1))
    note = lifecycle.set_condition
    stage.meanwhile = lambda: stage.put(
        note(
            stage.find("Workload", "a1"),
            "PodsReady",
            status=True,
            reason="Started",
            message="",
            now=stage.now,
        )
    )

    stage.cycle()
    assert stage.evictions("a1") == 0

    stage.settle()
    assert (stage.running, stage.evictions("a1")) == (["a2"], 1)
