"""What happens to a workload's status, in Kueue's own words."""

from datetime import timedelta
from typing import Any

from app.core import lifecycle
from app.core.decisions import Admit, PendingReason, Preempt, PreemptionReason
from app.core.manifests import Manifest, parse
from app.core.model import Admission, PodSetAdmission, Workload
from tests.builders import NOW, workload

LATER = NOW + timedelta(seconds=30)


def admit(*checks: str) -> Admit:
    one = PodSetAdmission(name="main", count=2, flavors={"cpu": "default"}, usage={"cpu": 3000})
    return Admit(
        uid="uid-w",
        namespace="default",
        name="w",
        cluster_queue="cq",
        admission=Admission(cluster_queue="cq", pod_sets=(one,)),
        checks=checks,
    )


def preemption() -> Preempt:
    return Preempt(
        uid="uid-w",
        namespace="default",
        name="w",
        cluster_queue="cq",
        reason=PreemptionReason.IN_CLUSTER_QUEUE,
        message="Preempted to accommodate a workload (UID: u) due to prioritization in the ClusterQueue",
        by_uid="u",
        by_namespace="default",
        by_name="v",
        by_cluster_queue="cq",
    )


def shown(manifest: Manifest) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in manifest["status"]["conditions"]}


def test_admission_reserves_and_admits_at_once_without_checks() -> None:
    manifest = lifecycle.admit(workload("w", cpu="1500m", pods=2), admit(), NOW)

    assert shown(manifest) == {
        "QuotaReserved": ("True", "QuotaReserved"),
        "Admitted": ("True", "Admitted"),
    }
    assert manifest["status"]["admission"] == {
        "clusterQueue": "cq",
        "podSetAssignments": [
            {
                "name": "main",
                "flavors": {"cpu": "default"},
                "resourceUsage": {"cpu": "3"},
                "count": 2,
            }
        ],
    }
    assert lifecycle.condition(manifest["status"], "QuotaReserved") == {
        "type": "QuotaReserved",
        "status": "True",
        "reason": "QuotaReserved",
        "message": "Quota reserved in ClusterQueue cq",
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }


def test_with_checks_it_is_admitted_once_all_are_ready() -> None:
    manifest = lifecycle.admit(workload("w"), admit("budget"), NOW)
    assert "Admitted" not in shown(manifest)

    ready = [{**one, "state": "Ready"} for one in manifest["status"]["admissionChecks"]]
    manifest["status"]["admissionChecks"] = ready
    assert shown(lifecycle.sync_admitted(manifest, LATER))["Admitted"] == ("True", "Admitted")


def test_what_is_written_is_read_back_the_same() -> None:
    noun = parse(lifecycle.admit(workload("w"), admit(), NOW))

    assert isinstance(noun, Workload)
    assert noun.admission == admit().admission
    assert (noun.reserved_at, noun.admitted) == (NOW, True)


def test_an_eviction_keeps_the_quota_until_the_job_has_stopped() -> None:
    manifest = lifecycle.preempt(lifecycle.admit(workload("w"), admit(), NOW), preemption(), LATER)
    assert shown(manifest)["Evicted"] == ("True", "Preempted")
    assert shown(manifest)["Preempted"] == ("True", "InClusterQueue")
    assert "admission" in manifest["status"]

    released = lifecycle.release(manifest, LATER)
    assert "admission" not in released["status"]
    assert shown(released) == {
        "QuotaReserved": ("False", "PendingEvaluation"),
        "Admitted": ("False", "NoReservation"),
        "Preempted": ("True", "InClusterQueue"),
        "Evicted": ("True", "Preempted"),
        "Requeued": ("True", "Preempted"),
    }
    assert released["status"]["accumulatedPastExecutionTimeSeconds"] == 30


def test_only_preempted_workloads_queue_again_by_themselves() -> None:
    evicted = lifecycle.evict(
        lifecycle.admit(workload("w"), admit(), NOW), "PodsReadyTimeout", "Too slow", NOW
    )

    assert shown(lifecycle.release(evicted, NOW))["Requeued"] == ("False", "PodsReadyTimeout")


def test_a_new_reservation_ends_the_eviction_and_keeps_its_words() -> None:
    evicted = lifecycle.preempt(lifecycle.admit(workload("w"), admit(), NOW), preemption(), NOW)
    again = lifecycle.admit(lifecycle.release(evicted, NOW), admit(), LATER)

    condition = lifecycle.condition(again["status"], "Evicted") or {}
    assert (condition["status"], condition["reason"]) == ("False", "QuotaReserved")
    assert condition["message"].startswith("Previously: Preempted to accommodate")


def test_checks_start_over_and_only_a_retry_is_counted() -> None:
    manifest = lifecycle.admit(workload("w"), admit("a", "b", "c"), NOW)
    for check, state in zip(
        manifest["status"]["admissionChecks"], ("Ready", "Retry", "Pending"), strict=True
    ):
        check |= {"state": state, "requeueAfterSeconds": 5}

    checks = lifecycle.evict(manifest, "AdmissionCheck", "retry", NOW)["status"]["admissionChecks"]

    assert [check["state"] for check in checks] == ["Pending"] * 3
    assert [check.get("retryCount") for check in checks] == [None, 1, None]
    assert [check["requeueAfterSeconds"] for check in checks] == [5, 5, 5]


def test_nothing_to_change_gives_the_same_object_and_nothing_is_mutated() -> None:
    fresh = workload("w")
    waiting = lifecycle.pending(fresh, PendingReason.WAITING_FOR_QUOTA, "no room", NOW)

    assert "status" not in fresh
    assert lifecycle.pending(waiting, PendingReason.WAITING_FOR_QUOTA, "no room", LATER) is waiting
    other = lifecycle.pending(waiting, PendingReason.EXCEEDS_MAX_QUOTA, "never", LATER)
    assert _since(other, "QuotaReserved") == "2026-01-01T12:00:00Z"  # still False: no transition
    assert _since(waiting, "QuotaReserved") == "2026-01-01T12:00:00Z"


def test_the_first_ending_counts() -> None:
    done = lifecycle.finish(workload("w"), "Succeeded", "Job finished successfully", NOW)

    assert lifecycle.finish(done, "Failed", "no", LATER) is done


def _since(manifest: Manifest, kind: str) -> Any:
    return (lifecycle.condition(manifest["status"], kind) or {})["lastTransitionTime"]
