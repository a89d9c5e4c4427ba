"""How does a workload's status change when something happens to it?

Every function takes a Workload manifest and returns one: a new manifest whose status is new and whose spec is shared,
or the very same object when there is nothing to change. Nothing is mutated. Conditions, reasons and messages are
Kueue's, verbatim, because people and other programs match on them; `lastTransitionTime` moves only when a condition's
status does.

The life of a workload: pending -> ``admit`` -> QuotaReserved, and Admitted once its checks are ready -> ``finish``; or
``evict`` (the quota is still held) -> its job stops -> ``release`` (the quota is free, back in line). *When* these
things happen is decided elsewhere: by ``cycle``, by ``upkeep`` and by what the cluster reports.
"""

from datetime import datetime
from typing import Any

from app.core.decisions import Admit, PendingReason, Preempt
from app.core.metadata import Manifest, condition, is_true, moment, stamp, status_of
from app.core.workloads import write_admission

__all__ = [
    "admit",
    "condition",
    "deactivate",
    "evict",
    "evict_deactivated",
    "finish",
    "is_true",
    "pending",
    "preempt",
    "release",
    "requeue",
    "set_condition",
    "sync_admitted",
    "withdraw",
]

#: Only these evictions put a workload back in line at once; the others wait for somebody to lift Requeued=False.
_REQUEUED_AT_ONCE = ("Preempted", "NodeFailures")

_NO_RESERVATION = ("NoReservation", "The workload has no reservation")
_MESSAGE_LIMIT = 32768


def set_condition(
    manifest: Manifest, kind: str, *, status: bool, reason: str, message: str, now: datetime
) -> Manifest:
    """Set one condition; the time of its last transition stays when its status does."""
    old = condition(status_of(manifest), kind) or {}
    word = "True" if status else "False"
    new: Manifest = {
        "type": kind,
        "status": word,
        "reason": reason,
        "message": message[:_MESSAGE_LIMIT],
        "lastTransitionTime": old["lastTransitionTime"]
        if old.get("status") == word
        else stamp(now),
    }
    generation = manifest["metadata"].get("generation")
    if generation is not None:
        new["observedGeneration"] = generation
    if new == old:
        return manifest
    conditions = list(status_of(manifest).get("conditions") or ())
    if old:
        conditions[conditions.index(old)] = new
    else:
        conditions.append(new)
    return _with_status(manifest, conditions=conditions)


