"""How does a workload's status change when something happens to it?

Every function takes a Workload manifest and returns one: a new manifest whose status is new and whose spec is shared,
or the very same object when there is nothing to change. Nothing is mutated. Conditions, reasons and messages are
Kueue's, verbatim, because people and other programs match on them; `lastTransitionTime` moves only when a condition's
status does.

The life of a workload: pending -> ``admit`` -> QuotaReserved, and Admitted once its checks are ready -> ``finish``; or
``evict`` (the quota is still held) -> its job stops -> ``release`` (the quota is free, back in line). *When* these
things happen is decided elsewhere: by ``cycle``, by ``upkeep`` and by what the cluster reports.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from app.core import resources
from app.core.conditions import set_condition, with_status
from app.core.decisions import Admit, PendingReason, Preempt
from app.core.evictions import (
    GATED,
    back_off,
    deactivate,
    deactivate_now,
    evict,
    evict_deactivated,
    new_check,
)
from app.core.metadata import Manifest, condition, is_true, moment, status_of
from app.core.requests import PodSetRequest
from app.core.workloads import write_admission

__all__ = [
    "admit",
    "await_pods",
    "back_off",
    "block_on_gates",
    "condition",
    "deactivate",
    "deactivate_now",
    "evict",
    "evict_deactivated",
    "finish",
    "is_true",
    "pending",
    "preempt",
    "reclaim",
    "release",
    "requeue",
    "set_condition",
    "show_requests",
    "sync_admitted",
    "withdraw",
]

#: Only these evictions put a workload back in line at once; the others wait for somebody to lift Requeued=False.
_REQUEUED_AT_ONCE = ("Preempted", "NodeFailures")

#: Of the condition PodsReady, until all of them are for the first time.
NOT_READY = "Not all pods are ready or succeeded"

_OUT_OF_TIME = "MaximumExecutionTimeExceeded"
_NO_RESERVATION = ("NoReservation", "The workload has no reservation")


def admit(manifest: Manifest, decision: Admit, now: datetime) -> Manifest:
    """Reserve quota as decided, and admit at once when no check is outstanding."""
    known = {check["name"]: check for check in status_of(manifest).get("admissionChecks") or ()}
    checks = [known.get(name) or new_check(name, now) for name in decision.checks]
    manifest = with_status(
        manifest,
        admission=write_admission(decision.admission),
        admissionChecks=checks or None,
        resourceRequests=None,
    )
    manifest = set_condition(
        manifest,
        "QuotaReserved",
        status=True,
        reason="QuotaReserved",
        message=f"Quota reserved in ClusterQueue {decision.cluster_queue}",
        now=now,
    )
    for kind in ("Evicted", "Preempted", GATED):
        manifest = _lift(manifest, kind, now)
    return sync_admitted(manifest, now)


def sync_admitted(manifest: Manifest, now: datetime) -> Manifest:
    """Admit a workload that holds quota as soon as its admission checks are ready and its pods have places.

    Once admitted it stays so: a check that is added to its queue later does not stop what runs.
    """
    status = status_of(manifest)
    if is_true(status, "Admitted") or not is_true(status, "QuotaReserved"):
        return manifest
    ready = all(check.get("state") == "Ready" for check in status.get("admissionChecks") or ())
    if not ready or _awaits_places(status):
        return manifest
    return set_condition(
        manifest,
        "Admitted",
        status=True,
        reason="Admitted",
        message="The workload is admitted",
        now=now,
    )


def pending(manifest: Manifest, reason: PendingReason, message: str, now: datetime) -> Manifest:
    """Say why a workload without a reservation has none."""
    return set_condition(
        manifest, "QuotaReserved", status=False, reason=reason, message=message, now=now
    )


def show_requests(manifest: Manifest, requests: Sequence[PodSetRequest]) -> Manifest:
    """What a pending workload is counted with, pod set by pod set."""
    shown = [
        {
            "name": one.pod_set.name,
            "resources": {
                name: resources.written(name, amount)
                for name, amount in sorted(one.requests.items())
            },
        }
        for one in requests
    ]
    return with_status(manifest, resourceRequests=shown)


def preempt(manifest: Manifest, decision: Preempt, now: datetime) -> Manifest:
    """Evict a victim to make room for another workload."""
    manifest = set_condition(
        manifest,
        "Preempted",
        status=True,
        reason=decision.reason,
        message=decision.message,
        now=now,
    )
    return evict(manifest, "Preempted", decision.message, now)


def release(manifest: Manifest, now: datetime) -> Manifest:
    """The evicted workload's job has stopped: give the quota back and say whether it may queue again."""
    status = status_of(manifest)
    evicted = condition(status, "Evicted") or {}
    reason, message = evicted.get("reason", ""), evicted.get("message", "")
    manifest = _unreserved(manifest, _reason_after(reason), message, now)
    if condition(status, "PodsReady") is not None:
        manifest = await_pods(manifest, now)
    return set_condition(
        manifest,
        "Requeued",
        status=reason in _REQUEUED_AT_ONCE,
        reason=reason,
        message=message,
        now=now,
    )


