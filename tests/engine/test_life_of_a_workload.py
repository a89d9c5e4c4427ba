"""What the engine does to a workload without anybody asking: in time, by checks, by readiness; over real Postgres."""

from datetime import timedelta

import pytest

from app.core.policy import PodsReady, Policy, Requeuing, Retention
from app.store.session import Database
from tests.builders import cluster_queue, flavor, local_queue
from tests.engine.stage import NOW, Stage

LIMIT = Policy(pods_ready=PodsReady(timeout=timedelta(seconds=100), requeuing=Requeuing(limit=1)))


async def stage(database: Database, policy: Policy, cpu: int = 8, **queue: object) -> Stage:
    made = await Stage.open(database, policy)
    door = local_queue("main", "cq")
    door["metadata"]["namespace"] = "team-a"
    await made.put(flavor(), cluster_queue("cq", {"default": _quota(cpu)}, **queue), door)  # type: ignore[arg-type]
    return made


def _quota(cpu: int) -> dict[str, str]:
    return {"cpu": str(cpu), "memory": "100Gi"}


async def test_pods_that_are_not_ready_in_time_are_stopped_tried_again_and_given_up(
    database: Database,
) -> None:
    on = await stage(database, LIMIT)
    on.jobs.submit("slow")
    await on.settle()
    assert on.jobs.running() == ["slow"]
    assert await on.shown("slow", "PodsReady") == ("False", "WaitForStart")
    row = await on.row("slow")
    assert row is not None
    assert row.tracking.next_deadline_at == NOW + timedelta(seconds=100)

    await on.wait(100)
    assert on.jobs.running() == []
    assert await on.shown("slow", "Requeued") == ("False", "PodsReadyTimeout")
    assert (await on.workload("slow"))["status"]["requeueState"]["count"] == 1
    await on.wait(59)
    assert on.jobs.running() == []
    await on.wait(2)
    assert on.jobs.running() == ["slow"]
    assert await on.shown("slow", "Requeued") == ("True", "BackoffFinished")

    await on.wait(100)
    assert on.jobs.running() == []
    assert await on.shown("slow", "Evicted") == ("True", "DeactivatedDueToRequeuingLimitExceeded")
    assert (await on.workload("slow"))["spec"]["active"] is False
    await on.wait(10**5)
    assert on.jobs.running() == []

    await on.edit_workload("slow", spec={"active": True})
    await on.settle()
    assert on.jobs.running() == ["slow"]
    assert "requeueState" not in (await on.workload("slow"))["status"]


async def test_ready_pods_are_left_alone_and_lost_ones_get_time_to_recover(
    database: Database,
) -> None:
    rules = PodsReady(timeout=timedelta(seconds=100), recovery_timeout=timedelta(seconds=30))
    on = await stage(database, Policy(pods_ready=rules))
    on.jobs.submit("j")
    await on.settle()
    on.jobs.report("j", ready=3)
    await on.settle()
    assert await on.shown("j", "PodsReady") == ("True", "Started")

    await on.wait(1000)
    assert on.jobs.running() == ["j"]
    on.jobs.report("j", ready=2)
    await on.settle()
    assert await on.shown("j", "PodsReady") == ("False", "WaitForRecovery")
    await on.wait(29)
    on.jobs.report("j", ready=3)
    await on.wait(2)
    assert await on.shown("j", "PodsReady") == ("True", "Recovered")
    on.jobs.report("j", ready=2)
    await on.settle()
    await on.wait(30)
    assert on.jobs.running() == []
    assert await on.shown("j", "Evicted") == ("True", "PodsReadyTimeout")


async def test_a_restart_with_other_patience_moves_the_deadlines(database: Database) -> None:
    on = await stage(database, Policy())
    on.jobs.submit("j")
    await on.settle()
    row = await on.row("j")
    assert row is not None
    assert row.tracking.next_deadline_at is None

    await on.restart(LIMIT)
    row = await on.row("j")
    assert row is not None
    assert row.tracking.next_deadline_at == NOW + timedelta(seconds=100)
    version = row.version
    await on.restart(Policy())
    row = await on.row("j")
    assert row is not None
    assert (row.tracking.next_deadline_at, row.version) == (None, version)


async def test_the_maximum_execution_time_ends_a_job_for_good(database: Database) -> None:
    on = await stage(database, Policy())
    on.jobs.submit("j", labels={"kueue.x-k8s.io/max-exec-time-seconds": "50"})
    await on.settle()
    await on.wait(49)
    assert on.jobs.running() == ["j"]
    await on.wait(1)
    assert on.jobs.running() == []
    reason = "DeactivatedDueToMaximumExecutionTimeExceeded"
    assert await on.shown("j", "Evicted") == ("True", reason)

    await on.edit_workload("j", spec={"active": True})
    await on.settle()
    await on.wait(49)
    assert on.jobs.running() == ["j"]