def admit(manifest: Manifest, decision: Admit, now: datetime) -> Manifest:
    """Reserve quota as decided, and admit at once when no check is outstanding."""
    known = {check["name"]: check for check in status_of(manifest).get("admissionChecks") or ()}
    checks = [known.get(name) or _new_check(name, now) for name in decision.checks]
    manifest = _with_status(
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
    for kind in ("Evicted", "Preempted"):
        manifest = _lift(manifest, kind, now)
    return sync_admitted(manifest, now)


def sync_admitted(manifest: Manifest, now: datetime) -> Manifest:
    """Admit a workload that holds quota as soon as all of its admission checks are ready."""
    status = status_of(manifest)
    ready = all(check.get("state") == "Ready" for check in status.get("admissionChecks") or ())
    if is_true(status, "Admitted") or not (ready and is_true(status, "QuotaReserved")):
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


def evict(
    manifest: Manifest, reason: str, message: str, now: datetime, *, cause: str = ""
) -> Manifest:
    """Ask for the workload to stop. Its quota stays taken until ``release``."""
    manifest = set_condition(
        manifest, "Evicted", status=True, reason=reason, message=message, now=now
    )
    status = status_of(manifest)
    return _with_status(
        manifest,
        admissionChecks=[_reset_check(check, now) for check in status.get("admissionChecks") or ()]
        or None,
        schedulingStats=_counted(status.get("schedulingStats") or {}, reason, cause),
        clusterName=None,
        nominatedClusterNames=None,
        unhealthyNodes=None,
    )


def release(manifest: Manifest, now: datetime) -> Manifest:
    """The evicted workload's job has stopped: give the quota back and say whether it may queue again."""
    status = status_of(manifest)
    evicted = condition(status, "Evicted") or {}
    reason, message = evicted.get("reason", ""), evicted.get("message", "")
    manifest = _unreserved(manifest, _reason_after(reason), message, now)
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
    manifest = _with_status(manifest, requeueState=_without_date(manifest))
    return set_condition(manifest, "Requeued", status=True, reason=reason, message=message, now=now)


def deactivate(manifest: Manifest, cause: str, message: str, now: datetime) -> Manifest:
    """Mark a workload for deactivation by the controller; ``upkeep`` carries it out."""
    return set_condition(
        manifest, "DeactivationTarget", status=True, reason=cause, message=message, now=now
    )


def evict_deactivated(manifest: Manifest, now: datetime) -> Manifest:
    """Evict a workload whose ``spec.active`` is false and forget its back-off."""
    target = condition(status_of(manifest), "DeactivationTarget")
    reason, message = "Deactivated", "The workload is deactivated"
    if target is not None and target["status"] == "True":
        reason = f"DeactivatedDueTo{target['reason']}"
        message = f"{message} due to {target['message'][:1].lower()}{target['message'][1:]}"
    kept = [
        one
        for one in status_of(manifest).get("conditions") or ()
        if one["type"] != "DeactivationTarget"
    ]
    manifest = _with_status(manifest, conditions=kept, requeueState=None)
    if not is_true(status_of(manifest), "QuotaReserved"):
        manifest = pending(manifest, PendingReason.DEACTIVATED, message, now)
    return evict(manifest, reason, message, now)


def finish(manifest: Manifest, reason: str, message: str, now: datetime) -> Manifest:
    """The job has ended, well or not; the first ending counts."""
    if is_true(status_of(manifest), "Finished"):
        return manifest
    return set_condition(manifest, "Finished", status=True, reason=reason, message=message, now=now)


def _with_status(manifest: Manifest, **changes: Any) -> Manifest:
    """Replace status fields; None removes one. The same object comes back when nothing differs."""
    old = status_of(manifest)
    new = {key: value for key, value in {**old, **changes}.items() if value is not None}
    return manifest if new == old else {**manifest, "status": new}


def _unreserved(manifest: Manifest, reason: str, message: str, now: datetime) -> Manifest:
    status = status_of(manifest)
    admitted = condition(status, "Admitted")
    was_admitted = admitted is not None and admitted["status"] == "True"
    spent = int(status.get("accumulatedPastExecutionTimeSeconds") or 0)
    if admitted is not None and was_admitted:
        spent += int((now - moment(admitted["lastTransitionTime"])).total_seconds())
    manifest = _with_status(
        manifest, admission=None, accumulatedPastExecutionTimeSeconds=spent or None
    )
    manifest = set_condition(
        manifest, "QuotaReserved", status=False, reason=reason, message=message, now=now
    )
    if not was_admitted:
        return manifest
    why, text = _NO_RESERVATION
    return set_condition(manifest, "Admitted", status=False, reason=why, message=text, now=now)


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


def _new_check(name: str, now: datetime) -> Manifest:
    return {"name": name, "state": "Pending", "lastTransitionTime": stamp(now), "message": ""}


def _reset_check(check: Manifest, now: datetime) -> Manifest:
    """An eviction makes every check start over; only an asked-for retry counts as one."""
    if check.get("state") == "Pending":
        return check
    fresh = _new_check(check["name"], now) | {"message": "Reset to Pending after eviction"}
    if "requeueAfterSeconds" in check:
        fresh["requeueAfterSeconds"] = check["requeueAfterSeconds"]
    if check.get("state") == "Retry":
        fresh["retryCount"] = int(check.get("retryCount") or 0) + 1
    return fresh


def _counted(stats: Manifest, reason: str, cause: str) -> Manifest:
    evictions = [dict(one) for one in stats.get("evictions") or ()]
    for one in evictions:
        if (one["reason"], one.get("underlyingCause", "")) == (reason, cause):
            one["count"] += 1
            break
    else:
        evictions.append({"reason": reason, "underlyingCause": cause, "count": 1})
    return {**stats, "evictions": evictions}


def _without_date(manifest: Manifest) -> Manifest | None:
    state = dict(status_of(manifest).get("requeueState") or {})
    state.pop("requeueAt", None)
    return state or None