def withdraw(manifest: Manifest, message: str, now: datetime) -> Manifest:
    """Take a reservation back from a workload that never started, because its queue is on hold."""
    return _unreserved(manifest, PendingReason.SUSPENDED, message, now)


def requeue(manifest: Manifest, reason: str, message: str, now: datetime) -> Manifest:
    """Let a workload queue again: its back-off is over, its queue runs again, or it was reactivated."""
    manifest = with_status(manifest, requeueState=_without_date(manifest))
    return set_condition(manifest, "Requeued", status=True, reason=reason, message=message, now=now)


def await_pods(manifest: Manifest, now: datetime) -> Manifest:
    """Before it starts, and once it has stopped, none of its pods is ready."""
    return set_condition(
        manifest, "PodsReady", status=False, reason="WaitForStart", message=NOT_READY, now=now
    )


def block_on_gates(manifest: Manifest, message: str, now: datetime) -> Manifest:
    """It could run after preempting others, and a closed gate forbids that."""
    return set_condition(
        manifest, GATED, status=True, reason="PreemptionGated", message=message, now=now
    )


def reclaim(manifest: Manifest, done: Mapping[str, int]) -> Manifest:
    """So many pods of each set will not be needed again: they give their quota back.

    While quota is held the numbers only grow, whatever a late report says, and never beyond the set.
    """
    status, sizes = status_of(manifest), _sizes(manifest)
    before = {one["name"]: int(one["count"]) for one in status.get("reclaimablePods") or ()}
    floor = before if status.get("admission") else {}
    counts = {
        name: min(max(done.get(name, 0), floor.get(name, 0)), size) for name, size in sizes.items()
    }
    pods = [{"name": name, "count": count} for name, count in counts.items() if count]
    return with_status(manifest, reclaimablePods=pods or None)


def finish(manifest: Manifest, reason: str, message: str, now: datetime) -> Manifest:
    """The job has ended, well or not; the first ending counts."""
    return set_condition(manifest, "Finished", status=True, reason=reason, message=message, now=now)


def _unreserved(manifest: Manifest, reason: str, message: str, now: datetime) -> Manifest:
    status = status_of(manifest)
    admitted = condition(status, "Admitted")
    was_admitted = admitted is not None and admitted["status"] == "True"
    spent = int(status.get("accumulatedPastExecutionTimeSeconds") or 0)
    if _ran_out_of_time(status):
        spent = 0  # whoever lets it run again gives it all of its time again
    elif admitted is not None and was_admitted:
        spent += int((now - moment(admitted["lastTransitionTime"])).total_seconds())
    manifest = with_status(
        manifest, admission=None, accumulatedPastExecutionTimeSeconds=spent or None
    )
    manifest = set_condition(
        manifest, "QuotaReserved", status=False, reason=reason, message=message, now=now
    )
    if not was_admitted:
        return manifest
    why, text = _NO_RESERVATION
    return set_condition(manifest, "Admitted", status=False, reason=why, message=text, now=now)


def _ran_out_of_time(status: Manifest) -> bool:
    evicted = condition(status, "Evicted") or {}
    return str(evicted.get("reason", "")).endswith(_OUT_OF_TIME)


def _awaits_places(status: Manifest) -> bool:
    """Some pod set gets its places only in a second pass, and that has not come."""
    assignments = (status.get("admission") or {}).get("podSetAssignments") or ()
    return any(one.get("delayedTopologyRequest") == "Pending" for one in assignments)


def _sizes(manifest: Manifest) -> dict[str, int]:
    pod_sets = manifest.get("spec", {}).get("podSets") or ()
    return {one.get("name") or "main": int(one.get("count", 1)) for one in pod_sets}


def _reason_after(eviction: str) -> PendingReason:
    if eviction.startswith("Deactivated"):
        return PendingReason.DEACTIVATED
    stopped = eviction in ("ClusterQueueStopped", "LocalQueueStopped")
    return PendingReason.SUSPENDED if stopped else PendingReason.PENDING_EVALUATION


def _lift(manifest: Manifest, kind: str, now: datetime) -> Manifest:
    """A new reservation ends an eviction; its words stay readable."""
    old = condition(status_of(manifest), kind)
    if old is None or old["status"] != "True":
        return manifest
    return set_condition(
        manifest,
        kind,
        status=False,
        reason="QuotaReserved",
        message=f"Previously: {old['message']}",
        now=now,
    )


def _without_date(manifest: Manifest) -> Manifest | None:
    state = dict(status_of(manifest).get("requeueState") or {})
    state.pop("requeueAt", None)
    return state or None
