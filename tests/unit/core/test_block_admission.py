"""While somebody is not ready nobody starts; the loop goes on, and the heads keep their places."""

from app.core.image import Image
from app.core.manifests import Manifest, parse
from app.core.policy import PodsReady, Policy
from tests.builders import (
    admitted,
    cluster_queue,
    flavor,
    image,
    local_queue,
    reasons,
    run,
    workload,
)

BLOCKING = Policy(pods_ready=PodsReady(block_admission=True))
READY = {"type": "PodsReady", "status": "True", "reason": "Started"}
TIME = {"lastTransitionTime": "2026-01-01T11:00:00Z"}


def holding(name: str, queue: str, *, ready: bool) -> Manifest:
    conditions = [
        {"type": kind, "status": "True", "reason": kind, **TIME}
        for kind in ("QuotaReserved", "Admitted")
    ]
    usage = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": 1}}
    status = {
        "admission": {"clusterQueue": queue, "podSetAssignments": [usage]},
        "conditions": [*conditions, *([{**READY, **TIME}] if ready else [])],
    }
    return workload(name, f"lq-{queue}", cpu="1", status=status)


def world() -> Image:
    queues = [cluster_queue(name, {"default": {"cpu": 4}}) for name in ("a", "b")]
    return image(flavor(), *queues, local_queue("lq-a", "a"), local_queue("lq-b", "b"))


def test_one_is_admitted_in_a_cycle_and_the_next_when_it_is_ready() -> None:
    of = world()
    of.put(parse(workload("w1", "lq-a", cpu="1", age=9)))
    of.put(parse(workload("w2", "lq-b", cpu="1", age=5)))
    result = run(of, BLOCKING)
    assert admitted(result) == ["w1"]
    assert reasons(result) == {"w2": "WaitingForPodsReady"}

    for after in range(1, 4):
        assert reasons(run(of, BLOCKING, after=after)) == {"w2": "WaitingForPodsReady"}
        assert [one.name for one in of.pending("b")] == ["w2"]

    of.put(parse(holding("w1", "a", ready=True)))
    assert admitted(run(of, BLOCKING, after=9)) == ["w2"]


def test_readiness_matters_only_where_the_rule_is_on() -> None:
    of = world()
    of.put(parse(holding("old", "a", ready=False)))
    of.put(parse(workload("w1", "lq-a", cpu="1")))
    of.put(parse(workload("w2", "lq-b", cpu="1")))
    assert admitted(run(of, Policy(pods_ready=PodsReady()))) == ["w1", "w2"]


def test_a_reservation_that_is_not_admitted_blocks_too_and_its_end_unblocks() -> None:
    of = world()
    of.put(parse(holding("old", "a", ready=False)))
    of.put(parse(workload("w", "lq-b", cpu="1")))
    assert reasons(run(of, BLOCKING)) == {"w": "WaitingForPodsReady"}

    of.remove("Workload", "default", "old")
    assert not of.unready
    assert admitted(run(of, BLOCKING)) == ["w"]


def test_preemption_goes_on_and_what_cannot_run_says_why() -> None:
    of = image(
        flavor(),
        cluster_queue(
            "a", {"default": {"cpu": 1}}, preemption={"withinClusterQueue": "LowerPriority"}
        ),
        local_queue("lq-a", "a"),
    )
    of.put(parse(holding("old", "a", ready=False)))
    of.put(parse(workload("high", "lq-a", cpu="1", priority=5)))
    assert [one.name for one in run(of, BLOCKING).preemptions] == ["old"]
    of.put(parse(workload("huge", "lq-a", cpu="9", priority=9)))
    assert reasons(run(of, BLOCKING))["high"] == "WaitingForPreemptedWorkloads"
