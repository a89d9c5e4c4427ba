"""Who has to go, and who must not."""

from typing import Any

import pytest

from app.core.decisions import CycleResult
from app.core.policy import BOTH_STRATEGIES, Policy
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

FAIR = Policy(fair_sharing=BOTH_STRATEGIES)


def running(name: str, queue: str, cpu: str, *, since: int = 60, **more: Any) -> dict[str, Any]:
    """A workload that has held quota for so many seconds."""
    at = f"2026-01-01T11:{59 - since // 60:02}:{59 - since % 60:02}Z"
    status = {
        "conditions": [
            {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": at}
            for kind in ("QuotaReserved", "Admitted")
        ],
        "admission": {
            "clusterQueue": queue,
            "podSetAssignments": [
                {
                    "name": "main",
                    "count": 1,
                    "flavors": {"cpu": "default"},
                    "resourceUsage": {"cpu": cpu},
                }
            ],
        },
    }
    return workload(name, queue, cpu=cpu, status=status, **more)


def victims(result: CycleResult) -> dict[str, str]:
    return {one.name: str(one.reason) for one in result.preemptions}


def queue(
    name: str, cpu: Any, cohort: str | None = None, **preemption: Any
) -> list[dict[str, Any]]:
    made = cluster_queue(name, {"default": {"cpu": cpu}}, cohort=cohort, preemption=preemption)
    return [made, local_queue(name, name)]


def test_lower_priority_goes_and_only_as_many_as_needed() -> None:
    of = image(
        flavor(),
        *queue("cq", "4", withinClusterQueue="LowerPriority"),
        running("old", "cq", "2", since=600),
        running("new", "cq", "1", since=60),
        running("peer", "cq", "1", priority=5),
        workload("urgent", "cq", cpu="2", priority=5),
    )

    result = run(of)

    assert victims(result) == {"old": "InClusterQueue"}
    assert reasons(result) == {"urgent": "WaitingForPreemptedWorkloads"}
    assert not result.admissions


def test_the_preemptor_waits_until_its_victims_have_stopped() -> None:
    of = image(
        flavor(),
        *queue("cq", "2", withinClusterQueue="LowerPriority"),
        running("victim", "cq", "2"),
        workload("urgent", "cq", cpu="2", priority=5),
    )

    assert victims(run(of)) == {"victim": "InClusterQueue"}
    again = run(of, after=1)
    assert victims(again) == {}  # it is on its way out already
    assert not again.admissions
    assert of.pending("cq")[0].name == "urgent"

    of.remove("Workload", "default", "victim")
    assert admitted(run(of, after=2)) == ["urgent"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Never", {}),
        ("LowerPriority", {}),
        ("Any", {"borrower": "InCohortReclamation"}),
    ],
)
def test_reclaim_takes_back_what_others_borrowed(policy: str, expected: dict[str, str]) -> None:
    of = image(
        flavor(),
        *queue("mine", "3", "co", reclaimWithinCohort=policy),
        *queue("theirs", "3", "co"),
        running("borrower", "theirs", "4", priority=9),
        workload("w", "mine", cpu="3"),
    )

    assert victims(run(of)) == expected


def test_a_queue_within_its_own_quota_is_not_touched() -> None:
    of = image(
        flavor(),
        *queue("mine", "3", "co", reclaimWithinCohort="Any"),
        *queue("theirs", "3", "co"),
        running("rightful", "theirs", "3"),
        workload("w", "mine", cpu="4"),
    )

    result = run(of)

    assert victims(result) == {}
    assert reasons(result) == {"w": "WaitingForQuota"}


def test_borrowing_while_preempting_has_a_threshold() -> None:
    for threshold, expected in (
        (0, {}),
        (2, {"borrower": "InCohortReclaimWhileBorrowing"}),
    ):
        borrow = {"policy": "LowerPriority", "maxPriorityThreshold": threshold}
        of = image(
            flavor(),
            *queue("mine", "1", "co", reclaimWithinCohort="Any", borrowWithinCohort=borrow),
            *queue("theirs", "1", "co"),
            *queue("idle", "2", "co"),
            running("borrower", "theirs", "3", priority=2),
            workload("w", "mine", cpu="2", priority=5),
        )

        assert victims(run(of)) == expected


def test_two_preemptors_do_not_claim_the_same_victim() -> None:
    of = image(
        flavor(),
        *queue("a", "2", "co", reclaimWithinCohort="Any"),
        *queue("b", "2", "co", reclaimWithinCohort="Any"),
        *queue("c", "0", "co"),
        running("borrower", "c", "4"),
        workload("first", "a", cpu="2", age=9),
        workload("second", "b", cpu="2"),
    )

    result = run(of)

    assert victims(result) == {"borrower": "InCohortReclamation"}
    assert reasons(result) == {
        "first": "WaitingForPreemptedWorkloads",
        "second": "WaitingForPreemptedWorkloads",
    }


def test_fair_sharing_lets_the_poorer_queue_preempt_the_richer() -> None:
    def world(mine: list[dict[str, Any]]) -> dict[str, str]:
        of = image(
            flavor(),
            *queue("mine", "0", "co", reclaimWithinCohort="Any"),
            *queue("theirs", "0", "co"),
            *queue("lender", "6", "co"),
            *(running(f"theirs-{i}", "theirs", "1", since=i) for i in range(4)),
            *mine,
            workload("w", "mine", cpu="1"),
        )
        return victims(run(of, FAIR))

    assert world([running("mine-1", "mine", "2")]) == {"theirs-0": "InCohortFairSharing"}
    assert world([running(f"mine-{i}", "mine", "1") for i in range(2)]) == {
        "theirs-0": "InCohortFairSharing"
    }


def test_fair_sharing_orders_heads_by_the_share_they_would_have() -> None:
    of = image(
        flavor(),
        *queue("rich", "0", "co"),
        *queue("poor", "0", "co"),
        *queue("lender", "4", "co"),
        running("r", "rich", "2"),
        workload("wants-more", "rich", cpu="2", age=99),
        workload("wants-some", "poor", cpu="2"),
    )

    assert admitted(run(of, FAIR)) == ["wants-some"]
    assert admitted(run(of)) == []