@pytest.fixture
async def checked(database: Database) -> Stage:
    """A queue with one check, which a controller of somebody else answers."""
    strategy = {"admissionChecks": [{"name": "budget"}]}
    on = await stage(database, Policy(), admissionChecksStrategy=strategy)
    active = {
        "type": "Active",
        "status": "True",
        "reason": "Up",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await on.put(
        {
            "kind": "AdmissionCheck",
            "metadata": {"name": "budget"},
            "spec": {"controllerName": "example.com/budget"},
            "status": {"conditions": [active]},
        }
    )
    on.jobs.submit("j")
    await on.settle()
    return on


async def say(on: Stage, state: str, **more: object) -> None:
    stamp = on.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    check = {"name": "budget", "state": state, "lastTransitionTime": stamp, "message": "", **more}
    await on.edit_workload("j", status={"admissionChecks": [check]})
    await on.settle()


async def test_a_job_starts_when_its_check_is_ready(checked: Stage) -> None:
    assert checked.jobs.running() == []
    assert await checked.shown("j", "QuotaReserved") == ("True", "QuotaReserved")
    assert await checked.shown("j", "Admitted") is None
    row = await checked.row("j")
    assert row is not None
    assert row.tracking.charged

    update = {"name": "main", "nodeSelector": {"zone": "a"}, "labels": {"paid": "yes"}}
    await say(checked, "Ready", podSetUpdates=[update])
    assert checked.jobs.running() == ["j"]
    template = checked.jobs.live["j"]["spec"]["template"]
    assert template["spec"]["nodeSelector"] == {"zone": "a"}
    assert template["metadata"]["labels"]["paid"] == "yes"


async def test_retry_gives_the_quota_back_until_its_date(checked: Stage) -> None:
    await say(checked, "Retry", requeueAfterSeconds=5)
    assert await checked.shown("j", "QuotaReserved") == ("False", "PendingEvaluation")
    assert await checked.shown("j", "Requeued") == ("False", "AdmissionCheck")
    row = await checked.row("j")
    assert row is not None
    assert not row.tracking.charged
    assert row.tracking.next_deadline_at == NOW + timedelta(seconds=5)

    await checked.wait(5)
    assert await checked.shown("j", "QuotaReserved") == ("True", "QuotaReserved")
    status = (await checked.workload("j"))["status"]
    assert [(one["state"], one["retryCount"]) for one in status["admissionChecks"]] == [
        ("Pending", 1)
    ]
    await say(checked, "Ready")
    assert checked.jobs.running() == ["j"]


@pytest.mark.parametrize("first", ["Pending", "Ready"], ids=["reserved", "running"])
async def test_rejection_deactivates_and_gives_the_quota_back(checked: Stage, first: str) -> None:
    await say(checked, first)
    await say(checked, "Rejected")
    assert checked.jobs.running() == []
    assert await checked.shown("j", "Evicted") == ("True", "DeactivatedDueToAdmissionCheck")
    row = await checked.row("j")
    assert row is not None
    assert (row.tracking.state, row.tracking.charged) == ("inactive", False)

    await checked.edit_workload("j", spec={"active": True})
    await checked.settle()
    assert await checked.shown("j", "QuotaReserved") == ("True", "QuotaReserved")


TIDY = Policy(
    retention=Retention(
        after_finished=timedelta(seconds=60), after_deactivated=timedelta(seconds=60)
    )
)


async def test_a_finished_workload_goes_after_its_time(database: Database) -> None:
    on = await stage(database, TIDY)
    on.jobs.submit("j")
    await on.settle()
    on.jobs.report("j", succeeded=3, conditions=[{"type": "Complete", "status": "True"}])
    await on._observe()
    row = await on.row("j")
    assert row is not None
    assert row.tracking.state == "finished"
    del on.jobs.live["j"]  # its owner cleaned up; the workload is kept all the same

    await on.wait(59)
    assert await on.row("j") is not None
    await on.wait(1)
    assert await on.row("j") is None


async def test_the_job_of_a_workload_that_was_deactivated_for_it_goes_too(
    database: Database,
) -> None:
    on = await stage(database, TIDY)
    on.jobs.submit("ours", labels={"kueue.x-k8s.io/max-exec-time-seconds": "10"})
    on.jobs.submit("theirs")
    await on.settle()
    await on.edit_workload("theirs", spec={"active": False})
    await on.wait(10)
    assert on.jobs.running() == []

    await on.wait(59)
    assert list(on.jobs.live) == ["ours", "theirs"]
    await on.wait(1)
    assert list(on.jobs.live) == ["theirs"]
    await on.settle()
    assert await on.row("ours") is None
    await on.wait(10**6)
    assert list(on.jobs.live) == ["theirs"]
