"""Section S: shares that hide a claim, and usage that is forgotten too fast, or never."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from app.core import admission_fairness, lifecycle
from app.core.image import Image
from app.core.metadata import stamp
from app.core.model import LocalQueue, Workload
from app.core.policy import BOTH_STRATEGIES, AdmissionFairness
from tests.builders import NOW, cluster_queue, flavor, local_queue
from tests.known_failures.shorthand import FLAVOR, cq, w
from tests.laws.stage import Stage

WEEK = AdmissionFairness(half_life=timedelta(days=7), sampling=timedelta(seconds=5))


def test_borrowing_one_flavor_does_not_weaken_the_claim_to_another() -> None:
    """kueue#9533, #10201, #9593: on what is its own a queue goes first and reclaims, whatever its share."""
    quotas = {"a": (0, 4), "b": (0, 0), "lender": (100, 0)}
    stage = Stage(
        flavor("x", nodeLabels={"pool": "x"}),
        flavor("y", nodeLabels={"pool": "y"}),
        *(
            cluster_queue(
                name,
                {"x": {"gpu": x}, "y": {"gpu": y}},
                cohort="c",
                preemption={"reclaimWithinCohort": "Any"},
            )
            for name, (x, y) in quotas.items()
        ),
        *(local_queue(name, name) for name in quotas),
        fair=BOTH_STRATEGIES,
    )
    on_x, on_y = ({"nodeSelector": {"pool": pool}} for pool in "xy")
    stage.add(w("a0", 90, template=on_x), w("b0", 3, template=on_y)).settle()
    assert stage.running == ["a0", "b0"]

    stage.add(w("b1", 1, t=1, template=on_y), w("a1", 4, t=2, template=on_y)).cycle()
    assert [one.by_name for one in stage.last.preemptions] == ["a1"]

    stage.settle()
    assert stage.running == ["a0", "a1"]
    assert (stage.evictions("b0"), stage.evictions("a0")) == (1, 0)


def _running(of: Image) -> tuple[LocalQueue, list[Workload]]:
    return of.local_queues["default", "a"], list(of.workloads.values())


def _sampled(
    local: LocalQueue, jobs: list[Workload], rules: AdmissionFairness, second: int
) -> LocalQueue:
    now = NOW + timedelta(seconds=second)
    reckoned = admission_fairness.sample(local, jobs, rules, now)
    return replace(local, consumed=reckoned.consumed, consumed_at=reckoned.at)


def test_usage_grows_however_short_the_tick_and_long_the_half_life() -> None:
    """kueue#13763, #12694: an hour of one gpu is an hour of one gpu, in 720 ticks as in one."""
    local, jobs = _running(Stage(FLAVOR, cq("a", 1), w("a1", 1)).settle().image)
    local = _sampled(local, jobs, WEEK, 10)  # takes the entry penalty in
    entry = local.consumed.get("gpu", 0)

    for tick in range(1, 721):
        local = _sampled(local, jobs, WEEK, 10 + 5 * tick)

    left = 0.5 ** (3600 / timedelta(days=7).total_seconds())
    assert local.consumed["gpu"] == pytest.approx(entry * left + 10**9 * (1 - left), rel=1e-3)


def test_without_a_half_life_nothing_is_remembered() -> None:
    """KAI#831: zero means off, and divides nothing."""
    off = AdmissionFairness(half_life=timedelta(), sampling=timedelta(seconds=5))
    local, jobs = _running(Stage(FLAVOR, cq("a", 1), w("a1", 1)).settle().image)

    for second in (10, 15, 20):
        local = _sampled(local, jobs, off, second)

    assert local.consumed == {}


EXITS: dict[str, Callable[[Stage, str], object]] = {
    "finished": lambda stage, name: stage.finish(name),
    "evicted": lambda stage, name: stage.evict(name, "NodeFailures"),
    "deleted": lambda stage, name: stage.remove("Workload", name),
    "deactivated": lambda stage, name: stage.edit("Workload", name, active=False),
    "rejected": lambda stage, name: stage.put(
        lifecycle.deactivate(stage.find("Workload", name), "AdmissionCheck", "no", stage.now)
    ),
}


@pytest.mark.parametrize("exits", [*EXITS, "all at once"])
def test_an_entry_penalty_ends_with_its_reason(exits: str) -> None:
    """kueue#12786, #13853, #14153, #13287: whichever way the workload leaves, nothing is owed for it any more."""
    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    jobs = [w(f"a{i}", 1, t=i) for i in range(5)]
    stage = Stage(FLAVOR, cq("a", 5, admissionScope=scope), jobs, sharing=WEEK).settle()
    assert len(stage.image.shares.owing(("default", "a"))) == 5

    for place, leaves in enumerate(EXITS.values()):
        (leaves if exits == "all at once" else EXITS[exits])(stage, f"a{place}")
    _sample(stage.advance(5))

    assert stage.running == []
    assert list(stage.image.shares.owing(("default", "a"))) == []
    assert list(stage.restart().image.shares.owing(("default", "a"))) == []


def _sample(stage: Stage) -> None:
    local, jobs = _running(stage.image)
    reckoned = admission_fairness.sample(local, jobs, WEEK, stage.now)
    status = {"consumedResources": {}, "lastUpdate": stamp(reckoned.at)}
    old = stage.find("LocalQueue", "a")
    stage.put({**old, "status": {"fairSharing": {"admissionFairSharingStatus": status}}})
